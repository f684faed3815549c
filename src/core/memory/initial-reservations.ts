/**
 * A query's minimum on one host, taken in one piece before anything starts and handed to operators as they open
 * (R15 to R22, memory 2.5).
 */
import { invariant } from "../assert.ts";
import { at, F_REMAINING_CLAIMS, F_RESERVATION, get, type LedgerView } from "./ledger-layout.ts";
import { decreaseReservation, increaseReservation, transferReservation, unusedOf } from "./reservation-trackers.ts";
import { commit, put } from "./undo-log.ts";

/**
 * R16 (4): one increase for `min`. `claims` is what all operators together will ever claim (R15: claims >= min).
 * False: the host has not that much, the query fails with code 106 (R17); nobody waits.
 */
export function takeMinimum(v: LedgerView, unclaimed: number, min: number, claims: number): boolean {
  invariant(claims >= min, "R15 claims are at least the minimum");
  if (!increaseReservation(v, unclaimed, min)) return false;
  put(v, at(unclaimed, F_REMAINING_CLAIMS), claims);
  commit(v);
  return true;
}

/** R19: an operator opens and takes its minimum; it can't fail if the planner's sums are right (I20). */
export function claim(v: LedgerView, unclaimed: number, client: number, bytes: number): void {
  const left = get(v, unclaimed, F_REMAINING_CLAIMS) - bytes;
  invariant(left >= 0, "I11 no more is claimed than was announced");
  const moved = transferReservation(v, unclaimed, client, bytes);
  invariant(moved, "I20 a claim never fails");
  put(v, at(unclaimed, F_REMAINING_CLAIMS), left);
  commit(v);
}

/** R20: an operator closes; what later operators will not claim goes back up the tree. */
export function giveBackClaim(v: LedgerView, unclaimed: number, client: number): void {
  const moved = transferReservation(v, client, unclaimed, get(v, client, F_RESERVATION));
  invariant(moved, "R20 the pool of claims has no limit of its own");
  const excess = get(v, unclaimed, F_RESERVATION) - get(v, unclaimed, F_REMAINING_CLAIMS);
  if (excess > 0) decreaseReservation(v, unclaimed, Math.min(excess, unusedOf(v, unclaimed)));
}
