/**
 * From what happened to what was wanted: a log's rows become the requests of a trace (insight 4.2, 4.3).
 *
 * A log of a busy pool is not a workload. Its waits are the very thing that shall be predicted, the queries
 * it turned away have no duration, those that were cut off show too little, and one wish may stand there
 * twice. Each of these is settled here, in one place, and each settlement is counted so that the report can
 * say how much of the trace was recorded and how much was guessed.
 *
 * Must stay true: `requests` is in order of arrival; every row of the log is in exactly one of `requests`,
 * `leftOut` or the later attempts of a request.
 */
import { reservationLimitFor } from "../../core/memory/reservation-limit.ts";
import { philoxFor, uniformOf } from "../../core/random.ts";
import { type Attempts, arrivalOf, attemptsOf, predecessorsOf } from "./attempts.ts";
import { type Coverage, coverageOf, DEFAULT_COVERAGE, isOwnExport } from "./coverage.ts";
import { type HoldRule, holdOf, type Observation, ProductLimit, waitOf } from "./holds.ts";
import { isAdmitted, knownBackends, type LoggedQuery } from "./logged-query.ts";
import { classNamesOf, log2Bucket } from "./query-classes.ts";
import type { QueryLog } from "./read-query-log.ts";
import type { Guess, TracedRequest } from "./traced-request.ts";

export interface DemandOptions {
  readonly hold: HoldRule;
  /** `--query_log_write_interval_s`, microseconds. */
  readonly writeInterval: number;
  /** Draws for what must be guessed: uniform in (0, 1), a function of the row and the purpose only. */
  readonly draw: (purpose: "donor" | "cut", row: number) => number;
  /** Who stands in for a query without figures: drawn at random, or by the class's 25 % or 90 % of memory-time (4.3). */
  readonly donor: "draw" | "low" | "high";
  /** Recorded amounts instead of estimates: the log contradicts the pool files (4.1). */
  readonly useRecordedAmounts: boolean;
}

export const DEFAULT_DEMAND: DemandOptions = {
  hold: "lastRow",
  writeInterval: DEFAULT_COVERAGE.writeInterval,
  draw: drawsOf(1),
  donor: "draw",
  useRecordedAmounts: false,
};

/** Draws of a seed: the same for a row whatever else is in the log or was asked before. */
export function drawsOf(seed: number): DemandOptions["draw"] {
  const streams = { donor: philoxFor(seed, "trace/donor"), cut: philoxFor(seed, "trace/cut") };
  return (purpose, row) => {
    const stream = streams[purpose];
    stream.at(row, 0, 0, 0);
    return uniformOf(stream.w0, stream.w1);
  };
}

export type LeftOutReason =
  | "no admission"
  | "log writer"
  | "outside the covered range"
  | "negative time"
  | "written twice"
  | "still waiting or running"
  | "nothing known to replace it with";

export interface Demand {
  /** Microseconds since 1970 of the first request. */
  readonly start: number;
  readonly requests: readonly TracedRequest[];
  readonly leftOut: ReadonlyMap<LeftOutReason, number>;
  readonly attempts: Attempts;
  readonly coverage: Coverage;
  /** Share of the trace's memory-time that belongs to queries without a recorded hold. */
  readonly imputedShare: number;
  readonly guesses: ReadonlyMap<Guess, number>;
  /** Requests that waited for their client's previous answer. */
  readonly closedLoop: number;
  /** Coordinators take part in queries as executors do; false: they have hosts of their own, as far as amounts tell. */
  readonly coordinatorsExecute: boolean;
  /** The rows behind `requests`, for reports. */
  readonly rows: readonly LoggedQuery[];
  /** Of all usable rows, later attempts included; the report's populations. */
  readonly allRows: readonly LoggedQuery[];
  /** Class of each of `allRows`. */
  readonly allClasses: readonly string[];
}

