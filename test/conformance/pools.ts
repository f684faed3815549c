/**
 * Pools as the stepper sees them: what a submission resolves to and the configuration it captures. Changes made by
 * a story lie on top of what files or flags give, and are seen by the next submission (admission 5.7).
 */
import { DEFAULT_POOL, DEFAULT_POOL_CONFIG, type PoolConfig } from "../../src/core/pool-config.ts";
import { millis } from "../../src/core/units.ts";

export type Resolution =
  | { readonly pool: string; readonly user: string; readonly groups: readonly string[] | null }
  | { readonly error: string };

export interface PoolSource {
  resolve(requested: string, user: string): Resolution;
  config(pool: string): PoolConfig;
}

/** `limits` of the vectors (README, pool limits) as a pool record. Only fields that are given are in the result. */
// biome-ignore lint/suspicious/noExplicitAny: the vectors' own schema.
export function limitsToConfig(limits: any): Partial<PoolConfig> {
  const given: Record<string, unknown> = {};
  const put = (field: keyof PoolConfig, key: string, of: (v: never) => unknown = (v) => v): void => {
    if (limits[key] !== undefined) given[field] = of(limits[key] as never);
  };
  put("maxRequests", "max_requests");
  put("maxQueued", "max_queued");
  put("maxMemResources", "max_mem_resources");
  // T-5: what isn't above 0 counts as not set.
  put("queueTimeout", "queue_timeout_ms", (ms: number | null) => (ms !== null && ms > 0 ? millis(ms) : null));
  put("minQueryMemLimit", "min_query_mem_limit");
  put("maxQueryMemLimit", "max_query_mem_limit");
  put("clampMemLimitQueryOption", "clamp_mem_limit_query_option");
  put("maxMtDop", "max_mt_dop");
  put("maxQueryCpuCorePerNodeLimit", "max_query_cpu_core_per_node_limit");
  put("maxQueryCpuCoreCoordinatorLimit", "max_query_cpu_core_coordinator_limit");
  put("defaultQueryOptions", "default_query_options");
  put("userQueryLimits", "user_query_limits", (m: object) => new Map(Object.entries(m)));
  put("groupQueryLimits", "group_query_limits", (m: object) => new Map(Object.entries(m)));
  put("onlyCoordinators", "only_coordinators");
  return given as Partial<PoolConfig>;
}

/** Without an allocation file there is one pool and no rights (admission 1.5). */
// biome-ignore lint/suspicious/noExplicitAny: the vectors' own schema.
export function flagPools(limits: any): PoolSource {
  const config = { ...DEFAULT_POOL_CONFIG, ...limitsToConfig(limits) };
  return {
    resolve: (_, user) => ({ pool: DEFAULT_POOL, user, groups: [] }),
    config: (pool) => (pool === DEFAULT_POOL ? config : DEFAULT_POOL_CONFIG),
  };
}

/** Lays what a story changes over another source. */
export class ChangingPools implements PoolSource {
  private readonly below: PoolSource;
  private readonly changes = new Map<string, Partial<PoolConfig>>();

  constructor(below: PoolSource) {
    this.below = below;
  }
  change(pool: string, fields: Partial<PoolConfig>): void {
    this.changes.set(pool, { ...this.changes.get(pool), ...fields });
  }
  resolve(requested: string, user: string): Resolution {
    return this.below.resolve(requested, user);
  }
  config(pool: string): PoolConfig {
    return { ...this.below.config(pool), ...this.changes.get(pool) };
  }
}
