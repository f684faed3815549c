/**
 * A scenario on the live fleet: real threads, real memory, real files, on a clock that is real time multiplied.
 *
 * The main thread takes requests from the workload when they are due, hands them to their coordinator, and is told
 * what became of them; it never waits. The run is over when nothing is due and nothing is under way; then the fleet is
 * stopped and every book is looked at once more.
 *
 *   running --drain--> draining --stop--> stopping --> over
 *      '------ nothing left ---------------------------^
 *
 *   draining: nothing is submitted any more, who waits is cancelled, who runs may finish (Ctrl-C once).
 *   stopping: who runs is cancelled too (Ctrl-C twice).
 */
import { createHistogram } from "node:perf_hooks";
import { ConfigError } from "../config/config-error.ts";
import { controllerFlagsOf } from "../config/controller-flags.ts";
import type { ImpalaFlags } from "../config/impala-flags.ts";
import type { PoolSource } from "../config/pool-directory.ts";
import type { Fault, Scenario } from "../config/scenario.ts";
import { backendsOf } from "../config/scenario-cluster.ts";
import { changedPools, flagsOf, openPools } from "../config/scenario-pools.ts";
import { serviceTimingOf } from "../config/service-timing.ts";
import {
  type ControllerFlags,
  type ControllerOptions,
  controllerOptions,
} from "../core/admission/controller-options.ts";
import type { TellHostCheck } from "../core/admission/host-looks.ts";
import { fail, InvariantError } from "../core/assert.ts";
import type { BackendDescriptor } from "../core/cluster/backend.ts";
import type { RunEvent } from "../core/events.ts";
import { checkLedger } from "../core/memory/ledger-checks.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig, ROOT_POOL } from "../core/pool-config.ts";
import type { Instant, Millis } from "../core/units.ts";
import { poolResolver } from "../workload/pool-resolver.ts";
import { createWorkload } from "../workload/scenario-workload.ts";
import { withTraces } from "../workload/traces.ts";
import type { Ending, Workload } from "../workload/workload.ts";
import { Admissiond } from "./admissiond.ts";
import { FineAlarm, finenessFor } from "./alarm.ts";
import { AlarmThread } from "./alarm-thread.ts";
import { ClusterView, OwnView } from "./cluster-view.ts";
import { Coordinator, type CoordinatorSurroundings, type OpenDesk } from "./coordinator.ts";
import { type EmulatedClock, startClock } from "./emulated-clock.ts";
import { Fleet, type HostMarks } from "./fleet.ts";
import { hostSpecs } from "./host-sizes.ts";
import { LiveFaults } from "./live-faults.ts";
import type { LiveQuery } from "./live-query.ts";
import { LiveStatestore, type SubscriberSpec } from "./live-statestore.ts";
import { LocalDesk } from "./local-desk.ts";
import type { Progress } from "./protocol.ts";
import type { RunBus } from "./run-bus.ts";
import { CoordinatorThreads } from "./thread-desk.ts";
import { type Appointment, Timers } from "./timers.ts";
import { withResolvers } from "./with-resolvers.ts";

/** The pools as they are now; a fault can put others in their place. */
export interface LivePools {
  current(): PoolSource;
  change(fault: Extract<Fault, { kind: "configChanges" }>): void;
  /** Files that are followed while the run goes on; left out: none are. */
  readonly followed?: FollowedFiles;
}

/** Emulated time begins, and from then on the files are looked at when they are due. */
export interface FollowedFiles {
  begin(): void;
  readonly nextCheck: Instant;
  /** True: pools or placement may be others than before. */
  check(now: Instant): boolean;
}

export interface LiveOptions {
  readonly flags: ImpalaFlags;
  /** Where the run's scratch directory is made; left out: below the system's temporary directory. */
  readonly scratchBase?: string;
  /** Queries that one host can hold at a time. */
  readonly queriesPerHost?: number;
  /**
   * Look at one host's whole ledger after the other all the while (I1 to I6, I8, I9, I11, I12), and real operators'
   * buffers, pages and files (I7 to I10, I12); false: only at the end.
   */
  readonly check?: boolean;
}

