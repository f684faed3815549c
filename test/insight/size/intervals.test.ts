import { describe, expect, test } from "vitest";
import { intervalOf, isWorse, pairedInterval, selectionConstant, t95 } from "../../../src/insight/size/intervals.ts";

describe("insight 6.3, 3.4 item 11: intervals and selection", () => {
  test.each([
    { k: 20, days: 10, h2: 19.9 },
    { k: 8, days: 10, h2: 14.1 },
    { k: 20, days: 5, h2: 51.1 },
  ])("h² for $k candidates after $days days is $h2", ({ k, days, h2 }) => {
    expect(selectionConstant(k, days, 0.05)).toBeCloseTo(h2, 1);
  });

  test("Student's t: 9 and 19 degrees of freedom, and far out", () => {
    expect(t95(9)).toBe(2.262);
    expect(t95(19)).toBe(2.093);
    expect(t95(120)).toBeCloseTo(1.98, 3);
  });

  test("an interval by hand: 1, 2, 3", () => {
    const { mean, low, high } = intervalOf([1, 2, 3])!;
    expect(mean).toBe(2);
    expect(high - mean).toBeCloseTo((4.303 * 1) / Math.sqrt(3), 10);
    expect(mean - low).toBeCloseTo(high - mean, 10);
  });

  test("one day, or an endless one, has none", () => {
    expect(intervalOf([5])).toBeNull();
    expect(intervalOf([5, Number.POSITIVE_INFINITY])).toBeNull();
  });

  test("paired: days that move together tell settings apart that intervals alone do not", () => {
    const a = [10, 20, 30, 40];
    const b = [9, 19, 29, 39];
    expect(intervalOf(a)!.low).toBeLessThan(intervalOf(b)!.high);
    expect(pairedInterval(a, b)).toEqual({ mean: 1, low: 1, high: 1 });
  });

  test("nobody is dropped before the first days are over, nor for less than what is still open", () => {
    const better = Array.from({ length: 10 }, (_, i) => 10 + (i % 2));
    const worse = better.map((v) => v + 5);
    const h2 = selectionConstant(8, 10, 0.05);
    expect(isWorse(worse.slice(0, 9), better.slice(0, 9), 10, h2, 1)).toBe(false);
    expect(isWorse(worse, better, 10, h2, 1)).toBe(true);
    expect(isWorse(better, worse, 10, h2, 1)).toBe(false);
    // Differences that swing as much as they are large stay open.
    const swinging = better.map((v, i) => v + (i % 2 === 0 ? 30 : -20));
    expect(isWorse(swinging, better, 10, h2, 1)).toBe(false);
  });

  test("endless waits are worse than any", () => {
    const endless = Array.from({ length: 10 }, () => Number.POSITIVE_INFINITY);
    const finite = Array.from({ length: 10 }, () => 5);
    expect(isWorse(endless, finite, 10, 20, 1)).toBe(true);
    expect(isWorse(finite, endless, 10, 20, 1)).toBe(false);
  });
});
