/**
 * "Additional Details" of a timeout: who holds the memory that a query waited for (admission 4).
 *
 * Only the five heaviest queries of each pool and host are known to a controller, so a query outside them
 * does not count towards its sum. Ties break by pool name and then query id, both descending. Layout and
 * blanks at line ends are the product's.
 */
import { prettyBytes } from "../pretty.ts";
import type { PoolFigures } from "../statestore/topic.ts";
import type { Bytes } from "../units.ts";
import type { Pool } from "./pool.ts";
import type { PoolStats } from "./pool-stats.ts";
import { NO_DETAILS } from "./query.ts";
import type { QueueReason } from "./reasons.ts";

const SHOWN = 5;

type Figures = Pick<
  PoolFigures,
  "heavyQueries" | "minMemConsumed" | "maxMemConsumed" | "totalMemConsumed" | "numRunning"
>;

interface Consumer {
  readonly pool: string;
  readonly queryId: string;
  readonly consumed: number;
}

/** Heaviest queries of one pool on one host, in the order in which they are shown. */
export interface HostConsumers {
  readonly pool: string;
  readonly queries: readonly Consumer[];
  readonly figures: Figures;
}

export function detailsFor(reason: QueueReason, pool: PoolStats, pools: readonly Pool[], localHost: string): string {
  if (reason.rule === "ADM-4") return poolDetails(pool, localHost);
  if (reason.rule === "ADM-5")
    return hostDetails(
      reason.host,
      pools.map((p) => p.stats),
      localHost,
    );
  return NO_DETAILS;
}

/** The five heaviest on a host, gathered by pool; the pool of the heaviest first. */
export function topOnHost(host: string, pools: readonly PoolStats[], localHost: string): HostConsumers[] {
  const figuresOf = new Map<string, Figures>();
  for (const pool of pools) {
    const figures = host === localHost ? pool.published : pool.remote(host);
    if (figures !== undefined) figuresOf.set(pool.name, figures);
  }
  const all = [...figuresOf].flatMap(([pool, f]) => f.heavyQueries.map((q) => ({ pool, ...q })));
  const top = all.sort(heavierFirst).slice(0, SHOWN);
  return [...new Set(top.map((c) => c.pool))].map((pool) => ({
    pool,
    queries: top.filter((c) => c.pool === pool),
    figures: figuresOf.get(pool)!,
  }));
}

export interface PoolConsumers {
  readonly queries: readonly Consumer[];
  /** Over all that are known, shown or not. */
  readonly total: number;
}

/** The five heaviest of a pool, each summed over the hosts on which it is one of the heaviest. */
export function topInPool(pool: PoolStats): PoolConsumers {
  const sums = new Map<string, number>();
  let total = 0;
  for (const figures of [pool.published, ...pool.remotes().values()])
    for (const q of figures.heavyQueries) {
      sums.set(q.queryId, (sums.get(q.queryId) ?? 0) + q.consumed);
      total += q.consumed;
    }
  const all = [...sums].map(([queryId, consumed]): Consumer => ({ pool: pool.name, queryId, consumed }));
  return { queries: all.sort(heavierFirst).slice(0, SHOWN), total };
}

function heavierFirst(a: Consumer, b: Consumer): number {
  return b.consumed - a.consumed || descending(a.pool, b.pool) || descending(a.queryId, b.queryId);
}

const descending = (a: string, b: string): number => (a < b ? 1 : a > b ? -1 : 0);

function hostDetails(host: string, pools: readonly PoolStats[], localHost: string): string {
  const groups = topOnHost(host, pools, localHost);
  if (groups.length === 0) return "";
  return ["", `Stats for host ${host}`, ...groups.flatMap(hostGroupLines), ""].join("\n");
}

function hostGroupLines({ pool, queries, figures }: HostConsumers): string[] {
  const lines = [
    `   pool_name=${pool}: `,
    ...topLines(queries, figures.totalMemConsumed, 6),
    "      all_query_stats: ",
    `         num_running=${figures.numRunning}, `,
    `         min=${prettyBytes(figures.minMemConsumed)}, `,
    `         max=${prettyBytes(figures.maxMemConsumed)}, `,
    `         pool_total_mem=${prettyBytes(figures.totalMemConsumed)}, `,
  ];
  if (figures.numRunning > 0)
    lines.push(`         average=${prettyBytes(Math.trunc(figures.totalMemConsumed / figures.numRunning))}`);
  return lines;
}

function poolDetails(pool: PoolStats, _localHost: string): string {
  const { queries, total } = topInPool(pool);
  if (queries.length === 0) return "";
  return ["", `Aggregated stats for pool ${pool.name}:`, ...topLines(queries, total, 3), ""].join("\n");
}

function topLines(queries: readonly Consumer[], total: number, indent: number): string[] {
  const [outer, middle, inner] = [indent, indent + 3, indent + 6].map((n) => " ".repeat(n));
  const shown = queries.reduce((sum, q) => sum + q.consumed, 0) as Bytes;
  const lines = [
    `${outer}topN_query_stats: `,
    `${middle}queries=[`,
    ...queries.map((q, i) => {
      const comma = i < queries.length - 1 ? ", " : "";
      return `${inner}id=${q.queryId}, consumed=${prettyBytes(q.consumed)}${comma}`;
    }),
    `${middle}],`,
    `${middle}total_consumed=${prettyBytes(shown)}`,
  ];
  if (total > 0) lines.push(`${middle}fraction_of_pool_total_mem=${twoDigits(floatRatio(shown, total))}`);
  return lines;
}

/** The product divides in 32 bits: 39 of 40 is 0.98, where 64 bits would say 0.97. */
const floatRatio = (part: number, whole: number): number => Math.fround(Math.fround(part) / Math.fround(whole));

/** Two significant digits without trailing zeros, as a C++ stream prints a fraction: 0.47, 0.6, 1. */
const twoDigits = (fraction: number): string => String(Number(fraction.toPrecision(2)));
