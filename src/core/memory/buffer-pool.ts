/**
 * One operator's pages and buffers (memory 3.1 to 3.3): what is pinned, what may go to disk, what is there.
 *
 *              createPage
 *                  |
 *               PINNED <------------ pin (no I/O) -----------+
 *                  | unpin (last pin)                        |
 *                DIRTY ----- write started ---> IN_FLIGHT ---+  (pin waits for the write)
 *                                                   | written|
 *                                                 CLEAN -----+  (pin takes the buffer back, drops the disk copy)
 *                                                   | buffer taken by another allocation
 *                                                EVICTED ------ pin: new buffer + read ---> PINNED
 *
 * Only this client moves its pages, save CLEAN -> EVICTED: that happens in the allocator, by any client of the
 * host, and is noticed when the page is asked for (its ticket is gone).
 *
 * Must keep at every return (B7, I7):
 *
 *     used        = allocated buffers + pins x length
 *     reservation >= allocated + pinned + dirty + in flight
 *
 * Writing is eager, waiting is lazy (B10): every unpin and every finished write starts further writes, the most
 * recently unpinned page first; a caller blocks only where its next allocation would break B7 (B8).
 */
import { fail, invariant } from "../assert.ts";
import type { BufferAllocator } from "./buffer-allocator.ts";
import { OperatorFailure } from "./operator-failure.ts";
import type { DiskRange, Failure, PageStore, Written } from "./page-store.ts";
import { type ReservationClient, unusedOf } from "./reservation-client.ts";

export type PageState = "pinned" | "dirty" | "inFlight" | "clean" | "evicted";

/** A buffer that may be unpinned. Fields are the pool's; holders read `address` of a pinned page. */
export interface Page {
  readonly id: number;
  readonly bytes: number;
  state: PageState;
  /** Where it lies while it has a buffer, else -1. */
  address: number;
  pins: number;
  /** The disk copy, in CLEAN and EVICTED only. */
  range: DiskRange | null;
  /** What the allocator knows the clean buffer by. */
  ticket: number;
  /** Of the contents as written. */
  checksum: number;
  /** A read was started and nobody has looked yet. */
  reading: boolean;
}

/** Memory 3.5; bytes and counts. */
export interface BufferPoolCounters {
  peakReservation: number;
  peakUsedReservation: number;
  peakUnpinnedBytes: number;
  cumulativeAllocations: number;
  cumulativeAllocationBytes: number;
  readIoOps: number;
  readIoBytes: number;
  writeIoOps: number;
  /** As written, i.e. after compression. */
  writeIoBytes: number;
}

export interface BufferPoolClientOptions {
  readonly allocator: BufferAllocator;
  readonly reservation: ReservationClient;
  /** null: no file group, unpinning is forbidden (B1). */
  readonly store: PageStore | null;
  /** Who the buffers belong to, in the allocator's books: one number per task, so that a dead one's come back. */
  readonly owner: number;
  /** Over the bytes of the arena; 0 is a value like any other. */
  readonly checksum: (address: number, bytes: number) => number;
}

export class BufferPoolClient {
  readonly reservation: ReservationClient;
  readonly counters: BufferPoolCounters = {
    peakReservation: 0,
    peakUsedReservation: 0,
    peakUnpinnedBytes: 0,
    cumulativeAllocations: 0,
    cumulativeAllocationBytes: 0,
    readIoOps: 0,
    readIoBytes: 0,
    writeIoOps: 0,
    writeIoBytes: 0,
  };
  readonly #allocator: BufferAllocator;
  readonly #store: PageStore | null;
  readonly #owner: number;
  readonly #checksum: (address: number, bytes: number) => number;
  readonly #pages = new Map<number, Page>();
  readonly #dirty: Page[] = [];
  #nextPage = 1;
  #allocatedBytes = 0;
  #pinnedBytes = 0;
  #dirtyBytes = 0;
  #inFlightBytes = 0;
  #inFlightCount = 0;
  /** Bytes in pages that are not pinned, wherever they are. */
  #unpinnedBytes = 0;
  #writeFailure: Failure | null = null;

