/**
 * What waiting is due to: every second of every waiting query is charged to a cause (insight 2.3).
 *
 * The head of a queue is charged to what keeps it from going, a follower to the same, or to "queue order" when
 * it alone could go now. The sum over the causes is the sum of all waits, exactly. All is judged against the exact
 * state: running limit and pool memory by the fold's own sums, slots and host memory by what the driver has looked
 * up (`HostLooks`). Where no driver looks, as on threads of several live coordinators, slots and hosts are as the
 * head's controller saw them.
 */
import type { QueueReason } from "../core/admission/reasons.ts";
import { invariant, unreachable } from "../core/assert.ts";
import type { PoolConfig } from "../core/pool-config.ts";
import { isUnlimited } from "../core/units.ts";

export const CONSTRAINTS = [
  "runningLimit",
  "slots",
  "poolMemory",
  "hostMemory",
  "reservation",
  "queueOrder",
  "staleView",
  "wakeUp",
  "executorsMissing",
  "coordinatorMissing",
] as const;
export type Constraint = (typeof CONSTRAINTS)[number];

/** Words for people, and the rule where there is one. */
export const CONSTRAINT_TEXT: Readonly<Record<Constraint, string>> = {
  runningLimit: "running limit (ADM-2)",
  slots: "slots (ADM-3)",
  poolMemory: "pool memory (ADM-4)",
  hostMemory: "host memory (ADM-5)",
  reservation: "memory limit below the reservation (ADM-6)",
  queueOrder: "queue order (ADM-1)",
  staleView: "stale view",
  wakeUp: "wake-up",
  executorsMissing: "executors missing",
  coordinatorMissing: "coordinator missing",
};

/** For people who meet the word for the first time, where it is more than a little. */
export const STALE_VIEW_MEANS =
  "stale view: there was room, but word of it was still on its way through the statestore";
export const WORTH_EXPLAINING = 0.05;

const INDEX = Object.fromEntries(CONSTRAINTS.map((c, i) => [c, i])) as Readonly<Record<Constraint, number>>;
const COUNT = CONSTRAINTS.length;

/** The pool's exact state, summed over controllers. */
export interface ExactPool {
  readonly running: number;
  readonly memory: number;
  readonly config: PoolConfig | null;
  /** Cluster memory that a query of this class is charged, -1: not known yet. */
  needOf(queryClass: number): number;
}

/** Of a waiting query; the same object as long as it waits. */
export interface Waiter {
  readonly queryClass: number;
}

/** How many that have left may stand before the head. */
const MOST_LEFT = 256;

/** One controller's queue for one pool: who waits, in order, each with the reason that it was told last. */
export class QueueOfPool {
  waiting = 0;
  /** null: has left. */
  readonly #waiters: (Waiter | null)[] = [];
  readonly #reasons: QueueReason[] = [];
  /** Where the head stands. */
  #first = 0;
  /** Why its head waits; null: nobody does. */
  get reason(): QueueReason | null {
    return this.waiting > 0 ? this.#reasons[this.#first]! : null;
  }
  readonly #byClass: number[] = [];
  /** Slots and host memory in the exact state, by class; absent: nobody has looked. */
  readonly #onHosts: (Causes | undefined)[] = [];
  /** For how long one of this class that could go has stood behind this head. */
  readonly #standing: number[] = [];
  /** The head waits although the exact state would let it in. */
  #isPhantom = false;

  enter(q: Waiter, reason: QueueReason): void {
    if (this.waiting === 0) this.#newHead();
    this.waiting++;
    this.#waiters.push(q);
    this.#reasons.push(reason);
    this.#byClass[q.queryClass] = (this.#byClass[q.queryClass] ?? 0) + 1;
  }

