/**
 * The life of one fragment instance with a footprint, on one host (memory 2.5, 4, 5):
 *
 *   start: the query's trackers with its minimum in one piece (R16; refused: code 106, R17), opened by the first
 *          of its instances on the host; the operator claims its part
 *   steps: the footprint moves along its profile; what it grows by is reserved, used, and touched in the arena;
 *          a refused reservation is the trigger to spill (O3), or, where it can't, the end with code 7
 *   end:   what was spilled is read back, checked and dropped; everything is given back
 *
 *   NEW --start--> RUNNING --last step--> ENDED
 *                     |---- cancel, failure ----> ENDED   gives everything back itself
 *                     |---- abandon ------------> ENDED   gives nothing back: main does, as after a thread's death
 *                     '---- hold: stands still, RUNNING, until one of the others
 *
 * The thread makes each move; nothing here waits: between two steps the instance is an appointment of its thread.
 */
import { invariant } from "../core/assert.ts";
import { givePages, missingPages, newestPages, takePages } from "../core/memory/arena-pages.ts";
import { claim } from "../core/memory/initial-reservations.ts";
import {
  F_MEM_PARENT,
  F_MEM_PEAK,
  F_PAGE_COUNT,
  F_RESERVATION,
  F_SCRATCH,
  F_USED,
  get,
  type LedgerView,
  NONE,
  PAGE_BYTES,
  SCRATCH_BYTES,
} from "../core/memory/ledger-layout.ts";
import { INCREASE_FAILED, memLimitExceededText, NO_SCRATCH_LIMIT } from "../core/memory/refusal-text.ts";
import {
  allocateFrom,
  decreaseReservation,
  increaseReservationToFit,
  releaseTo,
  unusedOf,
} from "../core/memory/reservation-trackers.ts";
import {
  readTruncated,
  readVerifyFailed,
  scratchAllocationFailed,
  scratchLimitExceeded,
} from "../core/memory/scratch-failures.ts";
import { openClient, openInstance, queryOf, type ScratchAnswer, takeScratch } from "../core/memory/tracker-records.ts";
import { type Bytes, type Instant, MiB } from "../core/units.ts";
import { progressOfPeak, shareOfPeak } from "../workload/footprint.ts";
import { closeWithAll } from "./host-ledger.ts";
import type { FragmentThread, Instance, SharedQuery, ThreadHost } from "./instance.ts";
import { ledgerFull, openQueryOnHost } from "./instance-trackers.ts";
import { CANCELLED_CODE, type FragmentError, type FragmentOrder, type QueryOrder } from "./protocol.ts";
import { hostDirectory, ScratchFile } from "./scratch-space.ts";

/** Steps along the profile, the peak's own in addition. */
const STEPS = 8;
/** Reserved at a time at least, real bytes: most steps then touch only the client's own numbers. */
const QUANTUM = 64 * 1024;
/** A refused growth is tried in halves down to the size of a buffer (O4), as an operator asks for one at a time. */
const SMALLEST_PART = 2 * MiB;
/** Written at a time, real bytes, where an eighth of what is in memory is so much. */
const BLOCK = MiB;

/** Pages written together: where, and the numbers that their stamps are made of, oldest page first. */
interface Block {
  readonly at: number;
  readonly bytes: number;
  readonly pages: readonly number[];
}

interface Peaks {
  readonly peak: Bytes;
  readonly peakOnHost: Bytes;
}

const NO_PEAKS: Peaks = { peak: 0 as Bytes, peakOnHost: 0 as Bytes };
const CANCELLED: FragmentError = { code: CANCELLED_CODE, text: "Cancelled" };

export class FragmentRun implements Instance {
  readonly query: QueryOrder;
  readonly order: FragmentOrder;
  readonly #thread: FragmentThread;
  readonly #host: ThreadHost;
  /** Made when needed: until the minimum is claimed, nothing else is done. */
  #file: ScratchFile | null = null;
  #plan: readonly { readonly progress: number; readonly target: number }[] = [];
  #step = 0;
  #client = NONE;
  #next: { cancel(): void } | null = null;
  #hasEnded = false;
  #isHeld = false;
  #shared: SharedQuery | null = null;

