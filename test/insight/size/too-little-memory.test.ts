/**
 * What a limit below a query's peak costs: the same in the pool model, by the rules, and in `simulate`.
 */
import { describe, expect, test } from "vitest";
import { parseScenario } from "../../../src/config/scenario-file.ts";
import type { FinishState } from "../../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG } from "../../../src/core/pool-config.ts";
import type { QueryFacts } from "../../../src/core/run-observer.ts";
import { MiB } from "../../../src/core/units.ts";
import { SilentObserver } from "../../../src/insight/silent-observer.ts";
import { failedShareOf, lossOf, type Outcome, spillShareOf } from "../../../src/insight/size/outcome.ts";
import type { Evaluator } from "../../../src/insight/size/problem.ts";
import type { Setting } from "../../../src/insight/size/setting.ts";
import { simulate } from "../../../src/sim/simulate.ts";
import { RecordedWorkload } from "../../../src/workload/recorded-requests.ts";
import { configOf, evaluatorOver, GiB, NOW, POOL } from "./size-fixtures.ts";

/** Queries of 4 s on ten hosts, a minute apart, so that nothing waits; their estimate is far above `uses`. */
const scenarioOf = (uses: string, more = "", arrivals = "every: 60s, to: 20m") =>
  parseScenario(
    `
cluster:
  executors: [{ count: 10, memory: 100gb }]
  coordinators: [{ count: 1, on: dedicated }]
pools: flags
queries:
  q: { pool: ${POOL}, estimate: 8gb, coordinatorEstimate: 100mb, duration: 4s, uses: ${uses}${more} }
arrivals: [{ query: q, ${arrivals} }]
`,
    "/little.yaml",
  );

const under = (maxQueryMem: number): Setting => ({ ...NOW, maxMem: 900 * GiB, maxQueryMem });

const ENGINES = ["model", "rules"] as const;

function outcomeOf(evaluator: Evaluator, engine: (typeof ENGINES)[number], setting: Setting): Outcome {
  return evaluator.run({ engine, day: 0, from: 0, to: evaluator.problem.days[0]!.count, setting });
}

/** Nothing overlaps, so this is the length of one. */
const holdOf = (o: Outcome): number => o.memoryTime / (o.peakMemory * o.submitted);

/** Memory is given back a round of the topic after the end at most. */
const ROUND_MS = 110;

describe.each(ENGINES)("insight 3.2 a limit below the peak, by the %s", (engine) => {
  const unspillable = evaluatorOver(scenarioOf("{ peak: 1gb, spillable: false }"));
  test.each([
    // 0.8 of 1,280 MiB is 1 GiB (R8).
    { limit: 1279, failed: 1 },
    { limit: 1280, failed: 0 },
    { limit: 1281, failed: 0 },
  ])("at $limit MiB, $failed of those fail that cannot spill, and count as lost", ({ limit, failed }) => {
    const o = outcomeOf(unspillable, engine, under(limit * MiB));
    expect(o.submitted).toBe(20);
    expect([failedShareOf(o), lossOf(o), spillShareOf(o)]).toEqual([failed, failed, 0]);
  });

  test("they fail when their profile crosses the limit: half of the peak comes after a quarter of the time", () => {
    const ramp = evaluatorOver(scenarioOf("{ peak: 2gb, spillable: false, shape: triangle }"));
    const o = outcomeOf(ramp, engine, under(1280 * MiB));
    expect(failedShareOf(o)).toBe(1);
    // A triangle has its peak in the middle of the 4 s.
    expect(holdOf(o)).toBeGreaterThanOrEqual(1000);
    expect(holdOf(o)).toBeLessThanOrEqual(1004 + ROUND_MS);
  });

  const spillable = evaluatorOver(scenarioOf("{ peak: 1gb }"));
  test.each([
    { limit: 1279, spilled: 1 },
    { limit: 1280, spilled: 0 },
    { limit: 1281, spilled: 0 },
  ])("at $limit MiB, $spilled of those spill that can, and nothing is lost", ({ limit, spilled }) => {
    const o = outcomeOf(spillable, engine, under(limit * MiB));
    expect([failedShareOf(o), lossOf(o), spillShareOf(o)]).toEqual([0, 0, spilled]);
  });

  test.each([
    { peak: "1gb", hold: 4000 },
    { peak: "2gb", hold: 4000 * 1.3 },
    { peak: "3gb", hold: 4000 * 1.6 },
    { peak: "40gb", hold: 4000 * 3 },
  ])("with room for 1 GiB, a peak of $peak takes $hold ms", ({ peak, hold }) => {
    const o = outcomeOf(evaluatorOver(scenarioOf(`{ peak: ${peak} }`)), engine, under(1280 * MiB));
    expect(holdOf(o)).toBeGreaterThanOrEqual(hold - 1);
    expect(holdOf(o)).toBeLessThanOrEqual(hold + ROUND_MS);
  });

  test("a setting that loses those who would spill does not spill less", () => {
    const burst = evaluatorOver(scenarioOf("{ peak: 2gb }", "", "at: 0s, count: 30"));
    const o = outcomeOf(burst, engine, { ...under(1280 * MiB), maxRunning: 2, maxQueued: 1 });
    expect([o.rejected, spillShareOf(o)]).toEqual([27, 1]);
  });
});

