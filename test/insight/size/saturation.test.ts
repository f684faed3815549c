import { describe, expect, test } from "vitest";
import { ln } from "../../../src/core/exact-math.ts";
import { xoshiroFor } from "../../../src/core/random.ts";
import { GiB, MiB } from "../../../src/core/units.ts";
import { fifoLoss, memoryThroughput, saturatedThroughput, splitPoints } from "../../../src/insight/size/saturation.ts";

/** `share` of the queries need `large` for `longer`, the rest `small` for `shorter`; exponential holds. */
function mix(
  n: number,
  share: number,
  [large, longer]: readonly [number, number],
  [small, shorter]: readonly [number, number],
) {
  const draws = xoshiroFor(7, 0, "test/saturation");
  const needs = new Float64Array(n);
  const holds = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    const isLarge = draws.uniform() < share;
    needs[i] = isLarge ? large : small;
    holds[i] = -ln(draws.uniform()) * (isLarge ? longer : shorter);
  }
  return { needs, holds };
}

describe("insight 3.3 item 6: mixed sizes lose capacity in a FIFO", () => {
  test("V23: two units, needs 1 or 2: 8/7 departures, not 4/3", () => {
    const { needs, holds } = mix(1_000_000, 0.5, [2, 1], [1, 1]);
    // 4.5 standard errors of 0.12 % for a million.
    expect(Math.abs(saturatedThroughput(needs, holds, { maxMem: 2, maxRunning: -1 }) / (8 / 7) - 1)).toBeLessThan(
      0.0054,
    );
    expect(memoryThroughput(needs, holds, 2)).toBeCloseTo(4 / 3, 1);
  });

  test.each([
    { share: 0, rate: 3.24, ofMemory: 0.996 },
    { share: 0.01, rate: 1.75, ofMemory: 0.964 },
    { share: 0.05, rate: 0.587, ofMemory: 0.892 },
    { share: 0.1, rate: 0.318, ofMemory: 0.87 },
    { share: 0.3, rate: 0.1105, ofMemory: 0.839 },
  ])("the worked pool with $share large ones departs at $rate a second", ({ share, rate, ofMemory }) => {
    const { needs, holds } = mix(200_000, share, [80 * GiB, 60], [15 * GiB, 4]);
    const pool = { maxMem: 200_000 * MiB, maxRunning: 20 };
    expect(Math.abs(saturatedThroughput(needs, holds, pool) / rate - 1)).toBeLessThan(0.03);
    const allowed = (200_000 * MiB) / (share * 80 * GiB * 60 + (1 - share) * 15 * GiB * 4);
    expect(Math.abs(saturatedThroughput(needs, holds, pool) / allowed - ofMemory)).toBeLessThan(0.03);
    expect(fifoLoss(needs, holds, pool)).toBeCloseTo(
      1 - saturatedThroughput(needs, holds, pool) / memoryThroughput(needs, holds, pool.maxMem),
      12,
    );
  });

  test("the running limit binds too, and what can never fit is passed over", () => {
    const { needs, holds } = mix(50_000, 0, [0, 0], [1, 1]);
    expect(saturatedThroughput(needs, holds, { maxMem: 100, maxRunning: 5 })).toBeCloseTo(5, 0);
    expect(saturatedThroughput([3, 1, 3, 1], [9, 1, 9, 1], { maxMem: 2, maxRunning: -1 })).toBe(
      Number.POSITIVE_INFINITY,
    );
  });

  test("equal queries, equal holds, by hand: two places, hold 1", () => {
    const n = 1000;
    const rate = saturatedThroughput(new Float64Array(n).fill(1), new Float64Array(n).fill(1), {
      maxMem: 2,
      maxRunning: -1,
    });
    expect(rate).toBeCloseTo(2, 2);
  });
});

describe("insight 3.2 split points", () => {
  test("the widest gaps of log(need) with at least 5 % of memory-time on both sides", () => {
    const needs = [1, 1.1, 1.2, 10, 12, 200];
    const holds = [10, 10, 10, 3, 3, 0.2];
    // Memory-times 10, 11, 12, 30, 36, 40: the gaps are 12 to 200, then 1.2 to 10, then 10 to 12.
    expect(splitPoints(needs, holds)).toEqual([12, 1.2, 10]);
    // With 2 for the largest it has less than 5 % of the whole.
    expect(splitPoints(needs, [10, 10, 10, 3, 3, 0.01])).toEqual([1.2, 10, 1]);
    expect(splitPoints([5, 5, 5], [1, 1, 1])).toEqual([]);
  });
});
