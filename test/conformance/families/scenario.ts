/**
 * Scenario vectors: end-to-end stories on a small cluster (steps and expectations: README of the vectors). What a
 * vector says is read here; what happens, happens in cluster.ts and service.ts.
 */
import { join } from "node:path";
import { ConfigError } from "../../../src/config/config-error.ts";
import { parseFlags } from "../../../src/config/impala-flags.ts";
import { openPoolDirectory } from "../../../src/config/pool-directory.ts";
import { parseOptionString } from "../../../src/config/query-options.ts";
import { admissionOptions } from "../../../src/config/request-shape.ts";
import { shortName } from "../../../src/config/short-name.ts";
import { groupTable } from "../../../src/config/user-groups.ts";
import type { AdmissionOptions } from "../../../src/core/admission/request.ts";
import { firstSetVerdict } from "../../../src/core/cluster/group-sets.ts";
import { Cluster, type HostSpec, type Query } from "../cluster.ts";
import { DEFAULT_SETTINGS, type MakeController } from "../controllers.ts";
import { makeCore } from "../core-controller.ts";
import { Expectations, type Wave } from "../expectations.ts";
import type { FamilyRunner, Verdict } from "../family.ts";
import { ChangingPools, flagPools, limitsToConfig, type PoolSource } from "../pools.ts";
import { type Message, ServiceClients } from "../service.ts";
import { shapeOf } from "../shapes.ts";

// biome-ignore lint/suspicious/noExplicitAny: the vectors' own schema.
type Any = any;

export const run: FamilyRunner = ({ input, expected }, dir) => runOn(makeCore, input, expected, dir);

export function runOn(makeController: MakeController, input: Any, expected: Any, dir: string): Verdict {
  const story = new Story(makeController, input, dir);
  story.play(input.steps);
  const wrong = [...story.complaints, ...story.check(expected, "in the end")];
  return wrong.length === 0 ? { kind: "pass" } : { kind: "fail", expected, got: wrong };
}

const ROUND_MS = 100;
/** Ten missed heartbeats, one a second. */
const DETECT_MS = 10_000;
/**
 * `decided` lets short time-outs fire; stories whose queries stay queued have longer ones. A little longer ones are
 * due too when what runs is still running by then.
 */
const SHORT_TIMEOUT_MS = 500;
const TIMEOUT_BEFORE_AN_END_MS = 3000;

const PATIENCE_MS = 5000;

const COUNTS: Readonly<Record<string, string>> = {
  admitted: "admitted",
  queued: "queued",
  dequeued: "dequeued",
  rejected: "rejected",
  "timed-out": "timedOut",
  released: "released",
};

class Story {
  readonly complaints: string[] = [];
  private readonly cluster: Cluster;
  private readonly service: ServiceClients | null;
  private readonly pools: ChangingPools;
  private readonly input: Any;
  private initialCounts: Record<string, number> | null = null;
  private readonly waves: Wave[] = [];
  private readonly flagAccepted: Record<string, boolean> = {};
  /** Submissions that only carried a configuration in, by pool; they don't belong to the story's counts. */
  private touches = 0;
  private turn = 0;

  constructor(makeController: MakeController, input: Any, dir: string) {
    this.input = input;
    const flags = input.flags ?? {};
    this.pools = new ChangingPools(poolsOf(input, dir));
    this.cluster = new Cluster({
      hosts: input.cluster.hosts.map(hostFrom),
      pools: this.pools,
      admissionService: input.cluster.admission_service ?? false,
      makeController,
      detectAfterMs: DETECT_MS,
      retainedRemovedCoordinators: flags.cluster_membership_retained_removed_coords ?? 1000,
      settings: {
        ...DEFAULT_SETTINGS,
        queueWaitTimeoutMs: input.pools.queue_wait_timeout_ms ?? flags.queue_wait_timeout_ms ?? 60_000,
        clampToHosts: flags.clamp_query_mem_limit_backend_mem_limit ?? true,
        dedicatedCoordinatorEstimates: flags.use_dedicated_coordinator_estimates ?? true,
        balanceGroups: flags.balance_queries_across_executor_groups ?? false,
        staleThresholdMs: flags.admission_control_stale_topic_threshold_ms ?? 5000,
      },
    });
    this.service = input.cluster.admission_service
      ? new ServiceClients(this.cluster, flags.admission_max_retry_time_s ?? 60, chanceFrom(1))
      : null;
    this.cluster.startRounds(ROUND_MS);
  }

