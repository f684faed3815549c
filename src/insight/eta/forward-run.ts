/**
 * The cluster run forward from a snapshot, once for each set of drawn holds, until the last queued query is
 * decided (insight 5.2).
 *
 * The run is a simulation like any other: every controller with its own queues and its own view, exchanges
 * through the statestore, polls of `admissiond`. It begins a few exchanges before the snapshot's moment, with
 * whoever runs being let in without being asked, so that every view has heard of them by the time when those
 * who wait are put into their queues, in their order.
 */

import { DEFAULT_FLAGS, type ImpalaFlags } from "../../config/impala-flags.ts";
import { DEFAULT_EXECUTION_OPTIONS } from "../../config/request-shape.ts";
import type { Scenario } from "../../config/scenario.ts";
import { AdmissionController } from "../../core/admission/controller.ts";
import type { AdmissionQuery } from "../../core/admission/query.ts";
import type { AdmissionRequest, RequestShape } from "../../core/admission/request.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../core/pool-config.ts";
import type { QueryFacts } from "../../core/run-observer.ts";
import type { Instant, Millis } from "../../core/units.ts";
import { toMicros } from "../../sim/event-queue.ts";
import type { SimQuery } from "../../sim/sim-query.ts";
import { simulate } from "../../sim/simulate.ts";
import type { Submission, Workload } from "../../workload/workload.ts";
import { SilentObserver } from "../silent-observer.ts";
import type { EtaSnapshot, QueuedQuery, RunningQuery } from "./eta-snapshot.ts";

export type ForwardOutcome = "admitted" | "timedOut" | "rejected";

/** By index in the snapshot's `queued`. */
export interface ForwardResult {
  /** Milliseconds from the snapshot to the decision. */
  readonly waits: Float64Array;
  readonly outcomes: readonly ForwardOutcome[];
}

/** One run's luck: what is left for the i-th running one, all of it for the j-th queued one, and who else comes. */
export interface DrawnRun {
  readonly remaining: (i: number) => number;
  readonly whole: (j: number) => number;
  /** The next one of the k-th of the snapshot's `arrivals`: after how long, and its hold. */
  readonly nextArrival?: (k: number) => { readonly gap: number; readonly hold: number };
}

/** So many exchanges, and everybody has heard of everybody. */
const LEAD_PERIODS = 3;
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
  readonly #running: readonly Part[];
  readonly #queued: readonly Part[];
  readonly #later: readonly Part[];

  constructor(snapshot: EtaSnapshot, flags: ImpalaFlags = DEFAULT_FLAGS) {
    this.#snapshot = snapshot;
    this.#flags = flags;
    this.#scenario = scenarioOf(snapshot);
    const { every, publishLag, receiveLag } = snapshot.statestore;
    const period = every + publishLag + receiveLag;
    const lead = LEAD_PERIODS * period;
    this.#begin = (((snapshot.now - lead) % period) + period) % period;
    this.#start = this.#begin + lead;
    const configs = new Map(Object.entries(snapshot.configs).map(([pool, c]) => [pool, withoutQuotas(c)]));
    this.#configOf = (pool) => configs.get(pool) ?? DEFAULT_POOL_CONFIG;
    const shapes = new Map<string, RequestShape>();
    this.#running = snapshot.running.map((q, i) => runningPart(q, i, fixedShape(q, shapes)));
    const waiting = new Map<string, PoolConfig>();
    this.#queued = snapshot.queued.map((q, j) =>
      queuedPart(q, j, snapshot.now, waitingConfig(q.pool, this.#configOf, waiting)),
    );
    this.#later = snapshot.arrivals.map((a, k) => ({
      ...a,
      kind: "later",
      id: `later-${k}`,
      index: k,
      placementOffset: 0,
      config: null,
      timeout: null,
      released: NONE,
    }));
  }

  run(draws: DrawnRun): ForwardResult {
    const decisions = new Decisions(
      this.#queued.map((q) => q.timeout!),
      this.#start,
    );
    const workload = new ForwardWorkload(this.#start);
    this.#running.forEach((part, i) => {
      workload.give(this.#begin, part, this.#start - this.#begin + draws.remaining(i));
    });
    this.#queued.forEach((part, j) => {
      workload.give(this.#start, part, draws.whole(j));
    });
    if (draws.nextArrival !== undefined) workload.keepComing(this.#later, draws.nextArrival);
    simulate({
      scenario: this.#scenario,
      workload,
      pools: { configOf: this.#configOf },
      flags: this.#flags,
      observer: decisions,
      until: () => decisions.open === 0,
      backends: this.#snapshot.backends,
      newController: (options) => new PrimedController(options),
      measured: (s) => {
        const { part, duration } = s as ForwardSubmission;
        const hold = toMicros(duration);
        return { hold, takes: takesOf(part, hold), fails: false, books: null };
      },
    });
    return decisions;
  }
}

