/**
 * When the statestore talks to whom (admission 7.1).
 *
 * Each subscriber has an exchange of its own, `every` after the end of its previous one; so one period is
 * `every` and both lags. The first exchanges are spread evenly over a period in address order, as a statestore
 * with many subscribers spreads them; all of them in one instant would make every controller's view equally
 * old, which no real cluster has.
 */
import type { Micros } from "./event-queue.ts";

/** When each subscriber's exchanges start. */
export interface ExchangeTimes {
  /** From one to the next, where nothing else is known. */
  readonly period: Micros;
  /** All are one period apart. */
  readonly isEven: boolean;
  /** Start of the subscriber's first exchange at or after `t`. */
  atOrAfter(subscriber: number, t: Micros): Micros;
  /** Start of its last exchange before or at `t`; negative: none since the run began. */
  atOrBefore(subscriber: number, t: Micros): Micros;
}

export class ExchangeGrid implements ExchangeTimes {
  readonly period: Micros;
  readonly isEven = true;
  readonly #phases: Float64Array;

  constructor(period: Micros, subscribers: number) {
    this.period = period;
    this.#phases = Float64Array.from({ length: subscribers }, (_, i) => Math.floor((i * period) / subscribers));
  }

  /** Start of the subscriber's first exchange at or after `t`. hot: bench/simulate */
  atOrAfter(subscriber: number, t: Micros): Micros {
    const phase = this.#phases[subscriber]!;
    return phase + Math.ceil((t - phase) / this.period) * this.period;
  }

  /** Start of its last exchange before or at `t`; negative: none since the run began. */
  atOrBefore(subscriber: number, t: Micros): Micros {
    const phase = this.#phases[subscriber]!;
    return phase + Math.floor((t - phase) / this.period) * this.period;
  }
}

/**
 * The exchanges that a measured run had, in place of an even grid: a live statestore's rounds are as late as its
 * timers, and where they stand to each other decides which round sees a release. Before the first and after the last
 * one that was measured they go on evenly; whoever was never heard of keeps the grid.
 */
export class MeasuredExchanges implements ExchangeTimes {
  readonly period: Micros;
  readonly isEven = false;
  readonly #grid: ExchangeGrid;
  readonly #starts: readonly (Float64Array | null)[];

  /** `starts` by subscriber, in order of time; null or empty: not measured. */
  constructor(period: Micros, starts: readonly (Float64Array | null)[]) {
    this.period = period;
    this.#grid = new ExchangeGrid(period, starts.length);
    this.#starts = starts.map((s) => (s === null || s.length === 0 ? null : s));
  }

  atOrAfter(subscriber: number, t: Micros): Micros {
    const starts = this.#starts[subscriber] ?? null;
    if (starts === null) return this.#grid.atOrAfter(subscriber, t);
    const first = starts[0]!;
    const last = starts[starts.length - 1]!;
    if (t > last) return last + Math.ceil((t - last) / this.period) * this.period;
    if (t <= first) return first - Math.floor((first - t) / this.period) * this.period;
    return starts[countBelow(starts, t)]!;
  }

  atOrBefore(subscriber: number, t: Micros): Micros {
    const starts = this.#starts[subscriber] ?? null;
    if (starts === null) return this.#grid.atOrBefore(subscriber, t);
    const first = starts[0]!;
    const last = starts[starts.length - 1]!;
    if (t >= last) return last + Math.floor((t - last) / this.period) * this.period;
    if (t < first) return first - Math.ceil((first - t) / this.period) * this.period;
    const next = countBelow(starts, t);
    return starts[next] === t ? t : starts[next - 1]!;
  }
}

/** How many are less than `t`. */
function countBelow(sorted: Float64Array, t: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < t) low = middle + 1;
    else high = middle;
  }
  return low;
}
