/**
 * The plainest workload: given submissions in order of time, nobody retries. For tests that want to see the
 * simulator alone.
 */
import { DEFAULT_EXECUTION_OPTIONS } from "../../src/config/request-shape.ts";
import type { Scenario } from "../../src/config/scenario.ts";
import type { Instant, Millis } from "../../src/core/units.ts";
import type { Ending, Submission, Workload } from "../../src/workload/workload.ts";

export interface Arrival {
  readonly at: number;
  readonly coordinator: string;
  readonly pool: string;
  readonly queryClass?: number;
  readonly duration: number;
  readonly peak?: number;
  readonly cancelAt?: number;
  readonly user?: string;
}

export class GivenWorkload implements Workload {
  readonly endings: { readonly query: string; readonly how: Ending; readonly at: number }[] = [];
  readonly #scenario: Scenario;
  readonly #arrivals: readonly Arrival[];
  #taken = 0;

  constructor(scenario: Scenario, arrivals: readonly Arrival[]) {
    this.#scenario = scenario;
    this.#arrivals = arrivals;
  }

  nextAt(): Instant {
    return (this.#arrivals[this.#taken]?.at ?? Number.POSITIVE_INFINITY) as Instant;
  }

  take(): Submission {
    const sequence = this.#taken++;
    const a = this.#arrivals[sequence]!;
    const queryClass = a.queryClass ?? 0;
    const queryId = `${(sequence + 1).toString(16).padStart(16, "0")}:0000000000000000`;
    return {
      queryId,
      coordinator: a.coordinator,
      pool: a.pool,
      user: a.user ?? "ana",
      userGroups: [],
      shape: this.#scenario.queries[queryClass]!.shape,
      blacklistedExecutors: [],
      placementOffset: sequence,
      sequence,
      queryClass,
      intended: a.at as Instant,
      firstIntended: a.at as Instant,
      attempt: 1,
      request: queryId,
      requestedPool: a.pool,
      connectedUser: a.user ?? "ana",
      unresolved: null,
      duration: a.duration as Millis,
      peak: a.peak ?? 0,
      spilled: 0,
      execution: DEFAULT_EXECUTION_OPTIONS,
      cancelAt: (a.cancelAt ?? Number.POSITIVE_INFINITY) as Instant,
    };
  }

  ended(submission: Submission, how: Ending, at: Instant): void {
    this.endings.push({ query: submission.queryId, how, at });
  }

  isExhausted(): boolean {
    return this.#taken >= this.#arrivals.length;
  }

  coordinatorGone(): void {
    // Nobody listens: the submissions are given.
  }

  coordinatorBack(): void {
    // As above.
  }

  configurationChanged(): void {
    // As above.
  }

  scaleEstimate(): void {
    // As above.
  }
}
