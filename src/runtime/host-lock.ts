/**
 * The one lock of a host: a word that says who is inside its ledger (STYLE 9).
 *
 *   FREE 0 --CAS--> HELD id --a waiter, CAS--> CONTENDED -id --(waiters sleep on the word)
 *     ^                |                            |
 *     +--exchange 0----+------- exchange 0, then notify(1)
 *
 * Who may make each move: a thread that enters makes FREE -> HELD; a waiter makes HELD -> CONTENDED of the same
 * owner; a woken waiter makes FREE -> CONTENDED of its own, because others may still sleep; the owner alone makes
 * either -> FREE. When a thread has died, the supervisor makes HELD or CONTENDED of the dead -> CONTENDED of its
 * own, rolls back, and releases like any owner.
 *
 * A death can also swallow a wake-up: between the owner's exchange and its notify, or between a waiter's waking
 * and its next try. Therefore the supervisor wakes all sleepers after every death, whoever held the lock.
 *
 * Order: the exchange that frees the lock publishes every plain write made before it; the CAS that takes it sees
 * them. Ids are never given out twice, so a release by somebody who was declared dead is noticed.
 *
 * `atomics` is an argument so that a test can stand between any two of these steps (test/runtime/interleave.ts).
 */
import { fail } from "../core/assert.ts";
import { LOCK } from "../core/memory/ledger-layout.ts";

export const FREE = 0;
/** The main thread: coordinator and supervisor. */
export const MAIN_ID = 1;
/** First id of a worker thread. */
export const FIRST_THREAD_ID = 2;

/** The part of Atomics that the lock needs. */
export interface LockAtomics {
  load(words: Int32Array, at: number): number;
  compareExchange(words: Int32Array, at: number, expected: number, value: number): number;
  exchange(words: Int32Array, at: number, value: number): number;
  wait(words: Int32Array, at: number, value: number): unknown;
  notify(words: Int32Array, at: number, count?: number): number;
}

/** Looks before sleeping: a section takes well under a microsecond, a wake-up 20. */
export const LOOKS = 60;

/** Waits until it is ours. Blocks the thread: never on the main thread. hot: bench/ledger */
export function takeLock(words: Int32Array, id: number, atomics: LockAtomics, looks: number): void {
  if (atomics.compareExchange(words, LOCK, FREE, id) === FREE) return;
  for (let i = 0; i < looks; i++) {
    if (atomics.load(words, LOCK) === FREE && atomics.compareExchange(words, LOCK, FREE, id) === FREE) return;
  }
  for (;;) {
    const owner = contend(words, id, atomics);
    if (owner === FREE) return;
    atomics.wait(words, LOCK, -owner);
  }
}

/** Takes it if it is free, without waiting. */
export const tryTakeLock = (words: Int32Array, id: number, atomics: LockAtomics): boolean =>
  atomics.compareExchange(words, LOCK, FREE, id) === FREE;

/**
 * The main thread's way of waiting: it never blocks. A waiting `waitAsync` does not keep the process alive, which is
 * right: whoever waits here waits for a thread, and threads do.
 */
export async function takeLockAsync(words: Int32Array, id: number): Promise<void> {
  if (tryTakeLock(words, id, Atomics)) return;
  for (;;) {
    const owner = contend(words, id, Atomics);
    if (owner === FREE) return;
    const asleep = Atomics.waitAsync(words, LOCK, -owner);
    if (asleep.async) await asleep.value;
  }
}

/** The owner leaves. hot: bench/ledger */
export function releaseLock(words: Int32Array, id: number, atomics: LockAtomics): void {
  const was = atomics.exchange(words, LOCK, FREE);
  if (was === id) return;
  if (was !== -id) fail(`lock released by ${id}, but it was at ${was}`);
  atomics.notify(words, LOCK, 1);
}

/**
 * For the supervisor, after `dead` has ended: true when it died inside, and then the lock is ours, to roll back and
 * to release. Either way everybody who sleeps is woken.
 */
export function breakLock(words: Int32Array, dead: number, supervisor: number, atomics: LockAtomics): boolean {
  let inside = false;
  for (;;) {
    const seen = atomics.load(words, LOCK);
    if (seen !== dead && seen !== -dead) break;
    if (atomics.compareExchange(words, LOCK, seen, -supervisor) === seen) {
      inside = true;
      break;
    }
  }
  atomics.notify(words, LOCK);
  return inside;
}

/** One try as a waiter. FREE: it is ours now; else the owner, who knows that somebody waits. */
function contend(words: Int32Array, id: number, atomics: LockAtomics): number {
  for (;;) {
    const seen = atomics.load(words, LOCK);
    if (seen === FREE) {
      if (atomics.compareExchange(words, LOCK, FREE, -id) === FREE) return FREE;
    } else if (seen < 0 || atomics.compareExchange(words, LOCK, seen, -seen) === seen) return Math.abs(seen);
  }
}
