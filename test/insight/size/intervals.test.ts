import { describe, expect, test } from "vitest";
import { intervalOf, pairedInterval, Selection, selectionConstant, t95 } from "../../../src/insight/size/intervals.ts";

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
    const among = new Selection(8, 10, 0.05);
    expect(among.isWorse(worse.slice(0, 9), better.slice(0, 9), 1)).toBe(false);
    expect(among.isWorse(worse, better, 1)).toBe(true);
    expect(among.isWorse(better, worse, 1)).toBe(false);
    // Differences that swing as much as they are large stay open.
    const swinging = better.map((v, i) => v + (i % 2 === 0 ? 30 : -20));
    expect(among.isWorse(swinging, better, 1)).toBe(false);
  });

  // Differences 0 and 4 in turn: mean 2, variance 40/9; open are h2 (6.0 of 2, 19.9 of 20) * 40/9 / 20 - 1/2.
  test("what is enough among two is not among twenty, however many of them are left", () => {
    const better = Array.from({ length: 10 }, () => 10);
    const worse = better.map((v, i) => v + (i % 2 === 0 ? 4 : 0));
    expect(new Selection(2, 10, 0.05).isWorse(worse, better, 1)).toBe(true);
    expect(new Selection(20, 10, 0.05).isWorse(worse, better, 1)).toBe(false);
  });

  test("endless waits are worse than any", () => {
    const endless = Array.from({ length: 10 }, () => Number.POSITIVE_INFINITY);
    const finite = Array.from({ length: 10 }, () => 5);
    expect(new Selection(20, 10, 0.05).isWorse(endless, finite, 1)).toBe(true);
    expect(new Selection(20, 10, 0.05).isWorse(finite, endless, 1)).toBe(false);
  });
});
