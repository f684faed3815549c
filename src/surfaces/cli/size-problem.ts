/**
 * From a scenario, or a log and a scenario's cluster, to the problem that `size` solves: the days drawn once,
 * the pools as the files have them.
 */
import { basename, resolve } from "node:path";
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
import { wholeMicros } from "../../workload/draw.ts";
import { poolResolver } from "../../workload/pool-resolver.ts";
import { consistencyOf } from "../../workload/query-log/consistency.ts";
import { type DemandOptions, imputedShareOf } from "../../workload/query-log/demand.ts";
import type { QueryLog } from "../../workload/query-log/read-query-log.ts";
import {
  firstAtOrAfter,
  isOpenTraffic,
  type RecordedRequests,
  recordRequests,
} from "../../workload/recorded-requests.ts";
import { createWorkload } from "../../workload/scenario-workload.ts";
import { type ReadTrace, readTrace, type Trace, withTraces } from "../../workload/traces.ts";

export interface ProblemFlags {
  readonly seed?: number;
  readonly log?: string;
  readonly pool?: string;
  readonly days?: number;
  readonly sigma?: number;
  /** Who stands in for refused queries of a log (insight 4.3 item 1). */
  readonly donor?: DemandOptions["donor"];
}

export const DEFAULT_DAYS = 5;
export const DEFAULT_SIGMA = 0.3;
const DAY_MS = 86_400_000;

export interface Opened {
  /** As it was read. */
  readonly scenario: Scenario;
  readonly flags: ImpalaFlags;
  readonly pools: PoolDirectory;
  readonly problem: SizeProblem;
  /** Of a recorded traffic's memory-time, what is a guess. */
  readonly imputedShare: number;
  /** Which of a log's days stands first in the problem, counted from 1; null: there is only one, or it is drawn. */
  readonly busiestDay: number | null;
  /** What holds of the traffic whatever is asked about it, in words. */
  readonly trafficRemarks: readonly string[];
}

/** Throws ConfigError. */
export async function openProblem(path: string, flags: ProblemFlags): Promise<Opened> {
  const written = readScenario(path);
  const seeded = flags.seed === undefined ? written : { ...written, seed: flags.seed };
  const traces = new TracesRead(flags.donor ?? "draw");
  const scenario = await withTraces(flags.log === undefined ? seeded : playingTrace(seeded, flags.log), traces.read);
  if (!isOpenTraffic(scenario))
    throw new ConfigError(
      { file: path, line: null },
      "size compares settings on the same requests, and here requests depend on answers (clients, retries or cancelling)",
      "Describe the demand as rate, burst, every or trace, without retries and cancelAfter.",
    );
  if (scenario.faults.some((f) => f.kind === "configChanges"))
    throw new ConfigError(
      { file: path, line: null },
      "settings are compared that hold for the whole run, and here the pool files change (fault configChanges)",
      "Leave the fault out, and ask about the files before and after it apart.",
    );
  const impala = flagsOf(scenario);
  const pools = openPools(scenario, impala);
  if (flags.log === undefined) checkPoolRequests(written, pools, path);
  const all = daysOf(scenario, impala, pools, flags.days ?? DEFAULT_DAYS, path);
  const pool = flags.pool ?? busiestPool(all, path);
  const asked = new Set(all.flatMap((d) => d.kinds.map((k) => k.pool)).filter((name) => name !== ""));
  if (!asked.has(pool))
    throw new ConfigError(
      { file: path, line: null },
      `no request of this traffic goes to ${pool}`,
      `Give one of: ${[...asked].join(", ")}`,
    );
  const configs = Object.fromEntries([
    ...leavesOf(pools),
    ...[ROOT_POOL, ...asked].map((name): [string, PoolConfig] => [name, pools.configOf(name)]),
  ]);
  const { days, busiestDay } = daysToCompareOn(all, pool, isRecorded(scenario));
  const configOf = (name: string): PoolConfig | null => {
    const found = pools.lookUp(name);
    return found.kind === "found" ? found.config : null;
  };
  const trafficRemarks = [...traces.contradictions(configOf), ...traces.remarks()];
  const { statestore } = scenario.cluster;
  const problem: SizeProblem = {
    // What dropped statistics did to estimates is in the days.
    scenario: { ...scenario, faults: scenario.faults.filter((f) => f.kind !== "statisticsDropped") },
    flags: impala,
    pool,
    configs,
    days,
    sigma: flags.sigma ?? DEFAULT_SIGMA,
    // On average a release is seen half a round after it happened, and the lags later.
    memoryLag: statestore.every / 2 + statestore.publishLag + statestore.receiveLag,
    observedConcurrency: traces.isEmpty ? null : traces.concurrencyIn(pool),
    remarks: [...dayRemarks(all.length - days.length, all.length, busiestDay, pool), ...trafficRemarks],
  };
  const { imputedShare } = traces;
  return { scenario, flags: impala, pools, problem, imputedShare, busiestDay, trafficRemarks };
}

