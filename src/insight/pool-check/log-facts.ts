/**
 * What a recorded log says about the traffic, in the form `check` asks for. Its requests know the pool they ran in,
 * not the one that was asked for.
 */
import type { TracedRequest } from "../../workload/query-log/traced-request.ts";
import type { TrafficClass, TrafficFacts } from "./check-input.ts";
import { most, peaksOf } from "./scenario-facts.ts";

export function logFacts(requests: readonly TracedRequest[]): TrafficFacts {
  const groups = new Map<string, TracedRequest[]>();
  for (const request of requests) {
    const key = `${request.queryClass}\u0000${request.pool}`;
    const group = groups.get(key) ?? [];
    group.push(request);
    groups.set(key, group);
  }
  return { classes: [...groups.values()].map(classFacts) };
}

const MICROS_PER_MS = 1000;

function classFacts(requests: readonly TracedRequest[]): TrafficClass {
  const [first] = requests;
  const mean = (value: (r: TracedRequest) => number): number =>
    requests.reduce((sum, r) => sum + value(r), 0) / requests.length;
  const peaks = requests.map((r) => r.peak).sort((a, b) => a - b);
  return {
    name: first?.queryClass ?? "",
    user: first?.user ?? "",
    requestedPool: "",
    landedPool: first?.pool ?? "",
    count: requests.length,
    perHostEstimate: mean((r) => r.estimate),
    coordinatorEstimate: mean((r) => r.coordinatorEstimate),
    memLimit: 0,
    executors: Math.max(1, Math.round(mean((r) => r.backends)) - 1),
    slotsPerHost: most(requests.map((r) => r.slots)),
    meanHold: mean((r) => r.hold) / MICROS_PER_MS,
    peak: { mean: mean((r) => r.peak), p95: peaks[Math.ceil(0.95 * peaks.length) - 1] ?? 0 },
    minReservation: most(requests.map((r) => r.reservation)),
    ...peaksOf(requests.map((r) => Math.floor(r.at / MICROS_PER_MS))),
  };
}
