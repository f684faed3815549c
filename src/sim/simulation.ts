/**
 * The state of one simulated run and the steps that change it; `simulate.ts` says what it stands for.
 *
 * Must keep: a query's slot is free again only when the workload has been told how it ended and its controller
 * holds nothing of it; every charge on a controller is taken off by the same query's release; a seat whose
 * queue may move has an exchange pending, so that no wake-up is lost (admission 5.4).
 */
import { controllerFlagsOf } from "../config/controller-flags.ts";
import type { ImpalaFlags } from "../config/impala-flags.ts";
import type { FaultKind, Scenario } from "../config/scenario.ts";
import { backendsOf, scratchLimitsOf } from "../config/scenario-cluster.ts";
import { BackendRelease, type ReleaseTiming } from "../core/admission/backend-release.ts";
import { AdmissionController } from "../core/admission/controller.ts";
import { type ControllerOptions, controllerOptions } from "../core/admission/controller-options.ts";
import type { DequeueSink } from "../core/admission/dequeue-pass.ts";
import { HostLooks, isOverOnAHost } from "../core/admission/host-looks.ts";
import type { AdmissionQuery } from "../core/admission/query.ts";
import { hasQuotas } from "../core/admission/quotas.ts";
import { RecordedController } from "../core/admission/recorded-controller.ts";
import type { BackendDescriptor } from "../core/cluster/backend.ts";
import type { AdmissionPath, FinishState } from "../core/events.ts";
import { type PoolConfig, ROOT_POOL } from "../core/pool-config.ts";
import { xoshiroFor } from "../core/random.ts";
import type { Ending, Submission, Workload } from "../workload/workload.ts";
import { Cluster } from "./cluster.ts";
import { EventQueue, MICROS_PER_MS, type Micros, NO_EVENT, toInstant, toMicros } from "./event-queue.ts";
import { ExchangeGrid, MeasuredExchanges } from "./exchange-grid.ts";
import { Exchanges } from "./exchanges.ts";
import { Executors } from "./executors.ts";
import { Faults } from "./faults.ts";
import { Placements } from "./placement.ts";
import { RequestQueueTopic } from "./request-queue-topic.ts";
import { Seat } from "./seat.ts";
import { ServiceLine } from "./service-line.ts";
import { SimQuery } from "./sim-query.ts";
import type { PoolConfigs, SimulationInput, SubmittedConfigs } from "./simulate.ts";
import { Names, Teller } from "./teller.ts";

/** Kinds of events; operand a is a query's slot, a seat, a host, or the number of a fault. */
const WORK = 0;
const TIMEOUT = 1;
const CANCEL = 2;
const EXCHANGE = 3;
const FAULT = 4;
const HEARS = 5;
const DETECT = 6;
const BLACKLIST = 7;
const EXEC_FAILED = 8;
const HEARTBEAT = 9;

const ADMISSIOND = "admissiond:29500";
/** Faults that leave hosts and statestore talking to each other. */
export const CALM_FAULTS: ReadonlySet<FaultKind> = new Set([
  "hostQuiesces",
  "workerKilled",
  "releasesLost",
  "refusals",
  "configChanges",
  "statisticsDropped",
]);

export interface SimulationParts extends SimulationInput {
  readonly flags: ImpalaFlags;
}

export class Simulation {
  readonly scenario: Scenario;
  readonly flags: ImpalaFlags;
  readonly backends: readonly BackendDescriptor[];
  readonly seats: Seat[] = [];
  readonly queries: SimQuery[] = [];
  readonly poolNames: Names;
  readonly events = new EventQueue();
  readonly topic: RequestQueueTopic;
  readonly cluster: Cluster;
  readonly exchanges: Exchanges;
  readonly executors: Executors;
  readonly teller: Teller;
  readonly workload: Workload;
  readonly faults: Faults;
  now: Micros = 0;
  submitted = 0;
  steps = 0;

