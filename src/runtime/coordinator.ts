/**
 * One coordinator with the queries that go through it: asks its admission control, starts the instances on every host
 * of the schedule, gives hosts back as they are done (admission 9.1), then the query.
 *
 * Runs on the main thread and never waits there: decisions are its desk's, which may be on a thread of its own, work is
 * the fleet's, and both come back as calls. An answer counts from the moment it is heard: until then nothing runs.
 *
 * With `admissiond` what is decided and what is heard are two moments (admission 7.7), and a query that has ended for
 * its client may be held on to until a heartbeat or a membership tells that it is gone (9.5).
 *
 * Must keep: every query ends exactly once, with its ending told to the workload; a query's hosts are given back only
 * when its instances there have ended, whatever became of them.
 */
import type { QueryClass, Use } from "../config/scenario.ts";
import { hostNameOf } from "../config/scenario-cluster.ts";
import { BackendRelease, type ReleaseTiming } from "../core/admission/backend-release.ts";
import { rejectionError, timeoutError } from "../core/admission/reasons.ts";
import { fail, invariant } from "../core/assert.ts";
import { EMPTY_MEMBERSHIP } from "../core/cluster/membership.ts";
import type { EventOf, RunEvent } from "../core/events.ts";
import { reservationLimitFor } from "../core/memory/reservation-limit.ts";
import { queryIdParts } from "../core/memory/tracker-records.ts";
import type { PoolConfig } from "../core/pool-config.ts";
import type { TopicUpdate } from "../core/statestore/topic.ts";
import type { Bytes, Instant, Millis } from "../core/units.ts";
import { footprintMinimum } from "../workload/footprint-minimum.ts";
import type { Ending, Submission } from "../workload/workload.ts";
import type { Admission, AdmissionDesk, Decision, Place, PoolUsage, Told } from "./admission-desk.ts";
import type { OwnView } from "./cluster-view.ts";
import { type Fleet, unreachableText } from "./fleet.ts";
import { LiveQuery } from "./live-query.ts";
import { CANCELLED_CODE, type FragmentOrder, HOST_LOST_CODE, type Progress, type QueryOrder } from "./protocol.ts";
import type { Timers } from "./timers.ts";
import type { Exchanged, TopicReader } from "./topic-reader.ts";

/** What a coordinator has of the run around it. */
export interface CoordinatorSurroundings {
  readonly fleet: Pick<Fleet, "nextTask" | "startFragments" | "cancel" | "hold">;
  readonly timers: Pick<Timers, "at" | "cancel">;
  readonly classes: readonly QueryClass[];
  readonly releaseTiming: ReleaseTiming;
  now(): Instant;
  emit(event: RunEvent): void;
  /** A number for the pool in the ledgers. */
  poolNumber(name: string): number;
  configOf(pool: string): PoolConfig;
  readonly rootConfig: () => PoolConfig;
  hostNumber(address: string): number;
  /** The query is over for its client. */
  answered(query: LiveQuery, how: Ending, at: Instant): void;
  stands(query: LiveQuery, standing: Standing): void;
  /** Its instances report here from now on. */
  route(task: number, coordinator: Coordinator, query: LiveQuery): void;
  /** Real microseconds from a query's submission to a fragment's claimed minimum. */
  noteStart(query: LiveQuery, at: Instant): void;
}

/**
 * Whether a query keeps a run going. Abandoned: `admissiond` has it for a process that is gone; nobody waits for it,
 * nothing of it runs, and nothing may ever come of it (T-59).
 */
export type Standing = "underWay" | "abandoned" | "over";

/** With more hosts than this, instances tell only where a growth begins and ends. */
const WIDE = 32;

/** Opens the admission control of a new process. */
export type OpenDesk = (hear: (told: Told) => void) => AdmissionDesk;

export class Coordinator implements TopicReader {
  readonly address: string;
  readonly view: OwnView;
  readonly #openDesk: OpenDesk;
  readonly #around: CoordinatorSurroundings;
  readonly #queries = new Map<string, LiveQuery>();
  #desk: AdmissionDesk;
  /** What the desk was told last. */
  #membership = EMPTY_MEMBERSHIP;
  /** Who waits for the answer to an exchange, in the order in which they were begun. */
  #exchanges: Exchanged[] = [];
  isAlive = true;
  /** Processes started under the address. */
  #starts = 0;

