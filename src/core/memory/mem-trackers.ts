/**
 * MemTrackers: bytes consumed per client, query and process (memory 1.2), kept in the same records as the
 * reservations that are charged to them.
 *
 * Simplification of the product (memory 9.5): the process counts the sum of its children instead of asking
 * malloc, and there is nothing to collect, so a refusal is final at once (M12 to M14 have no counterpart).
 *
 * A pool counts a query's limit while the query executes and has one, else its consumption (admission 7.2);
 * that share moves here, with the consumption, so that it is exact at every instant.
 */
import { invariant } from "../assert.ts";
import {
  at,
  F_EXECUTING,
  F_KIND,
  F_MEM_CONSUMED,
  F_MEM_LIMIT,
  F_MEM_OTHER,
  F_MEM_PARENT,
  F_MEM_PEAK,
  F_POOL,
  F_POOL_SHARE,
  get,
  KIND_QUERY,
  type LedgerView,
  NONE,
  POOLS_AT,
} from "./ledger-layout.ts";
import { add, commit, put } from "./undo-log.ts";

export const HARD = 0;
export const SOFT = 1;

/** `--soft_mem_limit_frac` (M2). */
const SOFT_FRACTION = 0.9;

/** M2: -1 without a limit. */
export const limitIn = (limit: number, mode: number): number =>
  limit < 0 || mode === HARD ? limit : Math.floor(limit * SOFT_FRACTION);

/** M5: never refuses, checks no limit. */
export function consume(v: LedgerView, t: number, bytes: number): void {
  add(v, at(t, F_MEM_OTHER), bytes);
  chargePath(v, t, bytes);
  commit(v);
}

/** M7: all or nothing, root first. What refused is in `v.refusal`. */
export function tryConsume(v: LedgerView, t: number, bytes: number, mode: number): boolean {
  v.refusal.asker = t;
  if (!canCharge(v, t, bytes, mode)) return false;
  consume(v, t, bytes);
  return true;
}

/** M8. */
export function release(v: LedgerView, t: number, bytes: number): void {
  invariant(bytes >= 0 && get(v, t, F_MEM_OTHER) >= bytes, "M8 no more is released than was consumed");
  add(v, at(t, F_MEM_OTHER), -bytes);
  dischargePath(v, t, bytes);
  commit(v);
}

/** M9: what could still be consumed; may be negative; Infinity when nothing on the path is limited. */
export function spareCapacity(v: LedgerView, t: number, mode: number): number {
  let spare = Number.POSITIVE_INFINITY;
  for (let i = t; i !== NONE; i = get(v, i, F_MEM_PARENT)) {
    const limit = limitIn(get(v, i, F_MEM_LIMIT), mode);
    if (limit >= 0) spare = Math.min(spare, limit - get(v, i, F_MEM_CONSUMED));
  }
  return spare;
}

/** M7 step 1 for the whole path, asking only. The root's refusal comes before a query's. */
export function canCharge(v: LedgerView, t: number, bytes: number, mode: number): boolean {
  const parent = get(v, t, F_MEM_PARENT);
  if (parent !== NONE && !canCharge(v, parent, bytes, mode)) return false;
  const limit = limitIn(get(v, t, F_MEM_LIMIT), mode);
  const consumed = get(v, t, F_MEM_CONSUMED);
  if (limit < 0 || consumed + bytes <= limit) return true;
  const r = v.refusal;
  r.kind = "mem";
  r.tracker = t;
  r.asked = bytes;
  r.limit = limit;
  r.reservation = 0;
  r.used = 0;
  r.child = 0;
  r.consumed = consumed;
  return false;
}

/** Adds to t and everything above it. Part of a step: the caller commits. */
export const chargePath = (v: LedgerView, t: number, bytes: number): void => chargeUpTo(v, t, NONE, bytes);
export const dischargePath = (v: LedgerView, t: number, bytes: number): void => chargeUpTo(v, t, NONE, -bytes);

/** M6: adds to t and what lies between it and `end`; `end` itself knows already. */
export function chargeUpTo(v: LedgerView, t: number, end: number, bytes: number): void {
  for (let i = t; i !== end && i !== NONE; i = get(v, i, F_MEM_PARENT)) {
    add(v, at(i, F_MEM_CONSUMED), bytes);
    if (get(v, i, F_MEM_CONSUMED) > get(v, i, F_MEM_PEAK)) v.f64[at(i, F_MEM_PEAK)] = get(v, i, F_MEM_CONSUMED);
    if (get(v, i, F_KIND) === KIND_QUERY) settlePoolShare(v, i);
  }
}

export const dischargeUpTo = (v: LedgerView, t: number, end: number, bytes: number): void =>
  chargeUpTo(v, t, end, -bytes);

/** Brings the pool's sum in line with what the query counts for now. Part of a step. */
export function settlePoolShare(v: LedgerView, query: number): void {
  const limit = get(v, query, F_MEM_LIMIT);
  const share = get(v, query, F_EXECUTING) === 1 && limit > 0 ? limit : get(v, query, F_MEM_CONSUMED);
  const change = share - get(v, query, F_POOL_SHARE);
  if (change === 0) return;
  add(v, v.f64[POOLS_AT]! + get(v, query, F_POOL), change);
  put(v, at(query, F_POOL_SHARE), share);
}
