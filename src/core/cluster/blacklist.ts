/**
 * The executors that one coordinator avoids because their queries failed (admission 6.1).
 *
 *     (unlisted) --blacklist--> BLACKLISTED --timeout x count--> ON_PROBATION --5 x timeout x count--> (unlisted)
 *                                    ^                                |
 *                                    '------- blacklist, count + 1 ---'
 *
 * Local to the coordinator: it does not reach `admissiond` (T-63). Time moves only in `maintain`, which the
 * product calls with every membership update.
 */
import type { Instant } from "../units.ts";

export interface BlacklistTiming {
  /** Missed heartbeats until a host is declared failed, and their distance. */
  readonly maxMissedHeartbeats: number;
  readonly heartbeatMs: number;
}

export const DEFAULT_BLACKLIST_TIMING: BlacklistTiming = { maxMissedHeartbeats: 10, heartbeatMs: 1000 };

const PADDING = 1.2;
const PROBATION_FACTOR = 5;

interface Entry {
  since: Instant;
  count: number;
  isOnProbation: boolean;
}

export class ExecutorBlacklist {
  readonly #timeout: number;
  readonly #entries = new Map<string, Entry>();

  constructor(timing: BlacklistTiming = DEFAULT_BLACKLIST_TIMING) {
    this.#timeout = Math.trunc(PADDING * timing.maxMissedHeartbeats * timing.heartbeatMs);
  }

  /** Listed again while still listed changes nothing; from probation it lasts longer each time. */
  blacklist(address: string, now: Instant): void {
    const entry = this.#entries.get(address);
    if (entry === undefined) {
      this.#entries.set(address, { since: now, count: 1, isOnProbation: false });
      return;
    }
    if (!entry.isOnProbation) return;
    const servedProbation = now - entry.since > PROBATION_FACTOR * this.#timeout * entry.count;
    entry.count = servedProbation ? 1 : entry.count + 1;
    entry.since = now;
    entry.isOnProbation = false;
  }

  /** The host left the cluster, or came back as a new process. */
  forget(address: string): void {
    this.#entries.delete(address);
  }

  /** Moves on what has timed out; true when somebody may be used again. */
  maintain(now: Instant): boolean {
    let isAnyoneBack = false;
    for (const [address, entry] of this.#entries) {
      const elapsed = now - entry.since;
      if (entry.isOnProbation) {
        if (elapsed > PROBATION_FACTOR * this.#timeout * entry.count) this.#entries.delete(address);
      } else if (elapsed > this.#timeout * entry.count) {
        entry.isOnProbation = true;
        isAnyoneBack = true;
      }
    }
    return isAnyoneBack;
  }

  /** When `maintain` next has somebody to let back in, Infinity: nobody is listed. */
  nextChange(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const e of this.#entries.values())
      if (!e.isOnProbation) next = Math.min(next, e.since + this.#timeout * e.count);
    return next;
  }

  /** For `membershipOf`. */
  addresses(): ReadonlySet<string> {
    return new Set([...this.#entries].filter(([, e]) => !e.isOnProbation).map(([address]) => address));
  }
}
