import { describe, expect, test } from "vitest";
import {
  erlangB,
  fixedHoldFactor,
  generalMeanWait,
  mmc,
  mmcWaitQuantile,
  mmcWithPatience,
  mmcWithQueueLimit,
} from "../../../src/insight/size/waiting-formulas.ts";

/** ρ -> arrivals per mean hold of 1. */
const traffic = (places: number, rho: number) => ({ rate: places * rho, hold: 1, places });

describe("insight 6.6 M/M/c", () => {
  test.each([
    { id: "V1", c: 1, rho: 0.5, waits: 0.5, mean: 1, p95: 4.60517 },
    { id: "V2", c: 2, rho: 0.8, waits: 0.711111, mean: 1.777778, p95: 6.637014 },
    { id: "V3", c: 5, rho: 0.8, waits: 0.554113, mean: 0.554113, p95: 2.405345 },
    { id: "V4", c: 13, rho: 0.8, waits: 0.35103, mean: 0.135012, p95: 0.749557 },
    { id: "V5", c: 13, rho: 0.9, waits: 0.626912, mean: 0.48224, p95: 1.945218 },
    { id: "V6", c: 20, rho: 0.9, waits: 0.550769, mean: 0.275385, p95: 1.199646 },
    { id: "V7", c: 20, rho: 0.95, waits: 0.755401, mean: 0.755401, p95: 2.715226 },
  ])("$id: $c places at $rho", ({ c, rho, waits, mean, p95 }) => {
    const figures = mmc(traffic(c, rho));
    expect(figures.waits).toBeCloseTo(waits, 6);
    expect(figures.meanWait).toBeCloseTo(mean, 6);
    expect(mmcWaitQuantile(traffic(c, rho), 0.95)).toBeCloseTo(p95, 5);
  });

  test("the quantile is 0 where fewer wait than it looks at, and waits are endless from ρ 1 on", () => {
    expect(mmcWaitQuantile(traffic(13, 0.3), 0.95)).toBe(0);
    expect(mmc(traffic(5, 1)).meanWait).toBe(Number.POSITIVE_INFINITY);
    expect(mmcWaitQuantile(traffic(5, 1.2), 0.5)).toBe(Number.POSITIVE_INFINITY);
  });
});

describe("insight 6.6 queue limits and patience", () => {
  test.each([
    { id: "V13", c: 5, rho: 0.9, q: 5, waits: 0.567977, mean: 0.316964, lost: 0.075699 },
    { id: "V15", c: 13, rho: 1.2, q: 50, waits: 0.999944, mean: 3.461769, lost: 0.166674 },
    { id: "V16", c: 2, rho: 5.2, q: 50, waits: 1, mean: 24.880952, lost: 0.807692 },
  ])("$id: $c places, $q waiting, ρ $rho", ({ c, rho, q, waits, mean, lost }) => {
    const figures = mmcWithQueueLimit(traffic(c, rho), q);
    expect(figures.waits).toBeCloseTo(waits, 6);
    expect(figures.meanWait).toBeCloseTo(mean, 6);
    expect(figures.lost).toBeCloseTo(lost, 6);
  });

  test("V14: without a queue it is Erlang's B", () => {
    expect(erlangB(18, 20)).toBeCloseTo(0.109213, 6);
    expect(mmcWithQueueLimit(traffic(20, 0.9), 0).lost).toBeCloseTo(0.109213, 6);
  });

  test("an endless queue limit is M/M/c", () => {
    const figures = mmcWithQueueLimit(traffic(13, 0.9), 5000);
    expect(figures.meanWait).toBeCloseTo(0.48224, 6);
    expect(figures.lost).toBeLessThan(1e-12);
  });

  test.each([
    { id: "V17", c: 13, rho: 1.1, t: 7.5, waits: 0.999983, mean: 6.731081, lost: 0.090912 },
    { id: "V18", c: 20, rho: 0.9, t: 0.5, waits: 0.450579, mean: 0.091258, lost: 0.024781 },
    { id: "V19", c: 20, rho: 1, t: 1, waits: 0.798674, mean: 0.395357, lost: 0.038032 },
  ])("$id: $c places, patience $t, ρ $rho", ({ c, rho, t, waits, mean, lost }) => {
    const figures = mmcWithPatience(traffic(c, rho), t);
    expect(figures.waits).toBeCloseTo(waits, 6);
    expect(figures.meanWait).toBeCloseTo(mean, 6);
    expect(figures.lost).toBeCloseTo(lost, 6);
  });

  test("endless patience is M/M/c, in mean and quantile", () => {
    const figures = mmcWithPatience(traffic(13, 0.9), 500);
    expect(figures.meanWait).toBeCloseTo(0.48224, 6);
    expect(figures.quantile(0.95)).toBeCloseTo(1.945218, 5);
  });

  test("a quantile beyond what is lost does not exist", () => {
    expect(mmcWithPatience(traffic(13, 1.1), 7.5).quantile(0.95)).toBe(Number.POSITIVE_INFINITY);
    expect(mmcWithPatience(traffic(13, 1.1), 7.5).quantile(0.9)).toBeLessThan(7.5);
  });

  test("the worked pool at ρ 0.8 in seconds: mean 0.54, p95 3.00", () => {
    const worked = { rate: (0.8 * 13) / 4, hold: 4, places: 13 };
    expect(mmc(worked).meanWait).toBeCloseTo(0.54, 2);
    expect(mmcWaitQuantile(worked, 0.95)).toBeCloseTo(3.0, 2);
  });
});

describe("insight 3.3 item 5: other holds", () => {
  test.each([
    { id: "V8", c: 1, rho: 0.8, mean: 2 },
    { id: "V9", c: 5, rho: 0.8, mean: 0.28906 },
    { id: "V10", c: 13, rho: 0.9, mean: 0.249875 },
    { id: "V11", c: 20, rho: 0.9, mean: 0.144286 },
  ])("$id: fixed holds by Cosmetatos within 0.6 % of the exact mean", ({ c, rho, mean }) => {
    expect(Math.abs(generalMeanWait(traffic(c, rho), 0) / mean - 1)).toBeLessThan(0.006);
    expect(fixedHoldFactor(c * rho, c) * mmc(traffic(c, rho)).meanWait).toBe(generalMeanWait(traffic(c, rho), 0));
  });

  test("V12: M/G/1 with cv 2 is exact by Allen and Cunneen", () => {
    expect(generalMeanWait(traffic(1, 0.8), 4)).toBeCloseTo(10, 6);
  });

  test("between fixed and exponential the mean lies between theirs", () => {
    const [fixed, half, exponential] = [0, 0.5, 1].map((cv2) => generalMeanWait(traffic(13, 0.9), cv2));
    expect(half).toBeGreaterThan(fixed!);
    expect(half).toBeLessThan(exponential!);
    expect(exponential).toBeCloseTo(0.48224, 6);
  });
});
