import { describe, expect, test } from "vitest";
import { type Advice, adviceText } from "../../../src/insight/log/advice.ts";
import { type LogReport, logReport } from "../../../src/insight/log/log-report.ts";
import { DEFAULT_DEMAND, demandOf } from "../../../src/workload/query-log/demand.ts";
import type { LoggedQuery } from "../../../src/workload/query-log/logged-query.ts";
import { GiB, logged, logOf, MiB } from "../../workload/query-log/log-fixtures.ts";

const SECOND = 1e6;
const HOUR = 3600 * SECOND;

const at = (seconds: number, fields: Partial<LoggedQuery> = {}): LoggedQuery =>
  logged({ start: seconds * SECOND, line: Math.round(seconds) + 2, ...fields });
const many = (n: number, fields: Partial<LoggedQuery> = {}, from = 0): LoggedQuery[] =>
  Array.from({ length: n }, (_, i) => at(from + i, fields));

function report(rows: readonly LoggedQuery[], declared: readonly string[] | null = null): LogReport {
  const log = logOf(rows);
  const declaredPools = declared === null ? null : new Set(declared);
  return logReport(log, demandOf(log, DEFAULT_DEMAND), "lastRow", null, { declaredPools });
}

const advice = (r: LogReport, id: Advice["id"]): Advice[] => r.advice.filter((a) => a.id === id);

describe("insight 4.4 per pool", () => {
  test("every statement is counted under what became of it", () => {
    const lost = { lastRow: null, unregistered: 2000, backends: null, clusterAdmitted: null, peakMax: null };
    const rows = [
      ...many(4),
      at(10, { outcome: "trivially" }),
      at(11, { outcome: "fromQueue", completedAdmission: 2 * SECOND, lastRow: 6 * SECOND }),
      at(12, { outcome: "fromQueue", completedAdmission: 8 * SECOND, lastRow: 12 * SECOND }),
      at(200, { ...lost, outcome: "rejected", rejection: "queueFull", fingerprint: "r1" }),
      at(201, { ...lost, outcome: "rejected", rejection: "memory", fingerprint: "r2" }),
      at(202, { ...lost, outcome: "timedOut", completedAdmission: 60 * SECOND, fingerprint: "r3" }),
      at(203, { ...lost, outcome: "cancelledInQueue", fingerprint: "r4" }),
      at(300, { end: "failed", failedForMemory: true }),
      at(301, { end: "cancelled" }),
    ];
    const { pools } = report(rows);
    expect(pools).toHaveLength(1);
    expect(pools[0]).toMatchObject({
      pool: "root.etl",
      statements: 13,
      atOnce: 6,
      trivial: 1,
      fromQueue: 2,
      rejected: { queueFull: 1, memory: 1 },
      rejectedInAll: 2,
      timedOut: 1,
      cancelledInQueue: 1,
      failed: 1,
      cancelledRunning: 1,
      failedForMemory: 1,
      waitMs: { p50: 1999, p95: 7999, max: 7999 },
      waitedShare: 4 / 13,
      lostShare: 4 / 13,
      requests: 13,
      memoryTimeShare: 1,
      busiestHour: { startMs: 0, statements: 13 },
    });
  });

  test("the busiest hour, and memory-time shared between pools", () => {
    const rows = [
      ...many(3),
      ...many(5, { start: 0, pool: "root.bi" }).map((q, i) => ({ ...q, start: HOUR + i * SECOND })),
    ];
    const { pools } = report(rows);
    expect(pools.map((p) => [p.pool, p.busiestHour?.startMs, p.memoryTimeShare])).toEqual([
      ["root.bi", 3_600_000, 5 / 8],
      ["root.etl", 0, 3 / 8],
    ]);
  });
});