  // ---- steps --------------------------------------------------------------------------------------------------

  play(steps: readonly Any[]): void {
    for (const step of steps) this.step(step);
  }

  private step(step: Any): void {
    const { cluster } = this;
    switch (step.op) {
      case "submit":
        for (const name of step.ids ?? [step.id]) this.submit(step, name);
        break;
      case "burst":
        for (let i = 0; i < step.count; i++) this.submit(step, `burst-${cluster.queries.length}`);
        break;
      case "clients":
        for (let i = 0; i < step.count; i++) this.client(step, step.each);
        break;
      case "wait":
        this.wait(step);
        break;
      case "close":
        this.close(cluster.byName(step.id));
        break;
      case "cancel":
        this.cancel(cluster.byName(step.id));
        break;
      case "release-host":
        cluster.releaseHost(cluster.byName(step.id), [step.host]);
        break;
      case "set-pool-limits":
        this.pools.change(step.pool, limitsToConfig(step.limits));
        break;
      case "touch-pool":
        this.touch(step.pool);
        break;
      case "stop-host":
        cluster.killHost(step.host);
        break;
      case "start-host":
        cluster.startHost(step.host);
        break;
      case "quiesce-host":
        cluster.quiesceHost(step.host);
        break;
      case "add-host":
        cluster.addHost(hostFrom(step.host));
        break;
      case "hide-host":
      case "show-host":
        cluster.setHidden(step.host, step.op === "hide-host");
        break;
      case "stop-statestore":
        cluster.stopStatestore();
        break;
      case "restart-statestore":
      case "start-statestore":
        cluster.restartStatestore();
        break;
      case "stop-service":
        cluster.stopService();
        break;
      case "start-service":
        cluster.startService();
        break;
      case "set-service-memory":
        this.theService().setMemory(step.in_use, step.limit);
        break;
      case "lose-messages":
        this.theService().lose(step.message as Message, step.rate ?? 1);
        break;
      case "start-with-flag":
        this.flagAccepted[String(step.value)] = isAccepted(step.flag, step.value);
        break;
      case "repeat":
        for (let i = 0; i < step.times; i++) this.play(step.steps);
        break;
      case "end-in-waves":
        this.endInWaves();
        break;
      case "check":
        this.complaints.push(...this.check(step.expected, `at ${cluster.time.now} ms`));
        break;
      default:
        throw new Error(`this stepper has no step "${step.op}"`);
    }
  }

  private theService(): ServiceClients {
    if (this.service === null) throw new Error("the story speaks of an admission service and has none");
    return this.service;
  }

  // ---- submissions ----------------------------------------------------------------------------------------------

  private submit(step: Any, name: string): Query {
    const query = this.cluster.newQuery({
      name,
      at: step.at === "round-robin" ? this.nextCoordinator() : step.at,
      pool: step.pool ?? "",
      user: step.user ?? "user",
      resolved: false,
      durationMs: step.duration_ms ?? null,
      startsFragments: true,
      delayBeforeMs: step.delay_before_admission_ms ?? 0,
      delayAfterMs: step.delay_after_admission_ms ?? 0,
      blacklisted: [],
      placementOffset: 0,
      shape: this.shapeFor(step),
    });
    if (step.kind === "no-admission") {
      query.outcome = "not-subject-to-admission";
      this.cluster.leave(query);
    } else if (query.spec.delayBeforeMs > 0)
      this.cluster.time.at(this.cluster.time.now + query.spec.delayBeforeMs, () => this.reachAdmission(query, step));
    else this.reachAdmission(query, step);
    return query;
  }

