/**
 * The numbers of one pool, folded from what happened (insight 2.1, 2.2, 2.4).
 *
 * Everything that lasts is an exact integral: value times length between two events. A state that nothing
 * lasted in is no state, so peaks are those of instants that are over (DESIGN 3): between the release of a
 * query's memory and that of its place, one step apart in one instant, nobody sees a peak.
 */
import type { QueueReason } from "../core/admission/reasons.ts";
import type { PoolConfig } from "../core/pool-config.ts";
import { isUnlimited } from "../core/units.ts";
import { type ExactPool, QueueOfPool, type Waiter, WaitLedger } from "./binding.ts";
import { ExcessMeter } from "./excess-meter.ts";
import { Histogram } from "./histogram.ts";

/** Of one user or coordinator of the pool. */
export interface WaitShare {
  admitted: number;
  waitedMs: number;
}

interface Kept {
  readonly running: number;
  readonly memory: number;
  readonly queued: number;
}
const NOTHING_KEPT: Kept = { running: 0, memory: 0, queued: 0 };

/** A negative limit is none. */
const atLeast = (limit: number, kept: number): number => (limit < 0 ? limit : Math.max(limit, kept));

/** While the pool had one record. */
export interface LimitEra {
  readonly config: PoolConfig | null;
  readonly from: number;
  /** Of it, with a nonempty queue. */
  busyMs: number;
}

export class PoolFold implements ExactPool {
  readonly name: string;
  /** One, unless the pool files changed. */
  readonly eras: LimitEra[] = [];

  // Counters
  submitted = 0;
  requests = 0;
  immediately = 0;
  trivially = 0;
  fromQueue = 0;
  readonly rejectedByRule = new Map<string, number>();
  rejected = 0;
  timedOut = 0;
  cancelled = 0;
  /** Refused before admission although they have a pool: their coordinator was gone. */
  unresolved = 0;
  finished = 0;
  failed = 0;
  cancelledRunning = 0;
  spilledBytes = 0;
  staleAdmissions = 0;
  /** Ages of the views that admissions were decided on, where several controllers decide. */
  readonly viewAges = new Histogram();
  admittedUnderPressure = 0;

  // Now
  running = 0;
  queued = 0;
  memory = 0;

  // Waits: from the intended arrival, of admitted queries
  readonly waits = new Histogram();
  /** From the first attempt's intention; the same object as `waits` until a retry is admitted. */
  requestWaits = this.waits;
  queueWaitMs = 0;
  readonly byUser: WaitShare[] = [];
  readonly byCoordinator: WaitShare[] = [];
  readonly byClass: Histogram[] = [];
  /** Largest peak on one host, by class; absent: none known. */
  readonly peakByClass: number[] = [];
  longestWait = -1;
  longestWaiter = "";

  // Over time
  peakRunning = 0;
  peakQueued = 0;
  peakMemory = 0;
  runningMs = 0;
  queuedMs = 0;
  memoryMs = 0;
  /** Time with a nonempty queue, and the memory admitted times length in it. */
  busyMs = 0;
  busyMemoryMs = 0;
  readonly overRunning = new ExcessMeter();
  readonly overMemory = new ExcessMeter();
  readonly overQueued = new ExcessMeter();
  readonly ledger = new WaitLedger();

  readonly #queues: QueueOfPool[] = [];
  /** The last admission was one that the exact state of the pool would have refused. */
  #wasStale = false;
  readonly #needs: number[] = [];
  readonly #foreseenNeed: (queryClass: number) => number;
  #era: LimitEra;
  /** What there was when a limit fell below it, as long as it lasts: nobody let that in over the limit. */
  #kept = NOTHING_KEPT;
  #last: number;

