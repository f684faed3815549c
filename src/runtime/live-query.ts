/**
 * One query of a live run, from its client to its end.
 *
 *   submitted -> queued --> running --> ending --> [held] --> over
 *        |          |--> over (rejected, timed out, cancelled)
 *        |--> running
 *        '--> over (unresolved, rejected)
 *
 *   running: instances work on its hosts, or hang: its coordinator or one of its hosts died. ending: it failed or was cancelled, and its instances are asked to stop.
 *   held: it has ended for its client, and `admissiond` does not know (the release got lost, or its coordinator died).
 *   Only its coordinator moves it.
 */
import type { BackendRelease } from "../core/admission/backend-release.ts";
import type { FinishState } from "../core/events.ts";
import type { Instant } from "../core/units.ts";
import type { Submission } from "../workload/workload.ts";
import type { AdmissionDesk, Decision, Place } from "./admission-desk.ts";
import type { Appointment } from "./timers.ts";

export class LiveQuery {
  readonly submission: Submission;
  readonly id: string;
  readonly submittedAt: Instant;
  /** The one that decides it; its coordinator may have another by now. */
  readonly desk: AdmissionDesk;
  state: "submitted" | "queued" | "running" | "ending" | "held" | "over" = "submitted";
  queuedAt = 0 as Instant;
  wasQueued = false;
  /** Its client wants no answer any more. */
  isGivenUp = false;
  /** Its client has been told how it ended. */
  isAnswered = false;
  /** Its coordinator's process died: nobody asks, nobody starts it. */
  isOrphan = false;
  /** Hosts that died with work of it, and nobody said so: it hangs until its coordinator hears (9.5). */
  readonly lostOn: string[] = [];
  /** What `admissiond` made of it in its queue; its coordinator acts when it hears. */
  decision: Decision | null = null;
  /** Admission holds nothing of it any more. */
  isReleased = false;
  cancel: Appointment | null = null;
  /** End of one that only takes its time. */
  nextEnd: Appointment | null = null;

  admittedAt = 0 as Instant;
  /** Its schedule, once it is admitted. */
  places: readonly Place[] = [];

  /** Instances that have not ended, by task: their place in the schedule and number in the query. */
  readonly open = new Map<number, { readonly position: number; readonly instance: number }>();
  /** Instances still open by position. */
  openAt: number[] = [];
  releasing: BackendRelease | null = null;
  /** Positions that were done, whose release got lost. */
  lost: readonly number[] = [];
  /** How it will have ended. */
  outcome: FinishState = "finished";
  error: string | null = null;
  /** Largest over its hosts. */
  peak = 0;

  constructor(submission: Submission, desk: AdmissionDesk, now: Instant) {
    this.submission = submission;
    this.desk = desk;
    this.id = submission.queryId;
    this.submittedAt = now;
  }
}
