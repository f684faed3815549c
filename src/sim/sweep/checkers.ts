/**
 * What must be true of every simulated run, whatever its scenario; each has a name that a failure carries.
 *
 *   books        every figure of a controller is the sum over its queries (core/admission/invariants.ts)
 *   counters     queued = dequeued + timed out + waiting, and no time-out twice
 *   fifo         one FIFO per coordinator and pool: out by its head, by time-out or by cancellation (5.2)
 *   limits       one controller: never over running, memory, slots or a host at an admission (7.5)
 *   own limits   many controllers: none of them is over a limit by what it admitted itself
 *   clamp        MEM-7: no share above the smallest host that it may be placed on
 *   wake-up      a head that would go now is looked at within two rounds of the topic (5.4)
 *   view         once nothing moves, everybody's aggregates are the sum over all controllers (7.4)
 *   patience     who timed out waited his timeout, and not more than a poll longer
 *   ends         every attempt ends once, and the books are empty when all have
 *
 * Not checked, because it is not so in the product: that loads of users come back (T-28), that aggregates are
 * right while something moves (7.5) or after the statestore was away (T-37).
 */

import { checkSnapshot } from "../../core/admission/invariants.ts";
import type { AdmissionQuery } from "../../core/admission/query.ts";
import { snapshotOf } from "../../core/admission/snapshot.ts";
import { fail } from "../../core/assert.ts";
import { ALL_COORDINATORS_GROUP, DEFAULT_GROUP } from "../../core/cluster/backend.ts";
import { IDLE_OBSERVER, type QueryFacts, type RunObserver } from "../../core/run-observer.ts";
import { toInstant, toMicros } from "../event-queue.ts";
import type { Seat } from "../seat.ts";
import type { Simulation } from "../simulation.ts";

/** Calls that a run makes; `finish` when it is over. */
export interface Checks {
  readonly observer: RunObserver;
  inspect(sim: Simulation): void;
  finish(sim: Simulation): void;
}

interface Figures {
  readonly running: number;
  readonly mem: number;
}

interface Counts {
  submitted: number;
  ended: number;
}

export function checksFor(runHasFaults: boolean): Checks {
  const fifo = new FifoCheck();
  const ends = new EndsCheck();
  const state = new StateChecks(runHasFaults);
  return {
    observer: observerOf(fifo, ends, state),
    inspect: (sim) => state.inspect(sim),
    finish: (sim) => {
      ends.finish(sim);
      state.finish(sim);
    },
  };
}

