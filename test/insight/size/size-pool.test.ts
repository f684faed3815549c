import { describe, expect, test } from "vitest";
import { lossOf, type Outcome } from "../../../src/insight/size/outcome.ts";
import { Evaluator } from "../../../src/insight/size/problem.ts";
import { costOrder, keyOf, type Setting } from "../../../src/insight/size/setting.ts";
import { DEFAULT_SIZE_OPTIONS, type SizeOptions, sizePool } from "../../../src/insight/size/size-pool.ts";
import type { SizeReport } from "../../../src/insight/size/size-report.ts";
import { evaluatorFor, GiB, gridAround, NOW, problemOf, type Traffic } from "./size-fixtures.ts";

const options = (fields: Partial<SizeOptions> = {}): SizeOptions => ({
  ...DEFAULT_SIZE_OPTIONS,
  p95: 5000,
  spill: 1,
  loss: 0.01,
  ...fields,
});

async function report(
  traffic: Traffic,
  fields: Partial<SizeOptions>,
  now: Setting = NOW,
  days = 1,
): Promise<SizeReport> {
  const problem = problemOf(traffic, now, days);
  return sizePool(problem, options(fields), evaluatorFor(problem).evaluate);
}

/** Every candidate by the rules for the whole day, cheapest that meets the goal. */
function bruteForce(
  traffic: Traffic,
  candidates: readonly Setting[],
  goal: { p95: number; loss: number },
): Setting | null {
  const problem = problemOf(traffic);
  const evaluator = new Evaluator(problem);
  const to = problem.days[0]!.count;
  const meets = (o: Outcome): boolean => o.p95 <= goal.p95 && lossOf(o) <= goal.loss;
  const inOrder = [...candidates].sort(costOrder(NOW));
  return inOrder.find((setting) => meets(evaluator.run({ engine: "rules", day: 0, from: 0, to, setting }))) ?? null;
}

const cheapest = (r: SizeReport): Setting | null => r.rows.find((row) => row.label === r.cheapest)?.setting ?? null;

describe("insight 3.8: elimination finds what brute force finds", () => {
  test.each([1, 2, 3])("seed %d: the cheapest sufficient of 144 settings", async (seed) => {
    const traffic = { seed, small: 1.4 + seed * 0.1, large: 0.03 * seed, seconds: 400 };
    const candidates = gridAround([100, 120, 140, 160, 180, 220]);
    const found = cheapest(await report(traffic, { candidates }));
    const brute = bruteForce(traffic, candidates, { p95: 5000, loss: 0.01 });
    expect(brute).not.toBeNull();
    expect(found === null ? null : keyOf(found)).toBe(keyOf(brute!));
  });

  test("where nothing suffices it says so", async () => {
    const r = await report({ small: 6 }, { candidates: gridAround([60, 80]), p95: 1000 });
    expect(r.cheapest).toBeNull();
    expect(r.sentences[0]).toMatch(/^No setting that was tried meets the goal for root\.tiles/);
  });
});

describe("insight 3.2 min-mem", () => {
  test("a floor that makes every query twice as large as its estimate: without it there is enough, for less", async () => {
    // 30.5 GiB each with it, 15.5 without: 4 or 9 at once, and 6 run on average. With a floor of what the median needs
    // they are charged the same as with none, and that one is kept.
    const now = { ...NOW, minQueryMem: 3 * GiB };
    const r = await report({ small: 1.5, large: 0, seconds: 200 }, { asked: { running: [20], maxQueryMem: [] } }, now);
    expect(r.rows[0]).toMatchObject({ setting: now, meetsGoal: false });
    expect(cheapest(r)).toMatchObject({ minQueryMem: 1.25 * GiB });
    expect(cheapest(r)!.maxMem).toBeLessThanOrEqual(NOW.maxMem);
    expect(r.sentences[0]).toMatch(/at least 1\.3 GiB a query and host instead of 3\.0 GiB/);
  });
});

