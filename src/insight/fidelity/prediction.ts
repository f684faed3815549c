/**
 * A measured run foretold: simulated from its arrivals and holds only (insight 7.1, 7.2).
 *
 * What goes in is when each query was wanted, under which configuration of its pool, and how long it held each of its
 * hosts once it had been admitted. Who
 * waits, for how long, in which order, who is turned away: all that the simulation has to find out by itself. Nominal
 * durations are not used, since a tenth of a per cent on a hold is one or two on a wait.
 *
 * Must keep: a simulated run foretold from its own records gives the same wait for every query, exactly.
 */

import type { ImpalaFlags } from "../../config/impala-flags.ts";
import { DEFAULT_EXECUTION_OPTIONS } from "../../config/request-shape.ts";
import type { Fault, QueryClass, Scenario } from "../../config/scenario.ts";
import { DEFAULT_ADMISSION_OPTIONS, type RequestShape } from "../../core/admission/request.ts";
import type { RunEvent } from "../../core/events.ts";
import type { Bytes, Instant, Millis } from "../../core/units.ts";
import { toMicros } from "../../sim/event-queue.ts";
import type { MeasuredWork } from "../../sim/executors.ts";
import { isByLostHost } from "../../sim/failure-text.ts";
import { type PoolConfigs, simulate } from "../../sim/simulate.ts";
import { type RecordedRequests, RecordedWorkload, RequestsRecorder } from "../../workload/recorded-requests.ts";
import { type MeasuredQuery, type MeasuredRun, MeasuredRunFold } from "./measured-run.ts";

/** The run's surroundings, as its records carry them. */
export interface PredictionSetting {
  readonly scenario: Scenario;
  readonly flags: ImpalaFlags;
  /** When the run began. */
  readonly pools: PoolConfigs;
}

/** What of the live driver's own delays is put in; all off: arrivals and holds only. */
export interface MeasuredDelays {
  /** Requests reach their controller when they did, not when they were wanted. */
  readonly submitLag: boolean;
  /** A place is free only when the controller looked, not when it was given back. */
  readonly wakeUp: boolean;
  /** Exchanges with the statestore start when they did, not on an even grid. */
  readonly exchanges: boolean;
}

export const NO_DELAYS: MeasuredDelays = { submitLag: false, wakeUp: false, exchanges: false };

/** Faults that are in the measured holds, outcomes or requests already. */
const ALREADY_MEASURED: readonly Fault["kind"][] = ["statisticsDropped", "refusals", "workerKilled", "configChanges"];
/** A query that its client ended holds its hosts until then. */
const UNTIL_CANCELLED = 1e15;

/** The predicted run, its queries in the order of the measured ones; `listen` hears its events. */
export function predict(
  run: MeasuredRun,
  setting: PredictionSetting,
  delays: MeasuredDelays = NO_DELAYS,
  listen: (event: RunEvent) => void = () => undefined,
): MeasuredRun {
  const scenario = scenarioFor(run, setting.scenario);
  const arrivals = delays.submitLag ? [...run.queries].sort((x, y) => x.submitted - y.submitted) : run.queries;
  const works = worksOf(arrivals, delays.wakeUp, scenario.cluster.admission === "admissiond");
  const requests = requestsOf(arrivals, scenario, delays.submitLag);
  const workload = new RecordedWorkload(requests, 0, requests.count, {
    cancelAtOf: (i) => cancelAt(arrivals[i]!),
    answersOf: answersIn(arrivals),
  });
  const fold = new MeasuredRunFold(scenario.cluster.admission);
  const { flags, pools } = setting;
  simulate({
    looksAtHosts: true,
    scenario,
    workload,
    flags,
    pools,
    configsOf: (submission) => arrivals[submission.sequence]!.asked,
    ...(delays.exchanges ? { exchangeStarts: exchangeStartsOf(run, scenario) } : {}),
    measured: (submission) => works[submission.sequence]!,
    emit: (event) => {
      fold.add(event);
      listen(event);
    },
  });
  return inOrderOf(run, arrivals, fold.finish());
}

/** The simulation numbers requests as they arrive; here they stand as in the measured run again. */
function inOrderOf(run: MeasuredRun, arrivals: readonly MeasuredQuery[], found: MeasuredRun): MeasuredRun {
  const place = new Map(arrivals.map((q, i) => [q.query, String(i)]));
  const byId = new Map(found.queries.map((q) => [q.query, q]));
  // Waits are counted from what the client intended, whenever the request set out.
  const queries = run.queries.map((q) => ({ ...byId.get(place.get(q.query)!)!, intended: q.intended }));
  return { ...found, queries };
}

