/**
 * The text profile of one query, as Impala prints it (surfaces 3): what scripts that read profiles find.
 *
 * Keys, order and wording are the product's; what an emulator does not have (plan, scans, rows) is left out
 * rather than invented. Made from the query's story, so a live run, a simulation and a records file give the
 * same text.
 */
import { shapeUnder } from "../../config/request-shape.ts";
import type { QueryClass } from "../../config/scenario.ts";
import { queueReasonText, rejectionError, stalenessText, timeoutError } from "../../core/admission/reasons.ts";
import type { FragmentShape, RequestShape } from "../../core/admission/request.ts";
import type { BackendDescriptor } from "../../core/cluster/backend.ts";
import { slotsFor } from "../../core/cluster/schedule.ts";
import { prettyBytes, prettyMillis, prettyNanos } from "../../core/pretty.ts";
import type { QueryStory } from "../../insight/query-story.ts";

export interface ProfileContext {
  readonly queryClass: QueryClass | null;
  readonly backends: readonly BackendDescriptor[];
  /** Real moment that the run's time 0 is called, microseconds since 1970. */
  readonly epochMicros: number;
  readonly version: string;
}

/** Lines without line ends. */
export function profileText(story: QueryStory, context: ProfileContext): string[] {
  const id = story.submitted.query;
  return [
    `Query (id=${id}):`,
    "  Summary:",
    ...indented(4, infoLines(story, context)),
    ...timelineLines(story, context),
    ...(story.unresolved === null ? ["  ImpalaServer:", "     - NumRowsFetched: 0 (0)"] : []),
    ...executionProfile(story, context),
  ];
}

/** Only what concerns admission, and the timeline: what one looks for when a query had to wait. */
export const admissionProfile = (story: QueryStory, context: ProfileContext): string[] => [
  ...indented(4, [
    ...stateLines(story),
    ...estimateLines(context.queryClass),
    ...(story.unresolved === null ? admissionLines(story, context) : []),
  ]),
  ...timelineLines(story, context),
];

type Info = readonly [key: string, value: string];

const indented = (by: number, lines: readonly Info[]): string[] =>
  lines.map(([key, value]) => `${" ".repeat(by)}${key}: ${value}`);

// Summary

function infoLines(story: QueryStory, context: ProfileContext): Info[] {
  const { submitted } = story;
  const { queryClass } = context;
  const ended = endOf(story);
  const options = Object.entries(queryClass?.options ?? {}).map(([k, v]) => `${k}=${v}`);
  if (queryClass !== null && queryClass.requestedPool !== "" && queryClass.options.REQUEST_POOL === undefined)
    options.push(`REQUEST_POOL=${queryClass.requestedPool}`);
  return [
    ["Session ID", submitted.request],
    ["Session Type", "HIVESERVER2"],
    ["Start Time", timestamp(submitted.at, context.epochMicros)],
    ["End Time", ended === null ? "" : timestamp(ended, context.epochMicros)],
    ["Duration", duration((ended ?? submitted.at) - submitted.at)],
    ["Query Type", queryClass?.shape.stmtType ?? "QUERY"],
    ...stateLines(story),
    ["Impala Version", `impalad version ${context.version}-WATERHOLE RELEASE (emulated)`],
    ["User", submitted.user],
    ["Connected User", submitted.user],
    ["Delegated User", ""],
    ["Sql Statement", queryClass?.statement ?? ""],
    ["Coordinator", submitted.coordinator],
    ["Query Options (set by configuration)", options.join(",")],
    ...estimateLines(queryClass),
    ...(story.unresolved === null ? admissionLines(story, context) : []),
  ];
}

function stateLines(story: QueryStory): Info[] {
  const error = errorOf(story);
  if (error !== null) return states("EXCEPTION", "ERROR", error);
  if (story.released !== null) return states("FINISHED", "FINISHED", "OK");
  return story.decision?.kind === "admitted" ? states("RUNNING", "RUNNING", "OK") : states("COMPILED", "PENDING", "OK");
}

const states = (query: string, impala: string, status: string): Info[] => [
  ["Query State", query],
  ["Impala Query State", impala],
  ["Query Status", status],
];

function errorOf({ submitted, unresolved, decision, released }: QueryStory): string | null {
  if (unresolved !== null) return unresolved.error;
  switch (decision?.kind) {
    case "rejected":
      return rejectionError(submitted.pool, decision.reason);
    case "timedOut":
      return timeoutError(decision.timeout, submitted.pool, decision.reason, decision.details);
    case "cancelled":
      return "Cancelled";
    default:
      return released === null || released.state === "finished" ? null : (released.error ?? "Cancelled");
  }
}

