/**
 * What a query is charged and held to, per executor and on its coordinator (admission 2, MEM-1 to MEM-11).
 *
 * The order of the steps decides the result, and each step names where a value came from; a source changes
 * only when the value really does, except in MEM-5, MEM-6 and MEM-8, which always set it.
 */
import { isLegacy, type PoolConfig } from "../pool-config.ts";
import type { Bytes } from "../units.ts";
import type { MemorySource } from "./reasons.ts";
import type { AdmissionOptions, RequestShape } from "./request.ts";
import { limitNeededFor } from "./reservation-math.ts";

export interface MemoryToAdmit {
  /** MEM-11 on every backend but the coordinator's; 0 for a query that has only the coordinator (MEM-8). */
  readonly perHost: Bytes;
  readonly onCoordinator: Bytes;
  readonly perHostSource: MemorySource;
  readonly onCoordinatorSource: MemorySource;
  /** MEM-9: what execution enforces, -1: nothing. */
  readonly memLimit: number;
  readonly coordinatorMemLimit: number;
  /** MEM-10: what the pool is charged. */
  readonly cluster: Bytes;
}

/** What the schedule and the cluster contribute (admission 2.3). */
export interface PlacementFacts {
  /** RE and RC. */
  readonly largestMinReservation: number;
  readonly coordMinReservation: number;
  /** n, the coordinator included. */
  readonly numBackends: number;
  /** See `usesDedicatedEstimate`. */
  readonly dedicated: boolean;
  /** hostE: of the whole group, not of the schedule (T-17); 0 for the empty group. */
  readonly smallestExecutorLimit: number;
  /** hostC. */
  readonly coordinatorLimit: number;
}

/** `dedicated` of admission 2.3: `--use_dedicated_coordinator_estimates` and nothing but a root fragment there. */
export const usesDedicatedEstimate = (
  flag: boolean,
  coordinator: { readonly isExecutor: boolean; readonly numInstances: number },
  stmtType: RequestShape["stmtType"],
): boolean =>
  flag &&
  !coordinator.isExecutor &&
  (coordinator.numInstances === 0 || (stmtType === "QUERY" && coordinator.numInstances === 1));

/** MEM-1: the planner's cap looks neither at the pool nor at MEM_LIMIT (T-23). */
export const cappedEstimate = (estimate: number, options: AdmissionOptions): Bytes =>
  (options.maxMemEstimateForAdmission > 0 ? Math.min(estimate, options.maxMemEstimateForAdmission) : estimate) as Bytes;

export function memoryToAdmit(
  shape: RequestShape,
  placement: PlacementFacts,
  config: PoolConfig,
  clampToHosts: boolean,
): MemoryToAdmit {
  const { options } = shape;
  const { dedicated } = placement;
  const byMemLimit = options.memLimit > 0;
  const legacy = isLegacy(config);
  const e = startOnExecutors(shape);
  const c = startOnCoordinator(shape, dedicated);

  if (!byMemLimit && !legacy) {
    raise(e, limitNeededFor(placement.largestMinReservation), "ADJUSTED_PER_HOST_MEM_ESTIMATE");
    raise(c, limitNeededFor(placement.coordMinReservation), "ADJUSTED_DEDICATED_COORDINATOR_MEM_ESTIMATE");
  }
  if (!byMemLimit || config.clampMemLimitQueryOption) {
    if (config.minQueryMemLimit > 0) {
      raise(e, config.minQueryMemLimit, "POOL_CONFIG_MIN_QUERY_MEM_LIMIT");
      // A dedicated coordinator's estimate stays small, unless the person set MEM_LIMIT for all (T-20).
      if (!dedicated || byMemLimit) raise(c, config.minQueryMemLimit, "POOL_CONFIG_MIN_QUERY_MEM_LIMIT");
    }
    if (config.maxQueryMemLimit > 0) {
      lower(e, config.maxQueryMemLimit, "POOL_CONFIG_MAX_QUERY_MEM_LIMIT");
      lower(c, config.maxQueryMemLimit, "POOL_CONFIG_MAX_QUERY_MEM_LIMIT");
    }
  }
  if (!byMemLimit && options.memLimitCoordinators > 0)
    set(c, options.memLimitCoordinators, "QUERY_OPTION_MEM_LIMIT_COORDINATORS");
  if (!byMemLimit && options.memLimitExecutors > 0)
    set(e, options.memLimitExecutors, "QUERY_OPTION_MEM_LIMIT_EXECUTORS");
  if (clampToHosts) {
    lower(e, placement.smallestExecutorLimit, "HOST_MEM_TRACKER_LIMIT");
    lower(c, placement.coordinatorLimit, "HOST_MEM_TRACKER_LIMIT");
  }
  if (placement.numBackends === 1 && shape.stmtType === "QUERY") set(e, 0, "COORDINATOR_ONLY_OPTIMIZATION");

  const unlimited = legacy && !byMemLimit && options.memLimitExecutors <= 0 && options.memLimitCoordinators <= 0;
  return {
    perHost: e.value as Bytes,
    onCoordinator: c.value as Bytes,
    perHostSource: e.source,
    onCoordinatorSource: c.source,
    memLimit: unlimited ? -1 : e.value,
    coordinatorMemLimit: unlimited ? -1 : c.value,
    cluster: (e.value * (placement.numBackends - 1) + c.value) as Bytes,
  };
}

interface Sourced {
  value: number;
  source: MemorySource;
}

function startOnExecutors({ options, perHostMemEstimate }: RequestShape): Sourced {
  return options.memLimit > 0
    ? { value: options.memLimit, source: "QUERY_OPTION_MEM_LIMIT" }
    : { value: cappedEstimate(perHostMemEstimate, options), source: "QUERY_PLAN_PER_HOST_MEM_ESTIMATE" };
}

function startOnCoordinator(shape: RequestShape, dedicated: boolean): Sourced {
  if (shape.options.memLimit > 0 || !dedicated) return startOnExecutors(shape);
  return {
    value: cappedEstimate(shape.dedicatedCoordMemEstimate, shape.options),
    source: "QUERY_PLAN_DEDICATED_COORDINATOR_MEM_ESTIMATE",
  };
}

function set(s: Sourced, value: number, source: MemorySource): void {
  s.value = value;
  s.source = source;
}

function raise(s: Sourced, least: number, source: MemorySource): void {
  if (s.value < least) set(s, least, source);
}

function lower(s: Sourced, most: number, source: MemorySource): void {
  if (s.value > most) set(s, most, source);
}
