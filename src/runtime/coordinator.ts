/**
 * One controller with the queries that go through it: submit, wait, start the instances on every host of the schedule,
 * give hosts back as they are done (admission 9.1), then the query, and let the next ones in.
 *
 * Runs on the main thread and never waits there: decisions are the core's, work is the fleet's, and both come back as
 * calls. A dequeue pass runs in the turn after the change that made it due, one for all changes of a turn, like the
 * product's dequeue thread that wakes once.
 *
 * Must keep: every query ends exactly once, with its ending told to the workload; a query's hosts are given back only
 * when its instances there have ended, whatever became of them.
 */
import { memoryOption } from "../config/request-shape.ts";
import type { QueryClass, Use } from "../config/scenario.ts";
import { hostNameOf } from "../config/scenario-cluster.ts";
import { BackendRelease, type ReleaseTiming } from "../core/admission/backend-release.ts";
import type { AdmissionController } from "../core/admission/controller.ts";
import type { ControllerOptions } from "../core/admission/controller-options.ts";
import type { DequeueSink } from "../core/admission/dequeue-pass.ts";
import type { MemoryToAdmit } from "../core/admission/memory-to-admit.ts";
import type { AdmissionQuery } from "../core/admission/query.ts";
import {
  admittedEvent,
  cancelledEvent,
  queuedEvent,
  rejectedEvent,
  stillQueuedEvent,
  timedOutEvent,
  timeoutReason,
} from "../core/admission/query-events.ts";
import { rejectionError, timeoutError } from "../core/admission/reasons.ts";
import { RecordedController } from "../core/admission/recorded-controller.ts";
import { fail, invariant } from "../core/assert.ts";
import type { Schedule, ScheduledBackend } from "../core/cluster/schedule.ts";
import type { AdmissionPath, RunEvent } from "../core/events.ts";
import { reservationLimitFor } from "../core/memory/reservation-limit.ts";
import { queryIdParts } from "../core/memory/tracker-records.ts";
import type { PoolConfig } from "../core/pool-config.ts";
import type { Bytes, Instant, MaxBytes } from "../core/units.ts";
import { footprintMinimum } from "../workload/footprint-minimum.ts";
import type { Ending, Submission } from "../workload/workload.ts";
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
  /** Runs `act` in a later turn; what it throws stops the run. */
  soon(act: () => void): void;
  /** Real microseconds from a query's submission to a fragment's claimed minimum. */
  noteStart(query: LiveQuery, at: Instant): void;
}

/** `--admission_heartbeat_frequency_ms`. */
const HEARTBEAT = 1000;

/** With more hosts than this, instances tell only where a growth begins and ends. */
const WIDE = 32;

export class Coordinator {
  readonly address: string;
  readonly view: OwnView;
  readonly #around: CoordinatorSurroundings;
  readonly #options: ControllerOptions;
  readonly #sink: DequeueSink;
  readonly #queries = new Set<LiveQuery>();
  controller: AdmissionController;
  isAlive = true;
  #passComes = false;
  /** Processes started under the address. */
  #starts = 0;

  constructor(options: ControllerOptions, view: OwnView, around: CoordinatorSurroundings) {
    this.address = options.hostId;
    this.view = view;
    this.#options = options;
    this.#around = around;
    this.controller = this.#newController();
    this.#sink = this.#sinkOfThis();
  }

  /** Queries that have not ended. */
  get queries(): ReadonlySet<LiveQuery> {
    return this.#queries;
  }

  // Submission

  submit(submission: Submission, now: Instant): void {
    const q = new LiveQuery(submission, this.controller, now);
    this.#queries.add(q);
    this.#tellSubmitted(q);
    if (submission.unresolved !== null) {
      this.#emit({ kind: "unresolved", at: now, query: q.id, error: submission.unresolved });
      this.#end(q, "unresolved", now);
      return;
    }
    this.refreshMembership(now);
    const { configOf, rootConfig } = this.#around;
    const admission = this.controller.submit(submission, configOf(submission.pool), rootConfig(), now);
    admission.owner = q;
    q.admission = admission;
    switch (admission.state) {
      case "running":
        this.#admitted(q, admission.path ?? fail("an admitted query has a path"), now);
        break;
      case "queued":
        this.#queued(q, admission, now);
        break;
      default:
        this.#rejected(q, false, now);
    }
    this.duePass();
  }