  /** Numbers of the pages in the arena, in the order in which they were touched. */
  readonly #resident: number[] = [];
  readonly #blocks: Block[] = [];
  #pagesMade = 0;
  /** Emulated bytes on disk now, and ever written. */
  #onDisk = 0;
  #spilled = 0;

  constructor(query: QueryOrder, order: FragmentOrder, host: ThreadHost, thread: FragmentThread) {
    this.query = query;
    this.order = order;
    this.#host = host;
    this.#thread = thread;
  }

  start(): void {
    const { ledger, address } = this.#host;
    if (ledger.epoch !== this.order.epoch) {
      this.#thread.ended(this.order.task);
      return;
    }
    this.#shared = this.#host.shared.get(this.query.id) ?? this.#open();
    const opened = ledger.run(openFragment, this.#shared, this.order, this.#thread.lockId, address);
    if (typeof opened !== "number") {
      this.#end(opened);
      return;
    }
    this.#client = opened;
    this.#thread.tell({ kind: "started", task: this.order.task, at: this.#thread.now() });
    this.#plan = planOf(this.query, this.order.peak);
    this.#tellReserved();
    // Whoever starts in the same piece of work claims its minimum before anybody grows, however late the thread is.
    this.#thread.soon(() => this.#advance());
  }

  /** The query, by the first of its instances here. */
  #open(): SharedQuery {
    const { ledger, address, shared } = this.#host;
    const { siblings, minReservation } = this.order;
    const { lockId } = this.#thread;
    const opened = ledger.run(openQueryOnHost, this.query, this.order, lockId, address, minReservation);
    const query = { opened, toClaim: siblings, toEnd: siblings, isAlone: siblings === 1 };
    if (siblings > 1) shared.set(this.query.id, query);
    return query;
  }

