/**
 * The state of one simulated run and the steps that change it; `simulate.ts` says what it stands for.
 *
 * Must keep: a query's slot is free again exactly when the workload has been told how it ended; every charge
 * on a controller is taken off by the same query's release; a seat with a nonempty queue always has an
 * exchange pending, so that no wake-up is lost (admission 5.4).
 */
import type { ImpalaFlags } from "../config/impala-flags.ts";
import type { Scenario } from "../config/scenario.ts";
import { backendsOf } from "../config/scenario-cluster.ts";
import { BackendRelease, type ReleaseTiming } from "../core/admission/backend-release.ts";
import { type ControllerFlags, controllerOptions } from "../core/admission/controller-options.ts";
import type { DequeueSink } from "../core/admission/dequeue-pass.ts";
import { type BackendUsage, NO_USAGE } from "../core/admission/pool-stats.ts";
import type { AdmissionQuery } from "../core/admission/query.ts";
import { fail } from "../core/assert.ts";
import type { BackendDescriptor } from "../core/cluster/backend.ts";
import { type Membership, membershipOf } from "../core/cluster/membership.ts";
import type { AdmissionPath, FinishState } from "../core/events.ts";
import { type PoolConfig, ROOT_POOL } from "../core/pool-config.ts";
import { NOTHING_NEW, type TopicUpdate } from "../core/statestore/topic.ts";
import type { Bytes, Millis } from "../core/units.ts";
import type { Ending, Workload } from "../workload/workload.ts";
import { EventQueue, type Micros, NO_EVENT, toInstant, toMicros } from "./event-queue.ts";
import { ExchangeGrid } from "./exchange-grid.ts";
import { Executors } from "./executors.ts";
import { Placements } from "./placement.ts";
import { RequestQueueTopic } from "./request-queue-topic.ts";
import { Seat } from "./seat.ts";
import { SimQuery } from "./sim-query.ts";
import type { PoolConfigs, SimulationInput } from "./simulate.ts";
import { Names, Teller } from "./teller.ts";

/** Kinds of events; operand a is a query's slot, a seat, or a fault. */
const WORK = 0;
const TIMEOUT = 1;
const CANCEL = 2;
const EXCHANGE = 3;
const FAULT = 4;

export interface SimulationParts extends SimulationInput {
  readonly flags: ImpalaFlags;
}

export class Simulation {
  readonly scenario: Scenario;
  readonly flags: ImpalaFlags;
  readonly backends: readonly BackendDescriptor[];
  readonly seats: Seat[] = [];
  readonly topic: RequestQueueTopic;
  readonly queries: SimQuery[] = [];
  readonly poolNames: Names;
  now: Micros = 0;
  submitted = 0;
  steps = 0;

  readonly #workload: Workload;
  readonly #input: SimulationInput;
  readonly #events = new EventQueue();
  readonly #grid: ExchangeGrid;
  readonly #receiveLag: Micros;
  readonly #teller: Teller;
  readonly #userNames: Names;
  readonly #coordinatorNames: Names;
  readonly #placements: Placements;
  readonly #executors: Executors;
  readonly #seatOfCoordinator: number[] = [];
  readonly #free: number[] = [];
  readonly #staleAfter: Micros;
  readonly #releaseTiming: ReleaseTiming;
  #pools: PoolConfigs;
  readonly #configs: PoolConfig[] = [];
  #rootConfig: PoolConfig;
  #membership: Membership;
  #live = 0;
  #nextArrival: Micros = 0;
  readonly #sink: DequeueSink;
  #passesDue = 0;
  /** Some controller looks at what hosts reserved: it has others to compare with, or a pool with a maximum. */
  #reservationsMatter = false;
  /** Somebody left a queue since it was set to false. */
  #hasPassMoved = false;

