/**
 * Where everything stands in one host's ledger, and who writes it. No other file contains an offset.
 *
 * One buffer per host: an ArrayBuffer in virtual time, a SharedArrayBuffer in the fleet. Two views on it,
 * `i32` for the lock's cache line and `f64` for the rest: bytes are exact up to 2^53 and need no bigint, and
 * hot code sees one kind of view only.
 *
 *   words                   unit     written by                      how
 *   i32[0] LOCK             state    threads of this host, main      Atomics only; states in runtime/host-lock.ts
 *   i32[1] HOST_EPOCH       count    main                            Atomics only; even: the host is up, odd: lost
 *   i32[2..15]                       nobody                          fills the lock's cache line
 *
 *   everything below is f64, written by the lock's holder, plain, only under the lock
 *
 *   [8..31]                 host     free lists, counts, undo count (constants below)
 *   [UNDO_0 + 2k]           entry    word's place, its old value     filled before the word is written
 *   [TRACKERS_0 + T t + f]  record   tracker t, field f              fields below
 *   [poolsAt + p]           bytes    reserved here by pool p's queries (admission 7.2)
 *   [pagesAt + p]           link     next page of the list that page p is in
 *   [extraAt ...]                    whoever asked for extra words; laid out by core/memory/buffer-pool*.ts
 *
 * A record or page at or above its FRESH word was never given out and holds rubbish; below it, it is either in
 * use or in the free list. Nothing needs to be written at creation, so a large ledger costs no memory until used.
 */
import { fail } from "../assert.ts";
import type { Bytes, MaxBytes } from "../units.ts";

export const LOCK = 0;
/**
 * Moved on by main alone, when the host dies and when it joins again. An instance that was sent to an earlier life of
 * the host finds another epoch and does not start.
 */
export const HOST_EPOCH = 1;

const HEADER = 8;
/** How many undo entries count: 0 between two steps, and the ledger is then consistent. */
export const UNDO_COUNT = HEADER;
export const TRACKER_CAPACITY = HEADER + 1;
/** First record never given out yet. */
export const TRACKER_FRESH = HEADER + 2;
/** Head of the list of records given back, NONE when empty. */
export const TRACKER_FREE = HEADER + 3;
export const TRACKERS_IN_USE = HEADER + 4;
export const PAGE_CAPACITY = HEADER + 5;
export const PAGE_FRESH = HEADER + 6;
export const PAGE_FREE = HEADER + 7;
export const PAGES_IN_USE = HEADER + 8;
export const PAGES_PEAK = HEADER + 9;
/** Emulated bytes that stand behind one page of the arena. */
export const PAGE_BYTES = HEADER + 10;
/** Bytes on disk for this host's queries, live ranges only. */
export const SCRATCH_BYTES = HEADER + 11;
export const SCRATCH_PEAK = HEADER + 12;
/** Increases granted and refused, for the stress report and metrics. */
export const GRANTED = HEADER + 13;
export const REFUSED = HEADER + 14;
/** How often a dead owner's half-done step was rolled back. */
export const ROLLBACKS = HEADER + 15;
export const PAGES_AT = HEADER + 16;
export const POOLS_AT = HEADER + 17;
export const POOL_COUNT = HEADER + 18;
export const EXTRA_AT = HEADER + 19;
/** Bytes of scratch space on the host, -1: no limit. */
export const SCRATCH_CAPACITY = HEADER + 20;

/** One step writes at most this many logged words; more is a bug of the step. */
export const UNDO_ENTRIES = 96;
export const UNDO_0 = 32;
export const TRACKERS_0 = UNDO_0 + 2 * UNDO_ENTRIES;
export const TRACKER_WORDS = 32;

/** No record, no page. */
export const NONE = -1;
/** The host's own record: buffer pool limit, and the process MemTracker. */
export const ROOT = 0;

/** FREE -> any kind when opened, back to FREE when closed; nothing else moves it. */
export const KIND_FREE = 0;
export const KIND_ROOT = 1;
/** One query on this host; its MemTracker carries the query's memory limit. */
export const KIND_QUERY = 2;
/** "Unclaimed reservations" of a query (R15-R20). */
export const KIND_UNCLAIMED = 3;
export const KIND_INSTANCE = 4;
/** An operator's buffer pool client. */
export const KIND_CLIENT = 5;
/** An exchange receiver: reserves from the root, is charged to its query (memory 2.1). */
export const KIND_EXCHANGE = 6;
/** Part set aside inside one operator: no MemTracker of its own. */
export const KIND_SUB = 7;

/** Fields of a tracker record. */
export const F_KIND = 0;
/** Reservation parent. For a free record: the next one in the free list. */
export const F_PARENT = 1;
/** Parent in the tree of MemTrackers; differs from F_PARENT for an exchange only. */
export const F_MEM_PARENT = 2;
/** Records whose F_PARENT or F_MEM_PARENT this is. */
export const F_CHILDREN = 3;
/** Thread that answers for the record: when it dies, main gives the record back. 0: main itself. */
export const F_OWNER = 4;
/** Bytes, -1: none. */
export const F_LIMIT = 5;
export const F_RESERVATION = 6;
export const F_USED = 7;
export const F_CHILD = 8;
export const F_PEAK_RESERVATION = 9;
export const F_PEAK_USED = 10;
/** Linked MemTracker: hard limit (-1: none), consumption, its peak, and the part that is not reservation. */
export const F_MEM_LIMIT = 11;
export const F_MEM_CONSUMED = 12;
export const F_MEM_PEAK = 13;
export const F_MEM_OTHER = 14;
/** Query: what the pool's word holds for it now. */
export const F_POOL_SHARE = 15;
export const F_POOL = 16;
/** Query: 1 while it executes here, then its limit counts for the pool; 0: its consumption does. */
export const F_EXECUTING = 17;
/** Query: bytes on disk here and what they may reach (-1: no limit, 0: no spilling). */
export const F_SCRATCH = 18;
export const F_SCRATCH_LIMIT = 19;
/** Query: its id, four unsigned 32-bit parts. Instance, client: F_ID_0 is its number (instance, plan node). */
export const F_ID_0 = 20;
export const F_ID_1 = 21;
export const F_ID_2 = 22;
export const F_ID_3 = 23;
/** Client: its arena pages, first and count. */
export const F_PAGES = 24;
export const F_PAGE_COUNT = 25;
/** Unclaimed: what operators have still to claim (R19). */
export const F_REMAINING_CLAIMS = 26;

