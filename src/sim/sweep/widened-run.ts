/**
 * A random run made rarer: what the plain ones never have, each with a chance of its own.
 *
 * Apart from `random-scenario.ts`, and with draws of its own, so that a seed whose run is not widened goes on being
 * the run that once found something (test/sim/seeds.ts).
 */

import { DEFAULT_FLAGS, type ImpalaFlags } from "../../config/impala-flags.ts";
import type {
  Arrival,
  ClusterSpec,
  Fault,
  QueryClass,
  RetryPolicy,
  Route,
  Scenario,
  TraceRow,
} from "../../config/scenario.ts";
import { backendsOf, coordinatorsOf } from "../../config/scenario-cluster.ts";
import type { PoolConfig } from "../../core/pool-config.ts";
import { type Bytes, GiB, type Instant, MiB, type Millis } from "../../core/units.ts";
import { Draws } from "./draws.ts";
import type { RandomRun } from "./random-scenario.ts";

const HOUR_MS = 3_600_000;
/** Clients that never give up are not heard any more from then on. */
const PATIENCE_MS = 20_000;

export function widenedRun(run: RandomRun): RandomRun {
  const d = new Draws(run.scenario.seed, "sweep-wide");
  const cluster = widenedCluster(d, run.scenario.cluster);
  const queries = run.scenario.queries.map((q) => widenedClass(d, q));
  // Nothing may wait or ask for the whole hour.
  const lastsAnHour = run.scenario.faults.length === 0 && d.chance(0.3);
  const traffic = widenedTraffic(d, run.scenario, cluster, queries, lastsAnHour);
  const scenario: Scenario = {
    ...run.scenario,
    cluster,
    queries,
    arrivals: traffic,
    faults: lastsAnHour ? [] : widenedFaults(d, run.scenario.faults),
    limits: lastsAnHour ? run.scenario.limits : { ...run.scenario.limits, time: PATIENCE_MS as Instant },
  };
  return {
    ...run,
    scenario,
    configs: widenedConfigs(d, run.configs),
    laterConfigs: widenedConfigs(d, run.laterConfigs),
    flags: otherFlags(d),
  };
}

// The cluster

/** Coordinators of both kinds, news that takes longer than a tick, little scratch. */
function widenedCluster(d: Draws, cluster: ClusterSpec): ClusterSpec {
  const [first] = cluster.coordinators;
  const other = first!.on === "dedicated" ? "executor" : "dedicated";
  const lag = (): Millis => d.oneOf([0, 3, 150, 400]) as Millis;
  return {
    ...cluster,
    coordinators: d.chance(0.3) ? [first!, { ...first!, count: 1, on: other }] : cluster.coordinators,
    statestore: d.chance(0.3) ? { ...cluster.statestore, publishLag: lag(), receiveLag: lag() } : cluster.statestore,
    executors: d.chance(0.15)
      ? cluster.executors.map((e) => ({ ...e, scratch: d.oneOf([0, 512 * MiB, 4 * GiB]) as Bytes }))
      : cluster.executors,
    route: widenedRoute(d, cluster.route, cluster),
  };
}

const widenedRoute = (d: Draws, route: Route, cluster: ClusterSpec): Route =>
  d.chance(0.2) ? { kind: "named", host: d.oneOf(coordinatorsOf(backendsOf(cluster))) } : route;

// Pools

function widenedConfigs(d: Draws, configs: ReadonlyMap<string, PoolConfig>): Map<string, PoolConfig> {
  return new Map([...configs].map(([pool, config]) => [pool, widenedConfig(d, config)]));
}

function widenedConfig(d: Draws, config: PoolConfig): PoolConfig {
  return {
    ...config,
    ...(d.chance(0.2) ? zeroOrNone(d) : {}),
    maxMtDop: d.chance(0.2) ? d.between(0, 2) : config.maxMtDop,
    groupQueryLimits: d.chance(0.2)
      ? new Map([
          ["staff", d.between(1, 6)],
          ["dev", d.between(0, 3)],
        ])
      : config.groupQueryLimits,
  };
}

/** Limits of nothing at all; a pool without a timeout of its own has the flag's (T-5). */
const zeroOrNone = (d: Draws): Partial<PoolConfig> =>
  d.oneOf<Partial<PoolConfig>>([
    { maxRequests: 0 },
    { maxQueued: 0 },
    { maxMemResources: 0 as Bytes },
    { queueTimeout: null },
    { queueTimeout: null },
  ]);

// Queries

function widenedClass(d: Draws, q: QueryClass): QueryClass {
  const options: Record<string, string> = {};
  const set = (name: string, chance: number, values: readonly string[]): void => {
    if (d.chance(chance)) options[name] = d.oneOf(values);
  };
  set("MEM_LIMIT", 0.2, ["256mb", "2gb", "20gb"]);
  set("MEM_LIMIT_EXECUTORS", 0.1, ["300mb", "3gb"]);
  set("MEM_LIMIT_COORDINATORS", 0.1, ["200mb", "1gb"]);
  set("MAX_MEM_ESTIMATE_FOR_ADMISSION", 0.1, ["100mb", "1gb"]);
  set("BUFFER_POOL_LIMIT", 0.1, ["64mb", "1gb"]);
  set("SCRATCH_LIMIT", 0.1, ["0", "200mb"]);
  set("THREAD_RESERVATION_LIMIT", 0.05, ["1", "2"]);
  set("ENABLE_TRIVIAL_QUERY_FOR_ADMISSION", 0.1, ["false"]);
  const followsMtDop = d.chance(0.25);
  return { ...q, options, mtDop: followsMtDop ? d.between(1, 4) : 0, instancesFollowMtDop: followsMtDop };
}

