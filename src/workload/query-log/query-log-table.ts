/**
 * A row of `sys.impala_query_log` or `sys.impala_query_live` -> a logged query (surfaces 4).
 *
 * Columns are taken by name; only appended over the releases, so a missing one is an older log or somebody's
 * selection of columns, and its value is unknown.
 */
import { type LogRow, microsOf, momentOf, numberOf, sizeBytes, textOf, UnreadableCell, wholeOf } from "./cells.ts";
import {
  hostsOf,
  isAdmitted,
  isEmptyGroup,
  isLogWriterText,
  isMemoryFailure,
  isRefused,
  type LoggedEnd,
  type LoggedQuery,
  optionsOf,
  outcomeOf,
  rejectionOf,
} from "./logged-query.ts";
import type { QueryLogColumn } from "./query-log-columns.ts";
import { fingerprintOf, reservationText, tablesOf, tablesWithoutStats } from "./statement.ts";

/** What makes a table of columns this table; nothing else is required. */
export const TABLE_MARKS: readonly QueryLogColumn[] = ["query_id", "admission_result", "event_completed_admission"];

/** Read from the file when it lets us choose (Parquet): the wide text columns we never look at stay there. */
export const TABLE_COLUMNS: readonly QueryLogColumn[] = [
  ...TABLE_MARKS,
  "cluster_id",
  "session_id",
  "db_user",
  "impala_coordinator",
  "query_status",
  "query_state",
  "impala_query_end_state",
  "query_type",
  "network_address",
  "start_time_utc",
  "total_time_ms",
  "query_opts_config",
  "resource_pool",
  "per_host_mem_estimate",
  "dedicated_coord_mem_estimate",
  "per_host_fragment_instances",
  "backends_count",
  "cluster_memory_admitted",
  "compressed_bytes_spilled",
  "event_submit_for_admission",
  "event_first_row_fetched",
  "event_last_row_fetched",
  "event_unregister_query",
  "pernode_peak_mem_min",
  "pernode_peak_mem_max",
  "pernode_peak_mem_mean",
  "sql",
  "plan",
  "tables_queried",
  "coordinator_slots",
  "executor_slots",
];

export function queryOfTableRow(row: LogRow): LoggedQuery {
  const status = textOf(row, "query_status");
  const result = textOf(row, "admission_result");
  const outcome = outcomeOf(result, status);
  if (outcome === null) throw new UnreadableCell("admission_result", result, 'a result such as "Admitted immediately"');
  const start = momentOf(row, "start_time_utc");
  if (start === null) throw new UnreadableCell("start_time_utc", "", "the start of the query");
  const plan = textOf(row, "plan");
  const reservation = reservationText(plan);
  const admittedAtAll = numberOf(row, "backends_count") !== 0;
  // Whoever ran and shows 0 used nothing: trivial queries do.
  const peakOf = (column: string): number | null =>
    isAdmitted(outcome) ? wholeOf(row, column) : positive(wholeOf(row, column));
  return {
    line: row.line,
    queryId: textOf(row, "query_id") ?? "",
    clusterId: textOf(row, "cluster_id"),
    sessionId: textOf(row, "session_id"),
    user: textOf(row, "db_user") ?? "",
    clientAddress: textOf(row, "network_address"),
    coordinator: textOf(row, "impala_coordinator"),
    pool: textOf(row, "resource_pool") ?? "",
    statementType: textOf(row, "query_type") ?? "",
    isLogWriter: isLogWriterText(textOf(row, "sql")),
    fingerprint: fingerprintOf(textOf(row, "sql") ?? ""),
    tables: tablesOf(textOf(row, "tables_queried")),
    missingStats: tablesWithoutStats(plan),
    statsMissing: (tablesWithoutStats(plan)?.length ?? 0) > 0,
    start,
    submitted: eventOf(row, "event_submit_for_admission"),
    completedAdmission: eventOf(row, "event_completed_admission"),
    firstRow: eventOf(row, "event_first_row_fetched"),
    lastRow: eventOf(row, "event_last_row_fetched"),
    unregistered: eventOf(row, "event_unregister_query") ?? eventOf(row, "total_time_ms"),
    released: null,
    clientWait: null,
    outcome,
    rejection: outcome === "rejected" ? rejectionOf(status) : null,
    end: endOf(row, status),
    failedForMemory: !isRefused(outcome) && isMemoryFailure(status),
    estimate: wholeOf(row, "per_host_mem_estimate"),
    coordinatorEstimate: wholeOf(row, "dedicated_coord_mem_estimate"),
    reservation: reservation === null ? null : sizeBytes(reservation),
    options: optionsOf(textOf(row, "query_opts_config")),
    clusterAdmitted: admittedAtAll ? positive(wholeOf(row, "cluster_memory_admitted")) : null,
    backends: positive(wholeOf(row, "backends_count")),
    leastBackends: null,
    coordinatorOnly: isEmptyGroup(textOf(row, "executor_group")),
    hosts: hostsOf(textOf(row, "per_host_fragment_instances")),
    peakMax: peakOf("pernode_peak_mem_max"),
    peakMin: peakOf("pernode_peak_mem_min"),
    peakMean: peakOf("pernode_peak_mem_mean"),
    spilled: wholeOf(row, "compressed_bytes_spilled"),
    executorSlots: wholeOf(row, "executor_slots"),
    coordinatorSlots: wholeOf(row, "coordinator_slots"),
  };
}

/** The table writes 0 for an event that never happened and for a figure of a query that never ran. */
const positive = (n: number | null): number | null => (n === 0 ? null : n);
const eventOf = (row: LogRow, column: string): number | null => positive(microsOf(row, column));

const endOf = (row: LogRow, status: string | null): LoggedEnd =>
  endOfQuery(textOf(row, "impala_query_end_state") ?? textOf(row, "query_state"), status);

/** `state` in either of the product's two namings. */
export function endOfQuery(state: string | null, status: string | null): LoggedEnd {
  if (/^(?:INITIALIZED|PENDING|RUNNING|CREATED|COMPILED)$/i.test(state ?? "")) return "running";
  return endOfStatus(status);
}

/** Ended well, by somebody's wish, or by an error: only the status tells the last two apart. */
export function endOfStatus(status: string | null): LoggedEnd {
  if (status === null || status === "OK") return "finished";
  return /^\s*cancelled|cancelled (?:from|by|due)|session closed|expired due to|client inactivity/i.test(status)
    ? "cancelled"
    : "failed";
}
