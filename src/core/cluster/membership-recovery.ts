/**
 * After a subscriber has reconnected to the statestore its membership stands still for a while (admission 6.1):
 * the restarted statestore hears of the backends one by one, and groups must not run empty over that.
 */
import type { Instant } from "../units.ts";
import type { Membership } from "./membership.ts";

/** `--statestore_subscriber_recovery_grace_period_ms` */
export const DEFAULT_RECOVERY_GRACE_MS = 30_000;

export class MembershipRecovery {
  readonly #graceMs: number;
  /** Until when nothing new is shown; -1: no reconnection under way. */
  #frozenUntil = -1;
  #heard: Membership | null = null;

  constructor(graceMs: number = DEFAULT_RECOVERY_GRACE_MS) {
    this.#graceMs = graceMs;
  }

  reconnected(now: Instant): void {
    this.#frozenUntil = now + this.#graceMs;
  }

  /** The membership to go by from now on, or null: stay with the one there is. */
  heard(membership: Membership, now: Instant): Membership | null {
    this.#heard = membership;
    return this.due(now);
  }

  /** What was held back, once the time is over; null before, and when there is nothing. */
  due(now: Instant): Membership | null {
    if (now < this.#frozenUntil) return null;
    const shown = this.#heard;
    this.#heard = null;
    return shown;
  }

  /** When `due` next has something, Infinity: it doesn't hold anything back. */
  nextChange(): number {
    return this.#heard === null ? Number.POSITIVE_INFINITY : this.#frozenUntil;
  }
}