export interface LiveReport {
  /** Emulated and real time from the first instant to the last query's end. */
  readonly took: { readonly emulated: Millis; readonly realMs: number };
  readonly threads: number;
  readonly hosts: readonly HostMarks[];
  /** Real microseconds from submission, for queries admitted at once, until a fragment's minimum was claimed. */
  readonly starts: { readonly count: number; readonly p50: number; readonly p95: number; readonly max: number };
  /** Real microseconds that the main thread kept its appointments late. */
  readonly lateness: { readonly p50: number; readonly p99: number; readonly max: number };
  /** Whole ledgers looked at while it ran. */
  readonly checks: number;
  /** How the run came to its end. */
  readonly ended: "complete" | "drained" | "stopped";
  /** What was not as it should be, after the stop or by a thread's failing; empty. */
  readonly leftBehind: readonly string[];
  /** Scratch directories of dead processes that were removed at the start. */
  readonly scratchRemoved: readonly string[];
}

/** Hosts and pools can be more than anybody will have; a ledger costs memory only where it is used. */
const MOST_POOLS = 1024;
const QUERIES_PER_HOST = 4096;
const MOST_THREADS = 10;
const ADMISSIOND = "admissiond:29500";
/** Submissions in one turn of the event loop: a burst must not hold up what comes from the threads. */
const MOST_IN_A_TURN = 64;
/** Real milliseconds between two looks at a ledger. */
const CHECK_EVERY = 5;
/** Real milliseconds that a stop waits for cancelled instances to say so. */
const STOP_PATIENCE = 2000;

/** Opens everything that the scenario names and starts; the errors of its files come as ConfigError. */
export async function openLiveRun(
  written: Scenario,
  bus: RunBus,
  options: Omit<LiveOptions, "flags"> = {},
): Promise<LiveRun> {
  const scenario = await withTraces(written);
  const flags = flagsOf(scenario);
  let pools = openPools(scenario, flags);
  const workload = createWorkload(
    scenario,
    poolResolver(() => pools, flags, scenario.users),
  );
  const live: LivePools = {
    current: () => pools,
    change: (fault) => {
      pools = changedPools(pools, fault);
      workload.configurationChanged();
    },
  };
  return new LiveRun(scenario, workload, live, bus, { ...options, flags });
}

/** Starts at once; `drain` and `stop` end it early. */
export function runLive(
  scenario: Scenario,
  workload: Workload,
  pools: LivePools,
  bus: RunBus,
  options: LiveOptions,
): { readonly run: LiveRun; readonly done: Promise<LiveReport> } {
  const run = new LiveRun(scenario, workload, pools, bus, options);
  return { run, done: run.run() };
}

export class LiveRun {
  readonly scenario: Scenario;
  readonly backends: readonly BackendDescriptor[];
  readonly cluster: ClusterView;
  readonly fleet: Fleet;
  /** Null: each coordinator decides for its own queries. */
  readonly admissiond: Admissiond | null;
  readonly coordinators: readonly Coordinator[];
  /** Of the coordinators that have some. */
  readonly #coordinatorThreads: CoordinatorThreads[] = [];
  readonly statestore: LiveStatestore;
  readonly workload: Workload;
  readonly timers: Timers;
  readonly #clock: EmulatedClock;
  readonly #alarmThread: AlarmThread;
  readonly bus: RunBus;
  readonly #pools: LivePools;
  readonly #faults: LiveFaults;
  readonly #hostNumbers: ReadonlyMap<string, number>;
  readonly #poolNumbers = new Map<string, number>();
  readonly #poolNames: string[] = [];
  readonly #configs = new Map<string, PoolConfig>();
  /** Who hears of an instance. */
  readonly #routes = new Map<number, { readonly coordinator: Coordinator; readonly query: LiveQuery }>();
  readonly #starts = createHistogram();
  #state: "new" | "running" | "draining" | "stopping" | "over" = "new";
  readonly #underWay = new Set<LiveQuery>();
  #arrival: Appointment | null = null;
  #isArriving = false;
  #lastEnd = 0 as Instant;
  readonly #isChecked: boolean;
  #checks = 0;
  readonly #over: PromiseWithResolvers<void> = withResolvers();

