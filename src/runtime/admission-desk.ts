/**
 * What a coordinator asks of its admission control, and what it is told: the line along which a coordinator is cut
 * when it has a thread of its own, or when `admissiond` decides.
 *
 * A desk is one process's admission control, from its start to its death: the controller, its queue with its
 * deadlines, its dequeue passes, its end of the exchanges with the statestore. `LocalDesk` has it on the thread that
 * asks; `ThreadDesk` is the line to one on another thread; with `admissiond` it is only the coordinator's end of the
 * line. Questions are answered in the order in which they were asked, at once or later; and a pass or a deadline
 * answers without having been asked.
 */
import type { ControllerCall } from "../core/admission/controller-call.ts";
import type { BackendUsage } from "../core/admission/pool-stats.ts";
import type { AdmissionQuery } from "../core/admission/query.ts";
import { admittedEvent } from "../core/admission/query-events.ts";
import type { AdmissionRequest } from "../core/admission/request.ts";
import { fail } from "../core/assert.ts";
import type { Membership } from "../core/cluster/membership.ts";
import type { Schedule, ScheduledBackend } from "../core/cluster/schedule.ts";
import type { EventOf } from "../core/events.ts";
import type { PoolConfig } from "../core/pool-config.ts";
import type { TopicEntry, TopicUpdate } from "../core/statestore/topic.ts";
import type { Bytes, Instant, MaxBytes } from "../core/units.ts";

export interface AdmissionDesk {
  setMembership(membership: Membership): void;
  submit(request: AdmissionRequest, config: PoolConfig, rootConfig: PoolConfig): void;
  /** The client gives up; changes nothing for a query that isn't waiting (any more). */
  cancel(query: string): void;
  /** Positions in the schedule. False: the message is lost. */
  releaseBackends(query: string, positions: readonly number[]): boolean;
  /** The rest of its positions, then its place in the pool. False: it is still held, and `released` will be told. */
  release(query: string, rest: readonly number[], peak: number): boolean;
  /** One exchange with the statestore; what goes out is told. */
  exchange(usages: readonly PoolUsage[], update: TopicUpdate): void;
  /** What was asked is still held when the process is gone, and told about. */
  readonly outlivesProcess: boolean;
  /** The process dies: nothing is done any more, and only a desk that outlives it tells anything. */
  close(): void;
}

/** What the coordinator's own host says about one pool (admission 7.2). */
export interface PoolUsage {
  readonly pool: string;
  readonly usage: BackendUsage;
}

/** What a coordinator is told. */
export type Told =
  | Answer
  /** `admissiond` has decided about one that waited; its coordinator acts only when it hears. */
  | { readonly kind: "decided"; readonly decision: Decision }
  | { readonly kind: "heard"; readonly decision: Decision; readonly at: Instant }
  /** `admissiond` holds nothing of it any more, without having been told to. */
  | { readonly kind: "released"; readonly query: string };

/** What a pass makes of a query that it takes from the queue. */
export type Decision = Admission | EventOf<"rejected" | "cancelled">;

/** Of a controller. Plain data: it may come from another thread. */
export type Answer =
  | EventOf<"queued" | "stillQueued" | "rejected" | "timedOut" | "cancelled">
  | Admission
  /** What goes into the records: every call of the controller, in its own order. */
  | { readonly kind: "called"; readonly call: ControllerCall; readonly now: Instant | null }
  | { readonly kind: "exchanged"; readonly entries: readonly TopicEntry[] };

/** The query may run: where, and held to what. */
export interface Admission {
  readonly kind: "admission";
  readonly event: EventOf<"admitted">;
  readonly backends: readonly Place[];
}

/** A query's part on one host of its schedule, in schedule order. */
export interface Place {
  readonly host: string;
  readonly isCoordBackend: boolean;
  readonly instances: number;
  /** One at least: the root fragment beside others on a host only collects rows, and counts as part of the first. */
  readonly workingInstances: number;
  readonly admitMemLimit: Bytes;
  readonly minReservation: Bytes;
  /** MEM-9 for this host; -1: none. */
  readonly memLimit: MaxBytes;
  /** The root fragment on a coordinator: what the query uses is in the others. */
  readonly collectsOnly: boolean;
}

export function admissionOf(q: AdmissionQuery, at: Instant): Admission {
  const { schedule } = q.plan ?? fail("an admitted query has a plan");
  const memory = q.memory ?? fail("an admitted query has its memory");
  const event = admittedEvent(q, q.path ?? fail("an admitted query has a path"), at);
  const backends = schedule.backends.map((b) => ({
    host: b.desc.address,
    isCoordBackend: b.isCoordBackend,
    instances: b.numInstances,
    workingInstances: workingInstances(b, schedule),
    admitMemLimit: b.desc.admitMemLimit,
    minReservation: b.minReservation,
    memLimit: (b.isCoordBackend ? memory.coordinatorMemLimit : memory.memLimit) as MaxBytes,
    collectsOnly: collectsOnly(b, schedule),
  }));
  return { kind: "admission", event, backends };
}

function workingInstances(b: ScheduledBackend, schedule: Schedule): number {
  const beside = b.isCoordBackend && schedule.backends.length > 1 ? rootInstances(schedule) : 0;
  return Math.max(1, b.numInstances - beside);
}

const collectsOnly = (b: ScheduledBackend, schedule: Schedule): boolean =>
  b.isCoordBackend && schedule.backends.length > 1 && b.numInstances <= rootInstances(schedule);

const rootInstances = ({ shape }: Schedule): number =>
  shape.fragments.reduce((n, f) => n + (f.runsOn === "coordinator" ? f.instancesPerHost : 0), 0);
