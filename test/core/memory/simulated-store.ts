/**
 * A disk for pool tests: writes finish in whatever order a seed says, may fail, and are kept in memory.
 */
import type { DiskRange, Failure, PageStore, Written } from "../../../src/core/memory/page-store.ts";

export class SimulatedStore implements PageStore {
  maxInFlight = 2;
  /** Set to make every write from now on fail. */
  failure: Failure | null = null;
  readonly written: number[] = [];
  readonly stored = new Map<number, Uint8Array>();
  freed = 0;
  readonly #arena: Uint8Array;
  readonly #chance: () => number;
  readonly #inFlight: { page: number; address: number; bytes: number }[] = [];
  readonly #reads = new Map<number, { range: DiskRange; address: number; bytes: number }>();
  #nextOffset = 0;

  /** `chance` draws in [0, 1): which write is next and whether it is done when somebody looks. */
  constructor(arena: Uint8Array, chance: () => number) {
    this.#arena = arena;
    this.#chance = chance;
  }

  startWrite(page: number, address: number, bytes: number): void {
    this.#inFlight.push({ page, address, bytes });
  }

  takeWritten(): Written | null {
    return this.#inFlight.length > 0 && this.#chance() < 0.5 ? this.waitForWritten() : null;
  }

  waitForWritten(): Written {
    const at = Math.floor(this.#chance() * this.#inFlight.length);
    const [write] = this.#inFlight.splice(at, 1);
    if (write === undefined) throw new Error("nothing is in flight");
    if (this.failure !== null) return { page: write.page, range: null, failure: this.failure };
    this.written.push(write.page);
    const range = { file: 0, offset: this.#nextOffset, length: write.bytes, stored: write.bytes };
    this.#nextOffset += write.bytes;
    this.stored.set(range.offset, this.#arena.slice(write.address, write.address + write.bytes));
    return { page: write.page, range, failure: null };
  }

  startRead(page: number, range: DiskRange, address: number, bytes: number): void {
    this.#reads.set(page, { range, address, bytes });
  }

  finishRead(page: number): Failure | null {
    const read = this.#reads.get(page);
    if (read === undefined) throw new Error("nothing is being read");
    this.#reads.delete(page);
    this.#arena.set(this.stored.get(read.range.offset) ?? new Uint8Array(0), read.address);
    return null;
  }

  unverified(): Failure {
    return { code: 118, text: "not what was written" };
  }

  free(range: DiskRange): void {
    if (!this.stored.delete(range.offset)) throw new Error("a range was given back twice");
    this.freed++;
  }
}

/** A small generator for tests (mulberry32): the same draws for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
