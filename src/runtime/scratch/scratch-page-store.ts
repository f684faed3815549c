/**
 * The buffer pool's disk: pages to a query's scratch files and back, from the thread that asks (memory 5.3).
 *
 * A write is done when it is asked for and reported at the pool's next look, so that no more than the allowed
 * number is ever "in flight" and the rest stays dirty and may yet be pinned again (B10).
 *
 * `eager` is Impala's way: unpinned pages go to disk before anybody needs their memory. It costs nothing where the disk
 * works beside the thread; here the thread itself writes, so `whenNeeded`, which leaves a page dirty until its memory
 * is wanted (B8), does strictly less. Scenarios run eagerly, so that scratch figures are Impala's.
 *
 * With compression a page is written compressed if that saves at least an eighth, else as it is (S8).
 */
import * as zlib from "node:zlib";
import { fail } from "../../core/assert.ts";
import type { DiskRange, Failure, PageStore, Written } from "../../core/memory/page-store.ts";
import { readVerifyFailed } from "../../core/memory/scratch-failures.ts";
import type { FileGroup } from "./file-group.ts";

/**
 * `--disk_spill_compression_codec`. Measured on pages of sorted rows, one core, MB/s in and out, what is left of the size:
 * zstd at level -5 550, 780, 85 %; brotli at quality 0 200, 160, 88 %; deflate at level 1 66, 280, 84 %: too slow.
 */
export type Compression = "none" | "zstd" | "brotli";

/** zstd came with Node 22.15. */
export const fastestCompression = (): Compression => (typeof zlib.zstdCompressSync === "function" ? "zstd" : "brotli");

interface Codec {
  pack(page: Uint8Array): Uint8Array;
  /** Throws when it can't be unpacked to at most `bytes`. */
  unpack(packed: Uint8Array, bytes: number): Uint8Array;
}

const CHUNK = 1 << 20;
const CODECS: Readonly<Record<Compression, Codec | null>> = {
  none: null,
  zstd: {
    pack: (page) =>
      zlib.zstdCompressSync(page, { params: { [zlib.constants.ZSTD_c_compressionLevel]: -5 }, chunkSize: CHUNK }),
    unpack: (packed, bytes) => zlib.zstdDecompressSync(packed, { maxOutputLength: bytes, chunkSize: CHUNK }),
  },
  brotli: {
    pack: (page) =>
      zlib.brotliCompressSync(page, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 0 }, chunkSize: CHUNK }),
    unpack: (packed, bytes) => zlib.brotliDecompressSync(packed, { maxOutputLength: bytes, chunkSize: CHUNK }),
  },
};

/** When unpinned pages are written. */
export type WriteBack = "eager" | "whenNeeded";

/** `--concurrent_scratch_ios_per_device`. */
const WRITES_PER_DIRECTORY = 2;
/** Saving less than this isn't worth unpacking. */
const WORTH_IT = 7 / 8;

export class ScratchPageStore implements PageStore {
  readonly #group: FileGroup;
  readonly #memory: Uint8Array;
  readonly #codec: Codec | null;
  readonly #isEager: boolean;
  readonly #done: Written[] = [];
  readonly #reads = new Map<number, { range: DiskRange; address: number; bytes: number }>();

  /** `memory` is the whole arena: addresses are offsets in it. */
  constructor(group: FileGroup, memory: Uint8Array, compression: Compression, writeBack: WriteBack) {
    this.#group = group;
    this.#memory = memory;
    this.#codec = CODECS[compression];
    this.#isEager = writeBack === "eager";
  }

  get maxInFlight(): number {
    if (!this.#isEager) return 0;
    return WRITES_PER_DIRECTORY * this.#group.activeDirectories;
  }

  startWrite(page: number, address: number, bytes: number): void {
    const data = this.#pack(this.#memory.subarray(address, address + bytes));
    const result = this.#group.write(data, bytes);
    this.#done.push("code" in result ? { page, range: null, failure: result } : { page, range: result, failure: null });
  }

  takeWritten(): Written | null {
    return this.#done.shift() ?? null;
  }

  waitForWritten(): Written {
    return this.#done.shift() ?? fail("B8 something is in flight when it is waited for");
  }

  startRead(page: number, range: DiskRange, address: number, bytes: number): void {
    this.#reads.set(page, { range, address, bytes });
  }

  finishRead(page: number): Failure | null {
    const read = this.#reads.get(page) ?? fail("B5 a read is finished once");
    this.#reads.delete(page);
    const into = this.#memory.subarray(read.address, read.address + read.bytes);
    if (read.range.stored === read.bytes) return this.#group.read(read.range, into);
    const packed = Buffer.allocUnsafe(read.range.stored);
    const failure = this.#group.read(read.range, packed);
    return failure ?? this.#unpack(packed, into, read.range);
  }

  unverified(range: DiskRange): Failure {
    return readVerifyFailed(this.#group.placeOf(range));
  }

  free(range: DiskRange): void {
    this.#group.free(range);
  }

  #pack(page: Uint8Array): Uint8Array {
    const packed = this.#codec?.pack(page);
    return packed !== undefined && packed.length <= page.length * WORTH_IT ? packed : page;
  }

  #unpack(packed: Uint8Array, into: Uint8Array, range: DiskRange): Failure | null {
    try {
      const page = this.#codec?.unpack(packed, into.length);
      if (page?.length !== into.length) return this.unverified(range);
      into.set(page);
      return null;
    } catch {
      // zlib's own wording says nothing a reader of the query's error can use.
      return this.unverified(range);
    }
  }
}
