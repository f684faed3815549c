/**
 * Per class and per table: what was estimated against what was used (insight 4.5).
 *
 * Ordered by memory that was admitted and never used, not by inflation: a fifty-fold estimate of a query that
 * runs once a day costs nothing, a double one of a dashboard's tile fills the pool.
 */
import { GiB } from "../../core/units.ts";
import { type Demand, executorAmountOf } from "../../workload/query-log/demand.ts";
import { type HoldRule, holdOf, waitOf } from "../../workload/query-log/holds.ts";
import { isAdmitted, knownBackends, type LoggedQuery } from "../../workload/query-log/logged-query.ts";
import { quantileOrNull } from "../quantile.ts";
import { memoryTimeOfRow } from "./pool-table.ts";

export interface ClassRow {
  readonly queryClass: string;
  readonly pool: string;
  readonly n: number;
  /** Per host, bytes. */
  readonly estimateP50: number | null;
  /** What an executor was charged. */
  readonly admittedP50: number | null;
  readonly peak: {
    readonly p50: number | null;
    readonly p95: number | null;
    readonly p99: number | null;
    readonly max: number | null;
  };
  /** Estimate / peak, of those that used anything. */
  readonly inflationP50: number | null;
  readonly hostsP50: number | null;
  readonly holdMs: { readonly p50: number | null; readonly p95: number | null };
  readonly waitedMsP95: number | null;
  readonly spilledShare: number | null;
  readonly failedForMemory: number;
  /** Of these, what their own limit ended. */
  readonly failedAtLimit: number;
  /** Peak within 5 % of what it was given, neither spilled nor failed / finished (2.6 tightness). */
  readonly tightShare: number | null;
  /** Largest limit per host that one ran into, tight or failed: what it needs is more. */
  readonly limitThatBit: number | null;
  /** Null when the log has not what it takes. */
  readonly neverUsedGiBHours: number | null;
  /** Of the pool's memory-time; null when the log has no amounts of the pool. */
  readonly memoryTimeShare: number | null;
  readonly largestReservation: number | null;
  readonly tables: readonly string[];
  /** Tables that lack statistics, as far as the log names them. */
  readonly missingStats: readonly string[];
  readonly statsMissing: boolean;
}

export interface TableRow {
  readonly table: string;
  readonly neverUsedGiBHours: number;
  readonly classes: readonly string[];
  readonly statsMissing: boolean;
}

export function classTable(demand: Demand, rule: HoldRule): ClassRow[] {
  const groups = new Map<string, LoggedQuery[]>();
  const poolTime = new Map<string, number>();
  demand.allRows.forEach((q, i) => {
    const key = `${q.pool}\n${demand.allClasses[i]}`;
    const list = groups.get(key);
    if (list === undefined) groups.set(key, [q]);
    else list.push(q);
    poolTime.set(q.pool, (poolTime.get(q.pool) ?? 0) + memoryTimeOfRow(q, rule));
  });
  return [...groups]
    .map(([key, rows]) => rowOf(key.split("\n")[1] ?? "", rows, rule, poolTime.get(rows[0]!.pool) ?? 0))
    .sort((a, b) => (b.neverUsedGiBHours ?? 0) - (a.neverUsedGiBHours ?? 0) || (a.queryClass < b.queryClass ? -1 : 1));
}

