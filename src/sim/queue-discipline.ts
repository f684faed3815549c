/**
 * Other ways to serve a queue than Impala's, for finding out what its order costs.
 *
 * The rules themselves stay the core's and stay untouched: a discipline only decides whom a controller's own
 * pass finds at the head. It asks the core which waiting queries would fit now, puts one of them in front, and
 * lets the pass admit it; charges, limits, reasons and rejections are those of every pass.
 *
 * Must keep: a query passes a head only where the head itself could not go, and no pool takes more in one go
 * than its share (5.5). A controller that is not due for a pass gets none, or the order would be credited with
 * wake-ups that Impala does not have (5.4).
 */
import type { AdmissionController } from "../core/admission/controller.ts";
import { type DequeueSink, maxToDequeue } from "../core/admission/dequeue-pass.ts";
import type { Fifo } from "../core/admission/fifo.ts";
import type { Pool } from "../core/admission/pool.ts";
import type { AdmissionQuery } from "../core/admission/query.ts";
import type { Instant, Millis } from "../core/units.ts";

export interface QueueDiscipline {
  /** In place of a dequeue pass of a controller that was woken. */
  pass(controller: AdmissionController, now: Instant, sink: DequeueSink): void;
  /** Somebody has joined a queue of a controller that was not: a new arrival may go first. */
  joined(controller: AdmissionController, now: Instant, sink: DequeueSink): void;
}

/** How far behind the head it looks: a bound, so that a pass costs no more than this however long the queue is. */
const DEPTH = 200;

/**
 * First come, first served, but in one pool whoever fits may pass a head that does not, until the head has waited for
 * `patience`: then nobody passes it any more, and what comes free is kept for it. Infinity: it may be passed
 * for ever. In all other pools Impala's order stays.
 */
export class BackfillWithAging implements QueueDiscipline {
  readonly #pool: string;
  readonly #patience: Millis;
  /** Admissions that passed somebody. */
  overtakings = 0;

  constructor(pool: string, patience: Millis) {
    this.#pool = pool;
    this.#patience = patience;
  }

  pass(controller: AdmissionController, now: Instant, sink: DequeueSink): void {
    const pool = this.#poolOf(controller);
    const share = pool === undefined ? 0 : shareOf(pool);
    const before = pool?.queue.length ?? 0;
    if (controller.isPassDue && !wholePass(controller, now, sink)) return;
    if (pool !== undefined) this.#passSome(controller, pool, share - (before - pool.queue.length), now, sink);
  }

  joined(controller: AdmissionController, now: Instant, sink: DequeueSink): void {
    const pool = this.#poolOf(controller);
    if (pool !== undefined) this.#passSome(controller, pool, shareOf(pool), now, sink);
  }

  #poolOf(controller: AdmissionController): Pool | undefined {
    return controller.pools.find((p) => p.name === this.#pool);
  }

  #passSome(controller: AdmissionController, pool: Pool, most: number, now: Instant, sink: DequeueSink): void {
    for (let left = most; left > 0 && this.#passOne(controller, pool, now, sink); left--);
  }

  /** True: somebody went, so there may be more. */
  #passOne(controller: AdmissionController, pool: Pool, now: Instant, sink: DequeueSink): boolean {
    const { head, length } = pool.queue;
    if (head === null || now - head.queuedAt >= this.#patience) return false;
    const fitting = firstBehindHead(controller, pool.queue, now);
    if (fitting === null) return false;
    offerOnly(fitting, controller, () => controller.dequeuePass(now, sink));
    if (pool.queue.length === length) return false;
    this.overtakings++;
    return true;
  }
}

/** How many of the pool's queue one pass may take. */
function shareOf({ config, stats }: Pool): number {
  if (config === null) return 0;
  return maxToDequeue(config.maxRequests, stats.aggRunning, stats.localQueued, stats.aggQueued);
}

/** Impala's own; false: it was cut short, and with it ends what could be done now (T-9). */
function wholePass(controller: AdmissionController, now: Instant, sink: DequeueSink): boolean {
  let isWhole = true;
  controller.dequeuePass(now, {
    admitted: (q) => sink.admitted(q),
    rejected: (q) => {
      isWhole = false;
      sink.rejected(q);
    },
    cancelled: (q) => {
      isWhole = false;
      sink.cancelled(q);
    },
    stillQueued: (q) => sink.stillQueued(q),
  });
  return isWhole;
}

/** The first that fits behind a head that does not; null: none, or nobody has to be passed. */
function firstBehindHead(controller: AdmissionController, queue: Fifo, now: Instant): AdmissionQuery | null {
  let seen = 0;
  for (const q of queue) {
    if (seen++ > DEPTH) return null;
    if (q.isCancelMarked) {
      // The next pass cleans it up, and ends with that.
      if (seen === 1) return null;
      continue;
    }
    if (fits(controller, q, now)) return seen === 1 ? null : q;
  }
  return null;
}

function fits(controller: AdmissionController, q: AdmissionQuery, now: Instant): boolean {
  const checks = controller.checksFor(q, now);
  return checks.kind === "groups" && checks.groups.some((g) => g.rejection === null && g.failing.length === 0);
}

/** While `pass` runs, nobody else waits anywhere. */
function offerOnly(only: AdmissionQuery, { pools }: AdmissionController, pass: () => void): void {
  const waiting = pools.map(({ queue }) => [...queue]);
  pools.forEach(({ queue }, i) => {
    for (const q of waiting[i]!) if (q !== only) queue.remove(q);
  });
  pass();
  pools.forEach(({ queue }, i) => {
    const isStillHere = queue.head === only;
    if (isStillHere) queue.remove(only);
    for (const q of waiting[i]!) if (q !== only || isStillHere) queue.push(q);
  });
}
