/**
 * The life of tracker records: a query on a host, its unclaimed reservations, instances, operator clients and
 * exchanges are opened below one another and closed from the bottom (memory 2.1, R16, R22).
 *
 * Records come from a free list of fixed size. A record that is open has a kind; closing needs everything
 * given back, so a leak shows here and not later in the sums (R6, F11).
 */
import { invariant } from "../assert.ts";
import type { MaxBytes } from "../units.ts";
import {
  at,
  F_CHILDREN,
  F_EXECUTING,
  F_ID_0,
  F_ID_1,
  F_ID_2,
  F_ID_3,
  F_KIND,
  F_LIMIT,
  F_MEM_CONSUMED,
  F_MEM_LIMIT,
  F_MEM_PARENT,
  F_OWNER,
  F_PAGE_COUNT,
  F_PAGES,
  F_PARENT,
  F_POOL,
  F_SCRATCH,
  F_SCRATCH_LIMIT,
  get,
  KIND_CLIENT,
  KIND_EXCHANGE,
  KIND_FREE,
  KIND_INSTANCE,
  KIND_QUERY,
  KIND_SUB,
  KIND_UNCLAIMED,
  type LedgerView,
  NONE,
  POOL_COUNT,
  ROOT,
  SCRATCH_BYTES,
  SCRATCH_CAPACITY,
  SCRATCH_PEAK,
  TRACKER_CAPACITY,
  TRACKER_FREE,
  TRACKER_FRESH,
  TRACKER_WORDS,
  TRACKERS_IN_USE,
} from "./ledger-layout.ts";
import { settlePoolShare } from "./mem-trackers.ts";
import { reservationLimitFor } from "./reservation-limit.ts";
import { giveBackAll } from "./reservation-trackers.ts";
import { add, commit, put } from "./undo-log.ts";

/** A query id as four unsigned 32-bit parts; see `queryIdParts`. */
export type QueryIdParts = readonly [number, number, number, number];

export interface QueryOnHost {
  readonly id: QueryIdParts;
  /** Number that main gave the pool, from 0. */
  readonly pool: number;
  /** Enforced per-host limit (MEM-9); -1: none (R25). */
  readonly memLimit: MaxBytes;
  /** BUFFER_POOL_LIMIT; counts only if > 0 (R8). */
  readonly bufferPoolLimit: number;
  /** SCRATCH_LIMIT; -1: none, 0: no spilling (S7). */
  readonly scratchLimit: number;
  /** Thread that answers for it. */
  readonly owner: number;
}

/** R16 (2). NONE when the ledger has no record left. */
export function openQuery(v: LedgerView, q: QueryOnHost): number {
  invariant(q.pool >= 0 && q.pool < v.f64[POOL_COUNT]!, "the ledger has a word for every pool");
  const t = open(v, KIND_QUERY, ROOT, ROOT, q.owner);
  if (t === NONE) return NONE;
  const w = v.f64;
  const processLimit = get(v, ROOT, F_MEM_LIMIT);
  w[at(t, F_MEM_LIMIT)] = q.memLimit;
  w[at(t, F_LIMIT)] = reservationLimitFor(q.memLimit, processLimit, q.bufferPoolLimit);
  w[at(t, F_POOL)] = q.pool;
  w[at(t, F_SCRATCH_LIMIT)] = q.scratchLimit;
  w[at(t, F_ID_0)] = q.id[0];
  w[at(t, F_ID_1)] = q.id[1];
  w[at(t, F_ID_2)] = q.id[2];
  w[at(t, F_ID_3)] = q.id[3];
  put(v, at(t, F_EXECUTING), 1);
  settlePoolShare(v, t);
  commit(v);
  return t;
}

/** "Unclaimed reservations" of a query. */
export const openUnclaimed = (v: LedgerView, query: number, owner: number): number =>
  openBelow(v, KIND_UNCLAIMED, query, query, owner, -1);

export function openInstance(v: LedgerView, query: number, instance: number, owner: number): number {
  const t = openBelow(v, KIND_INSTANCE, query, query, owner, -1);
  if (t !== NONE) v.f64[at(t, F_ID_0)] = instance;
  return t;
}

/** An operator's client; `limit` is the plan node's maximum reservation, -1 usually. */
export function openClient(v: LedgerView, instance: number, planNode: number, limit: MaxBytes, owner: number): number {
  const t = openBelow(v, KIND_CLIENT, instance, instance, owner, limit);
  if (t !== NONE) v.f64[at(t, F_ID_0)] = planNode;
  return t;
}

/** Reserves from the root, is charged to the instance and its query. */
export const openExchange = (v: LedgerView, instance: number, owner: number): number =>
  openBelow(v, KIND_EXCHANGE, ROOT, instance, owner, -1);

/** A part set aside inside one operator. */
export const openSub = (v: LedgerView, client: number, limit: MaxBytes, owner: number): number =>
  openBelow(v, KIND_SUB, client, client, owner, limit);

