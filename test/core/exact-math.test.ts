import { describe, expect, test } from "vitest";
import { exp, inverseNormal, ln, pow } from "../../src/core/exact-math.ts";
import { Xoshiro128 } from "../../src/core/random.ts";

/** How many representable numbers lie between two of the same sign, about. */
const unitsApart = (a: number, b: number): number =>
  Math.abs(a - b) / (Math.abs(b) * Number.EPSILON || Number.MIN_VALUE);

const uniforms = (count: number): number[] => {
  const generator = new Xoshiro128(1, 2, 3, 4);
  return Array.from({ length: count }, () => generator.uniform());
};

describe("ln and exp from four operations (insight 6.1)", () => {
  test("ln of uniforms is within 2 units in the last place of the engine's", () => {
    for (const u of uniforms(20_000)) expect(unitsApart(ln(u), Math.log(u))).toBeLessThanOrEqual(2);
  });

  test.each([1, 2, 10, 0.5, 1e-300, 1e300, 5e-17])("ln(%d)", (x) => {
    expect(ln(x)).toBeCloseTo(Math.log(x), 12);
  });

  test("exp is within 2 units in the last place of the engine's", () => {
    for (const u of uniforms(20_000)) {
      const x = (u - 0.5) * 200;
      expect(unitsApart(exp(x), Math.exp(x))).toBeLessThanOrEqual(3);
    }
  });

  test("exp at its edges", () => {
    expect(exp(0)).toBe(1);
    expect(exp(-800)).toBe(0);
    expect(exp(800)).toBe(Number.POSITIVE_INFINITY);
    expect(exp(709)).toBeCloseTo(Math.exp(709), -296);
  });

  test("pow is the inverse of its own root", () => {
    expect(pow(pow(7, 1 / 3), 3)).toBeCloseTo(7, 12);
  });
});

describe("inverse normal (AS 241)", () => {
  test.each([
    [0.5, 0],
    [0.95, 1.6448536269514722],
    [0.975, 1.959963984540054],
    [0.001, -3.090232306167813],
    [1e-9, -5.997807015007773],
    [1e-20, -9.262340089798409],
  ])("z(%d) = %d", (p, z) => {
    expect(inverseNormal(p)).toBeCloseTo(z, 12);
  });

  test("it is odd around one half", () => {
    expect(inverseNormal(0.3)).toBe(-inverseNormal(0.7));
  });
});
