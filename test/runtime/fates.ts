/** What becomes of each query of a run, with and without its moments. */
import type { RunEvent } from "../../src/core/events.ts";

/** By query, in order: how it was let in, how it ended. */
export function fates(events: readonly RunEvent[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const e of events) {
    const fate = fateOf(e);
    if (fate !== null && "query" in e) found[e.query] = `${found[e.query] ?? ""} ${fate}`.trim();
  }
  return found;
}

/** When. */
function moments(events: readonly RunEvent[]): Record<string, number[]> {
  const found: Record<string, number[]> = {};
  for (const e of events) {
    if (fateOf(e) === null || !("query" in e)) continue;
    const of = found[e.query] ?? [];
    of.push(e.at);
    found[e.query] = of;
  }
  return found;
}

/** Queries whose fates or moments differ: virtual time counts whole microseconds. */
export function differing(some: readonly RunEvent[], others: readonly RunEvent[]): string[] {
  const [a, b, at, bt] = [fates(some), fates(others), moments(some), moments(others)];
  const isSame = (q: string): boolean =>
    a[q] === b[q] && (at[q] ?? []).every((t, i) => Math.abs(t - (bt[q]?.[i] ?? Number.NaN)) < 0.05);
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((q) => !isSame(q));
}

function fateOf(e: RunEvent): string | null {
  switch (e.kind) {
    case "admitted":
      return e.path;
    case "released":
      return e.state;
    case "rejected":
      return e.reason.rule;
    case "queued":
    case "timedOut":
    case "cancelled":
    case "unresolved":
      return e.kind;
    default:
      return null;
  }
}
