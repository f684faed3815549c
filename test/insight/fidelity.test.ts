/**
 * A prediction is worth something only if it takes nothing from the run but arrivals and holds, and nothing of them gets
 * lost on the way. So simulated runs, foretold from their own records, must come out the same to the last digit; a live
 * run is small and only counted, because its times are the machine's.
 */
import { describe, expect, test } from "vitest";
import type { Scenario } from "../../src/config/scenario.ts";
import { parseScenario } from "../../src/config/scenario-file.ts";
import { flagsOf, openPools } from "../../src/config/scenario-pools.ts";
import type { RunEvent } from "../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG } from "../../src/core/pool-config.ts";
import { causesOf } from "../../src/insight/fidelity/causes.ts";
import { relative } from "../../src/insight/fidelity/comparison.ts";
import { FidelityFold, type FidelitySetting } from "../../src/insight/fidelity/fidelity.ts";
import { type MeasuredRun, MeasuredRunFold } from "../../src/insight/fidelity/measured-run.ts";
import { predict } from "../../src/insight/fidelity/prediction.ts";
import { SummaryFold } from "../../src/insight/summary-fold.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { poolResolver } from "../../src/workload/pool-resolver.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";
import { leavesNothingBehind } from "../runtime/live-checks.ts";
import { runOf, small } from "../runtime/live-fixture.ts";

const BASE = {
  cluster: {
    executors: [{ count: 3, memory: "10gb", slots: 64 }],
    coordinators: [{ count: 1, on: "dedicated", memory: "10gb" }],
  },
  pools: "flags",
  flags: { default_pool_max_requests: 3 },
  queries: {
    q: { user: "ana", estimate: "1gb", uses: { peak: "512mb" }, duration: { exponential: { mean: "2s" } } },
  },
  arrivals: [{ rate: 1.4, query: "q", from: "0s", to: "120s" }],
};

const scenarioOf = (changes: object): Scenario =>
  parseScenario(JSON.stringify({ name: "fidelity", ...BASE, ...changes }), "fidelity.json");

function settingOf(scenario: Scenario): FidelitySetting {
  const flags = flagsOf(scenario);
  const directory = openPools(scenario, flags);
  const configOf = (pool: string) => {
    const found = directory.lookUp(pool);
    return found.kind === "found" ? found.config : null;
  };
  return {
    scenario,
    flags,
    pools: { configOf: (pool) => configOf(pool) ?? DEFAULT_POOL_CONFIG },
    configOf,
    newFold: () => new SummaryFold({ configOf, admission: scenario.cluster.admission }),
  };
}

/** As a records file would hold them. */
function eventsOf(scenario: Scenario): RunEvent[] {
  const events: RunEvent[] = [];
  const setting = settingOf(scenario);
  const directory = openPools(scenario, setting.flags);
  const resolver = poolResolver(() => directory, setting.flags, scenario.users);
  simulate({ ...setting, workload: createWorkload(scenario, resolver), emit: (e) => events.push(e) });
  return JSON.parse(JSON.stringify(events)) as RunEvent[];
}

function measured(scenario: Scenario, events: readonly RunEvent[]): MeasuredRun {
  const fold = new MeasuredRunFold(scenario.cluster.admission);
  for (const e of events) fold.add(e);
  return fold.finish();
}

/** What became of each query, when it was decided and when it was over. */
const endsOf = (run: MeasuredRun) =>
  run.queries.map((q) => [q.decision, q.wasQueued, q.decidedAt, q.releasedAt, q.ended, [...q.doneAt]]);

