/**
 * The cluster run forward from a snapshot, once for each set of drawn holds, until the last queued query is
 * decided (insight 5.2).
 *
 * The run is a simulation like any other: every controller with its own queues and its own view, exchanges
 * through the statestore, polls of `admissiond`. It begins a few exchanges before the snapshot's moment and plays
 * them again: who was let in or ended since then does so at its time, so that at the moment itself each view is
 * just as old as it was. A controller that has not heard yet of what another took is about to let in somebody it
 * should not (T-12); taking its view as exact would foretell too long a wait. Nobody leaves a queue before the
 * moment, and from then on all goes by the rules.
 */

import { DEFAULT_FLAGS, type ImpalaFlags } from "../../config/impala-flags.ts";
import { DEFAULT_EXECUTION_OPTIONS } from "../../config/request-shape.ts";
import type { Scenario } from "../../config/scenario.ts";
import { AdmissionController } from "../../core/admission/controller.ts";
import type { ControllerOptions } from "../../core/admission/controller-options.ts";
import type { DequeueSink } from "../../core/admission/dequeue-pass.ts";
import type { Pool } from "../../core/admission/pool.ts";
import { NO_USAGE } from "../../core/admission/pool-stats.ts";
import type { AdmissionQuery } from "../../core/admission/query.ts";
import type { AdmissionRequest, RequestShape } from "../../core/admission/request.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../core/pool-config.ts";
import type { QueryFacts } from "../../core/run-observer.ts";
import type { Instant, Millis } from "../../core/units.ts";
import { toMicros } from "../../sim/event-queue.ts";
import type { SimQuery } from "../../sim/sim-query.ts";
import { simulate } from "../../sim/simulate.ts";
import type { Simulation } from "../../sim/simulation.ts";
import type { Submission, Workload } from "../../workload/workload.ts";
import { type Decision, DecisionObserver } from "./decision-observer.ts";
import {
  type EndedQuery,
  type EtaSnapshot,
  exchangePeriodOf,
  type QueuedQuery,
  type RunningQuery,
  viewSpanOf,
  wholeMicros,
} from "./eta-snapshot.ts";

/** By index in the snapshot's `queued`; of those who are asked about. */
export interface ForwardResult {
  /** Milliseconds from the snapshot to the decision. */
  readonly waits: Float64Array;
  readonly outcomes: readonly Decision[];
}

/** One run's luck: what is left for the i-th running one, all of it for the j-th queued one, and who else comes. */
export interface DrawnRun {
  readonly remaining: (i: number) => number;
  readonly whole: (j: number) => number;
  /** The next one of the k-th of the snapshot's `arrivals`: after how long, and its hold. */
  readonly nextArrival?: (k: number) => { readonly gap: number; readonly hold: number };
}

/**
 * The smallest step of the clock, milliseconds. A pass is the last thing of its instant, behind an exchange, and a
 * submission the first: so much later it stands for what a pass did.
 */
const TICK = 0.001;
/** Later arrivals of one run; who then still waits is let through by those who end. */
const MOST_ARRIVALS = 20_000;
/** All hosts are done together; and so for a queued one, whose hosts nobody knows yet. */
const TOGETHER = new Float64Array(0);

export class ForwardRuns {
  readonly #snapshot: EtaSnapshot;
  readonly #flags: ImpalaFlags;
  readonly #scenario: Scenario;
  readonly #configOf: (pool: string) => PoolConfig;
  /** When the run begins, and when it has come to the snapshot: exchanges fall as they do around that. */
  readonly #begin: number;
  readonly #start: number;
  /** Of the past, in order of time: all of the snapshot's but those who come later. */
  readonly #past: readonly PastPart[];
  readonly #later: readonly Part[];
  /** Of the queued ones, milliseconds from the moment on. */
  readonly #timeouts: readonly number[];
  readonly #asked: ReadonlySet<number>;

