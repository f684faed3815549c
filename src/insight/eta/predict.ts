/**
 * When will it start? For every queued query: a median, a 90 % interval and the chance to time out (insight 5).
 *
 * 199 runs forward from the snapshot, each with its own draw of what is left for whoever runs. 199, because
 * then the 10th and the 190th smallest are a 90 % interval exactly; sample quantiles of fifty runs would cover
 * less. Never a single number: who waits behind three queries of unknown length has none.
 */
import type { ImpalaFlags } from "../../config/impala-flags.ts";
import { queueReasonText } from "../../core/admission/reasons.ts";
import { ln } from "../../core/exact-math.ts";
import { philoxFor } from "../../core/random.ts";
import { type ArrivalRate, type EtaSnapshot, queueOf } from "./eta-snapshot.ts";
import { type DrawnRun, ForwardRuns } from "./forward-run.ts";
import { believed, drawHold, drawRemaining, type HoldSource, type HoldSources } from "./hold-book.ts";

export const RUNS = 199;
const LOW = 9;
const MIDDLE = 99;
const HIGH = 189;
/** Of the runs: a 50 % interval, for tests of calibration. */
const LOWER_QUARTER = 49;
const UPPER_QUARTER = 149;

export interface Prediction {
  readonly query: string;
  readonly pool: string;
  /** Whose client waits. */
  readonly coordinator: string;
  /** In its queue, 1: the head. */
  readonly position: number;
  /** Milliseconds from now to the decision; null: no hold of the pool is known, so nothing can be said. */
  readonly interval: EtaInterval | null;
  /** Share of the runs. */
  readonly timeoutChance: number | null;
  /** What the head of its queue waits for, in the product's words. */
  readonly waitsFor: string | null;
  /** Whose past holds it rests on; `pool`: the class has too few. */
  readonly basis: "class" | "pool" | null;
}

export interface EtaInterval {
  readonly median: number;
  readonly low: number;
  readonly high: number;
  readonly quarters: readonly [number, number];
  /** All of them, rising; for tests of calibration. */
  readonly runs: Float64Array;
}

export interface PredictOptions {
  readonly seed?: number;
  readonly flags?: ImpalaFlags;
  /** After each of the runs. */
  readonly onRun?: (done: number) => void;
}

/** Of everybody who waits. */
export const predictWaits = (given: EtaSnapshot, holds: HoldSources, options: PredictOptions = {}): Prediction[] =>
  predict(
    given,
    holds,
    given.queued.map((_, i) => i),
    options,
  );

/** Of the i-th who waits: the same, for less, as the runs end with its decision. */
export const predictWait = (
  given: EtaSnapshot,
  holds: HoldSources,
  i: number,
  options: PredictOptions = {},
): Prediction => predict(given, holds, [i], options)[0]!;

function predict(
  given: EtaSnapshot,
  holds: HoldSources,
  asked: readonly number[],
  { flags, seed = 1, onRun }: PredictOptions,
): Prediction[] {
  const snapshot = withRivalsOnly(given, holds);
  const sources = sourcesOf(snapshot, holds);
  const waits = asked.map(() => new Float64Array(RUNS));
  const timeouts = new Int32Array(asked.length);
  if (sources !== null) {
    const forward = new ForwardRuns(snapshot, flags, asked);
    for (let run = 0; run < RUNS; run++) {
      const result = forward.run(drawsOf(snapshot, sources, run, seed));
      asked.forEach((i, n) => {
        waits[n]![run] = result.waits[i]!;
        if (result.outcomes[i] === "timedOut") timeouts[n]!++;
      });
      onRun?.(run + 1);
    }
  }
  const places = placesOf(snapshot);
  return asked.map((i, n): Prediction => {
    const { query, pool, coordinator } = snapshot.queued[i]!;
    return {
      query,
      pool,
      coordinator,
      ...places[i]!,
      interval: sources === null ? null : intervalOf(waits[n]!),
      timeoutChance: sources === null ? null : timeouts[n]! / RUNS,
      basis: sources === null ? null : sources.queued[i]!.basis,
    };
  });
}

/** Of everybody who waits: where he stands in his queue, and what its head waits for. */
function placesOf(s: EtaSnapshot): Pick<Prediction, "position" | "waitsFor">[] {
  const queues = new Map<string, { length: number; readonly waitsFor: string | null }>();
  return s.queued.map((q) => {
    const name = queueOf(s, q);
    let queue = queues.get(name);
    if (queue === undefined) {
      queue = { length: 0, waitsFor: q.reason === null ? null : queueReasonText(q.reason) };
      queues.set(name, queue);
    }
    return { position: ++queue.length, waitsFor: queue.waitsFor };
  });
}

