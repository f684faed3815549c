/**
 * What a log suggests to do (insight 4.5, K1 to K10), each with the figures that made it.
 *
 * Advice is a value; its text is made where it is read. A piece is given only when its condition holds in the
 * log; those that need the pool files or a simulation (K3, K7) come from `check` and `size`.
 */

import { limitNeededFor } from "../../core/admission/reservation-math.ts";
import { prettyBytes } from "../../core/pretty.ts";
import { MiB } from "../../core/units.ts";
import type { Demand } from "../../workload/query-log/demand.ts";
import type { ClassRow } from "./class-table.ts";
import type { PoolRow } from "./pool-table.ts";

export type Advice =
  | {
      readonly id: "K1";
      readonly table: string;
      /** False: the log says that some of the tables that a class reads have none, not which. */
      readonly isNamed: boolean;
      readonly classes: readonly string[];
      readonly gains: readonly StatisticsGain[];
    }
  | { readonly id: "K2"; readonly table: string; readonly classes: readonly string[] }
  | { readonly id: "K4"; readonly pool: string; readonly maxMem: number; readonly profits: readonly string[] }
  | {
      readonly id: "K5";
      readonly queryClass: string;
      readonly pool: string;
      readonly memLimit: number;
      /** Not null: peaks end at this limit, so what it needs beyond is not in the log. */
      readonly cutAt: number | null;
      readonly asPoolMinimum: boolean;
    }
  | { readonly id: "K6"; readonly pool: string; readonly clientShare: number }
  | { readonly id: "K8"; readonly pool: string; readonly share: number }
  | { readonly id: "K9"; readonly amplification: number; readonly retriedShare: number; readonly medianDelayMs: number }
  | { readonly id: "K10"; readonly pool: string; readonly coordinator: string; readonly share: number };

/** How much less a query of the class would be charged per host with its peaks x 1.25 for its estimate. */
export interface StatisticsGain {
  readonly queryClass: string;
  readonly estimate: number;
  readonly wouldBe: number;
}

export interface AdviceContext {
  /** Pools that the allocation file declares; null: not given. */
  readonly declaredPools: ReadonlySet<string> | null;
}

export function adviceOf(
  demand: Demand,
  pools: readonly PoolRow[],
  classes: readonly ClassRow[],
  context: AdviceContext,
): Advice[] {
  return [
    ...missingStatistics(classes),
    ...suspectedStatistics(classes),
    ...pools.flatMap((p) => maxMemAdvice(p, classes)),
    ...classes.flatMap((c) => minMemAdvice(c, classes)),
    ...pools.flatMap(slowClients),
    ...wrongPool(pools, context),
    ...retryAdvice(demand),
    ...coordinatorAdvice(demand),
  ];
}

function missingStatistics(classes: readonly ClassRow[]): Advice[] {
  const byTable = new Map<string, ClassRow[]>();
  for (const c of classes) {
    const isOff = c.inflationP50 !== null && (c.inflationP50 >= 4 || c.inflationP50 <= 0.5);
    if (!isOff || (c.memoryTimeShare ?? 1) < 0.01) continue;
    // The Manager says that some are missing, not which: then every table of the class may be meant.
    const tables = c.missingStats.length > 0 ? c.missingStats : c.statsMissing ? c.tables : [];
    for (const t of tables) byTable.set(t, [...(byTable.get(t) ?? []), c]);
  }
  return [...byTable].map(([table, of]) => ({
    id: "K1",
    table,
    isNamed: of.some((c) => c.missingStats.includes(table)),
    classes: of.map((c) => c.queryClass),
    gains: of.map((c) => ({
      queryClass: c.queryClass,
      estimate: c.estimateP50 ?? 0,
      wouldBe: Math.round((c.peak.max ?? 0) * 1.25),
    })),
  }));
}

