/**
 * One attempt in flight, as the simulator knows it: what the controller's handle, the client and the
 * executors have to do with each other.
 *
 * Held in numbered slots and used again when the attempt is over, so that a long run needs as much memory as
 * its busiest moment. Whoever keeps facts of a query copies them.
 */
import type { BackendRelease } from "../core/admission/backend-release.ts";
import type { AdmissionQuery } from "../core/admission/query.ts";
import type { FinishState } from "../core/events.ts";
import type { QueryFacts } from "../core/run-observer.ts";
import type { Submission } from "../workload/workload.ts";
import { type EventHandle, type Micros, NO_EVENT } from "./event-queue.ts";
import type { WorkPoint } from "./executors.ts";
import type { Placement } from "./placement.ts";

/**
 *     free --> waiting --> running --> free
 *                 '-----> (told) ----> free      rejected, timed out, cancelled, or never queued
 */
export type SimQueryState = "free" | "waiting" | "running";

export class SimQuery implements QueryFacts {
  readonly slot: number;
  state: SimQueryState = "free";

  pool = 0;
  user = 0;
  coordinator = 0;

  #submission: Submission | null = null;
  #admission: AdmissionQuery | null = null;
  #placement: Placement | null = null;

  /** Controller that decides about it. */
  seat = 0;
  submittedAt: Micros = 0;
  decidedAt: Micros = 0;
  /** Pending events of this query. */
  timeout: EventHandle = NO_EVENT;
  finish: EventHandle = NO_EVENT;
  cancel: EventHandle = NO_EVENT;
  /** With `admissiond`: the coordinator hears the outcome, or its heartbeat makes up for a lost release. */
  hears: EventHandle = NO_EVENT;

  // The next ones are the executors' (see `Executors`)

  /** Largest peak of memory over its hosts, in bytes, and what it writes to scratch by schedule position. */
  peak = 0;
  spills: Float64Array | null = null;
  /** Reserved for its footprint by schedule position; null: its peak on each. */
  grants: Float64Array | null = null;
  /** Positions whose release got lost: what the controller still holds of them comes back with the query. */
  lost: number[] | null = null;
  /** Positions that still hold memory; null: all with work, or none, as `isHoldingAll` says. */
  holding: Uint8Array | null = null;
  isHoldingAll = false;
  /** Published as reserved for it by an executor and by its coordinator while fragments run. */
  reservedOnExecutor = 0;
  reservedOnCoordinator = 0;
  /** The same by schedule position, where executors differ; null: they don't. */
  reservations: Float64Array | null = null;
  /** Work of the slowest host; moments at which some hosts are done, null: all at once. */
  work: Micros = 0;
  points: readonly WorkPoint[] | null = null;
  nextPoint = 0;
  /** Work done until `progressAt`, and per microsecond since. */
  progress: Micros = 0;
  progressAt: Micros = 0;
  rate = 1;

  // The driver's again

  /** Which backends are given back when (admission 9.1), null: all are done in one instant. */
  releasing: BackendRelease | null = null;
  /** The client has its answer, or lost its connection, while admission still holds the query. */
  isClientGone = false;
  /** A host died with work of it, -1: none; it hangs until its coordinator hears. */
  lostHost = -1;
  /** Its coordinator died: nobody polls, nobody releases. */
  isOrphan = false;
  /** And nothing of it runs: nobody waits for it. */
  isAbandoned = false;
  /** How it will have ended, and why if it failed. */
  outcome: FinishState = "finished";
  error: string | null = null;

  constructor(slot: number) {
    this.slot = slot;
  }

  begin(submission: Submission): void {
    this.#submission = submission;
    this.state = "waiting";
    this.peak = 0;
    this.isClientGone = false;
    this.isOrphan = false;
    this.isAbandoned = false;
    this.lostHost = -1;
    this.outcome = "finished";
    this.error = null;
  }

  /** Lets go of everything, so that nothing of a finished query is kept. */
  free(): void {
    this.state = "free";
    this.#submission = null;
    this.#admission = null;
    this.#placement = null;
    this.spills = null;
    this.grants = null;
    this.reservations = null;
    this.lost = null;
    this.holding = null;
    this.isHoldingAll = false;
    this.points = null;
    this.releasing = null;
    this.timeout = NO_EVENT;
    this.finish = NO_EVENT;
    this.cancel = NO_EVENT;
    this.hears = NO_EVENT;
  }

  get queryId(): string {
    return this.submission.queryId;
  }

  get queryClass(): number {
    return this.submission.queryClass;
  }

  get intended(): number {
    return this.submission.intended;
  }

  get firstIntended(): number {
    return this.submission.firstIntended;
  }

  get attempt(): number {
    return this.submission.attempt;
  }

  get submission(): Submission {
    return this.#submission!;
  }

  get admission(): AdmissionQuery {
    return this.#admission!;
  }

  set admission(q: AdmissionQuery) {
    this.#admission = q;
  }

  get placement(): Placement {
    return this.#placement!;
  }

  set placement(p: Placement) {
    this.#placement = p;
  }
}

/** A limit is published as it is, and of a query without one what it holds. */
export function isLimited(q: SimQuery, position: number): boolean {
  const { memLimit, coordinatorMemLimit } = q.admission.memory!;
  return (position === q.placement.coordinatorAt ? coordinatorMemLimit : memLimit) > 0;
}

export function reservedAt(q: SimQuery, position: number): number {
  if (q.reservations !== null) return q.reservations[position]!;
  return position === q.placement.coordinatorAt ? q.reservedOnCoordinator : q.reservedOnExecutor;
}
