/**
 * The end of one query on one host: a code and Impala's text (memory 8).
 *
 * It is thrown, though it is an answer: it surfaces at the bottom of an operator (a page that can't be read
 * back, a row that fits no page) and everything above only has to let go of what it holds. `runOperator`
 * catches it, in one place, and turns it into plain data. A refused reservation is never one of these (R7).
 */
import type { Failure } from "./page-store.ts";

export class OperatorFailure extends Error {
  override readonly name = "OperatorFailure";
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.text);
    this.failure = failure;
  }
}
