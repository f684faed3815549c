/**
 * Another order than Impala's: told with three queries on one host of 10 GiB.
 */
import { describe, expect, test } from "vitest";
import type { Scenario } from "../../src/config/scenario.ts";
import { parseScenario } from "../../src/config/scenario-file.ts";
import type { EventOf, RunEvent } from "../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../src/core/pool-config.ts";
import { type Bytes, GiB, type Millis } from "../../src/core/units.ts";
import { BackfillWithAging, type QueueDiscipline } from "../../src/sim/queue-discipline.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { randomRun } from "../../src/sim/sweep/random-scenario.ts";
import { partsOf } from "../../src/sim/sweep/sweep.ts";
import { type Arrival, GivenWorkload } from "./given-workload.ts";

const POOL = "root.a";
const CONFIG: PoolConfig = {
  ...DEFAULT_POOL_CONFIG,
  maxMemResources: (10 * GiB) as Bytes,
  queueTimeout: 600_000 as Millis,
};

const SCENARIO = parseScenario(
  `
cluster: { executors: [{ count: 1, memory: 10gb }], coordinators: [{ count: 1, on: executor }] }
pools: flags
queries:
  half: { estimate: 6gb, duration: 10s, uses: { peak: 1gb } }
  full: { estimate: 10gb, duration: 10s, uses: { peak: 1gb } }
  small: { estimate: 3gb, duration: 4s, uses: { peak: 1gb } }
arrivals: [{ at: 0s, query: half, count: 1 }]
`,
  "/three.yaml",
);

const CLASSES = { half: 0, full: 1, small: 2 };

/** [class, arrival in s] -> order of admission with times in whole seconds (the topic's rounds cut off). */
function admissions(
  given: readonly (readonly [keyof typeof CLASSES, number])[],
  discipline?: QueueDiscipline,
  config: PoolConfig = CONFIG,
): string[] {
  return played(SCENARIO, given, ["exec-1:27000"], config, discipline).map(
    (e) => `${e.queryClass} at ${Math.floor(e.at / 1000)}`,
  );
}

/** Requests go to the coordinators in turn. */
function played(
  scenario: Scenario,
  given: readonly (readonly [keyof typeof CLASSES, number])[],
  coordinators: readonly string[],
  config: PoolConfig,
  discipline?: QueueDiscipline,
): { readonly at: number; readonly query: string; readonly queryClass: string }[] {
  const arrivals = given.map(
    ([name, at], i): Arrival => ({
      at: at * 1000,
      coordinator: coordinators[i % coordinators.length]!,
      pool: POOL,
      queryClass: CLASSES[name],
      duration: name === "small" ? 4000 : 10_000,
      peak: GiB,
    }),
  );
  const events: RunEvent[] = [];
  simulate({
    scenario,
    workload: new GivenWorkload(scenario, arrivals),
    pools: { configOf: () => config },
    emit: (e) => events.push(e),
    ...(discipline === undefined ? {} : { discipline }),
  });
  const classOf = new Map(events.filter((e) => e.kind === "submitted").map((e) => [e.query, e.queryClass]));
  return events
    .filter((e): e is EventOf<"admitted"> => e.kind === "admitted")
    .map(({ at, query }) => ({ at, query, queryClass: classOf.get(query)! }));
}

const QUEUE = [
  ["half", 0],
  ["full", 1],
  ["small", 2],
  ["small", 3],
] as const;

