import { describe, expect, test } from "vitest";
import { parseScenario } from "../../../src/config/scenario-file.ts";
import { classWorkloadOf } from "../../../src/insight/log/class-workload.ts";
import { logReport } from "../../../src/insight/log/log-report.ts";
import { DEFAULT_DEMAND, demandOf } from "../../../src/workload/query-log/demand.ts";
import { type LoggedQuery, NO_OPTIONS } from "../../../src/workload/query-log/logged-query.ts";
import { GiB, logged, logOf, MiB } from "../../workload/query-log/log-fixtures.ts";

const SECOND = 1e6;
const MIDNIGHT = Date.UTC(2026, 7, 22) * 1000;

const at = (seconds: number, fields: Partial<LoggedQuery> = {}): LoggedQuery =>
  logged({ start: MIDNIGHT + seconds * SECOND, line: seconds + 2, ...fields });

const workloadOf = (rows: readonly LoggedQuery[]) => classWorkloadOf(demandOf(logOf(rows), DEFAULT_DEMAND));

const kindsOf = (query: object) => {
  const { trivial, coordinatorOnly } = query as { trivial?: boolean; coordinatorOnly?: boolean };
  return { trivial, coordinatorOnly };
};

test("a log may have more queries than a call has room for arguments", () => {
  const log = logOf([at(0, { reservation: 40 * MiB })]);
  const one = demandOf(log, DEFAULT_DEMAND);
  const times = <T>(items: readonly T[]): T[] => new Array<T>(150_000).fill(items[0]!);
  const { requests, rows, allRows, allClasses } = one;
  const all = {
    ...one,
    requests: times(requests),
    rows: times(rows),
    allRows: times(allRows),
    allClasses: times(allClasses),
  };
  expect(classWorkloadOf(all).executors).toBe(10);
  const report = logReport(log, all, "lastRow", null, { declaredPools: null });
  expect(report.classes[0]).toMatchObject({ n: 150_000, largestReservation: 40 * MiB });
});