  constructor(options: BufferPoolClientOptions) {
    this.#allocator = options.allocator;
    this.reservation = options.reservation;
    this.#store = options.store;
    this.#owner = options.owner;
    this.#checksum = options.checksum;
  }

  /** A page of a power of two bytes, pinned once. The caller has the reservation for it unused. */
  createPage(bytes: number): Page {
    const address = this.#take(bytes);
    const page: Page = {
      id: this.#nextPage++,
      bytes,
      state: "pinned",
      address,
      pins: 1,
      range: null,
      ticket: 0,
      checksum: 0,
      reading: false,
    };
    this.#pages.set(page.id, page);
    this.#pinnedBytes += bytes;
    return page;
  }

  /** A buffer that never leaves memory. Returns its address. */
  allocateBuffer(bytes: number): number {
    const address = this.#take(bytes);
    this.#allocatedBytes += bytes;
    return address;
  }

  freeBuffer(address: number, bytes: number): void {
    invariant(this.#allocatedBytes >= bytes, "I7 a buffer that is freed was allocated");
    this.#allocator.free(address);
    this.#allocatedBytes -= bytes;
    this.reservation.releaseUsed(bytes);
    this.#advance();
  }

  /** One pin more. The caller has the reservation for it unused. */
  pin(page: Page): void {
    if (page.state === "inFlight") this.#waitUntilWritten(page);
    if (page.state === "clean" || page.state === "evicted") this.#bringBack(page);
    else {
      // Dirty to pinned changes no sum of B7; a second pin uses promise that dirty pages may sit on.
      if (page.state === "dirty") this.#leaveDirty(page);
      else this.#cleanPages(page.bytes);
      this.reservation.allocate(page.bytes);
      this.#notePeaks();
    }
    if (page.pins === 0) this.#unpinnedBytes -= page.bytes;
    page.state = "pinned";
    page.pins++;
    this.#pinnedBytes += page.bytes;
  }

  /** One pin less: `used` falls at once, the reservation stays (B4). */
  unpin(page: Page): void {
    const store = this.#store ?? fail("B1 a client without a file group never unpins");
    invariant(page.state === "pinned" && page.pins > 0, "only a pinned page is unpinned");
    this.#finishReading(page);
    page.pins--;
    this.#pinnedBytes -= page.bytes;
    this.reservation.releaseUsed(page.bytes);
    if (page.pins > 0) return;
    page.state = "dirty";
    this.#dirty.push(page);
    this.#dirtyBytes += page.bytes;
    this.#unpinnedBytes += page.bytes;
    this.counters.peakUnpinnedBytes = Math.max(this.counters.peakUnpinnedBytes, this.#unpinnedBytes);
    this.#advance();
    this.#startWrites(0, store);
  }

  /** Address of a pinned page's contents; blocks while they are read (B5). */
  addressOf(page: Page): number {
    invariant(page.state === "pinned", "only a pinned page has an address to work on");
    this.#finishReading(page);
    return page.address;
  }

  /** B6: whatever the page's state, its buffer and its disk copy are given back. */
  destroyPage(page: Page): void {
    while (page.state === "inFlight") this.#written(this.#store!.waitForWritten());
    if (page.state === "pinned") {
      if (page.reading) this.#store!.finishRead(page.id);
      this.#pinnedBytes -= page.bytes * page.pins;
      this.reservation.releaseUsed(page.bytes * page.pins);
      this.#allocator.free(page.address);
    } else if (page.state === "dirty") {
      this.#leaveDirty(page);
      this.#allocator.free(page.address);
    } else if (page.state === "clean") {
      this.#allocator.dropClean(page.address, page.ticket);
    }
    if (page.pins === 0) this.#unpinnedBytes -= page.bytes;
    this.#dropDiskCopy(page);
    this.#pages.delete(page.id);
    this.#advance();
  }

  /** B6: the page becomes a plain buffer of the same length at the same place. Returns its address. */
  extractBuffer(page: Page): number {
    invariant(page.state === "pinned" && page.pins === 1, "B6 only a page pinned once is extracted");
    this.#finishReading(page);
    this.#pages.delete(page.id);
    this.#pinnedBytes -= page.bytes;
    this.#allocatedBytes += page.bytes;
    return page.address;
  }

  /** R2 behind B9: a promise leaves only when the dirty pages fit in what is left. */
  decreaseReservation(bytes: number): void {
    this.#cleanPages(bytes);
    this.reservation.decrease(bytes);
  }

  /** R4 behind B9. */
  transferReservation(to: ReservationClient, bytes: number): boolean {
    this.#cleanPages(bytes);
    return this.reservation.transferTo(to, bytes);
  }

  /** R21: down to `minimum`, as far as nothing in use forbids it. */
  releaseUnusedAbove(minimum: number): void {
    const surplus = Math.min(unusedOf(this.reservation), this.reservation.reservation - minimum);
    if (surplus > 0) this.decreaseReservation(surplus);
  }

  /** Everything back, whatever state it is in: the operator is done, has failed or was cancelled. */
  close(): void {
    // Dirty ones first: a finished write would otherwise start the next, for nobody.
    for (const page of [...this.#dirty]) this.destroyPage(page);
    for (const page of [...this.#pages.values()]) this.destroyPage(page);
    invariant(this.#allocatedBytes === 0, "I7 buffers are freed before their client closes");
    invariant(this.reservation.used === 0, "I7 nothing is used when a client closes");
  }

  /** B12: what a background write met, for callers that look before they go on. */
  get writeFailure(): Failure | null {
    return this.#writeFailure;
  }

  /** The sums of I7, for checks and stories. */
  snapshot(): ClientSnapshot {
    const pages = [...this.#pages.values()].map((page): PageSnapshot => {
      const evicted = page.state === "clean" && !this.#allocator.holdsClean(page.address, page.ticket);
      return {
        id: page.id,
        bytes: page.bytes,
        state: evicted ? "evicted" : page.state,
        address: evicted || page.state === "evicted" ? -1 : page.address,
        pins: page.pins,
        range: page.range,
        checksum: page.checksum,
      };
    });
    return {
      label: this.reservation.label,
      owner: this.#owner,
      reservation: this.reservation.reservation,
      used: this.reservation.used,
      child: this.reservation.child,
      allocated: this.#allocatedBytes,
      pinned: this.#pinnedBytes,
      dirty: this.#dirtyBytes,
      inFlight: this.#inFlightBytes,
      failed: this.#writeFailure !== null,
      pages,
    };
  }

  /** Makes room (B8), moves reservation to used, and finds a buffer. */
  #take(bytes: number): number {
    this.#cleanPages(bytes);
    this.reservation.allocate(bytes);
    this.counters.cumulativeAllocations++;
    this.counters.cumulativeAllocationBytes += bytes;
    this.#notePeaks();
    return this.#allocator.allocate(bytes, this.#owner);
  }

  #bringBack(page: Page): void {
    this.#cleanPages(page.bytes);
    if (page.state === "clean" && this.#allocator.reclaim(page.address, page.ticket)) {
      this.reservation.allocate(page.bytes);
      this.#notePeaks();
      this.#dropDiskCopy(page);
      return;
    }
    page.state = "evicted";
    const range = page.range ?? fail("I10 an evicted page has a disk copy");
    page.address = this.#take(page.bytes);
    page.reading = true;
    this.#store!.startRead(page.id, range, page.address, page.bytes);
    this.counters.readIoOps++;
    this.counters.readIoBytes += range.stored;
  }

  #finishReading(page: Page): void {
    if (!page.reading) return;
    page.reading = false;
    const store = this.#store!;
    const failure = store.finishRead(page.id);
    if (failure !== null) throw new OperatorFailure(failure);
    if (this.#checksum(page.address, page.bytes) !== page.checksum)
      throw new OperatorFailure(store.unverified(page.range!));
    this.#dropDiskCopy(page);
  }

  /** B5: after a read, and after a clean page came back, the next unpin writes to a new range. */
  #dropDiskCopy(page: Page): void {
    if (page.range !== null) this.#store!.free(page.range);
    page.range = null;
  }

  /**
   * B8: dirty and in-flight pages may keep what is left of the promise once `bytes` more are taken from it.
   * Also run before a promise leaves the client (B9).
   */
  #cleanPages(bytes: number): void {
    this.#advance();
    this.#throwWriteFailure();
    const room = this.reservation.reservation - this.#allocatedBytes - this.#pinnedBytes - bytes;
    invariant(room >= 0 && unusedOf(this.reservation) >= bytes, "B7 the reservation covers what is taken from it");
    if (this.#dirtyBytes + this.#inFlightBytes <= room) return;
    const store = this.#store!;
    this.#startWrites(this.#dirtyBytes - room, store);
    while (this.#dirtyBytes + this.#inFlightBytes > room) {
      this.#written(store.waitForWritten());
      this.#throwWriteFailure();
    }
  }

  #waitUntilWritten(page: Page): void {
    while (page.state === "inFlight") this.#written(this.#store!.waitForWritten());
    this.#throwWriteFailure();
  }

  /** Takes note of finished writes; each makes room for another to start. */
  #advance(): void {
    if (this.#inFlightCount === 0) return;
    const store = this.#store!;
    for (let done = store.takeWritten(); done !== null; done = store.takeWritten()) this.#written(done);
  }

  /** B10: the last unpinned first, at least `atLeast` bytes, else as many as may be in flight. */
  #startWrites(atLeast: number, store: PageStore): void {
    let started = 0;
    while (this.#dirty.length > 0 && this.#writeFailure === null) {
      if (this.#inFlightCount >= store.maxInFlight && started >= atLeast) return;
      const page = this.#dirty.pop()!;
      page.state = "inFlight";
      page.checksum = this.#checksum(page.address, page.bytes);
      this.#dirtyBytes -= page.bytes;
      this.#inFlightBytes += page.bytes;
      this.#inFlightCount++;
      started += page.bytes;
      store.startWrite(page.id, page.address, page.bytes);
    }
  }

  /** B12: a page whose write failed counts as clean too, so that its buffer can be used; the query is over. */
  #written(done: Written): void {
    const page = this.#pages.get(done.page) ?? fail("I10 a finished write belongs to a page");
    invariant(page.state === "inFlight", "I10 a finished write belongs to a page in flight");
    this.#inFlightBytes -= page.bytes;
    this.#inFlightCount--;
    if (done.failure !== null) this.#writeFailure ??= done.failure;
    else {
      page.range = done.range;
      this.counters.writeIoOps++;
      this.counters.writeIoBytes += done.range.stored;
    }
    page.state = "clean";
    page.ticket = this.#allocator.addClean(page.address);
    this.#startWrites(0, this.#store!);
  }

  #throwWriteFailure(): void {
    if (this.#writeFailure !== null) throw new OperatorFailure(this.#writeFailure);
  }

  #leaveDirty(page: Page): void {
    this.#dirty.splice(this.#dirty.lastIndexOf(page), 1);
    this.#dirtyBytes -= page.bytes;
  }

  #notePeaks(): void {
    const c = this.counters;
    c.peakReservation = Math.max(c.peakReservation, this.reservation.reservation);
    c.peakUsedReservation = Math.max(c.peakUsedReservation, this.reservation.used);
  }
}

export interface PageSnapshot {
  readonly id: number;
  readonly bytes: number;
  readonly state: PageState;
  readonly address: number;
  readonly pins: number;
  readonly range: DiskRange | null;
  readonly checksum: number;
}

export interface ClientSnapshot {
  readonly label: string;
  readonly owner: number;
  readonly reservation: number;
  readonly used: number;
  readonly child: number;
  readonly allocated: number;
  readonly pinned: number;
  readonly dirty: number;
  readonly inFlight: number;
  /** A write failed (B12): pages without a disk copy may be called clean. */
  readonly failed: boolean;
  readonly pages: readonly PageSnapshot[];
}
