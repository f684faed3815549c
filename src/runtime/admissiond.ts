/**
 * `admissiond` of a live run: one controller for all coordinators, behind the service that they talk to (admission
 * 7.7, 9.4, 9.5). What it remembers and when it is heard are the core's, the same as in virtual time.
 *
 * It lives on the main thread: a message there is a call, and is lost only where a fault says so. Each coordinator's
 * process has a `ServiceDesk`; when the process dies its desk is closed, and nobody asks any more for what the queries
 * wait for, which stay in the queue (T-59). The desk goes on telling what becomes of them.
 */
import type { ServiceTiming } from "../config/service-timing.ts";
import { AdmissionService } from "../core/admission/admission-service.ts";
import type { ControllerOptions } from "../core/admission/controller-options.ts";
import type { DequeueSink } from "../core/admission/dequeue-pass.ts";
import { HostLooks, type TellHostCheck } from "../core/admission/host-looks.ts";
import type { AdmissionQuery } from "../core/admission/query.ts";
import {
  cancelledEvent,
  queuedEvent,
  rejectedEvent,
  stillQueuedEvent,
  timedOutEvent,
} from "../core/admission/query-events.ts";
import { RecordedController } from "../core/admission/recorded-controller.ts";
import type { AdmissionRequest } from "../core/admission/request.ts";
import { heardAt, nextHeartbeat, timeoutNoticedAt } from "../core/admission/status-calls.ts";
import { fail } from "../core/assert.ts";
import type { Membership } from "../core/cluster/membership.ts";
import { MembershipRecovery } from "../core/cluster/membership-recovery.ts";
import type { PoolConfig } from "../core/pool-config.ts";
import type { TopicUpdate } from "../core/statestore/topic.ts";
import type { Instant } from "../core/units.ts";
import {
  type AdmissionDesk,
  type Answer,
  admissionOf,
  type Decision,
  type PoolUsage,
  type Told,
} from "./admission-desk.ts";
import { DuePass } from "./due-pass.ts";
import type { DeskSurroundings } from "./local-desk.ts";
import type { Appointment } from "./timers.ts";
import type { Exchanged, TopicReader } from "./topic-reader.ts";

export interface AdmissiondSurroundings extends Omit<DeskSurroundings, "tell" | "hostsChecked"> {
  hostsChecked: TellHostCheck;
  tell(called: Extract<Answer, { kind: "called" }>): void;
  /** As the statestore would tell it now. */
  membership(): Membership;
  /** `--statestore_subscriber_recovery_grace_period_ms` */
  readonly recoveryGraceMs: number;
  /** A fault: this release message of the coordinator does not arrive. */
  losesRelease(coordinator: string): boolean;
  /** It has heard from the statestore. */
  roundEnded(): void;
}

/**
 * Rounds with the statestore after which one more brings nothing, if nothing has changed: what a host has given back
 * is published within two of them and read in the next, and the pass after that is over by the one that follows.
 */
const QUIET_ROUNDS = 4;

export class Admissiond implements TopicReader {
  readonly address: string;
  readonly isAlive = true;
  readonly service: AdmissionService;
  readonly timing: ServiceTiming;
  readonly around: AdmissiondSurroundings;
  readonly #pass: DuePass;
  readonly #recovery: MembershipRecovery;
  readonly looks: HostLooks;
  /** Of the processes that are there, by coordinator. */
  readonly #desks = new Map<string, ServiceDesk>();
  /** Rounds since something last changed. */
  #quiet = 0;
  #heartbeatsDue = 0;

  constructor(options: ControllerOptions, timing: ServiceTiming, around: AdmissiondSurroundings) {
    this.address = options.hostId;
    this.timing = timing;
    this.around = around;
    this.#recovery = new MembershipRecovery(around.recoveryGraceMs);
    const controller = new RecordedController(options, (call, now) => around.tell({ kind: "called", call, now }));
    this.service = new AdmissionService(controller);
    this.looks = new HostLooks(() => [controller], around.hostsChecked);
    const sink = sinkFor(around, this.looks, () => this.stirred());
    const pass = (): void => {
      this.service.dequeuePass(around.now(), sink);
      this.looks.lookNow(around.now());
    };
    this.#pass = new DuePass(controller, pass, around.soon);
  }

  /** For a coordinator's new process. */
  open(coordinator: string, tell: (told: Told) => void): AdmissionDesk {
    const desk = new ServiceDesk(this, coordinator, tell);
    this.#desks.set(coordinator, desk);
    // What the process before it left running is named by no heartbeat of the new one.
    if (this.service.controller.runningAt(coordinator).length > 0) desk.planHeartbeat();
    return desk;
  }

