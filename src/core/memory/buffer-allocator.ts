/**
 * Where the buffers of one host's pool lie, and who has them (memory 3.3 B11, B13, 3.4).
 *
 * Its state is a view of 32-bit words, so that the threads of one host share it and a snapshot is a copy.
 * It must keep, at every release of the lock (I8, I9):
 *
 *     in use + free + clean + system remaining = limit         all four >= 0, clean <= its limit
 *     every buffer is in exactly one place                     its size a power of two >= the smallest
 *
 * With "reservation >= buffers held" (B7) an allocation under a valid reservation always finds memory; one
 * that doesn't is a broken account and stops the run.
 *
 *   words      what                                       written by
 *   0          lock, belongs to whoever gives `PoolLock`   the lock
 *   1..9       totals, in units of the smallest buffer     the lock's holder, plain
 *   16..       per size class: first free, first clean, last clean (unit index or NONE)
 *   128..      per unit, meaningful at a buffer's first unit: state, class, owner, ticket, previous, next
 *
 * A buffer:
 *            fresh                 free()                     addClean()
 *   SYSTEM ---------> IN_USE <--------------> FREE     IN_USE ----------> CLEAN
 *     ^                         from the list             ^  reclaim()     |
 *     |                                                   +----------------+--> IN_USE of another (oldest first)
 *     +---- scavenge: FREE, then CLEAN, when no buffer of the right size is left
 *
 * A clean buffer still belongs to a page that may want it back; the page knows it by its ticket. When the
 * ticket is gone, somebody else has taken the buffer: the page is evicted.
 */
import { fail, invariant } from "../assert.ts";

/** Taken around every change; a single thread passes `NO_LOCK`. */
export interface PoolLock {
  take(): void;
  release(): void;
}

export const NO_LOCK: PoolLock = { take: () => undefined, release: () => undefined };

export interface BufferAllocatorOptions {
  /** Smallest buffer, a power of two (`--min_buffer_size`). */
  readonly minBufferBytes: number;
  /** Multiple of the smallest buffer (`--buffer_pool_limit`, R13). */
  readonly limitBytes: number;
  /** `--buffer_pool_clean_pages_limit`. */
  readonly cleanLimitBytes: number;
  /** Where the pool's part of the arena begins. */
  readonly baseAddress: number;
  /** Length of that part, >= limitBytes. Room above the limit is only touched when holes don't fit a buffer. */
  readonly addressBytes: number;
}

const LIMIT = 1;
const SYSTEM = 2;
const IN_USE = 3;
const FREE = 4;
const CLEAN = 5;
const CLEAN_LIMIT = 6;
const TICKET = 7;
/** Units below this one have been handed out at least once. */
const FRONTIER = 8;
const ADDRESS_UNITS = 9;
const CLASSES = 16;
const CLASS_WORDS = 3;
const CLASS_COUNT = 32;
const UNITS = 128;
const UNIT_WORDS = 6;

const FIRST_FREE = 0;
const FIRST_CLEAN = 1;
const LAST_CLEAN = 2;

const STATE = 0;
const CLASS = 1;
const OWNER = 2;
const TICKET_OF = 3;
const PREVIOUS = 4;
const NEXT = 5;

const NONE = -1;
const STATE_SYSTEM = 0;
const STATE_IN_USE = 1;
const STATE_FREE = 2;
const STATE_CLEAN = 3;

/** Bytes of state for a pool of this size. */
export const allocatorStateBytes = (o: BufferAllocatorOptions): number =>
  4 * (UNITS + UNIT_WORDS * (o.addressBytes / o.minBufferBytes));

/** Where an allocation found its memory (memory 3.4). */
export type BufferSource = "freeList" | "fresh" | "cleanPage" | "scavenged";

export interface AllocatorSnapshot {
  readonly limit: number;
  readonly systemRemaining: number;
  readonly inUse: number;
  readonly free: number;
  readonly clean: number;
  readonly cleanLimit: number;
  /** Bytes of the arena that were handed out at least once: what the pool can have made resident. */
  readonly touched: number;
  readonly buffers: readonly BufferSnapshot[];
}

export interface BufferSnapshot {
  readonly address: number;
  readonly bytes: number;
  readonly place: "inUse" | "free" | "clean";
  readonly owner: number;
  readonly ticket: number;
}

export class BufferAllocator {
  readonly #words: Int32Array;
  readonly #lock: PoolLock;
  readonly #unitBytes: number;
  readonly #base: number;
  lastSource: BufferSource = "fresh";

