/**
 * From a scenario, or a log and a scenario's cluster, to the problem that `size` solves: the days drawn once,
 * the pools as the files have them.
 */
import { resolve } from "node:path";
import { ConfigError } from "../../config/config-error.ts";
import type { ImpalaFlags } from "../../config/impala-flags.ts";
import type { PoolDirectory } from "../../config/pool-directory.ts";
import { checkPoolRequests } from "../../config/pool-requests.ts";
import type { Arrival, Scenario } from "../../config/scenario.ts";
import { readScenario } from "../../config/scenario-file.ts";
import { flagsOf, openPools } from "../../config/scenario-pools.ts";
import { type PoolConfig, ROOT_POOL } from "../../core/pool-config.ts";
import type { Instant, Millis } from "../../core/units.ts";
import type { SizeProblem } from "../../insight/size/problem.ts";
import { poolResolver } from "../../workload/pool-resolver.ts";
import { isOpenTraffic, type RecordedRequests, recordRequests } from "../../workload/recorded-requests.ts";
import { createWorkload } from "../../workload/scenario-workload.ts";
import { withTraces } from "../../workload/traces.ts";

export interface ProblemFlags {
  readonly seed?: number;
  readonly log?: string;
  readonly pool?: string;
  readonly days?: number;
  readonly sigma?: number;
}

export const DEFAULT_DAYS = 5;
export const DEFAULT_SIGMA = 0.3;
const DAY_MS = 86_400_000;

export interface Opened {
  readonly scenario: Scenario;
  readonly flags: ImpalaFlags;
  readonly pools: PoolDirectory;
  readonly problem: SizeProblem;
}

/** Throws ConfigError. */
export async function openProblem(path: string, flags: ProblemFlags): Promise<Opened> {
  const written = readScenario(path);
  const seeded = flags.seed === undefined ? written : { ...written, seed: flags.seed };
  const scenario = await withTraces(flags.log === undefined ? seeded : playing(seeded, flags.log));
  if (!isOpenTraffic(scenario))
    throw new ConfigError(
      { file: path, line: null },
      "size compares settings on the same requests, and here requests depend on answers (clients, retries or cancelling)",
      "Describe the demand as rate, burst, every or trace, without retries and cancelAfter.",
    );
  const impala = flagsOf(scenario);
  const pools = openPools(scenario, impala);
  if (flags.log === undefined) checkPoolRequests(written, pools, path);
  const days = daysOf(scenario, impala, pools, flags.days ?? DEFAULT_DAYS, path);
  const pool = flags.pool ?? busiestPool(days[0]!, path);
  const configs = Object.fromEntries(
    [...new Set([ROOT_POOL, ...days.flatMap((d) => d.kinds.map((k) => k.pool))])]
      .filter((name) => name !== "")
      .map((name): [string, PoolConfig] => [name, pools.configOf(name)]),
  );
  if (configs[pool] === undefined)
    throw new ConfigError(
      { file: path, line: null },
      `no request of this traffic goes to ${pool}`,
      `Give one of: ${Object.keys(configs)
        .filter((p) => p !== ROOT_POOL)
        .join(", ")}`,
    );
  const { statestore } = scenario.cluster;
  const problem: SizeProblem = {
    scenario,
    flags: impala,
    pool,
    configs,
    days,
    sigma: flags.sigma ?? DEFAULT_SIGMA,
    // On average a release is seen half a round after it happened, and the lags later.
    memoryLag: statestore.every / 2 + statestore.publishLag + statestore.receiveLag,
  };
  return { scenario, flags: impala, pools, problem };
}

/** The cluster and pools of the scenario, the traffic of the log. */
function playing(scenario: Scenario, log: string): Scenario {
  const trace: Arrival = {
    kind: "trace",
    file: resolve(log),
    scale: 1,
    hold: "lastRow",
    rows: [],
    mix: [],
    from: 0 as Instant,
    to: Number.POSITIVE_INFINITY as Instant,
    route: scenario.cluster.route,
    retry: { on: [], attempts: 1, first: 0 as Millis, factor: 1, most: 0 as Millis, jitter: "none" },
  };
  return { ...scenario, arrivals: [trace] };
}

/** Recorded traffic is one day, or as many as it has; drawn traffic has as many as one asks for. */
function daysOf(
  scenario: Scenario,
  impala: ImpalaFlags,
  pools: PoolDirectory,
  wanted: number,
  path: string,
): RecordedRequests[] {
  const record = (replication: number): RecordedRequests =>
    recordRequests(
      createWorkload(
        scenario,
        poolResolver(() => pools, impala, scenario.users),
        replication,
      ),
    );
  const first = record(0);
  if (first.count === 0)
    throw new ConfigError({ file: path, line: null }, "the traffic has no requests", "Add arrivals to the scenario.");
  if (scenario.arrivals.every((a) => a.kind === "trace")) return splitIntoDays(first);
  return [first, ...Array.from({ length: wanted - 1 }, (_, i) => record(i + 1))];
}

/** Whole days of a longer record, each from its own beginning. */
function splitIntoDays(r: RecordedRequests): RecordedRequests[] {
  const count = Math.floor((r.at[r.count - 1] ?? 0) / DAY_MS);
  if (count < 2) return [r];
  return Array.from({ length: count }, (_, day) => {
    const from = r.at.findIndex((at) => at >= day * DAY_MS);
    const after = r.at.findIndex((at) => at >= (day + 1) * DAY_MS);
    const to = after < 0 ? r.count : after;
    return {
      ...r,
      count: to - from,
      at: r.at.slice(from, to).map((at) => at - day * DAY_MS),
      duration: r.duration.slice(from, to),
      peak: r.peak.slice(from, to),
      kind: r.kind.slice(from, to),
      coordinator: r.coordinator.slice(from, to),
      placementOffset: r.placementOffset.slice(from, to),
    };
  });
}

function busiestPool(r: RecordedRequests, path: string): string {
  const demand = new Map<string, number>();
  for (let i = 0; i < r.count; i++) {
    const k = r.kinds[r.kind[i]!]!;
    if (k.unresolved === null)
      demand.set(k.pool, (demand.get(k.pool) ?? 0) + k.shape.perHostMemEstimate * r.duration[i]!);
  }
  const found = [...demand].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))[0];
  if (found === undefined)
    throw new ConfigError(
      { file: path, line: null },
      `no request finds a pool: ${r.kinds[0]?.unresolved ?? "there are none"}`,
      "Check pools, users and REQUEST_POOL with  waterhole check.",
    );
  return found[0];
}
