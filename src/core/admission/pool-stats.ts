/**
 * The figures of one pool at one controller (admission 7, 10.4): its own, what others published, and the
 * aggregates that decisions look at.
 *
 * Own changes move the aggregates at once, except reserved memory, which moves only with a topic update
 * (7.4). Aggregates are therefore always remote sum + own, kept as two numbers instead of recomputed: the
 * remote sums change only when an entry does.
 */
import { invariant } from "../assert.ts";
import type { HeavyQuery, PoolFigures } from "../statestore/topic.ts";
import { type Bytes, GiB } from "../units.ts";
import { UserLoads } from "./user-loads.ts";
import type { PoolView } from "./views.ts";

/** At most this many trivial queries of one pool and controller skip the checks (admission 5.3). */
export const MAX_TRIVIAL_RUNNING = 3;
export const HISTOGRAM_BINS = 128;
const EMA_WEIGHT = 0.2;

/** What a host's trackers say about one pool; read when an update is published (admission 7.3). */
export interface BackendUsage {
  readonly memReserved: Bytes;
  /** `local-backend-mem-usage`. */
  readonly memUsage: Bytes;
  /** At most five, heaviest first. */
  readonly heavyQueries: readonly HeavyQuery[];
  readonly minMemConsumed: Bytes;
  readonly maxMemConsumed: Bytes;
  readonly totalMemConsumed: Bytes;
  readonly numRunning: number;
}

export const NO_USAGE: BackendUsage = {
  memReserved: 0 as Bytes,
  memUsage: 0 as Bytes,
  heavyQueries: [],
  minMemConsumed: 0 as Bytes,
  maxMemConsumed: 0 as Bytes,
  totalMemConsumed: 0 as Bytes,
  numRunning: 0,
};

const NO_LOADS: ReadonlyMap<string, number> = new Map();

export class PoolStats implements PoolView {
  readonly name: string;

  /** Own figures. */
  localRunning = 0;
  localQueued = 0;
  localMemAdmitted = 0;
  localTrivialRunning = 0;
  readonly localLoads = new UserLoads();
  /** As published last; `usage` is what the host would say now. */
  localMemReserved = 0;
  /** What of it is in the host's own `mem_reserved`, null before the first update. */
  countedMemReserved: number | null = null;
  published: BackendUsage = NO_USAGE;
  usage: BackendUsage = NO_USAGE;

  /** Sums over the others' entries. */
  #remoteRunning = 0;
  #remoteQueued = 0;
  #remoteReserved = 0;
  readonly #remote = new Map<string, PoolFigures>();
  #columnHosts: readonly string[] | null = null;
  #column = new Float64Array(0);

  aggMemReserved = 0;
  readonly aggLoads = new UserLoads();
  /** Remote loads changed, so `aggLoads` must be summed anew; and it changed since the root's loads were summed. */
  #loadsAreOld = false;
  loadsChanged = false;

  /** Counters since the start or the last reset. */
  totalAdmitted = 0;
  totalQueued = 0;
  totalDequeued = 0;
  totalRejected = 0;
  totalTimedOut = 0;
  totalReleased = 0;
  timeInQueueMs = 0;
  waitTimeMsEma = 0;
  readonly peakMemHistogram = new Float64Array(HISTOGRAM_BINS);

  constructor(name: string) {
    this.name = name;
  }

  get aggRunning(): number {
    return this.#remoteRunning + this.localRunning;
  }

  get aggQueued(): number {
    return this.#remoteQueued + this.localQueued;
  }

  /** A maximum, not a sum, and without what other controllers admitted (T-26). */
  get effectiveMemReserved(): number {
    return Math.max(this.aggMemReserved, this.localMemAdmitted);
  }

  queue(): void {
    this.localQueued++;
    this.totalQueued++;
  }

  /** Left the queue: by its timeout, or by a pass or a cancellation (T-53). */
  dequeue(timedOut: boolean): void {
    this.localQueued--;
    invariant(this.localQueued >= 0, "who leaves a queue was counted into it");
    if (timedOut) this.totalTimedOut++;
    else this.totalDequeued++;
  }

  countUser(user: string): void {
    this.loadsChanged = true;
    this.aggLoads.increment(user);
    this.localLoads.increment(user);
  }

  uncountUser(user: string): void {
    this.loadsChanged = true;
    this.aggLoads.decrement(user);
    this.localLoads.decrement(user);
  }

  /** For tests of the aggregation: own loads as if so many were queued or running. */
  setLocalLoad(user: string, load: number): void {
    this.localLoads.set(user, load);
    this.#loadsAreOld = true;
  }