  /** Joins the state in `words`; the first to come initialises it with `BufferAllocator.format`. */
  constructor(words: Int32Array, options: BufferAllocatorOptions, lock: PoolLock) {
    this.#words = words;
    this.#lock = lock;
    this.#unitBytes = options.minBufferBytes;
    this.#base = options.baseAddress;
  }

  static format(words: Int32Array, o: BufferAllocatorOptions): void {
    invariant(isPowerOfTwo(o.minBufferBytes), "I9 the smallest buffer is a power of two");
    invariant(o.limitBytes % o.minBufferBytes === 0, "R13 the pool limit is a multiple of the smallest buffer");
    invariant(o.addressBytes >= o.limitBytes, "the arena is at least as long as the pool limit");
    words.fill(0);
    words[LIMIT] = o.limitBytes / o.minBufferBytes;
    words[SYSTEM] = words[LIMIT];
    words[CLEAN_LIMIT] = Math.floor(o.cleanLimitBytes / o.minBufferBytes);
    words[ADDRESS_UNITS] = Math.floor(o.addressBytes / o.minBufferBytes);
    words.fill(NONE, CLASSES, CLASSES + CLASS_WORDS * CLASS_COUNT);
  }

  get limitBytes(): number {
    return this.#words[LIMIT]! * this.#unitBytes;
  }

  get minBufferBytes(): number {
    return this.#unitBytes;
  }

  /** Address of a buffer of exactly `bytes`, a power of two that the owner's reservation covers. */
  allocate(bytes: number, owner: number): number {
    this.#lock.take();
    try {
      const unit = this.#find(this.#classOf(bytes));
      this.#set(unit, OWNER, owner);
      return this.#addressOf(unit);
    } finally {
      this.#lock.release();
    }
  }

