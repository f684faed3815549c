/**
 * Draws of the sweep with names; every call takes one uniform, so that a scenario reads as a list of choices.
 */
import { type Xoshiro128, xoshiroFor } from "../../core/random.ts";

export class Draws {
  readonly #random: Xoshiro128;

  constructor(seed: number, purpose: string) {
    this.#random = xoshiroFor(seed, 0, purpose);
  }

  below(n: number): number {
    return Math.floor(this.#random.uniform() * n);
  }

  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  chance(p: number): boolean {
    return this.#random.uniform() < p;
  }

  oneOf<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }
}
