/**
 * The worst part of a day: windows around its busiest hour, in which most candidates show what they are worth
 * (insight 3.4 item 10).
 */
import { firstAtOrAfter, type RecordedRequests } from "../../workload/recorded-requests.ts";
import type { KindNeed } from "./needs.ts";

/** Indexes of requests. */
export interface Window {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

const HOUR_MS = 3_600_000;
const LENGTHS = [1, 4];

/** The busiest hour, the 4 hours around it, the whole; windows that hold nearly everything are left out. `needs` by kind, null: another pool's. */
export function windowsOf(requests: RecordedRequests, needs: readonly (KindNeed | null)[]): Window[] {
  const whole: Window = { name: "whole day", from: 0, to: requests.count };
  if (requests.count === 0) return [whole];
  const busiest = busiestHour(requests, needs);
  const windows = LENGTHS.map((hours): Window => {
    const middle = (busiest + 0.5) * HOUR_MS;
    return {
      name: hours === 1 ? "busiest hour" : `busiest ${hours} h`,
      from: firstAtOrAfter(requests, middle - (hours * HOUR_MS) / 2),
      to: firstAtOrAfter(requests, middle + (hours * HOUR_MS) / 2),
    };
  });
  return [...windows.filter((w) => w.to - w.from < 0.8 * requests.count), whole];
}

/** The hour, counted from the run's start, whose arrivals ask for most memory x time. */
export function busiestHour(requests: RecordedRequests, needs: readonly (KindNeed | null)[]): number {
  const hours: number[] = [];
  for (let i = 0; i < requests.count; i++) {
    const need = needs[requests.kind[i]!];
    if (need === null || need === undefined) continue;
    const hour = Math.floor(requests.at[i]! / HOUR_MS);
    hours[hour] = (hours[hour] ?? 0) + Math.max(1, need.cluster) * requests.duration[i]!;
  }
  let best = 0;
  hours.forEach((demand, hour) => {
    if (demand > (hours[best] ?? 0)) best = hour;
  });
  return best;
}
