/**
 * Executors in virtual time: what admitted queries hold on each host, and when they are done there.
 *
 * One query has one pending event: the next moment at which it is done on some of its hosts. All of them at
 * once is the usual case and costs no array; skew, spilling and failures make it a list of points. Work is
 * counted in microseconds of an undisturbed host, so that hosts with more running instances than cores can
 * slow a query down (`model.cores`): its rate is that of its slowest host, min(1, cores / instances).
 *
 * Must keep: what is reserved on a host for a query is given back exactly once (`holding`).
 */
import type { ModelSpec, QueryClass } from "../config/scenario.ts";
import { reservationLimitFor } from "../core/memory/reservation-limit.ts";
import type { Xoshiro128 } from "../core/random.ts";
import { footprintMinimum } from "../workload/footprint-minimum.ts";
import type { Submission } from "../workload/workload.ts";
import { type EventQueue, type Micros, NO_EVENT, toMicros } from "./event-queue.ts";
import { failureText } from "./failure-text.ts";
import { HostBuffers } from "./host-buffers.ts";
import { HostScratch } from "./host-scratch.ts";
import type { RequestQueueTopic } from "./request-queue-topic.ts";
import { type Holder, roomAhead } from "./room-ahead.ts";
import { isLimited, reservedAt, type SimQuery } from "./sim-query.ts";
import {
  type HostWork,
  hostWork,
  hostWorkWithRefusals,
  hostWorkWithScratch,
  skewOf,
  throwRefusals,
  type WorkRoom,
  type WorkWanted,
} from "./work.ts";

/** From the start of the work: at `work`, it is done at these schedule positions. */
export interface WorkPoint {
  readonly work: Micros;
  readonly positions: readonly number[];
  /** Not null: the query fails there. */
  readonly error: string | null;
  /** Where hosts begin and cease to hold memory for it, if not with the query and with `positions`. */
  readonly opens: readonly number[];
  readonly closes: readonly number[];
}

const NOWHERE: readonly number[] = [];
const WITH_THE_QUERY = { opens: NOWHERE, closes: NOWHERE };

/**
 * What a query took in a run that was measured, in place of the nominal model (insight 7.2). Microseconds from when
 * it began to run.
 */
export interface MeasuredWork {
  /** Until its last host is done. */
  readonly hold: Micros;
  /** By schedule position; NaN: not done before the query's end. */
  readonly takes: Float64Array;
  /** It fails at the end of `hold`. */
  readonly fails: boolean;
  /** By schedule position, what its host told the statestore; NaN, or null: its limit, or its peak. */
  readonly reserves: Float64Array | null;
  /** Its hosts were given back by more than one call, also where all were done in one instant (9.1). */
  readonly isReleasedInParts: boolean;
  /** Messages of its release that got lost; null: chance decides. */
  readonly lost: LostReleases | null;
  /**
   * By schedule position, when its host began and ceased to hold memory for it: what the statestore is told can be
   * ahead of and behind what the coordinator knows. Null: with the query, and when it was done there.
   */
  readonly books: { readonly opened: Float64Array; readonly closed: Float64Array } | null;
}

export interface LostReleases {
  /** Schedule positions whose message of their own got lost. */
  readonly positions: ReadonlySet<number>;
  /** The one for all that was left. */
  readonly isLastLost: boolean;
}

/** Null: nothing was measured, the nominal model counts. */
export type MeasuredWorkOf = (submission: Submission) => MeasuredWork | null;

export interface ExecutorsOptions {
  readonly classes: readonly QueryClass[];
  readonly model: ModelSpec;
  readonly addresses: readonly string[];
  /** By host number: what queries may take of it. */
  readonly processLimits: readonly number[];
  /** Bytes of scratch by host number, Infinity: no limit. */
  readonly scratchLimits: readonly number[];
  readonly events: EventQueue;
  /** Kind of the event that calls `workDone`; operand a is the query's slot. */
  readonly eventKind: number;
  readonly topic: RequestQueueTopic;
  /** All of the run, by slot; only those that run are looked at. */
  readonly queries: readonly SimQuery[];
  readonly dice: Xoshiro128;
  readonly measured: MeasuredWorkOf | null;
}

/** What a query fails with whose end was measured. */
const MEASURED_FAILURE = "Memory limit exceeded";