function estimateLines(queryClass: QueryClass | null): Info[] {
  if (queryClass === null) return [];
  const { perHostMemEstimate, options } = queryClass.shape;
  const cap = options.maxMemEstimateForAdmission;
  return [["Estimated Per-Host Mem", String(cap > 0 ? Math.min(perHostMemEstimate, cap) : perHostMemEstimate)]];
}

/** In the order in which the product's profile shows them: `Latest` above the result, `Initial` below it. */
export function admissionLines(story: QueryStory, context: ProfileContext): Info[] {
  const { queued, attempts, decision } = story;
  const latest = attempts.at(-1);
  return [
    ["Request Pool", story.submitted.pool],
    ...scheduleLines(story, context),
    ...(latest === undefined ? [] : [["Latest admission queue reason", queueReasonText(latest.reason)] as const]),
    ...resultLine(story),
    ...(queued === null ? [] : [["Initial admission queue reason", initialReason(queued.reason, decision)] as const]),
    ...admittedLines(story),
  ];
}

function resultLine({ queued, decision }: QueryStory): Info[] {
  switch (decision?.kind) {
    case "admitted":
      return [["Admission result", ADMITTED[decision.path]]];
    case "rejected":
      return [["Admission result", "Rejected"]];
    case "timedOut":
      return [["Admission result", "Timed out (queued)"]];
    case "cancelled":
      return decision.wasQueued ? [["Admission result", "Cancelled (queued)"]] : [];
    case undefined:
      return queued === null ? [] : [["Admission result", "Queued"]];
  }
}

const ADMITTED = {
  immediately: "Admitted immediately",
  trivially: "Admitted as a trivial query",
  fromQueue: "Admitted (queued)",
} as const;

function initialReason(reason: Parameters<typeof queueReasonText>[0], decision: QueryStory["decision"]): string {
  const text = queueReasonText(reason);
  return decision === null ? text : `waited ${Math.trunc(decision.waited)} ms, reason: ${text}`;
}

function admittedLines({ decision, groupLoad }: QueryStory): Info[] {
  if (decision?.kind !== "admitted") return [];
  const stale = stalenessText(decision.stale);
  return [
    ["Cluster Memory Admitted", prettyBytes(decision.cluster)],
    ["Executor Group", decision.group],
    ["Number of running queries in designated executor group when admitted", String(groupLoad)],
    ...(stale === "" ? [] : [["Admission control state staleness", stale] as const]),
  ];
}

/** Trailing blanks as in the product. */
function scheduleLines(story: QueryStory, context: ProfileContext): Info[] {
  const planned = plannedHosts(story, context);
  if (planned.length === 0) return [];
  const perHost = (figure: (p: PlannedHost) => string): string =>
    planned.map((p) => `${p.host}(${figure(p)}) `).join("");
  return [
    ["Per Host Min Memory Reservation", perHost((p) => prettyBytes(reservation(p.fragments)))],
    ["Per Host Number of Fragment Instances", perHost((p) => String(p.instances))],
  ];
}

/** What the schedule has on one host; a run's events have one instance a host, which stands for all of them. */
interface PlannedHost {
  readonly host: string;
  readonly fragments: readonly FragmentShape[];
  readonly instances: number;
  readonly slots: number;
}

/** Empty where the schedule is not known: only admitted queries have one. */
function plannedHosts({ decision, submitted }: QueryStory, { queryClass, backends }: ProfileContext): PlannedHost[] {
  if (decision?.kind !== "admitted" || queryClass === null) return [];
  const shape = shapeUnder(queryClass, queryClass.shape, {
    options: queryClass.options,
    maxMtDop: -1,
    estimateFactor: 1,
  });
  return decision.hosts.map((host) => {
    const fragments = fragmentsOn(host, submitted.coordinator, shape, backends);
    const instances = fragments.reduce((n, f) => n + f.instancesPerHost, 0);
    return { host, fragments, instances, slots: slotsFor(fragments, shape.maxSlotsPerExecutor) };
  });
}

function fragmentsOn(
  host: string,
  coordinator: string,
  { fragments, coordinatorOnly }: RequestShape,
  backends: readonly BackendDescriptor[],
): readonly FragmentShape[] {
  const executes = !coordinatorOnly && backends.some((b) => b.address === host && b.isExecutor);
  return fragments.filter((f) => (f.runsOn === "coordinator" ? host === coordinator : executes));
}

const reservation = (fragments: readonly FragmentShape[]): number =>
  fragments.reduce((sum, f) => sum + f.instancesPerHost * f.minReservationPerInstance + f.minReservationPerBackend, 0);

// Timeline (surfaces 3.4)

export type TimelineEvent = readonly [label: string, atMs: number];

