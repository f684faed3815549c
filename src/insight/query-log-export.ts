/**
 * Every run as a query log with Impala's own columns (surfaces 4): what reads a cluster's log can read ours.
 *
 * A fold over the event stream that keeps only the queries in flight; a row is handed out when its query is
 * over, as the product writes it. Read back, the rows give the same arrivals, waits, holds and amounts to the
 * microsecond; query-log-export.test.ts goes the whole way round. What a run does not have (plans, rows
 * fetched, scan ranges) stays empty or 0, as the product leaves it where it knows nothing.
 *
 * Two liberties, both only in our own exports: `cluster_id` says who wrote it, and `session_id` is the id of
 * the request's first attempt, so that attempts of one request are found again.
 */
import { rejectionError, timeoutError } from "../core/admission/reasons.ts";
import type { EventOf, RunEvent } from "../core/events.ts";
import { OWN_CLUSTER_ID } from "../workload/query-log/logged-query.ts";
import { QUERY_LOG_COLUMNS, type QueryLogColumn } from "../workload/query-log/query-log-columns.ts";

export type QueryLogRow = Readonly<Record<QueryLogColumn, string | number>>;

/** What the events don't carry because it belongs to the request. */
export interface RequestFigures {
  readonly statement: string;
  readonly stmtType: "QUERY" | "DML";
  /** Planner's, bytes. */
  readonly estimate: number;
  readonly coordinatorEstimate: number;
  /** Client's options, REQUEST_POOL included. */
  readonly options: Readonly<Record<string, string>>;
  readonly executorSlots: number;
  readonly coordinatorSlots: number;
}

/** Monday, 5 January 2026: what a run's time 0 is called where the log needs a date. Microseconds since 1970. */
export const DEFAULT_EPOCH = Date.UTC(2026, 0, 5) * 1000;

/** The product plans before it submits and writes 0 for an event that never was: so planning takes this long. */
const PLANNING = 1000;

type Submitted = EventOf<"submitted">;
type Admitted = EventOf<"admitted">;

interface InFlight {
  readonly submitted: Submitted;
  admitted: Admitted | null;
  wasQueued: boolean;
  /** Its first fragment, and its last. */
  begun: number | null;
  started: number | null;
  spilled: number;
  readonly peaks: Map<string, number>;
  readonly instances: Map<string, number>;
}

export class QueryLogExport {
  private readonly inFlight = new Map<string, InFlight>();
  private readonly write: (row: QueryLogRow) => void;
  private readonly figuresOf: (submitted: Submitted) => RequestFigures;
  private readonly isToldLater: boolean;
  private readonly epoch: number;

  /**
   * `isToldLater`: with `admissiond` a coordinator hears of an admission after it was decided, and only then its timeline
   * says so and its query begins (admission 7.7, 10.3).
   */
  constructor(
    write: (row: QueryLogRow) => void,
    figuresOf: (submitted: Submitted) => RequestFigures,
    isToldLater = false,
    epoch: number = DEFAULT_EPOCH,
  ) {
    this.write = write;
    this.figuresOf = figuresOf;
    this.isToldLater = isToldLater;
    this.epoch = epoch;
  }

  /** Queries without a row yet: the product would show them in the live table. */
  get unfinished(): number {
    return this.inFlight.size;
  }

