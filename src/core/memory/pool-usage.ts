/**
 * What a host's trackers say about its pools: what it publishes to controllers (admission 7.2), read from the ledger.
 */
import type { BackendUsage } from "../admission/pool-stats.ts";
import type { HeavyQuery } from "../statestore/topic.ts";
import type { Bytes } from "../units.ts";
import {
  F_KIND,
  F_MEM_CONSUMED,
  F_POOL,
  get,
  KIND_QUERY,
  type LedgerView,
  POOLS_AT,
  poolReservedOf,
  TRACKER_FRESH,
} from "./ledger-layout.ts";
import { queryIdOf } from "./refusal-text.ts";

/** TPoolStats `heavy_memory_queries`. */
const HEAVIEST = 5;
/** With more records than this, only the sums are read: an exchange must stay short. */
const MOST_RECORDS = 4096;

interface Gathered {
  readonly queries: { readonly tracker: number; readonly consumed: number }[];
  total: number;
}

/** Bytes reserved by pool number, for the first `pools` of them. */
export function poolsReserved(v: LedgerView, pools: number): Float64Array {
  const from = v.f64[POOLS_AT]!;
  return v.f64.slice(from, from + pools);
}

/** By pool number, for the first `pools` of them. */
export function poolUsages(v: LedgerView, pools: number): BackendUsage[] {
  const gathered: Gathered[] = Array.from({ length: pools }, () => ({ queries: [], total: 0 }));
  const records = v.f64[TRACKER_FRESH]!;
  for (let t = 1; t < records && records <= MOST_RECORDS; t++) {
    if (get(v, t, F_KIND) !== KIND_QUERY) continue;
    const pool = gathered[get(v, t, F_POOL)];
    if (pool === undefined) continue;
    const consumed = get(v, t, F_MEM_CONSUMED);
    pool.queries.push({ tracker: t, consumed });
    pool.total += consumed;
  }
  return gathered.map((g, pool) => usageOf(v, pool, g));
}

function usageOf(v: LedgerView, pool: number, { queries, total }: Gathered): BackendUsage {
  queries.sort((a, b) => b.consumed - a.consumed || a.tracker - b.tracker);
  const heavyQueries: HeavyQuery[] = queries
    .slice(0, HEAVIEST)
    .filter((q) => q.consumed > 0)
    .map((q) => ({ queryId: queryIdOf(v, q.tracker), consumed: q.consumed as Bytes }));
  return {
    memReserved: poolReservedOf(v, pool) as Bytes,
    memUsage: total as Bytes,
    heavyQueries,
    minMemConsumed: (queries.at(-1)?.consumed ?? 0) as Bytes,
    maxMemConsumed: (queries[0]?.consumed ?? 0) as Bytes,
    totalMemConsumed: total as Bytes,
    numRunning: queries.length,
  };
}
