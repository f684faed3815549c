/**
 * One request of a trace: what a log's row becomes once everything that the log does not say has been settled
 * (insight 4.2, 4.6), and the file in which a trace is kept.
 *
 * A trace file is JSON lines: a header that says what it is, then one request a line in order of arrival.
 * Whoever replays it needs nothing else; `recorded` is only there to hold the replay against.
 */
import type { LoggedOptions, LoggedOutcome, RejectionClass } from "./logged-query.ts";

export interface TracedRequest {
  /** Whole microseconds since the first arrival. */
  readonly at: number;
  readonly queryId: string;
  readonly queryClass: string;
  readonly pool: string;
  readonly user: string;
  readonly coordinator: string | null;
  readonly stmtType: "QUERY" | "DML";
  readonly isTrivial: boolean;
  /** Planner's, in bytes. */
  readonly estimate: number;
  readonly coordinatorEstimate: number;
  readonly options: LoggedOptions;
  /** Largest minimum reservation of a host. */
  readonly reservation: number;
  /** Coordinator included, at least 1. */
  readonly backends: number;
  /** No executor takes part; null, or left out in older files: as far as `backends` tells. */
  readonly coordinatorOnly: boolean | null;
  readonly slots: number;
  /** Admission to the return of the place, microseconds. */
  readonly hold: number;
  /** Largest per-host peak in bytes, of all memory. */
  readonly peak: number;
  /** What of it was reserved: the part that limits leave to reservations (R8, R10). */
  readonly reserved: number;
  /** On all hosts together; what it took is in `hold`. */
  readonly spilled: number;
  /** Place in the trace of the query whose answer this client waited for, and the microseconds it then thought. */
  readonly after: { readonly index: number; readonly think: number } | null;
  /** Fields that the log does not have for this query and that were settled otherwise. */
  readonly guessed: readonly Guess[];
  readonly recorded: Recorded;
}

/** What was settled, and how: each is explained once in the report. */
export type Guess =
  | "hold"
  | "holdCut"
  | "estimate"
  | "coordinatorEstimate"
  | "peak"
  | "backends"
  | "slots"
  | "amount"
  | "spread";

export interface Recorded {
  readonly outcome: LoggedOutcome;
  readonly rejection: RejectionClass | null;
  /** Microseconds; null: unknown. */
  readonly wait: number | null;
}

export const TRACE_FORMAT = "waterhole-trace";
export const TRACE_VERSION = 2;

export interface TraceHeader {
  readonly format: typeof TRACE_FORMAT;
  readonly version: number;
  /** First arrival, microseconds since 1970: hours of the day and days of the week start here. */
  readonly start: number;
  readonly requests: number;
}

/**
 * Its one fragment ran on the coordinator: trivial queries, those without an executor group, and where groups are not
 * known those without another backend.
 */
export const isCoordinatorOnly = (r: TracedRequest): boolean =>
  r.isTrivial || (r.coordinatorOnly ?? (r.backends <= 1 && r.stmtType === "QUERY"));

/** The lines of a trace file, line feeds not included. */
export function* traceLines(start: number, requests: readonly TracedRequest[]): Generator<string> {
  const header: TraceHeader = { format: TRACE_FORMAT, version: TRACE_VERSION, start, requests: requests.length };
  yield JSON.stringify(header);
  for (const r of requests) yield JSON.stringify(r);
}