  constructor(address: string, openDesk: OpenDesk, view: OwnView, around: CoordinatorSurroundings) {
    this.address = address;
    this.view = view;
    this.#openDesk = openDesk;
    this.#around = around;
    this.#desk = this.#newDesk();
  }

  /** Queries that have not ended. */
  get queries(): Iterable<LiveQuery> {
    return this.#queries.values();
  }

  // Submission

  submit(submission: Submission, now: Instant): void {
    const q = new LiveQuery(submission, this.#desk, now);
    this.#queries.set(q.id, q);
    this.#around.stands(q, "underWay");
    this.#tellSubmitted(q);
    const refused = submission.unresolved ?? (this.isAlive ? null : `Could not connect to ${this.address}`);
    if (refused !== null) {
      this.#emit({ kind: "unresolved", at: now, query: q.id, error: refused });
      this.#end(q, "unresolved", now);
      return;
    }
    this.#tellMembership(now);
    const { configOf, rootConfig } = this.#around;
    this.#desk.submit(submission, configOf(submission.pool), rootConfig());
  }

  // Answers

  #hear(controller: string, told: Told): void {
    switch (told.kind) {
      case "called":
        this.#emit({ kind: "controllerCall", at: this.#around.now(), controller, now: told.now, call: told.call });
        break;
      case "exchanged":
        this.#exchanges.shift()?.(told.entries, this.#around.now());
        break;
      case "decided":
        this.#decided(told.decision);
        break;
      case "heard":
        this.#take(told.decision, told.at);
        break;
      case "released":
        this.#releasedUnasked(this.#known(told.query), this.#around.now());
        break;
      default:
        this.#emit(eventOf(told));
        this.#take(told, eventOf(told).at);
    }
  }

