/**
 * Many appointments in emulated time, one real timer: a heap by moment, equal moments in the order they were made.
 *
 * A thread carries thousands of fragments with several steps each, and a coordinator as many deadlines; a Node timer
 * for every one would cost more than the work. Whatever is due when the timer fires runs in one go.
 *
 * Real timers have a millisecond's grain, so an appointment is kept up to `scale.time` emulated milliseconds late,
 * never early.
 */
import type { Instant } from "../core/units.ts";
import type { EmulatedClock } from "./emulated-clock.ts";

export interface Appointment {
  readonly at: Instant;
  readonly order: number;
  /** null: cancelled or kept. */
  act: ((now: Instant) => void) | null;
}

export class Timers {
  readonly #clock: EmulatedClock;
  readonly #onError: (error: unknown) => void;
  readonly #heap: Appointment[] = [];
  #made = 0;
  #cancelled = 0;
  #timer: NodeJS.Timeout | null = null;
  /** What the real timer is set to; Infinity when it is not. */
  #setFor = Number.POSITIVE_INFINITY;

  /** `onError` hears what an appointment throws; left out, it is nobody's and ends the thread. */
  constructor(clock: EmulatedClock, onError?: (error: unknown) => void) {
    this.#clock = clock;
    this.#onError = onError ?? rethrow;
  }

  /** Appointments still to be kept. */
  get size(): number {
    return this.#heap.length - this.#cancelled;
  }

  at(at: Instant, act: (now: Instant) => void): Appointment {
    const appointment: Appointment = { at, order: this.#made++, act };
    this.#push(appointment);
    if (at < this.#setFor) this.#setTimer();
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
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#setFor = Number.POSITIVE_INFINITY;
  }

  #setTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const first = this.#heap[0];
    this.#setFor = first?.at ?? Number.POSITIVE_INFINITY;
    if (first === undefined) return;
    this.#timer = setTimeout(() => this.#keepDue(), Math.ceil(this.#clock.realUntil(first.at)));
  }

  #keepDue(): void {
    this.#timer = null;
    this.#setFor = Number.NEGATIVE_INFINITY;
    // Each is told the time anew: what it does must not look earlier than what the one before it did.
    let now = this.#clock.now();
    for (let first = this.#heap[0]; first !== undefined && first.at <= now; first = this.#heap[0]) {
      this.#pop();
      const { act } = first;
      first.act = null;
      if (act === null) this.#cancelled--;
      else {
        this.#keep(act, now);
        now = this.#clock.now();
      }
    }
    this.#setTimer();
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
