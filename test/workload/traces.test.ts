import { describe, expect, test } from "vitest";
import type { Scenario, TraceRow } from "../../src/config/scenario.ts";
import { parseScenario } from "../../src/config/scenario-file.ts";
import type { Instant } from "../../src/core/units.ts";
import { type TracedRequest, traceLines } from "../../src/workload/query-log/traced-request.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";
import { withTraces } from "../../src/workload/traces.ts";
import type { Resolver } from "../../src/workload/workload.ts";
import { csvOf, fileWith, GiB, MiB, TABLE_ROW, type TableRow } from "./query-log/log-fixtures.ts";

const scenarioWith = (file: string, more = "", on = "dedicated"): Scenario =>
  parseScenario(
    `
cluster:
  executors: [{ count: 10, memory: 100gb }]
  coordinators: [{ count: 1, on: ${on} }]
pools: flags
queries:
  tile: { pool: root.etl, estimate: 1gb, duration: 4s }
arrivals:
  - { trace: ${file}${more} }
`,
    "/somewhere/scenario.yaml",
  );

const at = (seconds: number, fields: TableRow = {}): TableRow => ({
  ...TABLE_ROW,
  cluster_id: "waterhole",
  query_id: `${seconds}:0`,
  session_id: `${seconds}:0`,
  start_time_utc: `2026-08-22 10:15:${String(seconds).padStart(2, "0")}`,
  backends_count: 11,
  ...fields,
});

const rowsOf = (scenario: Scenario): readonly TraceRow[] => {
  const arrival = scenario.arrivals[0];
  return arrival?.kind === "trace" ? arrival.rows : [];
};

const EVERYBODY: Resolver = {
  resolve: (pool, user) => ({ kind: "resolved", pool, user, groups: [], defaultOptions: {}, maxMtDop: -1 }),
};

