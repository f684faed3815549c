/**
 * Another order than Impala's: told with three queries on one host of 10 GiB.
 */
import { describe, expect, test } from "vitest";
import { parseScenario } from "../../src/config/scenario-file.ts";
import type { EventOf, RunEvent } from "../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../src/core/pool-config.ts";
import { type Bytes, GiB, type Millis } from "../../src/core/units.ts";
import { BackfillWithAging, type QueueDiscipline } from "../../src/sim/queue-discipline.ts";
import { simulate } from "../../src/sim/simulate.ts";
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
  const arrivals = given.map(
    ([name, at]): Arrival => ({
      at: at * 1000,
      coordinator: "exec-1:27000",
      pool: POOL,
      queryClass: CLASSES[name],
      duration: name === "small" ? 4000 : 10_000,
      peak: GiB,
    }),
  );
  const events: RunEvent[] = [];
  simulate({
    scenario: SCENARIO,
    workload: new GivenWorkload(SCENARIO, arrivals),
    pools: { configOf: () => config },
    emit: (e) => events.push(e),
    ...(discipline === undefined ? {} : { discipline }),
  });
  const classOf = new Map(events.filter((e) => e.kind === "submitted").map((e) => [e.query, e.queryClass]));
  return events
    .filter((e): e is EventOf<"admitted"> => e.kind === "admitted")
    .map((e) => `${classOf.get(e.query)} at ${Math.floor(e.at / 1000)}`);
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
    const order = new BackfillWithAging(60_000 as Millis);
    expect(admissions(QUEUE, order)).toEqual(["half at 0", "small at 2", "small at 6", "full at 10"]);
    expect(order.overtakings).toBe(2);
  });

  test("a head that has waited for the patience is not passed any more", () => {
    // The full one waits since 1 s: at 2 s it may still be passed with 1.001 s of patience, not with 1 s.
    expect(admissions(QUEUE, new BackfillWithAging(1001 as Millis))[1]).toBe("small at 2");
    expect(admissions(QUEUE, new BackfillWithAging(1000 as Millis))[1]).toBe("full at 10");
  });

  test("the running limit holds for those who pass, too", () => {
    const order = new BackfillWithAging(60_000 as Millis);
    expect(admissions(QUEUE, order, { ...CONFIG, maxRequests: 1 })).toEqual(
      admissions(QUEUE, undefined, { ...CONFIG, maxRequests: 1 }),
    );
    expect(order.overtakings).toBe(0);
  });

  test("nobody passes a head that fits", () => {
    const order = new BackfillWithAging(60_000 as Millis);
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
});