/**
 * In one FIFO nobody who comes later can pass, so with a single queue nobody need come. Otherwise they do; those of
 * whose holds nothing is known are left out.
 */
function withRivalsOnly(s: EtaSnapshot, holds: HoldSources): EtaSnapshot {
  const known = s.arrivals.filter((a) => holds.sourceFor(a.pool, a.queryClass) !== null);
  const queues = new Set([...s.queued, ...known].map((q) => queueOf(s, q)));
  return { ...s, arrivals: queues.size > 1 ? known : [] };
}

interface Sources {
  readonly running: readonly HoldSource[];
  readonly queued: readonly HoldSource[];
  readonly arrivals: readonly HoldSource[];
}

/** null: somebody's holds are wholly unknown, and everybody behind him waits for the unknown. */
function sourcesOf(snapshot: EtaSnapshot, holds: HoldSources): Sources | null {
  const of = (q: { readonly pool: string; readonly queryClass: string }): HoldSource | null =>
    holds.sourceFor(q.pool, q.queryClass);
  const running = snapshot.running.map(of);
  const queued = snapshot.queued.map(of);
  const arrivals = snapshot.arrivals.map(of);
  const isKnown = (s: HoldSource | null): s is HoldSource => s !== null;
  return running.every(isKnown) && queued.every(isKnown) && arrivals.every(isKnown)
    ? { running, queued, arrivals }
    : null;
}

/** What a draw is for, so that no two share one. */
const REMAINING = 0;
const WHOLE = 1;
const BELIEF = 2;
const ARRIVAL = 3;

function drawsOf({ now, running, arrivals }: EtaSnapshot, sources: Sources, run: number, seed: number): DrawnRun {
  const stream = philoxFor(seed, "eta");
  const uniform = (purpose: number, i: number, n = 0): number => {
    stream.at(run, i, n, purpose);
    return stream.first();
  };
  const beliefs = new Map<Float64Array, Float64Array>();
  const belief = ({ holds, isFew }: HoldSource): Float64Array => {
    if (!isFew) return holds;
    let made = beliefs.get(holds);
    if (made === undefined) {
      const number = beliefs.size;
      made = believed(holds, (i) => uniform(BELIEF, i, number));
      beliefs.set(holds, made);
    }
    return made;
  };
  const came = new Int32Array(arrivals.length);
  return {
    remaining: (i) => drawRemaining(belief(sources.running[i]!), now - running[i]!.admittedAt, uniform(REMAINING, i)),
    whole: (j) => drawHold(belief(sources.queued[j]!), uniform(WHOLE, j)),
    nextArrival: (k) => {
      const gap = gapOf(arrivals[k]!, uniform(ARRIVAL, k, came[k]!++));
      const luck = stream.second();
      return { gap, hold: drawHold(belief(sources.arrivals[k]!), luck) };
    },
  };
}

/** Poisson. */
const gapOf = ({ perMs }: ArrivalRate, u: number): number => -ln(u) / perMs;

function intervalOf(waits: Float64Array): EtaInterval {
  const runs = waits.sort();
  return {
    median: runs[MIDDLE]!,
    low: runs[LOW]!,
    high: runs[HIGH]!,
    quarters: [runs[LOWER_QUARTER]!, runs[UPPER_QUARTER]!],
    runs,
  };
}

/** `about 40 s (10 s to 2 min), 12 % chance to time out`. */
export function etaText(p: Prediction): string {
  if (p.interval === null) return "no query of this pool has ended yet, so nothing can be said";
  const { median, low, high } = p.interval;
  const chance = Math.round((p.timeoutChance ?? 0) * 100);
  const risk = chance === 0 ? "" : `, ${chance} % chance to time out`;
  return `about ${roughly(median)} (${roughly(low)} to ${roughly(high)})${risk}`;
}

/** Two digits: more would claim to know more. */
export function roughly(ms: number): string {
  if (ms < 100_000) return `${twoDigits(ms / 1000)} s`;
  if (ms < 6_000_000) return `${twoDigits(ms / 60_000)} min`;
  return `${twoDigits(ms / 3_600_000)} h`;
}

const twoDigits = (n: number): string => (n < 10 ? String(Math.round(n * 10) / 10) : String(Number(n.toPrecision(2))));
