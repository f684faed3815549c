/**
 * A log as classes with rates: a scenario that people can read and change (insight 4.6 `classes`).
 *
 * A trace replays what was; classes say what usually is. Holds and peaks are kept as quantiles, arrivals as a
 * rate for each hour of the day. What such a description cannot keep is said: batches, and that estimate, peak
 * and hold of one execution belong together.
 */
import type { Demand } from "../../workload/query-log/demand.ts";
import { memoryTimeOf } from "../../workload/query-log/demand.ts";
import { log2Bucket } from "../../workload/query-log/query-classes.ts";
import { isCoordinatorOnly, type TracedRequest } from "../../workload/query-log/traced-request.ts";
import { quantileOfSorted, sortedCopy } from "../quantile.ts";

/** The form of a scenario file; every value as it is written there. */
export interface ClassWorkload {
  readonly queries: Readonly<Record<string, object>>;
  readonly arrivals: readonly object[];
  /** What it does not keep. */
  readonly remarks: readonly string[];
  /** As many executors as one query needs at most, and whether its coordinator is one of them. */
  readonly executors: number;
  readonly coordinatorsExecute: boolean;
}

const COVERED = 0.95;
const HOUR = 3600e6;
const DAY = 24 * HOUR;
const SAMPLES = 40;

export function classWorkloadOf(demand: Demand): ClassWorkload {
  const classes = classesOf(demand.requests);
  const queries: Record<string, object> = {};
  const arrivals: object[] = [];
  const remarks: string[] = [];
  const hours = hoursCovered(demand);
  const end = demand.requests.at(-1)?.at ?? 0;
  for (const [name, of] of classes) {
    queries[name] = queryOf(of, demand.coordinatorsExecute);
    const starts = of.map((r) => demand.start + r.at);
    const fixed = fixedSchedule(starts, hours.total);
    if (fixed !== null)
      for (const offset of fixed) arrivals.push({ query: name, every: "1h", from: `${offset}s`, to: "24h" });
    else {
      arrivals.push({ query: name, ...rateOf(starts, hours), from: "0s", to: "24h" });
      const dispersion = dispersionOf(
        of.map((r) => r.at),
        end,
      );
      if (dispersion >= BURSTY)
        remarks.push(
          `${name} comes in batches (variance ${dispersion.toFixed(1)} times the mean in 10 s): the trace keeps them, a rate does not`,
        );
    }
  }
  if (arrivals.some((a) => "rate" in a)) remarks.push(...partlyCovered(hours));
  if (classes.some(([, of]) => of.some((r) => r.after !== null)))
    remarks.push("clients that waited for their answers are described as if they had not");
  const { coordinatorsExecute } = demand;
  const executors = executorsOf(mostBackends(demand.requests), coordinatorsExecute);
  return { queries, arrivals, remarks, executors, coordinatorsExecute };
}

/** Of a query's backends. */
const executorsOf = (backends: number, coordinatorsExecute: boolean): number =>
  Math.max(1, coordinatorsExecute ? backends : backends - 1);

/** Not by spreading them into a call: a log has more requests than a call may have arguments. */
const mostBackends = (requests: readonly TracedRequest[]): number =>
  requests.reduce((most, r) => Math.max(most, r.backends), 1);

/**
 * By falling memory-time until 95 % are covered; the rest by pool, size and hold. What admission treats otherwise is a
 * class of its own.
 */
function classesOf(requests: readonly TracedRequest[]): [string, TracedRequest[]][] {
  const groups = new Map<string, TracedRequest[]>();
  for (const r of requests) push(groups, `${r.pool}\n${r.queryClass}\n${kindOf(r)}`, r);
  const time = (of: readonly TracedRequest[]): number => of.reduce((sum, r) => sum + memoryTimeOf(r), 0);
  const inOrder = [...groups].sort(([a, x], [b, y]) => time(y) - time(x) || (a < b ? -1 : 1));
  const all = inOrder.reduce((sum, [, of]) => sum + time(of), 0);
  const named = new Map<string, TracedRequest[]>();
  let covered = 0;
  for (const [key, of] of inOrder) {
    const [pool = "", queryClass = "", kind = ""] = key.split("\n");
    if (covered < COVERED * all || all === 0) named.set(freeName(named, queryClass, pool, kind), of);
    else
      for (const r of of)
        push(
          named,
          [`rest-${shortPool(pool)}`, log2Bucket(r.estimate), log2Bucket(r.hold), ...suffixOf(kind)].join("-"),
          r,
        );
    covered += time(of);
  }
  return [...named];
}

