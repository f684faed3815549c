import { describe, expect, test } from "vitest";
import type { Distribution } from "../../src/config/scenario.ts";
import { Xoshiro128 } from "../../src/core/random.ts";
import { draw, meanOf, wholeMicros } from "../../src/workload/draw.ts";

const KINDS: readonly Distribution[] = [
  { kind: "uniform", low: 2, high: 6 },
  { kind: "exponential", mean: 4 },
  { kind: "lognormal", mu: 1, sigma: 0.7 },
  { kind: "pareto", alpha: 1.5, low: 1, high: 100 },
  { kind: "pareto", alpha: 1, low: 1, high: 100 },
  { kind: "erlang", stages: 4, mean: 4 },
  {
    kind: "hyperexponential",
    branches: [
      { share: 0.9, mean: 1 },
      { share: 0.1, mean: 20 },
    ],
  },
  { kind: "empirical", values: [1, 2, 2, 9] },
];

describe("values by inversion (insight 6.2)", () => {
  test.each(KINDS)("$kind: a larger uniform never gives a smaller value", (d) => {
    const values = Array.from({ length: 999 }, (_, i) => draw(d, (i + 1) / 1000));
    expect(values).toEqual([...values].sort((a, b) => a - b));
  });

  test.each(KINDS)("$kind: the mean of many draws is its mean", (d) => {
    const generator = new Xoshiro128(1, 2, 3, 4);
    const count = 20_000;
    let sum = 0;
    for (let i = 0; i < count; i++) sum += draw(d, generator.uniform());
    // 4.5 standard errors of the heaviest tail here; the seed is fixed, so this is a constant.
    expect(Math.abs(sum / count / meanOf(d) - 1)).toBeLessThan(0.045);
  });

  test.each([
    [{ kind: "fixed", value: 7 }, 0.3, 7],
    [{ kind: "exponential", mean: 1 }, 1 - Math.exp(-1), 1],
    [{ kind: "lognormal", mu: 0, sigma: 1 }, 0.95, Math.exp(1.6448536269514722)],
    [{ kind: "pareto", alpha: 2, low: 1, high: 10 }, 0.5, (1 - 0.5 * 0.99) ** -0.5],
    [{ kind: "erlang", stages: 1, mean: 3 }, 0.5, 3 * Math.LN2],
    [{ kind: "empirical", values: [5, 6, 7] }, 0.999, 7],
  ] as const)("%o at %d is %d", (d, u, value) => {
    expect(draw(d, u)).toBeCloseTo(value, 9);
  });

  test("Erlang's survival function comes out at the value drawn", () => {
    const x = draw({ kind: "erlang", stages: 3, mean: 3 }, 0.8);
    expect(Math.exp(-x) * (1 + x + (x * x) / 2)).toBeCloseTo(0.2, 12);
  });

  test("times are whole microseconds", () => {
    expect(wholeMicros(1.23456789)).toBe(1.235);
    expect(wholeMicros(0.1 + 0.2)).toBe(0.3);
  });
});
