/**
 * What can be ruled out without running anything (insight 3.3, last paragraph).
 *
 * A candidate falls here only if it rejects by rule what now runs, or if the busiest hour alone loses more than
 * the day may: its saturated throughput is under nine tenths of that hour's arrivals and the fluid answer for
 * the hour is over three times the day's allowance. Everything else gets a run.
 */
import { firstAtOrAfter, type RecordedRequests } from "../../workload/recorded-requests.ts";
import { holdUnder, type KindNeed } from "./needs.ts";
import { overloadOutcome } from "./places.ts";
import { saturatedThroughput } from "./saturation.ts";
import type { Setting } from "./setting.ts";
import { busiestHour } from "./windows.ts";

export interface ScreeningInput {
  readonly requests: RecordedRequests;
  /** By kind under the candidate, null: another pool's. */
  readonly needs: readonly (KindNeed | null)[];
  /** The same under today's setting. */
  readonly needsNow: readonly (KindNeed | null)[];
  /** Of each request, on the host where it is largest. */
  readonly peaks: Float64Array;
  readonly sigma: number;
  readonly loss: number;
}

const SATURATION_RUN = 20_000;
const HOUR_MS = 3_600_000;

/** null: it gets a run. */
export function screenedOut(s: Setting, input: ScreeningInput): "rejects" | "overload" | null {
  if (rejectsMore(s, input)) return "rejects";
  return s.split === null && losesBusiestHour(s, input) ? "overload" : null;
}

/** Some kind of request that can run today could never run. */
const rejectsMore = (s: Setting, { needs, needsNow }: ScreeningInput): boolean =>
  needs.some((need, kind) => {
    const now = needsNow[kind];
    if (need === null || now === null || now === undefined || now.isRejected) return false;
    return need.isRejected || (s.split !== null && tooLargeForPart(s, need));
  });

const tooLargeForPart = (s: Setting, need: KindNeed): boolean => {
  const { split, maxMem } = s;
  if (split === null || maxMem < 0) return false;
  const large = Math.round(maxMem * split.share);
  return need.cluster > (need.cluster > split.above ? large : maxMem - large);
};

function losesBusiestHour(s: Setting, input: ScreeningInput): boolean {
  const { requests, needs, loss } = input;
  const hour = busiestHour(requests, needs);
  const from = firstAtOrAfter(requests, hour * HOUR_MS);
  const to = firstAtOrAfter(requests, (hour + 1) * HOUR_MS);
  const sample = sampleOf(input, from, to);
  const all = countOf(requests, needs);
  const arrivals = sample.seen / HOUR_MS;
  const throughput = saturatedThroughput(sample.sizes, sample.holds, { maxMem: s.maxMem, maxRunning: s.maxRunning });
  if (throughput >= 0.9 * arrivals) return false;
  const { served } = overloadOutcome(arrivals, throughput, s.maxQueued, s.timeout);
  return (arrivals - served) * HOUR_MS > 3 * loss * all;
}

/** Up to 20,000 of the hour's requests of the pool, repeated if there are fewer, in their order. */
function sampleOf({ requests: r, needs, peaks, sigma }: ScreeningInput, from: number, to: number) {
  const indexes: number[] = [];
  for (let i = from; i < to; i++) if (needs[r.kind[i]!] !== null) indexes.push(i);
  const n = indexes.length === 0 ? 0 : SATURATION_RUN;
  const sizes = new Float64Array(n);
  const holds = new Float64Array(n);
  for (let k = 0; k < n; k++) {
    const i = indexes[k % indexes.length]!;
    const need = needs[r.kind[i]!]!;
    sizes[k] = need.cluster;
    holds[k] = holdUnder(need, r.duration[i]!, peaks[i]!, r.spilled[i]!, sigma);
  }
  return { sizes, holds, seen: indexes.length };
}

function countOf(r: RecordedRequests, needs: ScreeningInput["needs"]): number {
  let n = 0;
  for (let i = 0; i < r.count; i++) if (needs[r.kind[i]!] !== null) n++;
  return n;
}