  private reachAdmission(query: Query, step: Any): void {
    if (this.service !== null) {
      const handing = { errorRate: step.admit_message_error_rate ?? 0, isCompressed: step.compressed_request ?? false };
      this.service.admit(query, handing);
      return;
    }
    this.cluster.submit(query);
    if (query.outcome === "queued") this.cluster.armTimeout(query);
  }

  private nextCoordinator(): string {
    const coordinators = this.cluster.liveCoordinators();
    return coordinators[this.turn++ % coordinators.length]!;
  }

  private shapeFor(step: Any) {
    const { pool } = this.resolved(step);
    const config = this.pools.config(pool);
    const alone = step.kind === "trivial" || step.kind === "coordinator-only";
    const given: Record<string, Any> = step.options ?? {};
    const defaults = admissionOptions(Object.fromEntries(parseOptionString(config.defaultQueryOptions).options));
    return shapeOf({
      stmtType: step.stmt_type ?? "QUERY",
      perHostEstimate: step.estimate?.per_host ?? 10 * 1024 * 1024,
      coordEstimate: step.estimate?.dedicated_coordinator ?? 10 * 1024 * 1024,
      trivial: step.kind === "trivial",
      coordinatorOnly: alone,
      allCoordinators: step.kind === "all-coordinators" && !config.onlyCoordinators,
      executors: step.kind === "all-coordinators" && !config.onlyCoordinators ? 0 : "all",
      slotsPerHost: step.slots_per_host ?? 1,
      coordSlots: 1,
      minReservation: alone ? 0 : (step.min_reservation ?? 0),
      coordMinReservation: alone ? (step.min_reservation ?? 0) : 0,
      options: { ...defaults, ...optionsFrom(given) },
    });
  }

  private resolved(step: Any): { readonly pool: string } {
    const resolution = this.pools.resolve(step.pool ?? "", step.user ?? "user");
    return "error" in resolution ? { pool: step.pool ?? "" } : resolution;
  }

  /** One query after the other; gives one up when it takes too long. */
  private client(step: Any, left: number): void {
    if (left === 0) return;
    const query = this.submit(step, `client-${this.cluster.queries.length}`);
    const next = (): void => this.client(step, left - 1);
    if (query.gone) this.cluster.time.at(this.cluster.time.now, next);
    else query.whenGone.push(next);
    if (step.give_up_after_ms !== undefined)
      this.cluster.time.at(this.cluster.time.now + step.give_up_after_ms, () => this.cancel(query));
  }

  /** A submission that brings the pool's newest configuration in and is refused itself (REJ-B3). */
  private touch(pool: string): void {
    for (const at of this.service === null
      ? this.cluster.liveCoordinators()
      : this.cluster.liveCoordinators().slice(0, 1)) {
      const step = { at, pool, kind: "coordinator-only", options: { thread_reservation_aggregate_limit: 1 } };
      const shape = this.shapeFor(step);
      const threads = shape.fragments.map((f) => ({ ...f, threadReservationPerInstance: 2 }));
      const query = this.cluster.newQuery({
        name: `touch ${pool}`,
        at,
        pool,
        user: "user",
        resolved: false,
        durationMs: 0,
        startsFragments: false,
        delayBeforeMs: 0,
        delayAfterMs: 0,
        blacklisted: [],
        placementOffset: 0,
        shape: { ...shape, fragments: threads },
      });
      this.cluster.submit(query);
      if (query.outcome !== "rejected") throw new Error(`touching ${pool} ended as ${query.outcome}`);
      this.cluster.queries.splice(this.cluster.queries.indexOf(query), 1);
      this.touches += 1;
    }
  }

  private close(query: Query): void {
    if (query.outcome === "queued" || query.outcome === "undecided") this.cancel(query);
    else this.cluster.finish(query);
  }

