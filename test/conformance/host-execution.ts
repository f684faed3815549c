/**
 * Execution on one host as far as a field case gives it in numbers: minimum reservations from the host's buffer pool,
 * and scratch space in directories with a cap. The accounts are the product's own (ledger, scratch books); nothing
 * runs and no byte is written.
 */

import { NO_LOCK } from "../../src/core/memory/buffer-allocator.ts";
import { takeMinimum } from "../../src/core/memory/initial-reservations.ts";
import { createLocalLedger, F_RESERVATION, get, type LedgerView, ROOT } from "../../src/core/memory/ledger-layout.ts";
import { increaseReservation } from "../../src/core/memory/reservation-trackers.ts";
import { SCRATCH_ALLOCATION_FAILED } from "../../src/core/memory/scratch-failures.ts";
import { closeTracker, openQuery, openUnclaimed, queryIdParts } from "../../src/core/memory/tracker-records.ts";
import { bytes, MiB } from "../../src/core/units.ts";
import { FileGroup, type ScratchFiles } from "../../src/runtime/scratch/file-group.ts";
import { ScratchBooks, scratchBookWords } from "../../src/runtime/scratch/scratch-directories.ts";

export interface HostExecutionSpec {
  readonly address: string;
  /** What all reservations of the host together can be; null: the case doesn't say. */
  readonly bufferPoolBytes: number | null;
  readonly scratch: readonly { readonly path: string; readonly limit: number }[];
}

/** Codes of field cases; null: it went well. */
export type ExecutionFailure = "MINIMUM_RESERVATION_UNAVAILABLE" | "SCRATCH_ALLOCATION_FAILED";

const QUERIES = 16;
/** A spilled page: operators write pages of this size, and ranges are powers of two. */
const PAGE_BYTES = 2 * MiB;

/** Takes everything and keeps nothing. */
const NO_FILES: ScratchFiles = {
  open: () => 1,
  write: (_, from) => from.length,
  read: () => 0,
  close: () => undefined,
};

export class HostExecution {
  private readonly spec: HostExecutionSpec;
  private readonly ledger: LedgerView | null;
  private readonly books: ScratchBooks;
  private readonly trackers = new Map<string, { readonly query: number; readonly unclaimed: number }>();
  private readonly files = new Map<string, FileGroup>();
  private readonly page = new Uint8Array(PAGE_BYTES);

  constructor(spec: HostExecutionSpec) {
    this.spec = spec;
    this.ledger =
      spec.bufferPoolBytes === null
        ? null
        : createLocalLedger(
            { trackers: 4 * QUERIES, pages: 1, pools: 1, extraWords: 0 },
            { bufferPoolLimit: bytes(spec.bufferPoolBytes), processLimit: -1, pageBytes: PAGE_BYTES },
          );
    const directories = spec.scratch.map((d) => ({ ...d, priority: 0 }));
    this.books = new ScratchBooks(
      directories,
      new Float64Array(scratchBookWords(directories.length, QUERIES)),
      NO_LOCK,
    );
  }

  /** Claims the minimum; a query without a limit then takes what is left. */
  start(query: string, minimum: number, memLimit: number): ExecutionFailure | null {
    const { ledger, spec } = this;
    if (ledger === null || spec.bufferPoolBytes === null) return null;
    const id = queryIdParts(query);
    const limit = memLimit < 0 ? -1 : bytes(memLimit);
    const tracker = openQuery(ledger, { id, pool: 0, memLimit: limit, bufferPoolLimit: 0, scratchLimit: -1, owner: 1 });
    const unclaimed = openUnclaimed(ledger, tracker, 1);
    this.trackers.set(query, { query: tracker, unclaimed });
    if (!takeMinimum(ledger, unclaimed, minimum, minimum)) return "MINIMUM_RESERVATION_UNAVAILABLE";
    const left = spec.bufferPoolBytes - get(ledger, ROOT, F_RESERVATION);
    if (memLimit < 0 && left > 0) increaseReservation(ledger, unclaimed, left);
    return null;
  }

  spill(query: string, amount: number): ExecutionFailure | null {
    const group = this.files.get(query) ?? this.newGroup(query);
    for (let written = 0; written < amount; written += PAGE_BYTES) {
      const range = group.write(this.page, PAGE_BYTES);
      if (!("code" in range)) continue;
      if (range.code !== SCRATCH_ALLOCATION_FAILED) throw new Error(range.text);
      return "SCRATCH_ALLOCATION_FAILED";
    }
    return null;
  }

  private newGroup(query: string): FileGroup {
    const group = new FileGroup({
      books: this.books,
      slot: this.files.size,
      queryId: query,
      backend: this.spec.address,
      scratchLimit: -1,
      chance: () => 0,
      files: NO_FILES,
    });
    this.files.set(query, group);
    return group;
  }

  /** Everything it held here is free again. */
  end(query: string): void {
    const tracker = this.trackers.get(query);
    if (tracker !== undefined && this.ledger !== null) {
      closeTracker(this.ledger, tracker.unclaimed);
      closeTracker(this.ledger, tracker.query);
    }
    this.trackers.delete(query);
    this.files.get(query)?.close();
  }

  /** For whoever checks that nothing stayed behind. */
  get held(): number {
    return (this.ledger === null ? 0 : get(this.ledger, ROOT, F_RESERVATION)) + this.books.hostBytes();
  }
}