/** Somebody of the snapshot, or a kind of those who come later. */
interface Part {
  readonly kind: "running" | "queued" | "later";
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
  /** What is left of its own timeout, milliseconds; null: the pool's. */
  readonly timeout: number | null;
  readonly released: readonly number[];
}

const NONE: readonly number[] = [];

/** What runs was let in long ago: no limit asks again. */
const HOLDS_ALREADY: PoolConfig = { ...DEFAULT_POOL_CONFIG, maxQueued: Number.MAX_SAFE_INTEGER };

const runningPart = (q: RunningQuery, index: number, shape: RequestShape): Part => ({
  kind: "running",
  id: `running-${index}`,
  index,
  pool: q.pool,
  coordinator: q.coordinator,
  user: q.user,
  shape,
  placementOffset: q.placementOffset,
  config: HOLDS_ALREADY,
  timeout: null,
  released: q.released,
});

const queuedPart = (q: QueuedQuery, index: number, now: number, config: PoolConfig): Part => ({
  kind: "queued",
  id: String(index),
  index,
  pool: q.pool,
  coordinator: q.coordinator,
  user: q.user,
  shape: q.shape,
  placementOffset: q.placementOffset,
  config,
  timeout: Math.max(0, q.enqueuedAt + q.timeout - now),
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
function fixedShape(q: RunningQuery, made: Map<string, RequestShape>): RequestShape {
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

/** The controller of the run: for whoever was there before, it asks nothing that was asked already. */
class PrimedController extends AdmissionController {
  override submit(request: AdmissionRequest, config: PoolConfig, rootConfig: PoolConfig, now: Instant): AdmissionQuery {
    const { part } = request as ForwardSubmission;
    const q = super.submit(request, part.config ?? config, rootConfig, now);
    if (part.released.length > 0) this.releaseBackends(q, part.released);
    if (part.timeout !== null) q.timeout = part.timeout as Millis;
    return q;
  }
}

class ForwardSubmission implements Submission {
  readonly part: Part;
  readonly queryId: string;
  readonly sequence: number;
  readonly intended: Instant;
  readonly duration: Millis;
  readonly userGroups: readonly string[] = [];
  readonly blacklistedExecutors: readonly string[] = [];
  readonly queryClass = 0;
  readonly attempt = 1;
  readonly unresolved = null;
  readonly peak = 0;
  readonly spilled = 0;
  readonly execution = DEFAULT_EXECUTION_OPTIONS;
  readonly cancelAt = Number.POSITIVE_INFINITY as Instant;

  constructor(part: Part, sequence: number, at: number, hold: number) {
    this.part = part;
    this.queryId = part.id;
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

  give(at: number, part: Part, hold: number): void {
    this.#given.push(new ForwardSubmission(part, this.#given.length, at, hold));
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
class Decisions extends SilentObserver implements ForwardResult {
  readonly waits: Float64Array;
  readonly outcomes: ForwardOutcome[];
  /** How many are not decided yet. */
  open: number;
  readonly #start: number;

  /** Nobody waits longer than his timeout. */
  constructor(timeouts: readonly number[], start: number) {
    super();
    this.waits = Float64Array.from(timeouts);
    this.outcomes = timeouts.map(() => "timedOut");
    this.open = timeouts.length;
    this.#start = start;
  }

  override admitted(at: number, q: QueryFacts): void {
    this.#decide(at, q, "admitted");
  }

  override timedOut(at: number, q: QueryFacts): void {
    this.#decide(at, q, "timedOut");
  }

  override rejected(at: number, q: QueryFacts): void {
    this.#decide(at, q, "rejected");
  }

  #decide(at: number, q: QueryFacts, outcome: ForwardOutcome): void {
    const { part } = (q as SimQuery).submission as ForwardSubmission;
    if (part.kind !== "queued") return;
    this.waits[part.index] = at - this.#start;
    this.outcomes[part.index] = outcome;
    this.open--;
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
