/**
 * What a FIFO pool of mixed sizes really departs at when its queue never empties (insight 3.3 item 6).
 *
 * Memory over mean need x hold promises too much: a large head keeps memory empty that nobody may use. By the
 * saturation rule (Baccelli and Foss) the pool is stable exactly up to its departure rate with everybody
 * waiting at time 0, so one run without arrivals gives the limit. 20,000 queries are right to 1 to 4 %.
 */
import { quantile } from "../quantile.ts";
import { CompletionHeap } from "./completion-heap.ts";

export interface SaturatedPool {
  /** -1: no limit. */
  readonly maxMem: number;
  readonly maxRunning: number;
}

/**
 * Departures per unit of time. `needs` and `holds` in order of the queue. The first tenth of the starts is left
 * out (the pool was empty), and so is everything after the last start (the queue is).
 */
export function saturatedThroughput(needs: ArrayLike<number>, holds: ArrayLike<number>, pool: SaturatedPool): number {
  const n = needs.length;
  const running = new CompletionHeap();
  const warm = Math.floor(n / 10);
  let used = 0;
  let now = 0;
  let departed = 0;
  let warmAt = 0;
  let warmDeparted = 0;
  for (let i = 0; i < n; i++) {
    if (pool.maxMem >= 0 && needs[i]! > pool.maxMem) continue;
    while (
      (pool.maxMem >= 0 && used + needs[i]! > pool.maxMem) ||
      (pool.maxRunning >= 0 && running.size >= pool.maxRunning)
    ) {
      now = running.firstTime;
      used -= needs[running.take()]!;
      departed++;
    }
    used += needs[i]!;
    running.add(now + holds[i]!, i);
    if (i === warm) {
      warmAt = now;
      warmDeparted = departed;
    }
  }
  const span = now - warmAt;
  return span <= 0 ? Number.POSITIVE_INFINITY : (departed - warmDeparted) / span;
}

/** What memory alone would allow: max / E[need x hold]. */
export function memoryThroughput(needs: ArrayLike<number>, holds: ArrayLike<number>, maxMem: number): number {
  let sum = 0;
  for (let i = 0; i < needs.length; i++) sum += needs[i]! * holds[i]!;
  return (maxMem * needs.length) / sum;
}

/** 1 - saturated / what memory allows: what first come, first served costs this mix. */
export const fifoLoss = (needs: ArrayLike<number>, holds: ArrayLike<number>, pool: SaturatedPool): number =>
  1 - saturatedThroughput(needs, holds, pool) / memoryThroughput(needs, holds, pool.maxMem);

/** Splits at the widest gaps of log(need) that leave at least 5 % of memory-time on either side (insight 3.2). */
export function splitPoints(needs: ArrayLike<number>, holds: ArrayLike<number>, most = 3): number[] {
  const order = Array.from({ length: needs.length }, (_, i) => i).sort((a, b) => needs[a]! - needs[b]!);
  const times = order.map((i) => needs[i]! * holds[i]!);
  const all = times.reduce((a, b) => a + b, 0);
  const gaps: { readonly at: number; readonly width: number }[] = [];
  let below = 0;
  for (let k = 1; k < order.length; k++) {
    below += times[k - 1]!;
    const low = needs[order[k - 1]!]!;
    const high = needs[order[k]!]!;
    if (high <= low || low <= 0 || below < 0.05 * all || below > 0.95 * all) continue;
    // Ratios order as logarithms do, without one.
    gaps.push({ at: low, width: high / low });
  }
  return gaps
    .sort((a, b) => b.width - a.width || a.at - b.at)
    .slice(0, most)
    .map((g) => g.at);
}

/** Median need: the unit in which memory is eased and slack is told. */
export const medianNeed = (needs: Iterable<number>): number => quantile(needs, 0.5);