  constructor(scenario: Scenario, workload: Workload, pools: LivePools, bus: RunBus, options: LiveOptions) {
    this.scenario = scenario;
    this.workload = workload;
    this.#pools = pools;
    this.#isChecked = options.check === true;
    this.bus = bus;
    this.#clock = startClock(scenario.scale.time);
    this.#alarmThread = new AlarmThread(
      () => alarm.rung(),
      (error) => this.#broke(error),
    );
    const alarm = new FineAlarm(this.#clock, this.#alarmThread, finenessFor(scenario.scale.time));
    this.timers = new Timers(this.#clock, (error) => this.#broke(error), alarm);
    this.backends = backendsOf(scenario.cluster);
    this.#hostNumbers = new Map(this.backends.map((b, i) => [b.address, i]));
    this.cluster = new ClusterView(this.backends, options.flags.cluster_membership_retained_removed_coords);
    this.fleet = this.#openFleet(options);
    this.#faults = new LiveFaults(this);
    this.admissiond = scenario.cluster.admission === "admissiond" ? this.#openAdmissiond(options.flags) : null;
    this.coordinators = this.#openCoordinators(options.flags);
    this.statestore = new LiveStatestore(scenario.cluster.statestore, this.#subscribers(), {
      timers: this.timers,
      fleet: this.fleet,
      now: () => this.now(),
      emit: (event) => this.emit(event),
      pools: this.#poolNames,
    });
  }

  now(): Instant {
    return this.#clock.now();
  }

  emit(event: RunEvent): void {
    this.bus.emit("event", event);
  }

  get state(): "new" | "running" | "draining" | "stopping" | "over" {
    return this.#state;
  }

  /** Queries under way. */
  get live(): number {
    return this.#underWay.size;
  }