/** A refusal as data: what was asked for, what refused, and its figures of that moment (I25). Reused. */
export interface Refusal {
  /** reservation: own limit (R5); mem: a MemTracker's soft or hard limit (M7); none: nothing was refused yet. */
  kind: "none" | "reservation" | "mem" | "denied";
  /** The tracker that said no, and the one that had asked. */
  tracker: number;
  asker: number;
  /** Bytes that `tracker` was asked for. */
  asked: number;
  limit: number;
  reservation: number;
  used: number;
  child: number;
  consumed: number;
}

/** One host's ledger as this thread sees it. Words are shared, `refusal` is the thread's own. */
export interface LedgerView {
  readonly i32: Int32Array;
  readonly f64: Float64Array;
  readonly refusal: Refusal;
}

export interface LedgerSizes {
  /** Records of queries, instances and clients at the same time. 256 bytes each, when used. */
  readonly trackers: number;
  /** Pools whose queries can come here; main numbers them from 0. */
  readonly pools: number;
  /** Pages of the arena; 0 where nothing is really touched (virtual time). */
  readonly pages: number;
  /** f64 words at EXTRA_AT for a buffer pool. */
  readonly extraWords: number;
}

export interface HostMemory {
  /** `--buffer_pool_limit`: all reservations of the host. */
  readonly bufferPoolLimit: Bytes;
  /** `--mem_limit` of the process; -1: none. */
  readonly processLimit: MaxBytes;
  /** Emulated bytes behind one arena page, > 0. */
  readonly pageBytes: number;
  /** Bytes of scratch space; left out: no limit. */
  readonly scratchCapacity?: number;
}

const poolsAt = (sizes: LedgerSizes): number => TRACKERS_0 + sizes.trackers * TRACKER_WORDS;
const pagesAt = (sizes: LedgerSizes): number => poolsAt(sizes) + sizes.pools;
const extraAt = (sizes: LedgerSizes): number => pagesAt(sizes) + sizes.pages;

export const ledgerByteLength = (sizes: LedgerSizes): number => (extraAt(sizes) + sizes.extraWords) * 8;

export function noRefusal(): Refusal {
  return {
    kind: "none",
    tracker: NONE,
    asker: NONE,
    asked: 0,
    limit: 0,
    reservation: 0,
    used: 0,
    child: 0,
    consumed: 0,
  };
}

/** Another thread's ledger, already set up. */
export const viewLedger = (buffer: ArrayBuffer | SharedArrayBuffer): LedgerView => ({
  i32: new Int32Array(buffer, 0, 16),
  f64: new Float64Array(buffer),
  refusal: noRefusal(),
});

/** Sets up a zeroed buffer of `ledgerByteLength(sizes)`: the root record and empty lists. */
export function createLedger(
  buffer: ArrayBuffer | SharedArrayBuffer,
  sizes: LedgerSizes,
  host: HostMemory,
): LedgerView {
  if (sizes.trackers < 1) fail(`a ledger needs room for its root: ${sizes.trackers} trackers`);
  if (buffer.byteLength < ledgerByteLength(sizes)) fail("ledger buffer too small for its sizes");
  const view = viewLedger(buffer);
  const w = view.f64;
  w[TRACKER_CAPACITY] = sizes.trackers;
  w[TRACKER_FRESH] = 1;
  w[TRACKER_FREE] = NONE;
  w[TRACKERS_IN_USE] = 1;
  w[PAGE_CAPACITY] = sizes.pages;
  w[PAGE_FREE] = NONE;
  w[PAGE_BYTES] = host.pageBytes;
  w[SCRATCH_CAPACITY] = host.scratchCapacity ?? -1;
  w[PAGES_AT] = pagesAt(sizes);
  w[POOLS_AT] = poolsAt(sizes);
  w[POOL_COUNT] = sizes.pools;
  w[EXTRA_AT] = extraAt(sizes);
  w[at(ROOT, F_KIND)] = KIND_ROOT;
  w[at(ROOT, F_PARENT)] = NONE;
  w[at(ROOT, F_MEM_PARENT)] = NONE;
  w[at(ROOT, F_LIMIT)] = host.bufferPoolLimit;
  w[at(ROOT, F_MEM_LIMIT)] = host.processLimit;
  w[at(ROOT, F_PAGES)] = NONE;
  return view;
}

/** In an ArrayBuffer, for one thread: virtual time and tests. */
export const createLocalLedger = (sizes: LedgerSizes, host: HostMemory): LedgerView =>
  createLedger(new ArrayBuffer(ledgerByteLength(sizes)), sizes, host);

/** Place of a tracker's field. */
export const at = (tracker: number, field: number): number => TRACKERS_0 + tracker * TRACKER_WORDS + field;

/** Bytes that a pool has reserved on this host (admission 7.2). */
export const poolReservedOf = (v: LedgerView, pool: number): number => v.f64[v.f64[POOLS_AT]! + pool]!;

/** A tracker's field. The record must be in use. */
export const get = (v: LedgerView, tracker: number, field: number): number => v.f64[at(tracker, field)]!;
