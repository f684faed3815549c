/**
 * How Impala prints sizes and times in reasons, profiles and pages (admission 14.1, surfaces 0.3).
 *
 * EXPLAIN text and the shell's summary use other styles; they don't belong here.
 */
import { GiB, KiB, MiB } from "./units.ts";

/** `0`, or two decimals and the largest unit of B, KB, MB, GB not above the value; never TB. */
export function prettyBytes(n: number): string {
  if (n === 0) return "0";
  const size = Math.abs(n);
  if (size >= GiB) return `${(n / GiB).toFixed(2)} GB`;
  if (size >= MiB) return `${(n / MiB).toFixed(2)} MB`;
  if (size >= KiB) return `${(n / KiB).toFixed(2)} KB`;
  return `${n.toFixed(2)} B`;
}

/** Whole milliseconds as `0`, `745ms`, `5s000ms`, `1m5s`, `2h3m`. */
export function prettyMillis(ms: number): string {
  const n = Math.trunc(ms);
  if (n === 0) return "0";
  const hours = Math.trunc(n / 3_600_000);
  const minutes = Math.trunc((n % 3_600_000) / 60_000);
  const seconds = Math.trunc((n % 60_000) / 1000);
  const rest = n % 1000;
  let text = hours > 0 ? `${hours}h` : "";
  if (minutes > 0) text += `${minutes}m`;
  if (hours > 0) return text;
  if (seconds > 0) text += `${seconds}s`;
  if (minutes > 0) return text;
  return seconds > 0 ? `${text}${String(rest).padStart(3, "0")}ms` : `${rest}ms`;
}

/** Time from nanoseconds: `0.000ns`, `571.170us`, `118.402ms` (cut, not rounded), `12s340ms`, `4m7s`, `1h2m`. */
export function prettyNanos(ns: number): string {
  const n = Math.trunc(ns);
  if (n < 1000) return `${n}.000ns`;
  if (n < 1_000_000) return `${thousandths(n)}us`;
  if (n < 1_000_000_000) return `${thousandths(Math.trunc(n / 1000))}ms`;
  return prettyMillis(n / 1_000_000);
}

const thousandths = (n: number): string => `${Math.trunc(n / 1000)}.${String(n % 1000).padStart(3, "0")}`;
