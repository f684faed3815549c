/**
 * What must be true of every simulated run, whatever its scenario; each has a name that a failure carries.
 *
 *   books        every figure of a controller is the sum over its queries (core/admission/invariants.ts)
 *   counters     queued = dequeued + timed out + waiting, and no time-out twice
 *   fifo         one FIFO per coordinator and pool: out by its head, by time-out or by cancellation (5.2)
 *   wake-up      a head that would go now is looked at within two rounds of the topic (5.4)
 *   patience     who timed out waited his timeout, and not more than a poll longer
 *   ends         every attempt ends once, and the books are empty when all have
 *
 * and `own view`, `limits`, `overshoot`, `clamp` of admission-checks.ts, `view` of view-checks.ts, `told`
 * of told-outcomes.ts.
 *
 * Not checked, because it is not so in the product: that loads of users come back (T-28), that aggregates are
 * right while something moves (7.5) or after the statestore was away (T-37).
 */

import { checkSnapshot } from "../../core/admission/invariants.ts";
import type { AdmissionQuery } from "../../core/admission/query.ts";
import { snapshotOf } from "../../core/admission/snapshot.ts";
import { fail } from "../../core/assert.ts";
import { IDLE_OBSERVER, type QueryFacts, type RunObserver } from "../../core/run-observer.ts";
import { toInstant, toMicros } from "../event-queue.ts";
import type { Seat } from "../seat.ts";
import { SimQuery } from "../sim-query.ts";
import type { Simulation } from "../simulation.ts";
import { AdmissionChecks } from "./admission-checks.ts";
import { ViewChecks } from "./view-checks.ts";

interface Counts {
  submitted: number;
  ended: number;
}

/** One run's checks: its observer, and what it calls after every step and at its end. */
export class Checks {
  readonly observer: RunObserver;
  readonly #fifo = new FifoCheck();
  readonly #ends = new EndsCheck();
  readonly #state = new StateChecks();
  readonly #admissions: AdmissionChecks;
  /** Null: in this run somebody may be out of touch. */
  readonly #views: ViewChecks | null;
  #sim: Simulation | null = null;

  /** `allHear`: nothing in the run keeps a process from the statestore. */
  constructor(allHear: boolean) {
    this.#admissions = new AdmissionChecks(allHear);
    this.#views = allHear ? new ViewChecks() : null;
    this.observer = this.#observerOfThis();
  }

  /** Before the run begins. */
  watch(sim: Simulation): void {
    this.#sim = sim;
  }

  inspect(sim: Simulation): void {
    if (!sim.isInstantOver) return;
    this.#state.instantOver(sim);
    this.#views?.instantOver(sim);
  }

  finish(sim: Simulation): void {
    this.#ends.finish(sim);
    this.#state.finish(sim);
  }

  #observerOfThis(): RunObserver {
    const fifo = this.#fifo;
    const ends = this.#ends;
    return {
      ...IDLE_OBSERVER,
      submitted: (_, q) => ends.submitted(q),
      unresolved: (_, q) => ends.ended(q),
      queued: (at, q) => {
        fifo.queued(q);
        this.#views?.decided(at, simQuery(q), this.#sim!);
      },
      admitted: (at, q, path, waited) => {
        if (waited < 0) fail(`wait: ${q.queryId} waited ${waited} ms`);
        if (path === "fromQueue") fifo.dequeued(q);
        else if (path === "immediately") fifo.passed(q);
        this.#admissions.admitted(at, simQuery(q), this.#sim!);
        this.#views?.decided(at, simQuery(q), this.#sim!);
        this.#moved(at);
      },
      rejected: (at, q, _, __, fromQueue) => {
        if (fromQueue) fifo.dequeued(q);
        ends.ended(q);
        this.#moved(at);
      },
      timedOut: (at, q, waited) => {
        fifo.left(q);
        checkPatience(simQuery(q), waited, this.#sim!);
        ends.ended(q);
        this.#moved(at);
      },
      cancelled: (at, q, _, wasQueued) => {
        if (wasQueued) fifo.left(q);
        ends.ended(q);
        this.#moved(at);
      },
      memoryReleased: (at) => this.#moved(at),
      released: (at, q) => {
        ends.ended(q);
        this.#moved(at);
      },
    };
  }

