/**
 * Elimination against brute force (insight 3.8): the cheapest sufficient setting of 200, on 20 seeded workloads.
 */
import { describe, expect, test } from "vitest";
import { lossOf, type Outcome } from "../../src/insight/size/outcome.ts";
import { Evaluator } from "../../src/insight/size/problem.ts";
import { costOrder, keyOf, type Setting } from "../../src/insight/size/setting.ts";
import { DEFAULT_SIZE_OPTIONS, sizePool } from "../../src/insight/size/size-pool.ts";
import { evaluatorFor, GiB, NOW, problemOf } from "../insight/size/size-fixtures.ts";

/** 10 x 5 x 2 x 2. */
function grid(): Setting[] {
  const settings: Setting[] = [];
  for (let m = 0; m < 10; m++)
    for (const maxRunning of [8, 10, 14, 20, -1])
      for (const maxQueued of [30, 100])
        for (const timeout of [10_000, 30_000])
          settings.push({ ...NOW, maxMem: (90 + 15 * m) * GiB, maxRunning, maxQueued, timeout });
  return settings;
}

describe("insight 3.8: elimination finds what brute force finds", () => {
  test.each(Array.from({ length: 20 }, (_, i) => i + 1))("seed %d", async (seed) => {
    const traffic = { seed, small: 1 + (seed % 5) * 0.2, large: 0.02 * (seed % 4), seconds: 900 };
    const goal = { p95: 3000 + 1000 * (seed % 3), loss: 0.005 };
    const problem = problemOf(traffic);
    const candidates = grid();
    const report = await sizePool(
      problem,
      { ...DEFAULT_SIZE_OPTIONS, p95: goal.p95, loss: goal.loss, spill: 1, candidates },
      evaluatorFor(problem).evaluate,
    );
    const evaluator = new Evaluator(problem);
    const to = problem.days[0]!.count;
    const meets = (o: Outcome): boolean => o.p95 <= goal.p95 && lossOf(o) <= goal.loss;
    const brute =
      // Today's setting takes part: where it meets the goal nothing need be changed.
      [...candidates, NOW]
        .sort(costOrder(NOW))
        .find((setting) => meets(evaluator.run({ engine: "rules", day: 0, from: 0, to, setting }))) ?? null;
    const found = report.rows.find((r) => r.label === report.cheapest)?.setting ?? null;
    expect(found === null ? null : keyOf(found)).toBe(brute === null ? null : keyOf(brute));
  });
});
