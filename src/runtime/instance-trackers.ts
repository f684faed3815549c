/**
 * The trackers of an instance on its host, opened with the query's minimum and closed at its end (R16, R22): what
 * footprints and real operators have in common.
 */
import { takeMinimum } from "../core/memory/initial-reservations.ts";
import { F_MEM_PARENT, F_MEM_PEAK, get, type LedgerView, NONE } from "../core/memory/ledger-layout.ts";
import { minimumUnavailableText, refusalText } from "../core/memory/refusal-text.ts";
import { openInstance, openQuery, openUnclaimed } from "../core/memory/tracker-records.ts";
import { closeWithAll } from "./host-ledger.ts";
import type { FragmentError, FragmentOrder, QueryOrder } from "./protocol.ts";

export interface OpenedOnHost {
  readonly query: number;
  readonly unclaimed: number;
  readonly instance: number;
}

/** R16: everything or nothing. `claims` is what its operators will claim over time (R15). */
export function openOnHost(
  v: LedgerView,
  query: QueryOrder,
  order: FragmentOrder,
  owner: number,
  address: string,
  claims: number,
): OpenedOnHost | FragmentError {
  const { bufferPoolLimit, scratchLimit, pool, idParts } = query;
  const { memLimit, minReservation } = order;
  const q = openQuery(v, { id: idParts, pool, memLimit, bufferPoolLimit, scratchLimit, owner });
  if (q === NONE) return ledgerFull(address);
  const unclaimed = openUnclaimed(v, q, owner);
  const instance = openInstance(v, q, order.instance, owner);
  const opened = [instance, unclaimed, q].filter((t) => t !== NONE);
  if (opened.length < 3) {
    for (const t of opened) closeWithAll(v, t);
    return ledgerFull(address);
  }
  if (!takeMinimum(v, unclaimed, minReservation, Math.max(minReservation, claims))) {
    const text = minimumUnavailableText(minReservation, address, query.id, refusalText(v, v.refusal, address));
    for (const t of opened) closeWithAll(v, t);
    return { code: 106, text };
  }
  return { query: q, unclaimed, instance };
}

/** R22, the instance's own clients being closed. Gives the query's peak on this host. */
export function queryPeakAndClose(v: LedgerView, instance: number): number {
  const query = get(v, instance, F_MEM_PARENT);
  const peak = get(v, query, F_MEM_PEAK);
  closeWithAll(v, instance);
  closeWithAll(v, query);
  return peak;
}

export const ledgerFull = (address: string): FragmentError => ({
  code: -1,
  text: `The ledger of ${address} has no room for another query. Run fewer queries at a time, or raise the number of trackers per host.`,
});
