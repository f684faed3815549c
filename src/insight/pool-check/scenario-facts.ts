/**
 * What a scenario says about cluster and traffic, in the form `check` asks for: means and peaks, worked out without
 * running anything.
 */
import { parseMemorySpec } from "../../config/memory-spec.ts";
import type { Arrival, Distribution, QueryClass, Scenario } from "../../config/scenario.ts";
import { backendsOf } from "../../config/scenario-cluster.ts";
import type { RequestShape } from "../../core/admission/request.ts";
import { MiB } from "../../core/units.ts";
import { draw, meanOf } from "../../workload/draw.ts";
import type { ClusterFacts, TrafficClass, TrafficFacts } from "./check-input.ts";

/** A scenario only says what hosts can give to queries; `memLimit` is the flag, where somebody has told it. */
export function clusterFacts(scenario: Scenario, memLimit = ""): ClusterFacts {
  const processMemLimit = bytesOf(memLimit);
  return {
    hosts: backendsOf(scenario.cluster).map((backend) => ({
      address: backend.address,
      isCoordinator: backend.isCoordinator,
      isExecutor: backend.isExecutor,
      admitMemLimit: backend.admitMemLimit,
      slots: backend.admissionSlots,
      group: backend.executorGroup,
      processMemLimit,
    })),
    admissiond: scenario.cluster.admission === "admissiond",
    // The planner adds this much to whatever the root fragment needs.
    coordinatorEstimate: 100 * MiB,
  };
}

/** Null: none is set, or a part of a memory that nobody knows. */
function bytesOf(memLimit: string): number | null {
  const spec = parseMemorySpec(memLimit.trim());
  return spec?.kind === "bytes" && spec.bytes > 0 ? spec.bytes : null;
}

/** One class for each query class and user, traffic of all its arrivals together. */
export function trafficFacts(scenario: Scenario): TrafficFacts {
  const classes = scenario.queries.flatMap((queryClass) => {
    const flow = scenario.arrivals.map((arrival) => flowOf(arrival, queryClass, scenario)).reduce(together, NO_FLOW);
    if (flow.count === 0) return [];
    const users = queryClass.users.length === 0 ? [""] : queryClass.users;
    return users.map((user) => classFacts(queryClass, user, flow, users.length));
  });
  return { classes };
}

interface Flow {
  readonly count: number;
  readonly largestBurst: number;
  readonly peakRate: number;
}

const NO_FLOW: Flow = { count: 0, largestBurst: 0, peakRate: 0 };

const together = (a: Flow, b: Flow): Flow => ({
  count: a.count + b.count,
  largestBurst: Math.max(a.largestBurst, b.largestBurst),
  peakRate: a.peakRate + b.peakRate,
});

function flowOf(arrival: Arrival, queryClass: QueryClass, scenario: Scenario): Flow {
  if (arrival.kind === "trace") return tracedFlow(arrival, queryClass);
  const share = arrival.mix.find((m) => m.queryClass === queryClass.index)?.share ?? 0;
  const whole = wholeFlow(arrival, queryClass, scenario);
  return {
    count: whole.count * share,
    largestBurst: Math.ceil(whole.largestBurst * share),
    peakRate: whole.peakRate * share,
  };
}

function wholeFlow(arrival: Exclude<Arrival, { kind: "trace" }>, queryClass: QueryClass, scenario: Scenario): Flow {
  const until = Math.min(arrival.to, scenario.limits.time);
  const seconds = Math.max(0, until - arrival.from) / 1000;
  const during = (rate: number): number => (Number.isFinite(seconds) ? rate * seconds : scenario.limits.queries);
  switch (arrival.kind) {
    case "burst":
      return arrival.within === 0
        ? { count: arrival.count, largestBurst: arrival.count, peakRate: 0 }
        : { count: arrival.count, largestBurst: 1, peakRate: (arrival.count * 1000) / arrival.within };
    case "every": {
      const rate = 1000 / arrival.every;
      return { count: Math.min(arrival.count, during(rate)), largestBurst: 1, peakRate: rate };
    }
    case "rate": {
      const factors = arrival.day ?? [1];
      const mean = factors.reduce((a, b) => a + b, 0) / factors.length;
      return {
        count: during(arrival.perSecond * mean),
        largestBurst: 1,
        peakRate: arrival.perSecond * Math.max(...factors),
      };
    }
    default: {
      // Closed loop: a client asks again when it has its answer and has thought, and never sooner.
      const round = meanOf(arrival.think) + meanOf(queryClass.duration);
      const rate = round === 0 ? 0 : (arrival.clients * 1000) / round;
      const all = arrival.clients * arrival.requests;
      return { count: Math.min(all, during(rate)), largestBurst: arrival.clients, peakRate: rate };
    }
  }
}

function tracedFlow({ rows, scale }: Extract<Arrival, { kind: "trace" }>, queryClass: QueryClass): Flow {
  const times = rows.filter((row) => row.queryClass === queryClass.index).map((row) => row.at);
  return { count: times.length * scale, ...peaksOf(times), peakRate: peaksOf(times).peakRate * scale };
}

const HOUR = 3_600_000;

/** Most at one moment, and the busiest hour's rate a second. */
export function peaksOf(ascending: readonly number[]): { readonly largestBurst: number; readonly peakRate: number } {
  const atOnce = new Map<number, number>();
  const inHour = new Map<number, number>();
  for (const at of ascending) {
    atOnce.set(at, (atOnce.get(at) ?? 0) + 1);
    inHour.set(Math.floor(at / HOUR), (inHour.get(Math.floor(at / HOUR)) ?? 0) + 1);
  }
  return { largestBurst: most(atOnce.values()), peakRate: most(inHour.values()) / 3600 };
}

/** 0 for none; also for more numbers than a call can take. */
export function most(numbers: Iterable<number>): number {
  let largest = 0;
  for (const n of numbers) largest = Math.max(largest, n);
  return largest;
}

function classFacts(queryClass: QueryClass, user: string, flow: Flow, users: number): TrafficClass {
  const { shape, uses, duration } = queryClass;
  return {
    name: queryClass.name,
    user,
    requestedPool: queryClass.requestedPool,
    landedPool: null,
    count: flow.count / users,
    perHostEstimate: capped(shape.perHostMemEstimate, shape),
    coordinatorEstimate: capped(shape.dedicatedCoordMemEstimate, shape),
    memLimit: shape.options.memLimit,
    executors: shape.executors,
    slotsPerHost: Math.max(0, ...executorFragments(shape).map((f) => f.instancesPerHost)),
    meanHold: meanOf(duration),
    peak: uses.kind === "footprint" ? peakOf(uses.peak) : null,
    minReservation: executorFragments(shape).reduce(
      (sum, f) => sum + f.instancesPerHost * f.minReservationPerInstance + f.minReservationPerBackend,
      0,
    ),
    largestBurst: Math.ceil(flow.largestBurst / users),
    peakRate: flow.peakRate / users,
  };
}

/** MEM-1. */
const capped = (estimate: number, { options }: RequestShape): number =>
  options.maxMemEstimateForAdmission > 0 ? Math.min(estimate, options.maxMemEstimateForAdmission) : estimate;

const executorFragments = (shape: RequestShape) => shape.fragments.filter((f) => f.runsOn === "executors");

const peakOf = (peak: Distribution): { mean: number; p95: number } => ({ mean: meanOf(peak), p95: draw(peak, 0.95) });