describe("insight 3.8: what must never happen", () => {
  test("a planted dominated candidate never survives", async () => {
    const candidates = gridAround([160, 180, 200]);
    // Half of the queue, so more is lost, for more memory and everything else the same.
    const planted: Setting = { ...NOW, maxMem: 181 * GiB, maxRunning: 8, maxQueued: 1 };
    const r = await report({ small: 1.7 }, { candidates: [...candidates, planted] });
    expect(r.rows.map((row) => keyOf(row.setting))).not.toContain(keyOf(planted));
  });

  test("today's setting is the first line, run for every day", async () => {
    const r = await report({}, { candidates: gridAround([140, 160]) }, NOW, 3);
    expect(r.rows[0]).toMatchObject({ label: "now", setting: NOW, days: 3 });
    expect(r.rows[0]?.p95Interval).not.toBeNull();
  });

  test("one day has no interval, and the report says so", async () => {
    const r = await report({}, { candidates: gridAround([160]) });
    expect(r.rows.every((row) => row.p95Interval === null)).toBe(true);
    expect(r.assumptions.join()).toContain("one day");
  });
});

describe("insight 3.8: doubling every memory number doubles every memory answer", () => {
  test("pool, estimates and hosts twice as large", async () => {
    const twice: Setting = { ...NOW, maxMem: 2 * NOW.maxMem };
    const memory = [140, 160, 180, 200].map((n) => n * GiB);
    const one = await report({ small: 1.8 }, { asked: { memory } });
    const two = await report({ small: 1.8, estimate: 2 }, { asked: { memory: memory.map((m) => 2 * m) } }, twice);
    expect(one.rows.length).toBeGreaterThan(2);
    expect(two.rows.map((r) => r.setting.maxMem)).toEqual(one.rows.map((r) => 2 * r.setting.maxMem));
    expect(two.rows.map((r) => [r.p95Ms, r.loss, r.setting.maxRunning])).toEqual(
      one.rows.map((r) => [r.p95Ms, r.loss, r.setting.maxRunning]),
    );
  });
});

describe("insight 2.3, 3.7: what bound, and what would not have helped", () => {
  test("memory binds at 9 places: more running changes nothing, more memory does", async () => {
    const r = await report({ small: 2.2, large: 0 }, { candidates: gridAround([160, 180]) });
    const of = (limit: string) => r.relief.find((x) => x.of === "now" && x.limit === limit);
    expect(r.rows[0]?.binding[0]?.constraint).toBe("poolMemory");
    expect(of("memory")?.effect).toBe("helps");
    expect(of("running")?.effect).toBe("none");
    // Every query runs on all hosts: with one more each is charged 17 GiB, and 8 fit instead of 9.
    expect(of("executors")?.effect).toBe("worsens");
    expect(r.sentences[1]).toMatch(/^Pool memory \(ADM-4\) bound .*one more running.*changes? nothing/);
  });

  test("the running limit binds at 8: more memory changes nothing", async () => {
    const now = { ...NOW, maxMem: 600 * GiB, maxRunning: 8 };
    const r = await report({ small: 1.9, large: 0 }, { candidates: gridAround([160]) }, now);
    const of = (limit: string) => r.relief.find((x) => x.of === "now" && x.limit === limit);
    expect(r.rows[0]?.binding[0]?.constraint).toBe("runningLimit");
    expect(of("memory")?.effect).toBe("none");
    expect(of("running")?.effect).toBe("helps");
  });

  test("sentences carry the change, the effect and the price", async () => {
    const r = await report({ small: 1.8 }, { candidates: gridAround([160, 180, 200, 240]) }, NOW, 3);
    expect(r.sentences[0]).toMatch(
      /^Give root\.tiles \d+\.\d GiB instead of 150\.0 GiB.*: the p95 wait falls from .* to .* \(paired difference .* over 3 days\) and losses .*, for \d+\.\d GiB that other pools no longer have\.$/,
    );
  });
});