export class Executors {
  readonly #classes: readonly QueryClass[];
  readonly #model: ModelSpec;
  readonly #events: EventQueue;
  readonly #eventKind: number;
  readonly #topic: RequestQueueTopic;
  readonly #queries: readonly SimQuery[];
  readonly #processLimits: readonly number[];
  readonly #leastProcessLimit: number;
  readonly #addresses: readonly string[];
  /** Null: no host's scratch has a limit. */
  readonly #scratch: HostScratch | null;
  readonly #skews: readonly (Float64Array | null)[];
  readonly #cores: number | null;
  /** Running instances by host; kept only when cores count. */
  readonly #load: Float64Array;
  /** Running queries, when cores count: whose rate may change. */
  readonly #sharing = new Set<SimQuery>();
  readonly #dice: Xoshiro128;
  readonly #measured: MeasuredWorkOf | null;
  /** Reservations are kept; not so where nobody looks at them. */
  #isTracking = false;
  /** Null: no host can refuse what admission let in. */
  #buffers: HostBuffers | null = null;
  #refusal: { readonly chance: number; readonly host: number; readonly queryClass: number | null } | null = null;

  constructor(options: ExecutorsOptions) {
    this.#classes = options.classes;
    this.#model = options.model;
    this.#events = options.events;
    this.#eventKind = options.eventKind;
    this.#topic = options.topic;
    this.#queries = options.queries;
    this.#processLimits = options.processLimits;
    this.#leastProcessLimit = Math.min(...options.processLimits);
    this.#addresses = options.addresses;
    this.#scratch = options.scratchLimits.some(Number.isFinite) ? new HostScratch(options.scratchLimits) : null;
    this.#skews = options.classes.map((c) => skewOf(c, options.addresses));
    this.#cores = options.model.cores;
    this.#load = new Float64Array(options.addresses.length);
    this.#dice = options.dice;
    this.#measured = options.measured;
  }