describe("insight 4.6 classes", () => {
  test.each([
    { amount: 10 * 512 * MiB, n: 10, hosts: 10, execute: true },
    { amount: 10 * GiB + 100 * MiB, n: 11, hosts: 10, execute: false },
  ])(
    "$amount bytes on $n hosts are $hosts executors, coordinator among them: $execute",
    ({ amount, n, hosts, execute }) => {
      const rows = [0, 1, 2].map((i) =>
        at(i, { backends: n, clusterAdmitted: amount, coordinatorEstimate: 100 * MiB }),
      );
      const { queries, executors, coordinatorsExecute } = workloadOf(rows);
      expect(Object.values(queries)).toMatchObject([{ hosts }]);
      expect([executors, coordinatorsExecute]).toEqual([hosts, execute]);
    },
  );

  test("peaks keep their part of the estimate, which is one for all: nobody spills who did not", () => {
    const rows = [1, 2, 2, 2, 3].map((k, i) =>
      at(10 * i, {
        estimate: k * GiB,
        clusterAdmitted: 10 * k * GiB,
        peakMax: k * GiB,
        options: k === 3 ? { ...NO_OPTIONS, memLimitExecutors: k * GiB } : NO_OPTIONS,
      }),
    );
    const [query] = Object.values(workloadOf(rows).queries) as [{ estimate: string; uses: { peak: unknown } }];
    expect(query.estimate).toBe(`${2 * GiB}b`);
    // Of 2 GiB reservations have 0.8 (R8), the whole of which each of the five had.
    const all = `${Math.round(2 * GiB * 0.8)}b`;
    expect(query.uses.peak).toEqual({ empirical: [all, all, all, all, all] });
  });

  test("a rate with a factor for each hour of the day; a day twice in the log counts as one", () => {
    const hour = (h: number, n: number): LoggedQuery[] =>
      Array.from({ length: n }, (_, i) => at(h * 3600 + Math.floor((i * 3571) % 3600)));
    const last = at(34 * 3600 - 0.002);
    const { arrivals, remarks } = workloadOf([...hour(8, 120), ...hour(9, 60), ...hour(32, 80), ...hour(33, 59), last]);
    // 8 h: (120 + 80) / 2, 9 h: 60; the hours between are covered and empty.
    expect(arrivals).toHaveLength(1);
    const { rate, day } = arrivals[0] as { rate: string; day: number[] };
    expect(rate).toBe("6.66667/h");
    expect(day[8]).toBeCloseTo(100 / (160 / 24), 4);
    expect(day[9]).toBeCloseTo(60 / (160 / 24), 4);
    expect(remarks.filter((r) => /only/.test(r))).toEqual([]);
    expect(day.filter((f) => f > 0)).toHaveLength(2);
  });

  const perHour = (rows: readonly LoggedQuery[]): Record<number, number> => {
    const { rate, day } = workloadOf(rows).arrivals[0] as { rate: string; day: number[] };
    return Object.fromEntries(
      day.flatMap((f, h) => (f === 0 ? [] : [[h, Math.round(f * Number(rate.replace("/h", "")))]])),
    );
  };
  /** One every 2 s, the first and the last included. */
  const between = (from: number, to: number): LoggedQuery[] =>
    Array.from({ length: (to - from) / 2 + 1 }, (_, i) => at(from + 2 * i));

  test("an hour that is in the log for a part only goes on at that part's rate, and that is said", () => {
    // 50 min of hour 9 with 1 in 2 s, 10 min of hour 10 with 301: 1,800 and 1,806 an hour.
    const rows = between(9 * 3600 + 600, 10 * 3600 + 600);
    expect(perHour(rows)).toEqual({ 9: 1800, 10: 1806 });
    expect(workloadOf(rows).remarks).toEqual([
      "the log has only 50 min of hour 9, 10 min of hour 10: the rate there is taken for the whole hour",
    ]);
  });

  test.each([
    // 1,951 in 65 min are 1,801 an hour; 151 in 5 min 1,812.
    { seconds: 300, rate: 1812 },
    { seconds: 298, rate: 1801 },
  ])("of $seconds s of an hour its own rate or the log's: $rate", ({ seconds, rate }) => {
    expect(perHour(between(9 * 3600, 10 * 3600 + seconds))).toEqual({ 9: 1800, 10: rate });
  });

  test("requests of one moment are an hour's", () => {
    expect(perHour([at(0), at(0), at(0)])).toEqual({ 0: 3 });
  });

  test("steady traffic of a part of an hour does not come in batches", () => {
    expect(workloadOf(between(0, 1200)).remarks.filter((r) => /batches/.test(r))).toEqual([]);
  });

  test("trivial queries and those of the coordinator alone stay what they are (T-3, MEM-8)", () => {
    const rows = [
      ...Array.from({ length: 30 }, (_, i) => at(i)),
      at(40, { outcome: "trivially", backends: 1, peakMax: 0 }),
      at(41, { backends: 1 }),
      at(42, { fingerprint: "other", tables: ["a.b"], outcome: "trivially", backends: 1, lastRow: 1500, estimate: 1 }),
    ];
    const { queries, arrivals } = workloadOf(rows);
    expect(Object.entries(queries).map(([name, q]) => [name, kindsOf(q)])).toEqual([
      ["orders", { trivial: undefined, coordinatorOnly: undefined }],
      ["rest-etl-30-21-coordinator", { trivial: undefined, coordinatorOnly: true }],
      ["rest-etl-30-21-trivial", { trivial: true, coordinatorOnly: true }],
      ["rest-etl-0-8-trivial", { trivial: true, coordinatorOnly: true }],
    ]);
    const scenario = parseScenario(
      JSON.stringify({
        cluster: { executors: [{ count: 10, memory: "100gb" }], coordinators: [{ count: 1, on: "dedicated" }] },
        pools: "flags",
        queries,
        arrivals,
      }),
      "/classes.json",
    );
    expect(scenario.queries.map((q) => [q.shape.isTrivial, q.shape.coordinatorOnly])).toEqual([
      [false, false],
      [false, true],
      [true, true],
      [true, true],
    ]);
  });

  test("a query that starts on the same second of every hour is a schedule", () => {
    const rows = Array.from({ length: 20 }, (_, h) => at(h * 3600 + 900));
    expect(workloadOf(rows).arrivals).toEqual([{ query: "orders", every: "1h", from: "900s", to: "24h" }]);
  });

  test("four out of five hours are not over 80 %", () => {
    const rows = Array.from({ length: 20 }, (_, h) => at(h * 3600 + (h % 5 === 0 ? 100 * h : 900)));
    expect(workloadOf(rows).arrivals[0]).toHaveProperty("rate");
  });

  test("batches are said, steady traffic is not", () => {
    const steady = Array.from({ length: 720 }, (_, i) => at(i * 5));
    const batches = Array.from({ length: 720 }, (_, i) => at(Math.floor(i / 12) * 60));
    expect(workloadOf(steady).remarks).toEqual([]);
    expect(workloadOf(batches).remarks[0]).toMatch(
      /^orders comes in batches \(variance \d+\.\d times the mean in 10 s\)/,
    );
  });

  test("what makes up the last 5 % of memory-time is put together by pool, size and hold", () => {
    const main = Array.from({ length: 96 }, (_, i) => at(i));
    const rest = Array.from({ length: 10 }, (_, i) =>
      at(200 + i, { fingerprint: `r${i % 2}`, tables: [`a.t${i % 2}`], lastRow: 3000 + 1000, estimate: GiB }),
    );
    expect(Object.keys(workloadOf([...main, ...rest]).queries)).toEqual(["orders", "rest-etl-30-11"]);
  });

  test("it is a scenario: estimates, quantiles of holds and peaks, width, options", () => {
    const rows = Array.from({ length: 50 }, (_, i) =>
      at(i, {
        lastRow: (i + 1) * SECOND,
        peakMax: (i + 1) * 1024 ** 2,
        options: { memLimit: 2 * GiB, memLimitExecutors: 0, memLimitCoordinators: 0, requestPool: null },
      }),
    );
    const { queries, arrivals } = workloadOf(rows);
    const scenario = parseScenario(
      JSON.stringify({
        cluster: { executors: [{ count: 10, memory: "100gb" }], coordinators: [{ count: 1, on: "dedicated" }] },
        pools: "flags",
        queries,
        arrivals,
      }),
      "/classes.json",
    );
    const [c] = scenario.queries;
    expect(c?.shape).toMatchObject({ perHostMemEstimate: GiB, executors: 9 });
    expect(c?.options.MEM_LIMIT).toBe(String(2 * GiB));
    expect(c?.duration.kind === "empirical" && c.duration.values).toHaveLength(40);
    expect(c?.uses.kind === "footprint" && c.uses.peak.kind === "empirical" && Math.max(...c.uses.peak.values)).toBe(
      18 * 1024 ** 2,
    );
    expect(scenario.arrivals[0]).toMatchObject({ kind: "rate" });
  });
});
