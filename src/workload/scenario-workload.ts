/**
 * The workload of a scenario: its sources merged in order of time, retries and closed loops fed back in.
 *
 * Order among submissions due at the same moment is (line of `arrivals`, request, attempt), whatever order
 * endings arrived in; so two drivers that report the same endings get the same stream.
 */
import { DEFAULT_EXECUTION_OPTIONS, executionUnder, type OptionsInForce, shapeUnder } from "../config/request-shape.ts";
import type { Arrival, QueryClass, RetryCause, RetryPolicy, Scenario, TraceRow } from "../config/scenario.ts";
import { backendsOf, coordinatorsOf } from "../config/scenario-cluster.ts";
import { fail } from "../core/assert.ts";
import { hashOf, type Philox, philoxFor } from "../core/random.ts";
import type { Instant } from "../core/units.ts";
import { draw, isRandom, wholeMicros } from "./draw.ts";
import { type Source, sourceOf } from "./sources.ts";
import { type Placed, QueryIds, QuerySubmission } from "./submission.ts";
import type { Ending, Resolver, Submission, Workload } from "./workload.ts";

const NEVER = Number.POSITIVE_INFINITY;
/** Of a client and its coordinator. */
const ROUND_TRIP_MS = 1;

/** `replication` numbers independent repetitions of one scenario; 0 unless somebody repeats. */
export function createWorkload(scenario: Scenario, resolver: Resolver, replication = 0): Workload {
  return new ScenarioWorkload(scenario, resolver, replication);
}

/** One line of `arrivals` with everything that its requests draw from. */
interface Stream {
  readonly arrival: Arrival;
  readonly source: Source;
  readonly hash: number;
  readonly ids: QueryIds;
  readonly mixing: Philox;
  /** Rows of a trace, null for all others. */
  readonly rows: readonly TraceRow[] | null;
  /** The one class of all its requests, -1: each has to be looked up. */
  readonly onlyClass: number;
  /** No ending of its requests brings another: nobody retries, nobody waits for an answer. */
  readonly isOpen: boolean;
}

/** A class, and what does not change from one of its requests to the next. */
interface Kind {
  readonly queryClass: QueryClass;
  readonly values: Philox;
  /** NaN: drawn for each request. */
  readonly duration: number;
  readonly peak: number;
}

/** A retry or a follow-up that will be due. */
interface Pending {
  readonly at: number;
  readonly stream: number;
  readonly ordinal: number;
  readonly attempt: number;
  readonly firstIntended: number;
}

class ScenarioWorkload implements Workload {
  readonly #scenario: Scenario;
  readonly #resolver: Resolver;
  readonly #replication: number;
  readonly #streams: readonly Stream[];
  readonly #kinds: readonly Kind[];
  readonly #retrying: Philox;
  readonly #routing: Philox;
  readonly #placing: Philox;
  readonly #pending = new PendingHeap();
  readonly #estimateFactors: number[];
  readonly #coordinators: readonly string[];
  /** Those that clients can reach, in address order. */
  #reachable: readonly string[];
  /** By class and user of the class. */
  #placedByTurn: Placed[][];
  /** For trace rows with a user or a pool of their own. */
  readonly #placedByName = new Map<string, Placed>();
  #taken = 0;
  /** Taken, not ended, and able to bring another submission. */
  #promising = 0;
  /** Stream with the earliest open arrival. */
  #earliest = 0;
  #next = NEVER;

