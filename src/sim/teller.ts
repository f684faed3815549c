/**
 * Tells what happened, in either form: to an observer in plain numbers, to a sink as RunEvents, or to nobody.
 *
 * The simulator changes its state first and then calls this, so that both forms tell the same story in the
 * same order. Without a sink no event object is made.
 */
import type { ControllerCall } from "../core/admission/controller-call.ts";
import {
  admittedEvent,
  cancelledEvent,
  queuedEvent,
  queueWait,
  rejectedEvent,
  stillQueuedEvent,
  timedOutEvent,
  timeoutReason,
} from "../core/admission/query-events.ts";
import type { AdmissionPath, FinishState, RunEvent } from "../core/events.ts";
import type { NameKind, RunObserver } from "../core/run-observer.ts";
import type { Bytes, Instant } from "../core/units.ts";
import { type Micros, toInstant } from "./event-queue.ts";
import type { Seat } from "./seat.ts";
import { isLimited, reservedAt, type SimQuery } from "./sim-query.ts";

export type EmitEvent = (event: RunEvent) => void;

/** Numbers for names in the order in which they were first heard; the last one asked for is at hand. */
export class Names {
  readonly #kind: NameKind;
  readonly #observer: RunObserver | null;
  readonly #numbers = new Map<string, number>();
  readonly #names: string[] = [];
  #lastName = "";
  #last = -1;

  constructor(kind: NameKind, observer: RunObserver | null) {
    this.#kind = kind;
    this.#observer = observer;
  }

  get size(): number {
    return this.#names.length;
  }

  nameOf(index: number): string {
    return this.#names[index]!;
  }

  /** hot: bench/simulate */
  indexOf(name: string): number {
    if (name === this.#lastName && this.#last >= 0) return this.#last;
    let index = this.#numbers.get(name);
    if (index === undefined) {
      index = this.#names.length;
      this.#numbers.set(name, index);
      this.#names.push(name);
      this.#observer?.named(this.#kind, index, name);
    }
    this.#lastName = name;
    this.#last = index;
    return index;
  }
}

export class Teller {
  readonly #emit: EmitEvent | null;
  readonly #observer: RunObserver | null;
  readonly #classes: readonly string[];

  /** True when each step is wanted as an event, also those that no observer asks about. `onlyOutcomes`: it isn't. */
  readonly tellsAll: boolean;

  constructor(emit: EmitEvent | null, onlyOutcomes: boolean, observer: RunObserver | null, classes: readonly string[]) {
    this.#emit = emit;
    this.#observer = observer;
    this.#classes = classes;
    this.tellsAll = emit !== null && !onlyOutcomes;
    classes.forEach((name, i) => {
      observer?.named("class", i, name);
    });
  }

  event(event: RunEvent): void {
    this.#emit?.(event);
  }

  submitted(q: SimQuery, now: Micros): void {
    const at = toInstant(now);
    this.#observer?.submitted(at, q);
    if (this.#emit === null) return;
    const s = q.submission;
    this.#emit({
      kind: "submitted",
      at,
      query: s.queryId,
      queryClass: this.#classes[s.queryClass]!,
      pool: s.pool,
      user: s.user,
      coordinator: s.coordinator,
      intended: s.intended,
      firstIntended: s.firstIntended,
      attempt: s.attempt,
      request: s.request,
    });
  }

  unresolved(q: SimQuery, error: string, now: Micros): void {
    const at = toInstant(now);
    this.#observer?.unresolved(at, q, error);
    this.#emit?.({ kind: "unresolved", at, query: q.submission.queryId, error });
  }

  queued(q: SimQuery, now: Micros): void {
    const at = toInstant(now);
    const { admission } = q;
    this.#observer?.queued(at, q, admission.initialReason!);
    this.#emit?.(queuedEvent(admission, at));
  }

  headWaits(q: SimQuery, now: Micros): void {
    const at = toInstant(now);
    const { admission } = q;
    this.#observer?.headWaits(at, q, admission.latestReason!);
    this.#emit?.(stillQueuedEvent(admission, at));
  }

  admitted(q: SimQuery, path: AdmissionPath, now: Micros): void {
    const at = toInstant(now);
    const { admission } = q;
    this.#observer?.admitted(at, q, path, queueWait(admission, at), admission.memory!.cluster);
    this.#emit?.(admittedEvent(admission, path, at));
  }

