/**
 * What the executors of one placement hold for one pool, as one number for all of them.
 *
 * Most queries run on every host of a group and reserve the same on each, so ten cells that move alike are one
 * level with a history: what a host has published is the level at its last exchange. A change is one entry;
 * hosts are looked at only when a reader comes by, and history is kept only as far back as some host's last
 * exchange. The coordinator of the placement holds another amount and stays out.
 */
import type { Micros } from "./event-queue.ts";
import type { Placement } from "./placement.ts";

export class ReservationLayer {
  /** Numbers of the hosts, and what each has published of the level. */
  readonly hosts: Int32Array;
  readonly published: Float64Array;
  level = 0;
  isMoving = false;
  /** Changes in order of time; the first one is at or before every host's last exchange. */
  readonly #at: Micros[] = [Number.NEGATIVE_INFINITY];
  readonly #level: number[] = [0];
  /** Before this entry nobody asks; cut off now and then. */
  #first = 0;

  constructor({ hosts, hasWork, coordinatorAt }: Placement) {
    this.hosts = hosts.filter((_, i) => hasWork[i] === 1 && i !== coordinatorAt);
    this.published = new Float64Array(this.hosts.length);
  }

  /** hot: bench/simulate. An exchange of this very instant still takes the new level. */
  change(by: number, now: Micros): void {
    this.level += by;
    const last = this.#at.length - 1;
    if (this.#at[last] === now) this.#level[last] = this.level;
    else {
      this.#at.push(now);
      this.#level.push(this.level);
    }
  }

  /** The level after everything that happened at or before `t`. */
  levelAt(t: Micros): number {
    const at = this.#at;
    let low = this.#first;
    let high = at.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (at[middle]! <= t) low = middle;
      else high = middle - 1;
    }
    return this.#level[low]!;
  }

  /** Nobody will ask for a moment before `t` any more. True when nothing is left that somebody hasn't published. */
  forgetBefore(t: Micros): boolean {
    const at = this.#at;
    let first = this.#first;
    while (first + 1 < at.length && at[first + 1]! <= t) first++;
    this.#first = first;
    if (first > 256) this.#cut();
    return this.#first === at.length - 1;
  }

  #cut(): void {
    this.#at.splice(0, this.#first);
    this.#level.splice(0, this.#first);
    this.#first = 0;
  }
}