  constructor(scenario: Scenario, resolver: Resolver, replication: number) {
    this.#scenario = scenario;
    this.#resolver = resolver;
    this.#replication = replication;
    const { seed, queries } = scenario;
    const ids = philoxFor(seed, "query-id");
    const keys = sourceKeys(scenario);
    this.#streams = scenario.arrivals.map((arrival, i) => {
      const key = keys[i]!;
      return {
        arrival,
        source: sourceOf(arrival, seed, replication, key),
        hash: hashOf(key),
        ids: new QueryIds(ids, hashOf(key)),
        mixing: philoxFor(seed, `mix/${key}`),
        rows: arrival.kind === "trace" ? arrival.rows : null,
        onlyClass: arrival.kind !== "trace" && arrival.mix.length === 1 ? arrival.mix[0]!.queryClass : -1,
        isOpen: arrival.retry.on.length === 0 && arrival.kind !== "clients" && arrival.kind !== "trace",
      };
    });
    this.#kinds = queries.map((q) => kindOf(q, philoxFor(seed, `query/${q.name}`)));
    this.#retrying = philoxFor(seed, "retry");
    this.#routing = philoxFor(seed, "route");
    this.#placing = philoxFor(seed, "placement");
    this.#estimateFactors = queries.map(() => 1);
    this.#coordinators = coordinatorsOf(backendsOf(scenario.cluster));
    this.#reachable = this.#coordinators;
    this.#placedByTurn = queries.map(() => []);
    this.#earliest = earliestOf(this.#streams);
    this.#next = this.#whenNext();
  }

  nextAt(): Instant {
    return this.#next as Instant;
  }

  #whenNext(): number {
    const { limits } = this.#scenario;
    if (this.#taken >= limits.queries) return NEVER;
    const open = this.#streams[this.#earliest]?.source.at ?? NEVER;
    const at = Math.min(open, this.#pending.at);
    return at < limits.time ? at : NEVER;
  }

  /** hot: bench/workload */
  take(): Submission {
    if (this.#next === NEVER) fail("a submission is taken although none is due");
    const submission = this.#takeFirst();
    this.#next = this.#whenNext();
    return submission;
  }

  #takeFirst(): QuerySubmission {
    const index = this.#earliest;
    const source = this.#streams[index]?.source;
    if (source === undefined || this.#pending.isBefore(source.at, index, source.ordinal)) {
      const next = this.#pending.take();
      return this.#submission(next.stream, next.ordinal, next.attempt, next.at, next.firstIntended);
    }
    const { at, ordinal } = source;
    source.advance();
    this.#earliest = earliestOf(this.#streams);
    return this.#submission(index, ordinal, 1, at, at);
  }

  /** hot: bench/workload */
  ended(submission: Submission, how: Ending, at: Instant): void {
    if (!(submission instanceof QuerySubmission)) fail("a submission of another workload has ended");
    const stream = this.#streams[submission.source]!;
    if (stream.isOpen) return;
    this.#answer(stream, submission, how, at);
    this.#next = this.#whenNext();
  }

  #answer(stream: Stream, submission: QuerySubmission, how: Ending, at: Instant): void {
    const { arrival } = stream;
    const { retry } = arrival;
    if (this.#isPromising(stream, submission)) this.#promising--;
    // Who is refused at once and asks again at once, for ever, would do so within one instant; and live, where an answer
    // is never quite at once, as fast as the machine is.
    const soonest = Math.max(at, submission.intended + ROUND_TRIP_MS);
    if (asksAgain(retry, submission.attempt, how)) {
      const wished = at + this.#waitBefore(retry, stream, submission);
      this.#pending.add({
        at: wholeMicros(retry.attempts === NEVER ? Math.max(soonest, wished) : wished),
        stream: submission.source,
        ordinal: submission.ordinal,
        attempt: submission.attempt + 1,
        firstIntended: submission.firstIntended,
      });
      return;
    }
    const isEndless = arrival.kind === "clients" && arrival.requests === NEVER;
    for (const next of stream.source.followUp(submission.ordinal, at)) {
      const from = isEndless ? Math.max(soonest, next.at) : next.at;
      if (from < arrival.to)
        this.#pending.add({
          at: from,
          ordinal: next.ordinal,
          stream: submission.source,
          attempt: 1,
          firstIntended: from,
        });
    }
  }

  isExhausted(): boolean {
    return this.#promising === 0 && this.nextAt() === NEVER;
  }

  coordinatorGone(address: string): void {
    this.#reachable = this.#reachable.filter((c) => c !== address);
  }

  coordinatorBack(address: string): void {
    this.#reachable = this.#coordinators.filter((c) => c === address || this.#reachable.includes(c));
  }

  configurationChanged(): void {
    this.#placedByTurn = this.#placedByTurn.map(() => []);
    this.#placedByName.clear();
  }

  scaleEstimate(queryClass: number, factor: number): void {
    this.#estimateFactors[queryClass] = (this.#estimateFactors[queryClass] ?? 1) * factor;
    this.configurationChanged();
  }

  #submission(index: number, ordinal: number, attempt: number, at: number, first: number): QuerySubmission {
    const stream = this.#streams[index]!;
    const row = stream.rows === null ? null : (stream.rows[ordinal] ?? null);
    const kind = this.#kinds[row?.queryClass ?? this.#classOf(stream, ordinal)]!;
    const { queryClass, values } = kind;
    let duration = row?.duration ?? kind.duration;
    let peak = row?.peak ?? kind.peak;
    if (Number.isNaN(duration) || Number.isNaN(peak)) {
      values.at(ordinal, stream.hash, this.#replication, 0);
      if (Number.isNaN(duration)) duration = wholeMicros(draw(queryClass.duration, values.first()));
      if (Number.isNaN(peak)) peak = peakAt(queryClass, values.second());
    }
    const placed = this.#placed(queryClass, row, ordinal);
    const submission = new QuerySubmission(
      placed,
      stream.ids,
      index,
      ordinal,
      this.#taken++,
      attempt,
      at,
      first,
      row?.coordinator ?? this.#route(stream, index, ordinal, attempt),
      row?.shape ?? placed.shape,
      duration,
      peak,
      row === null ? 0 : row.spilled,
      queryClass.cancelAfter === null ? NEVER : this.#cancelAt(queryClass, values, stream, ordinal, at),
      placed.shape.executors === "all" ? 0 : this.#placementOffset(stream, ordinal),
    );
    if (!stream.isOpen && this.#isPromising(stream, submission)) this.#promising++;
    return submission;
  }

  #isPromising(stream: Stream, s: QuerySubmission): boolean {
    const { retry } = stream.arrival;
    return (retry.on.length > 0 && s.attempt < retry.attempts) || stream.source.canFollow(s.ordinal);
  }

  #classOf({ arrival, mixing, onlyClass }: Stream, ordinal: number): number {
    if (onlyClass >= 0) return onlyClass;
    const { mix } = arrival;
    mixing.at(ordinal, 0, this.#replication, 0);
    let left = mixing.first();
    for (const { queryClass, share } of mix) {
      if (left < share) return queryClass;
      left -= share;
    }
    return mix[mix.length - 1]?.queryClass ?? fail("an arrival without a class");
  }

  #cancelAt(queryClass: QueryClass, values: Philox, stream: Stream, ordinal: number, at: number): number {
    values.at(ordinal, stream.hash, this.#replication, 1);
    return wholeMicros(at + draw(queryClass.cancelAfter!, values.first()));
  }

  #placementOffset(stream: Stream, ordinal: number): number {
    this.#placing.at(ordinal, stream.hash, this.#replication, 0);
    return this.#placing.w0;
  }

  /** Round-robin goes by the request's number, not by the order of taking, which closed loops can change. */
  #route({ arrival, hash }: Stream, index: number, ordinal: number, attempt: number): string {
    const { route } = arrival;
    if (route.kind === "named") return route.host;
    const reachable = this.#reachable.length > 0 ? this.#reachable : this.#coordinators;
    if (reachable.length === 1) return reachable[0]!;
    if (route.kind === "round-robin") return reachable[(index + ordinal + attempt - 1) % reachable.length]!;
    this.#routing.at(ordinal, hash, attempt, this.#replication);
    return reachable[Math.floor(this.#routing.first() * reachable.length)]!;
  }

  #waitBefore(retry: RetryPolicy, stream: Stream, s: QuerySubmission): number {
    let wait: number = retry.first;
    for (let i = 1; i < s.attempt && wait < retry.most; i++) wait *= retry.factor;
    wait = Math.min(wait, retry.most);
    if (retry.jitter === "none") return wait;
    this.#retrying.at(s.ordinal, stream.hash, s.attempt, this.#replication);
    const u = this.#retrying.first();
    return retry.jitter === "full" ? u * wait : wait / 2 + (u * wait) / 2;
  }

  #placed(queryClass: QueryClass, row: TraceRow | null, ordinal: number): Placed {
    if (row !== null && (row.user !== null || row.pool !== null)) return this.#placedRow(queryClass, row, ordinal);
    const turn = ordinal % queryClass.users.length;
    const known = this.#placedByTurn[queryClass.index]![turn];
    if (known !== undefined) return known;
    const placed = this.#place(queryClass, queryClass.requestedPool, queryClass.users[turn]!);
    this.#placedByTurn[queryClass.index]![turn] = placed;
    return placed;
  }

  #placedRow(queryClass: QueryClass, row: TraceRow, ordinal: number): Placed {
    const user = row.user ?? queryClass.users[ordinal % queryClass.users.length]!;
    const pool = row.pool ?? queryClass.requestedPool;
    const key = `${queryClass.index}\0${user}\0${pool}`;
    const known = this.#placedByName.get(key);
    if (known !== undefined) return known;
    const placed = this.#place(queryClass, pool, user);
    this.#placedByName.set(key, placed);
    return placed;
  }

  #place(queryClass: QueryClass, requestedPool: string, connectedUser: string): Placed {
    const estimateFactor = this.#estimateFactors[queryClass.index] ?? 1;
    const inForce = (defaults: Readonly<Record<string, string>>, maxMtDop: number): OptionsInForce => ({
      options: { ...defaults, ...queryClass.options },
      maxMtDop,
      estimateFactor,
    });
    const resolution = this.#resolver.resolve(
      requestedPool,
      connectedUser,
      (defaults, maxMtDop) => shapeUnder(queryClass, queryClass.shape, inForce(defaults, maxMtDop)).perHostMemEstimate,
    );
    const common = { queryClass: queryClass.index, requestedPool, connectedUser };
    if (resolution.kind === "unresolved")
      return {
        ...common,
        pool: "",
        user: connectedUser,
        userGroups: [],
        unresolved: resolution.error,
        shape: queryClass.shape,
        execution: DEFAULT_EXECUTION_OPTIONS,
      };
    const options = inForce(resolution.defaultOptions, resolution.maxMtDop);
    return {
      ...common,
      pool: resolution.pool,
      user: resolution.user,
      userGroups: resolution.groups,
      unresolved: null,
      shape: shapeUnder(queryClass, queryClass.shape, options),
      execution: executionUnder(queryClass, options.options),
    };
  }
}

