/**
 * A day of requests drawn once and played many times (insight 3.4 item 7).
 *
 * Candidates that are compared must see the same requests, and drawing them anew for each costs more than
 * deciding them. So they are written into typed arrays, which worker threads share, and a candidate draws
 * nothing. Only open traffic can be recorded: whoever waits for answers asks differently in every run.
 */

import type { ExecutionOptions } from "../config/request-shape.ts";
import type { Fault, Scenario } from "../config/scenario.ts";
import type { RequestShape } from "../core/admission/request.ts";
import { fail } from "../core/assert.ts";
import { type Instant, MICROS_PER_MS, type Millis } from "../core/units.ts";
import type { Submission, Workload } from "./workload.ts";

/** What requests share: class, pool, user and everything that follows from them. */
export interface RequestKind {
  readonly queryClass: number;
  readonly pool: string;
  readonly user: string;
  readonly userGroups: readonly string[] | null;
  readonly requestedPool: string;
  readonly connectedUser: string;
  readonly unresolved: string | null;
  readonly shape: RequestShape;
  readonly execution: ExecutionOptions;
}

/** Plain data over shared memory; in order of time. */
export interface RecordedRequests {
  readonly count: number;
  /** Emulated milliseconds. */
  readonly at: Float64Array;
  /** Admission to last row on an idle cluster, milliseconds. */
  readonly duration: Float64Array;
  /** Bytes per host. */
  readonly peak: Float64Array;
  /** Of them, what `duration` contains the writing of. */
  readonly spilled: Float64Array;
  /** Index into `kinds`. */
  readonly kind: Int32Array;
  readonly coordinator: Int32Array;
  readonly placementOffset: Uint32Array;
  readonly kinds: readonly RequestKind[];
  readonly coordinators: readonly string[];
}

/** Whether nothing in it depends on answers: no clients, no retries, no rows that follow others. */
export const isOpenTraffic = (scenario: Scenario): boolean =>
  scenario.arrivals.every(
    (a) =>
      a.kind !== "clients" &&
      (a.retry.on.length === 0 || a.retry.attempts <= 1) &&
      (a.kind !== "trace" || a.rows.every((r) => r.after === null)),
  ) && scenario.queries.every((q) => q.cancelAfter === null);

/** Takes everything an open workload has, at most `most` requests; `faults`: those of the run that they are for. */
export function recordRequests(workload: Workload, faults: readonly Fault[] = [], most = 50_000_000): RecordedRequests {
  const recorder = new RequestsRecorder();
  const inOrder = [...faults].sort((a, b) => a.at - b.at);
  let come = 0;
  while (workload.nextAt() !== Number.POSITIVE_INFINITY) {
    if (recorder.count >= most) fail("a workload without an end was to be recorded");
    // As in the simulator, after the requests of the same instant.
    for (; come < inOrder.length && inOrder[come]!.at < workload.nextAt(); come++)
      noticeFault(workload, inOrder[come]!);
    const s = workload.take();
    recorder.add(s);
    workload.ended(s, "finished", s.intended);
  }
  return recorder.finish();
}

/** What clients make of a fault, whatever it does to the cluster; the simulator tells a workload the same. */
function noticeFault(workload: Workload, fault: Fault): void {
  switch (fault.kind) {
    case "statisticsDropped":
      workload.scaleEstimate(fault.queryClass, fault.factor);
      break;
    case "hostDies":
    case "coordinatorDies":
      workload.coordinatorGone(fault.host);
      break;
    case "hostReturns":
    case "coordinatorReturns":
      workload.coordinatorBack(fault.host);
      break;
    default:
  }
}

/** What a record keeps of a submission. */
export type RecordedFields = Pick<
  Submission,
  keyof RequestKind | "intended" | "duration" | "peak" | "spilled" | "coordinator" | "placementOffset"
>;

/** Requests from wherever they come, in order of time. */
export class RequestsRecorder {
  readonly #columns = new Columns();
  readonly #kinds = new KindBook();
  readonly #coordinators = new Map<string, number>();

  get count(): number {
    return this.#columns.count;
  }

  add(s: RecordedFields): void {
    let coordinator = this.#coordinators.get(s.coordinator);
    if (coordinator === undefined) {
      coordinator = this.#coordinators.size;
      this.#coordinators.set(s.coordinator, coordinator);
    }
    this.#columns.add(s, this.#kinds.indexOf(s), coordinator);
  }

