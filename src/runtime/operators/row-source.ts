/**
 * Where rows come from: a seeded stream of batches in the thread's work space (issue 4.4).
 *
 * A row depends on seed and row number only, so that any batch size gives the same rows. Row layouts stand in
 * kernels/assembly/rows.ts.
 */
import type { KeySpec, RowsSpec } from "../../config/scenario.ts";
import { type OperatorContext, putNumber, putU64 } from "./operator-context.ts";
import { levelSeed } from "./partitions.ts";
import { ZipfKeys } from "./zipf-keys.ts";

export const KEY_BYTES = 8;
/** Key, row number, length; the bytes follow. */
export const VARIABLE_HEADER = 20;

export interface RowShape {
  /** Bytes of every row, or 0 when they differ. */
  readonly stride: number;
  readonly longest: number;
  /** A row number breaks ties of the key (fixed rows with at least 8 bytes of payload, and variable ones). */
  readonly hasNumber: boolean;
}

export function shapeOf(rows: RowsSpec): RowShape {
  const { min, max } = rows.width;
  if (min !== max) return { stride: 0, longest: VARIABLE_HEADER + max, hasNumber: true };
  return { stride: KEY_BYTES + min, longest: KEY_BYTES + min, hasNumber: min >= 8 };
}

export interface Batch {
  readonly address: number;
  readonly rows: number;
}

const BATCH_BYTES = 256 * 1024;
const KIND: Readonly<Record<KeySpec["kind"], number>> = { uniform: 0, sorted: 1, unique: 2, hot: 3, zipf: 4, dealt: 5 };

/** Long rows come in smaller batches. */
export const rowsPerBatch = (batchRows: number, shape: RowShape): number =>
  Math.max(1, Math.min(batchRows, Math.floor(BATCH_BYTES / shape.longest)));

export class RowSource {
  readonly shape: RowShape;
  readonly rows: number;
  readonly #ctx: OperatorContext;
  readonly #batch: number;
  readonly #rowsPerBatch: number;
  readonly #spec: number;
  readonly #first: number;
  readonly #keys: number;
  readonly #zipf: ZipfKeys | null;
  #next = 0;

  constructor(ctx: OperatorContext, rows: RowsSpec, seed: number) {
    this.#ctx = ctx;
    this.rows = rows.rows;
    this.shape = shapeOf(rows);
    this.#rowsPerBatch = rowsPerBatch(ctx.batchRows, this.shape);
    const { workspace } = ctx;
    this.#batch = workspace.takeAsItIs(this.#rowsPerBatch * this.shape.longest);
    this.#spec = workspace.take(64);
    this.#first = workspace.take(8);
    const { keys } = rows;
    this.#zipf = keys.kind === "zipf" ? new ZipfKeys(keys.distinct, keys.exponent, seed) : null;
    this.#keys = this.#zipf === null ? 0 : workspace.take(this.#rowsPerBatch * 8);
    this.#describe(rows, seed);
  }

  /** The next batch, at the same place as the last one; null at the end. */
  next(): Batch | null {
    const rows = Math.min(this.#rowsPerBatch, this.rows - this.#next);
    if (rows === 0) return null;
    const { workspace, kernels } = this.#ctx;
    if (this.#zipf !== null)
      for (let i = 0; i < rows; i++) putNumber(workspace.words, this.#keys + 8 * i, this.#zipf.key(this.#next + i));
    putNumber(workspace.words, this.#first, this.#next);
    kernels.generate(this.#batch, rows, this.#first, this.#spec);
    this.#next += rows;
    return { address: this.#batch, rows };
  }

  #describe(rows: RowsSpec, seed: number): void {
    const { words } = this.#ctx.workspace;
    const { keys, width } = rows;
    const distinct = keys.kind === "uniform" || keys.kind === "hot" || keys.kind === "zipf" ? keys.distinct : rows.rows;
    const hotShare = keys.kind === "hot" ? Math.round(keys.share * 2 ** 32) : 0;
    putU64(words, this.#spec, BigInt(seed) * 0x9e3779b97f4a7c15n + 0x1234567n);
    putNumber(words, this.#spec + 8, distinct);
    putNumber(words, this.#spec + 16, hotShare);
    putNumber(words, this.#spec + 24, rows.rows);
    putU64(words, this.#spec + 56, levelSeed(0));
    words.set([KIND[keys.kind], width.min, width.max, this.shape.stride, this.#keys], (this.#spec + 32) >>> 2);
  }
}
