/**
 * One line of `thresholds:`, such as `pool.root.dashboards.wait.p95 < 20s` or `rejected == 0`, taken apart.
 *
 * Here so that a slip is told with its line when the scenario is read, not after the run. What the numbers
 * mean and how they are taken is `insight/thresholds.ts`.
 */
import { nearestName } from "./nearest-name.ts";
import { parseSize, parseTime } from "./scenario-units.ts";

/** What a number is counted in, and so how it may be written and is printed. */
export type NumberUnit = "count" | "time" | "bytes" | "share";

/** Every number a threshold may name, with its unit. `wait.*` is over admitted queries, `waitAll.*` over all submitted. */
export const THRESHOLD_NUMBERS: Readonly<Record<string, NumberUnit>> = {
  submitted: "count",
  admitted: "count",
  admittedImmediately: "count",
  admittedFromQueue: "count",
  admittedTrivially: "count",
  rejected: "count",
  timedOut: "count",
  cancelled: "count",
  unresolved: "count",
  finished: "count",
  failed: "count",
  loss: "share",
  utilisation: "share",
  "wait.p50": "time",
  "wait.p90": "time",
  "wait.p95": "time",
  "wait.p99": "time",
  "wait.max": "time",
  "wait.mean": "time",
  "waitAll.p50": "time",
  "waitAll.p90": "time",
  "waitAll.p95": "time",
  "waitAll.p99": "time",
  "waitAll.max": "time",
  peakRunning: "count",
  peakQueued: "count",
  peakMemory: "bytes",
  spilled: "bytes",
  overAdmittedRunning: "count",
  overAdmittedMemory: "bytes",
};

export type Comparison = "<" | "<=" | ">" | ">=" | "==" | "!=";

export interface Threshold {
  readonly text: string;
  /** Null: the whole run. */
  readonly pool: string | null;
  readonly number: string;
  readonly unit: NumberUnit;
  readonly comparison: Comparison;
  /** Milliseconds, bytes, a count, or a share from 0 to 1. */
  readonly value: number;
}

export type ParsedThreshold =
  | { readonly ok: true; readonly threshold: Threshold }
  | { readonly ok: false; readonly problem: string; readonly remedy: string };

const EXAMPLE = "Write for instance  pool.root.dashboards.wait.p95 < 20s";

export function parseThreshold(text: string): ParsedThreshold {
  const match = /^\s*(\S+?)\s*(<=|>=|==|!=|<|>)\s*(\S.*?)\s*$/.exec(text);
  if (match === null) return refused(`threshold "${text}" is no comparison. Expected  number < value`, EXAMPLE);
  const [, name = "", comparison = "", valueText = ""] = match;
  const { pool, number } = scopeOf(name);
  const unit = Object.hasOwn(THRESHOLD_NUMBERS, number) ? THRESHOLD_NUMBERS[number] : undefined;
  if (unit === undefined) return unknownNumber(text, number);
  const value = valueIn(unit, valueText);
  if (value === null)
    return refused(
      `threshold "${text}" compares with "${valueText}". Expected ${UNIT_EXPECTED[unit]}`,
      UNIT_EXAMPLE[unit],
    );
  return { ok: true, threshold: { text, pool, number, unit, comparison: comparison as Comparison, value } };
}

/** Pool names have points in them, so a name is split at its end: the longest known number wins. */
function scopeOf(name: string): { readonly pool: string | null; readonly number: string } {
  if (!name.startsWith("pool.")) return { pool: null, number: name };
  const rest = name.slice("pool.".length);
  const number = Object.keys(THRESHOLD_NUMBERS)
    .filter((n) => rest.endsWith(`.${n}`))
    .sort((a, b) => b.length - a.length)[0];
  if (number !== undefined) return { pool: rest.slice(0, -number.length - 1), number };
  const lastPart = /(?:^|\.)((?:wait\w*\.)?[^.]+)$/.exec(rest)?.[1] ?? rest;
  return { pool: rest, number: lastPart };
}

function unknownNumber(text: string, number: string): ParsedThreshold {
  const near = nearestName(number, Object.keys(THRESHOLD_NUMBERS));
  const remedy = near === null ? `Known: ${Object.keys(THRESHOLD_NUMBERS).join(", ")}.` : `Did you mean "${near}"?`;
  return refused(`threshold "${text}" names the unknown number "${number}"`, remedy);
}

const UNIT_EXPECTED: Readonly<Record<NumberUnit, string>> = {
  count: "a number",
  time: "a time such as 20s",
  bytes: "a size such as 1.5gb",
  share: "a share such as 0.01 or 1%",
};

const UNIT_EXAMPLE: Readonly<Record<NumberUnit, string>> = {
  count: "Write for instance  rejected == 0",
  time: "Write for instance  wait.p95 < 20s",
  bytes: "Write for instance  spilled < 1gb",
  share: "Write for instance  loss < 1%",
};

function valueIn(unit: NumberUnit, text: string): number | null {
  switch (unit) {
    case "time":
      return valueIfRead(parseTime(text));
    case "bytes":
      return valueIfRead(parseSize(text));
    case "share":
      return /^\d+(\.\d+)?%$/.test(text) ? Number(text.slice(0, -1)) / 100 : plainNumber(text);
    case "count":
      return plainNumber(text);
  }
}

const valueIfRead = (parsed: { readonly ok: boolean; readonly value?: number }): number | null => parsed.value ?? null;
const plainNumber = (text: string): number | null => (/^\d+(\.\d+)?$/.test(text) ? Number(text) : null);
const refused = (problem: string, remedy: string): ParsedThreshold => ({ ok: false, problem, remedy });