  #known(query: string): LiveQuery {
    return this.#queries.get(query) ?? fail("an answer is about a query of this coordinator");
  }

  /** Acts on an answer. */
  #take(answer: Decision | Waiting, at: Instant): void {
    if (answer.kind === "admission") this.#admitted(this.#known(answer.event.query), answer, at);
    else this.#notAdmitted(this.#known(answer.query), answer, at);
  }

  #notAdmitted(q: LiveQuery, event: Waiting | EventOf<"rejected" | "cancelled">, at: Instant): void {
    const { pool } = q.submission;
    switch (event.kind) {
      case "queued":
        q.state = "queued";
        q.queuedAt = at;
        this.#armCancel(q);
        break;
      case "stillQueued":
        break;
      case "rejected":
        q.error = rejectionError(pool, event.reason);
        this.#end(q, "rejected", at);
        break;
      case "timedOut":
        q.error = timeoutError(event.timeout, pool, event.reason, event.details);
        this.#end(q, "timedOut", at);
        break;
      default:
        this.#end(q, "cancelled", at);
    }
  }

  /** By `admissiond`, about one that waited. */
  #decided(decision: Decision): void {
    const event = eventOf(decision);
    this.#emit(event);
    const q = this.#known(event.query);
    q.decision = decision;
    if (q.isOrphan) this.#leaveToAdmissiond(q, event.at);
  }

  // Giving up

  #armCancel(q: LiveQuery): void {
    const { cancelAt } = q.submission;
    if (q.cancel === null && Number.isFinite(cancelAt))
      q.cancel = this.#around.timers.at(cancelAt, () => this.cancel(q));
  }

  /** The client gives up, whatever the query is at. An admission that is on its way already comes too late for it. */
  cancel(q: LiveQuery): void {
    q.isGivenUp = true;
    if (q.state === "running") this.#stopRunning(q, "cancelled", "Cancelled");
    else this.leaveQueue(q);
  }

  /** Only if it waits: one that was admitted in the meantime may run. */
  leaveQueue(q: LiveQuery): void {
    if (q.state === "submitted" || q.state === "queued") q.desk.cancel(q.id);
  }

  // Running

  #admitted(q: LiveQuery, admission: Admission, at: Instant): void {
    q.wasQueued = q.state === "queued";
    q.state = "running";
    this.#place(q, admission);
    if (q.isGivenUp) this.#endUnstarted(q, at);
    else {
      this.#armCancel(q);
      this.#start(q, at);
    }
  }

  #place(q: LiveQuery, { event, backends }: Admission): void {
    const coordinatorAt = backends.findIndex((b) => b.isCoordBackend);
    q.admittedAt = event.at;
    q.places = backends;
    q.releasing = new BackendRelease(backends.length, coordinatorAt, event.at, this.#around.releaseTiming);
  }

  /** Its client gave up while the admission was on its way. */
  #endUnstarted(q: LiveQuery, now: Instant): void {
    q.state = "ending";
    q.outcome = "cancelled";
    q.error = "Cancelled";
    this.#allEnded(q, now);
  }

  #start(q: LiveQuery, now: Instant): void {
    const { fleet, classes, poolNumber, route } = this.#around;
    const { submission } = q;
    const queryClass = classes[submission.queryClass]!;
    const orders = ordersFor(q, queryClass.uses, this.#around);
    q.openAt = q.places.map(() => 0);
    for (const { task, position, order } of orders) {
      q.open.set(task, { position, instance: order.instance });
      q.openAt[position]!++;
      route(task, this, q);
    }
    if (orders.length === 0) {
      // Nothing runs anywhere: the query only takes its time.
      q.nextEnd = this.#around.timers.at((now + submission.duration) as Instant, (at) => this.#allEnded(q, at));
      return;
    }
    fleet.startFragments(
      queryOrder(q, queryClass, poolNumber(submission.pool), now, orders.length <= WIDE),
      orders.map((o) => o.order),
    );
  }

  /** What an instance of one of our queries tells. */
  progress(q: LiveQuery, p: Progress, now: Instant): void {
    const open = q.open.get(p.task);
    if (open === undefined) return;
    const { position, instance } = open;
    const { host } = q.places[position]!;
    const at = { at: now, query: q.id, host, instance };
    switch (p.kind) {
      case "started":
        this.#around.noteStart(q, p.at);
        this.#emit({ kind: "fragmentStarted", ...at, hostAt: p.at });
        break;
      case "reserved":
        this.#emit({ kind: "reserved", ...at, reservation: p.reservation, used: p.used });
        break;
      case "spilled":
        this.#emit({ kind: "spilled", ...at, bytes: p.bytes });
        break;
      case "finished":
        this.#instanceEnded(q, position, p, at);
        break;
      default:
        fail("an instance tells something unknown");
    }
  }

  #instanceEnded(
    q: LiveQuery,
    position: number,
    p: Extract<Progress, { kind: "finished" }>,
    at: { at: Instant; query: string; host: string; instance: number },
  ): void {
    q.open.delete(p.task);
    q.openAt[position]!--;
    q.peak = Math.max(q.peak, p.peakOnHost);
    const { peak, spilled } = p;
    this.#emit({ kind: "fragmentFinished", ...at, hostAt: p.at, peak, spilled, error: p.error?.text ?? null });
    if (p.error !== null && p.error.code !== CANCELLED_CODE) this.#instanceFailed(q, p.error.code, p.error.text, at);
    if (q.open.size === 0) this.#allEnded(q, at.at);
    else if (q.openAt[position] === 0) this.#hostDone(q, position, at.at);
  }

  /** F8: the query has failed; every other host is told to stop. */
  #instanceFailed(q: LiveQuery, code: number, text: string, at: { at: Instant; host: string }): void {
    if (code === HOST_LOST_CODE && !q.isOrphan) this.#avoid(at.host, at.at);
    this.#stopRunning(q, "failed", text);
  }

  #stopRunning(q: LiveQuery, outcome: "failed" | "cancelled", why: string): void {
    if (q.state !== "running") return;
    q.state = "ending";
    q.outcome = outcome;
    q.error = why;
    if (q.open.size > 0) this.#around.fleet.cancel([...q.open.keys()]);
    else this.#endsNow(q);
  }

  /** 6.1. Whoever waits is not sent there either. */
  #avoid(host: string, now: Instant): void {
    this.view.avoid(host, now);
    this.#tellMembership(now);
  }

  /** What still runs of it stands still, with all it holds, until somebody ends it. */
  #hang(q: LiveQuery): void {
    this.#around.timers.cancel(q.nextEnd);
    this.#around.fleet.hold([...q.open.keys()]);
  }

  /** Nothing of it runs anywhere: only the end of its time was waited for. */
  #endsNow(q: LiveQuery): void {
    if (q.nextEnd === null) return;
    this.#around.timers.cancel(q.nextEnd);
    q.nextEnd = this.#around.timers.at(this.#around.now(), (at) => this.#allEnded(q, at));
  }

  /** 9.1. The coordinator's own host is done only with the query. */
  #hostDone(q: LiveQuery, position: number, now: Instant): void {
    if (q.places[position]!.isCoordBackend) return;
    const due = q.releasing!.finished(position, now);
    if (due.length === 0) return;
    q.releasing!.released(due);
    if (q.desk.releaseBackends(q.id, due)) this.#tellBackends(q, due, now);
    else q.lost = [...q.lost, ...due];
  }

  /** The rest of its hosts in one call, then its place in the pool (9.3). */
  #allEnded(q: LiveQuery, now: Instant): void {
    if (q.state === "over") return;
    invariant(q.open.size === 0, "a query ends with its last instance");
    if (q.isReleased) {
      this.#end(q, q.outcome, now);
      return;
    }
    const rest = q.releasing!.close();
    const left = [...q.lost, ...rest];
    if (q.desk.release(q.id, rest, q.peak)) {
      // It has held its place until its controller was told, whatever else the batch had before it.
      const released = this.#around.now();
      this.#tellReleased(q, left, released);
      this.#end(q, q.outcome, released);
    } else {
      q.lost = left;
      q.state = "held";
      this.#answer(q, q.outcome, now);
      if (q.isOrphan) this.#around.stands(q, "abandoned");
    }
  }

  /** By `admissiond`: a heartbeat did not name it, or its coordinator is gone from the cluster (9.5). */
  #releasedUnasked(q: LiveQuery, now: Instant): void {
    const why = `The coordinator ${this.address} left the cluster`;
    if (q.state === "queued") this.#failUnheard(q, why);
    else this.#stopRunning(q, "failed", why);
    this.#tellReleased(q, [...q.lost, ...q.releasing!.close()], now);
    q.isReleased = true;
    if (q.open.size === 0) this.#end(q, q.outcome, now);
  }

  /** It was let in, and its coordinator will not hear of it any more. */
  #failUnheard(q: LiveQuery, why: string): void {
    invariant(q.decision?.kind === "admission", "only what was let in is given back");
    this.#place(q, q.decision);
    q.state = "ending";
    q.outcome = "failed";
    q.error = why;
  }

  #tellReleased(q: LiveQuery, positions: readonly number[], now: Instant): void {
    if (positions.length > 0) this.#tellBackends(q, positions, now);
    const { outcome, peak } = q;
    const error = outcome === "failed" ? q.error : null;
    this.#emit({ kind: "released", at: now, query: q.id, state: outcome, peak, error });
  }

  #tellBackends(q: LiveQuery, positions: readonly number[], now: Instant): void {
    const hosts = positions.map((i) => q.places[i]!.host);
    this.#emit({ kind: "backendsReleased", at: now, query: q.id, hosts });
  }

  #end(q: LiveQuery, how: Ending, now: Instant): void {
    invariant(q.state !== "over", "a query ends once");
    q.state = "over";
    this.#queries.delete(q.id);
    this.#answer(q, how, now);
    this.#around.stands(q, "over");
  }

  #answer(q: LiveQuery, how: Ending, now: Instant): void {
    if (q.isAnswered) return;
    q.isAnswered = true;
    this.#around.timers.cancel(q.cancel);
    this.#around.answered(q, how, now);
  }

  // The cluster

  #tellMembership(now: Instant): void {
    const membership = this.view.at(now);
    if (membership !== this.#membership) this.#desk.setMembership(membership);
    this.#membership = membership;
  }

  disconnected(): void {
    this.view.recovery.disconnected();
  }

  reconnected(now: Instant): void {
    this.view.recovery.reconnected(now);
  }

  rejoined(): void {
    this.view.recovery.rejoined();
  }

  /** One exchange with the statestore; a dead process has nothing to say. */
  exchange(usages: readonly PoolUsage[], update: TopicUpdate, now: Instant, then: Exchanged): void {
    if (!this.isAlive) {
      then([], now);
      return;
    }
    const isNews = this.view.hear(now);
    this.#tellMembership(now);
    if (isNews) this.failOnLostHosts();
    this.#exchanges.push(then);
    this.#desk.exchange(usages, update);
  }

  /** Executors end what they run for it: they don't know it any more. */
  endRunning(why: string): void {
    for (const q of [...this.#queries.values()]) this.#stopRunning(q, "failed", why);
  }

  /** The same for what a process before this one left running. */
  endOrphans(why: string): void {
    for (const q of [...this.#queries.values()]) if (q.isOrphan) this.#stopRunning(q, "failed", why);
  }

  /** A host has died, and nobody says so: what runs there hangs, and the rest of those queries with it (9.5). */
  hostDied(address: string): void {
    for (const q of this.#queries.values()) {
      const position = q.places.findIndex((p) => p.host === address);
      if (position < 0 || (q.openAt[position] ?? 0) === 0) continue;
      if (q.state === "running") {
        q.lostOn.push(address);
        this.#hang(q);
      } else {
        // It was told to stop, and will not answer that.
        this.#around.fleet.cancel([...q.open].filter(([, o]) => o.position === position).map(([task]) => task));
      }
    }
  }

  /** It has heard who is left: who has work on hosts that are not, or are other processes now, has lost it. */
  failOnLostHosts(): void {
    for (const q of [...this.#queries.values()]) {
      if (q.isOrphan || q.state !== "running") continue;
      const lost = this.#lostHostOf(q);
      if (lost !== null) this.#stopRunning(q, "failed", unreachableText(lost));
    }
  }

  #lostHostOf(q: LiveQuery): string | null {
    for (const host of q.lostOn) if (this.view.hasLost(host, q.admittedAt)) return host;
    const isLost = ({ host }: Place, position: number): boolean =>
      host !== this.address && (q.openAt[position] ?? 0) > 0 && this.view.hasLost(host, q.admittedAt);
    return q.places.find(isLost)?.host ?? null;
  }

  /** It hears of no membership, and misses the host's status reports all the same. */
  failUnreported(address: string): void {
    for (const q of [...this.#queries.values()])
      if (!q.isOrphan && q.lostOn.includes(address)) this.#stopRunning(q, "failed", `No status report from ${address}`);
  }

  /**
   * The process dies. Its queue dies with it, or, with `admissiond`, stays; what ran is held by the executors until
   * they hear (admission 9.5), and then, with `admissiond`, by that until it does.
   */
  die(now: Instant, why: string): void {
    this.isAlive = false;
    this.#desk.close();
    this.#exchanges = [];
    for (const q of [...this.#queries.values()]) {
      const waits = q.state === "submitted" || q.state === "queued";
      if (waits && !q.desk.outlivesProcess) this.#lostWaiting(q, why, now);
      else this.#orphan(q, why, now);
    }
  }

  #orphan(q: LiveQuery, why: string, now: Instant): void {
    if (q.isOrphan) return;
    q.isOrphan = true;
    this.#answer(q, "failed", now);
    if (q.state === "queued") {
      q.outcome = "failed";
      q.error = why;
      this.#leaveToAdmissiond(q, now);
    } else if (q.state === "held") this.#around.stands(q, "abandoned");
    else if (q.state === "running") {
      q.outcome = "failed";
      q.error = why;
      this.#hang(q);
    }
  }

  /** Nobody will hear of it. It may stand in the queue for ever; admitted, it is held until it is missed (9.5). */
  #leaveToAdmissiond(q: LiveQuery, now: Instant): void {
    if (q.decision !== null && q.decision.kind !== "admission") {
      this.#end(q, "failed", now);
      return;
    }
    if (q.decision !== null) {
      q.state = "held";
      this.#place(q, q.decision);
    }
    this.#around.stands(q, "abandoned");
  }

  #lostWaiting(q: LiveQuery, why: string, now: Instant): void {
    const wasQueued = q.state === "queued";
    const waited = (wasQueued ? now - q.queuedAt : 0) as Millis;
    q.error = why;
    this.#emit({ kind: "cancelled", at: now, query: q.id, waited, wasQueued });
    this.#end(q, "failed", now);
  }

  /** A new process in its place: it knows nothing of what was. */
  restart(): void {
    this.view.restart();
    this.#desk = this.#newDesk();
    this.#membership = EMPTY_MEMBERSHIP;
    this.isAlive = true;
  }

  #newDesk(): AdmissionDesk {
    this.#starts++;
    const controller = this.#starts === 1 ? this.address : `${this.address}#${this.#starts}`;
    return this.#openDesk((answer) => this.#hear(controller, answer));
  }

  #emit(event: RunEvent): void {
    this.#around.emit(event);
  }

  #tellSubmitted(q: LiveQuery): void {
    const s = q.submission;
    this.#emit({
      kind: "submitted",
      at: q.submittedAt,
      query: q.id,
      queryClass: this.#around.classes[s.queryClass]!.name,
      pool: s.pool,
      user: s.user,
      coordinator: s.coordinator,
      intended: s.intended,
      firstIntended: s.firstIntended,
      attempt: s.attempt,
      request: s.request,
    });
  }
}

