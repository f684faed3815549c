/**
 * One coordinator with the queries that go through it: asks its admission control, starts the instances on every host
 * of the schedule, gives hosts back as they are done (admission 9.1), then the query.
 *
 * Runs on the main thread and never waits there: decisions are its desk's, which may be on a thread of its own, work is
 * the fleet's, and both come back as calls. An answer counts from the moment it is heard: until then nothing runs.
 *
 * Must keep: every query ends exactly once, with its ending told to the workload; a query's hosts are given back only
 * when its instances there have ended, whatever became of them.
 */
import { memoryOption } from "../config/request-shape.ts";
import type { QueryClass, Use } from "../config/scenario.ts";
import { hostNameOf } from "../config/scenario-cluster.ts";
import { BackendRelease, type ReleaseTiming } from "../core/admission/backend-release.ts";
import { rejectionError, timeoutError } from "../core/admission/reasons.ts";
import { fail, invariant } from "../core/assert.ts";
import type { Membership } from "../core/cluster/membership.ts";
import type { EventOf, RunEvent } from "../core/events.ts";
import { reservationLimitFor } from "../core/memory/reservation-limit.ts";
import { queryIdParts } from "../core/memory/tracker-records.ts";
import type { PoolConfig } from "../core/pool-config.ts";
import type { TopicEntry, TopicUpdate } from "../core/statestore/topic.ts";
import type { Bytes, Instant, Millis } from "../core/units.ts";
import { footprintMinimum } from "../workload/footprint-minimum.ts";
import type { Ending, Submission } from "../workload/workload.ts";
import type { Admission, AdmissionDesk, Answer, Place, PoolUsage } from "./admission-desk.ts";
import type { OwnView } from "./cluster-view.ts";
import type { Fleet } from "./fleet.ts";
import { LiveQuery } from "./live-query.ts";
import { CANCELLED_CODE, type FragmentOrder, HOST_LOST_CODE, type Progress, type QueryOrder } from "./protocol.ts";
import type { Timers } from "./timers.ts";

/** What a coordinator has of the run around it. */
export interface CoordinatorSurroundings {
  readonly fleet: Fleet;
  readonly timers: Timers;
  readonly classes: readonly QueryClass[];
  readonly releaseTiming: ReleaseTiming;
  now(): Instant;
  emit(event: RunEvent): void;
  /** A number for the pool in the ledgers. */
  poolNumber(name: string): number;
  configOf(pool: string): PoolConfig;
  readonly rootConfig: () => PoolConfig;
  hostNumber(address: string): number;
  /** The query is over. */
  ended(query: LiveQuery, how: Ending, at: Instant): void;
  /** Its instances report here from now on. */
  route(task: number, coordinator: Coordinator, query: LiveQuery): void;
  /** A fault: this release message of the coordinator does not arrive. */
  losesRelease(coordinator: string): boolean;
  /** Real microseconds from a query's submission to a fragment's claimed minimum. */
  noteStart(query: LiveQuery, at: Instant): void;
}

/** `--admission_heartbeat_frequency_ms`. */
const HEARTBEAT = 1000;

/** With more hosts than this, instances tell only where a growth begins and ends. */
const WIDE = 32;

/** Opens the admission control of a new process; `hear` is told its answers, until it is closed. */
export type OpenDesk = (hear: (answer: Answer) => void) => AdmissionDesk;

/** What goes out at an exchange with the statestore. */
type Exchanged = (entries: readonly TopicEntry[], at: Instant) => void;