  finish(): RecordedRequests {
    return { ...this.#columns.finish(), kinds: this.#kinds.kinds, coordinators: [...this.#coordinators.keys()] };
  }
}

class KindBook {
  readonly kinds: RequestKind[] = [];
  private readonly byShape = new Map<RequestShape, Map<string, number>>();

  indexOf(s: RecordedFields): number {
    let byName = this.byShape.get(s.shape);
    if (byName === undefined) {
      byName = new Map();
      this.byShape.set(s.shape, byName);
    }
    const key = `${s.queryClass}\n${s.pool}\n${s.connectedUser}\n${s.requestedPool}`;
    let index = byName.get(key);
    if (index === undefined) {
      index = this.kinds.length;
      byName.set(key, index);
      this.kinds.push({
        queryClass: s.queryClass,
        pool: s.pool,
        user: s.user,
        userGroups: s.userGroups,
        requestedPool: s.requestedPool,
        connectedUser: s.connectedUser,
        unresolved: s.unresolved,
        shape: s.shape,
        execution: s.execution,
      });
    }
    return index;
  }
}

/** Columns that grow by doubling and end in shared memory of the right size. */
class Columns {
  count = 0;
  private at = new Float64Array(1024);
  private duration = new Float64Array(1024);
  private peak = new Float64Array(1024);
  private spilled = new Float64Array(1024);
  private kind = new Int32Array(1024);
  private coordinator = new Int32Array(1024);
  private placementOffset = new Uint32Array(1024);

  add(s: RecordedFields, kind: number, coordinator: number): void {
    const i = this.count++;
    if (i === this.at.length) this.grow();
    this.at[i] = s.intended;
    this.duration[i] = s.duration;
    this.peak[i] = s.peak;
    this.spilled[i] = s.spilled;
    this.kind[i] = kind;
    this.coordinator[i] = coordinator;
    this.placementOffset[i] = s.placementOffset;
  }

  private grow(): void {
    const size = this.at.length * 2;
    const larger = <A extends Float64Array | Int32Array | Uint32Array>(made: A, old: A): A => {
      made.set(old);
      return made;
    };
    this.at = larger(new Float64Array(size), this.at);
    this.duration = larger(new Float64Array(size), this.duration);
    this.peak = larger(new Float64Array(size), this.peak);
    this.spilled = larger(new Float64Array(size), this.spilled);
    this.kind = larger(new Int32Array(size), this.kind);
    this.coordinator = larger(new Int32Array(size), this.coordinator);
    this.placementOffset = larger(new Uint32Array(size), this.placementOffset);
  }

