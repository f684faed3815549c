/**
 * A list of queries in order of arrival: the queue of one pool, and the running queries of one coordinator.
 *
 * Linked through the queries themselves, so that leaving from the middle (time-out, cancellation, release)
 * costs the same whatever the length. A query is in at most one list at a time.
 */
import { invariant } from "../assert.ts";
import type { AdmissionQuery } from "./query.ts";

export class Fifo implements Iterable<AdmissionQuery> {
  head: AdmissionQuery | null = null;
  #tail: AdmissionQuery | null = null;
  length = 0;

  /** hot: bench/decision */
  push(q: AdmissionQuery): void {
    q.previous = this.#tail;
    q.next = null;
    if (this.#tail === null) this.head = q;
    else this.#tail.next = q;
    this.#tail = q;
    this.length++;
  }

  /** hot: bench/decision */
  remove(q: AdmissionQuery): void {
    invariant(this.length > 0, "a list that is left has members");
    if (q.previous === null) this.head = q.next;
    else q.previous.next = q.next;
    if (q.next === null) this.#tail = q.previous;
    else q.next.previous = q.previous;
    q.previous = null;
    q.next = null;
    this.length--;
  }

  *[Symbol.iterator](): Iterator<AdmissionQuery> {
    for (let q = this.head; q !== null; q = q.next) yield q;
  }
}