export class Coordinator {
  readonly address: string;
  readonly view: OwnView;
  readonly #openDesk: OpenDesk;
  readonly #around: CoordinatorSurroundings;
  readonly #queries = new Map<string, LiveQuery>();
  #desk: AdmissionDesk;
  /** What the desk was told last. */
  #membership: Membership | null = null;
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
    this.#tellSubmitted(q);
    if (submission.unresolved !== null) {
      this.#emit({ kind: "unresolved", at: now, query: q.id, error: submission.unresolved });
      this.#end(q, "unresolved", now);
      return;
    }
    this.#tellMembership(now);
    const { configOf, rootConfig } = this.#around;
    this.#desk.submit(submission, configOf(submission.pool), rootConfig());
  }

  // Answers

  #hear(controller: string, answer: Answer): void {
    switch (answer.kind) {
      case "called":
        this.#emit({ kind: "controllerCall", at: this.#around.now(), controller, now: answer.now, call: answer.call });
        break;
      case "exchanged":
        this.#exchanges.shift()?.(answer.entries, this.#around.now());
        break;
      case "admission":
        this.#admitted(this.#waiting(answer.event.query), answer);
        break;
      default:
        this.#notAdmitted(this.#waiting(answer.query), answer);
    }
  }

  #waiting(query: string): LiveQuery {
    return this.#queries.get(query) ?? fail("an answer is about a query of this coordinator");
  }

  #notAdmitted(q: LiveQuery, event: EventOf<"queued" | "stillQueued" | "rejected" | "timedOut" | "cancelled">): void {
    this.#emit(event);
    const { pool } = q.submission;
    switch (event.kind) {
      case "queued":
        q.state = "queued";
        q.queuedAt = event.at;
        this.#armCancel(q);
        break;
      case "stillQueued":
        break;
      case "rejected":
        q.error = rejectionError(pool, event.reason);
        this.#end(q, "rejected", event.at);
        break;
      case "timedOut":
        q.error = timeoutError(event.timeout, pool, event.reason, event.details);
        this.#end(q, "timedOut", event.at);
        break;
      default:
        this.#end(q, "cancelled", event.at);
    }
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

  #admitted(q: LiveQuery, { event, backends }: Admission): void {
    q.wasQueued = q.state === "queued";
    q.state = "running";
    q.places = backends;
    this.#emit(event);
    const coordinatorAt = backends.findIndex((b) => b.isCoordBackend);
    q.releasing = new BackendRelease(backends.length, coordinatorAt, event.at, this.#around.releaseTiming);
    if (q.isGivenUp) this.#endUnstarted(q, event.at);
    else {
      this.#armCancel(q);
      this.#start(q, event.at);
    }
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
      this.#around.timers.at((now + submission.duration) as Instant, (at) => this.#allEnded(q, at));
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
        this.#emit({ kind: "fragmentStarted", ...at });
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
    this.#emit({ kind: "fragmentFinished", ...at, peak, spilled, error: p.error?.text ?? null });
    if (p.error !== null && p.error.code !== CANCELLED_CODE) this.#instanceFailed(q, p.error.code, p.error.text, at);
    if (q.open.size === 0) this.#allEnded(q, at.at);
    else if (q.openAt[position] === 0) this.#hostDone(q, position, at.at);
  }

  /** F8: the query has failed; every other host is told to stop. */
  #instanceFailed(q: LiveQuery, code: number, text: string, at: { at: Instant; host: string }): void {
    if (code === HOST_LOST_CODE) this.view.avoid(at.host, at.at);
    this.#stopRunning(q, "failed", text);
  }

  #stopRunning(q: LiveQuery, outcome: "failed" | "cancelled", why: string): void {
    if (q.state !== "running") return;
    q.state = "ending";
    q.outcome = outcome;
    q.error = why;
    if (q.open.size > 0) this.#around.fleet.cancel([...q.open.keys()]);
  }

  /** 9.1. The coordinator's own host is done only with the query. */
  #hostDone(q: LiveQuery, position: number, now: Instant): void {
    if (q.places[position]!.isCoordBackend) return;
    const due = q.releasing!.finished(position, now);
    if (due.length > 0) {
      q.releasing!.released(due);
      this.#giveBack(q, due, now);
    }
  }

  #giveBack(q: LiveQuery, positions: readonly number[], now: Instant): void {
    if (!this.#around.losesRelease(this.address)) q.desk.releaseBackends(q.id, positions);
    const hosts = positions.map((i) => q.places[i]!.host);
    this.#emit({ kind: "backendsReleased", at: now, query: q.id, hosts });
  }

  /** The rest of its hosts in one call, then its place in the pool (9.3). */
  #allEnded(q: LiveQuery, now: Instant): void {
    if (q.state === "over") return;
    invariant(q.open.size === 0, "a query ends with its last instance");
    const rest = q.releasing!.close();
    if (rest.length > 0) this.#giveBack(q, rest, now);
    const { outcome, peak } = q;
    this.#releaseQuery(q, peak);
    const error = outcome === "failed" ? q.error : null;
    this.#emit({ kind: "released", at: now, query: q.id, state: outcome, peak, error });
    this.#end(q, outcome, now);
  }

  /** A lost message is made up for by the next heartbeat, which does not name the query any more (9.5). */
  #releaseQuery({ id, desk }: LiveQuery, peak: number): void {
    const { losesRelease, timers, now } = this.#around;
    if (!losesRelease(this.address)) desk.releaseQuery(id, peak);
    else timers.at((now() + HEARTBEAT) as Instant, () => desk.releaseQuery(id, -1));
  }

  #end(q: LiveQuery, how: Ending, now: Instant): void {
    invariant(q.state !== "over", "a query ends once");
    q.state = "over";
    this.#around.timers.cancel(q.cancel);
    this.#queries.delete(q.id);
    this.#around.ended(q, how, now);
  }

  // The cluster

  #tellMembership(now: Instant): void {
    const membership = this.view.at(now);
    if (membership !== this.#membership) this.#desk.setMembership(membership);
    this.#membership = membership;
  }

  /** One exchange with the statestore; a dead process has nothing to say. */
  exchange(usages: readonly PoolUsage[], update: TopicUpdate, now: Instant, then: Exchanged): void {
    if (!this.isAlive) {
      then([], now);
      return;
    }
    this.#tellMembership(now);
    this.#exchanges.push(then);
    this.#desk.exchange(usages, update);
  }

  /** The process dies: its queue with it, and its running queries are stopped (admission 9.5). */
  die(now: Instant, why: string): void {
    this.isAlive = false;
    this.#desk.close();
    this.#exchanges = [];
    for (const q of [...this.#queries.values()])
      if (q.state === "submitted" || q.state === "queued") this.#lostWaiting(q, why, now);
      else this.#stopRunning(q, "failed", why);
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
    this.#desk = this.#newDesk();
    this.#membership = null;
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
    scratchLimit: scratchLimitOf(queryClass),
    spillable: uses.kind === "footprint" ? uses.spillable : queryClass.options.DISABLE_UNSAFE_SPILLS !== "true",
    operators: uses.kind === "operators" ? uses.operators : null,
    seed: submission.sequence,
    profile: uses.kind === "footprint" ? uses.profile : "flat",
    tellsSteps,
    admittedAt,
    duration: submission.duration,
  };
}

/** S7: -1 is no limit, and so is a text that says nothing. */
function scratchLimitOf({ options }: QueryClass): number {
  return options.SCRATCH_LIMIT === undefined ? -1 : (memoryOption(options.SCRATCH_LIMIT) ?? -1);
}