  readonly #input: SimulationInput;
  readonly #userNames: Names;
  readonly #coordinatorNames: Names;
  readonly #placements: Placements;
  readonly #seatOfCoordinator: number[] = [];
  readonly #hostOfCoordinator: number[] = [];
  readonly #free: number[] = [];
  readonly #releaseTiming: ReleaseTiming;
  readonly #isGlobal: boolean;
  /** Null: coordinators decide for themselves. */
  readonly #service: ServiceLine | null;
  /** Processes started under an address, for the records. */
  readonly #starts = new Map<string, number>();
  /** Null: nobody brings any. */
  readonly #configsOf: ((submission: Submission) => SubmittedConfigs | null) | null;
  #pools: PoolConfigs;
  readonly #configs: PoolConfig[] = [];
  #rootConfig: PoolConfig;
  #live = 0;
  /** Of them, what `admissiond` has for coordinators that are gone, and nobody waits for: maybe for ever (T-59). */
  #abandoned = 0;
  #nextArrival: Micros = 0;
  readonly #sink: DequeueSink;
  /** Null: nobody asks. */
  readonly #looks: HostLooks | null;
  #passesDue = 0;
  /** Of the pass that runs: how many left the queue, and whether one left without running, which ends it. */
  #leftInPass = 0;
  #wasPassCut = false;

