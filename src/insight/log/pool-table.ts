/**
 * Per pool: how many waited, were turned away, gave up, and when it was busiest (insight 4.4).
 *
 * Every number is taken over statements that reached admission, later attempts of a request included, except
 * the ones that say otherwise; what the log cannot tell stays null.
 */
import { arrivalOf } from "../../workload/query-log/attempts.ts";
import type { Demand } from "../../workload/query-log/demand.ts";
import { type HoldRule, holdOf, waitOf } from "../../workload/query-log/holds.ts";
import type { LoggedQuery, RejectionClass } from "../../workload/query-log/logged-query.ts";
import { isAdmitted, knownBackends } from "../../workload/query-log/logged-query.ts";
import { quantileOrNull } from "../quantile.ts";

export interface PoolRow {
  readonly pool: string;
  readonly statements: number;
  readonly atOnce: number;
  readonly trivial: number;
  readonly fromQueue: number;
  readonly rejected: Readonly<Partial<Record<RejectionClass, number>>>;
  readonly rejectedInAll: number;
  readonly timedOut: number;
  readonly cancelledInQueue: number;
  /** Admitted and ended by an error or somebody's wish. */
  readonly failed: number;
  readonly cancelledRunning: number;
  readonly failedForMemory: number;
  /** Of those that were queued and then admitted, milliseconds. */
  readonly waitMs: { readonly p50: number | null; readonly p95: number | null; readonly max: number | null };
  /** Queued, whatever the end / statements. */
  readonly waitedShare: number;
  /** Rejected, timed out or cancelled in the queue / statements. */
  readonly lostShare: number;
  /** Attempts of one wish counted once. */
  readonly requests: number;
  readonly busiestHour: { readonly startMs: number; readonly statements: number } | null;
  /** Of all pools' admitted memory x hold; null when the log has no amounts. */
  readonly memoryTimeShare: number | null;
  /** Spilled something / finished; null when the log does not say. */
  readonly spillShare: number | null;
  /** Client fetching / hold, of those where both are known. */
  readonly clientShare: number | null;
}

export function poolTable(demand: Demand, rule: HoldRule): PoolRow[] {
  const pools = new Map<string, number[]>();
  demand.allRows.forEach((q, i) => {
    const list = pools.get(q.pool);
    if (list === undefined) pools.set(q.pool, [i]);
    else list.push(i);
  });
  const memoryTime = new Map<string, number>();
  for (const q of demand.allRows) memoryTime.set(q.pool, (memoryTime.get(q.pool) ?? 0) + memoryTimeOfRow(q, rule));
  const all = [...memoryTime.values()].reduce((a, b) => a + b, 0);
  return [...pools]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([pool, indexes]) => rowOf(pool, indexes, demand, rule, all === 0 ? null : (memoryTime.get(pool) ?? 0) / all));
}

function rowOf(
  pool: string,
  indexes: readonly number[],
  demand: Demand,
  rule: HoldRule,
  share: number | null,
): PoolRow {
  const rows = indexes.map((i) => demand.allRows[i]!);
  const countOf = (test: (q: LoggedQuery) => boolean): number => rows.filter(test).length;
  const rejected: Partial<Record<RejectionClass, number>> = {};
  for (const q of rows) if (q.rejection !== null) rejected[q.rejection] = (rejected[q.rejection] ?? 0) + 1;
  const waits = rows.filter((q) => q.outcome === "fromQueue").map((q) => (waitOf(q) ?? 0) / 1000);
  const rejectedInAll = countOf((q) => q.outcome === "rejected");
  const timedOut = countOf((q) => q.outcome === "timedOut");
  const cancelledInQueue = countOf((q) => q.outcome === "cancelledInQueue");
  return {
    pool,
    statements: rows.length,
    atOnce: countOf((q) => q.outcome === "immediately"),
    trivial: countOf((q) => q.outcome === "trivially"),
    fromQueue: waits.length,
    rejected,
    rejectedInAll,
    timedOut,
    cancelledInQueue,
    failed: countOf((q) => isAdmitted(q.outcome) && q.end === "failed"),
    cancelledRunning: countOf((q) => isAdmitted(q.outcome) && q.end === "cancelled"),
    failedForMemory: countOf((q) => q.failedForMemory),
    waitMs: { p50: quantileOrNull(waits, 0.5), p95: quantileOrNull(waits, 0.95), max: quantileOrNull(waits, 1) },
    waitedShare: (waits.length + timedOut + cancelledInQueue) / rows.length,
    lostShare: (rejectedInAll + timedOut + cancelledInQueue) / rows.length,
    requests: indexes.filter((i) => demand.attempts.first[i] === i).length,
    busiestHour: busiestHourOf(rows),
    memoryTimeShare: share,
    spillShare: spillShareOf(rows),
    clientShare: clientShareOf(rows, rule),
  };
}

/** Bytes x microseconds of what was admitted; 0 where the log has no amount. */
export function memoryTimeOfRow(q: LoggedQuery, rule: HoldRule): number {
  const amount = q.clusterAdmitted ?? (q.estimate ?? 0) * (knownBackends(q) ?? 0);
  return amount * Math.max(0, holdOf(q, rule) ?? 0);
}

const HOUR_MS = 3_600_000;

function busiestHourOf(rows: readonly LoggedQuery[]): PoolRow["busiestHour"] {
  const hours = new Map<number, number>();
  for (const q of rows) {
    const hour = Math.floor(arrivalOf(q) / 1000 / HOUR_MS);
    hours.set(hour, (hours.get(hour) ?? 0) + 1);
  }
  let best: PoolRow["busiestHour"] = null;
  for (const [hour, statements] of [...hours].sort(([a], [b]) => a - b))
    if (best === null || statements > best.statements) best = { startMs: hour * HOUR_MS, statements };
  return best;
}

function spillShareOf(rows: readonly LoggedQuery[]): number | null {
  const known = rows.filter((q) => isAdmitted(q.outcome) && q.end === "finished" && q.spilled !== null);
  return known.length === 0 ? null : known.filter((q) => (q.spilled ?? 0) > 0).length / known.length;
}

function clientShareOf(rows: readonly LoggedQuery[], rule: HoldRule): number | null {
  let client = 0;
  let hold = 0;
  for (const q of rows) {
    const h = holdOf(q, rule);
    const c = q.clientWait ?? (q.firstRow !== null && q.lastRow !== null ? q.lastRow - q.firstRow : null);
    if (h === null || c === null || h <= 0) continue;
    hold += h;
    client += Math.min(h, Math.max(0, c));
  }
  return hold === 0 ? null : client / hold;
}