describe("insight 4.6 trace arrivals", () => {
  test("a log becomes classes and rows of the scenario, with every execution's own figures", async () => {
    const log = fileWith(
      csvOf([at(0), at(3, { tables_queried: "sales.items", db_user: "bob", backends_count: 4 }), at(5)]),
    );
    const scenario = await withTraces(scenarioWith(log));
    expect(scenario.queries.map((q) => [q.name, q.index])).toEqual([
      ["tile", 0],
      ["sales.orders", 1],
      ["sales.items", 2],
    ]);
    const rows = rowsOf(scenario);
    expect(rows.map((r) => [r.at, r.queryClass, r.user, r.pool, r.duration, r.peak])).toEqual([
      [0, 1, "ana", "root.etl", 4000, 700 * MiB],
      [3000, 2, "bob", "root.etl", 4000, 700 * MiB],
      [5000, 1, "ana", "root.etl", 4000, 700 * MiB],
    ]);
    expect(rows[0]?.shape).toMatchObject({
      perHostMemEstimate: GiB,
      dedicatedCoordMemEstimate: 100 * MiB,
      executors: "all",
      stmtType: "QUERY",
    });
    expect(rows[1]?.shape?.executors).toBe(3);
    expect(rows[0]?.shape).toBe(rows[2]?.shape);
    expect(rows[0]?.shape?.fragments.map((f) => [f.runsOn, f.instancesPerHost])).toEqual([
      ["coordinator", 1],
      ["executors", 2],
    ]);
  });

  test("what it spilled is wanted on its hosts, and paid for in its hold", async () => {
    const spilled = { compressed_bytes_spilled: 1000 * MiB };
    const log = fileWith(csvOf([at(0, spilled), at(1, { ...spilled, backends_count: 1 })]));
    for (const [on, hosts] of [
      ["dedicated", 10],
      ["executor", 10],
    ] as const) {
      const scenario = await withTraces(scenarioWith(log, "", on));
      expect(rowsOf(scenario).map((r) => [r.peak, r.spilled])).toEqual([
        [(700 + 1000 / hosts) * MiB, (1000 / hosts) * MiB],
        [1700 * MiB, 1000 * MiB],
      ]);
    }
  });

  describe("a coordinator that executes under a smaller limit of its own spilled the more", () => {
    // It may reserve 0.8 of 500 MiB; the nine others had 700 MiB as their logged peak says.
    const wanted = async (spilled: number, on: "executor" | "dedicated"): Promise<unknown> => {
      const options = { query_opts_config: `MEM_LIMIT_COORDINATORS=${500 * MiB}`, cluster_id: "waterhole" };
      const log = fileWith(csvOf([at(0, { ...options, compressed_bytes_spilled: spilled })]));
      const [row] = rowsOf(await withTraces(scenarioWith(log, "", on)));
      return [row!.peak, row!.spilled];
    };

    test("it alone: as much as the others had, it had 300 MiB less", async () => {
      expect(await wanted(300 * MiB, "executor")).toEqual([700 * MiB, 300 * MiB]);
    });

    test("all of them: each the same, and it 300 MiB on top", async () => {
      expect(await wanted(1300 * MiB, "executor")).toEqual([800 * MiB, 400 * MiB]);
    });

    test("a dedicated one has nothing to spill", async () => {
      expect(await wanted(1000 * MiB, "dedicated")).toEqual([800 * MiB, 100 * MiB]);
    });
  });

  test.each([
    { group: "default", coordinatorOnly: false },
    { group: "empty group (using coordinator only)", coordinatorOnly: true },
    { group: "", coordinatorOnly: true },
  ])("one backend, executor group '$group': on the coordinator only is $coordinatorOnly", async (c) => {
    const rows = [at(0, { backends_count: 1, executor_group: c.group })];
    const log = fileWith(csvOf(rows, ",", Object.keys(rows[0]!)));
    const [row] = rowsOf(await withTraces(scenarioWith(log, "", "executor")));
    expect(row?.shape?.coordinatorOnly).toBe(c.coordinatorOnly);
    expect(row?.shape?.fragments).toHaveLength(c.coordinatorOnly ? 1 : 2);
  });

  test("where the coordinator is one of the executors the backends are all executors", async () => {
    const log = fileWith(csvOf([at(0, { backends_count: 9 }), at(1, { backends_count: 10 })]));
    const rows = rowsOf(await withTraces(scenarioWith(log, "", "executor")));
    expect(rows.map((r) => r.shape?.executors)).toEqual([9, "all"]);
  });

  test("executions with other options are another class, and the options are in force", async () => {
    const log = fileWith(csvOf([at(0), at(1, { query_opts_config: "MEM_LIMIT=2147483648" })]));
    const scenario = await withTraces(scenarioWith(log));
    expect(scenario.queries.slice(1).map((q) => [q.name, q.options])).toEqual([
      ["sales.orders", {}],
      ["sales.orders-2", { MEM_LIMIT: String(2 * GiB) }],
    ]);
    expect(rowsOf(scenario)[1]?.shape?.options.memLimit).toBe(2 * GiB);
  });

  test("both drivers' stream brings the recorded requests at their times", async () => {
    const log = fileWith(csvOf([at(0), at(3, { db_user: "bob" })]));
    const workload = createWorkload(await withTraces(scenarioWith(log, ", from: 10s")), EVERYBODY);
    const taken = [];
    while (workload.nextAt() !== Number.POSITIVE_INFINITY) taken.push(workload.take());
    expect(taken.map((s) => [s.intended, s.user, s.pool, s.duration, s.peak])).toEqual([
      [10_000, "ana", "root.etl", 4000, 700 * MiB],
      [13_000, "bob", "root.etl", 4000, 700 * MiB],
    ]);
    expect(taken[0]?.shape.perHostMemEstimate).toBe(GiB);
  });

  test("a client that waited for its answer sends its next query when it has it", async () => {
    const trace = [0, 2000, 4000].map(
      (ms, i): TracedRequest => ({
        ...REQUEST,
        at: ms * 1000,
        after: i === 0 ? null : { index: i - 1, think: 500_000 },
      }),
    );
    const workload = createWorkload(await withTraces(scenarioWith(traceFile(trace))), EVERYBODY);
    const first = workload.take();
    expect(workload.nextAt()).toBe(Number.POSITIVE_INFINITY);
    workload.ended(first, "finished", 60_000 as Instant);
    expect(workload.nextAt()).toBe(60_500);
  });

  test("scale below 1 thins out, above 1 adds copies; the same seed draws the same", async () => {
    const trace = Array.from({ length: 1000 }, (_, i): TracedRequest => ({ ...REQUEST, at: i * 1e6 }));
    const file = traceFile(trace);
    const count = async (scale: number): Promise<number> =>
      rowsOf(await withTraces(scenarioWith(file, `, scale: ${scale}`))).length;
    // 300 +- 4.5 standard deviations of a binomial.
    expect(Math.abs((await count(0.3)) - 300)).toBeLessThan(66);
    expect(await count(2)).toBe(2000);
    expect(Math.abs((await count(1.5)) - 1500)).toBeLessThan(72);
    const rows = rowsOf(await withTraces(scenarioWith(file, ", scale: 1.5")));
    expect(rows).toEqual(rowsOf(await withTraces(scenarioWith(file, ", scale: 1.5"))));
    for (let i = 1; i < rows.length; i++) expect(rows[i]!.at).toBeGreaterThanOrEqual(rows[i - 1]!.at);
  });

  test.each([
    // Of two days the other one; of three the one after, and then the one after that.
    { hours: [0, 29, 48], scale: 2, copies: [5, 24, 24] },
    { hours: [1, 26, 75], scale: 3, copies: [2, 25, 27, 49, 50, 51] },
    { hours: [0, 29], scale: 2, copies: [0, 29] },
  ])("insight 4.6: copies of a trace at hours $hours are of other days, give or take a minute", async (c) => {
    const trace = c.hours.map((h, i): TracedRequest => ({ ...REQUEST, at: h * 3600e6, queryId: `${i}:0` }));
    const rows = rowsOf(await withTraces(scenarioWith(traceFile(trace), `, scale: ${c.scale}`)));
    const hours = rows.map((r) => r.at / 3_600_000);
    const expected = [...c.hours, ...c.copies].sort((a, b) => a - b);
    expect(hours).toHaveLength(expected.length);
    hours.forEach((h, i) => {
      expect(Math.abs(h - expected[i]!)).toBeLessThanOrEqual(1 / 60 + 1e-9);
    });
  });

  test("without a trace the scenario is the same object", async () => {
    const scenario = parseScenario(
      "cluster: { executors: [{ count: 1, memory: 1gb }], coordinators: [{ count: 1, on: executor }] }\npools: flags\nqueries: { a: { estimate: 1gb, duration: 1s } }\narrivals: [{ at: 0s, query: a, count: 1 }]\n",
      "/s.yaml",
    );
    expect(await withTraces(scenario)).toBe(scenario);
  });
});

