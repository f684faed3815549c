/**
 * When the statestore talks to whom (admission 7.1).
 *
 * Each subscriber has an exchange of its own, `every` after the end of its previous one; so one period is
 * `every` and both lags. The first exchanges are spread evenly over a period in address order, as a statestore
 * with many subscribers spreads them; all of them in one instant would make every controller's view equally
 * old, which no real cluster has.
 */
import type { Micros } from "./event-queue.ts";

export class ExchangeGrid {
  readonly period: Micros;
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