  free(address: number): void {
    this.#lock.take();
    try {
      const unit = this.#unitAt(address);
      invariant(this.#get(unit, STATE) === STATE_IN_USE, "I9 only a buffer in use is freed");
      this.#move(unit, STATE_FREE);
    } finally {
      this.#lock.release();
    }
  }

  /** The buffer's contents are on disk: others may take it from now on. Returns the page's ticket. */
  addClean(address: number): number {
    this.#lock.take();
    try {
      const unit = this.#unitAt(address);
      invariant(this.#get(unit, STATE) === STATE_IN_USE, "I9 only a buffer in use becomes clean");
      return this.#keepOrDropClean(unit);
    } finally {
      this.#lock.release();
    }
  }

  /** Takes a clean page's buffer back; false when it has gone to somebody else (the page is evicted). */
  reclaim(address: number, ticket: number): boolean {
    return this.#leaveClean(address, ticket, STATE_IN_USE);
  }

  /** The page is destroyed, its buffer needn't be kept; false when it has gone already. */
  dropClean(address: number, ticket: number): boolean {
    return this.#leaveClean(address, ticket, STATE_FREE);
  }

  /** For pages that are asked about from outside (snapshots): still in its buffer? */
  holdsClean(address: number, ticket: number): boolean {
    const unit = this.#unitAt(address);
    return this.#get(unit, STATE) === STATE_CLEAN && this.#get(unit, TICKET_OF) === ticket;
  }

  /** Everything an owner had, in use or clean, goes to the free lists: it finished badly or its thread died. */
  releaseAllOf(owner: number): number {
    this.#lock.take();
    try {
      let released = 0;
      for (const unit of this.#eachBuffer()) {
        const state = this.#get(unit, STATE);
        if (this.#get(unit, OWNER) !== owner || (state !== STATE_IN_USE && state !== STATE_CLEAN)) continue;
        if (state === STATE_CLEAN) this.#unlinkClean(unit);
        released += this.#unitsOf(unit) * this.#unitBytes;
        this.#move(unit, STATE_FREE);
      }
      return released;
    } finally {
      this.#lock.release();
    }
  }

  snapshot(): AllocatorSnapshot {
    this.#lock.take();
    try {
      const w = this.#words;
      const size = this.#unitBytes;
      const buffers = [...this.#eachBuffer()].map((unit): BufferSnapshot => {
        const state = this.#get(unit, STATE);
        return {
          address: this.#addressOf(unit),
          bytes: this.#unitsOf(unit) * size,
          place: state === STATE_IN_USE ? "inUse" : state === STATE_FREE ? "free" : "clean",
          owner: this.#get(unit, OWNER),
          ticket: this.#get(unit, TICKET_OF),
        };
      });
      return {
        limit: w[LIMIT]! * size,
        systemRemaining: w[SYSTEM]! * size,
        inUse: w[IN_USE]! * size,
        free: w[FREE]! * size,
        clean: w[CLEAN]! * size,
        cleanLimit: w[CLEAN_LIMIT]! * size,
        touched: w[FRONTIER]! * size,
        buffers,
      };
    } finally {
      this.#lock.release();
    }
  }

  /** Memory 3.4 in its order: free list, fresh memory, oldest clean page of this size, other sizes, a bug. */
  #find(sizeClass: number): number {
    const first = this.#words[CLASSES + CLASS_WORDS * sizeClass + FIRST_FREE]!;
    if (first !== NONE) {
      this.lastSource = "freeList";
      this.#move(first, STATE_IN_USE);
      return first;
    }
    const fresh = this.#fresh(sizeClass);
    if (fresh !== NONE) {
      this.lastSource = "fresh";
      return fresh;
    }
    const oldest = this.#words[CLASSES + CLASS_WORDS * sizeClass + FIRST_CLEAN]!;
    if (oldest !== NONE) {
      this.lastSource = "cleanPage";
      this.#unlinkClean(oldest);
      this.#move(oldest, STATE_IN_USE);
      return oldest;
    }
    this.lastSource = "scavenged";
    return this.#scavengeFor(sizeClass);
  }

  /** Memory that no buffer has now, lowest address first; NONE when the limit or the addresses don't allow it. */
  #fresh(sizeClass: number): number {
    const units = 2 ** sizeClass;
    if (this.#words[SYSTEM]! < units) return NONE;
    const unit = this.#placeFor(units);
    if (unit === NONE) return NONE;
    this.#set(unit, CLASS, sizeClass);
    this.#set(unit, STATE, STATE_SYSTEM);
    this.#move(unit, STATE_IN_USE);
    this.#words[FRONTIER] = Math.max(this.#words[FRONTIER]!, unit + units);
    return unit;
  }

  #placeFor(units: number): number {
    const w = this.#words;
    const frontier = w[FRONTIER]!;
    const handedOut = w[IN_USE]! + w[FREE]! + w[CLEAN]!;
    // Holes exist only after scavenging; without one the search would walk over every buffer.
    let unit = handedOut === frontier ? frontier : 0;
    let holeStart = unit;
    while (unit < frontier) {
      if (this.#get(unit, STATE) === STATE_SYSTEM) unit++;
      else {
        unit += this.#unitsOf(unit);
        holeStart = unit;
      }
      if (unit - holeStart >= units) return holeStart;
    }
    return holeStart + units <= w[ADDRESS_UNITS]! ? holeStart : NONE;
  }

  /** Gives other sizes back to the system until this one fits: biggest first, free before clean, old before new. */
  #scavengeFor(sizeClass: number): number {
    for (const list of [FIRST_FREE, FIRST_CLEAN])
      for (let c = CLASS_COUNT - 1; c >= 0; c--) {
        for (;;) {
          const unit = this.#words[CLASSES + CLASS_WORDS * c + list]!;
          if (unit === NONE) break;
          if (list === FIRST_CLEAN) this.#unlinkClean(unit);
          this.#move(unit, STATE_SYSTEM);
          const fresh = this.#fresh(sizeClass);
          if (fresh !== NONE) return fresh;
        }
      }
    return fail("B13 an allocation under a valid reservation finds memory");
  }

