/**
 * What `run` and `simulate` have in common: a scenario opened with all it names, and the report made from what
 * happened.
 */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { FollowedPools } from "../../config/followed-pools.ts";
import type { ImpalaFlags } from "../../config/impala-flags.ts";
import type { PoolDirectory, PoolSource } from "../../config/pool-directory.ts";
import { checkPoolRequests, checkThresholdPools } from "../../config/pool-requests.ts";
import type { Arrival, Fault, Scenario } from "../../config/scenario.ts";
import { backendsOf } from "../../config/scenario-cluster.ts";
import { readScenario } from "../../config/scenario-file.ts";
import { changedPools, flagsOf, openPools } from "../../config/scenario-pools.ts";
import type { PoolConfig } from "../../core/pool-config.ts";
import { chargeOfClass } from "../../insight/charge.ts";
import { HostOverAdmissionFold } from "../../insight/host-over-admission.ts";
import type { RecordsHeader, TextFile } from "../../insight/records.ts";
import type { RunSummary } from "../../insight/summary.ts";
import { SummaryFold } from "../../insight/summary-fold.ts";
import { evaluateThresholds } from "../../insight/thresholds.ts";
import { poolResolver } from "../../workload/pool-resolver.ts";
import { createWorkload } from "../../workload/scenario-workload.ts";
import { withTraces } from "../../workload/traces.ts";
import type { Workload } from "../../workload/workload.ts";
import { keepApart, type Output } from "./output-file.ts";
import { programVersion } from "./program-version.ts";
import type { RunReport } from "./run-report.ts";
import { filesOf, tracesOf } from "./scenario-files.ts";

export interface ScenarioOverrides {
  readonly seed: number | null;
}

export class ScenarioRun {
  /** As the person wrote it. */
  readonly path: string;
  readonly scenario: Scenario;
  readonly flags: ImpalaFlags;
  readonly workload: Workload;
  #pools: PoolDirectory;
  #followed: FollowedPools | null = null;
  #changes = 0;

  private constructor(path: string, scenario: Scenario) {
    this.path = path;
    this.scenario = scenario;
    this.flags = flagsOf(scenario);
    this.#pools = openPools(scenario, this.flags);
    const resolver = poolResolver(() => this.pools, this.flags, scenario.users);
    this.workload = createWorkload(scenario, resolver);
  }

