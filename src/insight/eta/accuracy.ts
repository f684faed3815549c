/**
 * Are predictions as good as they say (insight 5.3, 5.4)? A simulated cluster is looked at every so often while
 * its queues are not empty; one queued query is chosen, its wait foretold, and then it is seen what became of it.
 *
 * A prediction is made from the snapshot alone, and what became of the query is known only later: nothing flows
 * back. Several ways to predict are tried on the same snapshots, so that they can be compared.
 */
import type { ImpalaFlags } from "../../config/impala-flags.ts";
import type { Scenario } from "../../config/scenario.ts";
import type { AdmissionQuery } from "../../core/admission/query.ts";
import type { AdmissionPath } from "../../core/events.ts";
import type { PoolConfig } from "../../core/pool-config.ts";
import { philoxFor } from "../../core/random.ts";
import type { QueryFacts } from "../../core/run-observer.ts";
import { toInstant } from "../../sim/event-queue.ts";
import type { SimQuery } from "../../sim/sim-query.ts";
import { simulate } from "../../sim/simulate.ts";
import type { Simulation } from "../../sim/simulation.ts";
import type { Workload } from "../../workload/workload.ts";
import type { Decision } from "./decision-observer.ts";
import { type EtaSnapshot, queueOf, snapshotOf, wholeMicros } from "./eta-snapshot.ts";
import type { HoldSources } from "./hold-book.ts";
import { type EtaInterval, predictWait, RUNS } from "./predict.ts";
import { TrafficWatch } from "./traffic-watch.ts";

/** What the holds of one snapshot's queries are believed to be; `look` counts the snapshots. */
export type BeliefOf = (look: number, watched: HoldSources) => HoldSources;

export interface AccuracyInput {
  readonly scenario: Scenario;
  readonly workload: Workload;
  readonly configOf: (pool: string) => PoolConfig;
  readonly flags: ImpalaFlags;
  /** By name; each predicts every snapshot. */
  readonly beliefs: Readonly<Record<string, BeliefOf>>;
  /** Looks lie at least so far apart, and the first one so far from the start, milliseconds. */
  readonly every: number;
  readonly warmUp: number;
  /** So many trials end the measurement. */
  readonly most: number;
}

/** One queued query, foretold and seen. */
export interface Trial {
  /** Of the snapshot, milliseconds. */
  readonly at: number;
  readonly position: number;
  readonly queueLength: number;
  readonly byBelief: Readonly<Record<string, { readonly interval: EtaInterval; readonly timeoutChance: number }>>;
  readonly simple: Readonly<Record<SimplePredictor, number>>;
  /** Milliseconds from the snapshot to the decision. */
  readonly actual: number;
  readonly timedOut: boolean;
}

/** What people would say instead, in the order of insight 5.3. */
export const SIMPLE_PREDICTORS = ["byPosition", "byMemory", "lastAdmitted", "headSoFar"] as const;
export type SimplePredictor = (typeof SIMPLE_PREDICTORS)[number];

export function measureAccuracy(input: AccuracyInput): Trial[] {
  const study = new Study(input);
  simulate({
    scenario: input.scenario,
    workload: input.workload,
    pools: { configOf: input.configOf },
    flags: input.flags,
    observer: study,
    inspect: (simulation) => study.look(simulation),
    until: () => study.trials.length >= input.most,
  });
  return study.trials;
}

class Study extends TrafficWatch {
  readonly trials: Trial[] = [];
  readonly #input: AccuracyInput;
  readonly #chance = philoxFor(99, "eta-choice");
  /** Foretold and not yet decided, by query. */
  readonly #open = new Map<string, Omit<Trial, "actual" | "timedOut">>();
  #next: number;
  #looks = 0;
  #lastWait = 0;

  constructor(input: AccuracyInput) {
    super(input.scenario.cluster.statestore);
    this.#input = input;
    this.#next = input.warmUp;
  }

  override admitted(at: number, q: QueryFacts, path: AdmissionPath, waited: number): void {
    if (path === "fromQueue") this.#lastWait = waited;
    super.admitted(at, q, path, waited);
  }

  override decided(at: number, q: QueryFacts, decision: Decision): void {
    const { queryId } = q;
    const trial = this.#open.get(queryId);
    if (trial === undefined) return;
    this.#open.delete(queryId);
    // Nobody foretells whose patience ends when.
    if (decision === "cancelled") return;
    this.trials.push({ ...trial, actual: wholeMicros(at - trial.at), timedOut: decision === "timedOut" });
  }

