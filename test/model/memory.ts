/**
 * Memory to admit, step by step as admission section 2 lists it. Part of the slow reference model: written
 * from the rules alone, apart from the core, and meant to be read next to the table and nothing else.
 */
import type { MemorySource } from "../../src/core/admission/reasons.ts";
import type { RequestShape } from "../../src/core/admission/request.ts";
import type { PoolConfig } from "../../src/core/pool-config.ts";

const MiB = 1024 * 1024;

/** Smallest limit under which a reservation fits (2.1). */
export function needed(reservation: number): number {
  const r = Math.max(reservation, 0);
  const byFactor = Math.trunc(r * 1.25);
  const byMargin = r + 32 * MiB;
  return Math.max(byFactor, byMargin);
}

/** What a limit leaves for reservations (2.1). */
export function allowed(limit: number): number {
  const byFactor = Math.trunc(0.8 * limit);
  const byMargin = limit - 32 * MiB;
  const smaller = Math.min(byFactor, byMargin);
  return Math.max(smaller, 0);
}

export interface MemoryInput {
  readonly shape: RequestShape;
  readonly pool: PoolConfig;
  /** RE and RC of the rules. */
  readonly largestMinReservation: number;
  readonly coordMinReservation: number;
  /** n: backends of the schedule, coordinator included. */
  readonly numBackends: number;
  readonly coordinatorIsExecutor: boolean;
  readonly coordinatorInstances: number;
  /** hostE: smallest executor of the unfiltered group, 0 for the empty group. */
  readonly smallestExecutor: number;
  /** hostC. */
  readonly coordinatorHost: number;
  readonly clampToHosts: boolean;
  readonly dedicatedCoordinatorEstimates: boolean;
}

export interface Memory {
  readonly perHost: number;
  readonly perHostSource: MemorySource;
  readonly coordinator: number;
  readonly coordinatorSource: MemorySource;
  readonly perHostLimit: number;
  readonly coordinatorLimit: number;
  readonly cluster: number;
}

export function memoryToAdmit(input: MemoryInput): Memory {
  const { shape, pool } = input;
  const { options } = shape;

  // MEM-1, the planner's.
  let estimate = shape.perHostMemEstimate as number;
  let coordEstimate = shape.dedicatedCoordMemEstimate as number;
  if (options.maxMemEstimateForAdmission > 0) {
    if (estimate > options.maxMemEstimateForAdmission) estimate = options.maxMemEstimateForAdmission;
    if (coordEstimate > options.maxMemEstimateForAdmission) coordEstimate = options.maxMemEstimateForAdmission;
  }

  const minQ = pool.minQueryMemLimit;
  const maxQ = pool.maxQueryMemLimit;
  const legacy = pool.maxMemResources <= 0 && minQ === 0 && maxQ === 0;
  const onlyRootFragment =
    input.coordinatorInstances === 0 || (shape.stmtType === "QUERY" && input.coordinatorInstances === 1);
  const dedicated = input.dedicatedCoordinatorEstimates && !input.coordinatorIsExecutor && onlyRootFragment;
  const ml = options.memLimit > 0;

  let E: number;
  let C: number;
  let sourceE: MemorySource;
  let sourceC: MemorySource;
  const raiseE = (to: number, source: MemorySource): void => {
    if (E < to) [E, sourceE] = [to, source];
  };
  const raiseC = (to: number, source: MemorySource): void => {
    if (C < to) [C, sourceC] = [to, source];
  };
  const lowerE = (to: number, source: MemorySource): void => {
    if (E > to) [E, sourceE] = [to, source];
  };
  const lowerC = (to: number, source: MemorySource): void => {
    if (C > to) [C, sourceC] = [to, source];
  };

  if (ml) {
    // MEM-2
    E = options.memLimit;
    C = options.memLimit;
    sourceE = "QUERY_OPTION_MEM_LIMIT";
    sourceC = "QUERY_OPTION_MEM_LIMIT";
  } else {
    // MEM-3
    E = estimate;
    sourceE = "QUERY_PLAN_PER_HOST_MEM_ESTIMATE";
    C = dedicated ? coordEstimate : estimate;
    sourceC = dedicated ? "QUERY_PLAN_DEDICATED_COORDINATOR_MEM_ESTIMATE" : "QUERY_PLAN_PER_HOST_MEM_ESTIMATE";
    if (!legacy) {
      raiseE(needed(input.largestMinReservation), "ADJUSTED_PER_HOST_MEM_ESTIMATE");
      raiseC(needed(input.coordMinReservation), "ADJUSTED_DEDICATED_COORDINATOR_MEM_ESTIMATE");
    }
  }

  // MEM-4
  if (!ml || pool.clampMemLimitQueryOption) {
    if (minQ > 0) raiseE(minQ, "POOL_CONFIG_MIN_QUERY_MEM_LIMIT");
    if (minQ > 0 && (!dedicated || ml)) raiseC(minQ, "POOL_CONFIG_MIN_QUERY_MEM_LIMIT");
    if (maxQ > 0) lowerE(maxQ, "POOL_CONFIG_MAX_QUERY_MEM_LIMIT");
    if (maxQ > 0) lowerC(maxQ, "POOL_CONFIG_MAX_QUERY_MEM_LIMIT");
  }
  // MEM-5, MEM-6
  if (!ml && options.memLimitCoordinators > 0) {
    C = options.memLimitCoordinators;
    sourceC = "QUERY_OPTION_MEM_LIMIT_COORDINATORS";
  }
  if (!ml && options.memLimitExecutors > 0) {
    E = options.memLimitExecutors;
    sourceE = "QUERY_OPTION_MEM_LIMIT_EXECUTORS";
  }
  // MEM-7
  if (input.clampToHosts) {
    lowerE(input.smallestExecutor, "HOST_MEM_TRACKER_LIMIT");
    lowerC(input.coordinatorHost, "HOST_MEM_TRACKER_LIMIT");
  }
  // MEM-8
  if (input.numBackends === 1 && shape.stmtType === "QUERY") {
    E = 0;
    sourceE = "COORDINATOR_ONLY_OPTIMIZATION";
  }
  // MEM-9
  const noLimit = legacy && !ml && options.memLimitExecutors <= 0 && options.memLimitCoordinators <= 0;

  return {
    perHost: E,
    perHostSource: sourceE,
    coordinator: C,
    coordinatorSource: sourceC,
    perHostLimit: noLimit ? -1 : E,
    coordinatorLimit: noLimit ? -1 : C,
    // MEM-10
    cluster: E * (input.numBackends - 1) + C,
  };
}