export function demandOf(log: QueryLog, options: DemandOptions): Demand {
  const leftOut = new Map<LeftOutReason, number>();
  const own = isOwnExport(log);
  const holds = log.queries.map((q) => holdOf(q, options.hold)).filter((h) => h !== null);
  const coverage = coverageOf(log, holds, { writeInterval: options.writeInterval });
  const once = withoutRepeats(log.queries);
  if (once.length < log.queries.length) leftOut.set("written twice", log.queries.length - once.length);
  const usable = once
    .filter((q) => {
      const reason = reasonToLeaveOut(q, options.hold, coverage);
      if (reason !== null) count(leftOut, reason);
      return reason === null;
    })
    .sort((a, b) => arrivalOf(a) - arrivalOf(b) || turnOf(a) - turnOf(b) || a.line - b.line);
  const classes = classNamesOf(usable, own);
  const attempts = attemptsOf(usable, own);
  const firsts = usable.map((_, i) => i).filter((i) => attempts.first[i] === i);
  const donors = new Donors(usable, classes, options.hold);
  const coordinatorsExecute = areOnExecutors(usable);
  const told = { ...options, peaksAreReserved: own, coordinatorsExecute };
  const settled = firsts.map((i) => settle(usable, i, classes[i]!, donors, told));
  const kept = firsts.filter((_, k) => settled[k] !== null);
  for (const s of settled) if (s === null) count(leftOut, "nothing known to replace it with");
  const start = kept.length === 0 ? 0 : arrivalOf(usable[kept[0]!]!);
  const placeOf = new Map(kept.map((i, k) => [i, k]));
  const predecessors = own ? [] : predecessorsOf(usable);
  const requests = settled
    .filter((s) => s !== null)
    .map((s, k): TracedRequest => {
      const before = predecessors[kept[k]!] ?? null;
      const index = before === null ? undefined : placeOf.get(attempts.first[before.index]!);
      return {
        ...s,
        at: s.at - start,
        after: before === null || index === undefined || index >= k ? null : { index, think: before.think },
      };
    });
  return {
    start,
    requests,
    leftOut,
    attempts,
    coverage,
    imputedShare: imputedShareOf(requests),
    guesses: guessesOf(requests),
    closedLoop: requests.filter((r) => r.after !== null).length,
    coordinatorsExecute,
    rows: kept.map((i) => usable[i]!),
    allRows: usable,
    allClasses: classes,
  };
}

/**
 * Exports whose time ranges overlap, and the table of live queries beside that of ended ones, tell one query twice:
 * what is known of its end counts.
 */
function withoutRepeats(queries: readonly LoggedQuery[]): readonly LoggedQuery[] {
  const keyOf = (q: LoggedQuery): string => `${q.queryId} ${q.start}`;
  const chosen = new Map<string, LoggedQuery>();
  for (const q of queries) {
    const other = chosen.get(keyOf(q));
    if (other === undefined || isOpen(other)) chosen.set(keyOf(q), q);
  }
  return queries.filter((q) => q.queryId === "" || chosen.get(keyOf(q)) === q);
}

const isOpen = (q: LoggedQuery): boolean => q.outcome === "waiting" || (isAdmitted(q.outcome) && q.end === "running");

/**
 * Who arrived at one moment stood in this order, as far as a log can tell: first come, first served. Who was
 * admitted at once came before whoever waited, these in the order of their admissions, and who found the queue
 * full came last.
 */
function turnOf(q: LoggedQuery): number {
  if (q.outcome === "rejected") return Number.MAX_VALUE;
  if (q.outcome === "timedOut" || q.outcome === "cancelledInQueue") return Number.MAX_SAFE_INTEGER;
  return waitOf(q) ?? 0;
}

/** A timer may be read a moment early; more than a millisecond below nothing is damage. */
const CLOCK_NOISE = -1000;

function reasonToLeaveOut(q: LoggedQuery, rule: HoldRule, coverage: Coverage): LeftOutReason | null {
  if (q.isLogWriter) return "log writer";
  if (q.outcome === "none") return "no admission";
  const arrival = arrivalOf(q);
  if (arrival < coverage.from || arrival > coverage.to) return "outside the covered range";
  if (isOpen(q)) return "still waiting or running";
  if ((waitOf(q) ?? 0) < CLOCK_NOISE || (holdOf(q, rule) ?? 0) < CLOCK_NOISE) return "negative time";
  return null;
}

/** Finished queries from which one that left no figures takes all of them at once: they depend on each other. */
class Donors {
  private readonly byBucket = new Map<string, LoggedQuery[]>();
  private readonly byClass = new Map<string, LoggedQuery[]>();
  private readonly byPool = new Map<string, LoggedQuery[]>();
  private readonly observed = new Map<string, Observation[]>();
  private readonly limits = new Map<string, ProductLimit>();
  private readonly sorted = new Map<readonly LoggedQuery[], readonly LoggedQuery[]>();
  private readonly rule: HoldRule;

  constructor(queries: readonly LoggedQuery[], classes: readonly string[], rule: HoldRule) {
    this.rule = rule;
    queries.forEach((q, i) => {
      const hold = holdOf(q, rule);
      if (hold === null) return;
      const name = classes[i]!;
      push(this.observed, name, { value: Math.max(0, hold), cut: q.end !== "finished" });
      if (q.end !== "finished") return;
      push(this.byBucket, `${name}\n${log2Bucket(q.estimate)}`, q);
      push(this.byClass, name, q);
      push(this.byPool, q.pool, q);
    });
  }

