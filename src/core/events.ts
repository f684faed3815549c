/**
 * What happened: the one stream from which tables, profiles, metrics, pages and explanations are folded.
 *
 * Both drivers emit exactly these, after the state has changed. A field that is not known at that place is
 * null, never missing, so that one kind has one shape. Times are emulated milliseconds since the run began,
 * memory is emulated bytes. Kinds are added at the end; a reader skips kinds it does not know.
 */
import type { ControllerCall } from "./admission/controller-call.ts";
import type { QueueReason, RejectReason, StaleAge } from "./admission/reasons.ts";
import type { Bytes, Instant, Millis } from "./units.ts";

/** How an admission came about (admission 10.1). */
export type AdmissionPath = "immediately" | "trivially" | "fromQueue";

/** How a query that was admitted ended. */
export type FinishState = "finished" | "failed" | "cancelled";

export type RunEvent =
  /** A request reached its controller. `intended` is when the client wanted it to (insight 2.1). */
  | {
      readonly kind: "submitted";
      readonly at: Instant;
      readonly query: string;
      readonly queryClass: string;
      readonly pool: string;
      readonly user: string;
      readonly coordinator: string;
      readonly intended: Instant;
      /** The same of the request's first attempt: request wait is counted from there (insight 2.1). */
      readonly firstIntended: Instant;
      /** 1 for the first try of a client's intention, then 2, 3, ... */
      readonly attempt: number;
      /** First attempt's query id: what the attempts of one intention have in common. */
      readonly request: string;
    }
  /** No pool, or no right to it: an error, not a rejection; no pool counter moves (admission 1.5). */
  | { readonly kind: "unresolved"; readonly at: Instant; readonly query: string; readonly error: string }
  | {
      readonly kind: "queued";
      readonly at: Instant;
      readonly query: string;
      readonly reason: QueueReason;
      /** In force for this query whatever the configuration becomes (T-6). */
      readonly timeout: Millis;
    }
  /** The head was tried again and still can't go. Emitted when rule or figures differ from the last time. */
  | {
      readonly kind: "stillQueued";
      readonly at: Instant;
      readonly query: string;
      readonly reason: QueueReason;
      /** Equal failed attempts folded into this one since the last event, this one included. */
      readonly attempts: number;
    }
  | {
      readonly kind: "admitted";
      readonly at: Instant;
      readonly query: string;
      readonly path: AdmissionPath;
      readonly waited: Millis;
      readonly group: string;
      /** MEM-11 on an executor and on the coordinator, MEM-10 for the cluster. */
      readonly perHost: Bytes;
      readonly onCoordinator: Bytes;
      readonly cluster: Bytes;
      /** MEM-9, -1: none enforced. */
      readonly memLimit: number;
      readonly coordinatorMemLimit: number;
      /** Addresses of the schedule, coordinator included, in address order. */
      readonly hosts: readonly string[];
      /** How old the controller's view was (admission 7.6). */
      readonly stale: StaleAge;
    }
  | {
      readonly kind: "rejected";
      readonly at: Instant;
      readonly query: string;
      readonly reason: RejectReason;
      readonly waited: Millis;
      readonly fromQueue: boolean;
    }
  | {
      readonly kind: "timedOut";
      readonly at: Instant;
      readonly query: string;
      readonly waited: Millis;
      readonly timeout: Millis;
      /** The last reason of a real attempt, or the initial one (T-7). */
      readonly reason: QueueReason;
      /** "Additional Details": the top consumers at the last memory failure, or `Not Applicable`. */
      readonly details: string;
    }
  | {
      readonly kind: "cancelled";
      readonly at: Instant;
      readonly query: string;
      readonly waited: Millis;
      readonly wasQueued: boolean;
    }
  | {
      readonly kind: "fragmentStarted";
      /** When its coordinator heard. */
      readonly at: Instant;
      readonly query: string;
      readonly host: string;
      readonly instance: number;
      /** When its minimum was claimed, by its host's clock; left out: the coordinator heard at once. */
      readonly hostAt?: Instant;
      /** In virtual time, what its host tells the statestore of a query without a limit; left out: its limit, or unknown. */
      readonly reserves?: Bytes;
    }
  /** The instance holds this much reservation and uses this much of it, from now on. */
  | {
      readonly kind: "reserved";
      readonly at: Instant;
      readonly query: string;
      readonly host: string;
      readonly instance: number;
      readonly reservation: Bytes;
      readonly used: Bytes;
    }
  /** Bytes written to scratch since the instance's last event of this kind. */
  | {
      readonly kind: "spilled";
      readonly at: Instant;
      readonly query: string;
      readonly host: string;
      readonly instance: number;
      readonly bytes: Bytes;
    }
  | {
      readonly kind: "fragmentFinished";
      /** When its coordinator heard. */
      readonly at: Instant;
      readonly query: string;
      readonly host: string;
      readonly instance: number;
      /** When it had given everything back, by its host's clock; left out: the coordinator heard at once. */
      readonly hostAt?: Instant;
      readonly peak: Bytes;
      readonly spilled: Bytes;
      /** null when it finished well; else the product's text (memory 8). */
      readonly error: string | null;
    }
  /** These backends' share of memory and slots is free again (admission 9.2). */
  | {
      readonly kind: "backendsReleased";
      readonly at: Instant;
      readonly query: string;
      readonly hosts: readonly string[];
    }
  /**
   * With `admissiond`, a message that would have given these backends back did not arrive. `state`: it was the query's
   * last one, and its client has its answer; a heartbeat makes up for it (9.5).
   */
  | {
      readonly kind: "releaseLost";
      readonly at: Instant;
      readonly query: string;
      readonly hosts: readonly string[];
      readonly state: FinishState | null;
    }
  /** ReleaseQuery: the place in the pool is free again (admission 9.3). */
  | {
      readonly kind: "released";
      readonly at: Instant;
      readonly query: string;
      readonly state: FinishState;
      /** Largest peak over its hosts, -1: unknown. */
      readonly peak: number;
      readonly error: string | null;
    }
  | { readonly kind: "hostLost"; readonly at: Instant; readonly host: string; readonly why: string }
  | { readonly kind: "hostJoined"; readonly at: Instant; readonly host: string }
  /** A controller has applied one exchange with the statestore. */
  | { readonly kind: "topicApplied"; readonly at: Instant; readonly coordinator: string; readonly sequence: number }
  /** A fault the scenario or a person asked for. */
  | { readonly kind: "fault"; readonly at: Instant; readonly what: string }
  /** What a daemon logs about its pool files: one was reloaded, or why the old stays in force. */
  | {
      readonly kind: "poolFiles";
      readonly at: Instant;
      readonly level: "info" | "warn" | "error";
      readonly text: string;
    }
  /** What a controller was asked and what it answered: all that a replay needs. */
  | {
      readonly kind: "controllerCall";
      readonly at: Instant;
      /** Address; a process started anew under it is `address#2`, `address#3`, ... */
      readonly controller: string;
      /** The moment that the controller was told, where the call has one. */
      readonly now: Instant | null;
      readonly call: ControllerCall;
    }
  /** A process without a controller gave the statestore what has changed on its host. Live only. */
  | { readonly kind: "topicPublished"; readonly at: Instant; readonly host: string }
  /**
   * Whether slots or host memory stop this waiting query, and all of its kind in its queue, in the state of the
   * cluster as it is (insight 2.3). Emitted when it differs from what was told before.
   */
  | {
      readonly kind: "hostsChecked";
      readonly at: Instant;
      readonly query: string;
      readonly slots: boolean;
      readonly hostMemory: boolean;
    }
  /** After an admission where several controllers decide: what its controller knew of the others (insight 2.4). */
  | {
      readonly kind: "viewUsed";
      readonly at: Instant;
      readonly query: string;
      /** Of the oldest that it knows of another controller; -1: it never heard. */
      readonly ageMs: number;
      /** With it some host has more than it can give; null: not known where it was let in. */
      readonly isOverOnAHost: boolean | null;
    };

export type EventKind = RunEvent["kind"];
export type EventOf<K extends EventKind> = Extract<RunEvent, { readonly kind: K }>;