  #queued(q: LiveQuery, admission: AdmissionQuery, now: Instant): void {
    q.state = "queued";
    this.#emit(queuedEvent(admission, now));
    q.timeout = this.#around.timers.at(admission.deadline, (at) => this.#timeOut(q, at));
    this.#armCancel(q);
  }

  #armCancel(q: LiveQuery): void {
    const { cancelAt } = q.submission;
    if (q.cancel === null && Number.isFinite(cancelAt))
      q.cancel = this.#around.timers.at(cancelAt, (at) => this.cancel(q, at));
  }

  #rejected(q: LiveQuery, fromQueue: boolean, now: Instant): void {
    const admission = q.admission!;
    const reason = admission.rejectReason ?? fail("a rejected query has a reason");
    q.error = rejectionError(q.submission.pool, reason);
    this.#emit(rejectedEvent(admission, fromQueue, now));
    this.#end(q, "rejected", now);
  }

  // Waiting

  #timeOut(q: LiveQuery, now: Instant): void {
    if (q.state !== "queued") return;
    const admission = q.admission!;
    q.controller.timeOut(admission, now);
    if (admission.state !== "timedOut") {
      this.#takeOutcome(q, admission, now);
      return;
    }
    q.error = timeoutError(admission.timeout, q.submission.pool, timeoutReason(admission), admission.details);
    this.#emit(timedOutEvent(admission, now));
    this.#end(q, "timedOut", now);
    this.duePass();
  }

  /** Another outcome was faster than a time-out or a cancellation (T-8); the pass has told it already. */
  #takeOutcome(q: LiveQuery, admission: AdmissionQuery, now: Instant): void {
    if (admission.state === "cancelled" && q.state === "queued") this.#cancelledInQueue(q, admission, now);
  }

  /** The client gives up, whatever the query is at. */
  cancel(q: LiveQuery, now: Instant): void {
    if (q.state === "running") this.#stopRunning(q, "cancelled", "Cancelled");
    if (q.state !== "queued") return;
    const admission = q.admission!;
    q.controller.cancel(admission, now);
    this.#takeOutcome(q, admission, now);
    this.duePass();
  }

  #cancelledInQueue(q: LiveQuery, admission: AdmissionQuery, now: Instant): void {
    this.#emit(cancelledEvent(admission, true, now));
    this.#end(q, "cancelled", now);
  }

  // Dequeueing

  /** If the controller wants a pass, it comes in the next turn of the event loop. */
  duePass(): void {
    if (this.#passComes || !this.isAlive || !this.controller.isPassDue) return;
    this.#passComes = true;
    this.#around.soon(() => {
      this.#passComes = false;
      if (this.isAlive && this.controller.isPassDue) this.controller.dequeuePass(this.#around.now(), this.#sink);
      // What a pass starts may end at once, and what it could not take may fit now.
      this.duePass();
    });
  }

  #sinkOfThis(): DequeueSink {
    const queryOf = (a: AdmissionQuery): LiveQuery =>
      a.owner instanceof LiveQuery ? a.owner : fail("a queued query has its driver's record");
    return {
      admitted: (a) => {
        const q = queryOf(a);
        this.#cancelTimeout(q);
        this.#admitted(q, "fromQueue", this.#around.now());
      },
      rejected: (a) => this.#rejected(queryOf(a), true, this.#around.now()),
      cancelled: (a) => this.#cancelledInQueue(queryOf(a), a, this.#around.now()),
      stillQueued: (a) => this.#emit(stillQueuedEvent(a, this.#around.now())),
    };
  }

  // Running

  #admitted(q: LiveQuery, path: AdmissionPath, now: Instant): void {
    const admission = q.admission!;
    const { schedule } = admission.plan ?? fail("an admitted query has a plan");
    const memory = admission.memory ?? fail("an admitted query has its memory");
    q.state = "running";
    this.#emit(admittedEvent(admission, path, now));
    const coordinatorAt = schedule.backends.findIndex((b) => b.isCoordBackend);
    q.releasing = new BackendRelease(schedule.backends.length, coordinatorAt, now, this.#around.releaseTiming);
    this.#armCancel(q);
    this.#start(q, schedule, memory, now);
  }

  #start(q: LiveQuery, schedule: Schedule, memory: MemoryToAdmit, now: Instant): void {
    const { fleet, classes, poolNumber, route } = this.#around;
    const { submission } = q;
    const queryClass = classes[submission.queryClass]!;
    const orders = ordersFor(q, schedule, memory, queryClass.uses, this.#around);
    q.openAt = schedule.backends.map(() => 0);
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
    const host = q.admission!.plan!.schedule.hosts[position]!;
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
    const { schedule } = q.admission!.plan!;
    if (schedule.backends[position]!.isCoordBackend) return;
    const due = q.releasing!.finished(position, now);
    if (due.length > 0) {
      q.releasing!.released(due);
      this.#giveBack(q, due, now);
    }
  }

  #giveBack(q: LiveQuery, positions: readonly number[], now: Instant): void {
    if (!this.#around.losesRelease(this.address)) q.controller.releaseBackends(q.admission!, positions);
    const { hosts } = q.admission!.plan!.schedule;
    this.#emit({ kind: "backendsReleased", at: now, query: q.id, hosts: positions.map((i) => hosts[i]!) });
    this.duePass();
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
    this.duePass();
  }

  /** A lost message is made up for by the next heartbeat, which does not name the query any more (9.5). */
  #releaseQuery(q: LiveQuery, peak: number): void {
    const { controller, admission } = q;
    if (!this.#around.losesRelease(this.address)) controller.releaseQuery(admission!, peak);
    else
      this.#around.timers.at((this.#around.now() + HEARTBEAT) as Instant, () => {
        controller.releaseQuery(admission!, -1);
        this.duePass();
      });
  }

  #end(q: LiveQuery, how: Ending, now: Instant): void {
    invariant(q.state !== "over", "a query ends once");
    q.state = "over";
    this.#cancelTimeout(q);
    this.#around.timers.cancel(q.cancel);
    this.#queries.delete(q);
    this.#around.ended(q, how, now);
  }

  #cancelTimeout(q: LiveQuery): void {
    this.#around.timers.cancel(q.timeout);
    q.timeout = null;
  }

  // The cluster

  refreshMembership(now: Instant): void {
    const membership = this.view.at(now);
    if (membership !== this.controller.membership) this.controller.setMembership(membership);
  }

  /** The process dies: its queue with it, and its running queries are stopped (admission 9.5). */
  die(now: Instant, why: string): void {
    this.isAlive = false;
    for (const q of [...this.#queries]) {
      if (q.state === "queued") {
        q.error = why;
        this.#emit(cancelledEvent(q.admission!, true, now));
        this.#end(q, "failed", now);
      } else this.#stopRunning(q, "failed", why);
    }
  }

  /** A new process in its place: it knows nothing of what was. */
  restart(): void {
    this.controller = this.#newController();
    this.isAlive = true;
  }

  /** Writes down what it is asked, so that a live run can be gone through again in virtual time. */
  #newController(): AdmissionController {
    this.#starts++;
    const controller = this.#starts === 1 ? this.address : `${this.address}#${this.#starts}`;
    return new RecordedController(this.#options, (call, now) =>
      this.#emit({ kind: "controllerCall", at: this.#around.now(), controller, now, call }),
    );
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

function ordersFor(
  q: LiveQuery,
  schedule: Schedule,
  memory: MemoryToAdmit,
  uses: Use,
  around: CoordinatorSurroundings,
): Placed[] {
  const placed: Placed[] = [];
  schedule.backends.forEach((b, position) => {
    if (b.numInstances === 0) return;
    const memLimit = (b.isCoordBackend ? memory.coordinatorMemLimit : memory.memLimit) as MaxBytes;
    const room = reservationLimitFor(memLimit, b.desc.admitMemLimit, q.submission.shape.options.bufferPoolLimit);
    const peak = peakOn(b, schedule, q.submission.peak, uses);
    const siblings = uses.kind === "footprint" ? workingInstances(b, schedule) : 1;
    const minReservation = footprintMinimum(uses, b.minReservation, peak, room, siblings) as Bytes;
    const onHost = { host: around.hostNumber(b.desc.address), siblings, memLimit, minReservation };
    for (let i = 0; i < siblings; i++) {
      const task = around.fleet.nextTask();
      const order = {
        ...onHost,
        task,
        instance: placed.length + 1,
        claim: shareOf(minReservation, i, siblings),
        peak: shareOf(peak, i, siblings),
        hasOperators: !collectsOnly(b, schedule),
      };
      placed.push({ task, position, order });
    }
  });
  return placed;
}

/** Whole bytes that add up to `total`. */
const shareOf = (total: number, i: number, n: number): Bytes =>
  (Math.floor((total * (i + 1)) / n) - Math.floor((total * i) / n)) as Bytes;

/** One at least: the root fragment beside others on a host only collects rows, and counts as part of the first. */
function workingInstances(b: ScheduledBackend, schedule: Schedule): number {
  const beside = b.isCoordBackend && schedule.backends.length > 1 ? rootInstances(schedule) : 0;
  return Math.max(1, b.numInstances - beside);
}

/** The root fragment on a coordinator only collects rows; what the query uses is in the others. */
function collectsOnly(b: ScheduledBackend, schedule: Schedule): boolean {
  return b.isCoordBackend && schedule.backends.length > 1 && b.numInstances <= rootInstances(schedule);
}

const rootInstances = ({ shape }: Schedule): number =>
  shape.fragments.reduce((n, f) => n + (f.runsOn === "coordinator" ? f.instancesPerHost : 0), 0);

function peakOn(b: ScheduledBackend, schedule: Schedule, peak: number, uses: Use): Bytes {
  if (uses.kind !== "footprint" || collectsOnly(b, schedule)) return 0 as Bytes;
  const factor = uses.skew[b.desc.address] ?? uses.skew[hostNameOf(b.desc.address)] ?? 1;
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
