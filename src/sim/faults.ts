/**
 * What goes wrong in a simulated run, and who notices when.
 *
 * A process that dies is silent at once, but the statestore declares it failed only `failureAfter` later; until
 * then it stays in everybody's membership and its topic entries stay in everybody's figures (admission 6.1,
 * 7.1, 9.5). What happens in between is the point: queries on a dead executor hang until their coordinator
 * hears; new ones sent there fail at once and their coordinator avoids the host for a while (6.1); a dead
 * coordinator's queries are still counted by the others.
 */
import { faultText } from "../config/fault-text.ts";
import type { Fault } from "../config/scenario.ts";
import { fail as bug, unreachable } from "../core/assert.ts";
import { REPORTS_GIVEN_UP, REPORTS_MISSED } from "../core/cluster/status-reports.ts";
import { type Xoshiro128, xoshiroFor } from "../core/random.ts";
import { type Micros, NO_EVENT, toInstant, toMicros } from "./event-queue.ts";
import { coordinatorLeft, executorUnreachable, reportMissed } from "./failure-text.ts";
import type { Seat } from "./seat.ts";
import type { SimQuery } from "./sim-query.ts";
import type { SimulationInput } from "./simulate.ts";
import type { Simulation } from "./simulation.ts";

interface Kinds {
  readonly detect: number;
  readonly blacklist: number;
}

/** Who notices that a process is silent; operand b of the event. */
const BY_STATESTORE = 0;
const BY_EXECUTORS = 1;
const BY_COORDINATORS = 2;
const GIVEN_UP = toMicros(REPORTS_GIVEN_UP);
const MISSED = toMicros(REPORTS_MISSED);

export class Faults {
  readonly #sim: Simulation;
  readonly #kinds: Kinds;
  readonly #input: SimulationInput;
  readonly #draws: Xoshiro128;
  readonly #failureAfter: Micros;
  /** Hosts that died and have not come back: how many, so that a healthy run asks nothing. */
  #dead = 0;
  /** By host, when it died last. */
  readonly #silentSince: Micros[] = [];
  /** Faults of the scenario that are still to come. */
  #toCome: number;
  /** Ends of the time after which the statestore misses somebody. */
  #detections = 0;
  /** Hosts that a statestore would have declared failed if it had not been away. */
  readonly #missed = new Set<number>();
  /** Chance that a release message is lost, and whose (null: everybody's). */
  #releaseLoss = 0;
  #releaseLossOf: string | null = null;

  constructor(sim: Simulation, kinds: Kinds, input: SimulationInput) {
    this.#sim = sim;
    this.#kinds = kinds;
    this.#input = input;
    this.#draws = xoshiroFor(input.scenario.seed, 0, "faults");
    this.#failureAfter = toMicros(input.scenario.cluster.statestore.failureAfter);
    this.#toCome = input.scenario.faults.length;
  }

  /** Something is planned, or somebody is about to be missed by the statestore. */
  get isMoreToCome(): boolean {
    return this.#toCome > 0 || this.#detections > 0;
  }

