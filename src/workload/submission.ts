/**
 * One attempt on its way to a controller: a small object of one shape, since a simulation makes a million of
 * them a second. What it shares with others of its class and user is one record away (`Placed`); its query id
 * is made from numbers when somebody reads it.
 */
import type { ExecutionOptions } from "../config/request-shape.ts";
import type { AdmissionRequest, RequestShape } from "../core/admission/request.ts";
import type { Philox } from "../core/random.ts";
import type { Instant, Millis } from "../core/units.ts";
import type { Submission } from "./workload.ts";

/** Everything that follows from class, user and configuration. */
export interface Placed {
  readonly queryClass: number;
  readonly requestedPool: string;
  readonly connectedUser: string;
  /** Empty when unresolved. */
  readonly pool: string;
  readonly user: string;
  readonly userGroups: readonly string[] | null;
  readonly unresolved: string | null;
  readonly shape: RequestShape;
  readonly execution: ExecutionOptions;
}

const NO_BLACKLIST: readonly string[] = [];

export class QuerySubmission implements Submission {
  readonly placed: Placed;
  readonly ids: QueryIds;
  /** Index of the source and number of the request in it. */
  readonly source: number;
  readonly ordinal: number;
  readonly sequence: number;
  readonly attempt: number;
  readonly intended: Instant;
  readonly firstIntended: Instant;
  readonly coordinator: string;
  readonly shape: RequestShape;
  readonly duration: Millis;
  readonly peak: number;
  readonly spilled: number;
  readonly cancelAt: Instant;
  readonly placementOffset: number;
  /** Once somebody has asked. */
  #queryId: string | null = null;

  constructor(
    placed: Placed,
    ids: QueryIds,
    source: number,
    ordinal: number,
    sequence: number,
    attempt: number,
    intended: number,
    firstIntended: number,
    coordinator: string,
    shape: RequestShape,
    duration: number,
    peak: number,
    spilled: number,
    cancelAt: number,
    placementOffset: number,
  ) {
    this.placed = placed;
    this.ids = ids;
    this.source = source;
    this.ordinal = ordinal;
    this.sequence = sequence;
    this.attempt = attempt;
    this.intended = intended as Instant;
    this.firstIntended = firstIntended as Instant;
    this.coordinator = coordinator;
    this.shape = shape;
    this.duration = duration as Millis;
    this.peak = peak;
    this.spilled = spilled;
    this.cancelAt = cancelAt as Instant;
    this.placementOffset = placementOffset;
  }

  get queryId(): string {
    this.#queryId ??= this.ids.idOf(this.ordinal, this.attempt);
    return this.#queryId;
  }
  get request(): string {
    return this.attempt === 1 ? this.queryId : this.ids.idOf(this.ordinal, 1);
  }
  get queryClass(): number {
    return this.placed.queryClass;
  }
  get pool(): string {
    return this.placed.pool;
  }
  get execution(): ExecutionOptions {
    return this.placed.execution;
  }
  get user(): string {
    return this.placed.user;
  }
  get userGroups(): readonly string[] | null {
    return this.placed.userGroups;
  }
  get requestedPool(): string {
    return this.placed.requestedPool;
  }
  get connectedUser(): string {
    return this.placed.connectedUser;
  }
  get unresolved(): string | null {
    return this.placed.unresolved;
  }
  get blacklistedExecutors(): readonly string[] {
    return NO_BLACKLIST;
  }
}

/** Query ids of one source: the same request has the same id in every run of the scenario with this seed. */
export class QueryIds {
  readonly #generator: Philox;
  readonly #source: number;

  constructor(generator: Philox, source: number) {
    this.#generator = generator;
    this.#source = source;
  }

  /** Two 16-digit halves; the last eight digits are 0, as the product leaves them for fragment instances. */
  idOf(ordinal: number, attempt: number): string {
    const g = this.#generator;
    g.at(ordinal, this.#source, attempt, 0);
    return `${hex(g.w0)}${hex(g.w1)}:${hex(g.w2)}00000000`;
  }
}

const hex = (word: number): string => word.toString(16).padStart(8, "0");

/** What admission needs, as a plain record that can go to another thread. */
export const plainRequest = (s: Submission): AdmissionRequest => ({
  queryId: s.queryId,
  coordinator: s.coordinator,
  pool: s.pool,
  user: s.user,
  userGroups: s.userGroups,
  shape: s.shape,
  blacklistedExecutors: s.blacklistedExecutors,
  placementOffset: s.placementOffset,
});
