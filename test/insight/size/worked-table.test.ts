/**
 * The table of insight 3.3 by the full rules: the same counts as by arithmetic (places.test.ts).
 */
import { describe, expect, test } from "vitest";
import { parseScenario } from "../../../src/config/scenario-file.ts";
import { GiB, MiB } from "../../../src/core/units.ts";
import type { Evaluator } from "../../../src/insight/size/problem.ts";
import type { Setting } from "../../../src/insight/size/setting.ts";
import { evaluatorOver } from "./size-fixtures.ts";

const POOL = "root.dashboards";

/** 60 at once, 4 s each; the estimate is what the planner says with statistics, or without. */
function evaluatorOf(estimate: string, coordinator: "executor" | "dedicated"): Evaluator {
  const scenario = parseScenario(
    `
cluster:
  executors: [{ count: 10, memory: 100gb }]
  coordinators: [{ count: 1, on: ${coordinator} }]
pools: flags
queries:
  tile: { pool: ${POOL}, estimate: ${estimate}, coordinatorEstimate: 100mb, duration: 4s, uses: { peak: 1gb } }
arrivals: [{ at: 0s, query: tile, count: 60 }]
`,
    "/worked.yaml",
  );
  return evaluatorOver(scenario, { pool: POOL, sigma: 0, memoryLag: 50 });
}

const SETTING: Setting = {
  maxMem: 200_000 * MiB,
  maxRunning: 20,
  maxQueued: 50,
  timeout: 30_000,
  minQueryMem: GiB,
  maxQueryMem: 8 * GiB,
  split: null,
};

/** Reserved memory is seen to be free at the topic's next round: a wave is late by at most that. */
const ROUND_MS = 110;

describe("insight 3.8: the table of 3.3 comes out exactly", () => {
  const tiles = evaluatorOf("1.5gb", "executor");
  const dedicated = evaluatorOf("1.5gb", "dedicated");
  const dropped = evaluatorOf("20gb", "executor");
  test.each<{
    name: string;
    by: Evaluator;
    with: Partial<Setting>;
    admitted: number;
    lost: [number, number];
    last: number;
  }>([
    { name: "as configured", by: tiles, with: {}, admitted: 60, lost: [0, 0], last: 16 },
    { name: "dedicated coordinator", by: dedicated, with: {}, admitted: 60, lost: [0, 0], last: 16 },
    { name: "statistics dropped", by: dropped, with: {}, admitted: 16, lost: [8, 36], last: 28 },
    { name: "R 40", by: tiles, with: { maxRunning: 40 }, admitted: 60, lost: [0, 0], last: 16 },
    { name: "400000 mb", by: tiles, with: { maxMem: 400_000 * MiB }, admitted: 60, lost: [0, 0], last: 8 },
    {
      name: "400000 mb and R 40",
      by: tiles,
      with: { maxMem: 400_000 * MiB, maxRunning: 40 },
      admitted: 60,
      lost: [0, 0],
      last: 8,
    },
    { name: "Q 40", by: tiles, with: { maxQueued: 40 }, admitted: 53, lost: [7, 0], last: 16 },
    { name: "T 15 s", by: tiles, with: { timeout: 15_000 }, admitted: 52, lost: [0, 8], last: 12 },
    { name: "dropped, cap 4 GiB", by: dropped, with: { maxQueryMem: 4 * GiB }, admitted: 32, lost: [6, 22], last: 28 },
    { name: "dropped, cap 2 GiB", by: dropped, with: { maxQueryMem: 2 * GiB }, admitted: 59, lost: [1, 0], last: 24 },
    {
      name: "dropped, cap 1.95 GiB",
      by: dropped,
      with: { maxQueryMem: Math.floor(1.95 * GiB) },
      admitted: 60,
      lost: [0, 0],
      last: 20,
    },
    {
      name: "dropped, cap 1.75 GiB",
      by: dropped,
      with: { maxQueryMem: 1.75 * GiB },
      admitted: 60,
      lost: [0, 0],
      last: 20,
    },
    { name: "dropped, T 120 s", by: dropped, with: { timeout: 120_000 }, admitted: 52, lost: [8, 0], last: 100 },
    {
      name: "dropped, T 120 s, Q 100",
      by: dropped,
      with: { timeout: 120_000, maxQueued: 100 },
      admitted: 60,
      lost: [0, 0],
      last: 116,
    },
    { name: "dropped, Q 14", by: dropped, with: { maxQueued: 14 }, admitted: 16, lost: [44, 0], last: 28 },
  ])("$name: $admitted admitted, $lost lost, last after $last s", ({ by, with: changed, admitted, lost, last }) => {
    const setting = { ...SETTING, ...changed };
    const o = by.run({ engine: "rules", day: 0, from: 0, to: 60, setting });
    expect([o.admitted, o.rejected, o.timedOut]).toEqual([admitted, ...lost]);
    const waves = last / 4;
    expect(o.longestWait).toBeGreaterThanOrEqual(last * 1000);
    expect(o.longestWait).toBeLessThanOrEqual(last * 1000 + waves * ROUND_MS);
  });

  test("in the middle: 13 at once as configured, 12 with a dedicated coordinator, 2 without statistics", () => {
    const running = (by: Evaluator): number =>
      by.run({ engine: "rules", day: 0, from: 0, to: 60, setting: SETTING }).peakRunning;
    expect([tiles, dedicated, dropped].map(running)).toEqual([13, 12, 2]);
  });

  test("the pool model without its lag gives the same counts", () => {
    const o = dropped.run({ engine: "model", day: 0, from: 0, to: 60, setting: SETTING });
    expect([o.admitted, o.rejected, o.timedOut, o.peakRunning]).toEqual([16, 8, 36, 2]);
  });
});