  finish(): Omit<RecordedRequests, "kinds" | "coordinators"> {
    const { count } = this;
    return {
      count,
      at: sharedFloats(this.at, count),
      duration: sharedFloats(this.duration, count),
      peak: sharedFloats(this.peak, count),
      spilled: sharedFloats(this.spilled, count),
      kind: sharedInts(this.kind, count),
      coordinator: sharedInts(this.coordinator, count),
      placementOffset: sharedWords(this.placementOffset, count),
    };
  }
}

function sharedFloats(from: Float64Array, count: number): Float64Array {
  const made = new Float64Array(new SharedArrayBuffer(count * 8));
  made.set(from.subarray(0, count));
  return made;
}

function sharedInts(from: Int32Array, count: number): Int32Array {
  const made = new Int32Array(new SharedArrayBuffer(count * 4));
  made.set(from.subarray(0, count));
  return made;
}

function sharedWords(from: Uint32Array, count: number): Uint32Array {
  const made = new Uint32Array(new SharedArrayBuffer(count * 4));
  made.set(from.subarray(0, count));
  return made;
}

/** First request at or after `ms`. */
export function firstAtOrAfter(r: RecordedRequests, ms: number): number {
  let low = 0;
  let high = r.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (r.at[middle]! < ms) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** How a play differs from the record: other pools, clients that give up. */
export interface Variation {
  /** Pool of each kind; absent: as recorded. */
  readonly poolOf?: (kind: number) => string;
  /** When the client gives up, Infinity: never; absent: nobody does. */
  readonly cancelAtOf?: (index: number) => number;
  /**
   * The request whose end comes before this one where both fall into one instant, -1: none; absent: requests come before
   * whatever else happens in their instant.
   */
  readonly answersOf?: (index: number) => number;
}

/** How long the end of another request in the same instant is waited for: less than any other distance of two moments. */
const ONE_MICRO = 1 / MICROS_PER_MS;

const NO_HOSTS: readonly string[] = [];

/** Plays the requests [from, to) of a record at their times. */
export class RecordedWorkload implements Workload {
  readonly #requests: RecordedRequests;
  readonly #kinds: readonly RequestKind[];
  readonly #to: number;
  readonly #variation: Variation;
  /** 1: it is over; empty where nobody asks. */
  readonly #isOver: Uint8Array;
  #next: number;

  constructor(requests: RecordedRequests, from = 0, to: number = requests.count, variation: Variation = {}) {
    this.#requests = requests;
    this.#next = from;
    this.#to = to;
    this.#variation = variation;
    const { poolOf, answersOf } = variation;
    this.#isOver = new Uint8Array(answersOf === undefined ? 0 : requests.count);
    this.#kinds = poolOf === undefined ? requests.kinds : requests.kinds.map((k, i) => ({ ...k, pool: poolOf(i) }));
  }

  /** hot: bench/size */
  nextAt(): Instant {
    if (this.#next >= this.#to) return Number.POSITIVE_INFINITY as Instant;
    const at = this.#requests.at[this.#next]!;
    const { answersOf } = this.#variation;
    if (answersOf === undefined) return at as Instant;
    const before = answersOf(this.#next);
    return (before < 0 || this.#isOver[before] === 1 ? at : at + ONE_MICRO) as Instant;
  }

  /** hot: bench/size */
  take(): Submission {
    const i = this.#next++;
    const r = this.#requests;
    const { cancelAtOf } = this.#variation;
    return new RecordedSubmission(
      i,
      this.#kinds[r.kind[i]!]!,
      r.coordinators[r.coordinator[i]!]!,
      r.at[i]!,
      r.duration[i]!,
      r.peak[i]!,
      r.spilled[i]!,
      r.placementOffset[i]!,
      cancelAtOf === undefined ? Number.POSITIVE_INFINITY : cancelAtOf(i),
    );
  }

  /** Open traffic: what became of a request changes nothing but what comes first in one instant. */
  ended(submission: Submission): void {
    if (this.#isOver.length > 0) this.#isOver[submission.sequence] = 1;
  }

  isExhausted(): boolean {
    return this.#next >= this.#to;
  }

  coordinatorGone(): void {
    // Recorded requests go where they went: who was avoided was avoided when they were recorded.
  }

  coordinatorBack(): void {
    // As above.
  }

  configurationChanged(): void {
    // Pools were resolved when the requests were recorded.
  }

  scaleEstimate(): void {
    fail("estimates of recorded requests change while they are recorded");
  }
}

class RecordedSubmission implements Submission {
  readonly sequence: number;
  readonly kind: RequestKind;
  readonly coordinator: string;
  readonly intended: Instant;
  readonly duration: Millis;
  readonly peak: number;
  readonly spilled: number;
  readonly placementOffset: number;
  readonly shape: RequestShape;
  readonly cancelAt: Instant;

  constructor(
    sequence: number,
    kind: RequestKind,
    coordinator: string,
    at: number,
    duration: number,
    peak: number,
    spilled: number,
    placementOffset: number,
    cancelAt: number,
  ) {
    this.sequence = sequence;
    this.kind = kind;
    this.coordinator = coordinator;
    this.intended = at as Instant;
    this.duration = duration as Millis;
    this.peak = peak;
    this.spilled = spilled;
    this.placementOffset = placementOffset;
    this.shape = kind.shape;
    this.cancelAt = cancelAt as Instant;
  }

  get queryId(): string {
    return String(this.sequence);
  }
  get request(): string {
    return this.queryId;
  }
  get attempt(): number {
    return 1;
  }
  get firstIntended(): Instant {
    return this.intended;
  }
  get queryClass(): number {
    return this.kind.queryClass;
  }
  get execution(): ExecutionOptions {
    return this.kind.execution;
  }
  get pool(): string {
    return this.kind.pool;
  }
  get user(): string {
    return this.kind.user;
  }
  get userGroups(): readonly string[] | null {
    return this.kind.userGroups;
  }
  get requestedPool(): string {
    return this.kind.requestedPool;
  }
  get connectedUser(): string {
    return this.kind.connectedUser;
  }
  get unresolved(): string | null {
    return this.kind.unresolved;
  }
  get blacklistedExecutors(): readonly string[] {
    return NO_HOSTS;
  }
}
