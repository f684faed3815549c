/**
 * A scenario on the live fleet: real threads, real memory, real files, on a clock that is real time multiplied.
 *
 * The main thread takes requests from the workload when they are due, hands them to their coordinator, and is told
 * what became of them (`LiveCluster`); it never waits. When nothing more is to come the fleet is stopped and every book
 * is looked at once more.
 *
 *   running --drain--> draining --stop--> stopping --> over
 *      '------ nothing left ---------------------------^
 *
 *   draining: nothing is submitted any more, who waits is cancelled, who runs may finish (Ctrl-C once).
 *   stopping: who runs is cancelled too (Ctrl-C twice).
 */
import { createHistogram } from "node:perf_hooks";
import { ConfigError } from "../config/config-error.ts";
import type { ImpalaFlags } from "../config/impala-flags.ts";
import type { Scenario } from "../config/scenario.ts";
import { backendsOf } from "../config/scenario-cluster.ts";
import { changedPools, flagsOf, openPools } from "../config/scenario-pools.ts";
import type { ControllerFlags } from "../core/admission/controller-options.ts";
import { InvariantError } from "../core/assert.ts";
import type { BackendDescriptor } from "../core/cluster/backend.ts";
import type { RunEvent } from "../core/events.ts";
import { checkLedger } from "../core/memory/ledger-checks.ts";
import type { PoolConfig } from "../core/pool-config.ts";
import type { Instant, Millis } from "../core/units.ts";
import { poolResolver } from "../workload/pool-resolver.ts";
import { createWorkload } from "../workload/scenario-workload.ts";
import { withTraces } from "../workload/traces.ts";
import type { Workload } from "../workload/workload.ts";
import { FineAlarm, finenessFor } from "./alarm.ts";
import { AlarmThread } from "./alarm-thread.ts";
import type { Coordinator, OpenDesk } from "./coordinator.ts";
import { type EmulatedClock, startClock } from "./emulated-clock.ts";
import { Fleet, type HostMarks } from "./fleet.ts";
import { hostSpecs } from "./host-sizes.ts";
import { LiveCluster } from "./live-cluster.ts";
import { type LivePools, MOST_POOLS, PoolsInForce } from "./live-pools.ts";
import type { LiveQuery } from "./live-query.ts";
import type { Progress } from "./protocol.ts";
import type { RunBus } from "./run-bus.ts";
import { CoordinatorThreads } from "./thread-desk.ts";
import { Timers } from "./timers.ts";
import { withResolvers } from "./with-resolvers.ts";

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

/** More than anybody will have; a ledger costs memory only where it is used. */
const QUERIES_PER_HOST = 4096;
const MOST_THREADS = 10;
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
  readonly cluster: LiveCluster;
  readonly fleet: Fleet;
  /** Of the coordinators that have some. */
  readonly #coordinatorThreads: CoordinatorThreads[] = [];
  readonly timers: Timers;
  readonly #clock: EmulatedClock;
  readonly #alarmThread: AlarmThread;
  readonly bus: RunBus;
  readonly #pools: PoolsInForce;
  readonly #starts = createHistogram();
  #state: "new" | "running" | "draining" | "stopping" | "over" = "new";
  readonly #isChecked: boolean;
  #checks = 0;
  readonly #over: PromiseWithResolvers<void> = withResolvers();

  constructor(scenario: Scenario, workload: Workload, pools: LivePools, bus: RunBus, options: LiveOptions) {
    this.scenario = scenario;
    this.#pools = new PoolsInForce(pools);
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
    this.fleet = this.#openFleet(options);
    this.cluster = new LiveCluster(scenario, workload, this.#pools, options.flags, {
      timers: this.timers,
      fleet: this.fleet,
      now: () => this.now(),
      soon: (act) => this.soon(act),
      emit: (event) => this.emit(event),
      openDesk: (hostId, flags) => this.#deskOnThread(hostId, flags),
      noteStart: (query, at) => this.#noteStart(query, at),
      over: () => this.#over.resolve(),
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

  get coordinators(): readonly Coordinator[] {
    return this.cluster.coordinators;
  }

  /** Once. Resolves when all is over and nothing is left; rejects when the run broke, with nothing left either. */
  async run(): Promise<LiveReport> {
    await this.#startThreads();
    // Emulated time begins when the hosts are there: what starting threads takes is nobody's wait.
    this.#clock.restart();
    const startedAt = performance.now();
    if (this.#state === "new") {
      this.#state = "running";
      this.cluster.begin();
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
      took: { emulated: this.cluster.lastEnd as number as Millis, realMs },
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
    this.cluster.shut();
  }

  /** Ctrl-C twice. */
  stop(): void {
    this.drain();
    if (this.#state !== "draining") return;
    this.#state = "stopping";
    setTimeout(() => this.#over.resolve(), STOP_PATIENCE).unref();
    this.cluster.cancelAll();
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
        hostLost: (host, why) => this.guard(() => this.cluster.hostLost(host, why)),
        hostReady: (host) => this.guard(() => this.cluster.hostReady(host)),
      },
    );
  }

  #progress(batch: readonly Progress[]): void {
    for (const p of batch) if (p.kind === "broken") this.#booksBroke(p.text);
    this.cluster.progress(batch);
  }

  hostNumber(address: string): number {
    return this.cluster.hostNumber(address);
  }

  #deskOnThread(hostId: string, flags: ControllerFlags): OpenDesk {
    const threads = new CoordinatorThreads(
      { hostId, flags, clock: this.#clock.settings },
      { now: () => this.now(), guard: (act) => this.guard(act), broke: (error) => this.#broke(error) },
    );
    this.#coordinatorThreads.push(threads);
    return (hear) => threads.open(hear);
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

  /** As it is now. */
  configOf(pool: string): PoolConfig {
    return this.#pools.configOf(pool);
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
