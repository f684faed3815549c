/**
 * The admission lines of a query's profile, with the product's keys and texts (admission 10.1, 10.2).
 *
 * Made from the query's record when somebody reads it. Order is the one in which the product writes them.
 */
import type { ScheduledBackend } from "../cluster/schedule.ts";
import { prettyBytes } from "../pretty.ts";
import { cappedEstimate } from "./memory-to-admit.ts";
import type { AdmissionQuery } from "./query.ts";
import { queueReasonText, stalenessText } from "./reasons.ts";

export type ProfileLine = readonly [key: string, text: string];

/** `Admission result`, null where none is written (admission 10.1). */
export function admissionResult(q: AdmissionQuery): string | null {
  switch (q.state) {
    case "queued":
      return "Queued";
    case "running":
    case "released":
      return q.path === "immediately"
        ? "Admitted immediately"
        : q.path === "trivially"
          ? "Admitted as a trivial query"
          : "Admitted (queued)";
    case "rejected":
      return "Rejected";
    case "timedOut":
      return "Timed out (queued)";
    case "cancelled":
      return q.wasQueued ? "Cancelled (queued)" : null;
    case "deciding":
      return null;
  }
}

export function profileLines(q: AdmissionQuery): ProfileLine[] {
  const { shape, pool } = q.request;
  const lines: ProfileLine[] = [
    ["Estimated Per-Host Mem", String(cappedEstimate(shape.perHostMemEstimate, shape.options))],
    ["Request Pool", pool],
  ];
  if (q.localBlacklist.length > 0) lines.push(["Blacklisted Executors", q.localBlacklist.map((a) => `${a} `).join("")]);
  lines.push(...scheduleLines(q));
  const result = admissionResult(q);
  if (result !== null) lines.push(["Admission result", result]);
  lines.push(...queueLines(q));
  lines.push(...admittedLines(q));
  return lines;
}

/** As of the last plan that was looked at, trailing blanks as in the product. */
function scheduleLines(q: AdmissionQuery): ProfileLine[] {
  const schedule = (q.plan ?? q.plans?.at(-1))?.schedule;
  if (schedule === undefined) return [];
  const perHost = (figure: (b: ScheduledBackend) => string) =>
    schedule.backends.map((b) => `${b.desc.address}(${figure(b)}) `).join("");
  return [
    ["Per Host Min Memory Reservation", perHost((b) => prettyBytes(b.minReservation))],
    ["Per Host Number of Fragment Instances", perHost((b) => String(b.numInstances))],
  ];
}

function queueLines(q: AdmissionQuery): ProfileLine[] {
  if (q.initialReason === null || q.latestReason === null) return [];
  const initial = queueReasonText(q.initialReason);
  return [
    ["Initial admission queue reason", q.isSettled ? `waited ${Math.trunc(q.waited)} ms, reason: ${initial}` : initial],
    ["Latest admission queue reason", queueReasonText(q.latestReason)],
  ];
}

function admittedLines(q: AdmissionQuery): ProfileLine[] {
  if (q.plan === null || q.memory === null) return [];
  const lines: ProfileLine[] = [
    ["Cluster Memory Admitted", prettyBytes(q.memory.cluster)],
    ["Executor Group", q.plan.schedule.group],
    ["Number of running queries in designated executor group when admitted", String(q.groupLoad)],
  ];
  const stale = stalenessText(q.staleAge);
  if (stale !== "") lines.push(["Admission control state staleness", stale]);
  return lines;
}

/** The counter `AdmissionControlTimeSinceLastUpdate`, in nanoseconds; null: not admitted. */
export const timeSinceUpdateNanos = (q: AdmissionQuery): number | null =>
  q.memory === null ? null : Math.trunc(q.timeSinceUpdate) * 1_000_000;