  take(e: RunEvent): void {
    switch (e.kind) {
      case "submitted":
        this.inFlight.set(e.query, {
          submitted: e,
          admitted: null,
          wasQueued: false,
          begun: null,
          started: null,
          spilled: 0,
          peaks: new Map(),
          instances: new Map(),
        });
        return;
      case "queued":
        this.with(e.query, (q) => {
          q.wasQueued = true;
        });
        return;
      case "admitted":
        this.with(e.query, (q) => {
          q.admitted = e;
        });
        return;
      case "fragmentStarted":
        this.with(e.query, (q) => {
          q.begun ??= e.at;
          q.started = e.at;
          add(q.instances, e.host, 1);
        });
        return;
      case "fragmentFinished":
        this.with(e.query, (q) => {
          q.spilled += e.spilled;
          add(q.peaks, e.host, e.peak);
        });
        return;
      case "rejected":
        this.end(e.query, (q) => this.unservedRow(q, e.at, "Rejected", rejectionError(q.submitted.pool, e.reason)));
        return;
      case "timedOut":
        this.end(e.query, (q) =>
          this.unservedRow(
            q,
            e.at,
            "Timed out (queued)",
            timeoutError(e.timeout, q.submitted.pool, e.reason, e.details),
          ),
        );
        return;
      case "cancelled":
        // Cancelled while running: its row comes with the release, with everything it used.
        if (this.inFlight.get(e.query)?.admitted !== null) return;
        this.end(e.query, (q) => this.unservedRow(q, e.at, e.wasQueued ? "Cancelled (queued)" : "", "Cancelled"));
        return;
      case "unresolved":
        this.end(e.query, (q) => ({ ...this.unservedRow(q, e.at, "", e.error), resource_pool: "" }));
        return;
      case "released":
        this.end(e.query, (q) => this.servedRow(q, e));
        return;
      default:
        return;
    }
  }

  private with(query: string, change: (q: InFlight) => void): void {
    const q = this.inFlight.get(query);
    if (q !== undefined) change(q);
  }

  private end(query: string, row: (q: InFlight) => QueryLogRow): void {
    const q = this.inFlight.get(query);
    if (q === undefined) return;
    this.inFlight.delete(query);
    this.write(row(q));
  }

  private unservedRow(q: InFlight, at: number, result: string, status: string): QueryLogRow {
    const base = this.baseRow(q, at);
    return {
      ...base,
      query_status: status,
      query_state: "EXCEPTION",
      impala_query_end_state: "ERROR",
      admission_result: result,
      event_completed_admission: decimal(micros(at) - startOf(q)),
      event_unregister_query: decimal(micros(at) - startOf(q)),
    };
  }

  private servedRow(q: InFlight, e: EventOf<"released">): QueryLogRow {
    const { admitted } = q;
    // Released without an admission in the stream: the reader began in the middle of a run.
    if (admitted === null) return this.unservedRow(q, e.at, "", e.error ?? "OK");
    const since = (at: number): string => decimal(micros(at) - startOf(q));
    const done = since(e.at);
    const isOk = e.state === "finished";
    const figures = this.figuresOf(q.submitted);
    const peaks = [...q.peaks.values()];
    const peakMax = peaks.length > 0 ? Math.max(...peaks) : Math.max(0, e.peak);
    return {
      ...this.baseRow(q, e.at),
      query_status: isOk ? "OK" : (e.error ?? "Cancelled"),
      query_state: isOk ? "FINISHED" : "EXCEPTION",
      impala_query_end_state: isOk ? "FINISHED" : "ERROR",
      per_host_fragment_instances: admitted.hosts.map((h) => `${h}=${q.instances.get(h) ?? 1}`).join(","),
      backends_count: admitted.hosts.length,
      admission_result: resultText(admitted),
      cluster_memory_admitted: admitted.cluster,
      executor_group: admitted.group,
      compressed_bytes_spilled: q.spilled,
      event_completed_admission: since(this.isToldLater ? (q.begun ?? admitted.at) : admitted.at),
      event_all_backends_started: q.started === null ? since(admitted.at) : since(q.started),
      event_rows_available: done,
      event_first_row_fetched: done,
      event_last_row_fetched: isOk ? done : decimal(0),
      event_unregister_query: done,
      pernode_peak_mem_min: peaks.length > 0 ? Math.min(...peaks) : peakMax,
      pernode_peak_mem_max: peakMax,
      pernode_peak_mem_mean: peaks.length > 0 ? Math.round(peaks.reduce((a, b) => a + b, 0) / peaks.length) : peakMax,
      coordinator_slots: figures.coordinatorSlots,
      executor_slots: figures.executorSlots,
    };
  }

