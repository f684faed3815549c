/**
 * One host's ledger as one thread uses it: steps of core/memory, each under the host's lock.
 *
 * No I/O, no await, no message inside a section. A section that throws has met a bug: its half-done step is rolled
 * back before the lock opens, so that the other threads' numbers stay right while the run stops.
 */

import { givePages } from "../core/memory/arena-pages.ts";
import {
  at,
  F_CHILDREN,
  F_KIND,
  F_MEM_OTHER,
  F_OWNER,
  F_PAGE_COUNT,
  F_SCRATCH,
  F_USED,
  get,
  HOST_EPOCH,
  KIND_CLIENT,
  KIND_FREE,
  KIND_QUERY,
  type LedgerView,
  noRefusal,
  PAGE_FRESH,
  PAGES_AT,
  POOL_COUNT,
  POOLS_AT,
  TRACKER_FRESH,
  viewLedger,
} from "../core/memory/ledger-layout.ts";
import { release } from "../core/memory/mem-trackers.ts";
import { releaseTo } from "../core/memory/reservation-trackers.ts";
import { closeTracker, giveBackScratch } from "../core/memory/tracker-records.ts";
import { rollBack } from "../core/memory/undo-log.ts";
import { breakLock, LOOKS, type LockAtomics, releaseLock, takeLock, takeLockAsync, tryTakeLock } from "./host-lock.ts";

export class HostLedger {
  readonly view: LedgerView;
  readonly #id: number;
  readonly #atomics: LockAtomics;
  readonly #looks: number;

  /** `looks`: how often a waiter looks at the lock before it sleeps. */
  constructor(view: LedgerView, id: number, atomics: LockAtomics = Atomics, looks: number = LOOKS) {
    this.view = view;
    this.#id = id;
    this.#atomics = atomics;
    this.#looks = looks;
  }

  /** One step under the lock; the thread waits for it. Not for the main thread. hot: bench/ledger */
  run<A extends readonly unknown[], R>(step: (v: LedgerView, ...args: A) => R, ...args: A): R {
    takeLock(this.view.i32, this.#id, this.#atomics, this.#looks);
    return this.#inside(step, args);
  }

  /** The main thread's: the step happens now if nobody is inside, else as soon as the lock is ours. */
  async runSoon<A extends readonly unknown[], R>(step: (v: LedgerView, ...args: A) => R, ...args: A): Promise<R> {
    await takeLockAsync(this.view.i32, this.#id);
    return this.#inside(step, args);
  }

  /** The step's result, or null when somebody is inside just now. */
  tryRun<A extends readonly unknown[], R>(step: (v: LedgerView, ...args: A) => R, ...args: A): R | null {
    if (!tryTakeLock(this.view.i32, this.#id, this.#atomics)) return null;
    return this.#inside(step, args);
  }

  /** A copy taken under the lock, for checks and pages. */
  snapshot(): Promise<LedgerView> {
    return this.runSoon(copyOf);
  }

  /** Even: the host is up; odd: it is lost. */
  get epoch(): number {
    return Atomics.load(this.view.i32, HOST_EPOCH);
  }

  /** The host is lost, or joins again. Only main calls this. */
  nextEpoch(): void {
    Atomics.add(this.view.i32, HOST_EPOCH, 1);
  }

  /**
   * The supervisor's, after thread `dead` has ended: opens its lock if it died inside and takes back the step that it
   * had half done. True when there was one.
   */
  breakLockOf(dead: number): boolean {
    if (!breakLock(this.view.i32, dead, this.#id, this.#atomics)) return false;
    const unfinished = rollBack(this.view);
    releaseLock(this.view.i32, this.#id, this.#atomics);
    return unfinished;
  }

  #inside<A extends readonly unknown[], R>(step: (v: LedgerView, ...args: A) => R, args: A): R {
    let result: R;
    try {
      result = step(this.view, ...args);
    } catch (bug) {
      rollBack(this.view);
      releaseLock(this.view.i32, this.#id, this.#atomics);
      throw bug;
    }
    releaseLock(this.view.i32, this.#id, this.#atomics);
    return result;
  }
}

export const openHostLedger = (buffer: SharedArrayBuffer, id: number): HostLedger =>
  new HostLedger(viewLedger(buffer), id);

/**
 * Gives back all that a dead thread held here: pages, used bytes, scratch, reservations, records, from the leaves up,
 * as many as can be closed. A query that living instances share stays until the last of them has ended (M3).
 */
export function giveBackOf(v: LedgerView, dead: number): number {
  let given = 0;
  for (let again = true; again; ) {
    again = false;
    for (let t = v.f64[TRACKER_FRESH]! - 1; t > 0; t--) {
      if (get(v, t, F_KIND) === KIND_FREE || get(v, t, F_OWNER) !== dead || get(v, t, F_CHILDREN) > 0) continue;
      closeWithAll(v, t);
      given++;
      again = true;
    }
  }
  return given;
}

/** Releases whatever the record still holds itself, then closes it. Scratch files are the caller's. */
export function closeWithAll(v: LedgerView, t: number): void {
  const kind = get(v, t, F_KIND);
  if (kind === KIND_CLIENT) givePages(v, t, get(v, t, F_PAGE_COUNT));
  if (kind === KIND_QUERY && get(v, t, F_SCRATCH) > 0) giveBackScratch(v, t);
  if (get(v, t, F_USED) > 0) releaseTo(v, t, get(v, t, F_USED));
  if (get(v, t, F_MEM_OTHER) > 0) release(v, t, get(v, t, F_MEM_OTHER));
  closeTracker(v, t);
}

function copyOf(v: LedgerView): LedgerView {
  const buffer = new ArrayBuffer(v.f64.buffer.byteLength);
  const f64 = new Float64Array(buffer);
  const records = at(v.f64[TRACKER_FRESH]!, 0);
  f64.set(v.f64.subarray(0, records));
  const pools = v.f64[POOLS_AT]!;
  f64.set(v.f64.subarray(pools, pools + v.f64[POOL_COUNT]!), pools);
  const links = v.f64[PAGES_AT]!;
  f64.set(v.f64.subarray(links, links + v.f64[PAGE_FRESH]!), links);
  return { i32: new Int32Array(buffer, 0, 16), f64, refusal: noRefusal() };
}
