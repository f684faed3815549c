/**
 * Exchanges of the controllers with the statestore in virtual time (admission 7.1, 7.3, 7.4, 7.6).
 *
 * In the product one takes place every 100 ms whatever happens. Here a controller has an exchange pending only
 * while it could bring or take something that a decision could depend on: it has changed and others read it;
 * hosts' reservations move and some pool looks at memory; its queue is not empty and may move; the membership
 * is another one. What the left-out ones would have done, keeping the view fresh, is made good when somebody
 * looks (`catchUp`).
 */
import { type BackendUsage, NO_USAGE } from "../core/admission/pool-stats.ts";
import type { AdmissionQuery } from "../core/admission/query.ts";
import { NOTHING_NEW, type TopicUpdate } from "../core/statestore/topic.ts";
import type { Bytes } from "../core/units.ts";
import type { Cluster } from "./cluster.ts";
import { type EventQueue, type Micros, NO_EVENT, toInstant } from "./event-queue.ts";
import type { ExchangeTimes } from "./exchange-grid.ts";
import type { RequestQueueTopic } from "./request-queue-topic.ts";
import type { Seat } from "./seat.ts";
import type { Names, Teller } from "./teller.ts";

/** Starts of exchanges are never negative. */
const NOT_LEFT_OUT = -1;

/** What an exchange brings about elsewhere. */
export interface ExchangeEffects {
  wake(seat: Seat): void;
  /** The seat has a new membership; with `admissiond`, these queries of lost coordinators were released by it. */
  membershipChanged(seat: Seat, released: readonly AdmissionQuery[], now: Micros): void;
}

export interface ExchangesOptions {
  readonly events: EventQueue;
  /** Kind of the event that calls `exchange`; operand a is the seat. */
  readonly eventKind: number;
  readonly seats: readonly Seat[];
  readonly topic: RequestQueueTopic;
  readonly grid: ExchangeTimes;
  readonly receiveLag: Micros;
  readonly publishLag: Micros;
  readonly staleAfter: Micros;
  readonly cluster: Cluster;
  readonly poolNames: Names;
  readonly teller: Teller;
  readonly effects: ExchangeEffects;
  readonly hosts: number;
}

export class Exchanges {
  readonly #o: ExchangesOptions;
  readonly #staleAfter: Micros;
  #isStatestoreUp = true;
  /** There are several controllers, which read each other. */
  #hasReaders = false;
  #doChangesMatter = false;
  /** Every exchange that could matter to anybody takes place in its own time. */
  #isEager = false;
  /** Some controller looks at what hosts reserved: it has others to compare with, or a pool with a maximum. */
  #reservationsMatter = false;

  constructor(options: ExchangesOptions) {
    this.#o = options;
    this.#staleAfter = options.staleAfter;
  }

  get isStatestoreUp(): boolean {
    return this.#isStatestoreUp;
  }

  /** From one exchange of a subscriber to its next. */
  get period(): Micros {
    return this.#o.grid.period;
  }

  /** An exchange carries a controller's changes on: to others, or to the loads that root quotas look at (T-29). */
  changesMatter(): void {
    this.#doChangesMatter = true;
    this.#isEager = true;
  }

  /** Somebody looks at what hosts reserve, from now on. */
  reservationsMatter(now: Micros): void {
    this.#reservationsMatter = true;
    this.reservationsChanged(now);
  }

