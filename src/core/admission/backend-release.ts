/**
 * When a coordinator gives back the hosts of a query that are done before the query is (admission 9.1).
 *
 *     IN_USE --finished--> PENDING --a release is due--> RELEASABLE --released--> RELEASED
 *       '---------------------- close: released at the end ------------------------^
 *
 * Timed and batched must hold together, and "only the coordinator is left" really asks for exactly one
 * backend in use while the coordinator isn't released, whichever one that is (T-57). At most O(log n) calls.
 *
 * Backends are positions in the query's schedule. Pure: both drivers use it, each with its own clock.
 */
import { invariant } from "../assert.ts";
import type { Instant } from "../units.ts";

export interface ReleaseTiming {
  /** `--release_backend_states_delay_ms` */
  readonly delayMs: number;
  /** `--batched_release_decay_factor`, at least 1. */
  readonly decayFactor: number;
}

export const DEFAULT_RELEASE_TIMING: ReleaseTiming = { delayMs: 1000, decayFactor: 2 };

const IN_USE = 0;
const PENDING = 1;
const RELEASABLE = 2;
const RELEASED = 3;

const NONE: readonly number[] = [];

export class BackendRelease {
  readonly #state: Uint8Array;
  readonly #coordinator: number;
  readonly #timing: ReleaseTiming;
  #inUse: number;
  #pending = 0;
  #lastRelease: Instant;
  #decay: number;
  #isClosed = false;

  constructor(numBackends: number, coordinator: number, now: Instant, timing: ReleaseTiming = DEFAULT_RELEASE_TIMING) {
    this.#state = new Uint8Array(numBackends);
    this.#coordinator = coordinator;
    this.#timing = timing;
    this.#inUse = numBackends;
    this.#lastRelease = now;
    this.#decay = timing.decayFactor;
  }

  /** A backend has finished; returns those to release now, often none. A second time changes nothing. */
  finished(i: number, now: Instant): readonly number[] {
    if (this.#isClosed || this.#state[i] !== IN_USE) return NONE;
    this.#state[i] = PENDING;
    this.#pending++;
    this.#inUse--;
    if (!this.#isReleaseDue(now)) return NONE;
    this.#lastRelease = now;
    this.#decay *= this.#timing.decayFactor;
    return this.#takePending();
  }

  #isReleaseDue(now: Instant): boolean {
    if (this.#state[this.#coordinator] !== RELEASED && this.#inUse === 1) return true;
    const enough = Math.max(1, Math.floor(this.#state.length / this.#decay));
    return now - this.#lastRelease > this.#timing.delayMs && this.#pending >= enough;
  }

  #takePending(): number[] {
    const due: number[] = [];
    this.#state.forEach((state, i) => {
      if (state !== PENDING) return;
      this.#state[i] = RELEASABLE;
      due.push(i);
    });
    this.#pending = 0;
    return due;
  }

  /** The controller has been told of these. */
  released(backends: readonly number[]): void {
    for (const i of backends) {
      invariant(this.#state[i] === RELEASABLE || this.#state[i] === IN_USE, "a backend is released once");
      if (this.#state[i] === IN_USE) this.#inUse--;
      this.#state[i] = RELEASED;
    }
  }

  /** The query is over: everything that was not released, in one call. Nothing is released by itself any more. */
  close(): readonly number[] {
    this.#isClosed = true;
    const rest: number[] = [];
    this.#state.forEach((state, i) => {
      if (state === IN_USE || state === PENDING) rest.push(i);
    });
    for (const i of rest) this.#state[i] = RELEASED;
    return rest;
  }
}
