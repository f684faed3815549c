/**
 * The stream of requests that both drivers read: same scenario, same seed, same requests.
 *
 * A driver asks `nextAt`, waits until then on its own clock, takes the submission, and says how it ended;
 * closed-loop clients and retries live on that answer. Nothing else goes back, so open traffic is the same
 * in every run whatever the cluster does, and a value drawn for a request depends only on the seed, the
 * class and the request's own number, never on what was drawn before it.
 */
import type { ExecutionOptions } from "../config/request-shape.ts";
import type { AdmissionRequest } from "../core/admission/request.ts";
import type { Instant, Millis } from "../core/units.ts";

/**
 * One attempt, as it reaches its controller. An object with getters: what goes to another thread is
 * `plainRequest` of it.
 */
export interface Submission extends AdmissionRequest {
  /** 0, 1, 2, ... in the order in which submissions were taken. */
  readonly sequence: number;
  /** Index into `scenario.queries`. */
  readonly queryClass: number;
  /** When the client wanted the answer: first attempts and retries alike have their own. Whole microseconds. */
  readonly intended: Instant;
  /** The same of the request's first attempt. */
  readonly firstIntended: Instant;
  /** 1, 2, ...: attempts of one request. */
  readonly attempt: number;
  /** Query id of the first attempt, formatted when read. */
  readonly request: string;
  readonly requestedPool: string;
  readonly connectedUser: string;
  /** Not null: no pool or no right to it; `pool` is empty and the request must not reach admission (1.5). */
  readonly unresolved: string | null;
  /** Time from admission to the last row on an idle cluster. Whole microseconds. */
  readonly duration: Millis;
  /** Peak of the footprint per host in bytes, before skew; 0 for operators. */
  readonly peak: number;
  /** Bytes per host whose way to scratch and back `duration` contains already: a recorded hold does (insight 4.3). */
  readonly spilled: number;
  /** Its own options over the pool's defaults (1.2). */
  readonly execution: ExecutionOptions;
  /** The client gives up at this moment; Infinity: never. */
  readonly cancelAt: Instant;
}

export type Ending = "finished" | "failed" | "rejected" | "timedOut" | "cancelled" | "unresolved";

export interface Workload {
  /** When the next submission is due, Infinity when none is known. An ending can bring one nearer. */
  nextAt(): Instant;
  /** The next submission; only when `nextAt` is finite. */
  take(): Submission;
  /** Once for every submission taken, whatever became of it. */
  ended(submission: Submission, how: Ending, at: Instant): void;
  /** True when none is known and none can follow from endings still to come. */
  isExhausted(): boolean;
  /** Clients leave out coordinators that are gone. */
  coordinatorGone(address: string): void;
  coordinatorBack(address: string): void;
  /** Pools, rights or defaults may resolve differently from now on. */
  configurationChanged(): void;
  /** Estimates of a class are multiplied from now on (fault `statisticsDropped`). */
  scaleEstimate(queryClass: number, factor: number): void;
}

/** How requests find their pool; made from the pool directory by whoever starts the run. */
export interface Resolver {
  resolve(requestedPool: string, user: string, estimateUnder: EstimateUnder): Resolution;
}

/** The planner's estimate per host with these options in force: it may decide about the pool (admission 6.4). */
export type EstimateUnder = (options: Readonly<Record<string, string>>, maxMtDop: number) => number;

export type Resolution =
  | {
      readonly kind: "resolved";
      readonly pool: string;
      /** Effective short name (admission 8.4). */
      readonly user: string;
      readonly groups: readonly string[] | null;
      /** Defaults of the pool for options that the client did not set, upper-case names. */
      readonly defaultOptions: Readonly<Record<string, string>>;
      /** MT_DOP is lowered to this; negative: no cap. */
      readonly maxMtDop: number;
    }
  | { readonly kind: "unresolved"; readonly error: string };