/** No plan says so, but at least three badly over-estimated classes have exactly one table in common. */
function suspectedStatistics(classes: readonly ClassRow[]): Advice[] {
  const inflated = classes.filter((c) => (c.inflationP50 ?? 0) >= 8 && !c.statsMissing && c.tables.length > 0);
  const tables = [...new Set(inflated.flatMap((c) => c.tables))].sort();
  return tables.flatMap((table): Advice[] => {
    const of = inflated.filter((c) => c.tables.includes(table));
    const shared = of[0]?.tables.filter((t) => of.every((c) => c.tables.includes(t))) ?? [];
    return of.length >= 3 && shared.length === 1 ? [{ id: "K2", table, classes: of.map((c) => c.queryClass) }] : [];
  });
}

function maxMemAdvice(pool: PoolRow, classes: readonly ClassRow[]): Advice[] {
  const own = classes.filter((c) => c.pool === pool.pool && c.peak.p99 !== null);
  if (own.length === 0) return [];
  // Who runs into a limit needs more than his peaks say, and MEM_LIMIT goes no further than this one.
  const peak = Math.max(...own.map((c) => Math.max((c.peak.p99 ?? 0) * 1.25, limitAdvised(c)?.memLimit ?? 0)));
  const reservation = Math.max(...own.map((c) => limitNeededFor(c.largestReservation ?? 0)));
  const step = 64 * MiB;
  const maxMem = Math.ceil(Math.max(peak, reservation) / step) * step;
  const profits = own.filter((c) => (c.inflationP50 ?? 0) > 1 && (c.estimateP50 ?? 0) > maxMem);
  return profits.length === 0 ? [] : [{ id: "K4", pool: pool.pool, maxMem, profits: profits.map((c) => c.queryClass) }];
}

/**
 * Above the limit that bit: peaks end there, or at what it lets reservations have (R8), so that they times 1.25 may be
 * just what was given already.
 */
function limitAdvised(c: ClassRow): { readonly memLimit: number; readonly cutAt: number | null } | null {
  const bites = (c.tightShare ?? 0) > 0.2 || c.failedAtLimit > 0;
  if (!bites || c.peak.p95 === null) return null;
  const byPeak = Math.round(c.peak.p95 * 1.25);
  const { limitThatBit } = c;
  return limitThatBit === null || byPeak > limitThatBit
    ? { memLimit: byPeak, cutAt: null }
    : { memLimit: Math.round(limitThatBit * 1.25), cutAt: limitThatBit };
}

function minMemAdvice(c: ClassRow, classes: readonly ClassRow[]): Advice[] {
  const advised = limitAdvised(c);
  if (advised === null) return [];
  const { memLimit } = advised;
  const own = classes.filter((o) => o.pool === c.pool);
  const all = own.reduce((n, o) => n + o.n, 0);
  const covered = own.filter((o) => (o.peak.p95 ?? 0) <= memLimit && (o.peak.p95 ?? 0) * 1.25 >= memLimit / 2);
  const asPoolMinimum = covered.reduce((n, o) => n + o.n, 0) >= 0.8 * all;
  return [{ id: "K5", queryClass: c.queryClass, pool: c.pool, ...advised, asPoolMinimum }];
}

const slowClients = (p: PoolRow): Advice[] =>
  (p.clientShare ?? 0) > 0.2 ? [{ id: "K6", pool: p.pool, clientShare: p.clientShare! }] : [];

function wrongPool(pools: readonly PoolRow[], context: AdviceContext): Advice[] {
  const { declaredPools } = context;
  if (declaredPools === null) return [];
  const all = pools.reduce((n, p) => n + p.statements, 0);
  return pools
    .filter((p) => p.pool !== "" && !declaredPools.has(p.pool) && p.statements > 0.05 * all)
    .map((p) => ({ id: "K8", pool: p.pool, share: p.statements / all }));
}

function retryAdvice(demand: Demand): Advice[] {
  const { attempts, requests, retriedShare, delays } = demand.attempts;
  if (requests === 0 || attempts / requests <= 1.2) return [];
  const medianDelayMs = (delays[Math.ceil(delays.length / 2) - 1] ?? 0) / 1000;
  return [{ id: "K9", amplification: attempts / requests, retriedShare, medianDelayMs }];
}