  /** hot: bench/decision */
  admit(clusterMem: number, isTrivial: boolean): void {
    this.localMemAdmitted += clusterMem;
    this.localRunning++;
    this.totalAdmitted++;
    if (isTrivial) this.localTrivialRunning++;
  }

  releaseMem(bytes: number): void {
    this.localMemAdmitted -= bytes;
    invariant(this.localMemAdmitted >= 0, "a pool gives back the memory it was charged");
  }

  /** hot: bench/decision. `peak` -1: unknown, not counted. */
  releaseQuery(peak: number, isTrivial: boolean): void {
    this.localRunning--;
    this.totalReleased++;
    if (isTrivial) this.localTrivialRunning--;
    invariant(this.localRunning >= 0 && this.localTrivialRunning >= 0, "who is released was counted as running");
    if (peak < 0) return;
    const bin = Math.max(1, Math.min(HISTOGRAM_BINS, Math.ceil(peak / GiB))) - 1;
    this.peakMemHistogram[bin] = this.peakMemHistogram[bin]! + 1;
  }

  /** hot: bench/decision. Immediate admissions feed 0; a stored 0 is replaced outright (T-56). */
  countWait(ms: number): void {
    this.timeInQueueMs += ms;
    this.waitTimeMsEma = this.waitTimeMsEma === 0 ? ms : this.waitTimeMsEma * (1 - EMA_WEIGHT) + ms * EMA_WEIGHT;
  }

  /** The "informational" figures only (admission 10.4). */
  resetInformational(): void {
    this.totalAdmitted = 0;
    this.totalQueued = 0;
    this.totalDequeued = 0;
    this.totalRejected = 0;
    this.totalTimedOut = 0;
    this.totalReleased = 0;
    this.timeInQueueMs = 0;
    this.waitTimeMsEma = 0;
    this.peakMemHistogram.fill(0);
  }

  // ---- the topic

  remote(host: string): PoolFigures | undefined {
    return this.#remote.get(host);
  }

  /** In the order in which they were first heard of. */
  remotes(): ReadonlyMap<string, PoolFigures> {
    return this.#remote;
  }

  /** Sets or, with null, deletes another publisher's entry. */
  setRemote(host: string, figures: PoolFigures | null): void {
    const before = this.#remote.get(host);
    if (before !== undefined) this.#addRemote(before, -1);
    if (figures === null) this.#remote.delete(host);
    else {
      this.#remote.set(host, figures);
      this.#addRemote(figures, 1);
    }
  }

  /** Reservations of hosts that publish nothing else, in the order of `hosts`; NaN: no entry. */
  columnOver(hosts: readonly string[]): Float64Array {
    if (this.#columnHosts === hosts) return this.#column;
    invariant(this.#columnHosts === null, "a run has one list of hosts for columns");
    this.#columnHosts = hosts;
    this.#column = new Float64Array(hosts.length).fill(Number.NaN);
    return this.#column;
  }

  addRemoteReserved(change: number): void {
    this.#remoteReserved += change;
  }

  #addRemote(figures: PoolFigures, sign: 1 | -1): void {
    this.#remoteRunning += sign * figures.numAdmittedRunning;
    this.#remoteQueued += sign * figures.numQueued;
    this.#remoteReserved += sign * figures.backendMemReserved;
    if (figures.userLoads.size > 0) this.#loadsAreOld = true;
  }

  /** What 7.4 recomputes after an update: reserved memory and user loads. */
  updateAggregates(): void {
    this.aggMemReserved = this.#remoteReserved + this.localMemReserved;
    if (!this.#loadsAreOld) return;
    this.#loadsAreOld = false;
    this.loadsChanged = true;
    this.aggLoads.clear();
    for (const figures of this.#remote.values()) this.aggLoads.add(figures.userLoads);
    this.aggLoads.add(this.localLoads.entries());
  }

  /** Takes over what the host says; true when the reservation moved, which marks the pool (admission 7.3). */
  refreshUsage(): boolean {
    this.published = this.usage;
    const moved = this.usage.memReserved !== this.localMemReserved;
    this.localMemReserved = this.usage.memReserved;
    return moved;
  }

  /** `POOL:` of this controller, as it is now (admission 7.2). */
  publish(): PoolFigures {
    const usage = this.published;
    return {
      numAdmittedRunning: this.localRunning,
      numQueued: this.localQueued,
      backendMemReserved: this.localMemReserved as Bytes,
      userLoads: this.localLoads.size === 0 ? NO_LOADS : new Map(this.localLoads.entries()),
      heavyQueries: usage.heavyQueries,
      minMemConsumed: usage.minMemConsumed,
      maxMemConsumed: usage.maxMemConsumed,
      totalMemConsumed: usage.totalMemConsumed,
      numRunning: usage.numRunning,
    };
  }
}