/** Cores are not shared again: what sharing did is in the holds. */
function scenarioFor(run: MeasuredRun, scenario: Scenario): Scenario {
  return {
    ...scenario,
    queries: withUnknownClasses(run, scenario.queries),
    model: { ...scenario.model, cores: null },
    faults: scenario.faults.filter((f) => !ALREADY_MEASURED.includes(f.kind)),
  };
}

/**
 * Controllers tell of each exchange, other hosts only of those that brought something: between two of these as many
 * others stood as there was time for.
 */
function exchangeStartsOf({ applied, published }: MeasuredRun, { cluster }: Scenario): Map<string, Float64Array> {
  const { every, publishLag, receiveLag } = cluster.statestore;
  const period = meanPeriod(applied) ?? every + publishLag + receiveLag;
  const starts = new Map<string, Float64Array>();
  for (const [address, times] of [...applied, ...published]) {
    const filled = withinGaps(times, period).map((at) => Math.max(0, toMicros(at - receiveLag)));
    starts.set(address, Float64Array.from(filled));
  }
  return starts;
}

/** The first view of a run is none of its round. */
function meanPeriod(applied: MeasuredRun["applied"]): number | null {
  const spans = [...applied.values()].filter((t) => t.length > 2).map((t) => (t.at(-1)! - t[1]!) / (t.length - 2));
  return spans.length === 0 ? null : spans.reduce((a, b) => a + b, 0) / spans.length;
}

function withinGaps(times: readonly number[], period: number): number[] {
  return times.flatMap((at, i) => {
    const next = times[i + 1];
    const rounds = next === undefined ? 1 : Math.max(1, Math.round((next - at) / period));
    return Array.from({ length: rounds }, (_, k) => (next === undefined ? at : at + ((next - at) * k) / rounds));
  });
}

/** Classes of a replayed log stand in no scenario; all that counts of them was measured. */
function withUnknownClasses(run: MeasuredRun, known: readonly QueryClass[]): readonly QueryClass[] {
  const names = new Set(known.map((c) => c.name));
  const added: QueryClass[] = [];
  for (const { queryClass, asked } of run.queries) {
    if (names.has(queryClass)) continue;
    names.add(queryClass);
    added.push(bareClass(queryClass, known.length + added.length, asked?.shape ?? NOTHING_ASKED));
  }
  return [...known, ...added];
}

const NOTHING_ASKED: RequestShape = {
  stmtType: "QUERY",
  perHostMemEstimate: 0 as Bytes,
  dedicatedCoordMemEstimate: 0 as Bytes,
  isTrivial: false,
  coordinatorOnly: false,
  includeAllCoordinators: false,
  executors: "all",
  fragments: [],
  options: DEFAULT_ADMISSION_OPTIONS,
  maxSlotsPerExecutor: null,
};

const bareClass = (name: string, index: number, shape: RequestShape): QueryClass => ({
  name,
  index,
  requestedPool: "",
  users: [""],
  shape,
  mtDop: 0,
  instancesFollowMtDop: false,
  options: {},
  uses: { kind: "footprint", peak: { kind: "fixed", value: 0 }, profile: "flat", skew: {}, spillable: true },
  duration: { kind: "fixed", value: 0 },
  cancelAfter: null,
  statement: "",
});

// Requests

function requestsOf(arrivals: readonly MeasuredQuery[], scenario: Scenario, asSubmitted: boolean): RecordedRequests {
  const classes = new Map(scenario.queries.map((c) => [c.name, c.index]));
  const recorder = new RequestsRecorder();
  for (const q of arrivals)
    recorder.add({
      queryClass: classes.get(q.queryClass)!,
      pool: q.pool,
      user: q.user,
      userGroups: q.asked?.userGroups ?? null,
      requestedPool: q.pool,
      connectedUser: q.user,
      // With a pool it was its coordinator that could not be reached, which the simulation sees for itself.
      unresolved: q.pool === "" ? (q.unresolved ?? "no pool") : null,
      shape: q.asked?.shape ?? scenario.queries[classes.get(q.queryClass)!]!.shape,
      intended: (asSubmitted ? q.submitted : q.intended) as Instant,
      duration: 0 as Millis,
      peak: Math.max(0, q.peak),
      spilled: 0,
      execution: DEFAULT_EXECUTION_OPTIONS,
      coordinator: q.coordinator,
      placementOffset: q.asked?.placementOffset ?? 0,
    });
  return recorder.finish();
}

