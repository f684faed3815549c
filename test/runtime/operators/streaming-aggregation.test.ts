/** Pre-aggregation never spills (O15 to O17). */
import { describe, expect, test } from "vitest";
import type { KeySpec } from "../../../src/config/scenario.ts";
import { KiB, MiB } from "../../../src/core/units.ts";
import { estimatedReduction, reductionToExpand } from "../../../src/runtime/operators/streaming-aggregation.ts";
import { limits, outputOf, rowsOf, TestHost } from "./operator-bench.ts";

describe("O16 the growth rule", () => {
  test.each([
    [0, 0],
    [256 * KiB - 1, 0],
    [256 * KiB, 1.1],
    [2 * MiB - 1, 1.1],
    [2 * MiB, 2],
  ])("tables of %i bytes grow while the estimate is above %f", (bytes, threshold) => {
    expect(reductionToExpand(bytes)).toBe(threshold);
  });

  test.each([
    { aggregated: 100, groups: 50, expected: 100, estimate: 2 },
    { aggregated: 100, groups: 50, expected: 99, estimate: 2 },
    { aggregated: 100, groups: 50, expected: 199, estimate: 2 },
    { aggregated: 100, groups: 50, expected: 200, estimate: 3 },
    { aggregated: 100, groups: 100, expected: 1000, estimate: 1 },
  ])(
    "$aggregated rows in $groups groups of $expected expected: $estimate",
    ({ aggregated, groups, expected, estimate }) => {
      expect(estimatedReduction(aggregated, groups, expected)).toBe(estimate);
    },
  );
});

describe("O15, O17, memory 9.6 item 7", () => {
  const run = (keys: KeySpec, denial = 0) => {
    using host = new TestHost({ poolBytes: 64 * MiB });
    const input = rowsOf(200_000, keys);
    const spec = { kind: "aggregate", input, preAggregate: true, limits: limits(64 * KiB) } as const;
    const outcome = host.run(spec, { denial });
    outputOf(outcome);
    return { ...outcome.counters, peak: host.peak };
  };

  test("few keys are reduced: hardly anything passes through", () => {
    const { operator } = run({ kind: "uniform", distinct: 500 });
    expect(operator.rowsPassedThrough).toBe(0);
    expect(operator.mergeInputRows).toBe(500);
  });

  test("unique keys pass through once growing does not pay any more", () => {
    const { operator } = run({ kind: "unique" });
    expect(operator.reductionFactorEstimate).toBeCloseTo(1, 1);
    expect(operator.reductionFactorThresholdToExpand).toBeGreaterThan(1);
    expect(operator.rowsPassedThrough).toBeGreaterThan(150_000);
    expect(operator.mergeInputRows).toBe(200_000);
  });

  test("with every increase refused it keeps its minimum, passes on, and writes nothing itself", () => {
    const { operator, bufferPool, peak } = run({ kind: "uniform", distinct: 100_000 }, 1);
    expect(operator.rowsPassedThrough).toBeGreaterThan(0);
    expect(peak[1]).toBe(16 * 64 * KiB + MiB);
    expect(bufferPool[1]).toMatchObject({ writeIoOps: 0, peakUnpinnedBytes: 0 });
    expect(bufferPool[0]!.writeIoOps).toBeGreaterThan(0);
  });
});