describe("insight 3.2 skew: a query spills where its peak is largest", () => {
  test.each(ENGINES)("by the %s: at four times 1 GiB on one of its hosts it takes 1.9 times as long", (engine) => {
    const skewed = evaluatorOver(scenarioOf("{ peak: 1gb, perHost: { exec-05: 4 } }"));
    const o = outcomeOf(skewed, engine, under(1280 * MiB));
    expect(spillShareOf(o)).toBe(1);
    // The hosts that have enough give their memory back after 4 s; the place is held to the end.
    const two = evaluatorOver(scenarioOf("{ peak: 1gb, perHost: { exec-05: 4 } }", "", "at: 0s, count: 2"));
    const { longestWait } = outcomeOf(two, engine, { ...under(1280 * MiB), maxRunning: 1 });
    expect(longestWait).toBeGreaterThanOrEqual(7600 - 1);
    expect(longestWait).toBeLessThanOrEqual(7600 + ROUND_MS);
    expect(outcomeOf(skewed, engine, under(5 * 1024 * MiB)).spilled).toBe(0);
    expect(outcomeOf(skewed, engine, under((5 * 1024 - 1) * MiB)).spilled).toBe(20);
  });

  test.each(["true", "false"])("with spillable %s, those of 3 hosts that come to it, as in simulate", (spillable) => {
    const scenario = scenarioOf(`{ peak: 1gb, perHost: { exec-05: 4 }, spillable: ${spillable} }`, ", hosts: 3");
    const evaluator = evaluatorOver(scenario);
    const [model, rules] = ENGINES.map((engine) => outcomeOf(evaluator, engine, under(1280 * MiB)));
    const told = new Trouble();
    const day = evaluator.problem.days[0]!;
    const config = { ...configOf(under(1280 * MiB)), maxQueryMemLimit: under(1280 * MiB).maxQueryMem };
    simulate({
      scenario,
      workload: new RecordedWorkload(day),
      pools: { configOf: (pool) => (pool === POOL ? { ...DEFAULT_POOL_CONFIG, ...config } : DEFAULT_POOL_CONFIG) },
      flags: evaluator.problem.flags,
      observer: told,
    });
    expect(told.spilledOnes.size + told.failedOnes.size).toBeGreaterThan(0);
    expect(told.spilledOnes.size + told.failedOnes.size).toBeLessThan(day.count);
    const expected = { spilled: told.spilledOnes.size, failed: told.failedOnes.size };
    expect(rules).toMatchObject(expected);
    expect(model).toMatchObject(expected);
  });
});

/** Who spilled, and who failed. */
class Trouble extends SilentObserver {
  readonly spilledOnes = new Set<string>();
  readonly failedOnes = new Set<string>();

  override spilled(_at: number, q: QueryFacts): void {
    this.spilledOnes.add(q.queryId);
  }

  override released(_at: number, q: QueryFacts, state: FinishState): void {
    if (state === "failed") this.failedOnes.add(q.queryId);
  }
}
