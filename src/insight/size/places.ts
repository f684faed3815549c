/**
 * How many equal queries fit at once, and what follows from it by arithmetic alone (insight 0, 3.3 items 1 to 3).
 *
 * Rules of thumb that cost nothing: how a burst drains, how an overload is lost. They hold exactly for equal
 * queries with equal holds and one controller, and are wrong by known amounts otherwise; nothing but screening
 * may rest on them.
 */
import type { MaxBytes } from "../../core/units.ts";

/** Limits of one pool and its hosts as one class of queries meets them. -1: no limit. */
export interface PlaceLimits {
  readonly maxMem: MaxBytes | number;
  readonly maxRunning: number;
  /** `admit_mem_limit` of the smallest host; -1: not looked at (an unlimited pool never looks, T-15). */
  readonly hostMemory: number;
  /** Slots of a host; -1: not tested (the group `default`, T-39). */
  readonly slots: number;
}

/** What one query takes: `need` from the pool (MEM-10), `perHost` and `slots` from each of its hosts. */
export interface QueryNeed {
  readonly need: number;
  readonly perHost: number;
  readonly slots: number;
}

/** c of insight 0; Infinity when nothing limits. */
export function placesOf(limits: PlaceLimits, query: QueryNeed): number {
  return Math.min(
    share(limits.maxMem, query.need),
    limits.maxRunning < 0 ? Number.POSITIVE_INFINITY : limits.maxRunning,
    share(limits.hostMemory, query.perHost),
    share(limits.slots, query.slots),
  );
}

const share = (limit: number, need: number): number =>
  limit < 0 || need <= 0 ? Number.POSITIVE_INFINITY : Math.floor(limit / need);

/** Pool, queue and timeout as a burst meets them; times in any one unit. */
export interface BurstPool {
  readonly places: number;
  readonly maxQueued: number;
  readonly timeout: number;
}

export interface BurstOutcome {
  readonly atOnce: number;
  readonly fromQueue: number;
  readonly rejected: number;
  readonly timedOut: number;
  /** Of the admitted ones. */
  readonly lastWait: number;
  readonly meanWait: number;
}

/**
 * `count` equal queries at one moment, each holding its place for `hold`: waves of c, the j-th queued one in
 * wave ceil(j/c). A start at the very moment of the timeout counts as timed out.
 */
export function burstOutcome(count: number, hold: number, pool: BurstPool): BurstOutcome {
  const { places, maxQueued, timeout } = pool;
  const atOnce = Math.min(count, places);
  const queued = Math.min(count - atOnce, Math.max(0, maxQueued));
  const waves = lastWaveBefore(timeout, hold);
  const fromQueue = Math.min(queued, waves * places);
  const lastWave = Math.ceil(fromQueue / places);
  const admitted = atOnce + fromQueue;
  // Full waves 1 .. lastWave-1, and what is left of the last one.
  const inLast = fromQueue - (lastWave - 1) * places;
  const sum = lastWave === 0 ? 0 : (places * (lastWave * (lastWave - 1))) / 2 + inLast * lastWave;
  return {
    atOnce,
    fromQueue,
    rejected: count - atOnce - queued,
    timedOut: queued - fromQueue,
    lastWait: lastWave * hold,
    meanWait: admitted === 0 ? 0 : (sum * hold) / admitted,
  };
}

/** Largest k with k x hold < timeout. */
function lastWaveBefore(timeout: number, hold: number): number {
  if (hold <= 0) return Number.POSITIVE_INFINITY;
  return Math.max(0, Math.ceil(timeout / hold) - 1);
}

/** With exponential holds, and as a fluid would: mean start of the j-th queued one. */
export const fluidStart = (j: number, hold: number, places: number): number => (j * hold) / places;

/** Per unit of time; the four add up to the arrival rate. */
export interface OverloadOutcome {
  readonly served: number;
  readonly rejected: number;
  readonly timedOut: number;
  /** What the served ones waited, about. */
  readonly wait: number;
}

/**
 * Arrivals faster than places come free, for long (insight 3.3 item 3): with a queue of at most T·c/S places
 * the excess is turned away at once; with a longer one what could have been turned away waits for T and is
 * lost then. `throughput` is c/S, or what a mixed pool really departs at (`saturation.ts`).
 */
export function overloadOutcome(rate: number, throughput: number, maxQueued: number, timeout: number): OverloadOutcome {
  if (rate <= throughput) return { served: rate, rejected: 0, timedOut: 0, wait: 0 };
  if (maxQueued <= timeout * throughput)
    return { served: throughput, rejected: rate - throughput, timedOut: 0, wait: maxQueued / throughput };
  const accepted = Math.min(rate, maxQueued / timeout);
  return { served: throughput, rejected: rate - accepted, timedOut: Math.max(0, accepted - throughput), wait: timeout };
}

/** A queue longer than this can only time out (W01). */
export const hopefulQueue = (timeout: number, throughput: number): number => Math.floor(timeout * throughput);