describe("other orders than 5.2's", () => {
  test("Impala's order: the small one waits behind a head that does not fit", () => {
    expect(admissions(QUEUE)).toEqual(["half at 0", "full at 10", "small at 20", "small at 20"]);
  });

  test("backfill: a small one passes at once where it fits, the next when it does", () => {
    const order = new BackfillWithAging(POOL, 60_000 as Millis);
    expect(admissions(QUEUE, order)).toEqual(["half at 0", "small at 2", "small at 6", "full at 10"]);
    expect(order.overtakings).toBe(2);
  });

  test("a head that has waited for the patience is not passed any more", () => {
    // The full one waits since 1 s: at 2 s it may still be passed with 1.001 s of patience, not with 1 s.
    expect(admissions(QUEUE, new BackfillWithAging(POOL, 1001 as Millis))[1]).toBe("small at 2");
    expect(admissions(QUEUE, new BackfillWithAging(POOL, 1000 as Millis))[1]).toBe("full at 10");
  });

  test("the running limit holds for those who pass, too", () => {
    const order = new BackfillWithAging(POOL, 60_000 as Millis);
    expect(admissions(QUEUE, order, { ...CONFIG, maxRequests: 1 })).toEqual(
      admissions(QUEUE, undefined, { ...CONFIG, maxRequests: 1 }),
    );
    expect(order.overtakings).toBe(0);
  });

  test("nobody passes a head that fits", () => {
    const order = new BackfillWithAging(POOL, 60_000 as Millis);
    expect(
      admissions(
        [
          ["half", 0],
          ["small", 1],
          ["small", 2],
          ["small", 3],
        ],
        order,
      ),
    ).toEqual(["half at 0", "small at 1", "small at 5", "small at 9"]);
    expect(order.overtakings).toBe(0);
  });

  test("5.5 T-12: several controllers take their shares, and equal queries have nobody to pass", () => {
    const scenario = parseScenario(
      `
cluster: { executors: [{ count: 1, memory: 100gb }], coordinators: [{ count: 2, on: dedicated }] }
pools: flags
queries:
  half: { estimate: 6gb, duration: 10s, uses: { peak: 1gb } }
  full: { estimate: 10gb, duration: 10s, uses: { peak: 1gb } }
  small: { estimate: 1gb, duration: 4s, uses: { peak: 1gb } }
arrivals: [{ at: 0s, query: half, count: 1 }]
`,
      "/two.yaml",
    );
    // Eight run at first, four on each; when those of the first second end together, each may take half of the places.
    const given = Array.from({ length: 40 }, (_, i) => ["small", i < 8 ? 0 : 1] as const);
    const config: PoolConfig = { ...CONFIG, maxMemResources: (100 * GiB) as Bytes, maxRequests: 8 };
    const coordinators = ["coord-1:27000", "coord-2:27000"];
    const order = new BackfillWithAging(POOL, 60_000 as Millis);
    const strict = played(scenario, given, coordinators, config);
    expect(strict).toHaveLength(40);
    expect(played(scenario, given, coordinators, config, order)).toEqual(strict);
    expect(order.overtakings).toBe(0);
  });

  test("5.4 an arrival wakes nobody: a head that could go by now waits for its pass", () => {
    // The full one gives up at 5.05 s; the statestore's next round is at 5.1 s.
    const impatient = { ...CONFIG, queueTimeout: 4000 as Millis };
    const given = [
      ["half", 0],
      ["full", 1.05],
      ["small", 2],
      ["small", 5.06],
    ] as const;
    const coordinators = ["exec-1:27000"];
    const strict = played(SCENARIO, given, coordinators, impatient);
    expect(strict.map((e) => e.at)).toEqual([0, 5100]);
    expect(played(SCENARIO, given, coordinators, impatient, new BackfillWithAging(POOL, 0 as Millis))).toEqual(strict);
  });

  // Found by comparing random runs: releases that nobody had waited for, faults, an admissiond.
  test.each([38, 198, 222, 231, 719, 1234])("5.4 without patience it is Impala's order, in random run %i", (seed) => {
    const run = randomRun(seed);
    const fates = (discipline?: QueueDiscipline): string[] => {
      const told: string[] = [];
      simulate({
        ...partsOf(run),
        ...(discipline === undefined ? {} : { discipline }),
        onlyOutcomes: true,
        emit: (e) => {
          if ("query" in e) told.push(`${e.at} ${e.kind} ${e.query}`);
        },
      });
      return told.sort();
    };
    const strict = fates();
    expect(strict.length).toBeGreaterThan(20);
    for (const pool of run.configs.keys()) {
      const order = new BackfillWithAging(pool, 0 as Millis);
      expect(fates(order)).toEqual(strict);
      expect(order.overtakings).toBe(0);
    }
  });
});
