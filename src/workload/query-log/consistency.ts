/**
 * Does the log agree with the pool files? The second check before anything is made of it (insight 4.1).
 *
 * What admission charged follows from the estimates, the options and the pool's bounds (admission 2). Where
 * that does not give the recorded amount, the files were changed since, or the release computes it another
 * way (T-22); a what-if that starts from such estimates would answer for a cluster that never was.
 */
import { type MemoryToAdmit, memoryToAdmit } from "../../core/admission/memory-to-admit.ts";
import { DEFAULT_ADMISSION_OPTIONS, type RequestShape } from "../../core/admission/request.ts";
import type { PoolConfig } from "../../core/pool-config.ts";
import type { Bytes } from "../../core/units.ts";
import { isAdmitted, type LoggedQuery } from "./logged-query.ts";

export interface Consistency {
  /** Rows with everything needed to compute the amount. */
  readonly checked: number;
  readonly mismatches: number;
  readonly share: number;
  /** Over one in twenty disagree: use the recorded amounts. */
  readonly isBroken: boolean;
  readonly examples: readonly Mismatch[];
}

export interface Mismatch {
  readonly line: number;
  readonly pool: string;
  readonly recorded: number;
  readonly expected: number;
}

const MOST_MISMATCHES = 0.05;
const SHOWN = 3;

/** `configOf` gives null for a pool whose record cannot be had. */
export function consistencyOf(
  queries: readonly LoggedQuery[],
  configOf: (pool: string) => PoolConfig | null,
): Consistency {
  const examples: Mismatch[] = [];
  let checked = 0;
  let mismatches = 0;
  for (const q of queries) {
    const config = isAdmitted(q.outcome) ? configOf(q.pool) : null;
    if (config === null || q.clusterAdmitted === null || q.backends === null || q.estimate === null) continue;
    checked++;
    const expected = amountsOf(q, config);
    if (expected.some((e) => agrees(e, q.clusterAdmitted!))) continue;
    mismatches++;
    if (examples.length < SHOWN)
      examples.push({ line: q.line, pool: q.pool, recorded: q.clusterAdmitted, expected: expected[0]! });
  }
  const share = checked === 0 ? 0 : mismatches / checked;
  return { checked, mismatches, share, isBroken: share > MOST_MISMATCHES, examples };
}

/** With the coordinator's own estimate and without: the log does not say whether it was a dedicated one. */
function amountsOf(q: LoggedQuery, config: PoolConfig): number[] {
  return [true, false].map((dedicated) => recomputed(q, config, dedicated).cluster);
}

function recomputed(q: LoggedQuery, config: PoolConfig, dedicated: boolean): MemoryToAdmit {
  const shape: RequestShape = {
    stmtType: q.statementType === "DML" ? "DML" : "QUERY",
    perHostMemEstimate: q.estimate as Bytes,
    dedicatedCoordMemEstimate: (q.coordinatorEstimate ?? q.estimate) as Bytes,
    isTrivial: false,
    coordinatorOnly: q.backends === 1,
    includeAllCoordinators: false,
    executors: "all",
    fragments: [],
    options: { ...DEFAULT_ADMISSION_OPTIONS, ...memoryOptions(q) },
    maxSlotsPerExecutor: null,
  };
  const placement = {
    largestMinReservation: q.reservation ?? 0,
    coordMinReservation: 0,
    numBackends: q.backends!,
    dedicated,
    // The hosts are not in the log; a query so large that they bound it counts as a mismatch.
    smallestExecutorLimit: Number.MAX_SAFE_INTEGER,
    coordinatorLimit: Number.MAX_SAFE_INTEGER,
  };
  return memoryToAdmit(shape, placement, config, false);
}

const memoryOptions = (q: LoggedQuery) => ({
  memLimit: q.options.memLimit,
  memLimitExecutors: q.options.memLimitExecutors,
  memLimitCoordinators: q.options.memLimitCoordinators,
});

/** Profiles print two decimals of the largest unit, which is off by at most half of the last. */
const agrees = (expected: number, recorded: number): boolean =>
  Math.abs(expected - recorded) <= Math.max(1, recorded * 0.005);
