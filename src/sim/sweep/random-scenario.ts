/**
 * A small cluster with traffic and faults, drawn from a seed: what the sweep runs under all checkers.
 *
 * Small on purpose: limits are met, queues are full, ties are common, and a run is over in milliseconds. A
 * scenario is made by hand instead of from text, as ten thousand a minute are. Runs with even seeds are widened by what
 * is rarer (`widened-run.ts`).
 */
import { DEFAULT_FLAGS, type ImpalaFlags } from "../../config/impala-flags.ts";
import type {
  Arrival,
  ClusterSpec,
  CoordinatorSpec,
  Distribution,
  ExecutorSpec,
  Fault,
  QueryClass,
  RetryPolicy,
  Route,
  Scenario,
} from "../../config/scenario.ts";
import { backendsOf } from "../../config/scenario-cluster.ts";
import { DEFAULT_ADMISSION_OPTIONS, type FragmentShape, type RequestShape } from "../../core/admission/request.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig, ROOT_POOL } from "../../core/pool-config.ts";
import { type Bytes, GiB, type Instant, type MaxBytes, MiB, type Millis } from "../../core/units.ts";
import { Draws } from "./draws.ts";
import { widenedRun } from "./widened-run.ts";

export interface RandomRun {
  readonly scenario: Scenario;
  readonly configs: ReadonlyMap<string, PoolConfig>;
  /** What the fault `configChanges` puts in their place. */
  readonly laterConfigs: ReadonlyMap<string, PoolConfig>;
  readonly flags: ImpalaFlags;
}

const USERS = ["ana", "ben", "zoe"];
const SPAN_MS = 4000;

export function randomRun(seed: number, isWidened = seed % 2 === 0): RandomRun {
  const run = plainRun(seed);
  return isWidened ? widenedRun(run) : run;
}

function plainRun(seed: number): RandomRun {
  const d = new Draws(seed, "sweep");
  const cluster = randomCluster(d);
  const pools = ["root.a", "root.a-b", "root.c"].slice(0, d.between(1, 3));
  const queries = Array.from({ length: d.between(1, 4) }, (_, i) => randomClass(d, i, pools, cluster));
  const configs = randomConfigs(d, pools, cluster);
  const scenario: Scenario = {
    name: `sweep-${seed}`,
    file: "sweep",
    seed,
    cluster,
    pools: { kind: "flags" },
    flags: {},
    users: {},
    queries,
    arrivals: Array.from({ length: d.between(1, 3) }, () => randomArrival(d, queries)),
    faults: randomFaults(d, cluster, queries),
    scale: { time: 1, memory: 1 },
    threads: null,
    model: { scratchBandwidth: GiB, cores: d.chance(0.15) ? d.between(1, 4) : null },
    thresholds: [],
    limits: { time: Number.POSITIVE_INFINITY as Instant, queries: 150 },
  };
  return { scenario, configs, laterConfigs: randomConfigs(d, pools, cluster), flags: DEFAULT_FLAGS };
}

// The cluster

function randomCluster(d: Draws): ClusterSpec {
  const named = d.chance(0.35);
  const executors: ExecutorSpec[] = Array.from({ length: named ? d.between(1, 3) : 1 }, (_, i) => ({
    count: d.between(1, 3),
    memory: (d.between(2, 12) * GiB) as Bytes,
    slots: d.between(1, 6),
    group: named ? { name: `root.a-${i}`, minSize: d.between(1, 2) } : { name: "default", minSize: 1 },
    scratch: null,
  }));
  const total = executors.reduce((n, e) => n + e.count, 0);
  const dedicated: CoordinatorSpec = { count: d.between(1, 3), on: "dedicated", memory: (4 * GiB) as Bytes, slots: 16 };
  const shared: CoordinatorSpec = { ...dedicated, count: d.between(1, Math.min(3, total)), on: "executor" };
  return {
    executors,
    coordinators: [d.chance(0.5) ? dedicated : shared],
    admission: d.chance(0.25) ? "admissiond" : "distributed",
    statestore: {
      every: d.oneOf([10, 50, 100, 250]) as Millis,
      publishLag: d.oneOf([0, 0, 3]) as Millis,
      receiveLag: d.oneOf([0, 0, 7]) as Millis,
      failureAfter: d.oneOf([300, 1000]) as Millis,
    },
    route: randomRoute(d),
  };
}