  /** Of the class and size, else of the class, else of the pool; null: nobody ever finished there. */
  pick(q: LoggedQuery, queryClass: string, how: DemandOptions["donor"], u: number): LoggedQuery | null {
    const among =
      this.byBucket.get(`${queryClass}\n${log2Bucket(q.estimate)}`) ??
      this.byClass.get(queryClass) ??
      this.byPool.get(q.pool);
    if (among === undefined) return null;
    if (how === "draw") return among[Math.floor(u * among.length)]!;
    const share = how === "low" ? 0.25 : 0.9;
    let sorted = this.sorted.get(among);
    if (sorted === undefined) {
      sorted = [...among].sort((a, b) => this.memoryTime(a) - this.memoryTime(b));
      this.sorted.set(among, sorted);
    }
    return sorted[Math.ceil(share * sorted.length) - 1]!;
  }

  private memoryTime(q: LoggedQuery): number {
    return (q.clusterAdmitted ?? q.estimate ?? 0) * (holdOf(q, this.rule) ?? 0);
  }

  holdBeyond(queryClass: string, cut: number, u: number): number {
    let limit = this.limits.get(queryClass);
    if (limit === undefined) {
      limit = new ProductLimit(this.observed.get(queryClass) ?? []);
      this.limits.set(queryClass, limit);
    }
    return limit.isEmpty ? cut : limit.drawBeyond(cut, u);
  }
}

/** Everything a replay needs of one request; null when nothing in the log tells how long such a query runs. */
function settle(
  queries: readonly LoggedQuery[],
  index: number,
  queryClass: string,
  donors: Donors,
  options: DemandOptions & { readonly peaksAreReserved: boolean; readonly coordinatorsExecute: boolean },
): TracedRequest | null {
  const q = queries[index]!;
  const guessed: Guess[] = [];
  const recordedHold = holdOf(q, options.hold);
  const isServed = recordedHold !== null;
  const donor = isServed ? null : donors.pick(q, queryClass, options.donor, options.draw("donor", index));
  if (!isServed && donor === null) return null;
  const source = donor ?? q;
  if (!isServed) guessed.push("hold");
  let hold = Math.max(0, recordedHold ?? holdOf(source, options.hold) ?? 0);
  if (isServed && q.end !== "finished") {
    hold = donors.holdBeyond(queryClass, hold, options.draw("cut", index));
    guessed.push("holdCut");
  }
  const backends = knownBackends(source) ?? 1;
  if (source.backends === null) guessed.push("backends");
  const estimate = q.estimate ?? source.estimate ?? amountPerHost(source) ?? 0;
  if (q.estimate === null) guessed.push("estimate");
  const coordinatorEstimate =
    q.coordinatorEstimate ?? source.coordinatorEstimate ?? Math.min(estimate, DEFAULT_COORDINATOR);
  if (q.coordinatorEstimate === null) guessed.push("coordinatorEstimate");
  const admitted = executorAmountOf(source, coordinatorEstimate);
  const peak = source.peakMax ?? Math.min(estimate, admitted ?? Number.POSITIVE_INFINITY);
  if (source.peakMax === null) guessed.push("peak");
  if (source.executorSlots === null) guessed.push("slots");
  const spillers = options.coordinatorsExecute ? backends : backends - 1;
  if ((source.spilled ?? 0) > 0 && spillers > 1) guessed.push("spread");
  const asAdmitted = options.useRecordedAmounts && q.options.memLimit === 0 && source.clusterAdmitted !== null;
  if (asAdmitted) guessed.push("amount");
  return {
    at: arrivalOf(q),
    queryId: q.queryId,
    queryClass,
    pool: q.pool,
    user: q.user,
    coordinator: q.coordinator,
    stmtType: q.statementType === "DML" ? "DML" : "QUERY",
    isTrivial: q.outcome === "trivially",
    estimate,
    coordinatorEstimate,
    options: asAdmitted ? recordedLimits(q, source, coordinatorEstimate) : q.options,
    reservation: q.reservation ?? source.reservation ?? 0,
    backends,
    coordinatorOnly: source.coordinatorOnly,
    slots: Math.max(1, source.executorSlots ?? 1),
    hold: Math.round(hold),
    peak,
    reserved: reservedOf(source, peak, estimate, admitted, options.peaksAreReserved),
    spilled: source.spilled ?? 0,
    after: null,
    guessed,
    recorded: { outcome: q.outcome, rejection: q.rejection, wait: waitOf(q) },
  };
}

/**
 * What of its peak was reserved. A cluster's log has the peak of all memory, of which a limit leaves only a part to
 * reservations (R8): taken so, it spills under limits below its peak and under no other. Our own exports
 * (`isReserved`) have reservations as they are. Neither was ever given more than was admitted.
 */
