/**
 * Profiles as text -> logged queries (surfaces 3, insight 4.1).
 *
 * Keys are looked up by name wherever they stand, because their places and spellings differ between releases
 * and distributions; a text may hold many profiles one after the other, with anything between them. A profile
 * prints times that get coarser as they grow, so an event's time is the sum of the steps that lead to it
 * wherever those are finer than the printed total.
 */
import { durationMicros, durationResolution, sizeBytes, timestampMicros, UnreadableCell } from "./cells.ts";
import {
  hostsOf,
  isEmptyGroup,
  isLogWriterText,
  isMemoryFailure,
  isRefused,
  type LoggedQuery,
  optionsOf,
  outcomeOf,
  rejectionOf,
} from "./logged-query.ts";
import { endOfQuery } from "./query-log-table.ts";
import { fingerprintOf, reservationText, tablesOf, tablesWithoutStats } from "./statement.ts";

export const PROFILE_MARK = /^\s*Query \(id=([0-9a-f]{16}:[0-9a-f]{16})\)/;

/** One profile's lines, gathered until the next one begins. */
export interface ProfileBlock {
  readonly line: number;
  readonly queryId: string;
  readonly lines: string[];
}

/** A key's value, under the first of its spellings that occurs (surfaces 3.3 "key drift"). */
class Keys {
  private readonly values = new Map<string, string>();
  readonly events: { readonly label: string; readonly at: number }[] = [];
  plan: string | null = null;
  sql = "";
  scratchWritten: number | null = null;
  slots: number | null = null;

  put(key: string, value: string): void {
    if (!this.values.has(key)) this.values.set(key, value);
  }

  text(...spellings: readonly string[]): string | null {
    for (const s of spellings) {
      const v = this.values.get(s);
      if (v !== undefined && v.trim() !== "" && v.trim() !== "N/A") return v.trim();
    }
    return null;
  }

  event(label: RegExp): number | null {
    return this.events.find((e) => label.test(e.label))?.at ?? null;
  }
}

export function queryOfProfile(block: ProfileBlock): LoggedQuery {
  const keys = keysOf(block.lines);
  const startText = keys.text("Start Time");
  const start = startText === null ? null : timestampMicros(startText);
  if (start === null)
    throw new UnreadableCell("Start Time", startText, "a timestamp such as 2026-08-22 10:15:02.118044000");
  const status = keys.text("Query Status");
  const result = keys.text("Admission result");
  const outcome = outcomeOf(result, status);
  if (outcome === null) throw new UnreadableCell("Admission result", result, 'a result such as "Admitted immediately"');
  const submitted = keys.event(/^Submit for admission/) ?? keys.event(/^Planning finished/);
  const waited = waitedText(keys);
  const completed = keys.event(/^Completed admission/);
  const named = keys.text("Tables Missing Stats", "Tables With Corrupt Table Stats");
  const missing = named !== null ? tablesOf(named) : tablesWithoutStats(keys.plan);
  const reservations = sizesOf(
    keys.text("Per Host Min Memory Reservation", "Per Host Min Reservation", "Per-Host Memory Reservation"),
  );
  const peaks = sizesOf(keys.text("Per Node Peak Memory Usage"));
  const planReservation = reservationText(keys.plan);
  const hosts = hostsOf(
    keys.text(
      "Per Host Number of Fragment Instances",
      "Per Host Min Memory Reservation",
      "Per Host Min Reservation",
      // Before 2.12 the only one that names the hosts.
      "Per Node Peak Memory Usage",
    ),
  );
  const coordinatorEstimate = /Dedicated Coordinator Resource Estimate: Memory=([\d.]+\s*[KMGT]?B)/.exec(
    keys.plan ?? "",
  )?.[1];
  return {
    line: block.line,
    queryId: block.queryId,
    clusterId: null,
    sessionId: keys.text("Session ID"),
    user: keys.text("User", "Connected User") ?? "",
    clientAddress: keys.text("Network Address"),
    coordinator: keys.text("Coordinator"),
    pool: keys.text("Request Pool") ?? "",
    statementType: keys.text("Query Type") ?? "",
    isLogWriter: isLogWriterText(keys.sql),
    fingerprint: fingerprintOf(keys.sql),
    tables: tablesOf(keys.text("Tables Queried", "Referenced Tables")),
    missingStats: missing,
    statsMissing: missing !== null && missing.length > 0,
    start,
    submitted,
    completedAdmission: completed ?? (submitted !== null && waited !== null ? submitted + waited : null),
    firstRow: keys.event(/^First row fetched/),
    lastRow: keys.event(/^Last row fetched/),
    unregistered: keys.event(/^Unregister query/) ?? durationOf(keys.text("Duration")),
    released: keys.event(/^Released admission control resources/),
    clientWait: durationOf(keys.text("ClientFetchWaitTimer")),
    outcome,
    rejection: outcome === "rejected" ? rejectionOf(status) : null,
    end: endOfQuery(keys.text("Impala Query State", "Query State"), status),
    failedForMemory: !isRefused(outcome) && isMemoryFailure(status),
    estimate: numberOrNull(keys.text("Estimated Per-Host Mem")),
    coordinatorEstimate: coordinatorEstimate === undefined ? null : sizeBytes(coordinatorEstimate),
    reservation: largest(reservations) ?? (planReservation === null ? null : sizeBytes(planReservation)),
    options: optionsOf(keys.text("Query Options (set by configuration)", "Query Options (non default)")),
    clusterAdmitted: sizeOrNull(keys.text("Cluster Memory Admitted")),
    backends: hosts === null ? null : hosts.length,
    leastBackends: null,
    // A profile may be of any release: only the empty group's own name is taken for an answer.
    coordinatorOnly: isEmptyGroup(keys.text("Executor Group")) || null,
    hosts,
    peakMax: largest(peaks),
    peakMin: peaks.length === 0 ? null : Math.min(...peaks),
    peakMean: peaks.length === 0 ? null : Math.round(peaks.reduce((a, b) => a + b, 0) / peaks.length),
    spilled: keys.scratchWritten,
    executorSlots: keys.slots,
    coordinatorSlots: null,
  };
}