  look(simulation: Simulation): void {
    const now = toInstant(simulation.now);
    // Asked again while one waits, its luck would be counted many times: outcomes have to be apart (insight 5.4).
    if (now < this.#next || this.#open.size > 0) return;
    if (!simulation.isInstantOver || !simulation.seats.some((s) => s.queued > 1)) return;
    this.#next = now + this.#input.every;
    const controllers = simulation.seats.map((s) => s.controller);
    const classOf = (a: AdmissionQuery): string => this.classOf(a.owner as SimQuery);
    const { cluster } = this.#input.scenario;
    this.#foretell(snapshotOf(controllers, now, classOf, cluster, this.recentAt(now)));
  }

  #foretell(snapshot: EtaSnapshot): void {
    const look = ++this.#looks;
    this.#chance.at(look, 0, 0, 0);
    const chosen = Math.floor(this.#chance.first() * snapshot.queued.length);
    const { query } = snapshot.queued[chosen]!;
    const byBelief: Record<string, { interval: EtaInterval; timeoutChance: number }> = {};
    for (const [name, belief] of Object.entries(this.#input.beliefs)) {
      const options = { seed: look, flags: this.#input.flags };
      const { interval, timeoutChance } = predictWait(snapshot, belief(look, this.holds), chosen, options);
      // Too early: nobody of some pool has ended.
      if (interval === null) return;
      byBelief[name] = { interval, timeoutChance: timeoutChance! };
    }
    const { pool } = snapshot.queued[chosen]!;
    this.#open.set(query, {
      at: snapshot.now,
      position: positionOf(snapshot, chosen),
      queueLength: snapshot.queued.length,
      byBelief,
      simple: simplePredictions(snapshot, chosen, this.holds, this.#lastWait, this.#input.configOf(pool)),
    });
  }
}

const positionOf = (s: EtaSnapshot, chosen: number): number => aheadOf(s, chosen).length + 1;

/** Of the same queue. */
function aheadOf(s: EtaSnapshot, chosen: number) {
  const queue = queueOf(s, s.queued[chosen]!);
  return s.queued.slice(0, chosen).filter((q) => queueOf(s, q) === queue);
}

function simplePredictions(
  s: EtaSnapshot,
  chosen: number,
  holds: HoldSources,
  lastWait: number,
  config: PoolConfig,
): Record<SimplePredictor, number> {
  const own = s.queued[chosen]!;
  const ahead = aheadOf(s, chosen);
  const everybody = [...s.running, ...ahead];
  const meanOf = (q: { readonly pool: string; readonly queryClass: string }): number =>
    mean(holds.sourceFor(q.pool, q.queryClass)!.holds);
  const needOf = (q: { readonly shape: { readonly perHostMemEstimate: number } }): number =>
    q.shape.perHostMemEstimate * s.backends.length;
  const memoryTime = everybody.reduce((sum, q) => sum + needOf(q) * meanOf(q), 0);
  const soFar = s.now - own.enqueuedAt;
  const head = ahead[0] ?? own;
  return {
    byPosition: ((ahead.length + 1) * mean(everybody.map(meanOf))) / Math.max(1, s.running.length),
    byMemory: memoryTime / config.maxMemResources,
    lastAdmitted: Math.max(0, lastWait - soFar),
    headSoFar: Math.max(0, s.now - head.enqueuedAt - soFar),
  };
}

const mean = (values: ArrayLike<number>): number => {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]!;
  return values.length === 0 ? 0 : sum / values.length;
};

// What the trials say

/** Share of outcomes inside the interval. */
export const coverage = (
  trials: readonly Trial[],
  belief: string,
  of: (i: EtaInterval) => readonly [low: number, high: number],
): number =>
  trials.filter((t) => {
    const [low, high] = of(t.byBelief[belief]!.interval);
    return t.actual >= low && t.actual <= high;
  }).length / trials.length;

export const ninety = (i: EtaInterval): readonly [number, number] => [i.low, i.high];
export const fifty = (i: EtaInterval): readonly [number, number] => i.quarters;

/** Where the outcome stands among the runs, as shares of ten equal bins. */
export function rankShares(trials: readonly Trial[], belief: string): number[] {
  const shares = new Array<number>(10).fill(0);
  trials.forEach((t, i) => {
    const { runs } = t.byBelief[belief]!.interval;
    const below = runs.filter((w) => w < t.actual).length;
    const upTo = runs.filter((w) => w <= t.actual).length;
    // Among equals any place is as good: turn by turn, or waits of whole topic rounds would fill some bins only.
    const rank = below + Math.floor((upTo - below + 1) * ((i * 0.618) % 1));
    shares[Math.min(9, Math.floor((rank / (RUNS + 1)) * 10))]! += 1 / trials.length;
  });
  return shares;
}

export interface Errors {
  readonly meanAbsolute: number;
  readonly rootMeanSquare: number;
}

export const errorsOf = (trials: readonly Trial[], predicted: (t: Trial) => number): Errors => ({
  meanAbsolute: mean(trials.map((t) => Math.abs(predicted(t) - t.actual))),
  rootMeanSquare: Math.sqrt(mean(trials.map((t) => (predicted(t) - t.actual) ** 2))),
});

export const medianBy =
  (belief: string) =>
  (t: Trial): number =>
    t.byBelief[belief]!.interval.median;
