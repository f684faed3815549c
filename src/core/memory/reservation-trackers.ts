/**
 * Growing, shrinking, using and moving reservations: R1 to R6 (memory 2.2), with the MemTrackers they are
 * charged to (M5 to M9).
 *
 * A step first asks everybody on the way up, in Impala's order, and writes only when all agree, so a refusal
 * changes nothing (I15) and all-or-nothing holds at every instant. Order of asking: own limit, then the
 * parent's whole answer, then the linked MemTracker; that order decides which text a client reads.
 *
 * Works on any view: the simulator's ArrayBuffer, or a host's SharedArrayBuffer while its lock is held. Nothing
 * is allocated; why it was refused is left in `v.refusal`, in numbers, until somebody wants the text.
 */
import { invariant } from "../assert.ts";
import {
  at,
  F_CHILD,
  F_KIND,
  F_LIMIT,
  F_MEM_PARENT,
  F_PARENT,
  F_PEAK_RESERVATION,
  F_PEAK_USED,
  F_RESERVATION,
  F_USED,
  GRANTED,
  get,
  KIND_EXCHANGE,
  KIND_QUERY,
  KIND_SUB,
  type LedgerView,
  NONE,
  REFUSED,
  ROOT,
} from "./ledger-layout.ts";
import { canCharge, chargePath, chargeUpTo, dischargePath, dischargeUpTo, HARD, SOFT } from "./mem-trackers.ts";
import { add, commit } from "./undo-log.ts";

/** What the tracker could hand out without asking anybody. */
export const unusedOf = (v: LedgerView, t: number): number =>
  get(v, t, F_RESERVATION) - get(v, t, F_USED) - get(v, t, F_CHILD);

/** R1, plain: `bytes` more than now, or nothing. hot: bench/ledger */
export const increaseReservation = (v: LedgerView, t: number, bytes: number): boolean => increase(v, t, bytes, bytes);

/** R1, ToFit: so much that `bytes` are unused, or nothing. hot: bench/ledger */
export const increaseReservationToFit = (v: LedgerView, t: number, bytes: number): boolean =>
  increase(v, t, bytes, Math.max(0, bytes - unusedOf(v, t)));

/** R2. Gives `bytes` of unused reservation back, all the way to the root. */
export function decreaseReservation(v: LedgerView, t: number, bytes: number): void {
  takeAway(v, t, bytes);
  commit(v);
}

/** R3. Uses `bytes` of what is reserved; no parent is told. hot: bench/ledger */
export function allocateFrom(v: LedgerView, t: number, bytes: number): void {
  invariant(bytes >= 0 && unusedOf(v, t) >= bytes, "R3 only unused reservation can be used");
  add(v, at(t, F_USED), bytes);
  raisePeak(v, t, F_PEAK_USED, F_USED);
  commit(v);
}

/** R3. The reservation stays with the tracker. hot: bench/ledger */
export function releaseTo(v: LedgerView, t: number, bytes: number): void {
  invariant(bytes >= 0 && get(v, t, F_USED) >= bytes, "R3 no more is released than was used");
  add(v, at(t, F_USED), -bytes);
  commit(v);
}

/** R4. Moves unused reservation inside one tree; the common ancestor and all above it stay as they are (I17). */
export function transferReservation(v: LedgerView, from: number, to: number, bytes: number): boolean {
  invariant(bytes >= 0 && unusedOf(v, from) >= bytes, "R4 only unused reservation can move");
  const common = commonAncestor(v, from, to);
  invariant(common !== ROOT, "R4 both trackers are of one query");
  v.refusal.asker = to;
  for (let t = to; t !== common; t = get(v, t, F_PARENT)) if (!fitsLimit(v, t, bytes)) return false;
  moveAlong(v, to, common, bytes);
  moveAlong(v, from, common, -bytes);
  commit(v);
  return true;
}

/** R6. The tracker has nothing used and no children's reservations; all it holds goes back up the tree. */
export function giveBackAll(v: LedgerView, t: number): void {
  invariant(get(v, t, F_USED) === 0, "R6 a tracker closes with nothing used");
  invariant(get(v, t, F_CHILD) === 0, "R6 a tracker closes with nothing reserved below it");
  decreaseReservation(v, t, get(v, t, F_RESERVATION));
}

function increase(v: LedgerView, t: number, bytes: number, delta: number): boolean {
  invariant(bytes >= 0, "R1 reservations grow by 0 or more");
  v.refusal.asker = t;
  if (!mayGrow(v, t, delta)) {
    v.f64[REFUSED] = v.f64[REFUSED]! + 1;
    return false;
  }
  grow(v, t, delta);
  v.f64[GRANTED] = v.f64[GRANTED]! + 1;
  commit(v);
  return true;
}