const randomRoute = (d: Draws): Route => ({ kind: d.oneOf(["round-robin", "random"] as const) });

// Pools

function randomConfigs(d: Draws, pools: readonly string[], cluster: ClusterSpec): Map<string, PoolConfig> {
  const configs = new Map<string, PoolConfig>(pools.map((pool) => [pool, randomConfig(d, cluster)]));
  if (d.chance(0.2))
    configs.set(ROOT_POOL, { ...DEFAULT_POOL_CONFIG, userQueryLimits: new Map([["*", d.between(2, 8)]]) });
  return configs;
}

function randomConfig(d: Draws, cluster: ClusterSpec): PoolConfig {
  const total = cluster.executors.reduce((n, e) => n + e.count * e.memory, 0);
  const hasMemory = d.chance(0.7);
  return {
    ...DEFAULT_POOL_CONFIG,
    maxRequests: d.chance(0.6) ? d.between(1, 6) : -1,
    maxQueued: d.between(1, 30),
    maxMemResources: (hasMemory ? Math.ceil((total * d.between(2, 12)) / 10) : -1) as MaxBytes,
    queueTimeout: d.oneOf([50, 500, 2000, 60_000]) as Millis,
    minQueryMemLimit: d.chance(0.3) ? d.oneOf([64 * MiB, 512 * MiB]) : 0,
    maxQueryMemLimit: d.chance(0.3) ? d.oneOf([GiB, 2 * GiB]) : 0,
    clampMemLimitQueryOption: d.chance(0.5),
    userQueryLimits: d.chance(0.15) ? new Map([["*", d.between(1, 10)]]) : DEFAULT_POOL_CONFIG.userQueryLimits,
    onlyCoordinators: d.chance(0.05),
  };
}

// Queries

function randomClass(d: Draws, index: number, pools: readonly string[], cluster: ClusterSpec): QueryClass {
  const estimate = d.oneOf([32 * MiB, 300 * MiB, GiB, 3 * GiB]);
  const shape = randomShape(d, estimate, cluster);
  return {
    name: `class-${index}`,
    index,
    requestedPool: d.oneOf(pools),
    users: USERS.slice(0, d.between(1, 3)),
    shape,
    mtDop: 0,
    instancesFollowMtDop: false,
    options: {},
    uses: {
      kind: "footprint",
      peak: { kind: "uniform", low: estimate / 4, high: estimate * 1.5 },
      profile: d.oneOf(["flat", "ramp", "spike", "triangle"] as const),
      skew: d.chance(0.2) ? { [backendsOf(cluster)[0]!.address]: 2 } : {},
      spillable: d.chance(0.8),
    },
    duration: randomDuration(d),
    cancelAfter: d.chance(0.2) ? { kind: "uniform", low: 0, high: 2000 } : null,
    statement: "",
  };
}

const randomDuration = (d: Draws): Distribution =>
  d.chance(0.4)
    ? { kind: "fixed", value: d.oneOf([0, 50, 100, 400, 1500]) }
    : { kind: "exponential", mean: d.oneOf([20, 200, 600]) };

function randomShape(d: Draws, estimate: number, cluster: ClusterSpec): RequestShape {
  const coordinatorOnly = d.chance(0.1);
  const stmtType = !coordinatorOnly && d.chance(0.2) ? "DML" : "QUERY";
  const total = cluster.executors.reduce((n, e) => n + e.count, 0);
  const root = fragment(d, "coordinator", 1);
  const work = fragment(d, "executors", d.chance(0.2) ? d.between(2, 3) : 1);
  return {
    stmtType,
    perHostMemEstimate: estimate as Bytes,
    dedicatedCoordMemEstimate: (100 * MiB) as Bytes,
    isTrivial: coordinatorOnly && d.chance(0.5),
    coordinatorOnly,
    includeAllCoordinators: d.chance(0.03),
    executors: d.chance(0.7) ? "all" : d.between(1, total),
    fragments: coordinatorOnly ? [root] : stmtType === "QUERY" ? [root, work] : [work],
    options: { ...DEFAULT_ADMISSION_OPTIONS, memLimit: d.chance(0.15) ? d.oneOf([256 * MiB, 2 * GiB]) : 0 },
    maxSlotsPerExecutor: null,
  };
}