  private cancel(query: Query): void {
    if (this.service === null) this.cluster.cancel(query);
    else this.service.cancel(query);
  }

  private endInWaves(): void {
    for (;;) {
      const running = this.cluster.queries.filter((q) => !q.gone && q.admission !== null);
      const remainingQueued = this.numQueued();
      if (running.length === 0 && remainingQueued === 0) return;
      if (this.waves.length > 1000) throw new Error("the waves don't come to an end");
      const before = this.counts().admitted!;
      for (const query of running) this.close(query);
      this.cluster.time.advanceTo(this.cluster.time.now + 3 * ROUND_MS);
      this.waves.push({ remainingQueued, growth: this.counts().admitted! - before });
    }
  }

  private numQueued(): number {
    return this.cluster.queries.filter((q) => !q.gone && q.outcome === "queued").length;
  }

  // ---- waiting ------------------------------------------------------------------------------------------------------

  private wait(step: Any): void {
    const { cluster } = this;
    const { time } = cluster;
    if (step.ms !== undefined) time.advanceTo(time.now + step.ms);
    else if (step.until === "decided") this.untilDecided();
    else if (step.until === "finished") this.untilFinished();
    else if (step.until === "updates-propagated") this.rounds(3);
    else if (step.until === "membership-updated") {
      this.rounds(1);
      time.advanceUntil("everybody knows the members", () => !cluster.membershipIsBehind());
      this.rounds(1);
    } else if (step.until === "heartbeat") {
      const before = this.theService().heartbeats;
      time.advanceUntil("a heartbeat has come", () => this.theService().heartbeats > before);
    } else throw new Error(`this stepper can't wait until "${step.until}"`);
  }

  /** Queries without an end of their own stay. The service has some heartbeats' time to hear of the others' end. */
  private untilFinished(): void {
    const { cluster } = this;
    const { time, queries } = cluster;
    const stays = (q: Query): boolean => !q.gone && q.admission !== null && q.spec.durationMs === null;
    time.advanceUntil("all queries have finished", () => queries.every((q) => q.gone || stays(q)));
    if (this.service === null) return;
    const patience = time.now + PATIENCE_MS;
    time.advanceUntil(
      "the service has heard of it",
      () => cluster.theService().numQueries() <= queries.filter(stays).length || time.now > patience,
    );
  }

  private untilDecided(): void {
    const { time, queries } = this.cluster;
    const isOpen = (q: Query): boolean =>
      !q.gone && (q.outcome === "undecided" || this.service?.isUnanswered(q) === true);
    time.advanceUntil("every query is decided", () => !queries.some(isOpen));
    const isDueSoon = (q: Query): boolean => {
      if (q.gone || q.outcome !== "queued") return false;
      const timeout = this.cluster.controllerFor(q.spec.at).timeoutOf(q.id);
      if (timeout === null) return false;
      const deadline = q.history.at(-1)!.at + timeout;
      return timeout <= SHORT_TIMEOUT_MS || (timeout <= TIMEOUT_BEFORE_AN_END_MS && this.nextEnd() > deadline);
    };
    time.advanceUntil("short time-outs have fired", () => !queries.some(isDueSoon));
  }

  /** When the first running query ends by itself; 0: none does. */
  private nextEnd(): number {
    const ends = this.cluster.queries.flatMap((q) =>
      q.gone || q.admission === null || q.spec.durationMs === null ? [] : [q.history.at(-1)!.at + q.spec.durationMs],
    );
    return ends.length === 0 ? 0 : Math.min(...ends);
  }

  private rounds(n: number): void {
    const { time } = this.cluster;
    if (this.cluster.statestoreIsUp()) {
      const target = this.cluster.rounds + n;
      time.advanceUntil("updates have gone around", () => this.cluster.rounds >= target);
    } else time.advanceTo(time.now + n * ROUND_MS);
  }

