/**
 * Quantiles as everything here prints them: the ceil(p·m)-th smallest of m values, never something between two
 * (insight 0), so that a value in a report is one that happened.
 */

/** `sorted` in rising order, 0 < p <= 1; NaN of nothing. */
export function quantileOfSorted(sorted: ArrayLike<number>, p: number): number {
  return sorted.length === 0 ? Number.NaN : sorted[Math.max(0, Math.ceil(p * sorted.length - 1e-9) - 1)]!;
}

export const sortedCopy = (values: Iterable<number>): Float64Array => Float64Array.from(values).sort();

export const quantile = (values: Iterable<number>, p: number): number => quantileOfSorted(sortedCopy(values), p);

/** null instead of NaN: for records that become JSON. */
export function quantileOrNull(values: readonly number[], p: number): number | null {
  return values.length === 0 ? null : quantile(values, p);
}
