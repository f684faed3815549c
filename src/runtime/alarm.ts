/**
 * What wakes an event loop for an appointment, at its moment or later, never earlier.
 *
 * `CoarseAlarm` is a Node timer: its grain is a millisecond, which at 10 emulated seconds a real one is a tenth of a
 * statestore's round. `FineAlarm` is some tens of microseconds late. A thread of its own sleeps in `Atomics.wait`,
 * which has no such grain, and sends a message; the loop it wakes never blocks. The message is sent a little early, as
 * it takes its time, and the rest is waited out in turns of the event loop.
 *
 * Must keep: whatever the other thread does, a Node timer is set too, so nothing is missed and the process is held as
 * long as there is an appointment; turns that only wait take no more than a twentieth of the loop's time, and rings
 * are apart (`restFor`), so dense appointments cost no core.
 */
import type { Instant } from "../core/units.ts";
import type { EmulatedClock } from "./emulated-clock.ts";

export interface Alarm {
  /** Whom it calls. Once, before anything is set. */
  listen(ring: () => void): void;
  /** In place of what was set before. */
  set(at: Instant): void;
  clear(): void;
}

/** What of a clock an alarm asks. */
export type UntilThen = Pick<EmulatedClock, "realUntil">;

export class CoarseAlarm implements Alarm {
  readonly #clock: UntilThen;
  #timer: NodeJS.Timeout | null = null;
  #ring: () => void = () => undefined;

  constructor(clock: UntilThen) {
    this.#clock = clock;
  }

  listen(ring: () => void): void {
    this.#ring = ring;
  }

  set(at: Instant): void {
    this.clear();
    this.#timer = setTimeout(() => this.#ring(), Math.ceil(this.#clock.realUntil(at)));
  }

  clear(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

/** About what a message between threads takes, real milliseconds. */
const LEAD = 0.15;
const SHORTEST_REST = 0.2;
/** Of the loop's time, what turns that only wait may take, and how much of it can be saved up, milliseconds. */
export const SPIN_SHARE = 0.05;
export const MOST_SPIN = 2;

/** How fine an alarm is, real milliseconds. */
export interface Fineness {
  /** Between two rings at least. */
  readonly rest: number;
  /** That a ring is asked for before its moment; 0: what a message takes is too little to be seen. */
  readonly lead: number;
}

/**
 * Two emulated milliseconds after another ring are seen by nobody, nor is one; a Node timer's grain is never
 * exceeded. So a slow clock, where a millisecond is little, is woken little more often than by Node's timers, and
 * waits in no turns at all.
 */
export const finenessFor = (timeScale: number): Fineness => ({
  rest: Math.min(1, Math.max(SHORTEST_REST, 2 / timeScale)),
  lead: LEAD * timeScale >= 1 ? LEAD : 0,
});

/** What a fine alarm needs of the machine; tests put their own in its place. */
export interface AlarmLoop {
  /** Real milliseconds. */
  now(): number;
  /** Later, at the real moment `at` or somewhat after, `rung` is called; in place of what was asked before. */
  ask(at: number): void;
  turn(act: () => void): void;
}

export class FineAlarm implements Alarm {
  readonly #clock: UntilThen;
  readonly #loop: AlarmLoop;
  readonly #fineness: Fineness;
  readonly #coarse: CoarseAlarm;
  #ring: () => void = () => undefined;
  /** null: not set. */
  #at: Instant | null = null;
  #isTurning = false;
  #turningSince = 0;
  #lastRing = Number.NEGATIVE_INFINITY;
  /** Milliseconds that may be waited in turns, as of `#creditAt`. */
  #credit = MOST_SPIN;
  #creditAt: number;

  constructor(clock: UntilThen, loop: AlarmLoop, fineness: Fineness) {
    this.#clock = clock;
    this.#loop = loop;
    this.#fineness = fineness;
    this.#coarse = new CoarseAlarm(clock);
    this.#creditAt = loop.now();
  }

  listen(ring: () => void): void {
    this.#ring = ring;
    this.#coarse.listen(() => this.#rings());
  }

  set(at: Instant): void {
    this.#at = at;
    this.#coarse.set(at);
    const now = this.#loop.now();
    const due = now + this.#clock.realUntil(at);
    const { rest, lead } = this.#fineness;
    const early = this.#creditNow(now) >= lead ? lead : 0;
    if (due - now > early) this.#loop.ask(Math.max(due - early, this.#lastRing + rest));
    else if (this.#clock.realUntil(at) <= 0 || this.#creditNow(now) > 0) this.#turnLater(now);
  }

  /** Whoever sets it is not called within the call, however late it is. */
  #turnLater(now: number): void {
    if (this.#isTurning) return;
    this.#isTurning = true;
    this.#turningSince = now;
    this.#loop.turn(() => this.#turned());
  }

  clear(): void {
    this.#at = null;
    this.#coarse.clear();
  }

  /** The other thread's message has come. */
  rung(): void {
    if (this.#at === null) return;
    this.#lastRing = this.#loop.now();
    this.#turnUntilDue(this.#lastRing);
  }

  /** A ring from before another one was set, or an early one with no credit left, is the coarse alarm's business. */
  #turnUntilDue(now: number): void {
    if (this.#at === null) return;
    const left = this.#clock.realUntil(this.#at);
    if (left <= 0) this.#rings();
    else if (left <= this.#fineness.lead && this.#creditNow(now) > 0) this.#turnLater(now);
  }

  #turned(): void {
    const now = this.#loop.now();
    this.#isTurning = false;
    this.#credit -= now - this.#turningSince;
    this.#turnUntilDue(now);
  }

  #creditNow(now: number): number {
    this.#credit = Math.min(MOST_SPIN, this.#credit + (now - this.#creditAt) * SPIN_SHARE);
    this.#creditAt = now;
    return this.#credit;
  }

  #rings(): void {
    this.#at = null;
    this.#coarse.clear();
    this.#ring();
  }
}