  /** Once. Resolves when all is over and nothing is left; rejects when the run broke, with nothing left either. */
  async run(): Promise<LiveReport> {
    await this.#startThreads();
    // Emulated time begins when the hosts are there: what starting threads takes is nobody's wait.
    this.#clock.restart();
    const startedAt = performance.now();
    if (this.#state === "new") {
      this.#state = "running";
      this.statestore.start(this.now());
      this.#faults.plan();
      this.#followFiles();
      this.#armArrivals();
      if (this.#isChecked) void this.#check();
    } else this.#over.resolve();
    const broken = await this.#over.promise.then(
      () => null,
      (error: unknown) => error ?? new Error("the run broke"),
    );
    const realMs = performance.now() - startedAt;
    await this.#stopCoordinators(broken === null);
    const ended = this.#state === "draining" ? "drained" : this.#state === "stopping" ? "stopped" : "complete";
    this.#state = "over";
    this.timers.close();
    await this.#alarmThread.stop();
    const hosts = await this.fleet.marks();
    const leftBehind = await this.fleet.stop();
    if (broken !== null) throw broken;
    return {
      took: { emulated: this.#lastEnd as number as Millis, realMs },
      threads: this.fleet.numThreads,
      hosts,
      starts: this.#startFigures(),
      lateness: { p50: this.#lateAt(50), p99: this.#lateAt(99), max: this.#lateAt(100) },
      checks: this.#checks,
      ended,
      leftBehind,
      scratchRemoved: this.fleet.scratch.removed,
    };
  }

  async #startThreads(): Promise<void> {
    // A thread can fail before anybody waits for the run's end.
    this.#over.promise.catch(() => undefined);
    await Promise.all([
      this.#alarmThread.start(),
      this.fleet.start(),
      ...this.#coordinatorThreads.map((t) => t.start()),
    ]);
  }

  /** In order: what their controllers did last is in the records too. */
  async #stopCoordinators(inOrder: boolean): Promise<void> {
    await Promise.all(this.#coordinatorThreads.map((t) => t.stop(inOrder)));
  }

  /** Ctrl-C once. */
  drain(): void {
    if (this.#state === "new") this.#state = "draining";
    if (this.#state !== "running") return;
    this.#state = "draining";
    this.timers.cancel(this.#arrival);
    for (const c of this.coordinators) for (const q of [...c.queries]) c.leaveQueue(q);
    this.#overIfDone();
  }

  /** Ctrl-C twice. */
  stop(): void {
    this.drain();
    if (this.#state !== "draining") return;
    this.#state = "stopping";
    for (const c of this.coordinators) for (const q of [...c.queries]) c.cancel(q);
    setTimeout(() => this.#over.resolve(), STOP_PATIENCE).unref();
    this.#overIfDone();
  }

  // Arrivals

  #armArrivals(): void {
    if (this.#state !== "running" || this.#isArriving) return;
    const at = this.workload.nextAt();
    this.timers.cancel(this.#arrival);
    this.#arrival = null;
    if (at === Number.POSITIVE_INFINITY) this.#overIfDone();
    else this.#arrival = this.timers.at(at, () => this.#arrive());
  }

  #arrive(): void {
    this.#isArriving = true;
    let taken = 0;
    for (; this.#state === "running" && taken < MOST_IN_A_TURN && this.workload.nextAt() <= this.now(); taken++) {
      const submission = this.workload.take();
      this.#coordinatorFor(submission.coordinator).submit(submission, this.now());
    }
    this.#isArriving = false;
    if (taken === MOST_IN_A_TURN) this.soon(() => this.#arrive());
    else this.#armArrivals();
  }

  #coordinatorFor(address: string): Coordinator {
    return this.coordinators.find((c) => c.address === address) ?? fail(`no coordinator ${address}`);
  }

  #answered(query: LiveQuery, how: Ending, at: Instant): void {
    this.#lastEnd = at;
    this.workload.ended(query.submission, how, at);
    // An ending can bring the next request nearer; look when whoever told us is done.
    this.soon(() => this.#armArrivals());
  }

  #setUnderWay(query: LiveQuery, isUnderWay: boolean): void {
    if (isUnderWay) this.#underWay.add(query);
    else if (this.#underWay.delete(query)) this.#overIfDone();
  }

  #overIfDone(): void {
    if (this.#underWay.size > 0) return;
    const isExhausted = this.#state === "running" && this.workload.nextAt() === Number.POSITIVE_INFINITY;
    if (isExhausted || this.#state === "draining" || this.#state === "stopping") {
      this.statestore.stop();
      this.#over.resolve();
    }
  }

  // The fleet

  #openFleet(options: LiveOptions): Fleet {
    try {
      return this.#newFleet(options);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      const place = { file: this.scenario.file, line: null };
      throw new ConfigError(
        place,
        error.message,
        "Give the executors less memory, or scale it down further:  scale: { memory: 1024 }",
      );
    }
  }

  #newFleet(options: LiveOptions): Fleet {
    const { scale, threads } = this.scenario;
    return new Fleet(
      {
        hosts: hostSpecs(this.scenario, this.backends),
        hasOperators: this.scenario.queries.some((q) => q.uses.kind === "operators"),
        threads: threads ?? Math.min(this.backends.length, MOST_THREADS),
        clock: this.#clock,
        memoryScale: scale.memory,
        pools: MOST_POOLS,
        queriesPerHost: options.queriesPerHost ?? QUERIES_PER_HOST,
        check: this.#isChecked,
        ...(options.scratchBase === undefined ? {} : { scratchBase: options.scratchBase }),
      },
      {
        progress: (batch) => this.guard(() => this.#progress(batch)),
        hostLost: (host, why) => this.guard(() => this.#faults.hostLost(this.backends[host]!.address, why)),
        hostReady: (host) => this.guard(() => this.#faults.hostReady(this.backends[host]!.address)),
      },
    );
  }

  #progress(batch: readonly Progress[]): void {
    for (const p of batch) {
      // Told anew: a query that is released late in the batch has held its places until then.
      const now = this.now();
      if (p.kind === "broken") {
        this.#booksBroke(p.text);
        continue;
      }
      const route = this.#routes.get(p.task);
      if (route === undefined) continue;
      if (p.kind === "finished") this.#routes.delete(p.task);
      route.coordinator.progress(route.query, p, now);
    }
  }

  hostNumber(address: string): number {
    return this.#hostNumbers.get(address) ?? fail(`no host ${address}`);
  }

  // Coordinators

  #openCoordinators(flags: ImpalaFlags): Coordinator[] {
    const around = this.#surroundings(flags);
    const settings = {
      blacklist: {
        maxMissedHeartbeats: flags.statestore_max_missed_heartbeats,
        heartbeatMs: flags.statestore_heartbeat_frequency_ms,
      },
      recoveryGraceMs: flags.statestore_subscriber_recovery_grace_period_ms,
    };
    const addresses = this.backends.filter((b) => b.isCoordinator).map((b) => b.address);
    const deskOf = this.#deskChoice(addresses, controllerFlagsOf(flags));
    return addresses.map(
      (address) => new Coordinator(address, deskOf(address), new OwnView(this.cluster, settings), around),
    );
  }

  #deskChoice(addresses: readonly string[], flags: ControllerFlags): (address: string) => OpenDesk {
    const { admissiond } = this;
    if (admissiond !== null) return (address) => (hear) => admissiond.open(address, hear);
    // One that decides alone needs no thread of its own: nobody disagrees with it, and a message costs more than it.
    if (addresses.length === 1) return (hostId) => this.#deskHere(controllerOptions({ hostId, flags }));
    return (address) => this.#deskOnThread(address, flags);
  }

  #openAdmissiond(flags: ImpalaFlags): Admissiond {
    const options = controllerOptions({ hostId: ADMISSIOND, mode: "global", flags: controllerFlagsOf(flags) });
    return new Admissiond(options, serviceTimingOf(flags), {
      timers: this.timers,
      now: () => this.now(),
      soon: (act) => this.soon(act),
      membership: () => this.cluster.membership,
      recoveryGraceMs: flags.statestore_subscriber_recovery_grace_period_ms,
      hostsChecked: this.#hostsChecked,
      losesRelease: (coordinator) => this.#faults.losesRelease(coordinator),
      tell: (told) => {
        const at = this.now();
        this.emit({ kind: "controllerCall", at, controller: ADMISSIOND, now: told.now, call: told.call });
      },
    });
  }

  readonly #hostsChecked: TellHostCheck = ({ id }, slots, hostMemory) =>
    this.emit({ kind: "hostsChecked", at: this.now(), query: id, slots, hostMemory });

  #deskHere(options: ControllerOptions): OpenDesk {
    return (tell) =>
      new LocalDesk(options, {
        timers: this.timers,
        now: () => this.now(),
        soon: (act) => this.soon(act),
        tell,
        hostsChecked: this.#hostsChecked,
      });
  }

  #deskOnThread(hostId: string, flags: ControllerFlags): OpenDesk {
    const threads = new CoordinatorThreads(
      { hostId, flags, clock: this.#clock.settings },
      { now: () => this.now(), guard: (act) => this.guard(act), broke: (error) => this.#broke(error) },
    );
    this.#coordinatorThreads.push(threads);
    return (hear) => threads.open(hear);
  }

  #subscribers(): SubscriberSpec[] {
    const { admissiond } = this;
    const ownController = (address: string): Coordinator | null =>
      admissiond === null ? (this.coordinators.find((c) => c.address === address) ?? null) : null;
    const backends = this.backends.map(({ address }, host) => ({ address, host, coordinator: ownController(address) }));
    return admissiond === null ? backends : [...backends, { address: ADMISSIOND, host: -1, coordinator: admissiond }];
  }

  #surroundings(flags: ImpalaFlags): CoordinatorSurroundings {
    return {
      fleet: this.fleet,
      timers: this.timers,
      classes: this.scenario.queries,
      releaseTiming: {
        delayMs: flags.release_backend_states_delay_ms,
        decayFactor: flags.batched_release_decay_factor,
      },
      now: () => this.now(),
      emit: (event) => this.emit(event),
      poolNumber: (name) => this.#poolNumber(name),
      configOf: (pool) => this.configOf(pool),
      rootConfig: () => this.configOf(ROOT_POOL),
      hostNumber: (address) => this.hostNumber(address),
      answered: (query, how, at) => this.#answered(query, how, at),
      setUnderWay: (query, isUnderWay) => this.#setUnderWay(query, isUnderWay),
      route: (task, coordinator, query) => void this.#routes.set(task, { coordinator, query }),
      noteStart: (query, at) => this.#noteStart(query, at),
    };
  }

  #noteStart(query: LiveQuery, at: Instant): void {
    if (query.wasQueued) return;
    const micros = ((at - query.submittedAt) / this.scenario.scale.time) * 1000;
    this.#starts.record(Math.max(1, Math.round(micros * 1000)));
  }

