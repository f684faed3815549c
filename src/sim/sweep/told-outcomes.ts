/**
 * told: a run of which everything is told decides no differently from one of which only outcomes are.
 *
 * Exchanges that could bring nothing to anybody take place only where their calls are wanted for the records
 * (`Exchanges`), so the two take different ways through the driver. Which of several reasons a head is said to wait
 * for is not compared: a pass that moves nobody may name another, and only where there is one.
 */
import { fail } from "../../core/assert.ts";
import type { QueryFacts, RunObserver } from "../../core/run-observer.ts";

export class ToldOutcomes {
  readonly #lines: string[] = [];

  /** Takes down what `inner` is told. */
  over(inner: RunObserver): RunObserver {
    const add = (at: number, what: string, q: QueryFacts, figures: string | number): void => {
      this.#lines.push(`${at} ${what} ${q.queryId} ${figures}`);
    };
    return {
      ...inner,
      unresolved: (at, q, error) => {
        add(at, "unresolved", q, error);
        inner.unresolved(at, q, error);
      },
      queued: (at, q, reason) => {
        add(at, "queued", q, reason.rule);
        inner.queued(at, q, reason);
      },
      admitted: (at, q, path, waited, cluster) => {
        add(at, "admitted", q, cluster);
        inner.admitted(at, q, path, waited, cluster);
      },
      rejected: (at, q, reason, waited, fromQueue) => {
        add(at, "rejected", q, reason.rule);
        inner.rejected(at, q, reason, waited, fromQueue);
      },
      timedOut: (at, q, waited, reason) => {
        add(at, "timedOut", q, reason.rule);
        inner.timedOut(at, q, waited, reason);
      },
      cancelled: (at, q, waited, wasQueued) => {
        add(at, "cancelled", q, waited);
        inner.cancelled(at, q, waited, wasQueued);
      },
      spilled: (at, q, bytes) => {
        add(at, "spilled", q, bytes);
        inner.spilled(at, q, bytes);
      },
      memoryReleased: (at, q, bytes) => {
        add(at, "memoryReleased", q, bytes);
        inner.memoryReleased(at, q, bytes);
      },
      released: (at, q, state, hold, peak, error) => {
        add(at, `released ${state}`, q, peak);
        inner.released(at, q, state, hold, peak, error);
      },
    };
  }

  mustEqual(other: ToldOutcomes): void {
    const [mine, others] = [this.#lines, other.#lines];
    for (let i = 0; i < Math.max(mine.length, others.length); i++)
      if (mine[i] !== others[i])
        fail(`told: "${mine[i] ?? "nothing"}", and with everything told "${others[i] ?? "nothing"}"`);
  }
}
