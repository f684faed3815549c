/**
 * Intervals over days, and when one setting may be said to beat another (insight 3.4 item 11, 6.3).
 *
 * One value per day and setting; days are independent, queries of a day are not. A difference between two
 * settings is judged on the same days in pairs, never by whether two intervals overlap.
 */

/** Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom. */
const T95 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/** Beyond 30 the quantile falls to 1.96 about as 1.96 + 2.4/df. */
export const t95 = (degrees: number): number => T95[degrees - 1] ?? 1.96 + 2.4 / degrees;

export interface Interval {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

/** 95 % for the mean; null over fewer than two values, or when one of them is endless. */
export function intervalOf(values: readonly number[]): Interval | null {
  const n = values.length;
  if (n < 2 || !values.every(Number.isFinite)) return null;
  const mean = values.reduce((a, b) => a + b, 0) / n;
  const half = t95(n - 1) * Math.sqrt(varianceOf(values) / n);
  return { mean, low: mean - half, high: mean + half };
}

/** Of paired daily values, a - b. */
export const pairedInterval = (a: readonly number[], b: readonly number[]): Interval | null =>
  intervalOf(a.map((v, i) => v - b[i]!));

/** Sample variance, n - 1 in the denominator. */
export function varianceOf(values: readonly number[]): number {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / (values.length - 1);
}

/** h² of Kim and Nelson's sequential selection among k with n0 first days at error chance alpha. */
export function selectionConstant(k: number, firstDays: number, alpha: number): number {
  const eta = 0.5 * (((2 * alpha) / (k - 1)) ** (-2 / (firstDays - 1)) - 1);
  return 2 * eta * (firstDays - 1);
}

/** Drops settings day by day; how sure it has to be is fixed by how many it began with. */
export class Selection {
  readonly #firstDays: number;
  readonly #hSquared: number;

  constructor(settings: number, firstDays: number, alpha: number) {
    this.#firstDays = firstDays;
    this.#hSquared = selectionConstant(Math.max(2, settings), firstDays, alpha);
  }

  /**
   * Whether `a` may be dropped for `b` in one objective (smaller is better): after r days its mean is worse by
   * more than what is still open. `delta` is the difference that does not matter.
   */
  isWorse(a: readonly number[], b: readonly number[], delta: number): boolean {
    const r = a.length;
    const firstDays = this.#firstDays;
    if (r < firstDays) return false;
    if (!a.every(Number.isFinite)) return b.every(Number.isFinite);
    if (!b.every(Number.isFinite)) return false;
    const first = a.slice(0, firstDays).map((v, i) => v - b[i]!);
    const open = Math.max(0, (delta / (2 * r)) * ((this.#hSquared * varianceOf(first)) / delta ** 2 - r));
    const meanDifference = a.reduce((sum, v, i) => sum + v - b[i]!, 0) / r;
    return meanDifference > open;
  }
}