/** What admission tells apart: a trivial query is not checked (T-3), one fragment on the coordinator costs no executor. */
function kindOf(r: TracedRequest): string {
  if (r.isTrivial) return "trivial";
  if (isCoordinatorOnly(r)) return "coordinator";
  return r.stmtType === "DML" ? "dml" : "";
}

const suffixOf = (kind: string): string[] => (kind === "" ? [] : [kind]);
const shortPool = (pool: string): string => pool.replace(/^root\./, "");

function freeName(taken: ReadonlyMap<string, unknown>, name: string, pool: string, kind: string): string {
  const own = [name, ...suffixOf(kind)].join("-");
  return [name, own].find((n) => !taken.has(n)) ?? `${own}@${shortPool(pool)}`;
}

function queryOf(of: readonly TracedRequest[], coordinatorsExecute: boolean): object {
  const first = of[0]!;
  const median = (pick: (r: TracedRequest) => number): number => quantileOfSorted(sortedCopy(of.map(pick)), 0.5);
  const given = median(givenOf);
  const limits = {
    mem_limit: median((r) => r.options.memLimit),
    mem_limit_executors: median((r) => r.options.memLimitExecutors),
    mem_limit_coordinators: median((r) => r.options.memLimitCoordinators),
  };
  const options = Object.fromEntries(
    Object.entries(limits)
      .filter(([, bytes]) => bytes > 0)
      .map(([name, bytes]) => [name, `${bytes}b`]),
  );
  return {
    pool: first.pool,
    user: [...new Set(of.map((r) => r.user))].sort().slice(0, 20),
    ...(first.stmtType === "DML" ? { stmtType: "DML" } : {}),
    ...(first.isTrivial ? { trivial: true } : {}),
    estimate: `${median((r) => r.estimate)}b`,
    coordinatorEstimate: `${median((r) => r.coordinatorEstimate)}b`,
    duration: { empirical: quantiles(of.map((r) => r.hold / 1000)).map((ms) => `${ms}ms`) },
    uses: { peak: { empirical: quantiles(of.map((r) => reservedOf(r, given))).map((bytes) => `${bytes}b`) } },
    ...(isCoordinatorOnly(first)
      ? { coordinatorOnly: true }
      : {
          hosts: executorsOf(
            median((r) => r.backends),
            coordinatorsExecute,
          ),
          mtDop: median((r) => r.slots),
        }),
    ...(Object.keys(options).length > 0 ? { options } : {}),
  };
}

/** What decides how much it may reserve. */
const givenOf = ({ options, estimate }: TracedRequest): number =>
  options.memLimitExecutors || options.memLimit || estimate;

/**
 * With the class's one estimate in the place of its own: the same part of it. Else the larger queries of a class would
 * spill for want of what they had.
 */
function reservedOf(r: TracedRequest, given: number): number {
  const own = givenOf(r);
  return own === 0 ? r.reserved : Math.round((r.reserved * given) / own);
}

function quantiles(values: readonly number[]): number[] {
  const sorted = sortedCopy(values);
  const n = Math.min(SAMPLES, sorted.length);
  return Array.from({ length: n }, (_, i) => Math.max(0, quantileOfSorted(sorted, (i + 0.5) / n)));
}

// Arrivals

interface HoursCovered {
  /** How much of each hour of the day lies in the log, in hours; of a longer log more than one. */
  readonly byHourOfDay: readonly number[];
  /** Hours of the log, whole or not. */
  readonly total: number;
  /** All of the log, in hours. */
  readonly length: number;
}

/** From the first request to the last one that can be in the log. */
function hoursCovered(demand: Demand): HoursCovered {
  const from = demand.start;
  const last = demand.start + (demand.requests.at(-1)?.at ?? 0);
  const to = Number.isFinite(demand.coverage.to) ? Math.max(last, demand.coverage.to) : last;
  const byHourOfDay = new Array<number>(24).fill(0);
  const firstHour = Math.floor(from / HOUR);
  const lastHour = Math.floor(to / HOUR);
  for (let hour = firstHour; hour <= lastHour; hour++) {
    const covered = Math.min(to, (hour + 1) * HOUR) - Math.max(from, hour * HOUR);
    byHourOfDay[((hour % 24) + 24) % 24]! += covered / HOUR;
  }
  return { byHourOfDay, total: lastHour - firstHour + 1, length: (to - from) / HOUR };
}