  /** Throws ConfigError for everything that can be wrong before a run. */
  static async open(path: string, overrides: ScenarioOverrides): Promise<ScenarioRun> {
    const written = readScenario(path);
    const scenario = await withTraces(overrides.seed === null ? written : { ...written, seed: overrides.seed });
    const run = new ScenarioRun(path, scenario);
    // Only of classes that the file has itself: a log may speak of pools that are gone.
    checkPoolRequests(written, run.#pools, path);
    checkThresholdPools(written, run.#pools, path);
    return run;
  }

  /** Throws ConfigError when one of them would take the place of what the run reads. */
  keepApart(outputs: readonly Output[]): void {
    keepApart(outputs, [...filesOf(this.scenario), ...tracesOf(this.scenario)]);
  }

  get pools(): PoolSource {
    return this.#followed ?? this.#pools;
  }

  /**
   * From now on the pools are what stands in their files, as a daemon would see it. Null where there are no files, and
   * where the scenario puts others in their place itself (`configChanges`): then those are the story.
   */
  followPoolFiles(): FollowedPools | null {
    const { pools, faults } = this.scenario;
    if (pools.kind !== "files" || faults.some((f) => f.kind === "configChanges")) return null;
    this.#followed = new FollowedPools(this.scenario, this.flags);
    return this.#followed;
  }

  changePools(fault: Extract<Fault, { readonly kind: "configChanges" }>): void {
    this.#pools = changedPools(this.#pools, fault);
    this.#changes++;
    this.workload.configurationChanged();
  }

  /** Null where a pool's record cannot be built: its queries have been told. */
  configOf(pool: string): PoolConfig | null {
    const found = this.pools.lookUp(pool);
    return found.kind === "found" ? found.config : null;
  }

  newFold(): SummaryFold {
    const { cluster, faults } = this.scenario;
    return new SummaryFold({
      configOf: (pool) => this.configOf(pool),
      changes: () => this.#changes + (this.#followed?.changes ?? 0),
      needOf: (pool, queryClass) => this.chargeOf(pool, queryClass)?.cluster ?? null,
      admission: cluster.admission,
      mayLeak: faults.some((f) => f.kind === "releasesLost" || f.kind === "coordinatorDies"),
    });
  }

  /** Null where one controller decides: it knows all that it has admitted. */
  newHostFold(): HostOverAdmissionFold | null {
    const { cluster } = this.scenario;
    const hosts = backendsOf(cluster);
    const deciding = cluster.admission === "admissiond" ? 1 : hosts.filter((h) => h.isCoordinator).length;
    return deciding > 1 ? new HostOverAdmissionFold(hosts) : null;
  }

  recordsHeader(mode: "live" | "virtual", machine: RecordsHeader["machine"]) {
    const { pools, file, seed } = this.scenario;
    const isFiles = pools.kind === "files";
    return {
      program: programVersion,
      mode,
      seed,
      scenario: { path: this.path, text: readFileSync(file, "utf8") },
      pools: {
        fairScheduler: isFiles ? textFile(pools.fairScheduler) : null,
        llamaSite: isFiles && pools.llamaSite !== null ? textFile(pools.llamaSite) : null,
      },
      machine,
    };
  }

  report(
    summary: RunSummary,
    rest: Pick<
      RunReport,
      "mode" | "overAdmittedHosts" | "records" | "fleet" | "poolFiles" | "warnings" | "interrupted"
    >,
  ): RunReport {
    const { name, seed, thresholds } = this.scenario;
    return {
      name,
      seed,
      scenario: this.path,
      summary,
      thresholds: evaluateThresholds(thresholds, summary),
      requestedPoolOf: (queryClass) => this.#classOf(queryClass)?.requestedPool ?? "",
      chargeOf: (pool, queryClass) => this.chargeOf(pool, queryClass),
      ...rest,
    };
  }

  #classOf(name: string) {
    return this.scenario.queries.find((q) => q.name === name);
  }

  /** What one query of a class is charged in a pool; null where either is not known. */
  chargeOf(pool: string, name: string) {
    const queryClass = this.#classOf(name);
    const config = this.configOf(pool);
    return queryClass === undefined || config === null
      ? null
      : chargeOfClass(this.scenario, queryClass, config, this.flags);
  }
}

const textFile = (path: string): TextFile => ({ path: basename(path), text: readFileSync(path, "utf8") });

/** Submissions that open traffic will bring, about; closed loops and retries can bring more. */
export function expectedSubmissions({ arrivals, limits }: Scenario): number {
  const total = arrivals.map((a) => expectedOf(a, limits.time)).reduce((sum, n) => sum + n, 0);
  return Math.min(total, limits.queries);
}

/** As measured on the examples and on a cluster of 300 hosts. */
const BYTES_OF_QUERY = 3000;
const BYTES_ON_HOST = 450;

/** About what a records file of the run takes on disk. */
export const expectedRecordsBytes = (scenario: Scenario): number =>
  expectedSubmissions(scenario) * (BYTES_OF_QUERY + backendsOf(scenario.cluster).length * BYTES_ON_HOST);

/** Nobody knows how often clients will come round; this many times they may without being many. */
const ROUNDS_OF_CLIENTS = 1000;

function expectedOf(arrival: Arrival, end: number): number {
  const lasts = Math.max(0, Math.min(arrival.to, end) - arrival.from);
  switch (arrival.kind) {
    case "burst":
      return arrival.count;
    case "every":
      return Math.min(arrival.count, lasts / arrival.every);
    case "rate":
      return (arrival.perSecond * lasts) / 1000;
    case "clients":
      return arrival.clients * Math.min(arrival.requests, ROUNDS_OF_CLIENTS);
    case "trace":
      return arrival.rows.length;
  }
}
