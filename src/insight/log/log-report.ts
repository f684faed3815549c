/**
 * Everything `waterhole import` has to say about a log, as one plain record (insight 4).
 *
 * The text form and `--json` are both made from it. Its first lines are the ones that decide whether to
 * believe the rest: what was cut, what disagrees, what was guessed.
 */
import type { Consistency } from "../../workload/query-log/consistency.ts";
import { isoOf } from "../../workload/query-log/coverage.ts";
import type { Demand, LeftOutReason } from "../../workload/query-log/demand.ts";
import type { HoldRule } from "../../workload/query-log/holds.ts";
import type { LogForm, QueryLog, RowProblem } from "../../workload/query-log/read-query-log.ts";
import type { Guess } from "../../workload/query-log/traced-request.ts";
import { type Advice, type AdviceContext, adviceOf } from "./advice.ts";
import { type ClassRow, classTable, statisticsTable, type TableRow } from "./class-table.ts";
import { type PoolRow, poolTable } from "./pool-table.ts";

export interface LogReport {
  readonly file: string;
  readonly form: LogForm;
  readonly statements: number;
  readonly unreadable: { readonly count: number; readonly first: readonly RowProblem[] };
  /** First and last arrival that is used; null: none is. */
  readonly from: string | null;
  readonly to: string | null;
  readonly requests: number;
  readonly leftOut: Readonly<Partial<Record<LeftOutReason, number>>>;
  readonly cuts: readonly string[];
  readonly holes: readonly { readonly from: string; readonly to: string }[];
  readonly missingColumns: readonly string[];
  readonly consistency: Consistency | null;
  readonly pools: readonly PoolRow[];
  readonly classes: readonly ClassRow[];
  /** Classes that make up the last 5 % of memory-time and are not listed. */
  readonly minorClasses: number;
  readonly tables: readonly TableRow[];
  readonly advice: readonly Advice[];
  readonly guesses: Readonly<Partial<Record<Guess, number>>>;
  readonly imputedShare: number;
  readonly closedLoopShare: number;
  readonly retries: {
    readonly amplification: number;
    readonly retriedShare: number;
    readonly medianDelayMs: number | null;
  };
}

const COVERED = 0.95;

export function logReport(
  log: QueryLog,
  demand: Demand,
  rule: HoldRule,
  consistency: Consistency | null,
  context: AdviceContext,
): LogReport {
  const pools = poolTable(demand, rule);
  const classes = classTable(demand, rule);
  const major = majorClasses(classes);
  const { attempts } = demand;
  const last = demand.requests.at(-1)?.at ?? null;
  return {
    file: log.file,
    form: log.form,
    statements: log.queries.length,
    unreadable: log.unreadable,
    from: last === null ? null : isoOf(demand.start),
    to: last === null ? null : isoOf(demand.start + last),
    requests: demand.requests.length,
    leftOut: Object.fromEntries(demand.leftOut),
    cuts: demand.coverage.cuts,
    holes: demand.coverage.holes.map((h) => ({ from: isoOf(h.from), to: isoOf(h.to) })),
    missingColumns: log.missingColumns,
    consistency,
    pools,
    classes: major,
    minorClasses: classes.length - major.length,
    tables: statisticsTable(classes),
    advice: adviceOf(demand, pools, classes, context),
    guesses: Object.fromEntries(demand.guesses),
    imputedShare: demand.imputedShare,
    closedLoopShare: demand.requests.length === 0 ? 0 : demand.closedLoop / demand.requests.length,
    retries: {
      amplification: attempts.requests === 0 ? 1 : attempts.attempts / attempts.requests,
      retriedShare: attempts.retriedShare,
      medianDelayMs:
        attempts.delays.length === 0 ? null : attempts.delays[Math.ceil(attempts.delays.length / 2) - 1]! / 1000,
    },
  };
}

/** In each pool the fewest classes that make up 95 % of its memory-time; all of a pool whose log has no amounts. */
function majorClasses(classes: readonly ClassRow[]): ClassRow[] {
  const covered = new Map<string, number>();
  const kept = new Set<ClassRow>();
  const shareOf = (c: ClassRow): number => c.memoryTimeShare ?? 0;
  for (const c of [...classes].sort((a, b) => shareOf(b) - shareOf(a))) {
    const before = covered.get(c.pool) ?? 0;
    if (before < COVERED) kept.add(c);
    covered.set(c.pool, before + shareOf(c));
  }
  return classes.filter((c) => kept.has(c));
}

/** How each kind of guess was made; the report lists those that were needed. */
export const GUESS_TEXT: Readonly<Record<Guess, string>> = {
  hold: "refused queries have no duration: a finished one of the same class and size stands in for each, whole",
  holdCut:
    "queries that failed or were cancelled while running were cut off: a longer hold is drawn from the class's product-limit estimate",
  estimate: "no planner's estimate: taken from the amount admitted or from another execution",
  coordinatorEstimate:
    "no estimate for the coordinator: the planner's floor of 100 MiB is taken, or the estimate if that is less",
  peak: "no peak: what was admitted is taken as the peak, or the estimate if that is less",
  backends: "no number of backends: as many as the sum of the peaks over all hosts needs, else one",
  slots: "no slots: taken from another execution, else one",
  spread:
    "spilled on several hosts, of which the log has the sum: the same is taken for each, and more for a coordinator that executes under a smaller limit of its own",
  amount: "the log contradicts the pool files: the recorded amounts are charged, so changed bounds will show no effect",
};
