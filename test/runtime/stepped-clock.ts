/** Emulated time that goes from one alarm to the next, each as late as the test says; in between it stands still. */
import type { Instant } from "../../src/core/units.ts";
import type { Alarm } from "../../src/runtime/alarm.ts";

export class SteppedClock implements Alarm {
  readonly #latenessOf: (due: number) => number;
  #now = 0 as Instant;
  #at: Instant | null = null;
  #later: (() => void)[] = [];
  #ring: () => void = () => undefined;

  constructor(latenessOf: (due: number) => number = () => 0) {
    this.#latenessOf = latenessOf;
  }

  now(): Instant {
    return this.#now;
  }

  realUntil(at: Instant): number {
    return Math.max(0, at - this.#now);
  }

  listen(ring: () => void): void {
    this.#ring = ring;
  }

  set(at: Instant): void {
    this.#at = at;
  }

  clear(): void {
    this.#at = null;
  }

  /** Comes before time goes on, after all that is due now. */
  soon(act: () => void): void {
    this.#later.push(act);
  }

  /** Time goes on with nothing that happens in it. */
  setTo(now: number): void {
    this.#now = now as Instant;
  }

  /** Until then, included, or until nothing is to come. */
  runUntil(until: number, isOver: () => boolean = () => false): void {
    while (!isOver()) {
      if (this.#at !== null && this.#at <= this.#now) this.#rings();
      else if (this.#later.length > 0) for (const act of this.#later.splice(0)) act();
      else if (this.#at === null || this.#at > until) return;
      else this.#now = Math.max(this.#now, this.#at + this.#latenessOf(this.#at)) as Instant;
    }
  }

  #rings(): void {
    this.#at = null;
    this.#ring();
  }
}
