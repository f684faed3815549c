/**
 * What happened, told by calls with plain numbers instead of event objects.
 *
 * A second form of the stream in events.ts, for the driver in virtual time: a simulated week is six million
 * queries, and making ten records for each costs more than deciding them. A fold that wants to keep up with
 * that implements this interface (the same accumulators can be fed from RunEvents by a few lines). Nobody is
 * told twice: a driver calls either an observer or a bus for one fold, and both tell the same story in the
 * same order.
 *
 * Pools, classes, users and coordinators are small numbers, counted from 0 in each kind; `named` is called
 * once for each before it is first used. Times are emulated milliseconds, whole microseconds in them; memory
 * is bytes. An instant's calls come one after the other: a peak is taken when `at` moves on (DESIGN 3).
 */
import type { QueueReason, RejectReason } from "./admission/reasons.ts";
import type { AdmissionPath, FinishState } from "./events.ts";

export type NameKind = "pool" | "class" | "user" | "coordinator";

/** Whose query it is; the same object is handed over again and again, so copy what is to be kept. */
export interface QueryFacts {
  readonly pool: number;
  readonly queryClass: number;
  readonly user: number;
  readonly coordinator: number;
  /** When the client wanted it to be submitted, and when its first attempt was wanted (insight 2.1). */
  readonly intended: number;
  readonly firstIntended: number;
  /** 1 for the first try of an intention. */
  readonly attempt: number;
  /** Formatted when read. */
  readonly queryId: string;
}

export interface RunObserver {
  named(kind: NameKind, index: number, name: string): void;
  submitted(at: number, q: QueryFacts): void;
  /** `error`: what the client reads. */
  unresolved(at: number, q: QueryFacts, error: string): void;
  queued(at: number, q: QueryFacts, reason: QueueReason): void;
  /** The head of (coordinator, pool) was tried again and waits for this reason; called when it differs from the last. */
  headWaits(at: number, q: QueryFacts, reason: QueueReason): void;
  /** `waited`: time in the queue, 0 unless the path is `fromQueue`. `cluster`: what the pool is charged (MEM-10). */
  admitted(at: number, q: QueryFacts, path: AdmissionPath, waited: number, cluster: number): void;
  /**
   * Whether slots or host memory stop this waiting query and all of its class in its queue, in the exact state
   * (insight 2.3); told when it differs from the last time, and not at all by a driver that doesn't look.
   */
  hostsChecked(at: number, q: QueryFacts, slots: boolean, hostMemory: boolean): void;
  /**
   * After `admitted`, where several controllers decide: how old the oldest was that its controller knew of another,
   * -1 nothing, and whether some host now has more than it can give (insight 2.4), null unknown.
   */
  viewUsed(at: number, q: QueryFacts, ageMs: number, isOverOnAHost: boolean | null): void;
  rejected(at: number, q: QueryFacts, reason: RejectReason, waited: number, fromQueue: boolean): void;
  /** `reason`: the last one of a real attempt, or the initial one (T-7). */
  timedOut(at: number, q: QueryFacts, waited: number, reason: QueueReason): void;
  cancelled(at: number, q: QueryFacts, waited: number, wasQueued: boolean): void;
  /** Written to scratch on all hosts together. */
  spilled(at: number, q: QueryFacts, bytes: number): void;
  /** This much of the pool's admitted memory is free again (admission 9.2). */
  memoryReleased(at: number, q: QueryFacts, bytes: number): void;
  /**
   * The place is free again. `hold`: since the admission; `peak`: largest over its hosts, -1 unknown; `error`: why
   * it failed, null unless it did.
   */
  released(at: number, q: QueryFacts, state: FinishState, hold: number, peak: number, error: string | null): void;
  /** The run is over: close what is open. */
  ended(at: number): void;
}

const nothing = (): void => undefined;

/** Hears everything and does nothing; for observers that care about a few calls. */
export const IDLE_OBSERVER: RunObserver = {
  named: nothing,
  submitted: nothing,
  unresolved: nothing,
  queued: nothing,
  headWaits: nothing,
  admitted: nothing,
  hostsChecked: nothing,
  viewUsed: nothing,
  rejected: nothing,
  timedOut: nothing,
  cancelled: nothing,
  spilled: nothing,
  memoryReleased: nothing,
  released: nothing,
  ended: nothing,
};
