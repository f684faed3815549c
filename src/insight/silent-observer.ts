/**
 * An observer that takes notice of nothing: whoever wants to see some of what happens extends it.
 */
import type { QueueReason, RejectReason } from "../core/admission/reasons.ts";
import type { AdmissionPath, FinishState } from "../core/events.ts";
import type { NameKind, QueryFacts, RunObserver } from "../core/run-observer.ts";

export class SilentObserver implements RunObserver {
  named(_kind: NameKind, _index: number, _name: string): void {
    // Nothing.
  }
  submitted(_at: number, _q: QueryFacts): void {
    // Nothing.
  }
  unresolved(_at: number, _q: QueryFacts): void {
    // Nothing.
  }
  queued(_at: number, _q: QueryFacts, _reason: QueueReason): void {
    // Nothing.
  }
  headWaits(_at: number, _q: QueryFacts, _reason: QueueReason): void {
    // Nothing.
  }
  admitted(_at: number, _q: QueryFacts, _path: AdmissionPath, _waited: number, _cluster: number): void {
    // Nothing.
  }
  hostsChecked(_at: number, _q: QueryFacts, _slots: boolean, _hostMemory: boolean): void {
    // Nothing.
  }
  viewUsed(_at: number, _q: QueryFacts, _ageMs: number, _isOverOnAHost: boolean | null): void {
    // Nothing.
  }
  rejected(_at: number, _q: QueryFacts, _reason: RejectReason, _waited: number, _fromQueue: boolean): void {
    // Nothing.
  }
  timedOut(_at: number, _q: QueryFacts, _waited: number, _reason: QueueReason): void {
    // Nothing.
  }
  cancelled(_at: number, _q: QueryFacts, _waited: number, _wasQueued: boolean): void {
    // Nothing.
  }
  spilled(_at: number, _q: QueryFacts, _bytes: number): void {
    // Nothing.
  }
  memoryReleased(_at: number, _q: QueryFacts, _bytes: number): void {
    // Nothing.
  }
  released(
    _at: number,
    _q: QueryFacts,
    _state: FinishState,
    _hold: number,
    _peak: number,
    _error: string | null,
  ): void {
    // Nothing.
  }
  ended(_at: number): void {
    // Nothing.
  }
}