  #moved(at: number): void {
    this.#state.moved(at);
    this.#views?.moved(at);
  }
}

/** patience: coordinators notice at once, `admissiond` where a status call ends (7.7). In microseconds, as time is. */
function checkPatience({ admission }: SimQuery, waited: number, { flags, seats }: Simulation): void {
  const { id, timeout } = admission;
  const poll = flags.admission_status_wait_time_ms + flags.admission_status_retry_time_ms;
  const late = toMicros(waited) - toMicros(timeout);
  if (late < 0 || late > (seats[0]!.isGlobal ? toMicros(poll) : 0))
    fail(`patience: ${id} timed out after ${waited} ms of ${timeout}`);
}

/** The driver hands its own records over. */
const simQuery = (q: QueryFacts): SimQuery => (q instanceof SimQuery ? q : fail("a query of another driver"));

/** fifo: told by calls, so that it depends on nothing in the controllers. */
class FifoCheck {
  readonly #queues = new Map<string, string[]>();

  queued(q: QueryFacts): void {
    this.#queueOf(q).push(q.queryId);
  }

  dequeued(q: QueryFacts): void {
    const queue = this.#queueOf(q);
    if (queue[0] !== q.queryId) fail(`fifo: ${q.queryId} left the queue while ${queue[0]} was its head`);
    queue.shift();
  }

  passed(q: QueryFacts): void {
    const [head] = this.#queueOf(q);
    if (head !== undefined) fail(`fifo: ${q.queryId} was admitted at once while ${head} waited`);
  }

  left(q: QueryFacts): void {
    const queue = this.#queueOf(q);
    const at = queue.indexOf(q.queryId);
    if (at < 0) fail(`fifo: ${q.queryId} left a queue it was not in`);
    queue.splice(at, 1);
  }

  #queueOf(q: QueryFacts): string[] {
    const key = `${simQuery(q).seat} ${q.pool}`;
    const known = this.#queues.get(key);
    if (known !== undefined) return known;
    const queue: string[] = [];
    this.#queues.set(key, queue);
    return queue;
  }
}

/** ends: each attempt once. */
class EndsCheck {
  readonly #open = new Set<string>();
  readonly counts: Counts = { submitted: 0, ended: 0 };

