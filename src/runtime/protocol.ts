/**
 * Everything that goes between the main thread and the others. Executors: numbers go through shared memory, control
 * through comlink, and here: which fragments to run, and what became of them. Coordinators: questions and answers.
 *
 * Answers are plain data: an error that crosses threads loses its class (STYLE 6).
 */
import type { MessagePort } from "node:worker_threads";
import type { FootprintProfile, OperatorSpec } from "../config/scenario.ts";
import type { ControllerFlags } from "../core/admission/controller-options.ts";
import type { AdmissionRequest, RequestShape } from "../core/admission/request.ts";
import type { MembershipInput } from "../core/cluster/membership.ts";
import type { QueryIdParts } from "../core/memory/tracker-records.ts";
import type { PoolConfig } from "../core/pool-config.ts";
import type { TopicUpdate } from "../core/statestore/topic.ts";
import type { Bytes, Instant, MaxBytes, Millis } from "../core/units.ts";
import type { Answer, PoolUsage } from "./admission-desk.ts";
import type { ClockSettings } from "./emulated-clock.ts";
import type { Output } from "./operators/checksum-sink.ts";
import type { OperatorArena } from "./operators/operator-arena.ts";

/** What every executor thread is started with. */
export interface FleetSettings {
  readonly clock: ClockSettings;
  /** By host number. */
  readonly hosts: readonly SharedHost[];
  /** This run's scratch directory. */
  readonly scratch: string;
  /** Threads look at the books that only they know: real operators'. */
  readonly isChecked: boolean;
}

/** A host's memory for real operators; only in runs that have some. */
export interface SharedOperators {
  readonly arena: OperatorArena;
  /** The buffer allocator's state; written by the thread that carries the host, and by main after its death. */
  readonly allocator: SharedArrayBuffer;
  /** The scratch directories' books; likewise. */
  readonly scratchBooks: SharedArrayBuffer;
  /** Bytes of scratch on the host, Infinity: no limit. */
  readonly scratchLimit: number;
}

export interface SharedHost {
  readonly address: string;
  readonly ledger: SharedArrayBuffer;
  readonly arena: SharedArrayBuffer;
  readonly pageSize: number;
  readonly operators: SharedOperators | null;
}

/** The tasks of the piscina pool. */
export type ThreadTask =
  /** First of all: the thread gets its number, its id in locks, and its ports. */
  | {
      readonly kind: "attach";
      readonly lockId: number;
      /** comlink's. */
      readonly control: MessagePort;
      /** Progress goes out here. */
      readonly progress: MessagePort;
    }
  /** What one turn of the main thread has for this one; over when the last of the instances is. */
  | { readonly kind: "runFragments"; readonly work: readonly ThreadWork[] };

/** One query's instances on the hosts that a thread carries. */
export interface ThreadWork {
  readonly query: QueryOrder;
  readonly fragments: readonly FragmentOrder[];
}

/** What the instances of one query have in common. */
export interface QueryOrder {
  readonly id: string;
  readonly idParts: QueryIdParts;
  readonly pool: number;
  /** Place in `scenario.queries`, for faults that hit one class. */
  readonly queryClass: number;
  /** BUFFER_POOL_LIMIT (R8) and SCRATCH_LIMIT (S7). */
  readonly bufferPoolLimit: number;
  readonly scratchLimit: number;
  readonly spillable: boolean;
  /** Null: a footprint. Else the operators that run one after the other, and the seed of their rows. */
  readonly operators: readonly OperatorSpec[] | null;
  readonly seed: number;
  readonly profile: FootprintProfile;
  /** Every step of the footprint is told, not only the first and the last. */
  readonly tellsSteps: boolean;
  /** When the query was admitted: all its instances count their steps from there, whenever they got the message. */
  readonly admittedAt: Instant;
  /** Emulated, from the admission to the last row. */
  readonly duration: Millis;
}

export interface FragmentOrder {
  /** Given out by the fleet, never twice. */
  readonly task: number;
  readonly host: number;
  /** The host's life that is meant. */
  readonly epoch: number;
  readonly instance: number;
  /** Instances of the query on this host, this one included: they share its limits and come in one piece of work. */
  readonly siblings: number;
  /** MEM-9 for this host; -1: none. */
  readonly memLimit: MaxBytes;
  /** R15: of the query on this host; whoever starts first takes it (R16). */
  readonly minReservation: Bytes;
  /** What this instance claims of it (R19). */
  readonly claim: Bytes;
  readonly peak: Bytes;
  /** False where the query only collects rows. */
  readonly hasOperators: boolean;
}

