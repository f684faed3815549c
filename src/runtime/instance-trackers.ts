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

/** A query's own records on a host. */
export interface QueryOnHost {
  readonly query: number;
  readonly unclaimed: number;
}

export interface OpenedOnHost extends QueryOnHost {
  readonly instance: number;
}

/** The only instance of a query here. `claims` is what its operators will claim over time (R15). */
export function openOnHost(
  v: LedgerView,
  query: QueryOrder,
  order: FragmentOrder,
  owner: number,
  address: string,
  claims: number,
): OpenedOnHost | FragmentError {
  const opened = openQueryOnHost(v, query, order, owner, address, claims);
  if ("code" in opened) return opened;
  const instance = openInstance(v, opened.query, order.instance, owner);
  if (instance !== NONE) return { ...opened, instance };
  closeQueryOnHost(v, opened);
  return ledgerFull(address);
}

/** R16: everything or nothing, for all instances that the query will have here. */
export function openQueryOnHost(
  v: LedgerView,
  query: QueryOrder,
  order: FragmentOrder,
  owner: number,
  address: string,
  claims: number,
): QueryOnHost | FragmentError {
  const { bufferPoolLimit, scratchLimit, pool, idParts } = query;
  const { memLimit, minReservation } = order;
  const q = openQuery(v, { id: idParts, pool, memLimit, bufferPoolLimit, scratchLimit, owner });
  if (q === NONE) return ledgerFull(address);
  const unclaimed = openUnclaimed(v, q, owner);
  if (unclaimed === NONE) {
    closeWithAll(v, q);
    return ledgerFull(address);
  }
  const opened = { query: q, unclaimed };
  if (takeMinimum(v, unclaimed, minReservation, Math.max(minReservation, claims))) return opened;
  const text = minimumUnavailableText(minReservation, address, query.id, refusalText(v, v.refusal, address));
  closeQueryOnHost(v, opened);
  return { code: 106, text };
}

function closeQueryOnHost(v: LedgerView, { query, unclaimed }: QueryOnHost): void {
  closeWithAll(v, unclaimed);
  closeWithAll(v, query);
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