describe("insight 4.5 per class", () => {
  test("estimate against peak, and memory that was admitted and never used", () => {
    const { classes } = report(many(10, { estimate: 4 * GiB, clusterAdmitted: 40 * GiB, peakMax: GiB, backends: 10 }));
    expect(classes[0]).toMatchObject({
      queryClass: "orders",
      n: 10,
      estimateP50: 4 * GiB,
      admittedP50: 4 * GiB,
      inflationP50: 4,
      hostsP50: 10,
      holdMs: { p50: 4000, p95: 4000 },
    });
    // 3 GiB on 10 hosts for 4 s, ten times.
    expect(classes[0]?.neverUsedGiBHours).toBeCloseTo((3 * 10 * 4 * 10) / 3600, 10);
  });

  test("admitted is what an executor was charged, not a mean of it and the coordinator", () => {
    const { classes } = report(many(10, { estimate: 4 * GiB, clusterAdmitted: 40 * GiB + 100 * MiB, backends: 11 }));
    expect(classes[0]?.admittedP50).toBe(4 * GiB);
  });

  test("where only the sum of the peaks tells of hosts, memory-time and waste go by as many as it takes", () => {
    const known = { estimate: 4 * GiB, clusterAdmitted: null, peakMax: GiB, backends: null, leastBackends: 10 };
    const { classes, pools } = report([...many(10, known), ...many(10, { ...known, pool: "root.bi" }, 100)]);
    expect(classes.map((c) => [c.hostsP50, c.memoryTimeShare])).toEqual([
      [null, 1],
      [null, 1],
    ]);
    expect(classes[0]?.neverUsedGiBHours).toBeCloseTo((3 * 10 * 4 * 10) / 3600, 10);
    expect(pools.map((p) => p.memoryTimeShare)).toEqual([0.5, 0.5]);
  });

  test("ordered by never used, not by inflation; shared equally by the tables", () => {
    const rare = many(5, {
      fingerprint: "rare",
      tables: ["a.x"],
      estimate: 50 * GiB,
      clusterAdmitted: 500 * GiB,
      peakMax: GiB,
      lastRow: 2000,
    });
    const often = many(50, {
      fingerprint: "often",
      tables: ["a.y", "a.z"],
      estimate: 2 * GiB,
      clusterAdmitted: 20 * GiB,
      peakMax: GiB,
    });
    const { classes, tables } = report([...rare, ...often]);
    expect(classes.map((c) => c.queryClass)).toEqual(["y+z"]);
    expect(tables.map((t) => t.table)).toEqual(["a.y", "a.z", "a.x"]);
    expect(tables[0]?.neverUsedGiBHours).toBeCloseTo((50 * 10 * 4) / 3600 / 2, 10);
  });

  test("the last 5 % of a pool's memory-time are not listed but counted", () => {
    const main = many(96, {});
    const small = [0, 1].flatMap((k) => many(5, { fingerprint: `s${k}`, tables: [`a.s${k}`], lastRow: 2_000 + 1000 }));
    const { classes, minorClasses } = report([...main, ...small]);
    expect([classes.length, minorClasses]).toEqual([1, 2]);
  });
});

