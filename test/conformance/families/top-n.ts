/** Family top-n: who holds the memory (admission 4, details). */
import { PoolStats } from "../../../src/core/admission/pool-stats.ts";
import { topInPool, topOnHost } from "../../../src/core/admission/top-consumers.ts";
import { prettyBytes } from "../../../src/core/pretty.ts";
import type { HeavyQuery, PoolFigures } from "../../../src/core/statestore/topic.ts";
import type { Bytes } from "../../../src/core/units.ts";
import type { FamilyRunner } from "../family.ts";
import { compare, type Json } from "./inputs.ts";

export const run: FamilyRunner = ({ input, expected }) => {
  const pools = Object.entries<Json>(input.running).map(([name, byHost]) => poolFrom(name, byHost, input));
  if (input.query.by === "host") {
    const groups = topOnHost(input.query.host, pools, input.local_host);
    return compare(expected, { groups: groups.map(({ pool, queries }) => ({ pool, queries: printed(queries) })) });
  }
  const { queries, total } = topInPool(pools.find((p) => p.name === input.query.pool)!);
  return compare(expected, { queries: printed(queries), total_consumed_text: prettyBytes(shownTotal(queries, total)) });
};

const printed = (queries: readonly { queryId: string; consumed: number }[]) =>
  queries.map((q) => ({ id: q.queryId, consumed: prettyBytes(q.consumed) }));

/** `total_consumed` in the text is over the queries shown. */
const shownTotal = (queries: readonly { consumed: number }[], _all: number): number =>
  queries.reduce((sum, q) => sum + q.consumed, 0);

function poolFrom(name: string, byHost: Json, input: Json): PoolStats {
  const stats = new PoolStats(name);
  for (const [host, queries] of Object.entries<Json>(byHost)) {
    const figures = figuresFrom(queries, input.keep_per_pool_and_host);
    if (host === input.local_host) {
      stats.usage = { ...figures, memReserved: 0 as Bytes, memUsage: 0 as Bytes };
      stats.refreshUsage();
    } else stats.setRemote(host, figures);
  }
  return stats;
}

function figuresFrom(queries: Json[], keep: number): PoolFigures {
  const heavy = queries
    .map((q): HeavyQuery => ({ queryId: `${hex(q.hi)}:${hex(q.lo)}`, consumed: q.consumed }))
    .sort((a, b) => b.consumed - a.consumed || (a.queryId < b.queryId ? 1 : -1))
    .slice(0, keep);
  const all = queries.map((q) => q.consumed as number);
  return {
    numAdmittedRunning: 0,
    numQueued: 0,
    backendMemReserved: 0 as Bytes,
    userLoads: new Map(),
    heavyQueries: heavy,
    minMemConsumed: Math.min(...all) as Bytes,
    maxMemConsumed: Math.max(...all) as Bytes,
    totalMemConsumed: all.reduce((a, b) => a + b, 0) as Bytes,
    numRunning: all.length,
  };
}

const hex = (n: number): string => n.toString(16).padStart(16, "0");
