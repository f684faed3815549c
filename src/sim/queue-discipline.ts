/**
 * Other ways to serve a queue than Impala's, for finding out what its order costs.
 *
 * The rules themselves stay the core's and stay untouched: a discipline only decides whom a controller's own
 * pass finds at the head. It asks the core which waiting queries would fit now, puts one of them in front, and
 * lets the pass admit it; charges, limits, reasons and rejections are those of every pass.
 */
import type { AdmissionController } from "../core/admission/controller.ts";
import type { DequeueSink } from "../core/admission/dequeue-pass.ts";
import type { Fifo } from "../core/admission/fifo.ts";
import type { Pool } from "../core/admission/pool.ts";
import type { AdmissionQuery } from "../core/admission/query.ts";
import type { Instant, Millis } from "../core/units.ts";

export interface QueueDiscipline {
  /** In place of a controller's dequeue pass; also after every enqueue, since a new arrival may go first. */
  pass(controller: AdmissionController, now: Instant, sink: DequeueSink): void;
}

/** How far behind the head it looks: a bound, so that a pass costs no more than this however long the queue is. */
const DEPTH = 200;

/**
 * First come, first served, but whoever fits may pass a head that does not, until the head has waited for
 * `patience`: then nobody passes it any more, and what comes free is kept for it. Infinity: it may be passed
 * for ever.
 */
export class BackfillWithAging implements QueueDiscipline {
  readonly #patience: Millis;
  /** Admissions that passed somebody. */
  overtakings = 0;

  constructor(patience: Millis) {
    this.#patience = patience;
  }

  pass(controller: AdmissionController, now: Instant, sink: DequeueSink): void {
    controller.dequeuePass(now, sink);
    for (const pool of controller.pools) while (this.#passOne(controller, pool, now, sink));
  }

  /** True: somebody went, so there may be more. */
  #passOne(controller: AdmissionController, pool: Pool, now: Instant, sink: DequeueSink): boolean {
    const { head, length } = pool.queue;
    if (head === null || now - head.queuedAt >= this.#patience) return false;
    const fitting = firstThatFits(controller, pool.queue, now);
    if (fitting === null) return false;
    const order = [...pool.queue];
    putFirst(pool.queue, fitting);
    controller.dequeuePass(now, sink);
    if (pool.queue.length < length) {
      this.overtakings++;
      return true;
    }
    // Its checks said yes and the pass said no (its budget was used up): the order is as it was.
    restore(pool.queue, order);
    return false;
  }
}

function firstThatFits(controller: AdmissionController, queue: Fifo, now: Instant): AdmissionQuery | null {
  let seen = 0;
  for (const q of queue) {
    if (seen++ > DEPTH) return null;
    // The head was tried by the pass itself.
    if (seen === 1 || q.isCancelMarked) continue;
    const checks = controller.checksFor(q, now);
    if (checks.kind === "groups" && checks.groups.some((g) => g.rejection === null && g.failing.length === 0)) return q;
  }
  return null;
}

function putFirst(queue: Fifo, first: AdmissionQuery): void {
  restore(queue, [first, ...[...queue].filter((q) => q !== first)]);
}

function restore(queue: Fifo, order: readonly AdmissionQuery[]): void {
  for (const q of order) queue.remove(q);
  for (const q of order) queue.push(q);
}
