/**
 * One host's memory for real operators: the buffer pool's part and, behind it, work space for each thread.
 *
 * A shared WebAssembly.Memory, because the kernels work on pages where they lie. Nothing of it is resident until it is
 * touched. The pool's part keeps to the pool limit by the allocator's books; it has more addresses than that, so that
 * a large buffer finds room among scattered small ones without moving any (only what is used is touched).
 *
 *   [0, GUARD)                     nothing: address 0 means "none" in hash tables
 *   [GUARD, + addressBytes)        buffers
 *   [..., + threads x WORKSPACE)   work space of the threads (R10: memory outside reservations)
 *   GUARD                          kernels look a few lines ahead of what they read
 */
import {
  allocatorStateBytes,
  BufferAllocator,
  type BufferAllocatorOptions,
  NO_LOCK,
  type PoolLock,
} from "../../core/memory/buffer-allocator.ts";
import { KiB, MiB } from "../../core/units.ts";

const GUARD = 64 * KiB;
/** What an operator needs beside its reservation, whatever the rows: batches, lists of one sort step, cursors. */
export const WORKSPACE_BYTES = 8 * MiB;
const WASM_PAGE = 64 * KiB;
const LARGEST_MEMORY = 65536 * WASM_PAGE;

export interface OperatorArena {
  readonly memory: WebAssembly.Memory;
  readonly pool: BufferAllocatorOptions;
  /** First thread's work space; the next ones follow. */
  readonly workspaces: number;
  readonly threads: number;
}

export interface ArenaSizes {
  /** Buffer pool limit (R13). */
  readonly poolBytes: number;
  readonly minBufferBytes: number;
  /** `--buffer_pool_clean_pages_limit`: 10 % of the pool unless said. */
  readonly cleanBytes?: number;
  /** Operators that can run at the same time. */
  readonly threads: number;
}

/** Throws RangeError when pool and work space don't fit the 4 GiB of a WebAssembly memory. */
export function createArena(sizes: ArenaSizes): OperatorArena {
  const outside = 2 * GUARD + sizes.threads * WORKSPACE_BYTES;
  const addresses = Math.min(sizes.poolBytes * 2, LARGEST_MEMORY - outside);
  if (addresses < sizes.poolBytes)
    throw new RangeError(
      `a host with real operators can give them at most ${LARGEST_MEMORY - outside} bytes, not ${sizes.poolBytes}`,
    );
  const addressBytes = Math.floor(addresses / WASM_PAGE) * WASM_PAGE + (addresses % WASM_PAGE === 0 ? 0 : WASM_PAGE);
  const pages = Math.ceil((outside + addressBytes) / WASM_PAGE);
  return {
    memory: new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true }),
    pool: {
      minBufferBytes: sizes.minBufferBytes,
      limitBytes: sizes.poolBytes,
      cleanLimitBytes: sizes.cleanBytes ?? Math.floor(sizes.poolBytes / 10),
      baseAddress: GUARD,
      addressBytes,
    },
    workspaces: GUARD + addressBytes,
    threads: sizes.threads,
  };
}

/** A pool with its state in plain memory: for one thread. Hosts keep the words in their ledger. */
export function privateAllocator(arena: OperatorArena, lock: PoolLock = NO_LOCK): BufferAllocator {
  const words = new Int32Array(allocatorStateBytes(arena.pool) / 4);
  BufferAllocator.format(words, arena.pool);
  return new BufferAllocator(words, arena.pool, lock);
}
