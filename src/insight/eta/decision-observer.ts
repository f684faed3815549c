/**
 * An observer to whom every end of a wait is one call: let in, turned away, timed out or given up. What a
 * prediction is about is that moment, whichever it is.
 */
import type { AdmissionPath } from "../../core/events.ts";
import type { QueryFacts } from "../../core/run-observer.ts";
import { SilentObserver } from "../silent-observer.ts";

export type Decision = "admitted" | "rejected" | "timedOut" | "cancelled";

export class DecisionObserver extends SilentObserver {
  /** Once for each that was submitted to a pool, unless the run ends first. */
  decided(_at: number, _q: QueryFacts, _decision: Decision): void {
    // Nothing.
  }

  override admitted(at: number, q: QueryFacts, _path: AdmissionPath, _waited: number): void {
    this.decided(at, q, "admitted");
  }
  override rejected(at: number, q: QueryFacts): void {
    this.decided(at, q, "rejected");
  }
  override timedOut(at: number, q: QueryFacts): void {
    this.decided(at, q, "timedOut");
  }
  /** Of one that runs: it was decided before. */
  override cancelled(at: number, q: QueryFacts, _waited: number, wasQueued: boolean): void {
    if (wasQueued) this.decided(at, q, "cancelled");
  }
}
