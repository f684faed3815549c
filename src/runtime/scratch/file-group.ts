/**
 * One query's scratch files on one host: ranges, limits, bad files (memory 5.2, 5.3).
 *
 * One file per directory, made at the first write and unlinked at once: the open file is all that is needed, so
 * whatever ends this process or thread, nothing is left on disk (S12). Ranges are powers of two, recycled by
 * size class, last freed first, never split or joined (S4 to S6). A file whose write failed is not used again
 * by this query (S9).
 *
 * Must keep (I12): charged bytes = live + recycled ranges = the sum of its files' lengths; ranges never overlap.
 */
import { closeSync, openSync, readSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { invariant } from "../../core/assert.ts";
import { pow2AtLeast } from "../../core/memory/buffer-allocator.ts";
import type { DiskRange, Failure } from "../../core/memory/page-store.ts";
import { readTruncated, scratchAllocationFailed, scratchLimitExceeded } from "../../core/memory/scratch-failures.ts";
import type { ScratchBooks } from "./scratch-directories.ts";

/** What is needed of the file system; tests pass one that fails on purpose. */
export interface ScratchFiles {
  open(path: string): number;
  write(fd: number, from: Uint8Array, offset: number): number;
  read(fd: number, into: Uint8Array, offset: number): number;
  close(fd: number): void;
}

export const NODE_FILES: ScratchFiles = {
  open(path) {
    const fd = openSync(path, "wx+", 0o600);
    unlinkSync(path);
    return fd;
  },
  write: (fd, from, offset) => writeSync(fd, from, 0, from.length, offset),
  read: (fd, into, offset) => readSync(fd, into, 0, into.length, offset),
  close: (fd) => closeSync(fd),
};

/** S4 without hole punching: no range is shorter. */
const SMALLEST_RANGE = 4096;

/** Errors that say the disk is broken, not merely full (S10). */
const LASTING = new Set(["EIO", "EACCES", "EROFS", "ENODEV", "ENXIO", "ENOENT", "EPERM"]);

export interface ScratchCounters {
  scratchBytesWritten: number;
  uncompressedScratchBytesWritten: number;
  scratchWrites: number;
  scratchBytesRead: number;
  scratchReads: number;
  scratchFileUsedBytes: number;
}

export interface FileGroupOptions {
  readonly books: ScratchBooks;
  /** The query's slot in the books. */
  readonly slot: number;
  /** Part of the file names, for people who look at open files. */
  readonly queryId: string;
  /** `host:port`, for texts. */
  readonly backend: string;
  /** SCRATCH_LIMIT in bytes; -1: none. */
  readonly scratchLimit: number;
  /** Draws in [0, 1): where the turn among equal directories begins. */
  readonly chance: () => number;
  readonly files?: ScratchFiles;
}

interface ScratchFile {
  readonly directory: number;
  /** -1 until the first write. */
  fd: number;
  length: number;
  /** The error that put it on this query's blacklist. */
  failure: string | null;
  lasting: boolean;
}

export class FileGroup {
  readonly counters: ScratchCounters = {
    scratchBytesWritten: 0,
    uncompressedScratchBytesWritten: 0,
    scratchWrites: 0,
    scratchBytesRead: 0,
    scratchReads: 0,
    scratchFileUsedBytes: 0,
  };
  readonly #o: FileGroupOptions;
  readonly #fs: ScratchFiles;
  readonly #files: readonly ScratchFile[];
  /** Recycled ranges by length. */
  readonly #recycled = new Map<number, DiskRange[]>();
  /** Directory indexes by priority group, in the order of `--scratch_dirs`. */
  readonly #groups: readonly (readonly number[])[];
  readonly #turn: number[];

  constructor(options: FileGroupOptions) {
    this.#o = options;
    this.#fs = options.files ?? NODE_FILES;
    this.#files = options.books.directories.map((_, directory) => ({
      directory,
      fd: -1,
      length: 0,
      failure: null,
      lasting: false,
    }));
    this.#groups = byPriority(options.books);
    this.#turn = this.#groups.map((group) => Math.floor(options.chance() * group.length));
  }

  /** Directories that can still be written to: each allows so many writes in flight (B10). */
  get activeDirectories(): number {
    return this.#files.filter((f) => f.failure === null).length;
  }

  /** S10: every file is on the blacklist, each for an error of the lasting kind. */
  get diskIsFaulty(): boolean {
    return this.#files.length > 0 && this.#files.every((f) => f.failure !== null && f.lasting);
  }

  /** Writes `data`, which stands for `uncompressed` bytes, somewhere (S5, S9). */
  write(data: Uint8Array, uncompressed: number): DiskRange | Failure {
    for (;;) {
      const range = this.#allocate(data.length);
      if ("code" in range) return range;
      const file = this.#files[range.file]!;
      const error = this.#writeAll(file, data, range.offset);
      if (error === null) {
        this.counters.scratchWrites++;
        this.counters.scratchBytesWritten += data.length;
        this.counters.uncompressedScratchBytesWritten += uncompressed;
        return range;
      }
      this.#blacklist(file, error);
    }
  }

  read(range: DiskRange, into: Uint8Array): Failure | null {
    const file = this.#files[range.file]!;
    let got = 0;
    while (got < range.stored) {
      const n = this.#fs.read(file.fd, into.subarray(got, range.stored), range.offset + got);
      if (n === 0) return readTruncated(this.placeOf(range), got);
      got += n;
    }
    this.counters.scratchReads++;
    this.counters.scratchBytesRead += range.stored;
    return null;
  }

  /** S5 (1): the range waits for the next write of its size; it stays charged. */
  free(range: DiskRange): void {
    const same = this.#recycled.get(range.length);
    if (same === undefined) this.#recycled.set(range.length, [range]);
    else same.push(range);
  }

  placeOf(range: DiskRange): { bytes: number; file: string; backend: string; offset: number } {
    return {
      bytes: range.stored,
      file: this.#pathIn(range.file),
      backend: this.#o.backend,
      offset: range.offset,
    };
  }

  /** S12: files go when the query's resources on this host are released. */
  close(): void {
    for (const file of this.#files) {
      if (file.fd >= 0) this.#fs.close(file.fd);
      file.fd = -1;
      file.length = 0;
    }
    this.#recycled.clear();
    this.#o.books.refundAll(this.#o.slot);
  }

  /** Sums of I12, for checks. */
  snapshot(): { readonly charged: number; readonly fileBytes: number; readonly recycled: number } {
    return {
      charged: this.#o.books.queryBytes(this.#o.slot),
      fileBytes: this.#files.reduce((sum, f) => sum + f.length, 0),
      recycled: [...this.#recycled].reduce((sum, [length, ranges]) => sum + length * ranges.length, 0),
    };
  }

  /** S5 in its order. */
  #allocate(stored: number): DiskRange | Failure {
    const length = Math.max(SMALLEST_RANGE, pow2AtLeast(stored));
    const again = this.#takeRecycled(length);
    if (again !== null) return { ...again, stored };
    const { books, slot, scratchLimit, backend } = this.#o;
    if (scratchLimit >= 0 && books.queryBytes(slot) + length > scratchLimit)
      return scratchLimitExceeded(scratchLimit, backend);
    for (const [g, group] of this.#groups.entries()) {
      const start = this.#turn[g]!;
      for (let i = 0; i < group.length; i++) {
        const at = (start + i) % group.length;
        const range = this.#extend(this.#files[group[at]!]!, length, stored);
        if (range === null) continue;
        this.#turn[g] = (at + 1) % group.length;
        return range;
      }
    }
    return this.#nowhere(length);
  }

  #takeRecycled(length: number): DiskRange | null {
    const same = this.#recycled.get(length);
    for (let range = same?.pop(); range !== undefined; range = same?.pop())
      if (this.#files[range.file]!.failure === null) return range;
    return null;
  }

  #extend(file: ScratchFile, length: number, stored: number): DiskRange | null {
    if (file.failure !== null || !this.#open(file)) return null;
    if (!this.#o.books.tryCharge(this.#o.slot, file.directory, length)) return null;
    const range = { file: file.directory, offset: file.length, length, stored };
    file.length += length;
    this.counters.scratchFileUsedBytes = this.#o.books.queryBytes(this.#o.slot);
    return range;
  }

  #open(file: ScratchFile): boolean {
    if (file.fd >= 0) return true;
    try {
      file.fd = this.#fs.open(this.#pathIn(file.directory));
      return true;
    } catch (error) {
      this.#blacklist(file, error);
      return false;
    }
  }

  #pathIn(directory: number): string {
    return join(this.#o.books.directories[directory]!.path, `${this.#o.queryId.replaceAll(":", "-")}-${this.#o.slot}`);
  }

  /** null when everything was written. A short write is a full disk. */
  #writeAll(file: ScratchFile, data: Uint8Array, offset: number): unknown {
    try {
      let done = 0;
      while (done < data.length) {
        const n = this.#fs.write(file.fd, done === 0 ? data : data.subarray(done), offset + done);
        if (n === 0) return Object.assign(new Error("no bytes were written"), { code: "ENOSPC" });
        done += n;
      }
      return null;
    } catch (error) {
      return error;
    }
  }

  /** S9: for this query only. Its ranges stay charged until the query ends, as its file does not shrink. */
  #blacklist(file: ScratchFile, error: unknown): void {
    invariant(file.failure === null, "S9 a blacklisted file is not written to");
    file.failure = `${this.#pathIn(file.directory)}: ${error instanceof Error ? error.message : String(error)}`;
    file.lasting = LASTING.has(String((error as { code?: unknown }).code));
  }

  #nowhere(length: number): Failure {
    const { books, slot, backend } = this.#o;
    const isFull = (f: ScratchFile) =>
      f.failure === null && books.directoryBytes(f.directory) + length > books.directories[f.directory]!.limit;
    return scratchAllocationFailed({
      directories: books.directories.map((d) => d.path),
      backend,
      hostBytes: books.hostBytes(),
      queryBytes: books.queryBytes(slot),
      atCapacity: this.#files.filter(isFull).map((f) => books.directories[f.directory]!.path),
      earlier: this.#files.map((f) => f.failure).filter((f) => f !== null),
    });
  }
}

function byPriority(books: ScratchBooks): readonly (readonly number[])[] {
  const groups = new Map<number, number[]>();
  for (const [index, directory] of books.directories.entries()) {
    const group = groups.get(directory.priority);
    if (group === undefined) groups.set(directory.priority, [index]);
    else group.push(index);
  }
  return [...groups].sort(([a], [b]) => a - b).map(([, group]) => group);
}