  constructor(input: SimulationParts) {
    const { scenario, flags } = input;
    this.#input = input;
    this.scenario = scenario;
    this.flags = flags;
    this.#workload = input.workload;
    this.#pools = input.pools;
    this.#rootConfig = input.pools.configOf(ROOT_POOL);
    this.backends = backendsOf(scenario.cluster);
    const addresses = this.backends.map((b) => b.address);
    const { statestore, admission } = scenario.cluster;
    const lags = { publish: toMicros(statestore.publishLag), receive: toMicros(statestore.receiveLag) };
    this.#receiveLag = lags.receive;
    const subscribers = addresses.length + (admission === "admissiond" ? 1 : 0);
    this.#grid = new ExchangeGrid(toMicros(statestore.every) + lags.publish + lags.receive, subscribers);
    this.topic = new RequestQueueTopic(this.#grid, lags, addresses);
    const observer = input.observer ?? null;
    this.#teller = new Teller(
      input.emit ?? null,
      observer,
      scenario.queries.map((c) => c.name),
    );
    this.poolNames = new Names("pool", observer);
    this.#userNames = new Names("user", observer);
    this.#coordinatorNames = new Names("coordinator", observer);
    this.#placements = new Placements(addresses);
    this.#executors = new Executors({
      classes: scenario.queries,
      model: scenario.model,
      addresses,
      events: this.#events,
      eventKind: WORK,
      topic: this.topic,
    });
    this.#staleAfter = toMicros(flags.admission_control_stale_topic_threshold_ms);
    this.#releaseTiming = {
      delayMs: flags.release_backend_states_delay_ms,
      decayFactor: flags.batched_release_decay_factor,
    };
    this.#membership = membershipOf({ version: 2, backends: this.backends });
    this.#sink = this.#sinkOfThis();
    this.#openSeats();
  }

  // The loop

  run(): void {
    this.#scheduleFaults();
    this.#nextArrival = this.#whenNextArrives();
    const inspect = this.#input.inspect ?? null;
    while (this.#step()) inspect?.(this);
    this.#teller.ended(this.now);
  }

  /** One thing happens; false: nothing is left that could. */
  #step(): boolean {
    const eventAt = this.#events.nextTime;
    const next = Math.min(this.#nextArrival, eventAt);
    if (this.#passesDue > 0 && next > this.now) this.#runPasses();
    else if (this.#nextArrival <= eventAt) {
      if (this.#nextArrival === Number.POSITIVE_INFINITY) return false;
      this.now = this.#nextArrival;
      this.#arrive(this.now);
    } else {
      if (this.#live === 0 && this.#nextArrival === Number.POSITIVE_INFINITY) return false;
      const kind = this.#events.take();
      this.now = this.#events.time;
      this.#happen(kind, this.#events.a, this.now);
    }
    return true;
  }

  #happen(kind: number, a: number, now: Micros): void {
    this.steps++;
    switch (kind) {
      case WORK:
        this.#workDone(this.queries[a]!, now);
        break;
      case TIMEOUT:
        this.#timeOut(this.queries[a]!, now);
        break;
      case CANCEL:
        this.#cancel(this.queries[a]!, now);
        break;
      case EXCHANGE:
        this.#exchange(this.seats[a]!, now);
        break;
      default:
        this.#fault(a, now);
    }
  }

  #whenNextArrives(): Micros {
    const at = this.#workload.nextAt();
    return at === Number.POSITIVE_INFINITY ? at : Math.max(this.now, toMicros(at));
  }

  // Submission

  #arrive(now: Micros): void {
    const submission = this.#workload.take();
    this.#nextArrival = this.#whenNextArrives();
    this.submitted++;
    const q = this.#newQuery();
    q.begin(submission);
    q.submittedAt = now;
    q.pool = this.#poolIndex(submission.pool);
    q.user = this.#userNames.indexOf(submission.user);
    q.coordinator = this.#coordinatorNames.indexOf(submission.coordinator);
    this.#teller.submitted(q, now);
    if (submission.unresolved !== null) {
      this.#teller.unresolved(q, submission.unresolved, now);
      this.#end(q, "unresolved", now);
      return;
    }
    const seat = this.#seatFor(q.coordinator, submission.coordinator);
    q.seat = seat.index;
    this.#submit(q, seat, now);
  }

  #submit(q: SimQuery, seat: Seat, now: Micros): void {
    const { submission } = q;
    this.#noteFreshView(seat, now);
    const admission = seat.controller.submit(submission, this.#configs[q.pool]!, this.#rootConfig, toInstant(now));
    admission.owner = q;
    q.admission = admission;
    this.#controllerChanged(seat, now);
    switch (admission.state) {
      case "running":
        this.#admitted(q, admission.path!, now);
        break;
      case "queued":
        this.#queued(q, seat, now);
        break;
      default:
        this.#teller.rejected(q, false, now);
        this.#end(q, "rejected", now);
    }
  }

  #queued(q: SimQuery, seat: Seat, now: Micros): void {
    seat.queued++;
    this.#armExchange(seat, now);
    this.#teller.queued(q, now);
    q.timeout = this.#events.add(now + toMicros(q.admission.timeout), TIMEOUT, q.slot, 0);
    this.#scheduleCancel(q);
  }

  #scheduleCancel(q: SimQuery): void {
    const { cancelAt } = q.submission;
    if (cancelAt !== Number.POSITIVE_INFINITY && q.cancel === NO_EVENT)
      q.cancel = this.#events.add(toMicros(cancelAt), CANCEL, q.slot, 0);
  }

  #admitted(q: SimQuery, path: AdmissionPath, now: Micros): void {
    q.state = "running";
    q.decidedAt = now;
    q.placement = this.#placements.of(q.admission.plan!.schedule);
    this.#teller.admitted(q, path, now);
    this.#scheduleCancel(q);
    this.#begin(q, now);
  }

  #begin(q: SimQuery, now: Micros): void {
    this.#executors.begin(q, now);
    this.#reservationsChanged(now);
    if (q.spills !== null) this.#tellSpills(q, now);
  }

  #tellSpills(q: SimQuery, now: Micros): void {
    let bytes = 0;
    for (const spilled of q.spills!) bytes += spilled;
    if (bytes > 0) this.#teller.spilled(q, bytes, now);
  }

  // Waiting

  #timeOut(q: SimQuery, now: Micros): void {
    const seat = this.seats[q.seat]!;
    q.timeout = NO_EVENT;
    seat.controller.timeOut(q.admission, toInstant(now));
    this.#leftQueue(q, seat);
    this.#controllerChanged(seat, now);
    this.#teller.timedOut(q, now);
    this.#end(q, "timedOut", now);
  }

  #cancel(q: SimQuery, now: Micros): void {
    q.cancel = NO_EVENT;
    if (q.state === "running") {
      this.#executors.stop(q, now);
      this.#reservationsChanged(now);
      this.#finish(q, "cancelled", now);
      return;
    }
    const seat = this.seats[q.seat]!;
    seat.controller.cancel(q.admission, toInstant(now));
    this.#leftQueue(q, seat);
    this.#controllerChanged(seat, now);
    this.#teller.cancelled(q, true, now);
    this.#end(q, "cancelled", now);
  }

  #leftQueue(q: SimQuery, seat: Seat): void {
    seat.queued--;
    seat.isSettled = false;
    this.#hasPassMoved = true;
    if (q.timeout !== NO_EVENT) this.#events.remove(q.timeout);
    q.timeout = NO_EVENT;
  }

  /** The instant has nothing else to do: whoever was woken looks at his queues, in order of address. */
  #runPasses(): void {
    for (const seat of this.seats) if (seat.isPassDue) this.#pass(seat, this.now);
  }

  #pass(seat: Seat, now: Micros): void {
    seat.isPassDue = false;
    this.#passesDue--;
    if (!seat.isAlive) return;
    this.#noteFreshView(seat, now);
    this.#hasPassMoved = false;
    seat.controller.dequeuePass(toInstant(now), this.#sink);
    const hasMoved = this.#hasPassMoved;
    if (hasMoved) this.#controllerChanged(seat, now);
    seat.isSettled = !hasMoved;
    if (hasMoved && seat.queued > 0) this.#armExchange(seat, now);
  }

  #duePass(seat: Seat): void {
    if (seat.isPassDue) return;
    seat.isPassDue = true;
    this.#passesDue++;
  }

  #sinkOfThis(): DequeueSink {
    const queryOf = (a: AdmissionQuery): SimQuery => a.owner as SimQuery;
    return {
      admitted: (a) => {
        const q = queryOf(a);
        this.#leftQueue(q, this.seats[q.seat]!);
        this.#admitted(q, "fromQueue", this.now);
      },
      rejected: (a) => {
        const q = queryOf(a);
        this.#leftQueue(q, this.seats[q.seat]!);
        this.#teller.rejected(q, true, this.now);
        this.#end(q, "rejected", this.now);
      },
      cancelled: (a) => {
        const q = queryOf(a);
        this.#leftQueue(q, this.seats[q.seat]!);
        this.#teller.cancelled(q, true, this.now);
        this.#end(q, "cancelled", this.now);
      },
      stillQueued: (a) => {
        const q = queryOf(a);
        this.#teller.headWaits(q, this.now);
        a.failures = 0;
      },
    };
  }

  // Running

  #workDone(q: SimQuery, now: Micros): void {
    const point = this.#executors.workDone(q, now);
    this.#reservationsChanged(now);
    if (point === null) {
      if (this.#teller.tellsAll) this.#releaseInBatches(q, allPositions(q), now);
      this.#finish(q, "finished", now);
      return;
    }
    if (point.fails) {
      this.#fail(q, MEMORY_LIMIT_EXCEEDED, now);
      return;
    }
    this.#releaseInBatches(q, point.positions, now);
    if (q.finish === NO_EVENT) this.#finish(q, "finished", now);
  }

  /** Backends are done one after the other; which of them are given back when is 9.1's. */
  #releaseInBatches(q: SimQuery, positions: readonly number[], now: Micros): void {
    const at = toInstant(now);
    q.releasing ??= new BackendRelease(
      q.placement.hosts.length,
      q.placement.coordinatorAt,
      toInstant(q.decidedAt),
      this.#releaseTiming,
    );
    for (const position of positions) {
      const due = q.releasing.finished(position, at);
      if (due.length === 0) continue;
      q.releasing.released(due);
      this.#releaseBackends(q, due, now);
    }
  }

  #releaseBackends(q: SimQuery, positions: readonly number[], now: Micros): void {
    const seat = this.seats[q.seat]!;
    const bytes = seat.controller.releaseBackends(q.admission, positions);
    const { addresses } = q.placement;
    this.#teller.backendsReleased(
      q,
      positions.map((i) => addresses[i]!),
      bytes,
      now,
    );
    this.#wake(seat, now);
  }

  #fail(q: SimQuery, error: string, now: Micros): void {
    q.error = error;
    this.#executors.stop(q, now);
    this.#reservationsChanged(now);
    this.#finish(q, "failed", now);
  }

  /** What is still held comes back in one call, then the query's place in the pool. */
  #finish(q: SimQuery, state: FinishState, now: Micros): void {
    const seat = this.seats[q.seat]!;
    const rest = q.releasing === null ? null : q.releasing.close();
    if (rest === null) {
      const bytes = seat.controller.releaseRest(q.admission);
      this.#teller.backendsReleased(q, q.placement.addresses, bytes, now);
    } else if (rest.length > 0) this.#releaseBackends(q, rest, now);
    seat.controller.releaseQuery(q.admission, q.peak);
    this.#teller.released(q, state, now);
    this.#wake(seat, now);
    this.#end(q, state, now);
  }

  /** A release wakes the dequeue thread (admission 5.4); with nothing queued there is nothing to look at. */
  #wake(seat: Seat, now: Micros): void {
    this.#controllerChanged(seat, now);
    if (seat.queued > 0) this.#duePass(seat);
  }

  #end(q: SimQuery, how: Ending, now: Micros): void {
    const { submission } = q;
    if (q.cancel !== NO_EVENT) this.#events.remove(q.cancel);
    q.free();
    this.#free.push(q.slot);
    this.#live--;
    this.#workload.ended(submission, how, toInstant(now));
    this.#nextArrival = this.#whenNextArrives();
  }

  #newQuery(): SimQuery {
    this.#live++;
    const slot = this.#free.pop();
    if (slot !== undefined) return this.queries[slot]!;
    const q = new SimQuery(this.queries.length);
    this.queries.push(q);
    return q;
  }

  // The statestore

  /** Hosts hold more or less than before: controllers will hear of it, if one of their pools cares. */
  #reservationsChanged(now: Micros): void {
    if (this.#reservationsMatter) for (const seat of this.seats) this.#armExchange(seat, now);
  }

  /** A change at a controller that others will want to hear of. */
  #controllerChanged(seat: Seat, now: Micros): void {
    seat.isSettled = false;
    if (this.seats.length > 1) this.#armExchange(seat, now);
  }

  /** The seat's next exchange, if none is pending. */
  #armExchange(seat: Seat, now: Micros): void {
    if (seat.exchange !== NO_EVENT || !seat.canExchange) return;
    const start = Math.max(this.#grid.atOrAfter(seat.subscriber, now - this.#receiveLag), seat.lastExchange + 1);
    const next = this.#grid.atOrAfter(seat.subscriber, start);
    seat.exchange = this.#events.add(next + this.#receiveLag, EXCHANGE, seat.index, 0);
  }

  #exchange(seat: Seat, now: Micros): void {
    seat.exchange = NO_EVENT;
    const start = now - this.#receiveLag;
    seat.lastExchange = start;
    this.#tellOwnHost(seat);
    if (this.seats.length > 1) this.#publish(seat, now);
    else seat.controller.refreshBackendUsage();
    const update = this.topic.updateFor(seat, start, !this.#teller.tellsAll);
    if (update !== NOTHING_NEW) seat.isSettled = false;
    this.#apply(seat, update, now);
    if (seat.queued > 0 && this.#mayMove(seat)) {
      this.#duePass(seat);
      this.#armExchange(seat, now);
    } else if (this.#hasMoreFor(seat)) this.#armExchange(seat, now);
  }

  #hasMoreFor(seat: Seat): boolean {
    return (this.#reservationsMatter && this.topic.isMoving) || this.topic.hasNewsFor(seat);
  }

  /** After a pass that moved nothing, and with nothing new since, another one would only count a failure more. */
  #mayMove(seat: Seat): boolean {
    return !seat.isSettled || this.#teller.tellsAll;
  }

  #publish(seat: Seat, now: Micros): void {
    const entries = seat.controller.collectUpdate();
    if (entries.length === 0) return;
    this.topic.publish(seat.address, entries, now);
    for (const other of this.seats) if (other !== seat) this.#armExchange(other, now);
  }

  #apply(seat: Seat, update: TopicUpdate, now: Micros): void {
    const { controller } = seat;
    if (controller.membership !== this.#membership) {
      seat.isSettled = false;
      controller.setMembership(this.#membership);
    }
    controller.applyUpdate(update, toInstant(now));
    seat.heardAt = now;
    seat.sequence++;
    if (this.#teller.tellsAll) this.#tellApplied(seat, now);
  }

  #tellApplied(seat: Seat, now: Micros): void {
    this.#teller.event({
      kind: "topicApplied",
      at: toInstant(now),
      coordinator: seat.address,
      sequence: seat.sequence,
    });
  }

  #tellOwnHost(seat: Seat): void {
    const host = seat.subscriber;
    if (host >= this.backends.length) return;
    for (let pool = 0; pool < this.poolNames.size; pool++) {
      const held = this.topic.heldOn(host, pool);
      if (held === (seat.told[pool] ?? 0)) continue;
      seat.told[pool] = held;
      seat.isSettled = false;
      seat.controller.setBackendUsage(this.poolNames.nameOf(pool), usageOf(held));
    }
  }

  /** Exchanges that would have brought nothing were left out; they still keep the view fresh (7.6). */
  #noteFreshView(seat: Seat, now: Micros): void {
    if (now - seat.heardAt < this.#staleAfter || !seat.canExchange) return;
    const last = this.#grid.atOrBefore(seat.subscriber, now - this.#receiveLag) + this.#receiveLag;
    if (last <= seat.heardAt) return;
    seat.heardAt = last;
    seat.controller.applyUpdate(NOTHING_NEW, toInstant(last));
  }

  // Opening

  #openSeats(): void {
    const { admission } = this.scenario.cluster;
    const flags = controllerFlags(this.flags);
    if (admission === "admissiond") {
      const options = controllerOptions({ hostId: "admissiond:29500", mode: "global", flags, keepsIds: false });
      this.seats.push(new Seat(0, this.backends.length, options));
    } else {
      this.backends.forEach((b, host) => {
        if (!b.isCoordinator) return;
        const seat = new Seat(
          this.seats.length,
          host,
          controllerOptions({ hostId: b.address, flags, keepsIds: false }),
        );
        this.seats.push(seat);
        this.topic.speaksFor(host);
      });
    }
    // The cluster has been up for a while when the run begins: members known, views fresh.
    this.#reservationsMatter = this.seats.length > 1;
    for (const seat of this.seats) {
      this.topic.register(seat);
      this.#apply(seat, this.topic.updateFor(seat, 0, true), 0);
    }
  }

  #seatFor(coordinator: number, address: string): Seat {
    const known = this.#seatOfCoordinator[coordinator];
    if (known !== undefined) return this.seats[known]!;
    const index = this.seats.length === 1 ? 0 : this.seats.findIndex((s) => s.address === address);
    this.#seatOfCoordinator[coordinator] = index;
    return this.seats[index]!;
  }

  #poolIndex(name: string): number {
    const index = this.poolNames.indexOf(name);
    if (this.#configs[index] === undefined) {
      this.topic.addPool(index, name);
      this.#configs[index] = this.#configFor(name);
    }
    return index;
  }

  #configFor(pool: string): PoolConfig {
    const config = this.#pools.configOf(pool);
    if (config.maxMemResources >= 0) this.#reservationsMatter = true;
    return config;
  }

  #scheduleFaults(): void {
    this.scenario.faults.forEach((fault, i) => {
      this.#events.add(toMicros(fault.at), FAULT, i, 0);
    });
  }

  #fault(index: number, _now: Micros): void {
    const fault = this.scenario.faults[index]!;
    switch (fault.kind) {
      default:
        fail(`the simulator does not know the fault ${fault.kind} yet`);
    }
  }
}

const MEMORY_LIMIT_EXCEEDED = "Memory limit exceeded";

const allPositions = (q: SimQuery): number[] => Array.from(q.placement.hosts, (_, i) => i);

const usageOf = (bytes: number): BackendUsage => ({
  memReserved: bytes as Bytes,
  memUsage: bytes as Bytes,
  heavyQueries: NO_USAGE.heavyQueries,
  minMemConsumed: 0 as Bytes,
  maxMemConsumed: 0 as Bytes,
  totalMemConsumed: bytes as Bytes,
  numRunning: 0,
});

const controllerFlags = (flags: ImpalaFlags): ControllerFlags => ({
  queueWaitTimeout: flags.queue_wait_timeout_ms,
  clampQueryMemLimitBackendMemLimit: flags.clamp_query_mem_limit_backend_mem_limit,
  useDedicatedCoordinatorEstimates: flags.use_dedicated_coordinator_estimates,
  balanceQueriesAcrossExecutorGroups: flags.balance_queries_across_executor_groups,
  staleTopicThreshold: flags.admission_control_stale_topic_threshold_ms as Millis,
});