describe("insight 4.5 advice", () => {
  const inflated = { estimate: 20 * GiB, clusterAdmitted: 200 * GiB, peakMax: 512 * MiB };

  test("K1: statistics missing by name, inflation 4 and memory-time of a per cent", () => {
    const named = report(many(10, { ...inflated, missingStats: ["sales.orders"], statsMissing: true }));
    expect(advice(named, "K1")).toMatchObject([
      { table: "sales.orders", gains: [{ queryClass: "orders", estimate: 20 * GiB, wouldBe: 640 * MiB }] },
    ]);
    expect(adviceText(advice(named, "K1")[0]!)).toMatch(
      /^COMPUTE STATS sales\.orders: .*orders from 20\.00 GB to about 640\.00 MB a host/,
    );
    const justBelow = report(
      many(10, { ...inflated, estimate: 2047 * MiB, statsMissing: true, missingStats: ["sales.orders"] }),
    );
    expect(advice(justBelow, "K1")).toEqual([]);
    const exact = report(
      many(10, { ...inflated, estimate: 2048 * MiB, statsMissing: true, missingStats: ["sales.orders"] }),
    );
    expect(advice(exact, "K1")).toHaveLength(1);
  });

  test("K1: where the log says only that some are missing, all tables of the class are meant", () => {
    const r = report(many(10, { ...inflated, tables: ["a.x", "a.y"], statsMissing: true }));
    expect(advice(r, "K1").map((a) => (a.id === "K1" ? [a.table, a.isNamed] : []))).toEqual([
      ["a.x", false],
      ["a.y", false],
    ]);
    expect(adviceText(advice(r, "K1")[0]!)).toMatch(
      /^COMPUTE STATS a\.x if it has none: .* and statistics are missing of one of the tables read\. /,
    );
  });

  test("K1: a table that one class names is named, whoever else may mean it", () => {
    const unnamed = many(10, { ...inflated, tables: ["a.x"], statsMissing: true });
    const named = { ...inflated, fingerprint: "f2", tables: ["a.x"], statsMissing: true, missingStats: ["a.x"] };
    expect(advice(report([...unnamed, ...many(10, named, 100)]), "K1")).toMatchObject([
      { table: "a.x", isNamed: true },
    ]);
  });

  test("K1: without amounts nobody knows a share of memory-time, and the advice stands", () => {
    const old = { ...inflated, clusterAdmitted: null, backends: null, statsMissing: true, missingStats: ["a.x"] };
    const r = report(many(10, old));
    expect(r.classes).toMatchObject([{ memoryTimeShare: null, neverUsedGiBHours: null }]);
    expect(advice(r, "K1")).toHaveLength(1);
  });

  test("K2: three classes, eight times too high, with one table in common", () => {
    const classes = (n: number): LoggedQuery[] =>
      Array.from({ length: n }, (_, k) =>
        many(5, { ...inflated, fingerprint: `f${k}`, tables: ["sales.orders", `a.t${k}`] }),
      ).flat();
    expect(advice(report(classes(3)), "K2")).toMatchObject([{ table: "sales.orders" }]);
    expect(advice(report(classes(2)), "K2")).toEqual([]);
  });

  test("K4: max-query-mem-limit from the largest p99 x 1.25 in steps of 64 MiB, only if estimates are above it", () => {
    const r = report(many(10, { ...inflated, peakMax: 1000 * MiB }));
    expect(advice(r, "K4")).toEqual([{ id: "K4", pool: "root.etl", maxMem: 1280 * MiB, profits: ["orders"] }]);
    const reserved = report(many(10, { ...inflated, peakMax: 1000 * MiB, reservation: 4 * GiB }));
    expect(advice(reserved, "K4")).toMatchObject([{ maxMem: 5 * GiB }]);
    expect(advice(report(many(10, { estimate: GiB, peakMax: 1000 * MiB })), "K4")).toEqual([]);
  });

  test("K5: limits that bite, from a share of 20 % on", () => {
    const tight = (n: number): LoggedQuery[] => many(n, { clusterAdmitted: 10 * GiB, peakMax: GiB });
    const loose = (n: number): LoggedQuery[] => many(n, { clusterAdmitted: 10 * GiB, peakMax: GiB / 2 }, 100);
    expect(advice(report([...tight(2), ...loose(8)]), "K5")).toEqual([]);
    expect(advice(report([...tight(3), ...loose(7)]), "K5")).toMatchObject([
      { queryClass: "orders", memLimit: Math.round(1.25 * GiB), asPoolMinimum: true },
    ]);
    expect(advice(report([...loose(10), at(200, { failedForMemory: true, end: "failed" })]), "K5")).toHaveLength(1);
  });

  test.each([
    // A coordinator with 100 MiB and ten executors with 2 GiB each.
    { peak: 1023 * MiB, advised: 0 },
    { peak: 1024 * MiB, advised: 1 },
    { peak: null, advised: 1 },
    { peak: 0, advised: 0 },
  ])("K5: of 2 GiB a query that failed with $peak bytes met its own limit: $advised", ({ peak, advised }) => {
    const rows = (fields: Partial<LoggedQuery>, from = 0): LoggedQuery[] =>
      many(10, { estimate: 2 * GiB, backends: 11, peakMax: 500 * MiB, ...fields }, from);
    const ran = { clusterAdmitted: 20 * GiB + 100 * MiB };
    const failed = at(200, {
      ...rows(ran)[0]!,
      start: 200 * SECOND,
      peakMax: peak,
      failedForMemory: true,
      end: "failed",
    });
    const r = report([...rows(ran), failed]);
    expect(advice(r, "K5")).toHaveLength(advised);
    expect(r.classes).toMatchObject([{ failedForMemory: 1, failedAtLimit: advised }]);
    // Where the log has no amounts, the estimate is what there is to go by, and less than it is no advice.
    const unknown = { clusterAdmitted: null, leastBackends: 10, backends: null };
    const old = report([...rows(unknown), { ...failed, ...unknown }]);
    const [k5] = advice(old, "K5");
    expect(k5?.id === "K5" ? k5.memLimit : 0).toBe(advised * 2.5 * GiB);
  });

  test.each([
    // Four hosts with 7 GiB and a coordinator with 100 MiB; reservations end at 0.8 of a limit (R8).
    { peak: 5.6 * GiB, memLimit: 8.75 * GiB, cutAt: 7 * GiB },
    { peak: 5.5 * GiB, memLimit: 8.75 * GiB, cutAt: 7 * GiB },
    { peak: 6 * GiB, memLimit: 7.5 * GiB, cutAt: null },
  ])("K5: who failed with $peak of 7 GiB is not told to take 7 GiB, nor capped there by K4", (expected) => {
    const failed = {
      estimate: 7 * GiB,
      peakMax: Math.floor(expected.peak),
      clusterAdmitted: 28 * GiB + 100 * MiB,
      backends: 5,
      failedForMemory: true,
      end: "failed",
    } as const;
    const other = { fingerprint: "f2", tables: ["a.b"], estimate: 40 * GiB, clusterAdmitted: null };
    const r = report([...many(10, failed), ...many(10, other, 100)]);
    const [k5] = advice(r, "K5");
    expect(k5).toMatchObject({ queryClass: "orders", cutAt: expected.cutAt });
    expect(k5?.id === "K5" && Math.abs(k5.memLimit - expected.memLimit)).toBeLessThanOrEqual(1);
    const [k4] = advice(r, "K4");
    expect(k4?.id === "K4" && k4.maxMem).toBeGreaterThanOrEqual(expected.memLimit);
    expect(adviceText(k5!)).toContain("it runs into its limits.");
    expect(adviceText(k5!).includes("above 7.00 GB is not in the log")).toBe(expected.cutAt !== null);
  });

  test("K6: clients that keep finished queries open for over a fifth of the hold", () => {
    const fetching = (ms: number): LogReport => report(many(5, { clientWait: ms * 1000 }));
    expect(advice(fetching(800), "K6")).toEqual([]);
    expect(advice(fetching(801), "K6")).toHaveLength(1);
  });

  test("K8: a pool that no file declares, with over 5 % of the statements", () => {
    const rows = [...many(19), at(50, { pool: "root.default" })];
    expect(advice(report(rows, ["root.etl"]), "K8")).toEqual([]);
    expect(advice(report([...rows, at(51, { pool: "root.default" })], ["root.etl"]), "K8")).toMatchObject([
      { pool: "root.default", share: 2 / 21 },
    ]);
    expect(advice(report(rows), "K8")).toEqual([]);
  });

  test("K9: more than 1.2 attempts a request", () => {
    const refused = (seconds: number): LoggedQuery =>
      at(seconds, { outcome: "rejected", rejection: "queueFull", completedAdmission: 2000, lastRow: null });
    const pairs = (n: number): LoggedQuery[] =>
      Array.from({ length: n }, (_, i) => [refused(i * 100), at(i * 100 + 10)]).flat();
    expect(advice(report(pairs(5)), "K9")).toMatchObject([{ amplification: 2, retriedShare: 1 }]);
    expect(advice(report([...pairs(2), ...many(8, {}, 5000)]), "K9")).toEqual([]);
  });

  test("K10: one coordinator with most of a pool while others idle", () => {
    const rows = (n: number): LoggedQuery[] => [
      ...many(n, { coordinator: "c1:27000" }),
      ...many(20 - n, { coordinator: "c2:27000" }, 100),
      at(300, { coordinator: "c3:27000", pool: "root.bi" }),
    ];
    expect(advice(report(rows(10)), "K10")).toEqual([]);
    expect(advice(report(rows(11)), "K10")).toMatchObject([{ pool: "root.etl", coordinator: "c1:27000", share: 0.55 }]);
  });
});
