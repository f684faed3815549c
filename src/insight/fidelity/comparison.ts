/**
 * Measured against predicted, pool by pool, and held against the bars of insight 7.4.
 *
 * Waits are counted from what the client intended, over the queries that each run admitted. Both runs have the same
 * arrivals and holds, so nothing here is sampling noise; single queries may still change places near saturation, which
 * is why distributions are compared and single queries only below it.
 */
import type { PoolConfig } from "../../core/pool-config.ts";
import { isUnlimited } from "../../core/units.ts";
import { quantileOfSorted, sortedCopy } from "../quantile.ts";
import type { PoolSummary } from "../summary.ts";
import type { MeasuredQuery, MeasuredRun } from "./measured-run.ts";

/** Milliseconds; shares of all submitted. */
export interface WaitFigures {
  readonly admitted: number;
  readonly meanWait: number;
  readonly p95Wait: number;
  readonly waited: number;
  readonly rejected: number;
  readonly timedOut: number;
  /** Rejected, timed out, cancelled, unresolved and failed. */
  readonly lost: number;
}

export interface Bar {
  readonly name: string;
  /** How far apart, and how far they may be, both in `unit`. */
  readonly found: number;
  readonly allowed: number;
  readonly unit: "%" | "points" | "ms" | "queries" | "same";
  readonly holds: boolean;
}

export interface Excess {
  readonly most: number;
  readonly areaMs: number;
}

export interface PoolComparison {
  readonly pool: string;
  readonly submitted: number;
  readonly measured: WaitFigures;
  readonly predicted: WaitFigures;
  /** Over the `held` queries that were admitted and ended; 0 over none. */
  readonly meanHold: number;
  readonly held: number;
  /** The longest wait of an admitted query. */
  readonly lastWait: { readonly measured: number; readonly predicted: number };
  /** Offered hold time over what the places give in the time of arrivals; null: unlimited, nobody ever waited. */
  readonly load: number | null;
  /** |measured - predicted| of queries that both admitted. */
  readonly perQuery: {
    readonly compared: number;
    readonly median: number;
    readonly p99: number;
    readonly most: number;
  };
  /** Most queries that ran over the pool's limit, and their query-milliseconds. */
  readonly overAdmission: { readonly measured: Excess; readonly predicted: Excess };
  readonly bars: readonly Bar[];
}

export interface ComparisonContext {
  readonly configOf: (pool: string) => PoolConfig | null;
  /** Controllers that decide each for themselves. */
  readonly controllers: number;
  /** The load that chooses the bars, where a scenario was made for one; left out: as it was offered. */
  readonly level?: number;
  readonly summaries: { readonly measured: readonly PoolSummary[]; readonly predicted: readonly PoolSummary[] };
}

/** Pools in name order. */
export function compareRuns(
  measured: MeasuredRun,
  predicted: MeasuredRun,
  context: ComparisonContext,
): PoolComparison[] {
  const pools = [...new Set(measured.queries.map((q) => q.pool))].filter((p) => p !== "").sort();
  return pools.map((pool) => {
    const of = (run: MeasuredRun): MeasuredQuery[] => run.queries.filter((q) => q.pool === pool);
    return comparePool(pool, of(measured), of(predicted), context);
  });
}

/** d - a. */
export const waitOf = (q: MeasuredQuery): number => q.decidedAt - q.intended;

function comparePool(
  pool: string,
  measured: readonly MeasuredQuery[],
  predicted: readonly MeasuredQuery[],
  context: ComparisonContext,
): PoolComparison {
  const holds = measured
    .filter((q) => q.decision === "admitted" && q.ended !== null)
    .map((q) => q.releasedAt - q.decidedAt);
  const meanHold = mean(holds);
  const load = loadOf(measured, meanHold, placesIn(pool, measured, context));
  const both = measured.flatMap((q, i) =>
    q.decision === "admitted" && predicted[i]!.decision === "admitted"
      ? [Math.abs(waitOf(q) - waitOf(predicted[i]!))]
      : [],
  );
  const apart = sortedCopy(both);
  const of = (p: number): number => (apart.length === 0 ? 0 : quantileOfSorted(apart, p));
  const figures = { measured: figuresOf(measured), predicted: figuresOf(predicted) };
  const perQuery = { compared: apart.length, median: of(0.5), p99: of(0.99), most: of(1) };
  const lastWait = { measured: longestWait(measured), predicted: longestWait(predicted) };
  const { summaries } = context;
  const overAdmission = {
    measured: excessOf(pool, summaries.measured),
    predicted: excessOf(pool, summaries.predicted),
  };
  const base = {
    pool,
    submitted: measured.length,
    ...figures,
    meanHold,
    held: holds.length,
    lastWait,
    load,
    perQuery,
    overAdmission,
  };
  return { ...base, bars: barsFor(base, context) };
}

function excessOf(pool: string, summaries: readonly PoolSummary[]): Excess {
  const { most, areaMs } = summaries.find((s) => s.pool === pool)?.overAdmission.running ?? { most: 0, areaMs: 0 };
  return { most, areaMs };
}

const longestWait = (queries: readonly MeasuredQuery[]): number =>
  queries.reduce((most, q) => (q.decision === "admitted" ? Math.max(most, waitOf(q)) : most), 0);