  /** The cluster has been up for a while when a run begins: members known, views fresh. */
  open(): void {
    const { seats, topic } = this.#o;
    this.#hasReaders = seats.length > 1;
    if (this.#hasReaders) this.changesMatter();
    // What an exchange brings is as of its start. Later only that can be told which was in the topic at once, and of
    // rounds that are equally long (`RequestQueueTopic`).
    const { teller, receiveLag, publishLag, grid } = this.#o;
    if (teller.tellsAll || receiveLag > 0 || publishLag > 0 || !grid.isEven) this.#isEager = true;
    for (const seat of seats) {
      topic.register(seat);
      this.#apply(seat, topic.updateFor(seat, 0, true), 0);
    }
  }

  /** The seat's next exchange, if none is pending. hot: bench/simulate */
  arm(seat: Seat, now: Micros): void {
    if (seat.exchange !== NO_EVENT || !seat.canExchange || !this.#isStatestoreUp) return;
    const { grid, receiveLag, events, eventKind } = this.#o;
    const start = Math.max(now - receiveLag, seat.lastExchange + 1, seat.connectedSince);
    seat.exchange = events.addLast(grid.atOrAfter(seat.subscriber, start) + receiveLag, eventKind, seat.index, 0);
  }

  armAll(now: Micros): void {
    for (const seat of this.#o.seats) this.arm(seat, now);
  }

  /**
   * Hosts hold more or less than before: controllers will hear of it, if one of their pools cares. One that has
   * nobody waiting and nobody to tell hears when it next decides something (`catchUp`). hot: bench/simulate
   */
  reservationsChanged(now: Micros): void {
    if (!this.#reservationsMatter) return;
    for (const seat of this.#o.seats)
      if (this.#isEager || seat.queued > 0) this.arm(seat, now);
      else seat.isBehind = true;
  }

  /** The first one waits: from now on every exchange may be the one that lets it in. */
  queueBegan(seat: Seat, now: Micros): void {
    if (this.#isEager || !seat.isSettled || seat.isBehind || this.#hasMoreFor(seat)) this.arm(seat, now);
  }

  /** Something of a controller's own has changed, which an exchange will carry on; hot: bench/simulate */
  willPublish(seat: Seat, now: Micros): void {
    if (this.#doChangesMatter) this.arm(seat, now);
  }

  /** Something at the controller has changed, and nobody is woken: its queue may move at the next exchange. */
  mayMoveLater(seat: Seat, now: Micros): void {
    seat.isSettled = false;
    if (this.#doChangesMatter || seat.queued > 0) this.arm(seat, now);
  }

  /** False: as things are, no exchange brings the seat anything, nor moves its queue. */
  mayMove(seat: Seat): boolean {
    if (!this.#isStatestoreUp || !seat.canExchange) return false;
    return this.#hasMoreFor(seat) || (seat.queued > 0 && !seat.isSettled);
  }

  exchange(seat: Seat, now: Micros): void {
    const { effects } = this.#o;
    seat.exchange = NO_EVENT;
    this.#exchangeAt(seat, now);
    if (seat.queued > 0 && this.#mayMove(seat)) {
      effects.wake(seat);
      this.arm(seat, now);
    } else if (this.#hasMoreFor(seat)) {
      // A membership acts when it comes, on what runs: nobody need look for that.
      const isNewMembership = seat.clusterVersion !== this.#o.cluster.version;
      if (this.#isEager || seat.queued > 0 || isNewMembership) this.arm(seat, now);
      else seat.isBehind = true;
    }
  }

  #exchangeAt(seat: Seat, now: Micros): void {
    const { topic, receiveLag, teller } = this.#o;
    seat.lastExchange = now - receiveLag;
    this.#tellOwnHost(seat, now);
    if (this.#hasReaders) this.#publish(seat, now);
    else seat.controller.refreshBackendUsage();
    this.#apply(seat, topic.updateFor(seat, seat.lastExchange, !teller.tellsAll), now);
    seat.isBehind = false;
  }

  /**
   * After a pass that moved nothing, and with nothing new since, another one would only count a failure more;
   * and mark its pool, which others would notice (T-35).
   */
  #mayMove(seat: Seat): boolean {
    return !seat.isSettled || this.#isEager;
  }

  #hasMoreFor(seat: Seat): boolean {
    const { topic } = this.#o;
    if (seat.clusterVersion !== this.#o.cluster.version) return true;
    return (this.#reservationsMatter && topic.isMoving) || topic.hasNewsFor(seat) || this.#hasOwnNews(seat);
  }

  #publish(seat: Seat, now: Micros): void {
    const entries = seat.controller.collectUpdate();
    if (entries.length === 0) return;
    const { topic, seats } = this.#o;
    topic.publish(seat.address, entries, now);
    for (const other of seats) if (other !== seat) this.arm(other, now);
  }

  #apply(seat: Seat, update: TopicUpdate, now: Micros): void {
    const { cluster, effects, teller } = this.#o;
    // What has changed since the exchange began comes with the next one.
    const isNew = seat.clusterVersion !== cluster.version && cluster.changedAt <= seat.lastExchange;
    if (isNew && !seat.recovery.holds(toInstant(now))) {
      const membership = seat.takeMembers(cluster.known, cluster.version, toInstant(now));
      seat.isSettled = false;
      effects.membershipChanged(seat, (seat.service ?? seat.controller).setMembership(membership), now);
    }
    if (update !== NOTHING_NEW) seat.isSettled = false;
    seat.controller.applyUpdate(update, toInstant(now));
    seat.heardAt = now;
    seat.sequence++;
    if (teller.tellsAll) teller.topicApplied(seat, now);
  }

  #hasOwnNews(seat: Seat): boolean {
    const { topic, hosts } = this.#o;
    return this.#reservationsMatter && seat.subscriber < hosts && topic.hasOwnNews(seat.subscriber);
  }

  /** 7.3: what the trackers of the controller's own host say. */
  #tellOwnHost(seat: Seat, now: Micros): void {
    const { topic, poolNames, hosts } = this.#o;
    const host = seat.subscriber;
    if (host >= hosts) return;
    for (let pool = 0; pool < poolNames.size; pool++) {
      const held = topic.ownReserved(host, pool, now);
      if (held === (seat.told[pool] ?? 0)) continue;
      seat.told[pool] = held;
      seat.isSettled = false;
      seat.controller.setBackendUsage(poolNames.nameOf(pool), usageOf(held));
    }
  }

  /**
   * Makes good, for a controller about to look, what exchanges before this instant would have done: what they
   * would have brought, and a fresh view (7.6). The last one is enough, as nobody looked in between.
   */
  catchUp(seat: Seat, now: Micros): void {
    // An exchange of this very instant comes last in it.
    if (this.#isOutOfDate(seat, now)) this.#catchUpTo(seat, now - 1);
  }

  /** The same before a pass: its instant has nothing else to do, so an exchange of it has been. */
  catchUpForPass(seat: Seat, now: Micros): void {
    if (this.#isOutOfDate(seat, now)) this.#catchUpTo(seat, now);
  }

  /**
   * Before a fault changes the topic: what was there until now can't be told later, to a controller that will be
   * behind only because of the fault either.
   */
  catchUpAll(now: Micros): void {
    if (!this.#isEager) for (const seat of this.#o.seats) this.#takePlace(seat, now - 1);
  }

  #isOutOfDate(seat: Seat, now: Micros): boolean {
    return seat.isBehind || now - seat.heardAt >= this.#staleAfter;
  }

  /** hot: bench/simulate */
  #catchUpTo(seat: Seat, until: Micros): void {
    if (seat.isBehind) {
      this.#takePlace(seat, until);
      return;
    }
    const start = this.#leftOut(seat, until);
    if (start === NOT_LEFT_OUT) return;
    seat.lastExchange = start;
    seat.heardAt = start + this.#o.receiveLag;
    seat.controller.applyUpdate(NOTHING_NEW, toInstant(seat.heardAt));
  }

  /** The seat's last exchange up to `until`, if it was left out. */
  #takePlace(seat: Seat, until: Micros): void {
    const start = this.#leftOut(seat, until);
    if (start === NOT_LEFT_OUT) return;
    this.#exchangeAt(seat, start + this.#o.receiveLag);
    seat.isBehind = this.#hasMoreFor(seat);
  }

  /** Start of the seat's last exchange up to `until`, if it has not taken place. */
  #leftOut(seat: Seat, until: Micros): Micros {
    if (!seat.canExchange || !this.#isStatestoreUp) return NOT_LEFT_OUT;
    const start = this.#o.grid.atOrBefore(seat.subscriber, until - this.#o.receiveLag);
    return start <= seat.lastExchange || start < seat.connectedSince ? NOT_LEFT_OUT : start;
  }

  /**
   * How old the oldest is of what the seat knows of the others: since they collected it. Exchanges that were left out,
   * as they bring nothing, count; -1: it never heard.
   */
  viewAge(seat: Seat, now: Micros): Micros {
    const { receiveLag, publishLag, seats } = this.#o;
    const heard = this.#lastStart(seat, now - receiveLag - 1);
    if (heard < 0) return -1;
    let oldest = now;
    for (const other of seats)
      if (other !== seat && other.isAlive) oldest = Math.min(oldest, this.#lastStart(other, heard - publishLag));
    return now - Math.max(0, oldest);
  }

  /** Start of the seat's last exchange up to `by`. */
  #lastStart(seat: Seat, by: Micros): Micros {
    const last = Math.min(seat.lastExchange, by);
    if (!seat.canExchange || !this.#isStatestoreUp) return seat.lastExchange;
    const start = this.#o.grid.atOrBefore(seat.subscriber, by);
    return start < seat.connectedSince ? last : Math.max(last, start);
  }

  // Faults

  /** Nobody reaches the statestore any more, from after this instant. */
  stopStatestore(now: Micros): void {
    const { seats, topic } = this.#o;
    for (const seat of seats) this.leave(seat, now);
    this.#isStatestoreUp = false;
    topic.stop(now);
  }

  /** It knows nothing; whoever is there registers again and gets full updates. */
  startStatestore(now: Micros): void {
    const { seats, topic } = this.#o;
    this.#isStatestoreUp = true;
    topic.restart(now);
    for (const seat of seats) {
      if (!seat.canExchange) continue;
      seat.recovery.reconnected(toInstant(now));
      this.join(seat, now);
    }
  }

  /** The seat's exchanges end here: it died, or it was cut off. */
  leave(seat: Seat, now: Micros): void {
    // Its view ages from its last exchange, not from the last one that was worth simulating.
    this.#takePlace(seat, now - 1);
    seat.isBehind = false;
    this.#disarm(seat);
  }

  /** It registers, for the first time or again. */
  join(seat: Seat, now: Micros): void {
    if (!this.#isStatestoreUp) return;
    this.#o.topic.register(seat);
    seat.connectedSince = now;
    this.arm(seat, now);
  }

  #disarm(seat: Seat): void {
    if (seat.exchange !== NO_EVENT) this.#o.events.remove(seat.exchange);
    seat.exchange = NO_EVENT;
  }
}

const usageOf = (bytes: number): BackendUsage => ({
  memReserved: bytes as Bytes,
  memUsage: bytes as Bytes,
  heavyQueries: NO_USAGE.heavyQueries,
  minMemConsumed: 0 as Bytes,
  maxMemConsumed: 0 as Bytes,
  totalMemConsumed: bytes as Bytes,
  numRunning: 0,
});