/** What an instance tells, in batches, in the order in which it happened. */
export type Progress =
  /** Its minimum is claimed. */
  | { readonly kind: "started"; readonly task: number; readonly at: Instant }
  | { readonly kind: "reserved"; readonly task: number; readonly reservation: Bytes; readonly used: Bytes }
  /** Written to scratch since the last one. */
  | { readonly kind: "spilled"; readonly task: number; readonly bytes: Bytes }
  | ({ readonly kind: "finished"; readonly task: number } & FragmentEnd)
  /** The host's books do not agree: a bug of ours, which ends the run. */
  | { readonly kind: "broken"; readonly task: number; readonly text: string };

export interface FragmentEnd {
  /** When it had given everything back, by its host's clock. */
  readonly at: Instant;
  /** Of the instance; where it is the only one, the query's on the host. */
  readonly peak: Bytes;
  /** The query's on the host, so far. */
  readonly peakOnHost: Bytes;
  readonly spilled: Bytes;
  /** Rows that came out of the last real operator and their check-sums; null for a footprint. */
  readonly output: Output | null;
  /** Null when it finished well. */
  readonly error: FragmentError | null;
}

export interface FragmentError {
  /** The product's code (memory 8), 0 for "cancelled", -1 for a lost host. */
  readonly code: number;
  readonly text: string;
}

/** The control line to an executor thread (comlink). */
export interface ThreadControl {
  /** These end as soon as they can, with all they hold given back. */
  cancel(tasks: readonly number[]): void;
  /** These stand still with all they hold until they are cancelled: who they work for or with is gone. */
  hold(tasks: readonly number[]): void;
  /** The host's instances stop where they are and give nothing back, as if its process had died. */
  abandonHost(host: number): void;
  /** Each growth on the host is refused with this chance (SET_DENY_RESERVATION_PROBABILITY). */
  refuse(order: RefusalOrder): void;
  status(): ThreadStatus;
  /** Blocks the thread for so long, in real milliseconds: what a long collection or a busy disk does. */
  stall(milliseconds: number): void;
}

export interface RefusalOrder {
  /** 0: no more. */
  readonly chance: number;
  readonly seed: number;
  /** null: all. */
  readonly host: number | null;
  readonly queryClass: number | null;
}

export interface ThreadStatus {
  readonly running: number;
  readonly appointments: number;
}

export const CANCELLED_CODE = 0;
export const HOST_LOST_CODE = -1;

/** What a coordinator's thread is started with. */
export interface CoordinatorSettings {
  readonly hostId: string;
  readonly flags: ControllerFlags;
  readonly clock: ClockSettings;
}

/**
 * What the main thread asks a coordinator's thread, in batches, one for each turn: the calls of an `AdmissionDesk`.
 * Shapes and pool records go once and have numbers from then on: there a controller compares them by identity.
 */
export type Question =
  | { readonly kind: "membership"; readonly input: MembershipInput }
  | { readonly kind: "shape"; readonly number: number; readonly shape: RequestShape }
  | { readonly kind: "config"; readonly number: number; readonly config: PoolConfig }
  | {
      readonly kind: "submit";
      readonly request: Omit<AdmissionRequest, "shape">;
      readonly shape: number;
      readonly config: number;
      readonly rootConfig: number;
    }
  | { readonly kind: "cancel"; readonly query: string }
  | { readonly kind: "releaseBackends"; readonly query: string; readonly positions: readonly number[] }
  | { readonly kind: "release"; readonly query: string; readonly rest: readonly number[]; readonly peak: number }
  | { readonly kind: "exchange"; readonly usages: readonly PoolUsage[]; readonly update: TopicUpdate }
  /** The last one: no pass and no deadline comes after it. */
  | { readonly kind: "finish" };

/** What comes back. */
export type FromCoordinator =
  /** Loaded; what is asked now is answered at once. */
  | { readonly kind: "ready" }
  | { readonly kind: "answers"; readonly answers: readonly Answer[] }
  /** Everything that was asked has been answered. */
  | { readonly kind: "finished" };