function rowOf(queryClass: string, rows: readonly LoggedQuery[], rule: HoldRule, poolTime: number): ClassRow {
  const served = rows.filter((q) => isAdmitted(q.outcome));
  const finished = served.filter((q) => q.end === "finished");
  const known = <T>(of: readonly LoggedQuery[], get: (q: LoggedQuery) => T | null): T[] =>
    of.map(get).filter((v) => v !== null);
  const peaks = known(served, (q) => q.peakMax);
  const inflations = known(served, (q) => (q.estimate === null || !q.peakMax ? null : q.estimate / q.peakMax));
  const holds = known(finished, (q) => holdOf(q, rule)).map((h) => h / 1000);
  const spilled = known(finished, (q) => q.spilled);
  const reservations = known(rows, (q) => q.reservation);
  const unused = known(served, (q) => neverUsed(q, rule));
  const memoryTime = served.reduce((sum, q) => sum + memoryTimeOfRow(q, rule), 0);
  return {
    queryClass,
    pool: rows[0]!.pool,
    n: rows.length,
    estimateP50: quantileOrNull(
      known(rows, (q) => q.estimate),
      0.5,
    ),
    admittedP50: quantileOrNull(
      known(served, (q) => executorAmountOf(q)),
      0.5,
    ),
    peak: {
      p50: quantileOrNull(peaks, 0.5),
      p95: quantileOrNull(peaks, 0.95),
      p99: quantileOrNull(peaks, 0.99),
      max: quantileOrNull(peaks, 1),
    },
    inflationP50: quantileOrNull(inflations, 0.5),
    hostsP50: quantileOrNull(
      known(served, (q) => q.backends),
      0.5,
    ),
    holdMs: { p50: quantileOrNull(holds, 0.5), p95: quantileOrNull(holds, 0.95) },
    waitedMsP95: quantileOrNull(
      known(served, waitOf).map((w) => w / 1000),
      0.95,
    ),
    spilledShare: spilled.length === 0 ? null : spilled.filter((s) => s > 0).length / spilled.length,
    failedForMemory: rows.filter((q) => q.failedForMemory).length,
    failedAtLimit: served.filter(isFailedAtLimit).length,
    tightShare: tightShareOf(finished),
    limitThatBit: quantileOrNull(
      known(
        served.filter((q) => isFailedAtLimit(q) || isTight(q)),
        givenOf,
      ),
      1,
    ),
    neverUsedGiBHours: unused.length === 0 ? null : unused.reduce((sum, n) => sum + n, 0) / GiB / 3600e6,
    memoryTimeShare: poolTime === 0 ? null : memoryTime / poolTime,
    largestReservation: quantileOrNull(reservations, 1),
    tables: [...new Set(rows.flatMap((q) => q.tables))].sort(),
    missingStats: [...new Set(rows.flatMap((q) => q.missingStats ?? []))].sort(),
    statsMissing: rows.some((q) => q.statsMissing),
  };
}

/**
 * Bytes x microseconds that the admission held and the query never touched on its busiest host, on all hosts; null when
 * the log does not tell.
 */
function neverUsed(q: LoggedQuery, rule: HoldRule): number | null {
  const backends = knownBackends(q);
  const hold = holdOf(q, rule);
  if (q.peakMax === null || hold === null || backends === null) return null;
  const given = q.clusterAdmitted ?? (q.estimate === null ? null : q.estimate * backends);
  return given === null ? null : Math.max(0, given - q.peakMax * backends) * Math.max(0, hold);
}

/** What an executor was given, or would be by its estimate. */
const givenOf = (q: LoggedQuery): number | null => executorAmountOf(q) ?? q.estimate;

/**
 * Memory failed it, and so did its own limit: who asks for as much again as he has gets it below half of the limit.
 * Others met the end of the host's memory or of the scratch space, where a larger limit only makes it worse.
 */
function isFailedAtLimit(q: LoggedQuery): boolean {
  if (!q.failedForMemory) return false;
  const given = givenOf(q);
  return given === null || q.peakMax === null || q.peakMax >= given / 2;
}

function tightShareOf(finished: readonly LoggedQuery[]): number | null {
  const known = finished.filter((q) => q.peakMax !== null && executorAmountOf(q) !== null);
  return known.length === 0 ? null : known.filter(isTight).length / known.length;
}

function isTight(q: LoggedQuery): boolean {
  const given = executorAmountOf(q);
  return (q.spilled ?? 0) === 0 && q.peakMax !== null && given !== null && q.peakMax >= 0.95 * given;
}

/** Each class's never-used memory shared equally by the tables it reads. */
export function statisticsTable(classes: readonly ClassRow[]): TableRow[] {
  const tables = new Map<string, { sum: number; classes: string[]; missing: boolean }>();
  for (const c of classes) {
    for (const table of c.tables) {
      const t = tables.get(table) ?? { sum: 0, classes: [], missing: false };
      t.sum += (c.neverUsedGiBHours ?? 0) / c.tables.length;
      t.classes.push(c.queryClass);
      t.missing ||= c.missingStats.includes(table);
      tables.set(table, t);
    }
  }
  return [...tables]
    .map(([table, t]) => ({ table, neverUsedGiBHours: t.sum, classes: t.classes, statsMissing: t.missing }))
    .sort((a, b) => b.neverUsedGiBHours - a.neverUsedGiBHours || (a.table < b.table ? -1 : 1));
}