  /** From now on somebody asks what hosts have reserved; `running` are those that hold something already. */
  track(running: Iterable<SimQuery>, now: Micros): void {
    if (this.#isTracking) return;
    this.#isTracking = true;
    for (const q of running)
      q.placement.hosts.forEach((host, i) => {
        if (this.#holds(q, i)) this.#topic.change(host, q.pool, reservedAt(q, i), now);
      });
  }

  /** From now on admission may let in more than a host has (see `HostBuffers`). */
  hostsMayRefuse(running: Iterable<SimQuery>): void {
    // What a measured query could not have was in what it did.
    if (this.#buffers !== null || this.#measured !== null) return;
    this.#buffers = new HostBuffers(this.#processLimits);
    for (const q of running)
      q.placement.hosts.forEach((host, i) => {
        if (q.placement.hasFootprint[i] === 1 && this.#holds(q, i)) this.#buffers!.take(host, grantOn(q, i));
      });
  }

  /** Reserved by footprints on a host, where that is kept; for checks. */
  buffersOn(host: number): number {
    return this.#buffers === null ? 0 : this.#buffers.inUseOn(host);
  }

  /** Scratch in use on a host, where that is kept; for checks. */
  scratchOn(host: number): number {
    return this.#scratch === null ? 0 : this.#scratch.inUseOn(host);
  }

  /** From now on each growth of a reservation is refused with this chance; host -1 and class null: everywhere. */
  refuse(chance: number, host: number, queryClass: number | null): void {
    this.#refusal = chance > 0 ? { chance, host, queryClass } : null;
  }

  /** Fragments start on every host of the schedule. */
  begin(q: SimQuery, now: Micros): void {
    this.#plan(q, now);
    q.progress = 0;
    q.progressAt = now;
    q.rate = 1;
    q.nextPoint = 0;
    this.#holdAll(q, now);
    if (this.#cores !== null) this.#join(q, now);
    this.#schedule(q);
  }

  /** Its event has come: the point it has reached, null: all is done. */
  workDone(q: SimQuery, now: Micros): WorkPoint | null {
    q.finish = NO_EVENT;
    if (q.points === null) {
      this.stop(q, now);
      return null;
    }
    const point = q.points[q.nextPoint++]!;
    q.progress = point.work;
    q.progressAt = now;
    for (const position of point.opens) this.#open(q, position, now);
    for (const position of point.closes) this.#giveBack(q, position, now);
    for (const position of point.positions) this.#giveBack(q, position, now);
    const isLast = q.nextPoint === q.points.length;
    if (isLast) this.#sharing.delete(q);
    if (this.#cores !== null) this.#retimeAll(now);
    if (!isLast) this.#schedule(q);
    return point;
  }

  /** Whatever still runs of it ends now. */
  stop(q: SimQuery, now: Micros): void {
    if (q.finish !== NO_EVENT) this.#events.remove(q.finish);
    q.finish = NO_EVENT;
    if (q.holding === null) this.#changeAll(q, -1, now);
    else for (let i = 0; i < q.holding.length; i++) this.#giveBack(q, i, now);
    q.isHoldingAll = false;
    if (this.#cores === null) return;
    this.#sharing.delete(q);
    this.#retimeAll(now);
  }

  /** True when the query has something on the host that is not done. */
  isOn(q: SimQuery, host: number): boolean {
    const at = q.placement.hosts.indexOf(host);
    return at >= 0 && this.#holds(q, at);
  }

  /** The host is gone, and with it what the query held there. The rest stays until somebody notices. */
  loseHost(q: SimQuery, host: number, now: Micros): void {
    this.#giveBack(q, q.placement.hosts.indexOf(host), now);
    q.lostHost = host;
    this.suspend(q);
  }

  /** It will not be done by itself any more: `stop` ends it. */
  suspend(q: SimQuery): void {
    if (q.finish !== NO_EVENT) this.#events.remove(q.finish);
    q.finish = NO_EVENT;
    this.#sharing.delete(q);
  }

  // What it will do

  /** The usual query fits under its limits everywhere, and everywhere it takes its duration. */
  #plan(q: SimQuery, now: Micros): void {
    const { submission, placement } = q;
    const { memLimit, coordinatorMemLimit } = q.admission.memory!;
    const { peak } = submission;
    q.reservedOnExecutor = memLimit > 0 ? memLimit : peak;
    const rootOnly = placement.hasFootprint[placement.coordinatorAt] === 0;
    q.reservedOnCoordinator = coordinatorMemLimit > 0 ? coordinatorMemLimit : rootOnly ? 0 : peak;
    q.work = toMicros(submission.duration);
    q.points = null;
    q.peak = peak;
    q.grants = null;
    q.reservations = null;
    const measured = this.#measured === null ? null : this.#measured(submission);
    if (measured !== null) {
      planMeasured(q, measured);
      if (measured.reserves !== null) q.reservations = reservationsOf(q, measured.reserves);
      return;
    }
    const fits = this.#fits(q, memLimit) && (rootOnly || this.#fits(q, coordinatorMemLimit)) && this.#hostsHave(q);
    if (!fits || this.#skews[q.queryClass] !== null || this.#refusal !== null) this.#planByHost(q, now);
    if (q.grants !== null) q.reservations = reservationsOf(q, q.grants);
  }

  /** On every host, whichever it is. hot: bench/simulate */
  #fits({ submission }: SimQuery, memLimit: number): boolean {
    const { bufferPoolLimit } = submission.shape.options;
    return submission.peak <= reservationLimitFor(memLimit, this.#leastProcessLimit, bufferPoolLimit);
  }

  #hostsHave(q: SimQuery): boolean {
    return this.#buffers === null || this.#buffers.haveRoom(q.placement, q.peak);
  }

  /** What its own limit lets the query reserve on a host. */
  #ownRoom({ submission }: SimQuery, host: number, limit: number): number {
    return reservationLimitFor(limit, this.#processLimits[host]!, submission.shape.options.bufferPoolLimit);
  }

  /**
   * Of it, what others leave there, `own` -1: any amount. Its minimum at least, if that is there when it starts (R16,
   * R17).
   */
  #roomOn(q: SimQuery, host: number, peak: number, own: number, minimum: number, now: Micros): WorkRoom {
    const wanted = own < 0 ? peak : Math.min(peak, own);
    if (this.#buffers === null || wanted <= this.#buffers.freeOn(host)) return { bytes: own, refused: null };
    const { uses } = this.#classes[q.queryClass]!;
    if (uses.kind !== "footprint") return { bytes: own, refused: null };
    const ahead = roomAhead(this.#buffers.limitOf(host), this.#holdersOn(host), {
      profile: uses.profile,
      peak,
      most: own < 0 ? Number.POSITIVE_INFINITY : own,
      since: now,
      duration: q.work,
    });
    if (ahead.atStart < minimum) return { bytes: 0, refused: { at: 0, holding: 0 } };
    return { bytes: Math.max(minimum, ahead.most), refused: ahead.refused };
  }

  #holdersOn(host: number): Holder[] {
    const holders: Holder[] = [];
    for (const q of this.#queries) {
      if (q.state !== "running") continue;
      const position = q.placement.hosts.indexOf(host);
      if (position < 0 || q.placement.hasFootprint[position] === 0 || !this.#holds(q, position)) continue;
      holders.push(this.#holder(q, host, position));
    }
    return holders;
  }

  /** Who will not end by himself holds what he has. */
  #holder(q: SimQuery, host: number, position: number): Holder {
    const { uses } = this.#classes[q.queryClass]!;
    const most = grantOn(q, position);
    const peak = Math.round(q.submission.peak * (this.#skews[q.queryClass]?.[host] ?? 1));
    if (uses.kind !== "footprint" || q.finish === NO_EVENT)
      return {
        profile: "flat",
        peak: most,
        most,
        asks: most,
        since: q.progressAt,
        duration: 0,
        until: Number.POSITIVE_INFINITY,
      };
    const { memLimit, coordinatorMemLimit } = q.admission.memory!;
    const own = this.#ownRoom(q, host, position === q.placement.coordinatorAt ? coordinatorMemLimit : memLimit);
    const asks = own < 0 ? peak : Math.min(peak, own);
    const since = q.progressAt - q.progress / q.rate;
    const last = q.points === null ? q.work : q.points[q.points.length - 1]!.work;
    const duration = toMicros(q.submission.duration) / q.rate;
    return { profile: uses.profile, peak, most, asks, since, duration, until: since + last / q.rate };
  }

  /** The coordinator waits for all others: it is done when the last one is. */
  #planByHost(q: SimQuery, now: Micros): void {
    const { submission, placement } = q;
    const { memLimit, coordinatorMemLimit } = q.admission.memory!;
    const queryClass = this.#classes[q.queryClass]!;
    const skew = this.#skews[q.queryClass]!;
    const takes = new Map<Micros, number[]>();
    const spills = new Float64Array(placement.hosts.length);
    const grants = new Float64Array(placement.hosts.length);
    let last = q.work;
    let failure: Failure | null = null;
    q.peak = 0;
    for (let i = 0; i < spills.length; i++) {
      if (placement.hasFootprint[i] === 0) continue;
      const peak = Math.round(submission.peak * (skew === null ? 1 : skew[placement.hosts[i]!]!));
      const host = placement.hosts[i]!;
      const limit = i === placement.coordinatorAt ? coordinatorMemLimit : memLimit;
      const own = this.#ownRoom(q, host, limit);
      const { minimums, working } = placement;
      const minimum = footprintMinimum(queryClass.uses, minimums[i]!, peak, own, working[i]!);
      const room = this.#roomOn(q, host, peak, own, minimum, now);
      const wanted = { peak, duration: q.work, spilled: submission.spilled };
      const undisturbed = hostWork(queryClass, this.#model, wanted, room);
      const work = this.#onScratch(q, host, wanted, this.#refused(q, i, minimum, undisturbed));
      spills[i] = work.spilled;
      grants[i] = work.peak;
      q.peak = Math.max(q.peak, work.peak);
      last = Math.max(last, work.takes);
      if (work.wants !== null && (failure === null || work.takes < failure.at))
        failure = { at: work.takes, error: this.#failureText(q, host, work) };
      if (i !== placement.coordinatorAt) addTo(takes, work.takes, i);
    }
    q.spills = spills;
    q.grants = grants;
    q.work = last;
    q.points = pointsOf(takes, placement.coordinatorAt, last, failure);
  }

  /** S7, S9: what it may write there. */
  #onScratch(q: SimQuery, host: number, wanted: WorkWanted, work: HostWork): HostWork {
    if (work.spilled === 0) return work;
    const { scratchLimit } = q.submission.execution;
    const free = this.#scratch === null ? Number.POSITIVE_INFINITY : this.#scratch.freeOn(host);
    return hostWorkWithScratch(work, this.#classes[q.queryClass]!, this.#model, wanted, scratchLimit, free);
  }

  #failureText(q: SimQuery, host: number, { wants, spilled }: HostWork): string {
    return failureText(wants!, this.#addresses[host]!, {
      limit: q.submission.execution.scratchLimit,
      ofQuery: spilled,
      onHost: this.scratchOn(host) + spilled,
    });
  }

  /** The debug action's dice (fault `refusals`). */
  #refused(q: SimQuery, position: number, minimum: number, work: HostWork): HostWork {
    const refusal = this.#refusal;
    const { hosts } = q.placement;
    if (refusal === null || (refusal.host >= 0 && refusal.host !== hosts[position])) return work;
    if (refusal.queryClass !== null && refusal.queryClass !== q.queryClass) return work;
    const queryClass = this.#classes[q.queryClass]!;
    const refused = throwRefusals(() => this.#dice.uniform() < refusal.chance);
    return hostWorkWithRefusals(work, queryClass, this.#model, minimum, refused);
  }

  // What it holds

  #holdAll(q: SimQuery, now: Micros): void {
    q.isHoldingAll = true;
    const opensLater = q.points !== null && q.points[0]!.opens.length > 0;
    q.holding = opensLater ? new Uint8Array(q.placement.hosts.length) : null;
    if (!opensLater) this.#changeAll(q, 1, now);
  }

  #changeAll(q: SimQuery, sign: 1 | -1, now: Micros): void {
    if (!q.isHoldingAll) return;
    const { placement } = q;
    if (this.#isTracking && q.reservations !== null) this.#changeEach(q, q.reservations, sign, now);
    else if (this.#isTracking)
      this.#topic.changeAll(placement, q.pool, sign * q.reservedOnExecutor, sign * q.reservedOnCoordinator, now);
    if (this.#buffers !== null) this.#takeBuffers(q, sign);
    if (this.#scratch !== null && q.spills !== null)
      for (let i = 0; i < q.spills.length; i++) this.#scratch.take(placement.hosts[i]!, sign * q.spills[i]!);
    if (this.#cores === null) return;
    placement.hosts.forEach((host, i) => {
      this.#load[host] = this.#load[host]! + sign * placement.instances[i]!;
    });
  }

  #changeEach({ placement, pool }: SimQuery, reservations: Float64Array, sign: 1 | -1, now: Micros): void {
    placement.hosts.forEach((host, i) => {
      if (placement.hasWork[i] === 1) this.#topic.change(host, pool, sign * reservations[i]!, now);
    });
  }

  #takeBuffers(q: SimQuery, sign: 1 | -1): void {
    const { hosts, hasFootprint } = q.placement;
    const buffers = this.#buffers!;
    for (let i = 0; i < hosts.length; i++) {
      if (hasFootprint[i] === 0) continue;
      buffers.take(hosts[i]!, sign * grantOn(q, i));
    }
  }

  #holds(q: SimQuery, position: number): boolean {
    return q.holding === null ? q.isHoldingAll && q.placement.hasWork[position] === 1 : q.holding[position] === 1;
  }

  /** Of a measured query: its host holds memory for it from now on. */
  #open(q: SimQuery, position: number, now: Micros): void {
    const { placement } = q;
    if (placement.hasWork[position] === 0) return;
    q.holding![position] = 1;
    const host = placement.hosts[position]!;
    if (this.#isTracking) this.#topic.change(host, q.pool, reservedAt(q, position), now);
    if (this.#cores !== null) this.#load[host] = this.#load[host]! + placement.instances[position]!;
  }

  #giveBack(q: SimQuery, position: number, now: Micros): void {
    if (!this.#holds(q, position)) return;
    const { placement } = q;
    q.holding ??= placement.hasWork.slice();
    q.holding[position] = 0;
    const host = placement.hosts[position]!;
    if (this.#isTracking) this.#topic.change(host, q.pool, -reservedAt(q, position), now);
    if (this.#buffers !== null && placement.hasFootprint[position] === 1)
      this.#buffers.take(host, -grantOn(q, position));
    if (this.#scratch !== null && q.spills !== null) this.#scratch.take(host, -q.spills[position]!);
    if (this.#cores !== null) this.#load[host] = this.#load[host]! - placement.instances[position]!;
  }

  // When it is done

  #schedule(q: SimQuery): void {
    const target = q.points === null ? q.work : q.points[q.nextPoint]!.work;
    // In whole microseconds it is done a little after it was; a slower rate since then must not count that back.
    const left = Math.max(0, target - q.progress) / q.rate;
    q.finish = this.#events.add(q.progressAt + Math.ceil(left), this.#eventKind, q.slot, 0);
  }

  #join(q: SimQuery, now: Micros): void {
    this.#sharing.add(q);
    this.#retimeAll(now);
  }

  /** Some host's load has changed: everybody's rate may have. Costs the number of running queries. */
  #retimeAll(now: Micros): void {
    for (const q of this.#sharing) {
      const rate = this.#rateOf(q);
      if (rate === q.rate) continue;
      q.progress += (now - q.progressAt) * q.rate;
      q.progressAt = now;
      q.rate = rate;
      if (q.finish === NO_EVENT) continue;
      this.#events.remove(q.finish);
      this.#schedule(q);
    }
  }

  /** A recorded hold has in it what others took of the cores, and takes it of those that are drawn. */
  #rateOf(q: SimQuery): number {
    if (this.#classes[q.queryClass]!.isRecorded) return 1;
    const { hosts } = q.placement;
    let rate = 1;
    for (let i = 0; i < hosts.length; i++) {
      if (!this.#holds(q, i)) continue;
      const share = this.#cores! / this.#load[hosts[i]!]!;
      if (share < rate) rate = share;
    }
    return rate;
  }
}

const grantOn = (q: SimQuery, position: number): number =>
  q.grants === null ? q.submission.peak : q.grants[position]!;

/**
 * By schedule position; `held`: what the query holds there, NaN where nobody knows. Null: all executors publish the same,
 * as those of a query with limits do.
 */
function reservationsOf(q: SimQuery, held: Float64Array): Float64Array | null {
  const known = Float64Array.from(q.placement.hosts, (_, i) => {
    const told = held[i] ?? Number.NaN;
    return isLimited(q, i) || Number.isNaN(told) ? reservedAt(q, i) : told;
  });
  return known.every((bytes, i) => bytes === reservedAt(q, i)) ? null : known;
}

/** All hosts done together is one event, as in the nominal model. */
function planMeasured(q: SimQuery, { hold, takes, fails, books, isReleasedInParts }: MeasuredWork): void {
  const { coordinatorAt } = q.placement;
  q.work = hold;
  const isTogether = !isReleasedInParts && takes.every((t, i) => i === coordinatorAt || t === hold);
  if (!fails && books === null && isTogether) return;
  const groups = new Map<Micros, number[]>();
  takes.forEach((t, i) => {
    if (i !== coordinatorAt && i < q.placement.hosts.length && !Number.isNaN(t)) addTo(groups, t, i);
  });
  const points = pointsOf(groups, coordinatorAt, hold, fails ? { at: hold, error: MEASURED_FAILURE } : null);
  q.points = books === null ? points : withBooks(points, books, q.placement.hosts.length);
}

/** Points of their own for what hosts hold, among those at which something is done. */
function withBooks(
  points: readonly WorkPoint[],
  { opened, closed }: NonNullable<MeasuredWork["books"]>,
  hosts: number,
): WorkPoint[] {
  const opens = new Map<Micros, number[]>();
  const closes = new Map<Micros, number[]>();
  for (let i = 0; i < hosts; i++) {
    addTo(opens, opened[i] ?? 0, i);
    addTo(closes, closed[i] ?? points.at(-1)!.work, i);
  }
  const done = new Map(points.map((p) => [p.work, p]));
  const works = [...new Set([...opens.keys(), ...closes.keys(), ...done.keys()])].sort((a, b) => a - b);
  return works.map((work) => ({
    ...(done.get(work) ?? { work, positions: NOWHERE, error: null }),
    opens: opens.get(work) ?? NOWHERE,
    closes: closes.get(work) ?? NOWHERE,
  }));
}

function addTo(groups: Map<Micros, number[]>, key: Micros, value: number): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, [value]);
  else group.push(value);
}

/** The first of a query's hosts that fails. */
interface Failure {
  readonly at: Micros;
  readonly error: string;
}

function pointsOf(
  takes: ReadonlyMap<Micros, readonly number[]>,
  coordinatorAt: number,
  last: Micros,
  failure: Failure | null,
): WorkPoint[] {
  const until = failure === null ? last : Math.min(last, failure.at);
  const points: WorkPoint[] = [...takes]
    .filter(([work]) => work < until)
    .map(([work, positions]) => ({ work, positions, error: null, ...WITH_THE_QUERY }));
  points.sort((a, b) => a.work - b.work);
  if (failure !== null)
    return [...points, { work: failure.at, positions: NOWHERE, error: failure.error, ...WITH_THE_QUERY }];
  // It collects what the others send: it is done after them, in the same instant too.
  const together = [...(takes.get(last) ?? []), coordinatorAt];
  return [...points, { work: last, positions: together, error: null, ...WITH_THE_QUERY }];
}