function observerOf(fifo: FifoCheck, ends: EndsCheck, state: StateChecks): RunObserver {
  return {
    ...IDLE_OBSERVER,
    submitted: (_, q) => ends.submitted(q),
    unresolved: (_, q) => ends.ended(q),
    queued: (_, q) => fifo.queued(q),
    admitted: (at, q, path, waited) => {
      if (waited < 0) fail(`wait: ${q.queryId} waited ${waited} ms`);
      if (path === "fromQueue") fifo.dequeued(q);
      else if (path === "immediately") fifo.passed(q);
      state.moved(at);
    },
    rejected: (at, q, _, __, fromQueue) => {
      if (fromQueue) fifo.dequeued(q);
      ends.ended(q);
      state.moved(at);
    },
    timedOut: (at, q) => {
      fifo.left(q);
      ends.ended(q);
      state.moved(at);
    },
    cancelled: (at, q, _, wasQueued) => {
      if (wasQueued) fifo.left(q);
      ends.ended(q);
      state.moved(at);
    },
    memoryReleased: (at) => state.moved(at),
    released: (at, q) => {
      ends.ended(q);
      state.moved(at);
    },
  };
}

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
    const key = `${this.seatOf(q)} ${q.pool}`;
    const known = this.#queues.get(key);
    if (known !== undefined) return known;
    const queue: string[] = [];
    this.#queues.set(key, queue);
    return queue;
  }

  seatOf(q: QueryFacts): number {
    return "seat" in q ? Number(q.seat) : q.coordinator;
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
    // Queued for a coordinator that died, they wait in `admissiond` without a time-out (T-59).
    for (const q of sim.queries) if (q.state === "waiting" && q.isOrphan) this.#open.delete(q.queryId);
    const [left] = this.#open;
    if (left !== undefined) fail(`ends: ${left} never ended`);
    if (sim.live !== 0) fail(`ends: ${sim.live} queries are left`);
    if (this.counts.submitted !== sim.submitted) fail("ends: a submission was not told");
    const abandoned = sim.queries.filter((q) => q.state === "waiting").length;
    for (const seat of sim.seats) if (seat.isAlive) checkIdle(seat, abandoned);
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

/** `abandoned`: queries that nobody waits for any more. */
function checkIdle({ controller, address, queued }: Seat, abandoned: number): void {
  if (queued !== abandoned || controller.numKnown !== abandoned)
    fail(`ends: ${address} still knows ${controller.numKnown} queries, ${queued} of them queued`);
  for (const { name, stats } of controller.pools)
    if (stats.localRunning !== 0 || stats.localMemAdmitted !== 0)
      fail(`ends: ${address} still has queries running or memory admitted in ${name}`);
  for (let h = 0; h < controller.hosts.size; h++)
    if (controller.hosts.admittedBySelf(h) !== 0 || controller.hosts.slotsBySelf(h) !== 0)
      fail(`ends: ${address} still holds memory or slots on ${controller.hosts.address(h)}`);
}

/** What is seen by looking at the controllers. */
class StateChecks {
  readonly #runHasFaults: boolean;
  /** When anything that others would hear of last happened. */
  #movedAt = 0;
  /** Since when a head would go and was not taken, by seat and pool. */
  readonly #idleSince = new Map<string, number>();
  /** By seat and pool, at the last look. */
  readonly #figures = new Map<string, Figures>();
  #fullEvery = 1;
  #steps = 0;

  constructor(runHasFaults: boolean) {
    this.#runHasFaults = runHasFaults;
  }

  moved(at: number): void {
    this.#movedAt = at;
  }

  inspect(sim: Simulation): void {
    if (!sim.isInstantOver) return;
    this.#steps++;
    const one = sim.seats.length === 1;
    for (const seat of sim.seats) {
      if (!seat.isAlive) continue;
      checkCounters(seat);
      checkLimits(seat, sim, one, this.#figures);
      this.#checkWakeUp(seat, sim);
      if (this.#steps % this.#fullEvery === 0) checkSnapshot(snapshotOf(seat.controller, toInstant(sim.now)));
    }
    // Later states of a long run are looked at more rarely; the first ones are the likeliest to be new.
    if (this.#steps > 100 * this.#fullEvery) this.#fullEvery *= 2;
    this.#checkViews(sim);
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

  /** view: long after the last change, everybody knows everything. */
  #checkViews(sim: Simulation): void {
    const quietFor = toInstant(sim.now) - this.#movedAt;
    if (this.#runHasFaults || sim.seats.length === 1 || quietFor < 4 * toInstant(sim.exchanges.period)) return;
    for (const seat of sim.seats)
      for (const { name, stats } of seat.controller.pools) {
        const running = sumOver(sim, (s) => s.controller.pool(name)?.stats.localRunning ?? 0);
        if (stats.aggRunning !== running)
          fail(`view: ${seat.address} believes ${stats.aggRunning} running in ${name}, there are ${running}`);
      }
  }
}

function wouldGo(seat: Seat, head: AdmissionQuery, sim: Simulation): boolean {
  if (head.isCancelMarked || seat.controller.membership.groups.length === 0) return false;
  const checks = seat.controller.checksFor(head, toInstant(sim.now));
  return checks.kind === "groups" && checks.groups.some((g) => g.failing.length === 0 && g.rejection === null);
}

const sumOver = (sim: Simulation, figure: (seat: Seat) => number): number =>
  sim.seats.reduce((n, seat) => n + figure(seat), 0);

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

/**
 * limits, own limits: with one controller its figures are exact. What a fault or a changed configuration
 * lowers after an admission is no excess of the admission, so only the rises since the last look count.
 */
function checkLimits(seat: Seat, sim: Simulation, isOnly: boolean, known: Map<string, Figures>): void {
  const { controller, address } = seat;
  for (const { name, stats, config } of controller.pools) {
    const key = `${seat.index} ${name}`;
    const before = known.get(key) ?? { running: 0, mem: 0 };
    const { localRunning, localMemAdmitted, localTrivialRunning } = stats;
    // Trivial queries pass by every limit (T-3), so their coming is no rise either.
    const running = localRunning - localTrivialRunning;
    known.set(key, { running, mem: localMemAdmitted });
    if (config === null) continue;
    if (running > before.running && config.maxRequests >= 0 && running > config.maxRequests)
      fail(`${isOnly ? "limits" : "own limits"}: ${address} runs ${localRunning} of ${config.maxRequests} in ${name}`);
    if (localMemAdmitted > before.mem && config.maxMemResources >= 0 && localTrivialRunning === 0)
      if (localMemAdmitted > config.maxMemResources)
        fail(`limits: ${address} admitted ${localMemAdmitted} of ${config.maxMemResources} bytes in ${name}`);
  }
  checkRunning(seat, sim);
}

/** limits on hosts, and clamp: over every running query's own figures. */
function checkRunning(seat: Seat, sim: Simulation): void {
  const { controller } = seat;
  const slots = new Map<string, number>();
  for (const q of controller.runningQueries()) {
    const { schedule } = q.plan!;
    const { memLimit } = q.memory!;
    const onCoordinators = schedule.group === ALL_COORDINATORS_GROUP;
    const placed = sim.backends.filter((b) => (onCoordinators ? b.isCoordinator : b.isExecutor));
    const smallest = Math.min(...placed.map((b) => b.admitMemLimit));
    const largest = Math.max(...sim.backends.map((b) => b.admitMemLimit));
    if (memLimit > largest || (sim.scenario.cluster.executors.length === 1 && memLimit > smallest))
      fail(`clamp: ${q.id} may use ${memLimit} bytes on a host`);
    if (q.isTrivial || schedule.group === DEFAULT_GROUP) continue;
    for (const b of schedule.backends)
      if (q.heldBackends > 0 && q.releasedBackends === null)
        slots.set(b.desc.address, (slots.get(b.desc.address) ?? 0) + b.slots);
  }
  for (const b of sim.backends) {
    const used = slots.get(b.address) ?? 0;
    if (used > b.admissionSlots) fail(`limits: ${used} of ${b.admissionSlots} slots in use on ${b.address}`);
  }
}
