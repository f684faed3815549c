/**
 * Numbers for people: times, counts and shares as reports print them. Bytes are printed as Impala prints them
 * (core/pretty.ts).
 */

/** `0s`, `2.5ms`, `300ms`, `8.0s`, `1m04s`, `2h03m`, `3d04h` of emulated time. */
export function timeText(ms: number): string {
  if (ms === Number.POSITIVE_INFINITY) return "never";
  if (ms === 0) return "0s";
  if (ms < 10) return `${Number(ms.toFixed(1))}ms`;
  if (ms < 999.5) return `${Math.round(ms)}ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`;
  const hours = Math.round(minutes / 60);
  return `${Math.floor(hours / 24)}d${two(hours % 24)}h`;
}

const NARROW_SPACE = "\u202f";

/** Grouped from 10,000 on, with a narrow space where glyphs allow it. */
export function countText(n: number, unicode: boolean): string {
  const text = String(n);
  if (!unicode || !Number.isInteger(n) || Math.abs(n) < 10_000) return text;
  return text.replace(/\B(?=(\d{3})+(?!\d))/g, NARROW_SPACE);
}

/** `0 %`, `< 0.1 %`, `5.3 %`, `98 %`. */
export function shareText(share: number): string {
  const percent = share * 100;
  if (percent === 0) return "0 %";
  if (percent < 0.1) return "< 0.1 %";
  return percent < 10 ? `${percent.toFixed(1)} %` : `${Math.round(percent)} %`;
}

export const plural = (n: number, one: string, many = `${one}s`): string => (n === 1 ? one : many);

const two = (n: number): string => String(n).padStart(2, "0");
