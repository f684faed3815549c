/**
 * What every operator works with: kernels, work space, its buffer pool client, and whom it tells what happened.
 *
 * Operators are generators that yield after each batch: a thread runs one to its end, a test or a story runs several
 * in turn, and whoever runs it can look at the books, pause or cancel between two batches.
 */
import { invariant } from "../../core/assert.ts";
import type { BufferPoolClient } from "../../core/memory/buffer-pool.ts";
import { OperatorFailure } from "../../core/memory/operator-failure.ts";
import type { Failure } from "../../core/memory/page-store.ts";
import { prettyBytes } from "../../core/pretty.ts";
import type { Kernels } from "./kernels/kernels.ts";

/** BATCH_SIZE (memory 6.1). */
export const BATCH_ROWS = 1024;

/** What an operator says while it works; stories and traces are made of these. */
export type OperatorEvent =
  /** R5: an increase was refused; what for. */
  | { readonly kind: "refused"; readonly what: string; readonly bytes: number; readonly text: string }
  | { readonly kind: "partitionSpilled"; readonly partition: number; readonly level: number; readonly bytes: number }
  | { readonly kind: "buildFinished"; readonly level: number; readonly spilled: number; readonly pinned: number }
  | { readonly kind: "tableBuilt"; readonly partition: number; readonly level: number; readonly bytes: number }
  | { readonly kind: "probeBuffers"; readonly level: number; readonly spilled: number; readonly bytes: number }
  | { readonly kind: "partitionRestored"; readonly level: number; readonly rows: number }
  | { readonly kind: "repartitioned"; readonly level: number; readonly rows: number; readonly largest: number }
  | { readonly kind: "runSorted"; readonly run: number; readonly rows: number; readonly spilled: boolean }
  | { readonly kind: "runsMerged"; readonly inputs: number; readonly left: number; readonly final: boolean }
  | { readonly kind: "passedThrough"; readonly rows: number };

export interface OperatorContext {
  readonly kernels: Kernels;
  readonly workspace: Workspace;
  readonly pool: BufferPoolClient;
  /** Spillable buffer b. */
  readonly pageBytes: number;
  /** Largest page m. */
  readonly maxPageBytes: number;
  /** MAX_ROW_SIZE as the query has it, for texts: pages are powers of two. */
  readonly maxRowSize: number;
  /** Rows a batch; BATCH_ROWS unless a test wants to see more boundaries. */
  readonly batchRows: number;
  /** Levels of partitions that there may be; MAX_PARTITION_DEPTH unless a test wants to see the end of them. */
  readonly partitionDepth: number;
  /** Plan node id, for texts. */
  readonly nodeId: number;
  /** O2: null allows spilling, else the failure that an operator meets when it would have to. */
  readonly spillingForbidden: Failure | null;
  note(event: OperatorEvent): void;
}

const MAX_ROW_SIZE = 104;

/** O33. */
export function rowTooLong(ctx: OperatorContext, rowBytes: number): Failure {
  const { label } = ctx.pool.reservation;
  const text =
    `Row of size ${prettyBytes(rowBytes)} could not be materialized by ${label}. Increase the max_row_size query ` +
    `option (currently ${prettyBytes(ctx.maxRowSize)}) to process larger rows.`;
  return { code: MAX_ROW_SIZE, text };
}

/** O2: to be called before anything is unpinned for want of memory. */
export function startSpilling(ctx: OperatorContext): void {
  if (ctx.spillingForbidden !== null) throw new OperatorFailure(ctx.spillingForbidden);
}

/** R7: a refusal is an answer; it is told to whoever listens. */
export function granted(ctx: OperatorContext, what: string, bytes: number): boolean {
  const reservation = ctx.pool.reservation;
  if (reservation.tryIncreaseToFit(bytes)) return true;
  ctx.note({ kind: "refused", what, bytes, text: reservation.refusal });
  return false;
}

/** A thread's work space in the arena, handed out from its start; an operator takes what it needs once. */
export class Workspace {
  readonly words: Uint32Array;
  readonly bytes: Uint8Array;
  readonly #end: number;
  #next: number;

  constructor(memory: WebAssembly.Memory, address: number, bytes: number) {
    this.words = new Uint32Array(memory.buffer);
    this.bytes = new Uint8Array(memory.buffer);
    this.#next = address;
    this.#end = address + bytes;
  }

  /** Address of zeroed memory, on a line of its own. */
  take(bytes: number): number {
    const address = this.takeAsItIs(bytes);
    this.bytes.fill(0, address, this.#next);
    return address;
  }

  /** The same with whatever stands there: for lists that are written before they are read. Nothing is touched. */
  takeAsItIs(bytes: number): number {
    const address = this.#next;
    this.#next = address + Math.ceil(bytes / 64) * 64;
    invariant(this.#next <= this.#end, "R10 what an operator needs beside its reservation fits its work space");
    return address;
  }
}

/** Two words, low first. */
export function putU64(words: Uint32Array, address: number, value: bigint): void {
  words[address >>> 2] = Number(value & 0xffffffffn);
  words[(address >>> 2) + 1] = Number((value >> 32n) & 0xffffffffn);
}

/** Same for whole numbers up to 2^53. */
export function putNumber(words: Uint32Array, address: number, value: number): void {
  words[address >>> 2] = value % 2 ** 32;
  words[(address >>> 2) + 1] = Math.floor(value / 2 ** 32);
}

export const u64At = (words: Uint32Array, address: number): bigint =>
  (BigInt(words[(address >>> 2) + 1]!) << 32n) | BigInt(words[address >>> 2]!);

/** The length of a variable row, which need not lie on a multiple of four. */
export const u32At = (bytes: Uint8Array, address: number): number =>
  (bytes[address]! | (bytes[address + 1]! << 8) | (bytes[address + 2]! << 16) | (bytes[address + 3]! << 24)) >>> 0;