  constructor(input: SimulationParts) {
    const { scenario, flags } = input;
    const observer = input.observer ?? null;
    this.#input = input;
    this.scenario = scenario;
    this.flags = flags;
    this.workload = input.workload;
    this.#configsOf = input.configsOf ?? null;
    this.#pools = input.pools;
    this.#rootConfig = input.pools.configOf(ROOT_POOL);
    this.#isGlobal = scenario.cluster.admission === "admissiond";
    this.#releaseTiming = {
      delayMs: flags.release_backend_states_delay_ms,
      decayFactor: flags.batched_release_decay_factor,
    };
    this.backends = input.backends ?? backendsOf(scenario.cluster);
    this.cluster = new Cluster(this.backends);
    const addresses = this.backends.map((b) => b.address);
    this.teller = new Teller(
      input.emit ?? null,
      input.onlyOutcomes ?? false,
      observer,
      scenario.queries.map((c) => c.name),
    );
    this.poolNames = new Names("pool", observer);
    this.#userNames = new Names("user", observer);
    this.#coordinatorNames = new Names("coordinator", observer);
    this.#placements = new Placements(addresses);
    const { statestore } = scenario.cluster;
    const lags = { publish: toMicros(statestore.publishLag), receive: toMicros(statestore.receiveLag) };
    const period = toMicros(statestore.every) + lags.publish + lags.receive;
    const subscribers = this.#isGlobal ? [...addresses, ADMISSIOND] : addresses;
    const measured = input.exchangeStarts;
    const grid =
      measured === undefined
        ? new ExchangeGrid(period, subscribers.length)
        : new MeasuredExchanges(
            period,
            subscribers.map((s) => measured.get(s) ?? null),
          );
    this.topic = new RequestQueueTopic(grid, lags, addresses);
    this.executors = new Executors({
      classes: scenario.queries,
      model: scenario.model,
      addresses,
      processLimits: this.backends.map((b) => b.admitMemLimit),
      scratchLimits: scratchLimitsOf(scenario.cluster, this.backends),
      events: this.events,
      eventKind: WORK,
      topic: this.topic,
      queries: this.queries,
      dice: xoshiroFor(scenario.seed, 0, "refusals"),
      measured: input.measured ?? null,
    });
    this.faults = new Faults(this, { detect: DETECT, blacklist: BLACKLIST }, input);
    this.#openSeats();
    this.#service = this.#serviceLine();
    this.exchanges = new Exchanges({
      events: this.events,
      eventKind: EXCHANGE,
      seats: this.seats,
      topic: this.topic,
      grid,
      receiveLag: lags.receive,
      publishLag: lags.publish,
      staleAfter: toMicros(flags.admission_control_stale_topic_threshold_ms),
      cluster: this.cluster,
      poolNames: this.poolNames,
      teller: this.teller,
      hosts: addresses.length,
      effects: {
        wake: (seat) => this.#duePass(seat),
        membershipChanged: (seat, released, now) => this.#membershipChanged(seat, released, now),
      },
    });
    this.#sink = this.#sinkOfThis();
    this.#looks =
      input.looksAtHosts === true
        ? new HostLooks(
            () => this.#controllers(),
            (a, slots, hostMemory, at) => this.teller.hostsChecked(a.owner as SimQuery, slots, hostMemory, at),
          )
        : null;
  }

  #openSeats(): void {
    const flags = controllerFlagsOf(this.flags);
    const newController = this.#input.newController ?? ((options) => this.#newController(options));
    const settings = {
      blacklist: {
        maxMissedHeartbeats: this.flags.statestore_max_missed_heartbeats,
        heartbeatMs: this.flags.statestore_heartbeat_frequency_ms,
      },
      mostRemoved: this.flags.cluster_membership_retained_removed_coords,
      recoveryGraceMs: this.flags.statestore_subscriber_recovery_grace_period_ms,
    };
    const add = (subscriber: number, options: Partial<ControllerOptions> & { readonly hostId: string }) => {
      const all = controllerOptions({ flags, keepsIds: false, ...options });
      this.seats.push(new Seat(this.seats.length, subscriber, all, settings, newController));
    };
    if (this.#isGlobal) {
      add(this.backends.length, { hostId: ADMISSIOND, mode: "global" });
      return;
    }
    this.backends.forEach((b, host) => {
      if (!b.isCoordinator) return;
      add(host, { hostId: b.address });
      this.topic.speaksFor(host);
    });
  }

  #serviceLine(): ServiceLine | null {
    const service = this.seats[0]?.service ?? null;
    return service === null ? null : new ServiceLine(this, service, { hears: HEARS, heartbeat: HEARTBEAT }, this.flags);
  }

  /** Who keeps records keeps those of every call, so that they can be gone through again. */
  #newController(options: ControllerOptions): AdmissionController {
    if (!this.teller.tellsAll) return new AdmissionController(options);
    const starts = (this.#starts.get(options.hostId) ?? 0) + 1;
    this.#starts.set(options.hostId, starts);
    const name = starts === 1 ? options.hostId : `${options.hostId}#${starts}`;
    return new RecordedController(options, (call, given) => this.teller.called(name, call, given, this.now));
  }

  // The loop

  run(): void {
    this.scenario.faults.forEach((fault, i) => {
      this.events.add(toMicros(fault.at), FAULT, i, 0);
    });
    this.exchanges.open();
    if (this.#isCalm()) this.topic.keepLayers();
    if (hasQuotas(this.#rootConfig)) this.exchanges.changesMatter();
    if (this.seats.length > 1) {
      this.#reservationsMatter();
      this.executors.hostsMayRefuse([]);
    }
    this.#nextArrival = this.#whenNextArrives();
    const { inspect, until } = this.#input;
    const looks = this.#looks;
    while (this.#step()) {
      inspect?.(this);
      if (looks !== null && this.#next > looks.idleUntil * MICROS_PER_MS && this.isInstantOver)
        looks.instantOver(toInstant(this.now), toInstant(this.#next));
      if (until?.() === true) break;
    }
    this.teller.ended(this.now);
  }

  #controllers(): AdmissionController[] {
    return this.seats.filter((s) => s.isAlive).map((s) => s.controller);
  }

  /** One controller, nobody who wants every entry, and nothing that fails to publish. */
  #isCalm(): boolean {
    const { faults } = this.scenario;
    return this.seats.length === 1 && !this.teller.tellsAll && faults.every((f) => CALM_FAULTS.has(f.kind));
  }

  /** Queries that are not over for everybody, those that nobody waits for left out. */
  get live(): number {
    return this.#live - this.#abandoned;
  }

  /** Nothing more of this instant is to come: peaks and checks are taken now (DESIGN 3). */
  get isInstantOver(): boolean {
    return this.#passesDue === 0 && this.#next > this.now;
  }

  /** When the next thing happens. */
  get #next(): Micros {
    return Math.min(this.#nextArrival, this.events.nextTime);
  }

  /** One thing happens; false: nothing is left that could. */
  #step(): boolean {
    const eventAt = this.events.nextTime;
    const next = Math.min(this.#nextArrival, eventAt);
    if (this.#passesDue > 0 && next > this.now) this.#runPasses();
    else if (this.#nextArrival <= eventAt) {
      if (this.#nextArrival === Number.POSITIVE_INFINITY) return false;
      this.now = this.#nextArrival;
      this.#arrive(this.now);
    } else {
      if (this.#isOver()) return false;
      const kind = this.events.take();
      this.now = this.events.time;
      this.#happen(kind, this.events.a, this.now);
    }
    return true;
  }

  /** No request is to come, nobody waits for anything, and what nobody waits for does not move any more either. */
  #isOver(): boolean {
    if (this.#live !== this.#abandoned || this.#nextArrival !== Number.POSITIVE_INFINITY) return false;
    // An instant is gone through to its end: its pass may let in somebody nobody waits for.
    if (this.events.nextTime <= this.now) return false;
    return this.#abandoned === 0 || !this.#mayAbandonedMove();
  }

  /** By what is planned, by a heartbeat, or by an exchange that brings something. */
  #mayAbandonedMove(): boolean {
    if (this.#passesDue > 0 || this.faults.isMoreToCome || this.exchanges.mayMove(this.seats[0]!)) return true;
    return this.queries.some((q) => q.isOrphan && q.hears !== NO_EVENT);
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
        this.exchanges.exchange(this.seats[a]!, now);
        break;
      case FAULT:
        this.faults.apply(this.scenario.faults[a]!, now);
        break;
      case HEARS:
        this.#service!.hears(this.queries[a]!, now);
        break;
      case DETECT:
        this.faults.noticed(a, this.events.b, now);
        break;
      case BLACKLIST:
        this.faults.blacklistExpires(this.seats[a]!, now);
        break;
      case EXEC_FAILED:
        this.#execFailed(this.queries[a]!, now);
        break;
      default:
        this.#service!.heartbeat(this.queries[a]!, now);
    }
  }

  #whenNextArrives(): Micros {
    const at = this.workload.nextAt();
    return at === Number.POSITIVE_INFINITY ? at : Math.max(this.now, toMicros(at));
  }

  // Submission

  #arrive(now: Micros): void {
    const submission = this.workload.take();
    this.#nextArrival = this.#whenNextArrives();
    this.submitted++;
    const q = this.#newQuery();
    q.begin(submission);
    q.submittedAt = now;
    q.pool = this.#poolIndex(submission.pool);
    q.user = this.#userNames.indexOf(submission.user);
    q.coordinator = this.#coordinatorNames.indexOf(submission.coordinator);
    this.teller.submitted(q, now);
    const seat = this.#seatFor(q.coordinator, submission.coordinator);
    q.seat = seat.index;
    const refused = submission.unresolved ?? this.#whyUnreachable(q);
    if (refused === null) this.#submit(q, seat, now);
    else {
      this.teller.unresolved(q, refused, now);
      this.end(q, "unresolved", now);
    }
  }

  /** A client that insists on a coordinator that is gone gets no connection, and no pool counter moves. */
  #whyUnreachable(q: SimQuery): string | null {
    const host = this.#hostOfCoordinator[q.coordinator]!;
    return this.cluster.isUp(host) ? null : `Could not connect to ${this.backends[host]!.address}`;
  }

  #submit(q: SimQuery, seat: Seat, now: Micros): void {
    const { submission } = q;
    this.exchanges.catchUp(seat, now);
    const given = this.#configsOf === null ? null : this.#configsOf(submission);
    if (given !== null) this.#takeConfigs(q.pool, given);
    const config = this.#configs[q.pool]!;
    const admission =
      this.#service === null
        ? seat.controller.submit(submission, config, this.#rootConfig, toInstant(now))
        : this.#service.admit(q, config, this.#rootConfig, now);
    admission.owner = q;
    q.admission = admission;
    // It lets nobody in that waits, unless it brings new limits (5.7); but what it takes a head may wait for from now on.
    const isTaking = admission.state === "running" && seat.queued > 0;
    if (isTaking || seat.hasNewLimits) this.exchanges.mayMoveLater(seat, now);
    else this.exchanges.willPublish(seat, now);
    switch (admission.state) {
      case "running":
        this.#admitted(q, admission.path!, now);
        break;
      case "queued":
        this.#queued(q, seat, now);
        break;
      default:
        this.teller.rejected(q, false, now);
        this.end(q, "rejected", now);
    }
  }

  #queued(q: SimQuery, seat: Seat, now: Micros): void {
    // The first of an empty queue has just been tried; a later one changes nothing for the head.
    if (seat.queued++ === 0) {
      seat.isSettled = this.#input.discipline === undefined;
      this.exchanges.queueBegan(seat, now);
    } else if (!seat.isSettled) this.exchanges.arm(seat, now);
    this.teller.queued(q, now);
    this.#looks?.queueBegan();
    const noticed = this.#service?.timeoutNoticedAt(q) ?? now + toMicros(q.admission.timeout);
    q.timeout = this.events.addInLane(noticed, TIMEOUT, q.slot, 0);
    this.#scheduleCancel(q, now);
    if (this.#input.discipline !== undefined && !seat.isPassDue && !seat.isJoined) {
      seat.isJoined = true;
      this.#passesDue++;
    }
  }

  #scheduleCancel(q: SimQuery, now: Micros): void {
    const { cancelAt } = q.submission;
    if (cancelAt !== Number.POSITIVE_INFINITY && q.cancel === NO_EVENT && !q.isClientGone)
      q.cancel = this.events.add(Math.max(now, toMicros(cancelAt)), CANCEL, q.slot, 0);
  }

  #admitted(q: SimQuery, path: AdmissionPath, now: Micros): void {
    q.state = "running";
    q.decidedAt = now;
    q.placement = this.#placements.of(q.admission.plan!.schedule);
    this.teller.admitted(q, path, now);
    if (this.#looks !== null && this.seats.length > 1) this.#tellView(q, now);
    this.#scheduleCancel(q, now);
    if (q.isOrphan) this.faults.admittedOrphan(q, now);
    else if (this.#service !== null && path === "fromQueue") this.#service.hearLater(q, now);
    else this.begin(q, now);
  }

  /** Its coordinator knows that it may run. */
  #tellView(q: SimQuery, now: Micros): void {
    const age = this.exchanges.viewAge(this.seats[q.seat]!, now);
    this.teller.viewUsed(q, age, isOverOnAHost(q.admission, this.#controllers()), now);
  }

  begin(q: SimQuery, now: Micros): void {
    if (this.faults.findDead(q) >= 0) {
      q.finish = this.events.add(now, EXEC_FAILED, q.slot, 0);
      return;
    }
    this.executors.begin(q, now);
    this.exchanges.reservationsChanged(now);
    if (this.teller.tellsAll) this.teller.started(q, now);
  }

  /** Of a query that is done everywhere at once, in one number. */
  #tellSpills(q: SimQuery, now: Micros): void {
    let bytes = 0;
    for (const spilled of q.spills!) bytes += spilled;
    if (bytes > 0) this.teller.spilled(q, bytes, now);
  }

  // Waiting

  #timeOut(q: SimQuery, now: Micros): void {
    const seat = this.seats[q.seat]!;
    q.timeout = NO_EVENT;
    if (this.#service === null) seat.controller.timeOut(q.admission, toInstant(now));
    else this.#service.timeOut(q, now);
    this.leftQueue(q, seat);
    this.exchanges.mayMoveLater(seat, now);
    this.teller.timedOut(q, now);
    this.end(q, "timedOut", now);
  }

  #cancel(q: SimQuery, now: Micros): void {
    q.cancel = NO_EVENT;
    if (this.#service !== null) this.#service.cancel(q, now);
    else if (q.state === "running") this.stopAndFinish(q, "cancelled", now);
    else this.cancelQueued(q, "cancelled", now);
  }

  /** Out of its controller's queue without a decision. */
  cancelQueued(q: SimQuery, how: Ending, now: Micros): void {
    const seat = this.seats[q.seat]!;
    seat.controller.cancel(q.admission, toInstant(now));
    this.leftQueue(q, seat);
    this.exchanges.mayMoveLater(seat, now);
    this.teller.cancelled(q, true, now);
    this.end(q, how, now);
  }

  leftQueue(q: SimQuery, seat: Seat): void {
    seat.queued--;
    seat.isSettled = false;
    this.#leftInPass++;
    if (q.timeout !== NO_EVENT) this.events.remove(q.timeout);
    q.timeout = NO_EVENT;
  }

  // Passes

  /** The instant has nothing else to do: whoever was woken looks at his queues, in order of address. */
  #runPasses(): void {
    for (const seat of this.seats) {
      if (seat.isPassDue) this.#pass(seat, this.now);
      if (seat.isJoined) this.#passAfterJoining(seat, this.now);
    }
  }

  #pass(seat: Seat, now: Micros): void {
    seat.isPassDue = false;
    this.#passesDue--;
    const { discipline } = this.#input;
    if (!seat.isAlive || (discipline === undefined && !seat.controller.isPassDue)) return;
    this.exchanges.catchUpForPass(seat, now);
    this.#leftInPass = 0;
    this.#wasPassCut = false;
    const hasOneQueue = countQueues(seat) === 1;
    if (discipline === undefined) (seat.service ?? seat.controller).dequeuePass(toInstant(now), this.#sink);
    else discipline.pass(seat.controller, toInstant(now), seat.service?.forgetting(this.#sink) ?? this.#sink);
    this.#passed(seat, hasOneQueue, now);
  }

  /** Nobody was woken (5.4): only who may pass a head is looked for, in the view that the controller has. */
  #passAfterJoining(seat: Seat, now: Micros): void {
    seat.isJoined = false;
    this.#passesDue--;
    if (!seat.isAlive) return;
    this.#leftInPass = 0;
    this.#wasPassCut = false;
    const sink = seat.service?.forgetting(this.#sink) ?? this.#sink;
    this.#input.discipline!.joined(seat.controller, toInstant(now), sink);
    // A head that nobody has tried again is as it was: only an exchange that wakes finds out.
    if (this.#leftInPass > 0) this.#passed(seat, countQueues(seat) === 1, now);
  }

  #passed(seat: Seat, hasOneQueue: boolean, now: Micros): void {
    if (this.#leftInPass > 0) this.exchanges.willPublish(seat, now + 1);
    // Where several queues were served, who left a later one may have changed what an earlier one's head waits for.
    seat.isSettled = this.#leftInPass === 0 || (hasOneQueue && this.#isPassExhaustive() && !isAnyHeadMislabelled(seat));
    // The exchange of this instant, if there is one, has been.
    if (!seat.isSettled && seat.queued > 0) this.exchanges.arm(seat, now + 1);
  }

  /** One controller lets in all that may go; several leave some to each other (5.5), and a cut pass its rest (T-9). */
  #isPassExhaustive(): boolean {
    return this.seats.length === 1 && !this.#wasPassCut && this.#input.discipline === undefined;
  }

  #duePass(seat: Seat): void {
    if (seat.isPassDue) return;
    seat.isPassDue = true;
    this.#passesDue++;
  }

  #sinkOfThis(): DequeueSink {
    const left = (a: AdmissionQuery): SimQuery => {
      const q = a.owner as SimQuery;
      this.leftQueue(q, this.seats[q.seat]!);
      return q;
    };
    return {
      admitted: (a) => this.#admitted(left(a), "fromQueue", this.now),
      rejected: (a) => {
        const q = left(a);
        this.#wasPassCut = true;
        this.teller.rejected(q, true, this.now);
        this.#outOfQueue(q, "rejected");
      },
      cancelled: (a) => {
        const q = left(a);
        this.#wasPassCut = true;
        this.teller.cancelled(q, true, this.now);
        this.#outOfQueue(q, "cancelled");
      },
      stillQueued: (a) => {
        this.teller.headWaits(a.owner as SimQuery, this.now);
        this.#looks?.headWaits(a);
        a.failures = 0;
      },
    };
  }

  #outOfQueue(q: SimQuery, how: Ending): void {
    if (this.#service !== null && !q.isOrphan) this.#service.hearLater(q, this.now);
    else this.end(q, how, this.now);
  }

  // Running

  #workDone(q: SimQuery, now: Micros): void {
    const point = this.executors.workDone(q, now);
    this.exchanges.reservationsChanged(now);
    if (point === null) {
      // What is told must not change what happens: everything comes back in the one release of `#finish`.
      if (this.teller.tellsAll) this.#tellAllFinished(q, now);
      else if (q.spills !== null) this.#tellSpills(q, now);
      this.#finish(q, "finished", now);
      return;
    }
    if (point.error !== null) {
      this.fail(q, point.error, now);
      return;
    }
    this.#releaseInBatches(q, point.positions, now);
    if (q.finish === NO_EVENT) this.#finish(q, "finished", now);
  }

  /** The coordinator's last, as `Executors` has it where hosts take differently long. */
  #tellAllFinished(q: SimQuery, now: Micros): void {
    const { hosts, coordinatorAt } = q.placement;
    for (const position of hosts.keys()) if (position !== coordinatorAt) this.teller.fragmentFinished(q, position, now);
    this.teller.fragmentFinished(q, coordinatorAt, now);
  }

  /** Backends are done one after the other; which of them are given back when is 9.1's. */
  #releaseInBatches(q: SimQuery, positions: readonly number[], now: Micros): void {
    const at = toInstant(now);
    const { hosts, coordinatorAt } = q.placement;
    q.releasing ??= new BackendRelease(hosts.length, coordinatorAt, toInstant(q.decidedAt), this.#releaseTiming);
    for (const position of positions) {
      this.teller.fragmentFinished(q, position, now);
      const due = q.releasing.finished(position, at);
      if (due.length === 0) continue;
      q.releasing.released(due);
      this.#releaseBackends(q, due, now);
    }
  }

  #releaseBackends(q: SimQuery, positions: readonly number[], now: Micros): void {
    if (this.#service !== null) {
      this.#service.releaseBackends(q, positions, now);
      return;
    }
    const bytes = this.seats[q.seat]!.controller.releaseBackends(q.admission, positions);
    const { addresses } = q.placement;
    this.backendsReleased(
      q,
      positions.map((i) => addresses[i]!),
      bytes,
      now,
    );
  }

  /** Its controller holds so much less of it. */
  backendsReleased(q: SimQuery, hosts: readonly string[], bytes: number, now: Micros): void {
    this.teller.backendsReleased(q, hosts, bytes, now);
    this.#wake(this.seats[q.seat]!, now);
  }

  /** It ends now, whatever still runs of it. */
  fail(q: SimQuery, error: string, now: Micros): void {
    q.error = error;
    this.stopAndFinish(q, "failed", now);
  }

  stopAndFinish(q: SimQuery, state: FinishState, now: Micros): void {
    this.executors.stop(q, now);
    this.exchanges.reservationsChanged(now);
    if (q.hears !== NO_EVENT) this.events.remove(q.hears);
    q.hears = NO_EVENT;
    this.#finish(q, state, now);
  }

  #execFailed(q: SimQuery, now: Micros): void {
    q.finish = NO_EVENT;
    const dead = this.faults.findDead(q);
    if (dead < 0) {
      this.begin(q, now);
      return;
    }
    this.faults.avoid(this.seats[q.seat]!, dead, now);
    this.fail(q, `ExecQueryFInstances rpc to ${this.backends[dead]!.address} failed`, now);
  }

  /** The query is over for its client; then what is still held comes back in one call, and its place (9.3). */
  #finish(q: SimQuery, state: FinishState, now: Micros): void {
    q.outcome = state;
    if (this.#service === null) this.release(q, now);
    else this.#service.release(q, now);
  }

  release(q: SimQuery, now: Micros): void {
    const { controller } = this.seats[q.seat]!;
    const bytes = controller.releaseRest(q.admission);
    controller.releaseQuery(q.admission, q.peak);
    this.restReleased(q, bytes, now);
  }

  /** What its controller still held, in one call, and its place in the pool. */
  restReleased(q: SimQuery, bytes: number, now: Micros): void {
    if (bytes > 0 || q.releasing === null) this.teller.backendsReleased(q, this.unreleased(q), bytes, now);
    this.released(q, now);
  }

  /** Its controller holds nothing of it any more. */
  released(q: SimQuery, now: Micros): void {
    if (q.hears !== NO_EVENT) this.events.remove(q.hears);
    this.teller.released(q, q.outcome, now);
    this.#wake(this.seats[q.seat]!, now);
    this.end(q, q.outcome, now);
  }

  unreleased(q: SimQuery): readonly string[] {
    const { addresses } = q.placement;
    if (q.releasing === null) return addresses;
    return [...(q.lost ?? []), ...q.releasing.close()].map((i) => addresses[i]!);
  }

  /** A release wakes the dequeue thread (admission 5.4); with nothing queued there is nothing to look at. */
  #wake(seat: Seat, now: Micros): void {
    seat.isSettled = false;
    this.exchanges.willPublish(seat, now);
    if (seat.queued > 0) this.#duePass(seat);
  }

  /** Over for everybody: the slot is free. */
  end(q: SimQuery, how: Ending, now: Micros): void {
    const { submission, isClientGone } = q;
    if (q.cancel !== NO_EVENT) this.events.remove(q.cancel);
    if (q.isAbandoned) this.#abandoned--;
    q.free();
    this.#free.push(q.slot);
    this.#live--;
    if (!isClientGone) this.#toldWorkload(submission, how, now);
  }

  /** The client has its answer, or has lost its connection; admission still holds the query. */
  tellClient(q: SimQuery, how: Ending, now: Micros): void {
    if (q.isClientGone) return;
    q.isClientGone = true;
    if (q.cancel !== NO_EVENT) this.events.remove(q.cancel);
    q.cancel = NO_EVENT;
    this.#toldWorkload(q.submission, how, now);
  }

  #toldWorkload(submission: SimQuery["submission"], how: Ending, now: Micros): void {
    this.workload.ended(submission, how, toInstant(now));
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

  // What faults bring about

  /** The coordinator's process is gone: its clients lose their connections. */
  orphan(q: SimQuery, now: Micros): void {
    if (q.isOrphan) return;
    q.isOrphan = true;
    if (!q.isClientGone) {
      q.outcome = "failed";
      q.error = `The coordinator ${q.submission.coordinator} is gone.`;
    }
    if (q.timeout !== NO_EVENT) this.events.remove(q.timeout);
    q.timeout = NO_EVENT;
    if (q.hears !== NO_EVENT) this.events.remove(q.hears);
    q.hears = NO_EVENT;
    this.tellClient(q, "failed", now);
    if (q.state === "running") this.executors.suspend(q);
    else if (q.admission.state !== "queued") {
      this.end(q, "failed", now);
      return;
    }
    if (!q.isHoldingAll) this.abandoned(q);
  }

  /** With `admissiond`, and no coordinator: nothing of it runs, and nobody waits for it. */
  abandoned(q: SimQuery): void {
    if (this.#service === null || q.isAbandoned) return;
    q.isAbandoned = true;
    this.#abandoned++;
  }

  /** With `admissiond`: released because their coordinator is gone (9.5). And who runs on hosts that left must fail. */
  #membershipChanged(seat: Seat, released: readonly AdmissionQuery[], now: Micros): void {
    for (const a of released) {
      const q = a.owner as SimQuery;
      if (!q.isClientGone) q.outcome = "failed";
    }
    if (released.length > 0) this.#service!.releasedByService(released, now);
    this.faults.failOnLostHosts(seat, now);
    this.faults.watchBlacklist(seat);
  }

  #takeConfigs(pool: number, { config, rootConfig }: SubmittedConfigs): void {
    if (rootConfig !== this.#rootConfig) {
      this.#rootConfig = rootConfig;
      if (hasQuotas(rootConfig)) this.exchanges.changesMatter();
    }
    if (config === this.#configs[pool]) return;
    this.#configs[pool] = config;
    if (config.maxMemResources >= 0) this.#reservationsMatter();
    for (const seat of this.seats) seat.hasNewLimits = true;
  }

  poolsChanged(pools: PoolConfigs): void {
    this.#pools = pools;
    this.#rootConfig = pools.configOf(ROOT_POOL);
    if (hasQuotas(this.#rootConfig)) this.exchanges.changesMatter();
    this.#configs.forEach((_, i) => {
      this.#configs[i] = this.#configFor(this.poolNames.nameOf(i));
    });
    // The next submission to a pool brings its new limits to those that wait (5.7).
    for (const seat of this.seats) seat.hasNewLimits = true;
    this.workload.configurationChanged();
  }

  releaseAtHeartbeat(q: SimQuery, now: Micros): void {
    this.#service!.releaseAtHeartbeat(q, now);
  }

  // Names

  hostOf(q: SimQuery): number {
    return this.#hostOfCoordinator[q.coordinator]!;
  }

  #seatFor(coordinator: number, address: string): Seat {
    let index = this.#seatOfCoordinator[coordinator];
    if (index === undefined) {
      index = this.#isGlobal ? 0 : this.seats.findIndex((s) => s.address === address);
      this.#seatOfCoordinator[coordinator] = index;
      this.#hostOfCoordinator[coordinator] = this.backends.findIndex((b) => b.address === address);
    }
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

  #reservationsMatter(): void {
    this.executors.track(this.#running(), this.now);
    this.exchanges.reservationsMatter(this.now);
  }

  #running(): SimQuery[] {
    return this.queries.filter((q) => q.state === "running");
  }

  #configFor(pool: string): PoolConfig {
    const config = this.#pools.configOf(pool);
    if (config.maxMemResources >= 0) this.#reservationsMatter();
    else this.executors.hostsMayRefuse(this.#running());
    return config;
  }
}

function countQueues({ controller }: Seat): number {
  let queues = 0;
  for (const pool of controller.pools) if (pool.queue.head !== null) queues++;
  return queues;
}

/** A pass that ended because all places are taken has not tried who is head now; what it waits for may be there by now. */
function isAnyHeadMislabelled({ queued, controller }: Seat): boolean {
  if (queued === 0) return false;
  return controller.pools.some(({ queue }) => {
    const rule = queue.head?.latestReason?.rule;
    return rule === "NO-EXECUTORS" || rule === "NO-COORDINATOR";
  });
}