const STORIES: readonly {
  readonly name: string;
  readonly changes: object;
  readonly meets: (run: MeasuredRun) => boolean;
}[] = [
  { name: "a running limit", changes: {}, meets: (r) => r.queries.some((q) => q.wasQueued) },
  {
    name: "a pool's memory, seen through the topic",
    changes: { flags: { default_pool_mem_limit: "9gb" } },
    meets: (r) => r.queries.some((q) => q.wasQueued),
  },
  {
    name: "rejections and time-outs",
    changes: { flags: { default_pool_max_requests: 1, default_pool_max_queued: 5, queue_wait_timeout_ms: 6000 } },
    meets: (r) => ["rejected", "timedOut"].every((d) => r.queries.some((q) => q.decision === d)),
  },
  {
    name: "spilling on one host, whose end is later than the others'",
    changes: {
      queries: {
        q: {
          user: "ana",
          estimate: "1gb",
          options: { MEM_LIMIT: "1gb" },
          uses: { peak: "700mb", perHost: { "exec-2": 4 } },
          duration: { exponential: { mean: "2s" } },
        },
      },
    },
    meets: (r) => r.queries.some((q) => new Set(q.doneAt).size > 1),
  },
  {
    name: "queries that fail for want of memory",
    changes: {
      queries: {
        q: {
          user: "ana",
          estimate: "1gb",
          options: { MEM_LIMIT: "1gb" },
          uses: { peak: "2gb", spillable: false },
          duration: "2s",
        },
      },
    },
    meets: (r) => r.queries.some((q) => q.ended === "failed"),
  },
  {
    name: "clients that give up, waiting and running",
    changes: {
      flags: { default_pool_max_requests: 1 },
      queries: {
        q: {
          user: "ana",
          estimate: "1gb",
          uses: { peak: "512mb" },
          duration: { exponential: { mean: "3s" } },
          cancelAfter: { exponential: { mean: "4s" } },
        },
      },
    },
    meets: (r) => r.queries.some((q) => q.decision === "cancelled") && r.queries.some((q) => q.ended === "cancelled"),
  },
  {
    name: "retries and closed-loop clients: arrivals are taken as they came",
    changes: {
      flags: { default_pool_max_requests: 2, default_pool_max_queued: 2 },
      arrivals: [
        { clients: 6, think: "1s", requests: 20, query: "q" },
        { rate: 0.5, query: "q", from: "0s", to: "60s", retries: { on: ["rejected"], attempts: 3, wait: "1s" } },
      ],
    },
    meets: (r) => r.queries.some((q) => q.decision === "rejected"),
  },
  {
    name: "three coordinators that see each other late",
    changes: { cluster: { ...BASE.cluster, coordinators: [{ count: 3, on: "executor" }] } },
    meets: (r) => new Set(r.queries.map((q) => q.coordinator)).size === 3,
  },
  {
    name: "admissiond, whose coordinators poll",
    changes: { cluster: { ...BASE.cluster, admission: "admissiond" } },
    meets: (r) => r.queries.some((q) => q.startedAt > q.decidedAt),
  },
  {
    name: "clients that ask the moment they have their answer",
    changes: { arrivals: [{ clients: 6, think: "0s", query: "q", from: "0s", to: "60s" }] },
    meets: (r) => r.queries.some((q) => r.queries.some((before) => before.releasedAt === q.intended)),
  },
  {
    name: "retries at once, of who timed out too",
    changes: {
      flags: { default_pool_max_requests: 2, default_pool_max_queued: 2, queue_wait_timeout_ms: 1000 },
      arrivals: [
        {
          rate: 1.4,
          query: "q",
          from: "0s",
          to: "120s",
          retries: { on: ["rejected", "timedOut"], attempts: 4, wait: "0s" },
        },
      ],
    },
    meets: (r) => ["rejected", "timedOut"].every((how) => r.queries.some((q) => q.decision === how)),
  },
];

leavesNothingBehind();

