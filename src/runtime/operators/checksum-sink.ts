/**
 * The client of an operator: counts and check-sums what comes out (I21).
 *
 * `sum` is equal for equal multisets of rows, `chain` for equal sequences; `misplaced` counts rows that are smaller
 * than the row before them. A reader that takes its time gives `pause`, which may block.
 */
import { type OperatorContext, u64At } from "./operator-context.ts";

export interface Output {
  readonly rows: number;
  /** Hexadecimal, 64 bits. */
  readonly sum: string;
  readonly chain: string;
  readonly misplaced: number;
}

const TOTAL_BYTES = 40;

export class ChecksumSink {
  readonly #ctx: OperatorContext;
  readonly #total: number;
  readonly #pause: (rows: number) => void;
  #rows = 0;
  #misplaced = 0;

  constructor(ctx: OperatorContext, pause: (rows: number) => void = () => undefined) {
    this.#ctx = ctx;
    this.#total = ctx.workspace.take(TOTAL_BYTES);
    this.#pause = pause;
  }

  /** Rows next to each other, in no order that matters. */
  rows(address: number, rows: number, stride: number): void {
    this.#ctx.kernels.addSums(address, rows, stride, this.#total);
    this.#took(rows);
  }

  /** Rows next to each other, in the order that was asked for. */
  ordered(address: number, rows: number, stride: number, hasNumber: boolean): void {
    this.#misplaced += this.#ctx.kernels.addInOrder(address, rows, stride, hasNumber ? 1 : 0, this.#total);
    this.#took(rows);
  }

  pairs(address: number, pairs: number, probeStride: number, buildStride: number): void {
    this.#ctx.kernels.addPairSums(address, pairs, probeStride, buildStride, this.#total);
    this.#took(pairs);
  }

  get output(): Output {
    const { words } = this.#ctx.workspace;
    const hex = (address: number) => u64At(words, address).toString(16).padStart(16, "0");
    return { rows: this.#rows, sum: hex(this.#total), chain: hex(this.#total + 8), misplaced: this.#misplaced };
  }

  #took(rows: number): void {
    this.#rows += rows;
    this.#pause(rows);
  }
}