/** Steps 2 to 6 of R1, asking only. */
function mayGrow(v: LedgerView, t: number, delta: number): boolean {
  if (delta === 0) return true;
  if (!fitsLimit(v, t, delta)) return false;
  const parent = get(v, t, F_PARENT);
  if (parent === NONE) return true;
  if (!mayGrow(v, parent, Math.max(0, delta - unusedOf(v, parent)))) return false;
  return mayCharge(v, t, delta);
}

/** Step 7 of R1 at every level, root first so that a child never holds more than its parent knows of. */
function grow(v: LedgerView, t: number, delta: number): void {
  if (delta === 0) return;
  const parent = get(v, t, F_PARENT);
  if (parent !== NONE) {
    grow(v, parent, Math.max(0, delta - unusedOf(v, parent)));
    add(v, at(parent, F_CHILD), delta);
    charge(v, t, delta);
  }
  add(v, at(t, F_RESERVATION), delta);
  raisePeak(v, t, F_PEAK_RESERVATION, F_RESERVATION);
}

function takeAway(v: LedgerView, t: number, bytes: number): void {
  invariant(bytes >= 0 && unusedOf(v, t) >= bytes, "R2 only unused reservation can be given back");
  if (bytes === 0) return;
  add(v, at(t, F_RESERVATION), -bytes);
  discharge(v, t, bytes);
  const parent = get(v, t, F_PARENT);
  if (parent === NONE) return;
  add(v, at(parent, F_CHILD), -bytes);
  takeAway(v, parent, bytes);
}

/** R4: `bytes` more (or less) on every tracker from t up to below `common`, and in the children's sums. */
function moveAlong(v: LedgerView, t: number, common: number, bytes: number): void {
  for (let i = t; i !== common; i = get(v, i, F_PARENT)) {
    add(v, at(i, F_RESERVATION), bytes);
    raisePeak(v, i, F_PEAK_RESERVATION, F_RESERVATION);
    if (hasMemTracker(v, i)) chargeUpTo(v, i, get(v, i, F_MEM_PARENT), bytes);
    add(v, at(get(v, i, F_PARENT), F_CHILD), bytes);
  }
}

function fitsLimit(v: LedgerView, t: number, delta: number): boolean {
  const limit = get(v, t, F_LIMIT);
  const reservation = get(v, t, F_RESERVATION);
  if (limit < 0 || reservation + delta <= limit) return true;
  const r = v.refusal;
  r.kind = "reservation";
  r.tracker = t;
  r.asked = delta;
  r.limit = limit;
  r.reservation = reservation;
  r.used = get(v, t, F_USED);
  r.child = get(v, t, F_CHILD);
  r.consumed = 0;
  return false;
}

/** Topmost linked MemTrackers ask the process with their own mode; lower ones only keep count (R1 step 6). */
const isTopmost = (kind: number): boolean => kind === KIND_QUERY || kind === KIND_EXCHANGE;
const modeOf = (kind: number): number => (kind === KIND_EXCHANGE ? HARD : SOFT);
const hasMemTracker = (v: LedgerView, t: number): boolean => get(v, t, F_KIND) !== KIND_SUB;

function mayCharge(v: LedgerView, t: number, delta: number): boolean {
  const kind = get(v, t, F_KIND);
  return !isTopmost(kind) || canCharge(v, t, delta, modeOf(kind));
}

function charge(v: LedgerView, t: number, delta: number): void {
  if (!hasMemTracker(v, t)) return;
  if (isTopmost(get(v, t, F_KIND))) chargePath(v, t, delta);
  else chargeUpTo(v, t, get(v, t, F_MEM_PARENT), delta);
}

function discharge(v: LedgerView, t: number, delta: number): void {
  if (get(v, t, F_PARENT) === NONE || !hasMemTracker(v, t)) return;
  if (isTopmost(get(v, t, F_KIND))) dischargePath(v, t, delta);
  else dischargeUpTo(v, t, get(v, t, F_MEM_PARENT), delta);
}

function commonAncestor(v: LedgerView, a: number, b: number): number {
  for (let i = a; i !== NONE; i = get(v, i, F_PARENT))
    for (let j = b; j !== NONE; j = get(v, j, F_PARENT)) if (i === j) return i;
  invariant(false, "R4 both trackers are of one tree");
  return NONE;
}

function raisePeak(v: LedgerView, t: number, peak: number, now: number): void {
  const value = get(v, t, now);
  if (value > get(v, t, peak)) v.f64[at(t, peak)] = value;
}