  closed(coordinator: string): void {
    this.#desks.delete(coordinator);
  }

  /** Let in for a process that is gone: if there is a new one, its heartbeat will not name it. */
  admittedOrphan(coordinator: string): void {
    this.#desks.get(coordinator)?.planHeartbeat();
  }

  changed(): void {
    this.stirred();
    this.#pass.look();
  }

  /** Something is other than it was. */
  stirred(): void {
    this.#quiet = 0;
  }

  /** False: of what it has, nothing leaves by itself any more. */
  mayMove(isStatestoreUp: boolean): boolean {
    if (this.#heartbeatsDue > 0 || this.#pass.comes) return true;
    const hasNews = this.around.membership() !== this.service.controller.membership;
    return isStatestoreUp && (hasNews || this.#quiet < QUIET_ROUNDS);
  }

  /** Only heartbeats that bring something are sent: after a release that got lost, and of a new process (9.5). */
  planHeartbeat(beat: (now: Instant) => void): void {
    const { around, timing } = this;
    this.#heartbeatsDue++;
    around.timers.at(nextHeartbeat(timing.heartbeat, around.now()) as Instant, (now) => {
      this.#heartbeatsDue--;
      beat(now);
      this.changed();
    });
  }

  disconnected(): void {
    this.#recovery.disconnected();
  }

  reconnected(now: Instant): void {
    this.#recovery.reconnected(now);
  }

  rejoined(): void {
    this.#recovery.rejoined();
  }

  /** It has no host of its own: there are no usages to tell of. */
  exchange(_usages: readonly PoolUsage[], update: TopicUpdate, now: Instant, then: Exchanged): void {
    const { controller } = this.service;
    const membership = this.around.membership();
    this.#quiet++;
    if (membership !== controller.membership && !this.#recovery.holds(now)) {
      this.stirred();
      tellReleased(this.service.setMembership(membership));
    }
    const entries = controller.collectUpdate();
    if (update.entries.some((e) => e.host !== this.address)) this.stirred();
    controller.applyUpdate(update, now);
    this.#pass.look();
    then(entries, now);
    this.looks.lookNow(now);
    this.around.roundEnded();
  }
}

/** A pass never asks anything: what follows from it comes when somebody hears. */
function sinkFor({ now }: AdmissiondSurroundings, looks: HostLooks, stirred: () => void): DequeueSink {
  const decided =
    (decision: (q: AdmissionQuery, at: Instant) => Decision) =>
    (q: AdmissionQuery): void => {
      stirred();
      deskOf(q).decided(q, decision(q, now()), now());
    };
  return {
    admitted: decided(admissionOf),
    rejected: decided((q, at) => rejectedEvent(q, true, at)),
    cancelled: decided((q, at) => cancelledEvent(q, true, at)),
    stillQueued: (q) => {
      deskOf(q).tell(stillQueuedEvent(q, now()));
      looks.headWaits(q);
    },
  };
}

const deskOf = (q: AdmissionQuery): ServiceDesk => q.owner as ServiceDesk;

/** Without having been told to: their coordinator named them no more, or is gone. */
function tellReleased(released: readonly AdmissionQuery[]): void {
  for (const q of released) deskOf(q).released(q.id);
}

/** One that waits. */
interface Waiting {
  readonly q: AdmissionQuery;
  /** End of the call that would notice the time-out. */
  deadline: Appointment | null;
  /** Told when its coordinator hears; null: the cell of a cancelled one, which the hearing cleans up. */
  decision: Decision | null;
  /** Somebody will hear. */
  isHeardLater: boolean;
}

class ServiceDesk implements AdmissionDesk {
  readonly outlivesProcess = true;
  readonly tell: (told: Told) => void;
  readonly #admissiond: Admissiond;
  readonly #coordinator: string;
  readonly #waiting = new Map<string, Waiting>();
  /** What a heartbeat names: handed over, and not over for the coordinator. */
  readonly #live = new Set<string>();
  #isOpen = true;

  constructor(admissiond: Admissiond, coordinator: string, tell: (told: Told) => void) {
    this.#admissiond = admissiond;
    this.#coordinator = coordinator;
    this.tell = tell;
  }

  /** T-63: what a coordinator avoids does not reach `admissiond`. */
  setMembership(): void {
    // It hears from the statestore itself who is there.
  }

  submit(request: AdmissionRequest, config: PoolConfig, rootConfig: PoolConfig): void {
    if (!this.#isOpen) return;
    const { service, around } = this.#admissiond;
    const now = around.now();
    const q = service.admit(request, config, rootConfig, now) ?? fail("every submission has an id of its own");
    q.owner = this;
    if (q.state === "running") this.tell(admissionOf(q, now));
    else if (q.state === "queued") this.#queued(q, now);
    else this.tell(rejectedEvent(q, false, now));
    if (q.state !== "rejected") this.#live.add(q.id);
    this.#admissiond.changed();
  }

  #queued(q: AdmissionQuery, now: Instant): void {
    const { around, timing } = this.#admissiond;
    const noticed = timeoutNoticedAt(timing.calls, q.submittedAt, q.timeout) as Instant;
    const deadline = around.timers.at(noticed, (at) => this.#timeOut(q, at));
    this.#waiting.set(q.id, { q, deadline, decision: null, isHeardLater: false });
    this.tell(queuedEvent(q, now));
    this.#admissiond.looks.queueBegan();
  }

  #timeOut(q: AdmissionQuery, now: Instant): void {
    this.#admissiond.service.poll(q.id, now);
    this.#ends(q.id);
    this.tell(timedOutEvent(q, now));
    this.#admissiond.changed();
  }

  cancel(query: string): void {
    const waiting = this.#isOpen ? this.#waiting.get(query) : undefined;
    if (waiting === undefined || waiting.decision !== null) return;
    this.#admissiond.around.timers.cancel(waiting.deadline);
    this.#admissiond.service.cancel(query);
    this.#hearLater(waiting, this.#admissiond.around.now());
  }

  /** By a pass. The coordinator hears at its next poll, if there is still somebody. */
  decided(q: AdmissionQuery, decision: Decision, now: Instant): void {
    const waiting = this.#waiting.get(q.id) ?? fail("a pass takes what waits");
    this.#admissiond.around.timers.cancel(waiting.deadline);
    waiting.decision = decision;
    this.tell({ kind: "decided", decision });
    if (this.#isOpen) this.#hearLater(waiting, now);
    else {
      this.#waiting.delete(q.id);
      if (decision.kind === "admission") this.#admissiond.admittedOrphan(this.#coordinator);
    }
  }

  #hearLater(waiting: Waiting, now: Instant): void {
    if (waiting.isHeardLater) return;
    waiting.isHeardLater = true;
    const { around, timing } = this.#admissiond;
    const { submittedAt, timeout } = waiting.q;
    const at = heardAt(timing.calls, submittedAt, timeout, now) as Instant;
    const hear = (): void => {
      if (this.#isOpen && this.#waiting.get(waiting.q.id) === waiting) this.#hear(waiting, around.now());
    };
    if (at > now) around.timers.at(at, hear);
    else around.soon(hear);
  }

  /** A poll that brings the answer. */
  #hear({ q, decision }: Waiting, now: Instant): void {
    this.#admissiond.service.poll(q.id, now);
    this.#waiting.delete(q.id);
    if (q.state !== "running") this.#live.delete(q.id);
    if (decision === null) this.tell(cancelledEvent(q, true, now));
    else this.tell({ kind: "heard", decision, at: now });
    this.#admissiond.changed();
  }

  /** Whether its coordinator has heard of it or not. */
  released(query: string): void {
    this.#ends(query);
    this.tell({ kind: "released", query });
  }

  #ends(query: string): void {
    this.#waiting.delete(query);
    this.#live.delete(query);
  }

  // Release

  releaseBackends(query: string, positions: readonly number[]): boolean {
    const { service } = this.#admissiond;
    if (!this.#isOpen || this.#loses()) return false;
    const q = service.controller.find(query);
    const plan = q?.plan ?? fail("only what is held is given back");
    service.releaseBackends(
      query,
      positions.map((i) => plan.schedule.hosts[i]!),
    );
    this.#admissiond.changed();
    return true;
  }

  release(query: string, _rest: readonly number[], peak: number): boolean {
    if (!this.#isOpen) return false;
    this.#live.delete(query);
    if (this.#loses()) {
      this.planHeartbeat();
      return false;
    }
    this.#admissiond.service.release(query, peak);
    this.#admissiond.changed();
    return true;
  }

  #loses(): boolean {
    return this.#admissiond.around.losesRelease(this.#coordinator);
  }

  planHeartbeat(): void {
    this.#admissiond.planHeartbeat((now) => this.#heartbeat(now));
  }

  #heartbeat(now: Instant): void {
    if (!this.#isOpen) return;
    const { service, timing } = this.#admissiond;
    tellReleased(service.heartbeat(this.#coordinator, Math.floor(now / timing.heartbeat), this.#live));
  }

  /** Only `admissiond` itself talks to the statestore. */
  exchange(): void {
    fail("a coordinator without a controller has no view");
  }

  close(): void {
    this.#isOpen = false;
    this.#admissiond.closed(this.#coordinator);
    for (const { deadline } of this.#waiting.values()) this.#admissiond.around.timers.cancel(deadline);
  }
}
