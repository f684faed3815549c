/**
 * Admission control of one process, on the thread that it is made on (admission 5). Everything that the controller is
 * asked is told as a call, so that a live run can be gone through again in virtual time; what a pass decides counts
 * from the pass's own moment.
 */
import type { AdmissionController } from "../core/admission/controller.ts";
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
import type { Membership } from "../core/cluster/membership.ts";
import type { PoolConfig } from "../core/pool-config.ts";
import type { TopicUpdate } from "../core/statestore/topic.ts";
import type { Instant } from "../core/units.ts";
import { type AdmissionDesk, type Answer, admissionOf, type PoolUsage } from "./admission-desk.ts";
import { DuePass } from "./due-pass.ts";
import type { Appointment, Timers } from "./timers.ts";

export interface DeskSurroundings {
  readonly timers: Pick<Timers, "at" | "cancel">;
  now(): Instant;
  /** Runs `act` in a later turn of the event loop. */
  soon(act: () => void): void;
  tell(answer: Answer): void;
  /** Left out where other controllers decide too: what they let in is not known here. */
  readonly hostsChecked?: TellHostCheck;
}

export class LocalDesk implements AdmissionDesk {
  readonly outlivesProcess = false;
  readonly #around: DeskSurroundings;
  readonly #controller: AdmissionController;
  readonly #pass: DuePass;
  /** Of the queries that wait here. */
  readonly #deadlines = new Map<string, Appointment>();
  /** Of the pass that runs. */
  #passAt = 0 as Instant;
  /** Null: nobody asks. */
  readonly #looks: HostLooks | null;
  #isOpen = true;

  constructor(options: ControllerOptions, around: DeskSurroundings) {
    this.#around = around;
    this.#controller = new RecordedController(options, (call, now) => around.tell({ kind: "called", call, now }));
    const sink = this.#sinkOfThis();
    const pass = (): void => {
      this.#passAt = around.now();
      this.#controller.dequeuePass(this.#passAt, sink);
      this.#looks?.lookNow(this.#passAt);
    };
    const { hostsChecked } = around;
    this.#looks = hostsChecked === undefined ? null : new HostLooks(() => [this.#controller], hostsChecked);
    this.#pass = new DuePass(this.#controller, pass, around.soon);
  }

  setMembership(membership: Membership): void {
    if (this.#isOpen) this.#controller.setMembership(membership);
  }

  submit(request: AdmissionRequest, config: PoolConfig, rootConfig: PoolConfig): void {
    if (!this.#isOpen) return;
    const now = this.#around.now();
    const q = this.#controller.submit(request, config, rootConfig, now);
    if (q.state === "running") this.#around.tell(admissionOf(q, now));
    else if (q.state === "queued") this.#queued(q, now);
    else this.#around.tell(rejectedEvent(q, false, now));
    this.#pass.look();
  }

  #queued(q: AdmissionQuery, now: Instant): void {
    this.#looks?.queueBegan();
    this.#deadlines.set(
      q.id,
      this.#around.timers.at(q.deadline, (at) => this.#timeOut(q, at)),
    );
    this.#around.tell(queuedEvent(q, now));
  }

  /** Another outcome may have been faster (T-8); the pass has told it then. */
  #timeOut(q: AdmissionQuery, now: Instant): void {
    if (!this.#leaves(q)) return;
    this.#controller.timeOut(q, now);
    if (q.state === "timedOut") this.#around.tell(timedOutEvent(q, now));
    else if (q.state === "cancelled") this.#around.tell(cancelledEvent(q, true, now));
    this.#pass.look();
  }

  cancel(query: string): void {
    const q = this.#isOpen ? this.#controller.find(query) : undefined;
    if (q === undefined || !this.#deadlines.has(query)) return;
    const now = this.#around.now();
    this.#controller.cancel(q, now);
    if (q.state === "cancelled" && this.#leaves(q)) this.#around.tell(cancelledEvent(q, true, now));
    this.#pass.look();
  }

  /** True once for every query that waited. */
  #leaves(q: AdmissionQuery): boolean {
    this.#around.timers.cancel(this.#deadlines.get(q.id) ?? null);
    return this.#deadlines.delete(q.id);
  }

  // Dequeueing

  #sinkOfThis(): DequeueSink {
    const { tell } = this.#around;
    const leaving =
      (answer: (q: AdmissionQuery, at: Instant) => Answer) =>
      (q: AdmissionQuery): void => {
        this.#leaves(q);
        tell(answer(q, this.#passAt));
      };
    return {
      admitted: leaving(admissionOf),
      rejected: leaving((q, at) => rejectedEvent(q, true, at)),
      cancelled: leaving((q, at) => cancelledEvent(q, true, at)),
      stillQueued: (q) => {
        tell(stillQueuedEvent(q, this.#passAt));
        this.#looks?.headWaits(q);
      },
    };
  }

  // Release

  releaseBackends(query: string, positions: readonly number[]): boolean {
    const q = this.#isOpen ? this.#controller.find(query) : undefined;
    if (q === undefined) return true;
    this.#controller.releaseBackends(q, positions);
    this.#pass.look();
    return true;
  }

  release(query: string, rest: readonly number[], peak: number): boolean {
    const q = this.#isOpen ? this.#controller.find(query) : undefined;
    if (q === undefined) return true;
    if (rest.length > 0) this.#controller.releaseBackends(q, rest);
    this.#controller.releaseQuery(q, peak);
    this.#pass.look();
    return true;
  }

  // Statestore

  exchange(usages: readonly PoolUsage[], update: TopicUpdate): void {
    if (!this.#isOpen) return;
    // A place that was given back in this turn would be told as free for a whole round, and others would fill it too.
    this.#pass.settle();
    for (const { pool, usage } of usages) this.#controller.setBackendUsage(pool, usage);
    const entries = this.#controller.collectUpdate();
    this.#controller.applyUpdate(update, this.#around.now());
    this.#around.tell({ kind: "exchanged", entries });
    this.#looks?.lookNow(this.#around.now());
    this.#pass.look();
  }

  close(): void {
    this.#isOpen = false;
    this.#pass.close();
    for (const deadline of this.#deadlines.values()) this.#around.timers.cancel(deadline);
    this.#deadlines.clear();
  }
}