  /** The query was cancelled: everything is given back at once. */
  cancel(): void {
    if (!this.#hasEnded) this.#end(CANCELLED);
  }

  hold(): void {
    this.#isHeld = true;
    this.#next?.cancel();
  }

  /** The host is lost: this instance never acts again. What it holds in the ledger is main's to give back. */
  abandon(): void {
    this.#hasEnded = true;
    this.#next?.cancel();
    this.#file?.close();
  }

  /** Does the steps that are due and makes an appointment for the next. */
  #advance(): void {
    if (this.#isHeld) return;
    const { admittedAt, duration } = this.query;
    while (!this.#hasEnded && this.#step < this.#plan.length) {
      const { progress, target } = this.#plan[this.#step]!;
      const due = (admittedAt + progress * duration) as Instant;
      if (due > this.#thread.now()) {
        this.#next = this.#thread.at(due, () => this.#advance());
        return;
      }
      this.#step++;
      this.#guarded(() => this.#moveTo(target));
    }
    if (this.#hasEnded) return;
    this.#guarded(() => this.#drainDisk());
    if (!this.#hasEnded) this.#end(null);
  }

  #guarded(act: () => FragmentError | null): void {
    const error = act();
    if (error !== null) this.#end(error);
  }

  /** Brings memory and disk together to `target` bytes. */
  #moveTo(target: number): FragmentError | null {
    const { ledger } = this.#host;
    const used = ledger.run(get, this.#client, F_USED);
    const change = target - this.#onDisk - used;
    if (change === 0) return null;
    let error: FragmentError | null = null;
    if (change > 0) error = this.#grow(change);
    else {
      ledger.run(shrink, this.#client, Math.min(used, -change), this.order.claim);
      this.#forgetPages();
      error = this.#readBack(Math.min(this.#onDisk, Math.max(0, -change - used)));
    }
    if (error === null) this.#tellReserved();
    return error;
  }

  #grow(bytes: number): FragmentError | null {
    const quantum = Math.ceil(QUANTUM * this.#scale);
    for (let left = bytes; left > 0; ) {
      const piece = Math.min(left, Math.max(quantum, Math.ceil(bytes / STEPS)));
      const got = this.#use(piece);
      if (got === 0) {
        const error = this.#makeRoom(piece);
        if (error !== null) return error;
      }
      left -= got;
    }
    return null;
  }

  /** Reserves, uses and touches up to `bytes`; 0: refused, and nothing unused is left either. */
  #use(bytes: number): number {
    const { ledger } = this.#host;
    const denied = this.#thread.denies(this.query, this.order);
    const got = ledger.run(denied ? useUnused : useMore, this.#client, bytes);
    if (got > 0) this.#touchMissing();
    return got;
  }

  /** O3: the refusal is the trigger. Writes at least a block, or all there is; fails with the product's texts. */
  #makeRoom(bytes: number): FragmentError | null {
    const { ledger, address } = this.#host;
    const { spillable, scratchLimit } = this.query;
    const used = ledger.run(get, this.#client, F_USED);
    if (!spillable || scratchLimit === 0 || used === 0) {
      const why = spillable && scratchLimit === 0 ? NO_SCRATCH_LIMIT : INCREASE_FAILED;
      return { code: 7, text: ledger.run(memLimitExceededText, this.#client, bytes, address, why) };
    }
    const block = Math.min(Math.ceil(BLOCK * this.#scale), Math.ceil(used / STEPS));
    return this.#spill(Math.min(used, Math.max(bytes, block)));
  }

  /** B4: used falls, the reservation stays. Newest pages go first (B10). */
  #spill(bytes: number): FragmentError | null {
    const { ledger, arena, address } = this.#host;
    const refused = ledger.run(takeScratchFor, this.#client, bytes);
    if (refused === "queryLimit") return scratchLimitExceeded(this.query.scratchLimit, address);
    if (refused === "hostFull") return this.#scratchFailed([this.#directory], []);
    const count = this.#pagesOver(bytes);
    const pages = new Int32Array(count);
    ledger.run(newestPages, this.#client, pages);
    pages.reverse();
    const numbers = this.#resident.splice(this.#resident.length - count, count);
    for (let i = 0; i < count; i++) {
      const stamp = this.#stampOf(numbers[i]!);
      invariant(arena.carries(pages[i]!, stamp), "a page in use is written by its owner only");
      arena.fill(pages[i]!, stamp);
    }
    let at: number;
    try {
      at = this.#openFile().write(arena.views(pages));
    } catch (error) {
      return this.#scratchFailed([], [String(error)]);
    }
    this.#blocks.push({ at, bytes, pages: numbers });
    ledger.run(letGo, this.#client, count, bytes);
    this.#onDisk += bytes;
    this.#spilled += bytes;
    this.#thread.tell({ kind: "spilled", task: this.order.task, bytes: bytes as Bytes });
    return null;
  }

  #openFile(): ScratchFile {
    this.#file ??= new ScratchFile(this.#thread.scratch, this.#host.address, `${this.query.id}.${this.order.instance}`);
    return this.#file;
  }

  #scratchFailed(atCapacity: readonly string[], earlier: readonly string[]): FragmentError {
    const { ledger, address: backend } = this.#host;
    const bytes = ledger.run(scratchBytes, this.#client);
    return scratchAllocationFailed({ directories: [this.#directory], backend, ...bytes, atCapacity, earlier });
  }

  get #directory(): string {
    return hostDirectory(this.#thread.scratch, this.#host.address);
  }

  /** The output is read: what is in memory goes first, then block after block comes back, is checked and dropped. */
  #drainDisk(): FragmentError | null {
    if (this.#onDisk === 0) return null;
    const { ledger } = this.#host;
    ledger.run(shrink, this.#client, ledger.run(get, this.#client, F_USED), this.order.claim);
    this.#forgetPages();
    return this.#readBack(this.#onDisk);
  }

  /** At least `bytes` come back from disk, newest block first. */
  #readBack(bytes: number): FragmentError | null {
    for (let left = bytes; left > 0; ) {
      const block = this.#blocks.pop();
      if (block === undefined) return null;
      const error = this.#readBlock(block);
      if (error !== null) return error;
      this.#onDisk -= block.bytes;
      left -= block.bytes;
    }
    return null;
  }

  /** As many pages at a time as the reservation has room for; a page that never fits comes through a buffer beside it. */
  #readBlock(block: Block): FragmentError | null {
    const { ledger, arena, address } = this.#host;
    const pageSize = arena.pageSize;
    const file = this.#openFile();
    for (let done = 0; done < block.pages.length; ) {
      const wanted = Math.ceil((block.pages.length - done) * pageSize * this.#scale);
      const got = ledger.run(useMore, this.#client, wanted);
      const room = Math.min(block.pages.length - done, ledger.run(missingPages, this.#client));
      const pages = new Int32Array(room);
      if (room > 0) ledger.run(takePages, this.#client, pages);
      const offset = block.at + done * pageSize;
      const beside = room > 0 ? null : new Uint8Array(pageSize);
      const views = beside === null ? arena.views(pages) : [beside];
      const count = Math.max(1, room);
      const place = { file: file.path, backend: address };
      const read = file.read(views, offset);
      if (read < count * pageSize) return readTruncated({ ...place, bytes: count * pageSize, offset }, read);
      for (let i = 0; i < count; i++) {
        const stamp = this.#stampOf(block.pages[done + i]!);
        const same = beside === null ? arena.holds(pages[i]!, stamp) : arena.matches(beside, stamp);
        if (!same) return readVerifyFailed({ ...place, bytes: pageSize, offset: offset + i * pageSize });
      }
      ledger.run(letGo, this.#client, room, got);
      done += count;
    }
    return null;
  }

  /** Touches the pages that now stand behind what is used. */
  #touchMissing(): void {
    const { ledger, arena } = this.#host;
    const missing = ledger.run(missingPages, this.#client);
    if (missing <= 0) return;
    const pages = new Int32Array(missing);
    ledger.run(takePages, this.#client, pages);
    // The list's head is the newest page, so the last in `pages` gets the lowest number.
    for (let i = missing - 1; i >= 0; i--) {
      arena.touch(pages[i]!, this.#stampOf(this.#pagesMade));
      this.#resident.push(this.#pagesMade++);
    }
  }

  /** After a shrink: the ledger has the newest pages back. */
  #forgetPages(): void {
    const { ledger } = this.#host;
    this.#resident.length = ledger.run(pageCountOf, this.#client);
  }

  /** How many pages must leave with `bytes`, so that what stays is backed by no more than it uses. */
  #pagesOver(bytes: number): number {
    return this.#host.ledger.run(pagesOver, this.#client, bytes);
  }

  /** Emulated bytes behind a real one. */
  get #scale(): number {
    return this.#host.ledger.view.f64[PAGE_BYTES]! / this.#host.arena.pageSize;
  }

  /** Different for every page of every instance of a run; exact in a double. */
  #stampOf(page: number): number {
    return this.order.task * 2 ** 22 + page;
  }

  /** On a wide schedule only the ends of a growth are told: hundreds of hosts would flood whoever listens. */
  #tellReserved(): void {
    const isEnd = this.#step <= 1 || this.#step >= this.#plan.length;
    if (!this.query.tellsSteps && !isEnd) return;
    const { ledger } = this.#host;
    const reservation = ledger.run(get, this.#client, F_RESERVATION) as Bytes;
    const used = ledger.run(get, this.#client, F_USED) as Bytes;
    this.#thread.tell({ kind: "reserved", task: this.order.task, reservation, used });
  }

  #end(error: FragmentError | null): void {
    this.#hasEnded = true;
    this.#next?.cancel();
    this.#file?.remove();
    const { ledger, shared } = this.#host;
    const peaks = this.#shared === null ? NO_PEAKS : ledger.run(closeFragment, this.#client, this.#shared);
    if (this.#shared?.toEnd === 0) shared.delete(this.query.id);
    this.#client = NONE;
    const { task } = this.order;
    const at = this.#thread.now();
    const spilled = this.#spilled as Bytes;
    this.#thread.tell({ kind: "finished", task, at, ...peaks, spilled, output: null, error });
    this.#thread.ended(task);
  }
}

/** Where the footprint is to be at which part of the duration; whole bytes, the peak never missed. */
function planOf(query: QueryOrder, peak: number): { progress: number; target: number }[] {
  const at = Array.from({ length: STEPS + 1 }, (_, i) => i / STEPS);
  const progress = [...new Set([...at, progressOfPeak(query.profile)])].sort((a, b) => a - b);
  return progress.map((p) => ({ progress: p, target: Math.trunc(shareOfPeak(query.profile, p) * peak) }));
}

/** R19: the client that has claimed its part of the minimum, or why there is none. */
function openFragment(
  v: LedgerView,
  shared: SharedQuery,
  order: FragmentOrder,
  owner: number,
  address: string,
): number | FragmentError {
  const { opened } = shared;
  shared.toClaim--;
  if ("code" in opened) return opened;
  const client = openInstanceAndClient(v, opened.query, order.instance, owner);
  if (client !== NONE) claim(v, opened.unclaimed, client, order.claim);
  // Nothing is left to claim: an empty record would only be carried along.
  if (shared.toClaim === 0) closeWithAll(v, opened.unclaimed);
  return client === NONE ? ledgerFull(address) : client;
}

function openInstanceAndClient(v: LedgerView, query: number, number: number, owner: number): number {
  const instance = openInstance(v, query, number, owner);
  if (instance === NONE) return NONE;
  const client = openClient(v, instance, 0, -1, owner);
  if (client === NONE) closeWithAll(v, instance);
  return client;
}

/** R22. The last of the query's instances closes the query. */
function closeFragment(v: LedgerView, client: number, shared: SharedQuery): Peaks {
  const { opened, isAlone } = shared;
  shared.toEnd--;
  const instance = client === NONE ? NONE : get(v, client, F_MEM_PARENT);
  if ("code" in opened) return NO_PEAKS;
  const peakOnHost = get(v, opened.query, F_MEM_PEAK) as Bytes;
  const peak = isAlone ? peakOnHost : instance === NONE ? NO_PEAKS.peak : (get(v, instance, F_MEM_PEAK) as Bytes);
  for (const t of [client, instance]) if (t !== NONE) closeWithAll(v, t);
  if (shared.toEnd === 0) closeWithAll(v, opened.query);
  return { peak, peakOnHost };
}

/** Uses `bytes` if they are reserved or can be; else the largest part that is granted; else what is unused. */
function useMore(v: LedgerView, client: number, bytes: number): number {
  for (let part = bytes; ; part = Math.ceil(part / 2)) {
    if (increaseReservationToFit(v, client, part)) {
      allocateFrom(v, client, part);
      return part;
    }
    if (part <= SMALLEST_PART) return useUnused(v, client, bytes);
  }
}

function useUnused(v: LedgerView, client: number, bytes: number): number {
  const got = Math.min(bytes, unusedOf(v, client));
  if (got > 0) allocateFrom(v, client, got);
  return got;
}

/** Uses `bytes` less, gives their pages back, and the reservation down to the minimum (R21). */
function shrink(v: LedgerView, client: number, bytes: number, minimum: number): void {
  letGo(v, client, pagesOver(v, client, bytes), bytes);
  const excess = Math.min(unusedOf(v, client), get(v, client, F_RESERVATION) - minimum);
  if (excess > 0) decreaseReservation(v, client, excess);
}

function letGo(v: LedgerView, client: number, pages: number, bytes: number): void {
  givePages(v, client, pages);
  if (bytes > 0) releaseTo(v, client, bytes);
}

function pagesOver(v: LedgerView, client: number, bytes: number): number {
  const kept = Math.floor((get(v, client, F_USED) - bytes) / v.f64[PAGE_BYTES]!);
  return Math.max(0, pageCountOf(v, client) - kept);
}

const pageCountOf = (v: LedgerView, client: number): number => get(v, client, F_PAGE_COUNT);

const takeScratchFor = (v: LedgerView, client: number, bytes: number): ScratchAnswer =>
  takeScratch(v, queryOf(v, client), bytes);

const scratchBytes = (v: LedgerView, client: number): { hostBytes: number; queryBytes: number } => ({
  hostBytes: v.f64[SCRATCH_BYTES]!,
  queryBytes: get(v, queryOf(v, client), F_SCRATCH),
});
