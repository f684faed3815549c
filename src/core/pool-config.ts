/**
 * The record that admission sees of one pool (admission 11.3, pool-configuration 0.2).
 *
 * A pool need not be declared anywhere to have one: any name falls back to the defaults below. Values a
 * real file can hold beyond 2^53 - 1 are dealt with by the reader of the files; core never sees them.
 */
import type { MaxBytes, MaxCount, Millis } from "./units.ts";

/** User or group name -> how many of one user's queries may be queued or running; `*` is the wildcard user. */
export type Quotas = ReadonlyMap<string, number>;

export interface PoolConfig {
  /** Running queries over the whole cluster: -1 no limit, 0 pool disabled (REJ-A1). */
  readonly maxRequests: MaxCount;
  /** Queued queries over the whole cluster; 0 or less rejects every query (REJ-A5, T-1). */
  readonly maxQueued: number;
  /** Memory over the whole cluster: -1 no limit and no host check, 0 pool disabled (REJ-A2). */
  readonly maxMemResources: MaxBytes;
  /** The pool's own timeout, always > 0; null means the flag `queue_wait_timeout_ms` (T-5). */
  readonly queueTimeout: Millis | null;
  /** `k=v,k=v` as written, weaker than what the client sets (admission 1.2). */
  readonly defaultQueryOptions: string;
  /** Per query and host; acts only when > 0 (MEM-4). Negative values exist in real files and are kept. */
  readonly maxQueryMemLimit: number;
  readonly minQueryMemLimit: number;
  /** Whether the two bounds apply to MEM_LIMIT too (MEM-4, T-21). */
  readonly clampMemLimitQueryOption: boolean;
  /** MT_DOP is lowered to this; negative: no cap. */
  readonly maxMtDop: number;
  readonly maxQueryCpuCorePerNodeLimit: number;
  readonly maxQueryCpuCoreCoordinatorLimit: number;
  readonly userQueryLimits: Quotas;
  readonly groupQueryLimits: Quotas;
  /** Queries of this pool run on coordinators only (admission 6.2). */
  readonly onlyCoordinators: boolean;
}

const NO_QUOTAS: Quotas = new Map();

/** What a pool gets that nothing is written about. */
export const DEFAULT_POOL_CONFIG: PoolConfig = {
  maxRequests: -1,
  maxQueued: 200,
  maxMemResources: -1,
  queueTimeout: null,
  defaultQueryOptions: "",
  maxQueryMemLimit: 0,
  minQueryMemLimit: 0,
  clampMemLimitQueryOption: true,
  maxMtDop: -1,
  maxQueryCpuCorePerNodeLimit: 0,
  maxQueryCpuCoreCoordinatorLimit: 0,
  userQueryLimits: NO_QUOTAS,
  groupQueryLimits: NO_QUOTAS,
  onlyCoordinators: false,
};

/** MEM-9: no maximum memory and no bounds, so estimates are only booked and never enforced (admission 2.4). */
export const isLegacy = (p: PoolConfig): boolean =>
  p.maxMemResources <= 0 && p.minQueryMemLimit === 0 && p.maxQueryMemLimit === 0;

/** The name that `pools: flags` and a missing allocation file give the one pool (T-44). */
export const DEFAULT_POOL = "default-pool";
export const ROOT_POOL = "root";
