/**
 * Where queries may write, in which order, and how much is written there now (memory 5.1, S1, S5).
 *
 * The books are a few float words, so that the threads of one host share them: bytes per directory over all
 * queries, and bytes of each query that runs now. They must keep: a directory's bytes = the sum of what its
 * queries were charged there, never over its limit; a query's bytes never over SCRATCH_LIMIT (S7, I12).
 *
 *   [q * (directories + 1)]          bytes of the query in slot q
 *   [q * (directories + 1) + 1 + d]  of these, in directory d
 *   after the last slot              per directory, all queries together
 */
import type { PoolLock } from "../../core/memory/buffer-allocator.ts";
import { parseSize } from "./scratch-size.ts";

export interface ScratchDirectory {
  readonly path: string;
  /** Bytes that all queries together may use here; Infinity: no limit. */
  readonly limit: number;
  /** Lower is used earlier; equal ones take turns. */
  readonly priority: number;
}

const LOWEST_PRIORITY = Number.MAX_SAFE_INTEGER;

/**
 * `--scratch_dirs`: `path[:limit[:priority]]`, separated by commas (S1). An empty limit, 0 and -1 mean none.
 * Throws an Error that names the entry when a limit or a priority can't be read.
 */
export function parseScratchDirectories(text: string): readonly ScratchDirectory[] {
  return text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")
    .map(parseEntry);
}

function parseEntry(entry: string): ScratchDirectory {
  const [path = "", limitText = "", priorityText = "", ...rest] = entry.split(":").map((part) => part.trim());
  if (path === "" || rest.length > 0) throw new Error(`scratch directory "${entry}": expected path[:limit[:priority]]`);
  const limit = limitText === "" ? 0 : parseSize(limitText);
  if (limit === null) throw new Error(`scratch directory "${entry}": limit "${limitText}" is not a size such as 200mb`);
  const priority = priorityText === "" ? LOWEST_PRIORITY : Number(priorityText);
  if (!Number.isInteger(priority))
    throw new Error(`scratch directory "${entry}": priority "${priorityText}" is not a whole number`);
  return { path, limit: limit > 0 ? limit : Number.POSITIVE_INFINITY, priority };
}

/** Float words that the books need for this many directories and queries at once. */
export const scratchBookWords = (directories: number, queries: number): number => (queries + 1) * (directories + 1);

export class ScratchBooks {
  readonly directories: readonly ScratchDirectory[];
  readonly #words: Float64Array;
  readonly #lock: PoolLock;
  readonly #totals: number;

  constructor(directories: readonly ScratchDirectory[], words: Float64Array, lock: PoolLock) {
    this.directories = directories;
    this.#words = words;
    this.#lock = lock;
    this.#totals = words.length - (directories.length + 1);
  }

  /** The refusal is an answer: the next directory, another error, whatever S5 says. */
  tryCharge(query: number, directory: number, bytes: number): boolean {
    return this.#under((w, at) => {
      if (w[this.#totals + 1 + directory]! + bytes > this.directories[directory]!.limit) return false;
      this.#add(at(query), directory, bytes);
      return true;
    });
  }

  refund(query: number, directory: number, bytes: number): void {
    this.#under((_, at) => this.#add(at(query), directory, -bytes));
  }

  /** Everything a query was charged: it ended, or its thread died (I23). Returns the bytes. */
  refundAll(query: number): number {
    return this.#under((w, at) => {
      const charged = w[at(query)]!;
      for (let d = 0; d < this.directories.length; d++) this.#add(at(query), d, -w[at(query) + 1 + d]!);
      return charged;
    });
  }

  queryBytes(query: number): number {
    return this.#under((w, at) => w[at(query)]!);
  }

  directoryBytes(directory: number): number {
    return this.#under((w) => w[this.#totals + 1 + directory]!);
  }

  hostBytes(): number {
    return this.#under((w) => w[this.#totals]!);
  }

  #add(query: number, directory: number, bytes: number): void {
    const w = this.#words;
    w[query]! += bytes;
    w[query + 1 + directory]! += bytes;
    w[this.#totals]! += bytes;
    w[this.#totals + 1 + directory]! += bytes;
  }

  #under<T>(work: (words: Float64Array, at: (query: number) => number) => T): T {
    this.#lock.take();
    try {
      return work(this.#words, (query) => query * (this.directories.length + 1));
    } finally {
      this.#lock.release();
    }
  }
}
