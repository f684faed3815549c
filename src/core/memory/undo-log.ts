/**
 * One step of a ledger, done whole or not at all, even when the thread dies in the middle of it (DESIGN 5).
 *
 * `put` writes a word's place and old value into the undo entries, then counts the entry, then writes the word.
 * `commit` ends the step by setting the count to 0. Whoever finds a dead owner's lock calls `rollBack`: entries
 * are put back last first, and the count goes down after each, so that it may itself be killed and done again.
 *
 * Only under the host's lock. Words that nobody may rely on (peaks, counters, links of pages and records at or
 * above their FRESH word) are written plainly and survive a rollback.
 */
import { invariant } from "../assert.ts";
import { type LedgerView, ROLLBACKS, UNDO_0, UNDO_COUNT, UNDO_ENTRIES } from "./ledger-layout.ts";

/** hot: bench/ledger */
export function put(v: LedgerView, place: number, value: number): void {
  const w = v.f64;
  const n = w[UNDO_COUNT]!;
  invariant(n < UNDO_ENTRIES, "a ledger step fits its undo entries");
  w[UNDO_0 + 2 * n] = place;
  w[UNDO_0 + 2 * n + 1] = w[place]!;
  w[UNDO_COUNT] = n + 1;
  w[place] = value;
}

/** hot: bench/ledger */
export const add = (v: LedgerView, place: number, change: number): void => put(v, place, v.f64[place]! + change);

/** The step is done: the ledger is consistent again. */
export function commit(v: LedgerView): void {
  v.f64[UNDO_COUNT] = 0;
}

/** Puts back what an unfinished step had changed. True when there was one. */
export function rollBack(v: LedgerView): boolean {
  const w = v.f64;
  const unfinished = w[UNDO_COUNT]! > 0;
  for (let n = w[UNDO_COUNT]! - 1; n >= 0; n--) {
    w[w[UNDO_0 + 2 * n]!] = w[UNDO_0 + 2 * n + 1]!;
    w[UNDO_COUNT] = n;
  }
  if (unfinished) w[ROLLBACKS] = w[ROLLBACKS]! + 1;
  return unfinished;
}