function reservedOf(
  source: LoggedQuery,
  peak: number,
  estimate: number,
  admitted: number | null,
  isReserved: boolean,
): number {
  const most = admitted === null ? peak : Math.min(peak, admitted);
  // One that stands in for a smaller query had a larger limit.
  const isSmaller = source.estimate !== null && estimate < source.estimate;
  const all = isSmaller ? Math.floor((most * estimate) / source.estimate) : most;
  const reserved = reservationLimitFor(all, -1, 0);
  if (!isReserved || source.peakMax === null) return reserved;
  return admitted === null ? all : Math.min(all, reservationLimitFor(admitted, -1, 0));
}

/**
 * E, what an executor was charged and limited to; null: the log does not say. MEM_LIMIT is the coordinator's too, and
 * where everybody has the estimate the coordinator is an executor.
 */
export function executorAmountOf(
  q: LoggedQuery,
  coordinator = q.coordinatorEstimate ?? DEFAULT_COORDINATOR,
): number | null {
  if (q.options.memLimitExecutors > 0) return q.options.memLimitExecutors;
  if (q.clusterAdmitted === null || q.backends === null) return null;
  const average = Math.floor(q.clusterAdmitted / q.backends);
  if (q.options.memLimit > 0 || average === q.estimate) return average;
  return recordedAmounts(q.clusterAdmitted, q.backends, coordinator).executors;
}

/** Runtime filters and result spooling of a dedicated coordinator; the planner's floor (admission 1.1). */
const DEFAULT_COORDINATOR = 100 * 1024 * 1024;

/** E from what was admitted, where the estimate is unknown: C is taken to be as large as E. */
const amountPerHost = (q: LoggedQuery): number | null =>
  q.clusterAdmitted === null || q.backends === null ? null : Math.round(q.clusterAdmitted / q.backends);

/** The two options that no bound of a pool touches (MEM-5, MEM-6), set to what was really admitted. */
function recordedLimits(q: LoggedQuery, source: LoggedQuery, coordinator: number): LoggedQuery["options"] {
  const amounts = recordedAmounts(source.clusterAdmitted ?? 0, source.backends ?? 1, coordinator);
  return { ...q.options, memLimitExecutors: amounts.executors, memLimitCoordinators: amounts.coordinator };
}

/** E and C of a cluster's amount (insight 4.2). */
function recordedAmounts(cluster: number, n: number, estimate: number): { executors: number; coordinator: number } {
  const coordinator =
    n === 1 || isEvenlyShared(cluster, n, estimate) ? cluster / n : coordinatorShare(cluster, n, estimate);
  return { executors: n === 1 ? coordinator : Math.round((cluster - coordinator) / (n - 1)), coordinator };
}

/** Of one that has a host of its own. */
const coordinatorShare = (cluster: number, n: number, estimate: number): number =>
  Math.min(estimate, Math.floor(cluster / n));

/**
 * No column says whether coordinators have hosts of their own, but amounts do: one that is an executor too is charged
 * what every executor is, so that the whole divides by the hosts, and what a coordinator's estimate leaves of it does
 * not divide by the others.
 */
const isEvenlyShared = (cluster: number, n: number, estimate: number): boolean =>
  cluster % n === 0 && (cluster - coordinatorShare(cluster, n, estimate)) % (n - 1) !== 0;

/** Whether the log's coordinators are executors too, by most of the amounts that tell. */
function areOnExecutors(queries: readonly LoggedQuery[]): boolean {
  let even = 0;
  let apart = 0;
  for (const { options, clusterAdmitted, backends, coordinatorEstimate } of queries) {
    if (clusterAdmitted === null || backends === null || backends < 2) continue;
    if (options.memLimit > 0 || options.memLimitExecutors > 0 || options.memLimitCoordinators > 0) continue;
    const estimate = coordinatorEstimate ?? DEFAULT_COORDINATOR;
    if (isEvenlyShared(clusterAdmitted, backends, estimate)) even++;
    else if (clusterAdmitted % backends !== 0) apart++;
  }
  return even > apart;
}

/** Memory of the query times the time it holds it, by the recorded or estimated size. */
export const memoryTimeOf = (r: TracedRequest): number =>
  (r.options.memLimit || r.options.memLimitExecutors || r.estimate) * r.backends * r.hold;

/** Of the memory-time, what belongs to queries whose hold is a guess. */
export function imputedShareOf(requests: readonly TracedRequest[]): number {
  let all = 0;
  let imputed = 0;
  for (const r of requests) {
    const m = memoryTimeOf(r);
    all += m;
    if (r.guessed.includes("hold")) imputed += m;
  }
  return all === 0 ? 0 : imputed / all;
}

function guessesOf(requests: readonly TracedRequest[]): Map<Guess, number> {
  const counts = new Map<Guess, number>();
  for (const r of requests) for (const g of r.guessed) count(counts, g);
  return counts;
}

function count<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function push<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
