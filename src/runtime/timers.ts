/**
 * Many appointments in emulated time, one alarm: a heap by moment, equal moments in the order they were made.
 *
 * A thread carries thousands of fragments with several steps each, and a coordinator as many deadlines; a Node timer
 * for every one would cost more than the work. Whatever is due when the alarm rings runs in one go.
 *
 * An appointment is kept as late as its alarm is, never early: by a Node timer's grain up to `scale.time` emulated
 * milliseconds, by a fine alarm a small part of that.
 */
import { createHistogram } from "node:perf_hooks";
import type { Instant } from "../core/units.ts";
import { type Alarm, CoarseAlarm } from "./alarm.ts";
import type { EmulatedClock } from "./emulated-clock.ts";

export interface Appointment {
  readonly at: Instant;
  readonly order: number;
  /** null: cancelled or kept. */
  act: ((now: Instant) => void) | null;
}

export class Timers {
  readonly #clock: Pick<EmulatedClock, "now" | "realUntil">;
  readonly #alarm: Alarm;
  readonly #onError: (error: unknown) => void;
  readonly #heap: Appointment[] = [];
  #made = 0;
  #cancelled = 0;
  /** How late appointments were kept, emulated nanoseconds. */
  readonly #lateness = createHistogram();
  /** What the alarm is set to; Infinity when it is not. */
  #setFor = Number.POSITIVE_INFINITY;

  /** `onError` hears what an appointment throws; left out, it is nobody's and ends the thread. */
  constructor(
    clock: Pick<EmulatedClock, "now" | "realUntil">,
    onError: (error: unknown) => void = rethrow,
    alarm: Alarm = new CoarseAlarm(clock),
  ) {
    this.#clock = clock;
    this.#onError = onError;
    this.#alarm = alarm;
    alarm.listen(() => this.#keepDue());
  }

  /** Appointments still to be kept. */
  get size(): number {
    return this.#heap.length - this.#cancelled;
  }

  /** Emulated milliseconds, over all that were kept; `p` of a hundred. */
  latenessAt(p: number): number {
    return this.#lateness.count === 0 ? 0 : this.#lateness.percentile(p) / 1e6;
  }

  at(at: Instant, act: (now: Instant) => void): Appointment {
    const appointment: Appointment = { at, order: this.#made++, act };
    this.#push(appointment);
    if (at < this.#setFor) this.#setAlarm();
    return appointment;
  }

  cancel(appointment: Appointment | null): void {
    if (appointment === null || appointment.act === null) return;
    appointment.act = null;
    // Dead entries leave when they come up, or together when they are the larger part.
    if (++this.#cancelled > 64 && this.#cancelled * 2 > this.#heap.length) this.#sweep();
  }

  /** Nothing is kept any more, and nothing holds the process. */
  close(): void {
    this.#heap.length = 0;
    this.#cancelled = 0;
    this.#alarm.clear();
    this.#setFor = Number.POSITIVE_INFINITY;
  }

  #setAlarm(): void {
    const first = this.#heap[0];
    this.#setFor = first?.at ?? Number.POSITIVE_INFINITY;
    if (first === undefined) this.#alarm.clear();
    else this.#alarm.set(first.at);
  }

  #keepDue(): void {
    this.#setFor = Number.NEGATIVE_INFINITY;
    // Each is told the time anew: what it does must not look earlier than what the one before it did.
    let now = this.#clock.now();
    for (let first = this.#heap[0]; first !== undefined && first.at <= now; first = this.#heap[0]) {
      this.#pop();
      const { act } = first;
      first.act = null;
      if (act === null) this.#cancelled--;
      else {
        this.#lateness.record(Math.max(1, Math.round((now - first.at) * 1e6)));
        this.#keep(act, now);
        now = this.#clock.now();
      }
    }
    this.#setAlarm();
  }

  #keep(act: (now: Instant) => void, now: Instant): void {
    try {
      act(now);
    } catch (error) {
      this.#onError(error);
    }
  }

  #sweep(): void {
    const alive = this.#heap.filter((a) => a.act !== null);
    this.#heap.length = 0;
    this.#cancelled = 0;
    for (const a of alive) this.#push(a);
  }

  #push(item: Appointment): void {
    const heap = this.#heap;
    let i = heap.length;
    heap.push(item);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!isBefore(item, heap[parent]!)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = item;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
  }
}

function rethrow(error: unknown): never {
  throw error;
}

const isBefore = (a: Appointment, b: Appointment): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);