  hostsChecked(q: SimQuery, slots: boolean, hostMemory: boolean, at: Instant): void {
    this.#observer?.hostsChecked(at, q, slots, hostMemory);
    this.#emit?.({ kind: "hostsChecked", at, query: q.queryId, slots, hostMemory });
  }

  viewUsed(q: SimQuery, age: Micros, isOverOnAHost: boolean, now: Micros): void {
    const at = toInstant(now);
    const ageMs = age < 0 ? -1 : toInstant(age);
    this.#observer?.viewUsed(at, q, ageMs, isOverOnAHost);
    this.#emit?.({ kind: "viewUsed", at, query: q.queryId, ageMs, isOverOnAHost });
  }

  rejected(q: SimQuery, fromQueue: boolean, now: Micros): void {
    const at = toInstant(now);
    const { admission } = q;
    this.#observer?.rejected(at, q, admission.rejectReason!, queueWait(admission, at), fromQueue);
    this.#emit?.(rejectedEvent(admission, fromQueue, at));
  }

  timedOut(q: SimQuery, now: Micros): void {
    const at = toInstant(now);
    const { admission } = q;
    this.#observer?.timedOut(at, q, queueWait(admission, at), timeoutReason(admission));
    this.#emit?.(timedOutEvent(admission, at));
  }

  cancelled(q: SimQuery, wasQueued: boolean, now: Micros): void {
    const at = toInstant(now);
    const { admission } = q;
    this.#observer?.cancelled(at, q, queueWait(admission, at), wasQueued);
    this.#emit?.(cancelledEvent(admission, wasQueued, at));
  }

  called(controller: string, call: ControllerCall, given: Instant | null, now: Micros): void {
    this.event({ kind: "controllerCall", at: toInstant(now), controller, now: given, call });
  }

  topicApplied(seat: Seat, now: Micros): void {
    this.event({ kind: "topicApplied", at: toInstant(now), coordinator: seat.address, sequence: seat.sequence });
  }

  /** One instance on each host stands for all of the query's there, numbered in schedule order from 1. */
  started(q: SimQuery, now: Micros): void {
    const { placement } = q;
    placement.hasWork.forEach((has, position) => {
      if (has === 0) return;
      const reserves = isLimited(q, position) ? {} : { reserves: reservedAt(q, position) as Bytes };
      this.event({ kind: "fragmentStarted", ...this.#instance(q, position, now), ...reserves });
    });
  }

  fragmentFinished(q: SimQuery, position: number, now: Micros): void {
    const spilled = (q.spills?.[position] ?? 0) as Bytes;
    if (spilled > 0) this.#observer?.spilled(toInstant(now), q, spilled);
    if (!this.tellsAll || q.placement.hasWork[position] === 0) return;
    const instance = this.#instance(q, position, now);
    if (spilled > 0) this.event({ kind: "spilled", ...instance, bytes: spilled });
    this.event({ kind: "fragmentFinished", ...instance, peak: q.peak as Bytes, spilled, error: null });
  }

  #instance(q: SimQuery, position: number, now: Micros) {
    return {
      at: toInstant(now),
      query: q.queryId,
      host: q.placement.addresses[position]!,
      instance: position + 1,
    };
  }

  spilled(q: SimQuery, bytes: number, now: Micros): void {
    this.#observer?.spilled(toInstant(now), q, bytes);
  }

  backendsReleased(q: SimQuery, hosts: readonly string[], bytes: number, now: Micros): void {
    const at = toInstant(now);
    this.#observer?.memoryReleased(at, q, bytes);
    this.#emit?.({ kind: "backendsReleased", at, query: q.submission.queryId, hosts });
  }

  releaseLost(q: SimQuery, hosts: readonly string[], state: FinishState | null, now: Micros): void {
    this.#emit?.({ kind: "releaseLost", at: toInstant(now), query: q.submission.queryId, hosts, state });
  }

  released(q: SimQuery, state: FinishState, now: Micros): void {
    const at = toInstant(now);
    const error = state === "failed" ? q.error : null;
    this.#observer?.released(at, q, state, at - toInstant(q.decidedAt), q.peak, error);
    this.#emit?.({
      kind: "released",
      at,
      query: q.submission.queryId,
      state,
      peak: q.peak,
      error,
    });
  }

  ended(now: Micros): void {
    this.#observer?.ended(toInstant(now));
  }
}