describe("trace files that cannot be used", () => {
  test.each([
    ["broken JSON", (lines: string[]) => [lines[0]!, "{"], /:2: broken JSON in a trace file\. Make it again/],
    [
      "another version",
      (lines: string[]) => [lines[0]!.replace('"version":2', '"version":9')],
      /:1: trace version 9; expected 2/,
    ],
    ["a cut file", (lines: string[]) => [lines[0]!], /0 requests; the header says 1/],
    [
      "a negative hold",
      (lines: string[]) => [lines[0]!, lines[1]!.replace('"hold":4000000', '"hold":-1')],
      /:2: hold is -1; expected a whole number/,
    ],
    [
      "a wait for later",
      (lines: string[]) => [lines[0]!, lines[1]!.replace('"after":null', '"after":{"index":0,"think":1}')],
      /:2: after names a request that comes later/,
    ],
  ])("%s", async (_name, change, message) => {
    const file = fileWith(change([...traceLines(0, [REQUEST])]).join("\n"));
    await expect(withTraces(scenarioWith(file))).rejects.toThrow(message);
  });

  test("a log of which nothing can be replayed", async () => {
    const ddl = fileWith(csvOf([at(0, { admission_result: "", query_type: "DDL" })]));
    await expect(withTraces(scenarioWith(ddl))).rejects.toThrow(
      /none of its 1 statements can be replayed.*waterhole import/,
    );
  });
});

const REQUEST: TracedRequest = {
  at: 0,
  queryId: "1:0",
  queryClass: "orders",
  pool: "root.etl",
  user: "ana",
  coordinator: null,
  stmtType: "QUERY",
  isTrivial: false,
  estimate: GiB,
  coordinatorEstimate: 100 * MiB,
  options: { memLimit: 0, memLimitExecutors: 0, memLimitCoordinators: 0, requestPool: null },
  reservation: 0,
  backends: 11,
  coordinatorOnly: null,
  slots: 1,
  hold: 4_000_000,
  peak: 700 * MiB,
  reserved: 560 * MiB,
  spilled: 0,
  after: null,
  guessed: [],
  recorded: { outcome: "immediately", rejection: null, wait: 0 },
};

const traceFile = (requests: readonly TracedRequest[]): string => fileWith([...traceLines(0, requests)].join("\n"));