/**
 * Names of the sources' random streams: kind and classes, and a number where two lines agree in both. A line
 * for another class, before or after, leaves them as they are.
 */
function sourceKeys(scenario: Scenario): string[] {
  const seen = new Map<string, number>();
  return scenario.arrivals.map((arrival) => {
    const classes = arrival.mix.map((m) => scenario.queries[m.queryClass]?.name ?? "").join("+");
    const name = `${arrival.kind}/${classes}`;
    const number = seen.get(name) ?? 0;
    seen.set(name, number + 1);
    return `${name}#${number}`;
  });
}

function kindOf(queryClass: QueryClass, values: Philox): Kind {
  const { duration, uses } = queryClass;
  return {
    queryClass,
    values,
    duration: isRandom(duration) ? Number.NaN : wholeMicros(draw(duration, 0.5)),
    peak: uses.kind === "footprint" && isRandom(uses.peak) ? Number.NaN : peakAt(queryClass, 0.5),
  };
}

const peakAt = ({ uses }: QueryClass, u: number): number =>
  uses.kind === "footprint" ? Math.round(draw(uses.peak, u)) : 0;

/** The first one of those that are equal. */
function earliestOf(streams: readonly Stream[]): number {
  let earliest = 0;
  for (let i = 1; i < streams.length; i++) if (streams[i]!.source.at < streams[earliest]!.source.at) earliest = i;
  return earliest;
}