/** Of an hour of the day, less than this tells too little: five minutes. */
const LEAST_COVERED = 1 / 12;

/**
 * A mean rate and 24 factors on it. An hour that is in the log for a part only goes on at that part's rate, one of
 * which nearly nothing is there has the log's, one that is not there at all is taken to be without traffic.
 */
function rateOf(starts: readonly number[], { byHourOfDay, length }: HoursCovered): { rate: string; day: number[] } {
  const counts = new Array<number>(24).fill(0);
  for (const s of starts) counts[Math.floor((((s % DAY) + DAY) % DAY) / HOUR)]!++;
  // Requests of one moment: they are all that is known of their hour.
  const mean = starts.length / (length > 0 ? length : 1);
  const perHour = counts.map((n, hour) => {
    const covered = byHourOfDay[hour]!;
    if (covered >= LEAST_COVERED) return n / covered;
    return covered > 0 || n > 0 ? mean : 0;
  });
  const all = perHour.reduce((a, b) => a + b, 0) / 24;
  return {
    rate: `${round(all)}/h`,
    day: perHour.map((n) => round(n / all)),
  };
}

/** What the rates of partly covered hours stand on. */
function partlyCovered({ byHourOfDay }: HoursCovered): string[] {
  const parts = byHourOfDay.flatMap((covered, hour) => {
    const minutes = Math.round(covered * 60);
    return covered > 0 && minutes < 60 ? [`${minutes} min of hour ${hour}`] : [];
  });
  return parts.length === 0 ? [] : [`the log has only ${parts.join(", ")}: the rate there is taken for the whole hour`];
}

const round = (n: number): number => Number(n.toPrecision(6));

const BURSTY = 1.5;
const WINDOW = 10e6;

/** Variance over mean of the counts in 10 s windows up to `end`, each divided by its hour's mean. */
function dispersionOf(at: readonly number[], end: number): number {
  const windows = new Map<number, number>();
  const hours = new Map<number, number>();
  for (const t of at) {
    windows.set(Math.floor(t / WINDOW), (windows.get(Math.floor(t / WINDOW)) ?? 0) + 1);
    hours.set(Math.floor(t / HOUR), (hours.get(Math.floor(t / HOUR)) ?? 0) + 1);
  }
  const perHour = HOUR / WINDOW;
  let squares = 0;
  let n = 0;
  for (const [hour, count] of hours) {
    if (count < FEWEST_FOR_DISPERSION) continue;
    const inLog = Math.min(perHour, Math.floor(end / WINDOW) + 1 - hour * perHour);
    const mean = count / inLog;
    for (let k = 0; k < inLog; k++) {
      const x = windows.get(hour * perHour + k) ?? 0;
      squares += (x - mean) ** 2 / mean;
      n++;
    }
  }
  return n === 0 ? 1 : squares / n;
}

const FEWEST_FOR_DISPERSION = 50;
const SAME_SECOND = 0.8;
const MOST_A_DAY_PART = 12;

/** Seconds of the hour at which it starts in over 80 % of the hours, if that is when it starts; null: no schedule. */
function fixedSchedule(starts: readonly number[], hours: number): number[] | null {
  if (hours < 4 || starts.length > hours * MOST_A_DAY_PART) return null;
  const seconds = new Map<number, Set<number>>();
  for (const s of starts) {
    const second = Math.round((((s % HOUR) + HOUR) % HOUR) / 1e6) % 3600;
    const seen = seconds.get(second) ?? new Set();
    seconds.set(second, seen);
    seen.add(Math.floor((s + 0.5e6) / HOUR));
  }
  const regular = [...seconds].filter(([, seen]) => seen.size > SAME_SECOND * hours);
  const explained = regular.reduce((n, [, seen]) => n + seen.size, 0);
  return explained > SAME_SECOND * starts.length ? regular.map(([second]) => second).sort((a, b) => a - b) : null;
}

function push<V>(lists: Map<string, V[]>, key: string, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