/** Shares of fewer statements are chance. */
const FEWEST_FOR_SHARES = 20;

function coordinatorAdvice(demand: Demand): Advice[] {
  const coordinators = new Set(demand.allRows.map((q) => q.coordinator).filter((c) => c !== null));
  if (coordinators.size < 2) return [];
  const pools = new Map<string, Map<string, number>>();
  for (const q of demand.allRows) {
    if (q.coordinator === null) continue;
    const counts = pools.get(q.pool) ?? new Map<string, number>();
    counts.set(q.coordinator, (counts.get(q.coordinator) ?? 0) + 1);
    pools.set(q.pool, counts);
  }
  return [...pools]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([pool, counts]): Advice[] => {
      const all = [...counts.values()].reduce((a, b) => a + b, 0);
      if (all < FEWEST_FOR_SHARES) return [];
      const [coordinator, n] = [...counts].reduce((best, c) => (c[1] > best[1] ? c : best));
      // With two, half is what it should be.
      return n / all > Math.max(0.5, 1.5 / coordinators.size) ? [{ id: "K10", pool, coordinator, share: n / all }] : [];
    });
}

/** One sentence of finding, one of what to do. */
export function adviceText(a: Advice): string {
  switch (a.id) {
    case "K1": {
      const gain = a.gains
        .slice(0, 3)
        .map((g) => `${g.queryClass} from ${prettyBytes(g.estimate)} to about ${prettyBytes(g.wouldBe)} a host`)
        .join(", ");
      const readers = `${a.classes.length} ${a.classes.length === 1 ? "class that reads it is" : "classes that read it are"} estimated far off`;
      return a.isNamed
        ? `COMPUTE STATS ${a.table}: its statistics are missing or corrupt and ${readers}. Expected: ${gain}.`
        : `COMPUTE STATS ${a.table} if it has none: ${readers}, and statistics are missing of one of the tables read. Expected: ${gain}.`;
    }
    case "K2":
      return `COMPUTE STATS ${a.table}, suspected: ${a.classes.length} classes estimated at 8 times their peaks or more share this one table (${a.classes.slice(0, 5).join(", ")}).`;
    case "K4":
      return `Set max-query-mem-limit of ${a.pool} to ${a.maxMem} (${prettyBytes(a.maxMem)}): no peak in the log needs more, and ${a.profits.length} ${a.profits.length === 1 ? "class is" : "classes are"} estimated above it (${a.profits.slice(0, 5).join(", ")}).`;
    case "K5": {
      const beyond = a.cutAt === null ? "" : ` What it needs above ${prettyBytes(a.cutAt)} is not in the log.`;
      return a.asPoolMinimum
        ? `Set min-query-mem-limit of ${a.pool} to ${a.memLimit} (${prettyBytes(a.memLimit)}): ${a.queryClass} and most of the pool run into their limits.${beyond}`
        : `Give ${a.queryClass} (pool ${a.pool}) MEM_LIMIT=${a.memLimit} (${prettyBytes(a.memLimit)}): it runs into its limits.${beyond}`;
    }
    case "K6":
      return `Clients of ${a.pool} keep finished queries open: ${percent(a.clientShare)} of the time in which places are held is fetching. Fetch faster, keep result spooling on, set idle timeouts.`;
    case "K8":
      return `${percent(a.share)} of the statements ran in ${a.pool}, which no file declares, so built-in defaults applied. Set REQUEST_POOL in these clients or declare the pool.`;
    case "K9":
      return `Clients come again: ${a.amplification.toFixed(2)} attempts a request, median ${(a.medianDelayMs / 1000).toFixed(1)} s after being turned away. Let them back off, with jitter.`;
    case "K10":
      return `${percent(a.share)} of ${a.pool} goes through ${a.coordinator}, whose queue is its own while others idle. Spread the clients over the coordinators.`;
  }
}

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
