/**
 * What a scenario says must hold, held against the numbers of its run.
 *
 * A number over nothing (no such pool, nobody admitted) is `null`, and a threshold on it does not hold: silence
 * must never pass for success.
 */
import { type Comparison, parseThreshold, type Threshold } from "../config/threshold.ts";
import { fail } from "../core/assert.ts";
import type { PoolSummary, RunSummary } from "./summary.ts";

export interface ThresholdResult {
  readonly expr: string;
  readonly holds: boolean;
  /** In the threshold's unit: a count, milliseconds, bytes, a share; Infinity when lost queries are among the quantile. */
  readonly value: number | null;
  readonly unit: Threshold["unit"];
  readonly limit: number;
  /** For counts of refused queries: the first one. */
  readonly first: { readonly at: number; readonly query: string } | null;
}

/** In the order of the scenario. The texts were checked when it was read. */
export function evaluateThresholds(texts: readonly string[], summary: RunSummary): ThresholdResult[] {
  return texts.map((text) => {
    const parsed = parseThreshold(text);
    return parsed.ok ? evaluate(parsed.threshold, summary) : fail(parsed.problem);
  });
}

function evaluate(t: Threshold, summary: RunSummary): ThresholdResult {
  const pools = t.pool === null ? summary.pools : summary.pools.filter((p) => p.pool === t.pool);
  const value = pools.length === 0 ? null : valueOver(t, pools, summary);
  return {
    expr: t.text,
    holds: value !== null && compare(value, t.comparison, t.value),
    value,
    unit: t.unit,
    limit: t.value,
    first: firstOf(t.number, pools, summary),
  };
}

function valueOver(t: Threshold, pools: readonly PoolSummary[], summary: RunSummary): number | null {
  if (t.number === "unresolved") return t.pool === null ? summary.unresolved : null;
  const values = pools.map((p) => numberOf(t.number, p));
  if (SUMMED.has(t.number)) return values.reduce((sum: number, v) => sum + (v ?? 0), 0);
  if (t.number === "loss") return lossOver(pools);
  // Waits, peaks and shares of the run are those of its worst pool; one in which nobody got anywhere has no worst wait.
  if (pools.some((p, i) => t.number.startsWith("wait.") && values[i] === null && p.submitted > 0)) return null;
  const known = values.filter((v) => v !== null);
  return known.length === 0 ? null : Math.max(...known);
}

const SUMMED: ReadonlySet<string> = new Set([
  "submitted",
  "admitted",
  "admittedImmediately",
  "admittedFromQueue",
  "admittedTrivially",
  "rejected",
  "timedOut",
  "cancelled",
  "finished",
  "failed",
  "spilled",
]);

function lossOver(pools: readonly PoolSummary[]): number | null {
  const submitted = pools.reduce((sum, p) => sum + p.submitted, 0);
  return submitted === 0 ? null : pools.reduce((sum, p) => sum + p.lossShare * p.submitted, 0) / submitted;
}

function numberOf(number: string, p: PoolSummary): number | null {
  const [name, quantile] = number.split(".");
  switch (name) {
    case "admitted":
      return p.admittedImmediately + p.admittedFromQueue + p.admittedTrivially;
    case "wait":
      return p.waitMs[quantile as keyof PoolSummary["waitMs"]];
    case "waitAll":
      return p.waitAllMs[quantile as keyof PoolSummary["waitAllMs"]];
    case "loss":
      return p.lossShare;
    case "utilisation":
      return p.utilisationShare;
    case "peakMemory":
      return p.peakMemoryBytes;
    case "spilled":
      return p.spilledBytes;
    case "overAdmittedRunning":
      return p.overAdmission.running.most;
    case "overAdmittedMemory":
      return p.overAdmission.memoryBytes.most;
    case "submitted":
    case "admittedImmediately":
    case "admittedFromQueue":
    case "admittedTrivially":
    case "rejected":
    case "timedOut":
    case "cancelled":
    case "finished":
    case "failed":
    case "peakRunning":
    case "peakQueued":
      return p[name];
    default:
      return fail(`a threshold names ${number}, which has no value`);
  }
}

function compare(value: number, comparison: Comparison, limit: number): boolean {
  switch (comparison) {
    case "<":
      return value < limit;
    case "<=":
      return value <= limit;
    case ">":
      return value > limit;
    case ">=":
      return value >= limit;
    case "==":
      return value === limit;
    case "!=":
      return value !== limit;
  }
}

function firstOf(number: string, pools: readonly PoolSummary[], summary: RunSummary): ThresholdResult["first"] {
  if (number === "unresolved") return summary.firstUnresolved;
  if (number !== "rejected" && number !== "timedOut") return null;
  const [first] = pools
    .flatMap((p) => p.refusals)
    .filter((r) => r.kind === number)
    .sort((a, b) => a.firstAtMs - b.firstAtMs);
  return first === undefined ? null : { at: first.firstAtMs, query: first.firstQuery };
}