/** Who sends a query in the very instant of an answer has that answer first. */
function answersIn(arrivals: readonly MeasuredQuery[]): (index: number) => number {
  const place = new Map(arrivals.map((q, i) => [q.query, i]));
  return (index) => {
    const { answers } = arrivals[index]!;
    const before = answers === null ? -1 : (place.get(answers) ?? -1);
    return before < index ? before : -1;
  };
}

/** When the client gave up, if it did before the query was over; of the others nobody knows. */
function cancelAt(q: MeasuredQuery): number {
  if (q.decision === "cancelled") return q.decidedAt;
  return endOf(q) === "cancelled" ? overAt(q) : Number.POSITIVE_INFINITY;
}

/** What became of an admitted query for its client, and when: a lost message kept its place beyond that. */
const endOf = (q: MeasuredQuery): MeasuredQuery["ended"] => q.lastLost?.state ?? q.ended;
const overAt = (q: MeasuredQuery): number => q.lastLost?.at ?? q.releasedAt;

// Holds

/**
 * A query that was turned away may get in here: it holds what the one of its class before it did.
 */
function worksOf(arrivals: readonly MeasuredQuery[], withWakeUp: boolean, isGlobal: boolean): readonly MeasuredWork[] {
  const latest = new Map<string, MeasuredWork>();
  for (const q of arrivals)
    if (q.decision === "admitted" && !latest.has(q.queryClass))
      latest.set(q.queryClass, workOf(q, withWakeUp, isGlobal));
  return arrivals.map((q) => {
    if (q.decision !== "admitted") return latest.get(q.queryClass) ?? NO_WORK;
    const work = workOf(q, withWakeUp, isGlobal);
    if (endOf(q) === "finished") latest.set(q.queryClass, work);
    return work;
  });
}

const NO_WORK: MeasuredWork = {
  hold: 0,
  takes: new Float64Array(0),
  fails: false,
  reserves: null,
  isReleasedInParts: false,
  lost: { positions: new Set(), isLastLost: false },
  books: null,
};

/** With `admissiond` a query begins only when its coordinator has heard (7.7), and its hold is counted from there. */
function workOf(q: MeasuredQuery, withWakeUp: boolean, isGlobal: boolean): MeasuredWork {
  const from = toMicros(isGlobal && !Number.isNaN(q.startedAt) ? q.startedAt : q.decidedAt);
  const late = withWakeUp ? toMicros(q.wakeUp) : 0;
  const isWhole = endOf(q) === "finished";
  const fails = endOf(q) === "failed";
  // Who noticed that a host was gone notices it again, in that instant.
  const isNoticed = fails && (q.error === null || isByLostHost(q.error));
  const hold = isWhole || fails ? toMicros(overAt(q)) - from + late + (isNoticed ? 1 : 0) : UNTIL_CANCELLED;
  const takes = q.doneAt.map((at) => {
    if (isWhole && (Number.isNaN(at) || at === overAt(q))) return hold;
    return Number.isNaN(at) ? at : toMicros(at) - from;
  });
  const reserves = q.reserves.every(Number.isNaN) ? null : q.reserves;
  const isReleasedInParts = q.releases > 1;
  const lost = { positions: q.lostPositions, isLastLost: q.lastLost !== null };
  return { hold, takes, fails, reserves, isReleasedInParts, lost, books: isWhole ? booksOf(q, from, hold) : null };
}

/** What hosts had reserved, by their own clocks; the coordinator hears of both ends a message later. */
function booksOf(q: MeasuredQuery, from: number, hold: number): MeasuredWork["books"] {
  if (q.claimedAt.every(Number.isNaN) && q.gaveBackAt.every(Number.isNaN)) return null;
  const within = (at: number, unknown: number): number =>
    Number.isNaN(at) ? unknown : Math.min(hold, Math.max(0, toMicros(at) - from));
  return { opened: q.claimedAt.map((at) => within(at, 0)), closed: q.gaveBackAt.map((at) => within(at, hold)) };
}