  leave(q: Waiter): void {
    this.waiting--;
    this.#byClass[q.queryClass]!--;
    const waiters = this.#waiters;
    if (waiters[this.#first] !== q) {
      const place = this.#placeOf(q);
      invariant(place >= 0, "who leaves a queue was in it");
      waiters[place] = null;
      return;
    }
    do this.#first++;
    while (this.#first < waiters.length && waiters[this.#first] === null);
    if (this.#first > MOST_LEFT) this.#forgetLeft();
    this.#newHead();
  }

  #forgetLeft(): void {
    this.#waiters.splice(0, this.#first);
    this.#reasons.splice(0, this.#first);
    this.#first = 0;
  }

  #placeOf(q: Waiter): number {
    return this.#waiters[this.#first] === q ? this.#first : this.#waiters.indexOf(q, this.#first);
  }

  #newHead(): void {
    if (this.#standing.length > 0) this.#standing.length = 0;
    this.#isPhantom = false;
  }

  headWaits(q: Waiter, reason: QueueReason): void {
    const place = this.#placeOf(q);
    invariant(place >= 0, "a head that waits is in the queue");
    this.#reasons[place] = reason;
  }

  hostsChecked({ queryClass }: Waiter, slots: boolean, hostMemory: boolean): void {
    this.#onHosts[queryClass] = (slots ? bit("slots") : 0) | (hostMemory ? bit("hostMemory") : 0);
  }

  /** Everybody here has waited through the ledger's interval in this state of the pool. */
  charge(pool: ExactPool, ledger: WaitLedger): void {
    const reason = this.#reasons[this.#first]!;
    const headClass = this.#waiters[this.#first]!.queryClass;
    const head = causesFor(reason, headClass, pool, this.#onHosts[headClass]);
    ledger.addHead(head);
    this.#notePhantom(head === STALE_VIEW, ledger);
    let followers = 0;
    for (let c = 0; c < this.#byClass.length; c++) {
      const count = this.#byClass[c] ?? 0;
      if (count === 0) continue;
      const isHeads = c === headClass;
      if (!isHeads && couldGoAlone(c, reason, pool, this.#onHosts[c])) {
        ledger.add(QUEUE_ORDER, count);
        const stood = (this.#standing[c] ?? 0) + ledger.ms;
        this.#standing[c] = stood;
        ledger.stoodBehind(stood);
      } else {
        followers += count;
        this.#standing[c] = 0;
      }
    }
    ledger.add(head, followers);
  }

  /** Counted when it begins; with another head it begins anew. */
  #notePhantom(isPhantom: boolean, ledger: WaitLedger): void {
    if (isPhantom && !this.#isPhantom) ledger.phantomWaits++;
    this.#isPhantom = isPhantom;
  }
}

/** Bits of the constraints; several bits: they bind only together. */
type Causes = number;

const bit = (c: Constraint): Causes => 1 << INDEX[c];
const QUEUE_ORDER = bit("queueOrder");
const STALE_VIEW = bit("staleView");

function causesFor(reason: QueueReason, queryClass: number, pool: ExactPool, onHosts: Causes | undefined): Causes {
  const exact = poolCauses(reason, queryClass, pool) | (onHosts ?? 0);
  switch (reason.rule) {
    case "ADM-1":
      return exact === 0 ? bit("wakeUp") : exact;
    case "ADM-2":
    case "ADM-4":
      return exact === 0 ? STALE_VIEW : exact;
    case "ADM-3":
      return onHosts === undefined ? exact | bit("slots") : exact === 0 ? STALE_VIEW : exact;
    case "ADM-5":
      return onHosts === undefined ? exact | bit("hostMemory") : exact === 0 ? STALE_VIEW : exact;
    case "ADM-6":
      return exact | bit("reservation");
    case "NO-EXECUTORS":
      return bit("executorsMissing");
    case "NO-COORDINATOR":
      return bit("coordinatorMissing");
    default:
      return unreachable(reason);
  }
}

/** Running limit and pool memory, against the exact state. */
function poolCauses(reason: QueueReason, queryClass: number, pool: ExactPool): Causes {
  const { config } = pool;
  if (config === null)
    return reason.rule === "ADM-2" ? bit("runningLimit") : reason.rule === "ADM-4" ? bit("poolMemory") : 0;
  const need = pool.needOf(queryClass);
  const overRunning = !isUnlimited(config.maxRequests) && pool.running >= config.maxRequests;
  const overMemory = !isUnlimited(config.maxMemResources) && need >= 0 && pool.memory + need > config.maxMemResources;
  return (overRunning ? bit("runningLimit") : 0) | (overMemory ? bit("poolMemory") : 0);
}

/**
 * Where nobody has looked at hosts, only what the pool's own limits can prove: when a host or a slot stops the head, a
 * follower is not asked. Without executors or its coordinator nobody could go.
 */
function couldGoAlone(queryClass: number, reason: QueueReason, pool: ExactPool, onHosts: Causes | undefined): boolean {
  if (pool.config === null || pool.needOf(queryClass) < 0) return false;
  if (reason.rule === "NO-EXECUTORS" || reason.rule === "NO-COORDINATOR") return false;
  if (onHosts !== undefined) return (onHosts | poolCauses(reason, queryClass, pool)) === 0;
  const stoppedByPool = reason.rule === "ADM-1" || reason.rule === "ADM-2" || reason.rule === "ADM-4";
  return stoppedByPool && poolCauses(reason, queryClass, pool) === 0;
}

/** Bins double when the run outgrows them, so that any run has between 60 and 120 of them. */
const BINS = 120;
const FIRST_BIN_MS = 100;

export interface ConstraintShare {
  readonly constraint: Constraint;
  /** Query-milliseconds charged to it, its parts of joint ones included. */
  readonly waitedMs: number;
  /** Of these, those in which it was not alone. */
  readonly jointMs: number;
  /** Time in which it stopped some head. */
  readonly headMs: number;
}

export class WaitLedger {
  readonly #waited = new Float64Array(COUNT);
  readonly #joint = new Float64Array(COUNT);
  readonly #head = new Float64Array(COUNT);
  #bins = new Float64Array(COUNT * BINS);
  #binMs = FIRST_BIN_MS;
  #from = 0;
  #until = 0;
  /** What stopped some head in this interval. */
  #heads: Causes = 0;
  /** Times at which some head waited on although the exact state would have let it in. */
  phantomWaits = 0;
  /** Longest that a query which could have gone stood behind one head. */
  longestBehind = 0;

  /** What is added from now on was waited in this time. */
  interval(from: number, until: number): void {
    this.#from = from;
    this.#until = until;
    this.#heads = 0;
    while (until > this.#binMs * BINS) this.#halveBins();
  }

  /** Length of the interval. */
  get ms(): number {
    return this.#until - this.#from;
  }

  stoodBehind(ms: number): void {
    if (ms > this.longestBehind) this.longestBehind = ms;
  }

  /** hot: bench/simulate. So many queries have waited for these causes throughout the interval. */
  add(causes: Causes, queries: number): void {
    if (queries === 0) return;
    const members = bitCount(causes);
    const weight = queries / members;
    const part = weight * (this.#until - this.#from);
    for (let i = 0; i < COUNT; i++) {
      if ((causes & (1 << i)) === 0) continue;
      this.#waited[i]! += part;
      if (members > 1) this.#joint[i]! += part;
      this.#addToBins(i, weight);
    }
  }

  addHead(causes: Causes): void {
    this.#heads |= causes;
  }

  /** All queues have been charged. Time counts once, however many heads a cause has stopped in it. */
  closeInterval(): void {
    const ms = this.#until - this.#from;
    for (let i = 0; i < COUNT; i++) if ((this.#heads & (1 << i)) !== 0) this.#head[i]! += ms;
  }

  get totalMs(): number {
    return this.#waited.reduce((sum, ms) => sum + ms, 0);
  }

  /** Largest first, those that never bound left out. */
  shares(): ConstraintShare[] {
    return CONSTRAINTS.map((constraint, i) => ({
      constraint,
      waitedMs: this.#waited[i]!,
      jointMs: this.#joint[i]!,
      headMs: this.#head[i]!,
    }))
      .filter((share) => share.waitedMs > 0)
      .sort((a, b) => b.waitedMs - a.waitedMs);
  }

  /** The constraint with most waiting in each of `count` equal intervals up to `end`, null where nothing waited. */
  overTime(end: number, count: number): (Constraint | null)[] {
    return Array.from({ length: count }, (_, k) => {
      const sums = new Float64Array(COUNT);
      const from = Math.floor((end * k) / count / this.#binMs);
      const to = Math.max(from + 1, Math.floor((end * (k + 1)) / count / this.#binMs));
      for (let bin = from; bin < Math.min(to, BINS); bin++)
        for (let i = 0; i < COUNT; i++) sums[i]! += this.#bins[bin * COUNT + i]!;
      const most = sums.indexOf(Math.max(...sums));
      return sums[most]! > 0 ? (CONSTRAINTS[most] ?? null) : null;
    });
  }

  #addToBins(constraint: number, weight: number): void {
    const width = this.#binMs;
    let from = this.#from;
    for (let bin = Math.floor(from / width); from < this.#until; bin++) {
      const end = Math.min((bin + 1) * width, this.#until);
      this.#bins[bin * COUNT + constraint]! += weight * (end - from);
      from = end;
    }
  }

  #halveBins(): void {
    const merged = new Float64Array(COUNT * BINS);
    for (let bin = 0; bin < BINS; bin++)
      for (let i = 0; i < COUNT; i++) merged[(bin >> 1) * COUNT + i]! += this.#bins[bin * COUNT + i]!;
    this.#bins = merged;
    this.#binMs *= 2;
  }
}

function bitCount(bits: number): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++;
  return count;
}