  /** `asked`: whose decisions a run goes on for, by index in `queued`; everybody's when left out. */
  constructor(snapshot: EtaSnapshot, flags: ImpalaFlags = DEFAULT_FLAGS, asked?: readonly number[]) {
    this.#snapshot = snapshot;
    this.#flags = flags;
    this.#scenario = scenarioOf(snapshot);
    const { now, statestore } = snapshot;
    const period = exchangePeriodOf(statestore);
    const lead = viewSpanOf(statestore);
    this.#begin = wholeMicros((((now - lead) % period) + period) % period);
    this.#start = this.#begin + lead;
    const configs = new Map(Object.entries(snapshot.configs).map(([pool, c]) => [pool, withoutQuotas(c)]));
    this.#configOf = (pool) => configs.get(pool) ?? DEFAULT_POOL_CONFIG;
    this.#timeouts = snapshot.queued.map((q) => Math.max(0, q.enqueuedAt + q.timeout - now));
    this.#asked = new Set(asked ?? snapshot.queued.keys());
    this.#past = this.#pastOf(snapshot);
    this.#later = snapshot.arrivals.map((a, k) => ({
      ...a,
      kind: "later",
      id: `later-${k}`,
      index: k,
      placementOffset: 0,
      config: null,
      released: NONE,
    }));
  }

  #pastOf({ running, ended, queued }: EtaSnapshot): PastPart[] {
    const shapes = new Map<string, RequestShape>();
    const waiting = new Map<string, PoolConfig>();
    const letIn = [
      ...ended.map((q, index) => ({
        q,
        part: heldPart("ended", q, index, NONE, shapes),
        until: this.#when(q.endedAt),
      })),
      ...running.map((q, index) => ({ q, part: heldPart("running", q, index, q.released, shapes), until: null })),
    ].map(({ q, part, until }): PastPart => ({ part, at: this.#when(q.admittedAt) + TICK, until, timeout: null }));
    const enqueued = queued.map((q, index): PastPart => {
      const at = this.#when(q.enqueuedAt);
      const part = queuedPart(q, index, waitingConfig(q.pool, this.#configOf, waiting));
      return { part, at, until: null, timeout: this.#start + this.#timeouts[index]! - at };
    });
    return [...letIn, ...enqueued].sort((a, b) => a.at - b.at);
  }

  /** On this run's clock; what was before it is at its beginning. */
  #when(then: Instant): number {
    return Math.max(this.#begin, this.#start + then - this.#snapshot.now);
  }

  run(draws: DrawnRun): ForwardResult {
    const decisions = new Decisions(this.#timeouts, this.#asked, this.#start);
    const workload = new ForwardWorkload(this.#start);
    for (const past of this.#past) workload.give(past, this.#holdOf(past, draws));
    if (this.#past.length > 0) workload.knock(this.#past[0]!.part, this.#start + TICK);
    if (draws.nextArrival !== undefined) workload.keepComing(this.#later, draws.nextArrival);
    simulate({
      scenario: this.#scenario,
      workload,
      pools: { configOf: this.#configOf },
      flags: this.#flags,
      observer: decisions,
      until: () => decisions.open === 0,
      backends: this.#snapshot.backends,
      newController: (options) => new PrimedController(options, this.#start),
      inspect: (simulation) => this.#lookAnew(simulation),
      measured: (s) => {
        const { part, duration } = s as ForwardSubmission;
        const hold = toMicros(duration);
        const takes = takesOf(part, hold);
        return { hold, takes, fails: false, reserves: null, isReleasedInParts: false, lost: null, books: null };
      },
    });
    return decisions;
  }

  #holdOf({ part, at, until }: PastPart, draws: DrawnRun): number {
    if (part.kind === "queued") return draws.whole(part.index);
    return Math.max(0, (until ?? this.#start + draws.remaining(part.index)) - at);
  }

  /** Whether the heads could go is not in a snapshot: everybody tries at its next exchange. */
  #lookAnew({ now, seats, exchanges }: Simulation): void {
    if (now !== toMicros(this.#start + TICK)) return;
    for (const seat of seats) exchanges.mayMoveLater(seat, now);
  }
}

/** Somebody of the snapshot, or a kind of those who come later. */
interface Part {
  readonly kind: "ended" | "running" | "queued" | "later";
  readonly id: string;
  /** In its list of the snapshot. */
  readonly index: number;
  readonly pool: string;
  readonly coordinator: string;
  readonly user: string;
  readonly shape: RequestShape;
  readonly placementOffset: number;
  /** It is let in, or let into the queue, by this record; null: by the pool's own. */
  readonly config: PoolConfig | null;
  readonly released: readonly number[];
}

/** What it did before the moment. */
interface PastPart {
  readonly part: Part;
  /** When it was let in, or came into its queue. */
  readonly at: number;
  /** When it ended; null: it has not. */
  readonly until: number | null;
  /** Of a queued one, counted from `at`. */
  readonly timeout: number | null;
}

const NONE: readonly number[] = [];

/** What runs was let in long ago: no limit asks again. */
const HOLDS_ALREADY: PoolConfig = { ...DEFAULT_POOL_CONFIG, maxQueued: Number.MAX_SAFE_INTEGER };

const heldPart = (
  kind: "ended" | "running",
  q: EndedQuery | RunningQuery,
  index: number,
  released: readonly number[],
  shapes: Map<string, RequestShape>,
): Part => ({
  kind,
  id: `${kind}-${index}`,
  index,
  pool: q.pool,
  coordinator: q.coordinator,
  user: q.user,
  shape: fixedShape(q, shapes),
  placementOffset: q.placementOffset,
  config: HOLDS_ALREADY,
  released,
});

const queuedPart = (q: QueuedQuery, index: number, config: PoolConfig): Part => ({
  kind: "queued",
  id: String(index),
  index,
  pool: q.pool,
  coordinator: q.coordinator,
  user: q.user,
  shape: q.shape,
  placementOffset: q.placementOffset,
  config,
  released: NONE,
});

/** Whom a quota would turn away is not known: counts by user are not in a snapshot. */
const withoutQuotas = (config: PoolConfig): PoolConfig => ({
  ...config,
  userQueryLimits: new Map(),
  groupQueryLimits: new Map(),
});

/** For those who wait: they were let into the queue, so its length doesn't ask again. */
function waitingConfig(pool: string, configOf: (pool: string) => PoolConfig, made: Map<string, PoolConfig>) {
  let config = made.get(pool);
  if (config === undefined) {
    config = { ...configOf(pool), maxQueued: Number.MAX_SAFE_INTEGER };
    made.set(pool, config);
  }
  return config;
}

/** The amounts it was admitted with, by the two options that no bound touches (MEM-5, MEM-6). */
function fixedShape(q: EndedQuery | RunningQuery, made: Map<string, RequestShape>): RequestShape {
  const key = `${q.perHost} ${q.onCoordinator} ${JSON.stringify(q.shape)}`;
  let shape = made.get(key);
  if (shape === undefined) {
    const options = {
      ...q.shape.options,
      memLimit: 0,
      memLimitExecutors: q.perHost,
      memLimitCoordinators: q.onCoordinator,
      bufferPoolLimit: 0,
    };
    shape = { ...q.shape, isTrivial: false, options };
    made.set(key, shape);
  }
  return shape;
}

/** Hosts that it has left are left again at once. */
function takesOf(part: Part, hold: number): Float64Array {
  if (part.released.length === 0) return TOGETHER;
  const takes = new Float64Array(Math.max(...part.released) + 1).fill(hold);
  for (const i of part.released) takes[i] = 0;
  return takes;
}

/** A controller as the past left it: who was let in runs and who was not waits, whatever it would say itself. */
class PrimedController extends AdmissionController {
  readonly #start: number;

  constructor(options: ControllerOptions, start: number) {
    super(options);
    this.#start = start;
  }

  override submit(request: AdmissionRequest, config: PoolConfig, rootConfig: PoolConfig, now: Instant): AdmissionQuery {
    const { part, timeout } = request as ForwardSubmission;
    if (part.config === null) return super.submit(request, config, rootConfig, now);
    const pool = this.#poolOf(part.pool);
    const { stats } = pool;
    const waiting = stats.localQueued;
    // Behind somebody one waits whatever is free, and behind nobody one doesn't (ADM-1).
    const ahead = part.kind === "queued" ? Math.max(1, waiting) : 0;
    stats.localQueued = ahead;
    const q = super.submit(request, part.config, rootConfig, now);
    stats.localQueued += waiting - ahead;
    pool.config = config;
    if (part.released.length > 0) this.releaseBackends(q, part.released);
    if (timeout !== null) q.timeout = timeout as Millis;
    return q;
  }

  #poolOf(name: string): Pool {
    // Made by the first who says anything about it.
    if (this.pool(name) === undefined) this.setBackendUsage(name, NO_USAGE);
    return this.pool(name)!;
  }

  /** Whoever left a queue before the moment is not in the snapshot's. */
  override dequeuePass(now: Instant, sink: DequeueSink): void {
    if (now > this.#start) super.dequeuePass(now, sink);
  }
}

class ForwardSubmission implements Submission {
  readonly part: Part;
  readonly timeout: number | null;
  /** Not null: it reaches no controller. */
  readonly unresolved: string | null;
  readonly queryId: string;
  readonly sequence: number;
  readonly intended: Instant;
  readonly duration: Millis;
  readonly userGroups: readonly string[] = [];
  readonly blacklistedExecutors: readonly string[] = [];
  readonly queryClass = 0;
  readonly attempt = 1;
  readonly peak = 0;
  readonly spilled = 0;
  readonly execution = DEFAULT_EXECUTION_OPTIONS;
  readonly cancelAt = Number.POSITIVE_INFINITY as Instant;

  constructor(
    part: Part,
    sequence: number,
    at: number,
    hold: number,
    timeout: number | null = null,
    unresolved: string | null = null,
  ) {
    this.part = part;
    this.timeout = timeout;
    this.unresolved = unresolved;
    // Many of one kind come.
    this.queryId = part.kind === "later" ? `${part.id}-${sequence}` : part.id;
    this.sequence = sequence;
    this.intended = at as Instant;
    this.duration = hold as Millis;
  }

  get pool(): string {
    return this.part.pool;
  }
  get coordinator(): string {
    return this.part.coordinator;
  }
  get user(): string {
    return this.part.user;
  }
  get shape(): RequestShape {
    return this.part.shape;
  }
  get placementOffset(): number {
    return this.part.placementOffset;
  }
  get firstIntended(): Instant {
    return this.intended;
  }
  get request(): string {
    return this.queryId;
  }
  get requestedPool(): string {
    return this.pool;
  }
  get connectedUser(): string {
    return this.user;
  }
}

/** Who is given, in order; then who keeps coming. */
class ForwardWorkload implements Workload {
  readonly #given: ForwardSubmission[] = [];
  readonly #start: number;
  #taken = 0;
  #later: readonly Part[] = [];
  #draw: NonNullable<DrawnRun["nextArrival"]> | null = null;
  /** By kind: when the next one of it comes, and its hold. */
  #at = new Float64Array(0);
  #hold = new Float64Array(0);

  constructor(start: number) {
    this.#start = start;
  }

  give({ part, at, timeout }: PastPart, hold: number): void {
    this.#given.push(new ForwardSubmission(part, this.#given.length, at, hold, timeout));
  }

  /** Somebody who reaches nobody, so that something happens then. */
  knock(part: Part, at: number): void {
    this.#given.push(new ForwardSubmission(part, this.#given.length, at, 0, null, "only knocks"));
  }

  keepComing(later: readonly Part[], draw: NonNullable<DrawnRun["nextArrival"]>): void {
    this.#later = later;
    this.#draw = draw;
    this.#at = new Float64Array(later.length).fill(this.#start);
    this.#hold = new Float64Array(later.length);
    later.forEach((_, k) => {
      this.#drawNext(k);
    });
  }

  nextAt(): Instant {
    const given = this.#given[this.#taken];
    if (given !== undefined) return given.intended;
    return (this.#isOver ? Number.POSITIVE_INFINITY : this.#at[this.#nextKind()]!) as Instant;
  }

  take(): Submission {
    const sequence = this.#taken++;
    const given = this.#given[sequence];
    if (given !== undefined) return given;
    const k = this.#nextKind();
    const later = new ForwardSubmission(this.#later[k]!, sequence, this.#at[k]!, this.#hold[k]!);
    this.#drawNext(k);
    return later;
  }

  isExhausted(): boolean {
    return this.nextAt() === Number.POSITIVE_INFINITY;
  }

  get #isOver(): boolean {
    return this.#at.length === 0 || this.#taken - this.#given.length >= MOST_ARRIVALS;
  }

  #nextKind(): number {
    let first = 0;
    for (let k = 1; k < this.#at.length; k++) if (this.#at[k]! < this.#at[first]!) first = k;
    return first;
  }

  #drawNext(k: number): void {
    const { gap, hold } = this.#draw!(k);
    this.#at[k] = this.#at[k]! + gap;
    this.#hold[k] = hold;
  }

  ended(): void {
    // Nobody asks again because of an answer.
  }
  coordinatorGone(): void {
    // No coordinator goes.
  }
  coordinatorBack(): void {
    // As above.
  }
  configurationChanged(): void {
    // It doesn't.
  }
  scaleEstimate(): void {
    // As above.
  }
}

/** What became of those who are asked about. */
class Decisions extends DecisionObserver implements ForwardResult {
  readonly waits: Float64Array;
  readonly outcomes: Decision[];
  /** How many of those who are asked about are not decided yet. */
  open: number;
  readonly #asked: ReadonlySet<number>;
  readonly #start: number;

  /** Nobody waits longer than his timeout. */
  constructor(timeouts: readonly number[], asked: ReadonlySet<number>, start: number) {
    super();
    this.waits = Float64Array.from(timeouts);
    this.outcomes = timeouts.map(() => "timedOut");
    this.open = asked.size;
    this.#asked = asked;
    this.#start = start;
  }

  override decided(at: number, q: QueryFacts, outcome: Decision): void {
    const { part } = (q as SimQuery).submission as ForwardSubmission;
    if (part.kind !== "queued") return;
    // Waits of whole topic rounds are often equal, and have to stay so.
    this.waits[part.index] = wholeMicros(at - this.#start);
    this.outcomes[part.index] = outcome;
    if (this.#asked.has(part.index)) this.open--;
  }
}

/** Nothing of a scenario matters but who decides and how the deciders hear of each other. */
const scenarioOf = ({ admission, statestore }: EtaSnapshot): Scenario => ({
  name: "prediction",
  file: "prediction",
  seed: 1,
  cluster: { executors: [], coordinators: [], admission, statestore, route: { kind: "round-robin" } },
  pools: { kind: "flags" },
  flags: {},
  users: {},
  queries: [],
  arrivals: [],
  faults: [],
  scale: { time: 1, memory: 1 },
  threads: null,
  model: { scratchBandwidth: 1, cores: null },
  thresholds: [],
  limits: { time: Number.POSITIVE_INFINITY as Instant, queries: Number.POSITIVE_INFINITY },
});