/** Labels with moments, in order (admission 10.3, surfaces 3.4). */
export function timelineOf(story: QueryStory, context: ProfileContext): TimelineEvent[] {
  const { submitted, queued, decision, hosts, released, unresolved } = story;
  const events: TimelineEvent[] = [["Query submitted", submitted.at]];
  if (unresolved !== null) return [...events, ["Unregister query", unresolved.at]];
  events.push(["Submit for admission", submitted.at]);
  if (queued !== null) events.push(["Queued", queued.at]);
  if (decision === null) return events;
  events.push(["Completed admission", decision.at]);
  if (decision.kind !== "admitted") return [...events, ["Unregister query", decision.at]];
  events.push([`Ready to start on ${decision.hosts.length} backends`, decision.at]);
  if (hosts.length > 0) {
    const planned = plannedHosts(story, context);
    const instances = (planned.length > 0 ? planned : hosts).reduce((n, h) => n + h.instances, 0);
    const started = Math.max(...hosts.map((h) => h.startedAt));
    events.push([`All ${hosts.length} execution backends (${instances} fragment instances) started`, started]);
  }
  if (released === null) return events;
  const done = doneAt(story);
  events.push([
    released.state === "finished"
      ? "Last row fetched"
      : released.state === "failed"
        ? "Execution error"
        : "Execution cancelled",
    done,
  ]);
  return [...events, ["Released admission control resources", released.at], ["Unregister query", released.at]];
}

/** When the last instance ended, or when everything was given back. */
function doneAt({ hosts, released }: QueryStory): number {
  const ends = hosts.map((h) => h.finishedAt).filter((at) => at !== null);
  return ends.length > 0 ? Math.max(...ends) : (released?.at ?? 0);
}

function timelineLines(story: QueryStory, context: ProfileContext): string[] {
  const events = timelineOf(story, context);
  const start = story.submitted.at;
  const nanos = (ms: number): number => Math.round(ms * 1000) * 1000;
  const lines = events.map(([label, at], i) => {
    const before = events[i - 1]?.[1] ?? start;
    return `       - ${label}: ${prettyNanos(nanos(at - start))} (${prettyNanos(nanos(at - before))})`;
  });
  const last = events.at(-1)?.[1] ?? start;
  return [`    Query Timeline: ${prettyNanos(nanos(last - start))}`, ...lines];
}

// Execution profile

/** Only for queries that were admitted. */
function executionProfile(story: QueryStory, context: ProfileContext): string[] {
  const { decision, hosts, submitted } = story;
  if (decision?.kind !== "admitted") return [];
  const slots = new Map(plannedHosts(story, context).map((p) => [p.host, p.slots]));
  const peaks = hosts.map((h) => (h.peak === null ? "" : `${h.host}(${prettyBytes(h.peak)}) `)).join("");
  return [
    `  Execution Profile ${submitted.query}:`,
    ...(peaks === "" ? [] : [`    Per Node Peak Memory Usage: ${peaks}`]),
    `     - NumBackends: ${decision.hosts.length} (${decision.hosts.length})`,
    ...(hosts.length === 0
      ? []
      : ["    Per Node Profiles:", ...hosts.flatMap((h) => nodeLines(h, slots.get(h.host) ?? h.instances, story))]),
  ];
}

function nodeLines(part: QueryStory["hosts"][number], slots: number, story: QueryStory): string[] {
  const { decision } = story;
  const limit =
    decision?.kind !== "admitted"
      ? -1
      : part.host === story.submitted.coordinator
        ? decision.coordinatorMemLimit
        : decision.memLimit;
  return [
    `      ${part.host}:`,
    `         - AdmissionSlots: ${slots} (${slots})`,
    ...(limit > 0 ? [`         - MemoryLimit: ${counted(limit)}`] : []),
    ...(part.peak === null ? [] : [`         - PeakMemoryUsage: ${counted(part.peak)}`]),
    ...(part.spilled === null ? [] : [`         - ScratchBytesWritten: ${counted(part.spilled)}`]),
  ];
}

const counted = (bytes: number): string => (bytes === 0 ? "0" : `${prettyBytes(bytes)} (${bytes})`);

// Times

const endOf = ({ released, decision, unresolved }: QueryStory): number | null =>
  unresolved?.at ?? (decision?.kind === "admitted" ? (released?.at ?? null) : (decision?.at ?? null));

function timestamp(atMs: number, epochMicros: number): string {
  const micros = epochMicros + Math.round(atMs * 1000);
  const date = new Date(Math.floor(micros / 1000));
  const nanos = (micros % 1_000_000) * 1000;
  return `${date.toISOString().slice(0, 19).replace("T", " ")}.${String(nanos).padStart(9, "0")}`;
}

const duration = (ms: number): string => `${prettyMillis(ms)} (${Math.round(ms * 1000)} us)`;