function asksAgain(retry: RetryPolicy, attempt: number, how: Ending): boolean {
  return attempt < retry.attempts && retry.on.includes(how as RetryCause);
}

/** Smallest first by (moment, line of arrivals, request, attempt). */
class PendingHeap {
  readonly #items: Pending[] = [];

  get at(): number {
    return this.#items[0]?.at ?? NEVER;
  }

  /** Whether the first one goes before an open arrival. */
  isBefore(at: number, stream: number, ordinal: number): boolean {
    const first = this.#items[0];
    if (first === undefined) return false;
    return (
      first.at < at ||
      (first.at === at && (first.stream < stream || (first.stream === stream && first.ordinal < ordinal)))
    );
  }

  add(item: Pending): void {
    const items = this.#items;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!precedes(item, items[parent]!)) break;
      items[at] = items[parent]!;
      at = parent;
    }
    items[at] = item;
  }

  take(): Pending {
    const items = this.#items;
    const first = items[0] ?? fail("nothing is pending");
    const last = items.pop()!;
    if (items.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && precedes(items[child + 1]!, items[child]!)) child++;
      if (!precedes(items[child]!, last)) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = last;
    return first;
  }
}

const precedes = (a: Pending, b: Pending): boolean =>
  a.at !== b.at
    ? a.at < b.at
    : a.stream !== b.stream
      ? a.stream < b.stream
      : a.ordinal !== b.ordinal
        ? a.ordinal < b.ordinal
        : a.attempt < b.attempt;