const fragment = (d: Draws, runsOn: FragmentShape["runsOn"], instancesPerHost: number): FragmentShape => ({
  runsOn,
  instancesPerHost,
  minReservationPerInstance: (d.oneOf([0, 2, 16]) * MiB) as Bytes,
  minReservationPerBackend: 0 as Bytes,
  threadReservationPerInstance: 1,
  isDominant: false,
});

// Traffic

function randomArrival(d: Draws, queries: readonly QueryClass[]): Arrival {
  const common = {
    mix: queries.map((_, queryClass) => ({ queryClass, share: 1 / queries.length })),
    from: d.oneOf([0, 100, 750]) as Instant,
    to: SPAN_MS as Instant,
    route: randomRoute(d),
    retry: randomRetry(d),
  };
  switch (d.below(4)) {
    case 0:
      return { ...common, kind: "burst", count: d.between(1, 40), within: d.oneOf([0, 0, 200]) as Millis };
    case 1:
      return { ...common, kind: "every", every: d.oneOf([10, 100]) as Millis, count: d.between(1, 40) };
    case 2:
      return { ...common, kind: "rate", perSecond: d.between(1, 30), day: null };
    default:
      return {
        ...common,
        kind: "clients",
        clients: d.between(1, 8),
        think: { kind: "exponential", mean: 100 },
        requests: d.between(1, 6),
      };
  }
}

const randomRetry = (d: Draws): RetryPolicy => ({
  on: d.chance(0.4) ? ["rejected", "timedOut", "failed"] : [],
  attempts: d.between(2, 4),
  first: d.oneOf([1, 100]) as Millis,
  factor: 2,
  most: 1000 as Millis,
  jitter: d.oneOf(["none", "full", "equal"] as const),
});

// Faults

function randomFaults(d: Draws, cluster: ClusterSpec, queries: readonly QueryClass[]): Fault[] {
  if (d.chance(0.4)) return [];
  const faults = Array.from({ length: d.between(1, 3) }, () => randomFault(d, cluster, queries)).flat();
  return faults.sort((a, b) => a.at - b.at);
}

/** Something that breaks, mostly with the moment at which it is whole again. */
function randomFault(d: Draws, cluster: ClusterSpec, queries: readonly QueryClass[]): Fault[] {
  const backends = backendsOf(cluster);
  const at = d.between(0, SPAN_MS) as Instant;
  const later = (at + d.between(1, 3000)) as Instant;
  const mends = d.chance(0.7);
  const host = d.oneOf(backends).address;
  const coordinator = d.oneOf(backends.filter((b) => b.isCoordinator)).address;
  const pair = (breaks: Fault, whole: Fault): Fault[] => (mends ? [breaks, whole] : [breaks]);
  switch (d.below(10)) {
    case 0:
      return pair({ kind: "hostDies", at, host }, { kind: "hostReturns", at: later, host });
    case 1:
      return pair(
        { kind: "coordinatorDies", at, host: coordinator },
        { kind: "coordinatorReturns", at: later, host: coordinator },
      );
    case 2:
      return pair(
        { kind: "coordinatorCutOff", at, host: coordinator },
        { kind: "coordinatorRejoins", at: later, host: coordinator },
      );
    case 3:
      return [
        { kind: "statestoreStops", at },
        { kind: "statestoreStarts", at: later },
      ];
    case 4:
      return [{ kind: "hostQuiesces", at, host }];
    case 5:
      return [{ kind: "workerKilled", at, host }];
    case 6:
      return cluster.admission === "admissiond" ? [{ kind: "releasesLost", at, chance: 0.3, host: null }] : [];
    case 7:
      return [
        { kind: "refusals", at, chance: 0.05, host: d.chance(0.5) ? host : null, queryClass: null },
        { kind: "refusals", at: later, chance: 0, host: null, queryClass: null },
      ];
    case 8:
      return [{ kind: "statisticsDropped", at, queryClass: d.below(queries.length), factor: d.oneOf([0.1, 4]) }];
    default:
      return [{ kind: "configChanges", at, fairScheduler: null, llamaSite: null }];
  }
}
