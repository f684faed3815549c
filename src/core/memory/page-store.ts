/**
 * What the buffer pool asks of the disk (memory 3.2, 5): ranges to write pages to, completions, reads.
 *
 * An interface, because the real one blocks on files in worker threads while the pool is pure, and because
 * tests finish writes in whatever order they like. Failures are plain data: the pool decides when an
 * operator learns of them (B12).
 */

/** A failure that ends the query, with Impala's code and text (memory 8). */
export interface Failure {
  readonly code: number;
  readonly text: string;
}

/** Where a page lies on disk. Only its maker looks inside. */
export interface DiskRange {
  readonly file: number;
  readonly offset: number;
  /** Length of the range, a power of two (S4). */
  readonly length: number;
  /** Bytes in it; fewer than the page when compressed. */
  readonly stored: number;
}

export type Written =
  | { readonly page: number; readonly range: DiskRange; readonly failure: null }
  | { readonly page: number; readonly range: null; readonly failure: Failure };

export interface PageStore {
  /** Eager writes in flight at a time (B10): `--concurrent_scratch_ios_per_device` x active directories. */
  readonly maxInFlight: number;
  /** Begins to write; the memory must not change until the completion came. */
  startWrite(page: number, address: number, bytes: number): void;
  /** A finished write, if there is one; never blocks. */
  takeWritten(): Written | null;
  /** The next finished write; blocks. Something must be in flight. */
  waitForWritten(): Written;
  /** Begins to read; `finishRead` of the same page follows. */
  startRead(page: number, range: DiskRange, address: number, bytes: number): void;
  /** Blocks until the page is there. */
  finishRead(page: number): Failure | null;
  /** S11: what to report when the range's contents are not what was written. */
  unverified(range: DiskRange): Failure;
  /** The range's contents are not needed any more: it can be used again (S5). */
  free(range: DiskRange): void;
}