/**
 * What was read from logs, looked at on the way: settings can only be compared on requests that come anyway, so
 * clients that waited for their answers are played as if they had not, and the report says so.
 */
class TracesRead {
  readonly #traces: Trace[] = [];
  readonly #logs: QueryLog[] = [];
  readonly #donor: DemandOptions["donor"];
  #opened = 0;

  constructor(donor: DemandOptions["donor"]) {
    this.#donor = donor;
  }

  readonly read: ReadTrace = async (file, hold) => {
    const trace = await readTrace(file, hold, this.#donor, (log) => this.#logs.push(log));
    this.#traces.push(trace);
    this.#opened += trace.requests.filter((r) => r.after !== null).length;
    return { ...trace, requests: trace.requests.map((r) => (r.after === null ? r : { ...r, after: null })) };
  };

  get isEmpty(): boolean {
    return this.#traces.length === 0;
  }

  get imputedShare(): number {
    return this.isEmpty ? 0 : Math.max(...this.#traces.map((t) => imputedShareOf(t.requests)));
  }

  /** The second check of a log (insight 4.1): estimates under files that it did not run with are another cluster's. */
  contradictions(configOf: (pool: string) => PoolConfig | null): string[] {
    return this.#logs.flatMap(({ file, queries }) => {
      const { checked, mismatches, isBroken } = consistencyOf(queries, configOf);
      return isBroken
        ? [
            `${mismatches} of ${checked} amounts in ${basename(file)} are not what the pool files give, and the files' are used (its own: waterhole import --fair-scheduler FILE --trace FILE)`,
          ]
        : [];
    });
  }