  #lateAt(percentile: number): number {
    return Math.round((this.timers.latenessAt(percentile) / this.scenario.scale.time) * 10_000) / 10;
  }

  #startFigures(): LiveReport["starts"] {
    const micros = (nanos: number): number => Math.round(nanos / 100) / 10;
    const { count } = this.#starts;
    if (count === 0) return { count, p50: 0, p95: 0, max: 0 };
    return {
      count,
      p50: micros(this.#starts.percentile(50)),
      p95: micros(this.#starts.percentile(95)),
      max: micros(this.#starts.max),
    };
  }

  // Pools

  /** The same object until the configuration changes: controllers compare it by identity. */
  configOf(pool: string): PoolConfig {
    let config = this.#configs.get(pool);
    if (config === undefined) {
      const found = this.#pools.current().lookUp(pool);
      // A query of a pool without a record ends before admission (1.5); `root` may be such a pool.
      config = found.kind === "found" ? found.config : DEFAULT_POOL_CONFIG;
      this.#configs.set(pool, config);
    }
    return config;
  }

  changePools(fault: Extract<Fault, { kind: "configChanges" }>): void {
    this.#pools.change(fault);
    this.#configs.clear();
  }

  #followFiles(): void {
    const { followed } = this.#pools;
    if (followed === undefined) return;
    followed.begin();
    const look = (now: Instant): void => {
      if (followed.check(now)) {
        this.#configs.clear();
        this.workload.configurationChanged();
      }
      this.timers.at(followed.nextCheck, look);
    };
    if (followed.nextCheck < Number.POSITIVE_INFINITY) this.timers.at(followed.nextCheck, look);
  }

  #poolNumber(name: string): number {
    let number = this.#poolNumbers.get(name);
    if (number === undefined) {
      number = this.#poolNames.length;
      if (number >= MOST_POOLS) fail(`more than ${MOST_POOLS} pools in one run`);
      this.#poolNumbers.set(name, number);
      this.#poolNames.push(name);
    }
    return number;
  }

  // Bugs of ours

  /** Host after host, under its lock, until the run is over. The first sentence that is false ends the run. */
  async #check(): Promise<void> {
    for (let host = 0; this.#state !== "over"; host = (host + 1) % this.backends.length) {
      const broken = checkLedger(await this.fleet.snapshot(host));
      this.#checks++;
      if (broken.length > 0) this.#booksBroke(`${this.backends[host]!.address}: ${broken.join("\n")}`);
      await new Promise((resolve) => setTimeout(resolve, CHECK_EVERY));
    }
  }

  /** Runs it in a later turn of the event loop. */
  soon(act: () => void): void {
    setImmediate(() => this.guard(act));
  }

  /** What is thrown in here ends the run, with the fleet stopped in order. */
  guard(act: () => void): void {
    if (this.#state === "over") return;
    try {
      act();
    } catch (error) {
      this.#broke(error);
    }
  }

  #booksBroke(what: string): void {
    this.#broke(new InvariantError(`${what} (seed ${this.scenario.seed})`));
  }

  #broke(error: unknown): void {
    this.#over.reject(error);
  }
}