  /** Everything that is known of a query whatever became of it. */
  private baseRow(q: InFlight, ended: number): QueryLogRow {
    const { submitted } = q;
    const figures = this.figuresOf(submitted);
    const start = startOf(q);
    return {
      ...EMPTY_ROW,
      cluster_id: OWN_CLUSTER_ID,
      query_id: submitted.query,
      session_id: submitted.request,
      session_type: "HIVESERVER2",
      hiveserver2_protocol_version: "V6",
      db_user: submitted.user,
      db_user_connection: submitted.user,
      db_name: "default",
      impala_coordinator: submitted.coordinator,
      query_type: figures.stmtType,
      start_time_utc: timestamp(this.epoch + start),
      total_time_ms: decimal(micros(ended) - start),
      query_opts_config: optionsText(figures.options),
      resource_pool: submitted.pool,
      per_host_mem_estimate: figures.estimate,
      dedicated_coord_mem_estimate: figures.coordinatorEstimate,
      event_planning_finished: decimal(PLANNING),
      event_submit_for_admission: decimal(micros(submitted.at) - start),
      sql: figures.statement,
      tables_queried: submitted.queryClass.replace(/[.,]/g, "_"),
    };
  }
}

/** Microseconds of the run at which planning began, so that submission falls on the microsecond it did. */
const startOf = (q: InFlight): number => micros(Math.min(q.submitted.intended, q.submitted.at)) - PLANNING;

function resultText(a: Admitted): string {
  if (a.path === "immediately") return "Admitted immediately";
  return a.path === "trivially" ? "Admitted as a trivial query" : "Admitted (queued)";
}

const optionsText = (options: Readonly<Record<string, string>>): string =>
  Object.entries(options)
    .map(([name, value]) => `${name}=${value.includes(",") ? `"${value}"` : value}`)
    .join(",");

const micros = (ms: number): number => Math.round(ms * 1000);

/** DECIMAL(18,3) milliseconds. */
const decimal = (us: number): string => `${Math.trunc(us / 1000)}.${String(Math.abs(us) % 1000).padStart(3, "0")}`;

function timestamp(us: number): string {
  const iso = new Date(Math.floor(us / 1000)).toISOString();
  const rest = ((us % 1000) + 1000) % 1000;
  return `${iso.slice(0, 10)} ${iso.slice(11, 23)}${String(rest).padStart(3, "0")}`;
}

const add = (sums: Map<string, number>, key: string, n: number): void => {
  sums.set(key, (sums.get(key) ?? 0) + n);
};

const NUMBERS: ReadonlySet<QueryLogColumn> = new Set([
  "per_host_mem_estimate",
  "dedicated_coord_mem_estimate",
  "backends_count",
  "cluster_memory_admitted",
  "num_rows_fetched",
  "row_materialization_rows_per_sec",
  "compressed_bytes_spilled",
  "bytes_read_cache_total",
  "bytes_read_total",
  "pernode_peak_mem_min",
  "pernode_peak_mem_max",
  "pernode_peak_mem_mean",
  "coordinator_slots",
  "executor_slots",
]);

const DECIMALS = /^(?:event_|total_time_ms|row_materialization_time_ms|read_io_wait)/;

const EMPTY_ROW: QueryLogRow = Object.fromEntries(
  QUERY_LOG_COLUMNS.map((c) => [c, NUMBERS.has(c) ? 0 : DECIMALS.test(c) ? "0.000" : ""]),
) as QueryLogRow;

// Files

export const csvHeader = (): string => QUERY_LOG_COLUMNS.join(",");

export const csvLine = (row: QueryLogRow): string => QUERY_LOG_COLUMNS.map((c) => csvField(String(row[c]))).join(",");

const csvField = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** Decimals as JSON numbers, everything else as it is. */
export const jsonLine = (row: QueryLogRow): string =>
  JSON.stringify(row, (key, value) => (DECIMALS.test(key) && typeof value === "string" ? Number(value) : value));