/** R6, M10. Gives back what is reserved and frees the record. Pages, scratch and other memory must be gone. */
export function closeTracker(v: LedgerView, t: number): void {
  invariant(get(v, t, F_CHILDREN) === 0, "R6 children close before their parent");
  invariant(get(v, t, F_PAGE_COUNT) === 0, "a client closes without pages");
  invariant(get(v, t, F_SCRATCH) === 0, "S12 a query closes without scratch");
  giveBackAll(v, t);
  invariant(get(v, t, F_MEM_CONSUMED) === 0, "M10 a MemTracker closes at zero");
  if (get(v, t, F_KIND) === KIND_QUERY) {
    put(v, at(t, F_EXECUTING), 0);
    settlePoolShare(v, t);
  }
  const parent = get(v, t, F_PARENT);
  const memParent = get(v, t, F_MEM_PARENT);
  add(v, at(parent, F_CHILDREN), -1);
  if (memParent !== parent) add(v, at(memParent, F_CHILDREN), -1);
  put(v, at(t, F_KIND), KIND_FREE);
  put(v, at(t, F_PARENT), v.f64[TRACKER_FREE]!);
  put(v, TRACKER_FREE, t);
  add(v, TRACKERS_IN_USE, -1);
  commit(v);
}

/** The query's work here has ended: from now on its consumption counts for the pool (admission 7.2). */
export function endExecution(v: LedgerView, query: number): void {
  put(v, at(query, F_EXECUTING), 0);
  settlePoolShare(v, query);
  commit(v);
}

export type ScratchAnswer = "taken" | "queryLimit" | "hostFull";

/** S5: room for `bytes` more on disk, or who has none and nothing changed. SCRATCH_LIMIT is asked first. */
export function takeScratch(v: LedgerView, query: number, bytes: number): ScratchAnswer {
  const limit = get(v, query, F_SCRATCH_LIMIT);
  if (limit >= 0 && get(v, query, F_SCRATCH) + bytes > limit) return "queryLimit";
  const capacity = v.f64[SCRATCH_CAPACITY]!;
  if (capacity >= 0 && v.f64[SCRATCH_BYTES]! + bytes > capacity) return "hostFull";
  noteScratch(v, query, get(v, query, F_SCRATCH) + bytes);
  return "taken";
}

/** A file group that keeps books of its own says what it holds now. */
export function noteScratch(v: LedgerView, query: number, bytes: number): void {
  const change = bytes - get(v, query, F_SCRATCH);
  if (change === 0) return;
  put(v, at(query, F_SCRATCH), bytes);
  add(v, SCRATCH_BYTES, change);
  if (v.f64[SCRATCH_BYTES]! > v.f64[SCRATCH_PEAK]!) v.f64[SCRATCH_PEAK] = v.f64[SCRATCH_BYTES]!;
  commit(v);
}

/** S12: the file group is closed and its files are gone. */
export function giveBackScratch(v: LedgerView, query: number): void {
  const bytes = get(v, query, F_SCRATCH);
  put(v, at(query, F_SCRATCH), 0);
  add(v, SCRATCH_BYTES, -bytes);
  commit(v);
}

/** The query that a record belongs to; NONE for the root. */
export function queryOf(v: LedgerView, t: number): number {
  for (let i = t; i !== NONE; i = get(v, i, F_MEM_PARENT)) if (get(v, i, F_KIND) === KIND_QUERY) return i;
  return NONE;
}

/** `fefc7ac1b2d4e6f8:0123456789abcdef` as four numbers; any other text is spread over them by a hash. */
export function queryIdParts(id: string): QueryIdParts {
  const m = /^([0-9a-f]{8})([0-9a-f]{8}):([0-9a-f]{8})([0-9a-f]{8})$/.exec(id);
  if (m === null) return [hash(id, 1), hash(id, 2), hash(id, 3), hash(id, 4)];
  return [hex(m[1]), hex(m[2]), hex(m[3]), hex(m[4])];
}

const hex = (digits: string | undefined): number => Number.parseInt(digits ?? "0", 16);

function hash(text: string, seed: number): number {
  let h = Math.imul(seed, 0x9e3779b1);
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x85ebca6b);
  return h >>> 0;
}

function openBelow(
  v: LedgerView,
  kind: number,
  parent: number,
  memParent: number,
  owner: number,
  limit: MaxBytes,
): number {
  const t = open(v, kind, parent, memParent, owner);
  if (t === NONE) return NONE;
  v.f64[at(t, F_LIMIT)] = limit;
  commit(v);
  return t;
}

/** A zeroed record with its links. Part of a step; fields that a free record does not need are written plainly. */
function open(v: LedgerView, kind: number, parent: number, memParent: number, owner: number): number {
  const w = v.f64;
  const t = takeRecord(v);
  if (t === NONE) return NONE;
  for (let f = F_MEM_PARENT; f < TRACKER_WORDS; f++) w[at(t, f)] = 0;
  w[at(t, F_MEM_PARENT)] = memParent;
  w[at(t, F_OWNER)] = owner;
  w[at(t, F_LIMIT)] = -1;
  w[at(t, F_MEM_LIMIT)] = -1;
  w[at(t, F_PAGES)] = NONE;
  w[at(t, F_SCRATCH_LIMIT)] = -1;
  put(v, at(t, F_PARENT), parent);
  put(v, at(t, F_KIND), kind);
  add(v, at(parent, F_CHILDREN), 1);
  if (memParent !== parent) add(v, at(memParent, F_CHILDREN), 1);
  add(v, TRACKERS_IN_USE, 1);
  return t;
}

function takeRecord(v: LedgerView): number {
  const w = v.f64;
  const free = w[TRACKER_FREE]!;
  if (free !== NONE) {
    put(v, TRACKER_FREE, w[at(free, F_PARENT)]!);
    return free;
  }
  const fresh = w[TRACKER_FRESH]!;
  if (fresh === w[TRACKER_CAPACITY]) return NONE;
  w[at(fresh, F_KIND)] = KIND_FREE;
  put(v, TRACKER_FRESH, fresh + 1);
  return fresh;
}