/** What is told of a query that waits, or waited too long. */
type Waiting = EventOf<"queued" | "stillQueued" | "timedOut">;

const eventOf = (answer: Decision | Waiting): EventOf<"admitted" | "rejected" | "cancelled"> | Waiting =>
  answer.kind === "admission" ? answer.event : answer;

interface Placed {
  readonly task: number;
  readonly position: number;
  readonly order: Omit<FragmentOrder, "epoch">;
}

function ordersFor(q: LiveQuery, uses: Use, around: CoordinatorSurroundings): Placed[] {
  const placed: Placed[] = [];
  q.places.forEach((place, position) => {
    if (place.instances === 0) return;
    const { memLimit, collectsOnly } = place;
    const room = reservationLimitFor(memLimit, place.admitMemLimit, q.submission.shape.options.bufferPoolLimit);
    const peak = peakOn(place, q.submission.peak, uses);
    const siblings = uses.kind === "footprint" ? place.workingInstances : 1;
    const minReservation = footprintMinimum(uses, place.minReservation, peak, room, siblings) as Bytes;
    const onHost = { host: around.hostNumber(place.host), siblings, memLimit, minReservation };
    for (let i = 0; i < siblings; i++) {
      const task = around.fleet.nextTask();
      const order = {
        ...onHost,
        task,
        instance: placed.length + 1,
        claim: shareOf(minReservation, i, siblings),
        peak: shareOf(peak, i, siblings),
        hasOperators: !collectsOnly,
      };
      placed.push({ task, position, order });
    }
  });
  return placed;
}

