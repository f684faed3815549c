import { describe, expect, test } from "vitest";
import { Xoshiro128 } from "../../src/core/random.ts";
import { bucketOf, Histogram, lowestOf } from "../../src/insight/histogram.ts";

function histogramOf(values: Iterable<number>): Histogram {
  const h = new Histogram();
  for (const v of values) h.add(v);
  return h;
}

/** Heavy-tailed milliseconds. */
function many(count: number): number[] {
  const generator = new Xoshiro128(1, 2, 3, 4);
  return Array.from({ length: count }, () => Math.round(10 / generator.uniform() ** 1.5) / 1000);
}

describe("quantiles (insight 0: the ceil(p m)-th smallest)", () => {
  test.each([
    [[5], 0.5, 5],
    [[1, 2], 0.5, 1],
    [[1, 2, 3], 0.5, 2],
    [[3, 1, 2, 4], 0.75, 3],
    [[3, 1, 2, 4], 0.76, 4],
    [Array.from({ length: 20 }, (_, i) => i), 0.95, 18],
    [Array.from({ length: 100 }, (_, i) => i), 0.99, 98],
  ] as const)("of %j, %d is %d", (values, p, expected) => {
    expect(histogramOf(values).quantile(p)).toBe(expected);
  });

  test("over nothing there is none", () => {
    const h = new Histogram();
    expect([h.quantile(0.5), h.max, h.mean]).toEqual([null, null, null]);
  });

  test("missing values are larger than all others", () => {
    const h = histogramOf([1, 2, 3]);
    expect(h.quantile(0.5, 3)).toBe(3);
    expect(h.quantile(0.51, 3)).toBe(Number.POSITIVE_INFINITY);
  });

  test("microseconds are kept, sums are exact", () => {
    const h = histogramOf([0.001, 0.002, 0.1]);
    expect(h.quantile(1)).toBe(0.1);
    expect(h.total).toBe(0.103);
  });
});

describe("constant memory (insight 2.7)", () => {
  test("buckets: every value is in the one whose lowest value is nearest below", () => {
    for (const v of [0, 1, 1023, 1024, 2047, 2048, 2049, 4095, 4096, 1e6, 2 ** 31 - 1, 2 ** 31, 2 ** 40 + 12_345]) {
      const bucket = bucketOf(v);
      expect(lowestOf(bucket)).toBeLessThanOrEqual(v);
      expect(lowestOf(bucket + 1)).toBeGreaterThan(v);
      expect(v - lowestOf(bucket)).toBeLessThanOrEqual(v / 1024);
    }
  });

  test("beyond 10,000 values quantiles are within 0.1 % of the exact ones", () => {
    const values = many(50_000);
    const h = histogramOf(values);
    const sorted = [...values].sort((a, b) => a - b);
    for (const p of [0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 1]) {
      const exact = sorted[Math.ceil(p * values.length) - 1]!;
      expect(Math.abs(h.quantile(p)! - exact)).toBeLessThanOrEqual(exact / 1000);
    }
    expect(h.max).toBe(sorted.at(-1));
    expect(h.count).toBe(50_000);
  });

  test("the 10,000th value is still exact, the 10,001st is counted", () => {
    const values = many(10_001).map((v) => v + 1000);
    const exact = [...values.slice(0, 10_000)].sort((a, b) => a - b)[4999];
    expect(histogramOf(values.slice(0, 10_000)).quantile(0.5)).toBe(exact);
    expect(histogramOf(values).quantile(0.5)).toBeCloseTo(exact!, -1);
  });

  test("histograms of parts add up, exact or not", () => {
    const values = many(30_000);
    for (const cut of [5, 12_000, 29_999]) {
      const sum = histogramOf(values.slice(0, cut));
      sum.addAll(histogramOf(values.slice(cut)));
      const whole = histogramOf(values);
      for (const p of [0.1, 0.5, 0.95, 1]) expect(sum.quantile(p)).toBeCloseTo(whole.quantile(p)!, 6);
      expect(sum.mean).toBeCloseTo(whole.mean!, 9);
    }
  });
});
