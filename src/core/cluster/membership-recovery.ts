/**
 * When a subscriber's membership stands still (admission 6.1): while it does not reach the statestore, and for a while
 * after it has registered again. A restarted statestore hears of the backends one by one, and groups must not run
 * empty over that.
 *
 *     connected --disconnected--> away --reconnected--> recovering --(grace)--> connected
 *                                  '------rejoined, before anybody missed it------^
 *
 * What has changed meanwhile is taken at the first exchange after it.
 */
import type { Instant } from "../units.ts";

/** `--statestore_subscriber_recovery_grace_period_ms` */
export const DEFAULT_RECOVERY_GRACE_MS = 30_000;

export class MembershipRecovery {
  readonly #graceMs: number;
  #until = Number.NEGATIVE_INFINITY;

  constructor(graceMs: number = DEFAULT_RECOVERY_GRACE_MS) {
    this.#graceMs = graceMs;
  }

  disconnected(): void {
    this.#until = Number.POSITIVE_INFINITY;
  }

  reconnected(now: Instant): void {
    this.#until = now + this.#graceMs;
  }

  rejoined(): void {
    this.#until = Number.NEGATIVE_INFINITY;
  }

  /** The membership of before is the one to go by. */
  holds(now: Instant): boolean {
    return now < this.#until;
  }
}