// Traffic

function widenedTraffic(
  d: Draws,
  { arrivals: before }: Scenario,
  cluster: ClusterSpec,
  queries: readonly QueryClass[],
  lastsAnHour: boolean,
): Arrival[] {
  const arrivals = before.map((a) => ({
    ...a,
    route: widenedRoute(d, a.route, cluster),
    retry: d.chance(0.25) && !lastsAnHour ? STUBBORN : a.retry,
  }));
  const common = arrivals[0]!;
  if (d.chance(0.2)) arrivals.push(restlessClients(d, common, lastsAnHour));
  if (d.chance(0.3)) arrivals.push(randomTrace(d, common, cluster, queries));
  if (lastsAnHour) arrivals.push(aroundTheHour(d, common));
  return arrivals;
}

/** Asks again at once, as often as it takes. */
const STUBBORN: RetryPolicy = {
  on: ["rejected", "timedOut", "failed", "cancelled"],
  attempts: Number.POSITIVE_INFINITY,
  first: 0 as Millis,
  factor: 1,
  most: 0 as Millis,
  jitter: "none",
};

const restlessClients = (d: Draws, { mix, from, to, route, retry }: Arrival, stops: boolean): Arrival => ({
  mix,
  from,
  to,
  route,
  retry,
  kind: "clients",
  clients: d.between(1, 6),
  think: { kind: "fixed", value: 0 },
  requests: stops ? 3 : Number.POSITIVE_INFINITY,
});

/** The first hour of the day ends in the middle of it. */
const aroundTheHour = (d: Draws, { mix, route, retry }: Arrival): Arrival => ({
  mix,
  from: (HOUR_MS - 1500) as Instant,
  to: (HOUR_MS + 1500) as Instant,
  route,
  retry,
  kind: "rate",
  perSecond: d.between(1, 20),
  day: [d.oneOf([0, 1]), d.oneOf([0, 1, 5])],
});

function randomTrace(
  d: Draws,
  { from, to, route, retry }: Arrival,
  cluster: ClusterSpec,
  queries: readonly QueryClass[],
): Arrival {
  const coordinators = coordinatorsOf(backendsOf(cluster));
  let at = 0;
  const rows = Array.from({ length: d.between(1, 25) }, (_, i): TraceRow => {
    at += d.oneOf([0, 0, 10, 150]);
    return {
      at: at as Instant,
      queryClass: d.below(queries.length),
      user: d.oneOf([null, "ana", "eve"]),
      pool: d.oneOf([null, null, "root.c"]),
      coordinator: d.oneOf([null, d.oneOf(coordinators)]),
      duration: d.oneOf([null, 0, 300]) as Millis | null,
      peak: d.oneOf([null, 0, GiB]) as Bytes | null,
      spilled: d.oneOf([0, 0, 100 * MiB]) as Bytes,
      shape: null,
      after: i > 0 && d.chance(0.3) ? { row: d.below(i), think: d.oneOf([0, 40]) as Millis } : null,
    };
  });
  return { mix: [], from, to, route, retry, kind: "trace", file: "sweep", scale: 1, hold: "lastRow", rows };
}

// Faults

/** A statestore that stops, mostly for good. */
function widenedFaults(d: Draws, faults: readonly Fault[]): readonly Fault[] {
  if (d.chance(0.85)) return faults;
  const stops: Fault = { kind: "statestoreStops", at: d.between(0, 4000) as Instant };
  return [...faults, stops].sort((a, b) => a.at - b.at);
}

// Flags

function otherFlags(d: Draws): ImpalaFlags {
  const or = <T>(chance: number, values: readonly T[], otherwise: T): T =>
    d.chance(chance) ? d.oneOf(values) : otherwise;
  const f = DEFAULT_FLAGS;
  return {
    ...f,
    queue_wait_timeout_ms: or(0.5, [0, 0, 300, 5000], f.queue_wait_timeout_ms),
    clamp_query_mem_limit_backend_mem_limit: or(0.15, [false], true),
    use_dedicated_coordinator_estimates: or(0.2, [false], true),
    balance_queries_across_executor_groups: or(0.4, [true], false),
    admission_control_stale_topic_threshold_ms: or(0.2, [0, 60, 500], f.admission_control_stale_topic_threshold_ms),
    blacklisting_enabled: or(0.1, [false], true),
    statestore_heartbeat_frequency_ms: or(0.2, [50], f.statestore_heartbeat_frequency_ms),
    statestore_subscriber_recovery_grace_period_ms: or(0.3, [0, 200], f.statestore_subscriber_recovery_grace_period_ms),
    release_backend_states_delay_ms: or(0.3, [0, 50], f.release_backend_states_delay_ms),
    batched_release_decay_factor: or(0.2, [1, 4], f.batched_release_decay_factor),
    admission_status_wait_time_ms: or(0.3, [0, 5], f.admission_status_wait_time_ms),
    admission_status_retry_time_ms: or(0.3, [0, 70], f.admission_status_retry_time_ms),
    admission_heartbeat_frequency_ms: or(0.2, [20, 5000], f.admission_heartbeat_frequency_ms),
    cluster_membership_retained_removed_coords: or(0.1, [1], f.cluster_membership_retained_removed_coords),
  };
}
