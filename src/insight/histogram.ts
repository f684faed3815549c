/**
 * Quantiles of any number of values in constant memory (insight 2.7).
 *
 * Values are whole microseconds. Up to 10,000 of them are kept as they are; beyond that they are counted in
 * buckets, 1,024 for each power of two, so that no quantile is off by more than 0.1 %. Histograms add up, and
 * a quantile is always a value (or the bucket of one) that happened: the ceil(p m)-th smallest, never a mean
 * of two.
 */
import { MICROS_PER_MS } from "../core/units.ts";

const EXACT_AT_MOST = 10_000;
const SUB_BUCKETS = 1024;

export class Histogram {
  #exact: number[] | null = [];
  #sorted = true;
  #buckets = new Float64Array(0);
  #count = 0;
  #sum = 0;
  #least = Number.POSITIVE_INFINITY;
  #most = Number.NEGATIVE_INFINITY;

  get count(): number {
    return this.#count;
  }

  /** In milliseconds; null over nothing. */
  get mean(): number | null {
    return this.#count === 0 ? null : this.#sum / this.#count / MICROS_PER_MS;
  }

  get max(): number | null {
    return this.#count === 0 ? null : this.#most / MICROS_PER_MS;
  }

  get min(): number | null {
    return this.#count === 0 ? null : this.#least / MICROS_PER_MS;
  }

  /** Sum of all values in milliseconds. */
  get total(): number {
    return this.#sum / MICROS_PER_MS;
  }

  /** hot: bench/simulate. Milliseconds, >= 0. */
  add(ms: number): void {
    const micros = Math.round(ms * MICROS_PER_MS);
    this.#count++;
    this.#sum += micros;
    if (micros < this.#least) this.#least = micros;
    if (micros > this.#most) this.#most = micros;
    if (this.#exact === null) {
      this.#countIn(micros, 1);
      return;
    }
    this.#exact.push(micros);
    this.#sorted = false;
    if (this.#exact.length > EXACT_AT_MOST) this.#giveUpExactness();
  }

  /**
   * Milliseconds; null over nothing. `missing` values count as larger than all others: a rank among them has
   * the quantile Infinity.
   */
  quantile(p: number, missing = 0): number | null {
    const population = this.#count + missing;
    if (population === 0) return null;
    const rank = Math.max(1, Math.ceil(p * population - 1e-9));
    return rank > this.#count ? Number.POSITIVE_INFINITY : this.#ranked(rank) / MICROS_PER_MS;
  }

  /** Share of the values that are not above `ms`. */
  shareUpTo(ms: number): number | null {
    if (this.#count === 0) return null;
    const micros = ms * MICROS_PER_MS;
    if (this.#exact !== null) return this.#exact.filter((v) => v <= micros).length / this.#count;
    let counted = 0;
    const last = Math.min(bucketOf(micros), this.#buckets.length - 1);
    for (let i = 0; i <= last; i++) counted += this.#buckets[i]!;
    return counted / this.#count;
  }

  addAll(other: Histogram): void {
    if (other.#exact !== null) {
      for (const micros of other.#exact) this.add(micros / MICROS_PER_MS);
      return;
    }
    if (this.#exact !== null) this.#giveUpExactness();
    other.#buckets.forEach((count, i) => {
      if (count > 0) this.#countIn(lowestOf(i), count);
    });
    this.#count += other.#count;
    this.#sum += other.#sum;
    this.#least = Math.min(this.#least, other.#least);
    this.#most = Math.max(this.#most, other.#most);
  }

  #ranked(rank: number): number {
    if (this.#exact !== null) {
      if (!this.#sorted) this.#exact.sort((a, b) => a - b);
      this.#sorted = true;
      return this.#exact[rank - 1]!;
    }
    if (rank === this.#count) return this.#most;
    let left = rank;
    let bucket = 0;
    while (left > this.#buckets[bucket]!) left -= this.#buckets[bucket++]!;
    return Math.min(Math.max(lowestOf(bucket), this.#least), this.#most);
  }

  #giveUpExactness(): void {
    const values = this.#exact ?? [];
    this.#exact = null;
    for (const micros of values) this.#countIn(micros, 1);
  }

  #countIn(micros: number, count: number): void {
    const bucket = bucketOf(micros);
    if (bucket >= this.#buckets.length) {
      const grown = new Float64Array(Math.max(bucket + 1, this.#buckets.length * 2, SUB_BUCKETS));
      grown.set(this.#buckets);
      this.#buckets = grown;
    }
    this.#buckets[bucket]! += count;
  }
}

/** Values below 2,048 have a bucket of their own; above, the upper eleven bits decide. */
export function bucketOf(micros: number): number {
  if (micros < 2 * SUB_BUCKETS) return micros;
  if (micros < 0x80000000) {
    const shift = 21 - Math.clz32(micros);
    return shift * SUB_BUCKETS + (micros >>> shift);
  }
  let shift = 0;
  let rest = micros;
  while (rest >= 2 * SUB_BUCKETS) {
    rest = Math.floor(rest / 2);
    shift++;
  }
  return shift * SUB_BUCKETS + rest;
}

/** Smallest value of a bucket. */
export function lowestOf(bucket: number): number {
  if (bucket < 2 * SUB_BUCKETS) return bucket;
  const shift = Math.floor(bucket / SUB_BUCKETS) - 1;
  return (bucket - shift * SUB_BUCKETS) * 2 ** shift;
}