  apply(fault: Fault, now: Micros): void {
    const sim = this.#sim;
    this.#toCome--;
    sim.teller.event({ kind: "fault", at: toInstant(now), what: faultText(fault, this.#input.scenario.queries) });
    sim.exchanges.catchUpAll(now);
    switch (fault.kind) {
      case "hostDies":
      case "coordinatorDies":
        this.#processDies(this.#host(fault.host), now);
        break;
      case "hostReturns":
      case "coordinatorReturns":
        this.#processReturns(this.#host(fault.host), now);
        break;
      case "hostQuiesces":
        sim.cluster.quiesces(this.#host(fault.host), now);
        sim.exchanges.armAll(now);
        break;
      case "workerKilled":
        this.#failEverythingOn(this.#host(fault.host), `The worker of ${fault.host} was killed`, now);
        break;
      case "coordinatorCutOff":
        this.#cutOff(this.#host(fault.host), now);
        break;
      case "coordinatorRejoins":
        this.#rejoins(this.#host(fault.host), now);
        break;
      case "statestoreStops":
        sim.exchanges.stopStatestore(now);
        break;
      case "statestoreStarts":
        sim.exchanges.startStatestore(now);
        for (const host of this.#missed) this.#detectLater(host, now);
        this.#missed.clear();
        break;
      case "releasesLost":
        this.#releaseLoss = fault.chance;
        this.#releaseLossOf = fault.host;
        break;
      case "refusals":
        sim.executors.refuse(fault.chance, fault.host === null ? -1 : this.#host(fault.host), fault.queryClass);
        break;
      case "configChanges":
        sim.poolsChanged(this.#input.changedPools?.(fault) ?? bug("a configuration changes and nobody reads it"));
        break;
      case "statisticsDropped":
        sim.workload.scaleEstimate(fault.queryClass, fault.factor);
        break;
      default:
        unreachable(fault);
    }
  }

  #host(address: string): number {
    return this.#sim.backends.findIndex((b) => b.address === address);
  }

  // Dying and coming back

  #processDies(host: number, now: Micros): void {
    const sim = this.#sim;
    if (!sim.cluster.isUp(host)) return;
    const { address, isCoordinator } = sim.backends[host]!;
    sim.teller.event({ kind: "hostLost", at: toInstant(now), host: address, why: "the process died" });
    sim.cluster.dies(host);
    this.#dead++;
    sim.topic.silence(host, now);
    for (const q of this.#running()) if (sim.executors.isOn(q, host)) sim.executors.loseHost(q, host, now);
    if (isCoordinator) this.#coordinatorDies(host, now);
    sim.exchanges.reservationsChanged(now);
    this.#missReports(host, now);
    if (sim.cluster.isKnown(host)) this.#detectLater(host, now);
    else this.#endQueriesOf(host, now);
  }

  #coordinatorDies(host: number, now: Micros): void {
    const sim = this.#sim;
    sim.workload.coordinatorGone(sim.backends[host]!.address);
    const seat = this.#seatAt(host);
    if (seat !== null) {
      sim.exchanges.leave(seat, now);
      seat.isAlive = false;
      if (seat.blacklistTimer !== NO_EVENT) sim.events.remove(seat.blacklistTimer);
      seat.blacklistTimer = NO_EVENT;
    }
    for (const q of this.#of(host)) {
      // Its queue dies with it; with `admissiond` the entry stays until it reaches the head (T-59).
      if (seat !== null && q.state === "waiting") sim.cancelQueued(q, "failed", now);
      else sim.orphan(q, now);
    }
  }

  #processReturns(host: number, now: Micros): void {
    const sim = this.#sim;
    if (sim.cluster.isUp(host)) return;
    // A new process under the old name: the statestore sees at once that the old one is gone.
    if (sim.cluster.isKnown(host)) this.detect(host, now);
    this.#endQueriesOf(host, now);
    // The new process names none of the old one's queries in its heartbeat.
    for (const q of this.#of(host)) if (q.isOrphan && q.state === "running") sim.releaseAtHeartbeat(q, now);
    const { address, isCoordinator } = sim.backends[host]!;
    sim.cluster.returns(host, now);
    this.#dead--;
    sim.topic.hear(host, true, now);
    sim.teller.event({ kind: "hostJoined", at: toInstant(now), host: address });
    const seat = this.#seatAt(host);
    if (seat !== null) {
      seat.restart();
      sim.exchanges.join(seat, now);
    }
    if (isCoordinator) sim.workload.coordinatorBack(address);
    // With a statestore away the old process was never declared failed; its coordinators see the new one now.
    if (sim.seats[0]!.isGlobal) this.failOnLostHosts(null, now);
    sim.exchanges.armAll(now);
  }

  #cutOff(host: number, now: Micros): void {
    const sim = this.#sim;
    if (!sim.cluster.isUp(host)) return;
    const seat = this.#seatAt(host);
    if (seat !== null) {
      // First: its last exchange still tells it what its own host held then.
      sim.exchanges.leave(seat, now);
      seat.isCutOff = true;
    }
    sim.topic.silence(host, now);
    this.#detectLater(host, now);
  }

  #rejoins(host: number, now: Micros): void {
    const sim = this.#sim;
    if (!sim.cluster.isUp(host)) return;
    const wasMissed = !sim.cluster.isKnown(host);
    if (wasMissed) sim.cluster.rejoins(host, now);
    sim.topic.hear(host, false, now);
    const seat = this.#seatAt(host);
    if (seat !== null) {
      if (wasMissed) seat.recovery.reconnected(toInstant(now));
      seat.isCutOff = false;
      sim.exchanges.join(seat, now);
    }
    sim.exchanges.armAll(now);
  }

  // Noticing

  #detectLater(host: number, now: Micros): void {
    this.#detections++;
    this.#sim.events.add(now + this.#failureAfter, this.#kinds.detect, host, BY_STATESTORE);
  }

  noticed(host: number, by: number, now: Micros): void {
    this.#sim.exchanges.catchUpAll(now);
    if (by === BY_STATESTORE) {
      this.#detections--;
      this.detect(host, now);
      return;
    }
    // It may have come back, and died again since.
    const silentFor = now - this.#silentSince[host]!;
    const isBack = this.#sim.cluster.isUp(host);
    if (by === BY_EXECUTORS && !isBack && silentFor >= GIVEN_UP) this.#endQueriesOf(host, now);
    // A new process there does not report for what the old one ran.
    if (by === BY_COORDINATORS && silentFor >= MISSED) this.#failUnreported(host, now);
  }

  /** The statestore has missed the host for too long. It may be back, or already declared failed. */
  detect(host: number, now: Micros): void {
    const sim = this.#sim;
    const seat = this.#seatAt(host);
    const isBack = sim.cluster.isUp(host) && !(seat?.isCutOff ?? sim.topic.isSilent(host));
    if (isBack || !sim.cluster.isKnown(host)) return;
    // A statestore that is away misses nobody; once it is back it waits as long again.
    if (!sim.exchanges.isStatestoreUp) {
      this.#missed.add(host);
      return;
    }
    sim.cluster.failed(host, now);
    sim.topic.forgetHost(host, now);
    if (seat !== null) sim.topic.forgetReader(seat, now);
    sim.exchanges.armAll(now);
    this.#endQueriesOf(host, now);
    this.#failUnreported(host, now);
    if (sim.seats[0]!.isGlobal) this.failOnLostHosts(null, now);
  }

  /**
   * Executors and coordinators of each other's queries miss their calls: that is how they notice where the statestore
   * does not tell them, away since before the host was declared failed or since before they heard of it.
   */
  #missReports(host: number, now: Micros): void {
    const { events } = this.#sim;
    this.#silentSince[host] = now;
    events.add(now + GIVEN_UP, this.#kinds.detect, host, BY_EXECUTORS);
    events.add(now + MISSED, this.#kinds.detect, host, BY_COORDINATORS);
  }

  /**
   * Executors cancel the fragments of a coordinator that left the membership, dead or only cut off; what a dead
   * one had admitted is counted no more.
   */
  #endQueriesOf(host: number, now: Micros): void {
    const sim = this.#sim;
    for (const q of this.#of(host)) {
      // Over for its client already, and only its release got lost: nothing of it is left to fail.
      if (q.state !== "running" || (q.isClientGone && !q.isOrphan)) continue;
      q.error = coordinatorLeft(sim.backends[host]!.address);
      if (q.isOrphan && sim.seats[q.seat]!.isGlobal) {
        sim.executors.stop(q, now);
        sim.abandoned(q);
      } else sim.fail(q, q.error, now);
    }
    sim.exchanges.reservationsChanged(now);
  }

  /** A seat has heard who is left: its queries on hosts that are not fail. `null`: everybody's (`admissiond`). */
  failOnLostHosts(seat: Seat | null, now: Micros): void {
    const sim = this.#sim;
    if (seat?.isGlobal) return;
    for (const q of this.#running()) {
      if (q.isOrphan || (seat !== null && q.seat !== seat.index)) continue;
      const lost = this.#lostHostOf(q);
      if (lost >= 0) sim.fail(q, executorUnreachable(sim.backends[lost]!.address), now);
    }
  }

  /** A coordinator that hears of no membership misses the host's status reports all the same. */
  #failUnreported(host: number, now: Micros): void {
    const sim = this.#sim;
    for (const q of this.#running())
      if (q.lostHost === host && !q.isOrphan && (sim.seats[q.seat]!.isCutOff || !sim.exchanges.isStatestoreUp))
        sim.fail(q, reportMissed(sim.backends[host]!.address), now);
  }

  /** A host that left the membership, or came back as another process, before the query was done there; -1: none. */
  #lostHostOf(q: SimQuery): number {
    const { cluster, executors } = this.#sim;
    const { lostHost } = q;
    if (lostHost >= 0 && (!cluster.isKnown(lostHost) || cluster.bornAt(lostHost) > q.decidedAt)) return lostHost;
    for (const host of q.placement.hosts)
      if (!cluster.isKnown(host) && executors.isOn(q, host) && host !== this.#sim.hostOf(q)) return host;
    return -1;
  }

  #failEverythingOn(host: number, why: string, now: Micros): void {
    const sim = this.#sim;
    for (const q of this.#running()) if (!q.isOrphan && sim.executors.isOn(q, host)) sim.fail(q, why, now);
  }

  /** `admissiond` let in a query whose coordinator had died: nobody will start it. */
  admittedOrphan(q: SimQuery, now: Micros): void {
    if (this.#sim.cluster.isUp(this.#sim.hostOf(q))) this.#sim.releaseAtHeartbeat(q, now);
  }

  // Avoiding

  /** A host of the query's schedule that is dead, -1: none. hot: bench/simulate */
  findDead(q: SimQuery): number {
    if (this.#dead === 0) return -1;
    for (const host of q.placement.hosts) if (!this.#sim.cluster.isUp(host)) return host;
    return -1;
  }

  /** 6.1: local to the coordinator; `admissiond` does not hear of it (T-63). */
  avoid(seat: Seat, host: number, now: Micros): void {
    const { backends, flags } = this.#sim;
    if (seat.isGlobal || !flags.blacklisting_enabled) return;
    seat.blacklist.blacklist(backends[host]!.address, toInstant(now));
    seat.controller.setMembership(seat.withBlacklist());
    seat.isSettled = false;
    this.watchBlacklist(seat);
  }

  blacklistExpires(seat: Seat, now: Micros): void {
    seat.blacklistTimer = NO_EVENT;
    if (seat.blacklist.maintain(toInstant(now))) {
      seat.controller.setMembership(seat.withBlacklist());
      seat.isSettled = false;
      this.#sim.exchanges.arm(seat, now);
    }
    this.watchBlacklist(seat);
  }

  watchBlacklist(seat: Seat): void {
    const { events } = this.#sim;
    const next = seat.blacklist.nextChange();
    if (seat.blacklistTimer !== NO_EVENT) events.remove(seat.blacklistTimer);
    // Strictly later than the end: `maintain` lets in what has waited longer than the timeout.
    seat.blacklistTimer =
      next === Number.POSITIVE_INFINITY
        ? NO_EVENT
        : events.add(toMicros(next) + 1, this.#kinds.blacklist, seat.index, 0);
  }

  // Losing messages

  /**
   * With `admissiond` a release is a message, and may be lost; nobody else asks. `positions` null: the last one. Of a
   * measured query it is known which were.
   */
  losesRelease(q: SimQuery, positions: readonly number[] | null): boolean {
    const lost = this.#input.measured?.(q.submission)?.lost ?? null;
    if (lost !== null) return positions === null ? lost.isLastLost : positions.some((i) => lost.positions.has(i));
    if (this.#releaseLoss === 0) return false;
    if (this.#releaseLossOf !== null && this.#releaseLossOf !== q.submission.coordinator) return false;
    return this.#draws.uniform() < this.#releaseLoss;
  }

  #seatAt(host: number): Seat | null {
    return this.#sim.seats.find((s) => s.subscriber === host) ?? null;
  }

  #running(): SimQuery[] {
    return this.#sim.queries.filter((q) => q.state === "running");
  }

  #of(host: number): SimQuery[] {
    return this.#sim.queries.filter((q) => q.state !== "free" && this.#sim.hostOf(q) === host);
  }
}
