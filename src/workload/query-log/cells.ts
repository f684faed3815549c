/**
 * From the cells of an exported log to numbers: counts, sizes, times, moments (insight 4.1).
 *
 * The same column arrives as text, number or bigint, depending on who exported it, and "nothing" as an empty
 * text, NULL or a missing column. It must stay true that nothing becomes `null` and never 0: a peak of 0
 * bytes and an unknown peak lead to different advice. Times are whole microseconds, so that differences are
 * exact (a double holds microseconds since 1970 until the year 2255).
 */

export type Cell = string | number | bigint | boolean | null | undefined;

/** One record of a log, whatever the file's form. Columns are asked for in lower case. */
export interface LogRow {
  /** 1 for the file's first line; of a Parquet file the row. */
  readonly line: number;
  cell(column: string): Cell;
}

/** A cell that holds something else than its column should. The reader of the file adds file and line. */
export class UnreadableCell extends Error {
  override readonly name = "UnreadableCell";
  readonly column: string;
  readonly found: string;
  readonly expected: string;
  constructor(column: string, found: Cell, expected: string) {
    const shown = String(found).slice(0, 60);
    super(`column ${column} is "${shown}"; expected ${expected}`);
    this.column = column;
    this.found = shown;
    this.expected = expected;
  }
}

/** impala-shell writes NULL, Hive's text form \N, everything else leaves the cell empty. */
const isNothing = (c: Cell): c is null | undefined | "" =>
  c === null || c === undefined || c === "" || c === "NULL" || c === "\\N" || c === "null";

export function textOf(row: LogRow, column: string): string | null {
  const c = row.cell(column);
  return isNothing(c) ? null : String(c);
}

/** Any finite number, also in the forms `1520435.2` and `3.1E7` of attribute texts, and as spreadsheets group it. */
export const numberOf = (row: LogRow, column: string): number | null => numberIn(row, column, GROUPED_FOR_CERTAIN);

/**
 * Thousands as spreadsheets set them apart, with a comma, an apostrophe or a blank of some width. One comma with three
 * digits after it may as well be a decimal comma: only where no decimals can be is it taken for a thousand.
 */