  submitted(q: QueryFacts): void {
    if (this.#open.has(q.queryId)) fail(`ends: ${q.queryId} was submitted twice`);
    this.#open.add(q.queryId);
    this.counts.submitted++;
  }

  ended(q: QueryFacts): void {
    if (!this.#open.delete(q.queryId)) fail(`ends: ${q.queryId} ended twice`);
    this.counts.ended++;
  }

  finish(sim: Simulation): void {
    const [waiting, held] = leftForEver(sim);
    for (const q of [...waiting, ...held]) this.#open.delete(q.queryId);
    const [left] = this.#open;
    if (left !== undefined) fail(`ends: ${left} never ended`);
    if (sim.live !== 0) fail(`ends: ${sim.live} queries are left`);
    if (this.counts.submitted !== sim.submitted) fail("ends: a submission was not told");
    for (const seat of sim.seats) if (seat.isAlive) checkIdle(seat, waiting.length, held.length);
    sim.backends.forEach((b, host) => {
      if (sim.executors.buffersOn(host) !== 0) fail(`ends: buffers are still reserved on ${b.address}`);
      if (sim.executors.scratchOn(host) !== 0) fail(`ends: scratch is still in use on ${b.address}`);
    });
    for (let pool = 0; pool < sim.poolNames.size; pool++)
      sim.backends.forEach((b, host) => {
        const held = sim.topic.heldOn(host, pool);
        if (held !== 0) fail(`ends: ${b.address} still holds ${held} bytes for ${sim.poolNames.nameOf(pool)}`);
      });
  }
}

/**
 * Queries of coordinators that died under `admissiond`: those that wait have no time-out (T-59), and those that run
 * are released when the membership changes (9.5), which it does not where the statestore stays away.
 */
function leftForEver({ queries, exchanges }: Simulation): readonly [waiting: SimQuery[], held: SimQuery[]] {
  const orphans = queries.filter((q) => q.state !== "free" && q.isOrphan);
  const running = exchanges.isStatestoreUp ? [] : orphans.filter((q) => q.state === "running");
  return [orphans.filter((q) => q.state === "waiting"), running];
}

function checkIdle({ controller, address, queued }: Seat, waiting: number, held: number): void {
  if (queued !== waiting || controller.numKnown !== waiting + held)
    fail(`ends: ${address} still knows ${controller.numKnown} queries, ${queued} of them queued`);
  // That it holds for these what it should is what `books` says.
  if (held > 0) return;
  for (const { name, stats } of controller.pools)
    if (stats.localRunning !== 0 || stats.localMemAdmitted !== 0)
      fail(`ends: ${address} still has queries running or memory admitted in ${name}`);
  for (let h = 0; h < controller.hosts.size; h++)
    if (controller.hosts.admittedBySelf(h) !== 0 || controller.hosts.slotsBySelf(h) !== 0)
      fail(`ends: ${address} still holds memory or slots on ${controller.hosts.address(h)}`);
}

/** What is seen by looking at the controllers. */
class StateChecks {
  /** When anything that others would hear of last happened. */
  #movedAt = 0;
  /** Since when a head would go and was not taken, by seat and pool. */
  readonly #idleSince = new Map<string, number>();
  #fullEvery = 1;
  #steps = 0;

  moved(at: number): void {
    this.#movedAt = at;
  }

  instantOver(sim: Simulation): void {
    this.#steps++;
    for (const seat of sim.seats) {
      if (!seat.isAlive) continue;
      checkCounters(seat);
      this.#checkWakeUp(seat, sim);
      if (this.#steps % this.#fullEvery === 0) checkSnapshot(snapshotOf(seat.controller, toInstant(sim.now)));
    }
    // Later states of a long run are looked at more rarely; the first ones are the likeliest to be new.
    if (this.#steps > 100 * this.#fullEvery) this.#fullEvery *= 2;
  }

  finish(sim: Simulation): void {
    for (const seat of sim.seats) checkSnapshot(snapshotOf(seat.controller, toInstant(sim.now)));
  }

  /** wake-up: two rounds, and as many as passes that a rejection or cancellation cut short (T-9). */
  #checkWakeUp(seat: Seat, sim: Simulation): void {
    const period = toInstant(sim.exchanges.period);
    for (const pool of seat.controller.pools) {
      const key = `${seat.index} ${pool.name}`;
      const { head } = pool.queue;
      if (head === null || !seat.canExchange || !sim.exchanges.isStatestoreUp || !wouldGo(seat, head, sim)) {
        this.#idleSince.delete(key);
        continue;
      }
      const since = Math.max(this.#idleSince.get(key) ?? sim.now, toMicros(this.#movedAt));
      this.#idleSince.set(key, since);
      if (toInstant(sim.now - since) > 2 * period + 1)
        fail(`wake-up: ${head.id} could have run since ${toInstant(since)} ms and nobody looked`);
    }
  }
}

function wouldGo(seat: Seat, head: AdmissionQuery, sim: Simulation): boolean {
  if (head.isCancelMarked || seat.controller.membership.groups.length === 0) return false;
  const checks = seat.controller.checksFor(head, toInstant(sim.now));
  return checks.kind === "groups" && checks.groups.some((g) => g.failing.length === 0 && g.rejection === null);
}

function checkCounters({ controller, address, queued }: Seat): void {
  let waiting = 0;
  for (const { name, stats } of controller.pools) {
    waiting += stats.localQueued;
    const left = stats.totalQueued - stats.totalDequeued - stats.totalTimedOut;
    if (left !== stats.localQueued)
      fail(`counters: ${address} has ${stats.localQueued} waiting in ${name}, by its counters ${left}`);
  }
  if (waiting !== queued) fail(`counters: ${address} has ${waiting} waiting, its driver ${queued}`);
}
