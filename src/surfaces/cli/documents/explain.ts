/**
 * What `explain --json` prints: the life of a query with every figure's unit in its key. The records file keeps its
 * own shorter form.
 */
import type { MemoryToAdmit } from "../../../core/admission/memory-to-admit.ts";
import { unreachable } from "../../../core/assert.ts";
import type { HostPart, QueryStory, Surroundings } from "../../../insight/query-story.ts";
import { queueReasonDocument, rejectReasonDocument, viewAgeMs } from "./reason.ts";

export function explainDocument(story: QueryStory, charge: MemoryToAdmit | null, profile: string): object {
  const { submitted: s, unresolved, queued, decision, released } = story;
  return {
    query: s.query,
    queryClass: s.queryClass,
    pool: s.pool,
    user: s.user,
    coordinator: s.coordinator,
    request: s.request,
    attempt: s.attempt,
    firstIntendedAtMs: s.firstIntended,
    intendedAtMs: s.intended,
    submittedAtMs: s.at,
    unresolved: unresolved === null ? null : { atMs: unresolved.at, error: unresolved.error },
    queued:
      queued === null
        ? null
        : { atMs: queued.at, timeoutMs: queued.timeout, reason: queueReasonDocument(queued.reason) },
    attempts: story.attempts.map((a) => ({ atMs: a.at, times: a.times, reason: queueReasonDocument(a.reason) })),
    decision: decision === null ? null : decisionDocument(decision),
    hosts: story.hosts.map(hostDocument),
    backendsReleased: story.backendsReleased.map((b) => ({ atMs: b.at, hosts: b.hosts })),
    released:
      released === null
        ? null
        : { atMs: released.at, state: released.state, peakBytes: known(released.peak), error: released.error },
    atSubmission: around(story.atSubmission),
    atLastFailure: story.atLastFailure === null ? null : around(story.atLastFailure),
    atDecision: story.atDecision === null ? null : around(story.atDecision),
    groupLoad: story.groupLoad,
    ahead: story.ahead.map(({ query, queryClass, waitedFor }) => ({
      query,
      queryClass,
      waitedFor: queueReasonDocument(waitedFor),
    })),
    siblings: story.siblings.map((o) => ({ query: o.query, attempt: o.attempt, atMs: o.at })),
    charge: charge === null ? null : chargeDocument(charge),
    profile,
  };
}

function decisionDocument(d: NonNullable<QueryStory["decision"]>): object {
  const head = { kind: d.kind, atMs: d.at, waitedMs: d.waited };
  switch (d.kind) {
    case "admitted":
      return {
        ...head,
        path: d.path,
        group: d.group,
        perHostBytes: d.perHost,
        onCoordinatorBytes: d.onCoordinator,
        clusterBytes: d.cluster,
        memLimitBytes: known(d.memLimit),
        coordinatorMemLimitBytes: known(d.coordinatorMemLimit),
        hosts: d.hosts,
        viewAgeMs: viewAgeMs(d.stale),
      };
    case "rejected":
      return { ...head, reason: rejectReasonDocument(d.reason), wasQueued: d.fromQueue };
    case "timedOut":
      return { ...head, reason: queueReasonDocument(d.reason), timeoutMs: d.timeout, details: d.details };
    case "cancelled":
      return { ...head, wasQueued: d.wasQueued };
    default:
      return unreachable(d);
  }
}

const hostDocument = (h: HostPart): object => ({
  host: h.host,
  instances: h.instances,
  startedAtMs: h.startedAt,
  finishedAtMs: h.finishedAt,
  peakBytes: h.peak,
  spilledBytes: h.spilled,
  error: h.error,
});

const around = (s: Surroundings): object => ({
  atMs: s.at,
  running: s.running,
  queued: s.queued,
  memoryBytes: s.memory,
  admittedOnHostBytes: Object.fromEntries(s.admittedOn),
});

const chargeDocument = (c: MemoryToAdmit): object => ({
  perHostBytes: c.perHost,
  perHostSource: c.perHostSource,
  onCoordinatorBytes: c.onCoordinator,
  onCoordinatorSource: c.onCoordinatorSource,
  clusterBytes: c.cluster,
  memLimitBytes: known(c.memLimit),
  coordinatorMemLimitBytes: known(c.coordinatorMemLimit),
});

/** -1 in the core: no limit is enforced, a peak is not known. */
const known = (bytes: number): number | null => (bytes < 0 ? null : bytes);