  /** `foreseenNeed` of a class: what it will be charged, before one of it was; -1 unknown. */
  constructor(name: string, config: PoolConfig | null, from: number, foreseenNeed: (queryClass: number) => number) {
    this.#foreseenNeed = foreseenNeed;
    this.name = name;
    this.#era = { config, from, busyMs: 0 };
    this.eras.push(this.#era);
    this.#last = from;
  }

  /** In force now (5.7); null: not to be known. */
  get config(): PoolConfig | null {
    return this.#era.config;
  }

  /** From now on; the state until now has been told. */
  useConfig(config: PoolConfig | null): void {
    this.#era = { config, from: this.#last, busyMs: 0 };
    this.eras.push(this.#era);
    this.#kept = { running: this.running, memory: this.memory, queued: this.queued };
  }

  needOf(queryClass: number): number {
    const known = this.#needs[queryClass];
    if (known !== undefined) return known;
    const foreseen = this.#foreseenNeed(queryClass);
    this.#needs[queryClass] = foreseen;
    return foreseen;
  }

  learnNeed(queryClass: number, cluster: number): void {
    this.#needs[queryClass] = cluster;
  }

  queue(index: number): QueueOfPool {
    let queue = this.#queues[index];
    if (queue === undefined) {
      queue = new QueueOfPool();
      for (let i = this.#queues.length; i <= index; i++) this.#queues[i] ??= new QueueOfPool();
      this.#queues[index] = queue;
    }
    return queue;
  }

  /** The first reason of a head that is more than "others are ahead". */
  get headReason(): QueueReason | null {
    const reasons = this.#queues.map((q) => q.reason).filter((r) => r !== null);
    return reasons.find((r) => r.rule !== "ADM-1") ?? reasons[0] ?? null;
  }

  /** hot: bench/simulate. The state since the last call has held until now. */
  advance(at: number): void {
    const ms = at - this.#last;
    if (ms <= 0) return;
    if (this.running > this.peakRunning) this.peakRunning = this.running;
    if (this.queued > this.peakQueued) this.peakQueued = this.queued;
    if (this.memory > this.peakMemory) this.peakMemory = this.memory;
    this.runningMs += this.running * ms;
    this.memoryMs += this.memory * ms;
    if (this.queued > 0) this.#advanceQueues(at, ms);
    if (this.config !== null) this.#measureExcess(this.config, ms);
    this.#last = at;
  }

  #advanceQueues(at: number, ms: number): void {
    this.queuedMs += this.queued * ms;
    this.busyMs += ms;
    this.#era.busyMs += ms;
    this.busyMemoryMs += this.memory * ms;
    this.ledger.interval(this.#last, at);
    for (const queue of this.#queues) if (queue.waiting > 0) queue.charge(this, this.ledger);
    this.ledger.closeInterval();
  }

  #measureExcess(config: PoolConfig, ms: number): void {
    if (this.#kept !== NOTHING_KEPT) this.#kept = this.#stillKept(this.#kept);
    const { running, memory, queued } = this.#kept;
    this.overRunning.add(this.running, atLeast(config.maxRequests, running), ms);
    this.overMemory.add(this.memory, atLeast(config.maxMemResources, memory), ms);
    this.overQueued.add(this.queued, atLeast(config.maxQueued, queued), ms);
  }

  #stillKept({ running, memory, queued }: Kept): Kept {
    return {
      running: Math.min(running, this.running),
      memory: Math.min(memory, this.memory),
      queued: Math.min(queued, this.queued),
    };
  }

  enqueue(queue: number, q: Waiter, reason: QueueReason): void {
    this.learnFrom(q.queryClass, reason);
    this.queue(queue).enter(q, reason);
    this.queued++;
  }

  dequeue(queue: number, q: Waiter, waited: number): void {
    this.queue(queue).leave(q);
    this.queued--;
    this.queueWaitMs += waited;
  }

  learnFrom(queryClass: number, reason: QueueReason): void {
    if (reason.rule === "ADM-4") this.learnNeed(queryClass, reason.needed);
  }

  admit(queryClass: number, cluster: number, wait: number, requestWait: number, isTrivial: boolean): void {
    this.learnNeed(queryClass, cluster);
    this.#wasStale = !isTrivial && this.#isOverFull(cluster);
    if (this.#wasStale) this.staleAdmissions++;
    if (this.queued > 0) this.admittedUnderPressure++;
    this.running++;
    this.memory += cluster;
    this.#addRequestWait(wait, requestWait);
    this.waits.add(wait);
    this.byClass[queryClass] ??= new Histogram();
    this.byClass[queryClass].add(wait);
  }

  /** Of the query just admitted. */
  viewUsed(ageMs: number, isOverOnAHost: boolean): void {
    if (ageMs >= 0) this.viewAges.add(ageMs);
    if (isOverOnAHost && !this.#wasStale) this.staleAdmissions++;
  }

  /** Whether the exact state would have refused one more. */
  #isOverFull(cluster: number): boolean {
    if (this.config === null) return false;
    const { maxRequests, maxMemResources } = this.config;
    return (
      (!isUnlimited(maxRequests) && this.running >= maxRequests) ||
      (!isUnlimited(maxMemResources) && this.memory + cluster > maxMemResources)
    );
  }

  /** Before `wait` is added: while both agree, one histogram serves for both. */
  #addRequestWait(wait: number, requestWait: number): void {
    if (this.requestWaits === this.waits) {
      if (wait === requestWait) return;
      this.requestWaits = new Histogram();
      this.requestWaits.addAll(this.waits);
    }
    this.requestWaits.add(requestWait);
  }

  learnPeak(queryClass: number, peak: number): void {
    if (peak > (this.peakByClass[queryClass] ?? -1)) this.peakByClass[queryClass] = peak;
  }

  share(list: WaitShare[], index: number, wait: number): void {
    list[index] ??= { admitted: 0, waitedMs: 0 };
    list[index].admitted++;
    list[index].waitedMs += wait;
  }
}