  /** B11: over the clean limit the oldest of the same size goes, or the page itself. */
  #keepOrDropClean(unit: number): number {
    const w = this.#words;
    const ticket = (w[TICKET]! + 1) | 0;
    w[TICKET] = ticket;
    const sizeClass = this.#get(unit, CLASS);
    const units = 2 ** sizeClass;
    if (w[CLEAN]! + units > w[CLEAN_LIMIT]!) {
      const oldest = w[CLASSES + CLASS_WORDS * sizeClass + FIRST_CLEAN]!;
      if (oldest === NONE) {
        this.#move(unit, STATE_FREE);
        return ticket;
      }
      this.#unlinkClean(oldest);
      this.#move(oldest, STATE_FREE);
    }
    this.#move(unit, STATE_CLEAN);
    this.#set(unit, TICKET_OF, ticket);
    this.#appendClean(unit);
    return ticket;
  }

  #leaveClean(address: number, ticket: number, to: number): boolean {
    this.#lock.take();
    try {
      if (!this.holdsClean(address, ticket)) return false;
      const unit = this.#unitAt(address);
      this.#unlinkClean(unit);
      this.#move(unit, to);
      return true;
    } finally {
      this.#lock.release();
    }
  }

  /** The only place that changes a buffer's state and the totals. Clean lists are the caller's. */
  #move(unit: number, to: number): void {
    const units = this.#unitsOf(unit);
    const from = this.#get(unit, STATE);
    if (from === STATE_FREE) this.#unlinkFree(unit);
    this.#words[totalOf(from)]! -= units;
    this.#words[totalOf(to)]! += units;
    this.#set(unit, STATE, to);
    if (to === STATE_FREE) this.#insertFree(unit);
    // Inner units keep whatever they had, so a buffer that dissolves must not look like an older one.
    if (from === STATE_SYSTEM || to === STATE_SYSTEM)
      for (let u = unit + 1; u < unit + units; u++) this.#set(u, STATE, STATE_SYSTEM);
  }

  /** Free lists hand out the lowest address first (memory 3.4). */
  #insertFree(unit: number): void {
    const head = CLASSES + CLASS_WORDS * this.#get(unit, CLASS) + FIRST_FREE;
    let before = NONE;
    let after = this.#words[head]!;
    while (after !== NONE && after < unit) {
      before = after;
      after = this.#get(after, NEXT);
    }
    this.#set(unit, PREVIOUS, before);
    this.#set(unit, NEXT, after);
    if (before === NONE) this.#words[head] = unit;
    else this.#set(before, NEXT, unit);
    if (after !== NONE) this.#set(after, PREVIOUS, unit);
  }

  #unlinkFree(unit: number): void {
    const head = CLASSES + CLASS_WORDS * this.#get(unit, CLASS) + FIRST_FREE;
    const before = this.#get(unit, PREVIOUS);
    const after = this.#get(unit, NEXT);
    if (before === NONE) this.#words[head] = after;
    else this.#set(before, NEXT, after);
    if (after !== NONE) this.#set(after, PREVIOUS, before);
  }

  #appendClean(unit: number): void {
    const at = CLASSES + CLASS_WORDS * this.#get(unit, CLASS);
    const last = this.#words[at + LAST_CLEAN]!;
    this.#set(unit, PREVIOUS, last);
    this.#set(unit, NEXT, NONE);
    if (last === NONE) this.#words[at + FIRST_CLEAN] = unit;
    else this.#set(last, NEXT, unit);
    this.#words[at + LAST_CLEAN] = unit;
  }

  #unlinkClean(unit: number): void {
    const at = CLASSES + CLASS_WORDS * this.#get(unit, CLASS);
    const before = this.#get(unit, PREVIOUS);
    const after = this.#get(unit, NEXT);
    if (before === NONE) this.#words[at + FIRST_CLEAN] = after;
    else this.#set(before, NEXT, after);
    if (after === NONE) this.#words[at + LAST_CLEAN] = before;
    else this.#set(after, PREVIOUS, before);
  }

  *#eachBuffer(): Generator<number> {
    for (let unit = 0; unit < this.#words[FRONTIER]!; ) {
      const isBuffer = this.#get(unit, STATE) !== STATE_SYSTEM;
      const next = isBuffer ? unit + this.#unitsOf(unit) : unit + 1;
      if (isBuffer) yield unit;
      unit = next;
    }
  }

  #classOf(bytes: number): number {
    const sizeClass = Math.log2(bytes / this.#unitBytes);
    if (!Number.isInteger(sizeClass) || sizeClass < 0)
      fail(`B2 a buffer is a power of two of at least ${this.#unitBytes} bytes: ${bytes}`);
    return sizeClass;
  }

  #get(unit: number, field: number): number {
    return this.#words[UNITS + UNIT_WORDS * unit + field]!;
  }
  #set(unit: number, field: number, value: number): void {
    this.#words[UNITS + UNIT_WORDS * unit + field] = value;
  }
  #unitsOf(unit: number): number {
    return 2 ** this.#get(unit, CLASS);
  }
  #addressOf(unit: number): number {
    return this.#base + unit * this.#unitBytes;
  }
  #unitAt(address: number): number {
    return (address - this.#base) / this.#unitBytes;
  }
}

const totalOf = (state: number): number =>
  state === STATE_SYSTEM ? SYSTEM : state === STATE_IN_USE ? IN_USE : state === STATE_FREE ? FREE : CLEAN;

export const isPowerOfTwo = (n: number): boolean => n > 0 && Number.isInteger(Math.log2(n));

/** Smallest power of two that is at least n. */
export const pow2AtLeast = (n: number): number => 2 ** Math.ceil(Math.log2(Math.max(1, n)));
