/**
 * Is the log complete? The first of the two checks before anything is made of it (insight 4.1, 4.3 item 4).
 *
 * Three ways in which a log lies by omission: the exporting product cut the list, the end is missing because
 * long queries are written last, and a writer was down for a while. The first two are cut off here, the third
 * is only reported, since nobody knows what was in it.
 */

import { timestampMicros } from "./cells.ts";
import { type LoggedQuery, OWN_CLUSTER_ID } from "./logged-query.ts";
import type { QueryLog } from "./read-query-log.ts";

/** Microseconds since 1970; requests that arrived outside are left out. */
export interface Coverage {
  readonly from: number;
  readonly to: number;
  /** Why, for the report; empty when nothing had to be cut. */
  readonly cuts: readonly string[];
  readonly holes: readonly { readonly from: number; readonly to: number }[];
}

export interface CoverageOptions {
  /** `--query_log_write_interval_s`, in microseconds. */
  readonly writeInterval: number;
}

export const DEFAULT_COVERAGE: CoverageOptions = { writeInterval: 300e6 };

export function coverageOf(log: QueryLog, holds: readonly number[], options: CoverageOptions): Coverage {
  const cuts: string[] = [];
  const from = coveredFrom(log, cuts);
  const to = coveredTo(log, holds, options, cuts);
  return { from, to, cuts, holes: holesOf(log.queries) };
}

/** True of exports of our own runs: they are written when all is over. */
export const isOwnExport = (log: QueryLog): boolean =>
  log.queries.length > 0 && log.queries.every((q) => q.clusterId === OWN_CLUSTER_ID);

/** The Manager goes back from the newest and stops; what ended before that point is partly missing. */
function coveredFrom(log: QueryLog, cuts: string[]): number {
  const warning = log.warnings.find((w) => w.startsWith("Impala query scan limit reached"));
  if (warning === undefined) return Number.NEGATIVE_INFINITY;
  const named = /(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?)/.exec(warning)?.[1];
  const from = (named === undefined ? null : timestampMicros(named)) ?? earliestEnd(log.queries);
  cuts.push(`the exporter's list was cut (${warning}); only what arrived from ${isoOf(from)} on is used`);
  return from;
}

const earliestEnd = (queries: readonly LoggedQuery[]): number =>
  queries.reduce((least, q) => Math.min(least, q.start + (q.unregistered ?? 0)), Number.POSITIVE_INFINITY);

/**
 * A query is written when it is over and the writer's turn comes, so the last arrivals are there only if they
 * were short. Rows of running queries close that gap; an export of our own has none.
 */
function coveredTo(log: QueryLog, holds: readonly number[], options: CoverageOptions, cuts: string[]): number {
  const isWrittenLate = log.form === "query log table" || log.form === "manager list";
  if (!isWrittenLate || isOwnExport(log) || log.queries.some((q) => q.end === "running"))
    return Number.POSITIVE_INFINITY;
  const last = log.queries.reduce((most, q) => Math.max(most, q.start), Number.NEGATIVE_INFINITY);
  const sorted = Float64Array.from(holds).sort();
  const p99 = sorted.length === 0 ? 0 : sorted[Math.ceil(0.99 * sorted.length) - 1]!;
  const cut = Math.max(log.form === "query log table" ? options.writeInterval : 0, p99);
  cuts.push(`the last ${(cut / 1e6).toFixed(0)} s of arrivals are left out: long ones among them are not written yet`);
  return last - cut;
}

const HOUR = 3600e6;
const BUSY = 100;
const SUSPICIOUS = 50;

/** Gaps longer than 50 mean gaps of a busy hour. */
function holesOf(queries: readonly LoggedQuery[]): { from: number; to: number }[] {
  const starts = Float64Array.from(queries, (q) => q.start).sort();
  const perHour = new Map<number, number>();
  for (const s of starts) perHour.set(Math.floor(s / HOUR), (perHour.get(Math.floor(s / HOUR)) ?? 0) + 1);
  const holes: { from: number; to: number }[] = [];
  for (let i = 1; i < starts.length; i++) {
    const from = starts[i - 1]!;
    const inHour = perHour.get(Math.floor(from / HOUR)) ?? 0;
    if (inHour >= BUSY && starts[i]! - from > (SUSPICIOUS * HOUR) / inHour) holes.push({ from, to: starts[i]! });
  }
  return holes;
}

export const isoOf = (micros: number): string =>
  new Date(micros / 1000).toISOString().replace("T", " ").replace(".000Z", "Z");
