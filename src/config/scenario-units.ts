/**
 * Sizes, times and rates as people write them in a scenario: `1.5gb`, `200000mb`, `30s`, `1m30s`, `10/s`.
 *
 * A number without a unit is refused (0 apart): whether 1.5 means gigabytes or bytes is exactly what nobody
 * should have to guess. Units are binary, as Impala counts and prints them. The answer is a value or a
 * sentence about what is wrong with it; the caller knows the place.
 */
import { MICROS_PER_MS } from "../core/units.ts";

export type Parsed = { readonly ok: true; readonly value: number } | { readonly ok: false; readonly problem: string };

export const SIZE_EXPECTED = "a size such as 1.5gb or 200000mb";
export const TIME_EXPECTED = "a time such as 30s, 100ms or 1m30s";
export const RATE_EXPECTED = "a rate such as 10/s, 600/min or 0.5/h";

export const SIZE_PATTERN = "^\\s*\\d+(\\.\\d+)?\\s*([kKmMgGtT]([iI]?[bB])?|[bB])\\s*$";
export const TIME_PATTERN = "^\\s*(\\d+(\\.\\d+)?\\s*(us|ms|s|min|m|h|d|w)\\s*)+$";
export const RATE_PATTERN = "^\\s*\\d+(\\.\\d+)?\\s*/\\s*(ms|s|min|m|h|d)\\s*$";

const SIZE_UNITS: Readonly<Record<string, number>> = { b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

const TIME_UNITS: Readonly<Record<string, number>> = {
  us: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Whole bytes, 0 to 2^53 - 1. */
export function parseSize(input: unknown): Parsed {
  const text = unitText(input);
  if (text === null) return refused(input, "is not a size");
  const match = /^([+-]?\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text);
  if (match === null) return refused(input, "is not a size");
  const [, digits = "", unit = ""] = match;
  const amount = Number(digits);
  if (amount < 0) return refused(input, "is negative");
  if (unit === "") return amount === 0 ? { ok: true, value: 0 } : refused(input, "has no unit");
  const factor = /^(b|[kmgt](i?b)?)$/i.test(unit) ? SIZE_UNITS[unit.charAt(0).toLowerCase()] : undefined;
  if (factor === undefined) return refused(input, `has the unknown unit "${unit}"`);
  const value = Math.trunc(amount * factor);
  return Number.isSafeInteger(value) ? { ok: true, value } : refused(input, "is larger than 2^53 bytes");
}

/** Milliseconds, whole microseconds, >= 0. */
export function parseTime(input: unknown): Parsed {
  const text = unitText(input);
  if (text === null) return refused(input, "is not a time");
  if (/^[+-]?0+(\.0+)?$/.test(text)) return { ok: true, value: 0 };
  if (/^-/.test(text)) return refused(input, "is negative");
  if (/^\+?\d+(\.\d+)?$/.test(text)) return refused(input, "has no unit");
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)\s*/gi)];
  if (parts.length === 0 || parts.map((p) => p[0]).join("") !== text) return refused(input, "is not a time");
  let total = 0;
  for (const [, digits = "", unit = ""] of parts) {
    const factor = TIME_UNITS[unit.toLowerCase()];
    if (factor === undefined) return refused(input, `has the unknown unit "${unit}"`);
    total += Number(digits) * factor;
  }
  const micros = Math.round(total * MICROS_PER_MS);
  return Number.isSafeInteger(micros)
    ? { ok: true, value: micros / MICROS_PER_MS }
    : refused(input, "is longer than 285 years");
}

/** Per second, > 0. A bare number counts as per second. */
export function parseRate(input: unknown): Parsed {
  const text = unitText(input);
  const match = text === null ? null : /^([+-]?\d+(?:\.\d+)?)(?:\s*\/\s*([a-z]+))?$/i.exec(text);
  if (match === null) return refused(input, "is not a rate");
  const [, digits = "", unit = "s"] = match;
  const factor = TIME_UNITS[unit.toLowerCase()];
  if (factor === undefined) return refused(input, `has the unknown unit "/${unit}"`);
  const value = (Number(digits) * 1000) / factor;
  return value > 0 ? { ok: true, value } : refused(input, value < 0 ? "is negative" : "is 0");
}

const unitText = (input: unknown): string | null =>
  typeof input === "string" ? input.trim() : typeof input === "number" ? String(input) : null;

const refused = (input: unknown, what: string): Parsed => ({ ok: false, problem: `${shown(input)} ${what}` });

/** A value as it may stand in an error message: never longer than a line. */
export function shown(input: unknown): string {
  if (input === undefined) return "nothing";
  if (Array.isArray(input)) return input.length === 0 ? "an empty list" : "a list";
  if (typeof input === "object" && input !== null) return "a block of keys";
  const text = typeof input === "string" ? `"${input.replace(/\s+/g, " ")}"` : String(input);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