/** Whole bytes that add up to `total`. */
const shareOf = (total: number, i: number, n: number): Bytes =>
  (Math.floor((total * (i + 1)) / n) - Math.floor((total * i) / n)) as Bytes;

function peakOn({ host, collectsOnly }: Place, peak: number, uses: Use): Bytes {
  if (uses.kind !== "footprint" || collectsOnly) return 0 as Bytes;
  const factor = uses.skew[host] ?? uses.skew[hostNameOf(host)] ?? 1;
  return Math.round(peak * factor) as Bytes;
}

function queryOrder(
  q: LiveQuery,
  queryClass: QueryClass,
  pool: number,
  admittedAt: Instant,
  tellsSteps: boolean,
): QueryOrder {
  const { submission } = q;
  const { uses } = queryClass;
  return {
    id: q.id,
    idParts: queryIdParts(q.id),
    pool,
    queryClass: submission.queryClass,
    bufferPoolLimit: submission.shape.options.bufferPoolLimit,
    scratchLimit: submission.execution.scratchLimit,
    spillable: uses.kind === "footprint" ? uses.spillable : !submission.execution.spillsDisabled,
    operators: submission.execution.operators,
    seed: submission.sequence,
    profile: uses.kind === "footprint" ? uses.profile : "flat",
    tellsSteps,
    admittedAt,
    duration: submission.duration,
  };
}