const EVENT = /^\s*- ([^:]+(?:: [^:(]*)*?): (\S+) \(([^)]+)\)\s*$/;
const KEY = /^\s+([A-Z][A-Za-z0-9_ .()-]*?):(?: (.*))?$/;

function keysOf(lines: readonly string[]): Keys {
  const keys = new Keys();
  const plan: string[] = [];
  let inStatement = false;
  let inPlan = false;
  let timeline = false;
  let inNodes = false;
  let sumOfSteps = 0;
  for (const line of lines) {
    // A statement may hold anything, also lines that look like keys: it ends where its successor begins.
    if (inStatement) {
      if (!/^\s{2,}Coordinator: /.test(line)) {
        keys.sql += `\n${line}`;
        continue;
      }
      inStatement = false;
    }
    if (inPlan) {
      if (!/^\s+Estimated Per-Host Mem:/.test(line)) {
        plan.push(line);
        continue;
      }
      inPlan = false;
      keys.plan = plan.join("\n");
    }
    const event = timeline ? EVENT.exec(line) : null;
    if (event !== null) {
      const step = durationMicros(event[3] ?? "") ?? 0;
      sumOfSteps += step;
      keys.events.push({ label: event[1] ?? "", at: finerOf(event[2] ?? "", sumOfSteps) });
      continue;
    }
    timeline = /^\s+Query Timeline: /.test(line);
    if (timeline) sumOfSteps = 0;
    const counter = /^\s+- (ClientFetchWaitTimer|ScratchBytesWritten|AdmissionSlots): (.*)$/.exec(line);
    if (counter !== null) {
      takeCounter(keys, counter[1] ?? "", counter[2] ?? "", inNodes);
      continue;
    }
    const key = KEY.exec(line);
    if (key === null) continue;
    const [, name = "", value = ""] = key;
    if (name === "Per Node Profiles") inNodes = true;
    else if (/^(?:Coordinator |Averaged )?Fragment F/.test(name)) inNodes = false;
    if (name === "Sql Statement") {
      inStatement = true;
      keys.sql = value;
    } else if (name === "Plan") inPlan = true;
    else keys.put(name, value);
  }
  if (inPlan) keys.plan = plan.join("\n");
  return keys;
}

function takeCounter(keys: Keys, name: string, value: string, inNodes: boolean): void {
  if (name === "ClientFetchWaitTimer") keys.put(name, value);
  else if (!inNodes) return;
  else if (name === "ScratchBytesWritten") keys.scratchWritten = (keys.scratchWritten ?? 0) + (sizeBytes(value) ?? 0);
  else keys.slots = Math.max(keys.slots ?? 0, Number.parseInt(value, 10) || 0);
}

/** The sum of the steps, unless it strays from the printed total by more than that hides. */
function finerOf(total: string, sumOfSteps: number): number {
  const printed = durationMicros(total);
  if (printed === null) return sumOfSteps;
  return Math.abs(printed - sumOfSteps) <= durationResolution(total) ? sumOfSteps : printed;
}

/** `waited 38622 ms, reason: ...` of the present key or of the one before it. */
function waitedText(keys: Keys): number | null {
  const m = /waited (\d+) ms/.exec(keys.text("Initial admission queue reason", "Admission queue details") ?? "");
  return m === null ? null : Number(m[1]) * 1000;
}

/** `52s418ms (52418207 us)` or without the bracket. */
function durationOf(text: string | null): number | null {
  if (text === null) return null;
  const exact = /\((\d+) us\)/.exec(text);
  return exact !== null ? Number(exact[1]) : durationMicros(text.replace(/\s.*$/, ""));
}

const sizesOf = (text: string | null): number[] =>
  [...(text ?? "").matchAll(/:\d+\(([^)]+)\)/g)].map((m) => sizeBytes(m[1] ?? "") ?? 0);
const largest = (sizes: readonly number[]): number | null => (sizes.length === 0 ? null : Math.max(...sizes));
const sizeOrNull = (text: string | null): number | null => (text === null ? null : sizeBytes(text));
const numberOrNull = (text: string | null): number | null =>
  text !== null && /^\d+$/.test(text) ? Number(text) : null;