const GROUPED = /^[+-]?\d{1,3}(?:[,'’ \u00a0\u2009\u202f]\d{3})+(?:\.\d+)?$/;
const GROUPED_FOR_CERTAIN = /^(?![+-]?\d{1,3},\d{3}$)[+-]?\d{1,3}(?:[,'’ \u00a0\u2009\u202f]\d{3})+(?:\.\d+)?$/;

function numberIn(row: LogRow, column: string, grouped: RegExp): number | null {
  const c = row.cell(column);
  if (isNothing(c)) return null;
  const text = String(c).trim();
  const n = typeof c === "number" ? c : Number(grouped.test(text) ? text.replace(/[^\d.+-]/g, "") : text);
  if (!Number.isFinite(n)) throw new UnreadableCell(column, c, "a number");
  return n;
}

/** A count or an amount of bytes; fractions of a byte, which one product writes, are cut. */
export function wholeOf(row: LogRow, column: string): number | null {
  const n = numberIn(row, column, GROUPED);
  if (n === null) return null;
  const whole = Math.trunc(n);
  if (whole < 0 || whole > Number.MAX_SAFE_INTEGER)
    throw new UnreadableCell(column, n, "a whole number from 0 to 2^53 - 1");
  return whole;
}

/** Milliseconds with up to three decimals -> microseconds. */
export function microsOf(row: LogRow, column: string): number | null {
  const ms = numberOf(row, column);
  if (ms === null) return null;
  const micros = Math.round(ms * 1000);
  if (!Number.isSafeInteger(micros)) throw new UnreadableCell(column, ms, "milliseconds");
  return micros;
}

const TIMESTAMP = /^(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s*(Z|UTC|[+-]\d\d:?\d\d)?$/i;

/** Microseconds since 1970, UTC unless the text names another offset; null when it is no timestamp. */
export function timestampMicros(text: string): number | null {
  const m = TIMESTAMP.exec(text.trim());
  if (m === null) return null;
  const [, year, month, day, hour, minute, second, fraction = "", zone = "Z"] = m;
  const ms = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second));
  // Date.UTC rolls 31 February over into March; a log with such a date is damaged.
  if (new Date(ms).getUTCDate() !== Number(day) || Number(hour) > 24) return null;
  const micros = Number(fraction.padEnd(6, "0").slice(0, 6));
  return ms * 1000 + micros - offsetMinutes(zone) * 60_000_000;
}

function offsetMinutes(zone: string): number {
  const m = /^([+-])(\d\d):?(\d\d)$/.exec(zone);
  if (m === null) return 0;
  return (m[1] === "-" ? -1 : 1) * (Number(m[2]) * 60 + Number(m[3]));
}

/**
 * A moment. Parquet gives microseconds as bigint (the reader arranges that); a bare number is an epoch whose
 * unit shows in its size, as JSON made by data frames has it.
 */
export function momentOf(row: LogRow, column: string): number | null {
  const c = row.cell(column);
  if (isNothing(c)) return null;
  if (typeof c === "bigint") return Number(c);
  const n = typeof c === "number" ? c : /^\d{10,19}$/.test(String(c)) ? Number(c) : null;
  if (n !== null) return epochMicros(n);
  const micros = timestampMicros(String(c));
  if (micros === null) throw new UnreadableCell(column, c, "a timestamp such as 2026-08-22 10:15:02.118044");
  return micros;
}

function epochMicros(n: number): number {
  if (n >= 1e17) return Math.round(n / 1000);
  if (n >= 1e14) return Math.round(n);
  if (n >= 1e11) return Math.round(n * 1000);
  return Math.round(n * 1e6);
}

const SIZE_UNITS: Readonly<Record<string, number>> = { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3, tb: 1024 ** 4 };

/** `4.20 GB`, `200MB`, `0`, `1.18 MB (1237818)`: bytes, the exact figure in brackets where there is one. */
export function sizeBytes(text: string): number | null {
  const exact = /\((\d+)\)\s*$/.exec(text);
  if (exact !== null) return Number(exact[1]);
  const m = /^\s*([\d.]+(?:e[+-]?\d+)?)\s*([kmgt]?i?b)?\s*$/i.exec(text);
  if (m === null) return null;
  const factor = SIZE_UNITS[(m[2] ?? "b").toLowerCase().replace("i", "")];
  const n = Number(m[1]);
  return factor === undefined || !Number.isFinite(n) ? null : Math.round(n * factor);
}

export function sizeOf(row: LogRow, column: string): number | null {
  const c = row.cell(column);
  if (isNothing(c)) return null;
  const n = sizeBytes(String(c));
  if (n === null) throw new UnreadableCell(column, c, "a size such as 4.20 GB");
  return n;
}

const TIME_UNITS: Readonly<Record<string, number>> = {
  d: 86_400e6,
  h: 3600e6,
  m: 60e6,
  s: 1e6,
  ms: 1e3,
  us: 1,
  ns: 1e-3,
};

/** `52s418ms`, `1m5s`, `119.006ms`, `0.000ns`, `0`: microseconds; null for other texts. */
export function durationMicros(text: string): number | null {
  const t = text.trim();
  if (t === "0") return 0;
  if (!/^(?:[\d.]+(?:d|h|ms|us|ns|m|s))+$/.test(t)) return null;
  let micros = 0;
  for (const [, n, unit] of t.matchAll(/([\d.]+)(d|h|ms|us|ns|m|s)/g))
    micros += Number(n) * (TIME_UNITS[unit ?? ""] ?? Number.NaN);
  return Number.isFinite(micros) ? Math.round(micros) : null;
}

/** How much a printed duration may be off: minutes hide milliseconds, hours hide seconds (surfaces 0.3). */
export function durationResolution(text: string): number {
  if (/\dh/.test(text)) return 60e6;
  if (/\dm(?!s)/.test(text)) return 1e6;
  if (/\ds/.test(text)) return 1e3;
  return 1;
}

/** Milliseconds as number or text, or a text with units: what one export calls `admission_wait`. */
export function waitOf(row: LogRow, column: string): number | null {
  const c = row.cell(column);
  if (isNothing(c)) return null;
  const n = Number(String(c));
  if (Number.isFinite(n)) return Math.round(n * 1000);
  const micros = durationMicros(String(c).replace(/\s+/g, ""));
  if (micros === null) throw new UnreadableCell(column, c, "milliseconds, or a time such as 5s120ms");
  return micros;
}
