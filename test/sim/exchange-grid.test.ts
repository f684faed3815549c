import { describe, expect, test } from "vitest";
import { ExchangeGrid, MeasuredExchanges } from "../../src/sim/exchange-grid.ts";

describe("7.1 exchanges of a measured run in place of the even grid", () => {
  const measured = new MeasuredExchanges(100, [Float64Array.of(30, 140, 235), null]);

  test.each([
    { t: 29, after: 30, before: -70 },
    { t: 30, after: 30, before: 30 },
    { t: 31, after: 140, before: 30 },
    { t: 139, after: 140, before: 30 },
    { t: 140, after: 140, before: 140 },
    { t: 141, after: 235, before: 140 },
    { t: 235, after: 235, before: 235 },
    { t: 236, after: 335, before: 235 },
    { t: 335, after: 335, before: 335 },
    { t: 336, after: 435, before: 335 },
    { t: -70, after: -70, before: -70 },
    { t: -71, after: -70, before: -170 },
  ])("at $t: the next at $after, the last at $before", ({ t, after, before }) => {
    expect(measured.atOrAfter(0, t)).toBe(after);
    expect(measured.atOrBefore(0, t)).toBe(before);
  });

  test("who was never heard of keeps the grid", () => {
    const grid = new ExchangeGrid(100, 2);
    for (const t of [0, 49, 50, 51, 150, 151]) {
      expect(measured.atOrAfter(1, t)).toBe(grid.atOrAfter(1, t));
      expect(measured.atOrBefore(1, t)).toBe(grid.atOrBefore(1, t));
    }
  });

  test("the grid itself, measured, is the grid", () => {
    const grid = new ExchangeGrid(100, 1);
    const same = new MeasuredExchanges(100, [Float64Array.of(0, 100, 200)]);
    for (let t = 0; t <= 400; t += 10) {
      expect(same.atOrAfter(0, t)).toBe(grid.atOrAfter(0, t));
      expect(same.atOrBefore(0, t)).toBe(grid.atOrBefore(0, t));
    }
  });
});