  // ---- what can be looked at ----------------------------------------------------------------------------------------

  /** Holds what has happened so far against what a vector says. */
  check(expected: Any, when: string): string[] {
    const counts = this.counts();
    this.initialCounts ??= counts;
    const { cluster, waves, flagAccepted, initialCounts } = this;
    const verdictOf = (q: Query): string | null => this.verdictFor(q);
    return new Expectations({ cluster, waves, flagAccepted, counts, initialCounts, verdictOf }, when).check(expected);
  }

  private counts(): Record<string, number> {
    const pools = this.cluster.controllers().flatMap(({ controller }) => Object.values(controller.figures().pools));
    const sums: Record<string, number> = {};
    for (const [name, total] of Object.entries(COUNTS))
      sums[name] = pools.reduce((sum, p) => sum + (p.totals[total] ?? 0), 0);
    sums.rejected! -= this.touches;
    return sums;
  }

  private verdictFor(q: Query): string | null {
    const options = this.input.steps.find((s: Any) => s.id === q.spec.name)?.options ?? {};
    return firstSetVerdict({
      numNodes: options.num_nodes ?? 0,
      enableReplan: options.enable_replan ?? true,
      isAutoScalable: !q.spec.shape.coordinatorOnly && q.spec.shape.stmtType === "QUERY",
      isOnlyCoordinators: this.pools.config(q.pool).onlyCoordinators,
    });
  }
}

// ---- reading a vector -------------------------------------------------------------------------------------------------

const hostFrom = (h: Any): HostSpec => ({
  name: h.name,
  coordinator: h.coordinator,
  executor: h.executor,
  admitMemLimit: h.admit_mem_limit,
  slots: h.admission_slots,
  group: { name: h.executor_groups?.[0]?.name ?? "default", minSize: h.executor_groups?.[0]?.min_size ?? 1 },
});

function optionsFrom(given: Record<string, Any>): Partial<AdmissionOptions> {
  const names: Record<string, keyof AdmissionOptions> = {
    mem_limit: "memLimit",
    mem_limit_executors: "memLimitExecutors",
    mem_limit_coordinators: "memLimitCoordinators",
    max_mem_estimate_for_admission: "maxMemEstimateForAdmission",
    buffer_pool_limit: "bufferPoolLimit",
    thread_reservation_limit: "threadReservationLimit",
    thread_reservation_aggregate_limit: "threadReservationAggregateLimit",
    enable_trivial_query_for_admission: "enableTrivialQueryForAdmission",
  };
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, v]) => (names[name] === undefined ? [] : [[names[name], v]])),
  );
}

function poolsOf(input: Any, dir: string): PoolSource {
  const { pools } = input;
  if (pools.mode === "flags") return flagPools(pools.limits ?? {});
  const { allocation_file, llama_site_file } = pools.config_files;
  const members: Record<string, string[]> = {};
  for (const { group, members: users } of input.flags?.injected_group_members ?? [])
    for (const user of users) members[user] = [...(members[user] ?? []), group];
  const directory = openPoolDirectory(
    {
      fairScheduler: allocation_file === null ? null : join(dir, allocation_file),
      llamaSite: llama_site_file === null ? null : join(dir, llama_site_file),
    },
    { groups: groupTable(members) },
  );
  return {
    resolve(requested, user) {
      const found = directory.resolve(requested, user);
      if (found.kind === "refused") return { error: found.error };
      return {
        pool: found.pool,
        user: shortName(found.effectiveUser) ?? found.effectiveUser,
        groups: directory.groupsOf(user),
      };
    },
    config: (pool) => directory.configOf(pool),
  };
}

function isAccepted(flag: string, value: unknown): boolean {
  try {
    parseFlags({ [flag]: value });
    return true;
  } catch (error) {
    if (error instanceof ConfigError) return false;
    throw error;
  }
}

/** The same fractions for every run. */
function chanceFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) / 2 ** 24;
  };
}
