/**
 * One query as its controller knows it: the handle that a driver gets from `submit` and gives back for
 * everything that follows (STYLE 8: one factory, all fields, one shape).
 *
 *     deciding --> running ----------------------> released
 *        |            ^
 *        |--> queued -+--> rejected | timedOut | cancelled
 *        '--> rejected | cancelled
 *
 * Only the controller writes to it, with one exception: `owner` is the driver's. Reasons are data; texts are
 * made by whoever reads them.
 */
import type { AdmissionPath } from "../events.ts";
import type { PoolConfig } from "../pool-config.ts";
import type { Bytes, Instant, Millis } from "../units.ts";
import type { MemoryToAdmit } from "./memory-to-admit.ts";
import type { Plan } from "./plan.ts";
import type { Pool } from "./pool.ts";
import type { QueueReason, RejectReason, StaleAge } from "./reasons.ts";
import type { AdmissionRequest } from "./request.ts";

export type QueryState = "deciding" | "queued" | "running" | "rejected" | "timedOut" | "cancelled" | "released";

/** `not_admitted_details` before any memory failure (admission 4). */
export const NO_DETAILS = "Not Applicable";

const NO_TIME = -1 as Instant;
const NOBODY: readonly string[] = [];

export class AdmissionQuery {
  request: AdmissionRequest;
  pool: Pool;
  /** As they were on submission: timeout, user tracking and `onlyCoordinators` come from here (5.7). */
  config: PoolConfig;
  rootConfig: PoolConfig;
  /** The pool or `root` had a quota on submission (8.3). */
  tracksUser: boolean;

  state: QueryState = "deciding";
  path: AdmissionPath | null = null;
  /** Let in by the trivial rule, at once or from the queue; counts against its limit (admission 5.3). */
  isTrivial = false;
  submittedAt: Instant;
  /** Start of the wait, -1: never queued. */
  queuedAt: Instant = NO_TIME;
  /** In force for this query whatever the configuration becomes (T-6). */
  timeout: Millis = 0 as Millis;
  decidedAt: Instant = NO_TIME;
  /** Time in the queue as the product counts it: up to when the waiter noticed. */
  waited: Millis = 0 as Millis;

  rejectReason: RejectReason | null = null;
  initialReason: QueueReason | null = null;
  /** Of the last real attempt; the timeout message shows it (T-7). */
  attemptReason: QueueReason | null = null;
  /** What the profile shows: also the text that a pass over a full pool writes. */
  latestReason: QueueReason | null = null;
  /** Left over from an earlier memory failure, never reset (T-7). */
  details: string = NO_DETAILS;
  /** Failed head attempts since the last time the reason was told, this one included. */
  failures = 0;

  /** Candidate plans in the order in which they are tried, as of `plansVersion`. */
  plans: readonly Plan[] | null = null;
  plansVersion = 0;
  /** Where it runs, and with what. */
  plan: Plan | null = null;
  memory: MemoryToAdmit | null = null;
  groupLoad = 0;
  staleAge: StaleAge = null;
  /** The coordinator's own blacklist on submission (profile key `Blacklisted Executors`). */
  localBlacklist: readonly string[] = NOBODY;
  timeSinceUpdate = 0;

  /** Schedule positions already released, null while none is; and how many are still held. */
  releasedBackends: Uint8Array | null = null;
  heldBackends = 0;
  peak = -1;

  /** The cell says CANCELLED, but neither waiter nor pass has cleaned up yet (admission 9.4). */
  isCancelMarked = false;
  /** The waiter has seen the outcome: wait counted, pool marked (admission 5.6). */
  isSettled = false;
  /** The controller's change count when it last failed at the head, and whether a coordinator's host was short. */
  failedAtChange = -1;
  failedForCoordinator = false;
  /** A compressed request that can't be read any more: refused when it is next tried (REJ-C1, REJ-C5). */
  spoilt: RejectReason | null = null;

  /** Links of the pool's FIFO and of the coordinator's list of running queries. */
  next: AdmissionQuery | null = null;
  previous: AdmissionQuery | null = null;

  /** The driver's own. */
  owner: unknown = null;

  constructor(request: AdmissionRequest, pool: Pool, config: PoolConfig, rootConfig: PoolConfig, now: Instant) {
    this.request = request;
    this.pool = pool;
    this.config = config;
    this.rootConfig = rootConfig;
    this.tracksUser = false;
    this.submittedAt = now;
  }

  get id(): string {
    return this.request.queryId;
  }

  /** When a waiting query times out; only for queued ones. */
  get deadline(): Instant {
    return (this.queuedAt + this.timeout) as Instant;
  }

  get isInQueue(): boolean {
    return this.state === "queued";
  }

  get wasQueued(): boolean {
    return this.queuedAt >= 0;
  }

  /** MEM-11 of the i-th backend of the schedule. */
  memOn(i: number): Bytes {
    const { plan, memory } = this;
    return plan!.schedule.backends[i]!.isCoordBackend ? memory!.onCoordinator : memory!.perHost;
  }
}
