/**
 * The real memory of one host: pages of one SharedArrayBuffer that lives as long as the host.
 *
 * Which page belongs to whom is in the ledger (core/memory/arena-pages.ts); here they are touched. A page in use
 * carries its stamp at both ends of every page of the system's, so that the process really holds it, and so that
 * somebody else's writing into it would show. Before it goes to disk it is filled with the stamp from end to end, and
 * checked byte by byte when it comes back.
 */
import { fail } from "../core/assert.ts";

const KiB = 1024;
/** Bytes of the smallest page: the system's own. */
const SMALLEST_PAGE = 4 * KiB;
const SYSTEM_WORDS = SMALLEST_PAGE / 8;
const LARGEST_PAGE = 64 * KiB;
const PAGES_WANTED = 64 * KiB;

/** Larger hosts have larger pages, so that lists stay short: 4 KiB up to an arena of 256 MiB, 64 KiB from 4 GiB on. */
export function pageSizeFor(arenaBytes: number): number {
  let size = SMALLEST_PAGE;
  while (size < LARGEST_PAGE && arenaBytes / size > PAGES_WANTED) size *= 2;
  return size;
}

export class Arena {
  readonly pageSize: number;
  readonly #bytes: Uint8Array;
  readonly #words: Float64Array;
  readonly #pageWords: number;
  readonly #pattern: Float64Array;
  readonly #patternBytes: Uint8Array;

  constructor(buffer: SharedArrayBuffer, pageSize: number) {
    this.pageSize = pageSize;
    this.#bytes = new Uint8Array(buffer);
    this.#words = new Float64Array(buffer);
    this.#pageWords = pageSize / 8;
    this.#pattern = new Float64Array(pageSize / 8);
    this.#patternBytes = new Uint8Array(this.#pattern.buffer);
  }

  /** Makes the page the process's own. hot: bench/ledger */
  touch(page: number, stamp: number): void {
    const words = this.#words;
    const end = (page + 1) * this.#pageWords;
    for (let w = page * this.#pageWords; w < end; w += SYSTEM_WORDS) {
      words[w] = stamp;
      words[w + SYSTEM_WORDS - 1] = stamp;
    }
  }

  /** Whether the page still carries what `touch` left there. */
  carries(page: number, stamp: number): boolean {
    const words = this.#words;
    const end = (page + 1) * this.#pageWords;
    for (let w = page * this.#pageWords; w < end; w += SYSTEM_WORDS)
      if (words[w] !== stamp || words[w + SYSTEM_WORDS - 1] !== stamp) return false;
    return true;
  }

  /** Writes every byte of the page. */
  fill(page: number, stamp: number): void {
    this.#words.fill(stamp, page * this.#pageWords, (page + 1) * this.#pageWords);
  }

  /** Whether the page holds this stamp and nothing else. */
  holds(page: number, stamp: number): boolean {
    return this.matches(this.#view(page, 1), stamp);
  }

  /** The same for a page's bytes that stand elsewhere. */
  matches(bytes: Uint8Array, stamp: number): boolean {
    this.#pattern.fill(stamp);
    return Buffer.compare(this.#patternBytes, bytes) === 0;
  }

  /** The pages as views in the given order, neighbours in one. */
  views(pages: Int32Array): Uint8Array[] {
    const views: Uint8Array[] = [];
    for (let i = 0; i < pages.length; ) {
      const first = pages[i]!;
      let n = 1;
      while (i + n < pages.length && pages[i + n] === first + n) n++;
      views.push(this.#view(first, n));
      i += n;
    }
    return views;
  }

  #view(page: number, count: number): Uint8Array {
    const from = page * this.pageSize;
    if (from + count * this.pageSize > this.#bytes.length) fail(`page ${page} lies beyond the arena`);
    return this.#bytes.subarray(from, from + count * this.pageSize);
  }
}