function figuresOf(queries: readonly MeasuredQuery[]): WaitFigures {
  const n = Math.max(1, queries.length);
  const share = (is: (q: MeasuredQuery) => boolean): number => queries.filter(is).length / n;
  const waits = sortedCopy(queries.filter((q) => q.decision === "admitted").map(waitOf));
  return {
    admitted: waits.length,
    meanWait: mean(waits),
    p95Wait: waits.length === 0 ? 0 : quantileOfSorted(waits, 0.95),
    waited: share((q) => q.wasQueued),
    rejected: share((q) => q.decision === "rejected"),
    timedOut: share((q) => q.decision === "timedOut"),
    lost: share((q) => (q.decision !== "admitted" && q.decision !== "undecided") || q.ended === "failed"),
  };
}

/** 0 of nothing. */
export function mean(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]!;
  return values.length === 0 ? 0 : sum / values.length;
}

/**
 * How many queries the pool's own limits let run at once; where hosts or slots bind, as many as did. Of limits that
 * changed on the way, so many that each query takes its share of the time under its own.
 */
function placesIn(pool: string, queries: readonly MeasuredQuery[], context: ComparisonContext): number | null {
  if (!queries.some((q) => q.wasQueued)) return null;
  const peak = context.summaries.measured.find((s) => s.pool === pool)?.peakRunning ?? 0;
  const charge = mean(queries.filter((q) => q.cluster > 0).map((q) => q.cluster));
  const shares = queries.map((q) => 1 / (placesUnder(q.asked?.config ?? context.configOf(pool), charge) ?? peak));
  const places = 1 / mean(shares);
  return places > 0 ? places : null;
}

/** Null: neither of its limits says. */
function placesUnder(config: PoolConfig | null, charge: number): number | null {
  if (config === null) return null;
  const { maxMemResources, maxRequests } = config;
  const byMemory = isUnlimited(maxMemResources) ? Number.POSITIVE_INFINITY : Math.floor(maxMemResources / charge);
  const byCount = isUnlimited(maxRequests) ? Number.POSITIVE_INFINITY : maxRequests;
  const places = Math.min(byMemory, byCount);
  return Number.isFinite(places) && places > 0 ? places : null;
}

function loadOf(queries: readonly MeasuredQuery[], meanHold: number, places: number | null): number | null {
  const first = queries[0];
  const last = queries.at(-1);
  if (places === null || first === undefined || last === undefined || last.intended <= first.intended) return null;
  return (queries.length * meanHold) / (places * (last.intended - first.intended));
}

// Bars (insight 7.4)

interface Allowed {
  readonly mean: number;
  readonly p95: number;
  /** Differences of so many milliseconds never miss. */
  readonly meanMs: number;
  readonly p95Ms: number;
}

function allowedAt(load: number | null, controllers: number): Allowed {
  if (controllers > 1) return { mean: 0.05, p95: 0.08, meanMs: 30, p95Ms: 60 };
  if (load === null || load < LOW) return { mean: 0.017, p95: 0.03, meanMs: 30, p95Ms: 60 };
  if (load < 1) return { mean: 0.017, p95: 0.03, meanMs: 0, p95Ms: 0 };
  return { mean: 0.03, p95: 0.03, meanMs: 0, p95Ms: 0 };
}

/** Between the levels 0.6 and 0.8 of the table. */
const LOW = 0.7;

function barsFor(c: Omit<PoolComparison, "bars">, context: ComparisonContext): Bar[] {
  const { measured: m, predicted: p, perQuery, meanHold } = c;
  const load = context.level ?? c.load;
  const allowed = allowedAt(load, context.controllers);
  const bars: Bar[] = [
    relative("mean wait", m.meanWait, p.meanWait, allowed.mean, allowed.meanMs),
    relative("p95 wait", m.p95Wait, p.p95Wait, allowed.p95, allowed.p95Ms),
  ];
  if (load === null || load < LOW) bars.push(points("share that waited", m.waited, p.waited));
  else if (load < 1 && context.controllers === 1)
    bars.push(
      within("per query, median", perQuery.median, 20, "ms"),
      within("per query, p99", perQuery.p99, meanHold, "ms"),
    );
  bars.push(
    points("lost", m.lost, p.lost),
    points("rejected", m.rejected, p.rejected),
    points("timed out", m.timedOut, p.timedOut),
  );
  const of = (side: readonly PoolSummary[]) => side.find((s) => s.pool === c.pool);
  const live = of(context.summaries.measured);
  const simulated = of(context.summaries.predicted);
  if (load !== null && load >= 1) {
    const isSame = live?.binding?.constraint === simulated?.binding?.constraint;
    bars.push({ name: "binding constraint", found: isSame ? 0 : 1, allowed: 0, unit: "same", holds: isSame });
  }
  if (context.controllers > 1) {
    const over = c.overAdmission;
    bars.push(
      within("over-admission, most", Math.abs(over.measured.most - over.predicted.most), 1, "queries"),
      relative("over-admission, area", over.measured.areaMs, over.predicted.areaMs, 0.15, 0),
    );
  }
  return bars;
}

/** Relative to what was measured; a difference of at most `floor` milliseconds holds whatever its share. */
export function relative(name: string, measured: number, predicted: number, share: number, floor: number): Bar {
  const apart = Math.abs(predicted - measured);
  const found = apart === 0 ? 0 : (apart / measured) * 100;
  return { name, found, allowed: share * 100, unit: "%", holds: apart <= Math.max(share * measured, floor) };
}

const points = (name: string, measured: number, predicted: number): Bar =>
  within(name, Math.abs(measured - predicted) * 100, 1, "points");

const within = (name: string, found: number, allowed: number, unit: Bar["unit"]): Bar => ({
  name,
  found,
  allowed,
  unit,
  holds: found <= allowed,
});