  /** Most that ran at once, by their recorded waits and holds. */
  concurrencyIn(pool: string): number {
    const changes: [at: number, by: number][] = [];
    for (const { requests } of this.#traces)
      for (const r of requests) {
        if (r.pool !== pool || r.recorded.wait === null || r.guessed.includes("hold")) continue;
        changes.push([r.at + r.recorded.wait, 1], [r.at + r.recorded.wait + r.hold, -1]);
      }
    // Who leaves in the instant in which another comes makes room for him.
    changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    let running = 0;
    let most = 0;
    for (const [, by] of changes) {
      running += by;
      most = Math.max(most, running);
    }
    return most;
  }

  remarks(): string[] {
    if (this.isEmpty) return [];
    const remarks = ["holds as recorded, contention included"];
    if (this.imputedShare > 0)
      remarks.push(`${(this.imputedShare * 100).toFixed(1)} % of the memory-time stands in for refused queries`);
    if (this.#opened > 0)
      remarks.push(
        `${this.#opened} requests of clients that waited for their answers come when they were recorded: more capacity looks better than it will be`,
      );
    return remarks;
  }
}

/** The cluster and pools of the scenario, the traffic of the log; whatever went wrong on that day is in it. */
export function playingTrace(scenario: Scenario, log: string): Scenario {
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
  return { ...scenario, arrivals: [trace], faults: [] };
}

/** Pools of the files that hosts are promised to, in name order; one whose record fails refuses every query. */
function leavesOf(pools: PoolDirectory): [string, PoolConfig][] {
  const leaves = pools.settings.allocation?.allocations.leafPools ?? new Set();
  return [...leaves].sort().flatMap((name): [string, PoolConfig][] => {
    const found = pools.lookUp(name);
    return found.kind === "found" ? [[name, found.config]] : [];
  });
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
      scenario.faults,
    );
  const first = record(0);
  if (first.count === 0)
    throw new ConfigError({ file: path, line: null }, "the traffic has no requests", "Add arrivals to the scenario.");
  if (isRecorded(scenario)) return splitIntoDays(first);
  return [first, ...Array.from({ length: wanted - 1 }, (_, i) => record(i + 1))];
}

const isRecorded = (scenario: Scenario): boolean => scenario.arrivals.every((a) => a.kind === "trace");

/** A day is whole although its last minutes bring nothing. */
const NEARLY_A_DAY = 0.95;

/** Whole days of a longer record, each from its own beginning. */
function splitIntoDays(r: RecordedRequests): RecordedRequests[] {
  const count = Math.floor((r.at[r.count - 1] ?? 0) / DAY_MS + 1 - NEARLY_A_DAY);
  if (count < 2) return [r];
  return Array.from({ length: count }, (_, day) => {
    const from = firstAtOrAfter(r, day * DAY_MS);
    const to = firstAtOrAfter(r, (day + 1) * DAY_MS);
    return {
      ...r,
      count: to - from,
      at: r.at.slice(from, to).map((at) => wholeMicros(at - day * DAY_MS)),
      duration: r.duration.slice(from, to),
      peak: r.peak.slice(from, to),
      spilled: r.spilled.slice(from, to),
      kind: r.kind.slice(from, to),
      coordinator: r.coordinator.slice(from, to),
      placementOffset: r.placementOffset.slice(from, to),
    };
  });
}

/**
 * Of a day on which the pool had nothing no p95 and no loss can be told, so it is no day to compare settings on. What
 * is tried, and what is dropped early, comes from the first day: of a record its busiest, whatever weekday it begins on.
 */
function daysToCompareOn(
  all: readonly RecordedRequests[],
  pool: string,
  areRecorded: boolean,
): { days: RecordedRequests[]; busiestDay: number | null } {
  const demands = all.map((r) => demandByPool(r).get(pool));
  const days = all.filter((_, i) => demands[i] !== undefined);
  if (!areRecorded || all.length < 2 || days.length === 0) return { days, busiestDay: null };
  const most = demands.indexOf(Math.max(...demands.map((d) => d ?? 0)));
  return { days: [all[most]!, ...days.filter((d) => d !== all[most])], busiestDay: most + 1 };
}

function dayRemarks(empty: number, of: number, busiestDay: number | null, pool: string): string[] {
  const remarks: string[] = [];
  if (empty > 0) remarks.push(`${empty} of ${of} days left out: no request of ${pool} comes on them`);
  if (busiestDay !== null) remarks.push(`what is tried comes from day ${busiestDay} of the log, its busiest`);
  return remarks;
}

/** Memory x time that requests ask for, by pool. */
function demandByPool(r: RecordedRequests): Map<string, number> {
  const demand = new Map<string, number>();
  for (let i = 0; i < r.count; i++) {
    const k = r.kinds[r.kind[i]!]!;
    if (k.unresolved === null)
      demand.set(k.pool, (demand.get(k.pool) ?? 0) + k.shape.perHostMemEstimate * r.duration[i]!);
  }
  return demand;
}

function busiestPool(days: readonly RecordedRequests[], path: string): string {
  const demand = new Map<string, number>();
  for (const day of days) for (const [pool, d] of demandByPool(day)) demand.set(pool, (demand.get(pool) ?? 0) + d);
  const found = [...demand].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))[0];
  if (found === undefined)
    throw new ConfigError(
      { file: path, line: null },
      `no request finds a pool: ${days[0]?.kinds[0]?.unresolved ?? "there are none"}`,
      "Check pools, users and REQUEST_POOL with  waterhole check.",
    );
  return found[0];
}