describe("insight 7.1, 7.2 a simulated run, foretold from its own arrivals and holds", () => {
  test.each(STORIES)("$name: the same wait for every query", ({ changes, meets }) => {
    const scenario = scenarioOf(changes);
    const run = measured(scenario, eventsOf(scenario));
    expect(run.queries.length).toBeGreaterThan(50);
    expect(meets(run)).toBe(true);
    expect(endsOf(predict(run, settingOf(scenario)))).toEqual(endsOf(run));
  });

  test("nothing of the scenario's durations is used", () => {
    const scenario = scenarioOf({});
    const run = measured(scenario, eventsOf(scenario));
    const { queries } = scenarioOf({ queries: { q: { user: "ana", estimate: "1gb", duration: "1h" } } });
    expect(endsOf(predict(run, settingOf({ ...scenario, queries })))).toEqual(endsOf(run));
  });

  test("every bar holds with nothing between, and no delay explains anything", () => {
    const scenario = scenarioOf({});
    const fold = new FidelityFold(settingOf(scenario));
    for (const e of eventsOf(scenario)) fold.add(e);
    const { pools, causes } = fold.finish(false);
    expect(pools).toHaveLength(1);
    expect(pools[0]!.bars.map((b) => b.found)).toEqual(pools[0]!.bars.map(() => 0));
    expect(pools[0]!.bars.every((b) => b.holds)).toBe(true);
    expect(pools[0]!.perQuery).toMatchObject({ median: 0, p99: 0, most: 0 });
    expect(causes.causes.every((c) => c.explains === null)).toBe(true);
  });
});

describe("insight 7.5 delays that were recorded, put in", () => {
  const scenario = scenarioOf({});
  const run = measured(scenario, eventsOf(scenario));
  const late: MeasuredRun = {
    ...run,
    queries: run.queries.map((q) => ({ ...q, submitted: q.submitted + 10, wakeUp: 0 })),
  };

  test("everybody submitted 10 ms late waits 10 ms longer, counted from what was intended", () => {
    const told = predict(late, settingOf(scenario), { submitLag: true, wakeUp: false, exchanges: false });
    told.queries.forEach((q, i) => {
      expect(q.decidedAt - run.queries[i]!.decidedAt).toBeCloseTo(10, 6);
    });
  });

  test("a wake-up of 10 ms after each release makes those that waited wait longer, and only them", () => {
    const slow = { ...run, queries: run.queries.map((q) => ({ ...q, wakeUp: q.releasedAt > 0 ? 10 : 0 })) };
    const told = predict(slow, settingOf(scenario), { submitLag: false, wakeUp: true, exchanges: false });
    const more = told.queries.map((q, i) => q.decidedAt - run.queries[i]!.decidedAt);
    expect(Math.min(...more)).toBeGreaterThanOrEqual(-1e-6);
    expect(more.filter((_, i) => run.queries[i]!.wasQueued).every((m) => m >= 10 - 1e-6)).toBe(true);
  });

  test("topic rounds of another phase let the pool's memory be seen at other moments, and only then", () => {
    const byMemory = scenarioOf({
      flags: { default_pool_mem_limit: "9gb" },
      queries: { q: { ...BASE.queries.q, options: { MEM_LIMIT: "1gb" } } },
    });
    const seen = measured(byMemory, eventsOf(byMemory));
    const told = (phase: number) => {
      const times = Array.from({ length: 3000 }, (_, i) => phase + 100 * i);
      const run = { ...seen, applied: new Map([[seen.queries[0]!.coordinator, times]]) };
      return predict(run, settingOf(byMemory), { submitLag: false, wakeUp: false, exchanges: true });
    };
    const waited = told(7).queries.filter((q) => q.wasQueued && q.decision === "admitted");
    expect(waited.length).toBeGreaterThan(5);
    // Let in by an exchange, whose phase is 7 ms, or by a release or a time that needs none.
    expect(waited.filter((q) => Math.round(q.decidedAt * 1000) % 100_000 === 7000).length).toBeGreaterThan(5);
    expect(told(0).queries.some((q) => Math.round(q.decidedAt * 1000) % 100_000 === 7000)).toBe(false);
  });

  describe("what hosts held by their own clocks, beside what the coordinator heard", () => {
    const byMemory = scenarioOf({
      flags: { default_pool_mem_limit: "9gb" },
      queries: { q: { ...BASE.queries.q, options: { MEM_LIMIT: "1gb" } } },
    });
    const seen = measured(byMemory, eventsOf(byMemory));
    const foretold = (claimedAfter: number, gaveBackBefore: number) => {
      const queries = seen.queries.map((q) => ({
        ...q,
        claimedAt: q.doneAt.map((t) => (Number.isNaN(t) ? t : q.decidedAt + claimedAfter)),
        gaveBackAt: q.doneAt.map((t) => t - gaveBackBefore),
      }));
      return predict({ ...seen, queries }, settingOf(byMemory));
    };
    const meanWait = (r: MeasuredRun): number =>
      r.queries.reduce((sum, q) => sum + q.decidedAt - q.intended, 0) / r.queries.length;

    test("the same: the same wait for every query", () => {
      expect(seen.queries.filter((q) => q.wasQueued).length).toBeGreaterThan(5);
      expect(endsOf(foretold(0, 0))).toEqual(endsOf(seen));
    });

    test("given back half a round before anybody heard, it is seen a round earlier half of the time", () => {
      expect(meanWait(foretold(0, 50))).toBeLessThan(meanWait(seen));
    });

    test("claimed late, a round can miss what has just been admitted", () => {
      expect(meanWait(foretold(50, 0))).toBeLessThan(meanWait(seen));
    });
  });

  test("a difference that is all submit lag is explained by it, whole", () => {
    const shifted = {
      ...late,
      queries: late.queries.map((q) => ({
        ...q,
        doneAt: q.doneAt.map((t) => t + 10),
        decidedAt: q.decidedAt + 10,
        releasedAt: q.releasedAt + 10,
      })),
    };
    const setting = settingOf(scenario);
    const { causes } = causesOf(shifted, predict(shifted, setting), setting, false);
    expect(causes.find((c) => c.name === "submit lag")?.explains).toBeCloseTo(1, 6);
    expect(causes.find((c) => c.name === "wake-up")?.explains).toBeCloseTo(0, 6);
  });
});

