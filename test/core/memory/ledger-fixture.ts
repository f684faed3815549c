/** A small ledger with neutral sizes: 16 records, 32 pages of 100 bytes, nothing limited unless said. */
import { createLocalLedger, type LedgerView } from "../../../src/core/memory/ledger-layout.ts";
import { openClient, openInstance, openQuery, type QueryOnHost } from "../../../src/core/memory/tracker-records.ts";
import type { Bytes, MaxBytes } from "../../../src/core/units.ts";

export interface LedgerOptions {
  readonly trackers?: number;
  readonly pages?: number;
  readonly pool?: number;
  readonly processLimit?: number;
  readonly scratchCapacity?: number;
}

export const ledger = (o: LedgerOptions = {}): LedgerView =>
  createLocalLedger(
    { trackers: o.trackers ?? 16, pages: o.pages ?? 32, pools: 8, extraWords: 0 },
    {
      bufferPoolLimit: (o.pool ?? 3200) as Bytes,
      processLimit: (o.processLimit ?? -1) as MaxBytes,
      pageBytes: 100,
      scratchCapacity: o.scratchCapacity ?? -1,
    },
  );

export const query = (v: LedgerView, o: Partial<QueryOnHost> = {}): number =>
  openQuery(v, { id: [1, 2, 3, 4], pool: 0, memLimit: -1, bufferPoolLimit: 0, scratchLimit: -1, owner: 1, ...o });

/** A query with one instance and one client; gives the client. */
export function client(v: LedgerView, o: Partial<QueryOnHost> = {}): number {
  const q = query(v, o);
  const owner = o.owner ?? 1;
  return openClient(v, openInstance(v, q, 1, owner), 0, -1, owner);
}
