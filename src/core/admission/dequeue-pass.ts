/**
 * One dequeue pass over all pools (admission 5.5).
 *
 * A file of its own because the pass has early exits that look like mistakes and are not: a rejection or a
 * cancelled head ends the pass for every pool (T-9), and an empty membership ends it before any pool is
 * looked at (T-10). Keep them.
 *
 * Pools are visited in the order the controller keeps them; only those that had a submission here are (T-11).
 */
import type { PoolConfig } from "../pool-config.ts";
import type { Instant } from "../units.ts";
import type { Pool } from "./pool.ts";
import type { AdmissionQuery } from "./query.ts";
import type { QueueReason } from "./reasons.ts";

/** What a driver is told of a pass, in the order in which it happened. The query holds the figures. */
export interface DequeueSink {
  admitted(q: AdmissionQuery): void;
  /** Why: `q.rejectReason`. */
  rejected(q: AdmissionQuery): void;
  cancelled(q: AdmissionQuery): void;
  /**
   * The head can't go, and its reason or figures differ from the last time: `q.latestReason`, with
   * `q.failures` attempts since then. Equal repetitions are counted and not told.
   */
  stillQueued(q: AdmissionQuery): void;
}

export type Attempt = "admit" | "admitTrivial" | "reject" | "wait";

/** What the pass needs of its controller. */
export interface PassHost {
  readonly hasExecutorGroups: boolean;
  readonly pools: readonly Pool[];
  attemptFromQueue(q: AdmissionQuery, pool: Pool, config: PoolConfig, now: Instant): Attempt;
  tooManyRunning(pool: Pool, config: PoolConfig, now: Instant): QueueReason;
  /** Takes the head off the queue and counts it as dequeued. */
  takeHead(pool: Pool): AdmissionQuery;
  admitFromQueue(q: AdmissionQuery, isTrivial: boolean, now: Instant): void;
  rejectFromQueue(q: AdmissionQuery, now: Instant): void;
  dropCancelled(q: AdmissionQuery, now: Instant): void;
  /** True when it is to be told. */
  noteFailure(q: AdmissionQuery, reason: QueueReason): boolean;
  mark(pool: Pool): void;
}

export function dequeuePass(host: PassHost, now: Instant, sink: DequeueSink): void {
  if (!host.hasExecutorGroups) return;
  for (const pool of host.pools) {
    if (pool.config === null || pool.stats.localQueued === 0) continue;
    const budget = budgetOf(host, pool, pool.config, now, sink);
    if (budget === 0) continue;
    if (!servePool(host, pool, pool.config, budget, now, sink)) return;
    host.mark(pool);
  }
}

function budgetOf(host: PassHost, pool: Pool, config: PoolConfig, now: Instant, sink: DequeueSink): number {
  const { aggRunning, localQueued, aggQueued } = pool.stats;
  const budget = maxToDequeue(config.maxRequests, aggRunning, localQueued, aggQueued);
  const { head } = pool.queue;
  // The product writes this into the head's profile, though it didn't try the query (5.6).
  if (budget === 0 && head !== null) tellFailure(host, head, host.tooManyRunning(pool, config, now), sink);
  return budget;
}

/** False: the whole pass is over. */
function servePool(
  host: PassHost,
  pool: Pool,
  config: PoolConfig,
  budget: number,
  now: Instant,
  sink: DequeueSink,
): boolean {
  for (let left = budget; left > 0 && pool.queue.head !== null; left--) {
    const head = pool.queue.head;
    if (head.isCancelMarked) {
      host.dropCancelled(host.takeHead(pool), now);
      sink.cancelled(head);
      return false;
    }
    const attempt = host.attemptFromQueue(head, pool, config, now);
    if (attempt === "wait") {
      tellFailure(host, head, head.attemptReason!, sink);
      return true;
    }
    host.takeHead(pool);
    if (attempt === "reject") {
      host.rejectFromQueue(head, now);
      sink.rejected(head);
      return false;
    }
    host.admitFromQueue(head, attempt === "admitTrivial", now);
    sink.admitted(head);
  }
  return true;
}

function tellFailure(host: PassHost, head: AdmissionQuery, reason: QueueReason, sink: DequeueSink): void {
  if (!host.noteFailure(head, reason)) return;
  sink.stillQueued(head);
  head.failures = 0;
}

/**
 * How many a controller may take in one pass: its share of the free places, but never less than one, so that
 * several controllers can fill one place several times (T-12). A limit of 0 takes all; each is then refused.
 */
export function maxToDequeue(maxRequests: number, aggRunning: number, localQueued: number, aggQueued: number): number {
  if (maxRequests <= 0) return localQueued;
  const free = maxRequests - aggRunning;
  if (free <= 0) return 0;
  const share = localQueued / Math.max(1, aggQueued);
  return Math.min(localQueued, Math.max(1, Math.trunc(share * free)));
}
