/**
 * What a controller's record of a query says, as events: the same for both drivers, so that a live run, a
 * simulation and a replay cannot tell one thing in two ways.
 *
 * Made after the record has changed, at the moment that the driver gives.
 */
import type { AdmissionPath, EventOf } from "../events.ts";
import type { Instant, Millis } from "../units.ts";
import type { AdmissionQuery } from "./query.ts";
import type { QueueReason } from "./reasons.ts";

/** hot: bench/simulate. Time in the queue up to `at`, 0 for one that never queued. */
export const queueWait = (q: AdmissionQuery, at: Instant): Millis => (q.wasQueued ? at - q.queuedAt : 0) as Millis;

/** What the timeout message shows: the last real attempt's reason, or the initial one (T-7). */
export const timeoutReason = (q: AdmissionQuery): QueueReason => q.attemptReason ?? q.initialReason!;

export const queuedEvent = (q: AdmissionQuery, at: Instant): EventOf<"queued"> => ({
  kind: "queued",
  at,
  query: q.id,
  reason: q.initialReason!,
  timeout: q.timeout,
});

export const stillQueuedEvent = (q: AdmissionQuery, at: Instant): EventOf<"stillQueued"> => ({
  kind: "stillQueued",
  at,
  query: q.id,
  reason: q.latestReason!,
  attempts: q.failures,
});

export function admittedEvent(q: AdmissionQuery, path: AdmissionPath, at: Instant): EventOf<"admitted"> {
  const { perHost, onCoordinator, cluster, memLimit, coordinatorMemLimit } = q.memory!;
  const { group, hosts } = q.plan!.schedule;
  return {
    kind: "admitted",
    at,
    query: q.id,
    path,
    waited: queueWait(q, at),
    group,
    perHost,
    onCoordinator,
    cluster,
    memLimit,
    coordinatorMemLimit,
    hosts,
    stale: q.staleAge,
  };
}

export const rejectedEvent = (q: AdmissionQuery, fromQueue: boolean, at: Instant): EventOf<"rejected"> => ({
  kind: "rejected",
  at,
  query: q.id,
  reason: q.rejectReason!,
  waited: queueWait(q, at),
  fromQueue,
});

export const timedOutEvent = (q: AdmissionQuery, at: Instant): EventOf<"timedOut"> => ({
  kind: "timedOut",
  at,
  query: q.id,
  waited: queueWait(q, at),
  timeout: q.timeout,
  reason: timeoutReason(q),
  details: q.details,
});

export const cancelledEvent = (q: AdmissionQuery, wasQueued: boolean, at: Instant): EventOf<"cancelled"> => ({
  kind: "cancelled",
  at,
  query: q.id,
  waited: queueWait(q, at),
  wasQueued,
});