describe("insight 7.4 bars", () => {
  test.each([
    { measured: 1000, predicted: 1016, floor: 0, holds: true },
    { measured: 1000, predicted: 1017, floor: 0, holds: true },
    { measured: 1000, predicted: 1018, floor: 0, holds: false },
    { measured: 1000, predicted: 982, floor: 0, holds: false },
    { measured: 100, predicted: 130, floor: 30, holds: true },
    { measured: 100, predicted: 131, floor: 30, holds: false },
    { measured: 0, predicted: 0, floor: 0, holds: true },
    { measured: 0, predicted: 1, floor: 0, holds: false },
  ])("$measured against $predicted, 1.7 % or $floor ms: $holds", ({ measured: m, predicted: p, floor, holds }) => {
    expect(relative("mean wait", m, p, 0.017, floor).holds).toBe(holds);
  });
});

describe("insight 7 a live run", () => {
  test("its records are enough to foretell it: nobody is missing, all that could wait did", async () => {
    const scenario = small({
      flags: { default_pool_max_requests: "2", default_pool_max_queued: "4" },
      arrivals: [{ at: "0s", query: "q", count: 8 }],
    });
    const { events, calls } = await runOf(scenario);
    const fold = new FidelityFold(settingOf(scenario));
    for (const e of [...calls, ...events]) fold.add(e);
    const { pools, causes } = fold.finish(true);
    // Two run, four wait, two find the queue full: whatever the machine's speed.
    for (const side of [pools[0]!.measured, pools[0]!.predicted])
      expect(side).toMatchObject({ admitted: 6, waited: 0.5, rejected: 0.25, timedOut: 0 });
    // Hosts say by their own clocks when they held something; their coordinator hears later.
    const ends = events.filter((e) => e.kind === "fragmentFinished");
    expect(ends.length).toBeGreaterThan(6);
    for (const e of ends) expect(e.hostAt).toBeLessThanOrEqual(e.at);
    const recorded = causes.causes.filter((c) => c.recorded !== null).map((c) => c.name);
    expect(recorded).toEqual(expect.arrayContaining(["submit lag", "start-up", "release lag", "topic rounds"]));
  });
});
