/**
 * Which executor group set the planner sends a query to (admission 6.4). Planning, not admission: the chosen
 * prefix becomes the request pool, and admission never moves a query to another set. A query of an
 * only-coordinators pool keeps its pool and is not asked about here.
 */
import type { ExecutorGroup } from "./executor-group.ts";

/** One entry of `--expected_executor_group_sets`, with the limits of the pool of that name. */
export interface GroupSet {
  /** Equals the pool's name. */
  readonly prefix: string;
  readonly expectedSize: number;
  /** 0: no limit. */
  readonly maxQueryMemLimit: number;
  readonly maxQueryCpuCorePerNodeLimit: number;
}

export interface GroupSetQuery {
  /** Empty: not set. */
  readonly requestPool: string;
  readonly perHostMemEstimate: number;
  /** Scaled CPU ask under COMPUTE_PROCESSING_COST, else null. */
  readonly cpuAsk: number | null;
  /** NUM_NODES=1, ENABLE_REPLAN=false, or a statement that can't be planned again for another width. */
  readonly isFixed: boolean;
}

export type GroupSetChoice =
  | { readonly kind: "chosen"; readonly set: GroupSet; readonly width: number }
  | { readonly kind: "failed"; readonly error: string };

/** What keeps the planner from trying more than the first set, in the order in which it looks. */
export interface FirstSetFacts {
  readonly numNodes: number;
  readonly enableReplan: boolean;
  readonly isAutoScalable: boolean;
  readonly isOnlyCoordinators: boolean;
}

/** `Verdict` of the first executor group in the profile; null: the sets are compared. */
export function firstSetVerdict(facts: FirstSetFacts): string | null {
  const reason =
    facts.numNodes === 1
      ? "the number of nodes is 1"
      : !facts.enableReplan
        ? "query option ENABLE_REPLAN=false"
        : !facts.isAutoScalable
          ? "query is not auto-scalable"
          : facts.isOnlyCoordinators
            ? "only coordinators request pool specified"
            : null;
  return reason === null ? null : `Assign to first group because ${reason}`;
}

interface Measured {
  readonly set: GroupSet;
  readonly width: number;
  readonly memThreshold: number;
  readonly cores: number;
}

export function chooseGroupSet(
  sets: readonly GroupSet[],
  groups: readonly ExecutorGroup[],
  query: GroupSetQuery,
  skipCheckOnLast = true,
): GroupSetChoice {
  const named = sets.filter((s) => query.requestPool === "" || s.prefix.endsWith(query.requestPool));
  if (named.length === 0)
    return {
      kind: "failed",
      error: `Request pool: ${query.requestPool} does not map to any known executor group set.`,
    };
  const measured = named.map((s) => measure(s, groups)).sort(smallerFirst);
  const first = measured[0]!;
  if (query.requestPool !== "" || query.isFixed) return chosen(first);
  const fitting = measured.find((m, i) => (skipCheckOnLast && i === measured.length - 1) || fits(m, query));
  return fitting === undefined
    ? {
        kind: "failed",
        error: `The query does not fit largest executor group sets. Reason: ${shortOf(measured.at(-1)!, query)}.`,
      }
    : chosen(fitting);
}

/** Why the largest set was not enough, in the planner's words. */
function shortOf({ memThreshold, cores }: Measured, query: GroupSetQuery): string {
  const reasons: string[] = [];
  if (query.perHostMemEstimate > memThreshold)
    reasons.push(`not enough per-host memory (require=${query.perHostMemEstimate}, max=${memThreshold})`);
  if (query.cpuAsk !== null && query.cpuAsk > cores)
    reasons.push(`not enough cpu cores (require=${query.cpuAsk}, max=${cores})`);
  return reasons.join(", ");
}

const chosen = ({ set, width }: Measured): GroupSetChoice => ({ kind: "chosen", set, width });

function measure(set: GroupSet, groups: readonly ExecutorGroup[]): Measured {
  const healthy = groups.filter((g) => g.isHealthy && g.name.startsWith(`${set.prefix}-`));
  const width = healthy.reduce((most, g) => Math.max(most, g.executors.length), 0) || set.expectedSize;
  const perNode = set.maxQueryCpuCorePerNodeLimit;
  return {
    set,
    width,
    memThreshold: set.maxQueryMemLimit > 0 ? set.maxQueryMemLimit : Number.POSITIVE_INFINITY,
    cores: perNode > 0 ? perNode * width : Number.POSITIVE_INFINITY,
  };
}

function smallerFirst(a: Measured, b: Measured): number {
  return (
    difference(a.memThreshold, b.memThreshold) ||
    difference(a.cores, b.cores) ||
    (a.set.prefix < b.set.prefix ? -1 : a.set.prefix > b.set.prefix ? 1 : 0)
  );
}

/** Infinity minus Infinity is no order. */
const difference = (a: number, b: number): number => (a === b ? 0 : a < b ? -1 : 1);

const fits = (m: Measured, query: GroupSetQuery): boolean =>
  query.perHostMemEstimate <= m.memThreshold && (query.cpuAsk === null || query.cpuAsk <= m.cores);
