/**
 * An entry of the list that Cloudera Manager exports, and of flat lists from consoles (insight 4.1).
 *
 * Names drift between releases, every attribute is text, also the numbers; so names are matched leniently and
 * what is not there is unknown. These lists know waits as lengths, not as events: `planning_wait_time` stands
 * in for the time of submission, and the place is taken to be held until `endTime`.
 */
import {
  type Cell,
  type LogRow,
  momentOf,
  numberOf,
  sizeOf,
  textOf,
  UnreadableCell,
  waitOf,
  wholeOf,
} from "./cells.ts";
import {
  isLogWriterText,
  isMemoryFailure,
  isRefused,
  type LoggedQuery,
  NO_OPTIONS,
  optionsOf,
  outcomeOf,
  rejectionOf,
} from "./logged-query.ts";
import { endOfStatus } from "./query-log-table.ts";
import { fingerprintOf, tablesRead } from "./statement.ts";

export const CONSOLE_MARKS: readonly string[] = ["admission_wait", "cluster_memory_admitted"];

/** The list with each entry's attributes beside its fields, as scripts make it for spreadsheets. Names in lower case. */
export const isFlatManagerList = (names: readonly string[]): boolean =>
  names.includes("queryid") && names.includes("starttime") && names.includes("admission_result");

/** One view on an entry with nested attributes: an attribute, else a field of the entry itself. */
export function managerRow(entry: Readonly<Record<string, unknown>>, line: number): LogRow {
  const flat = new Map<string, Cell>();
  const take = (fields: unknown): void => {
    if (typeof fields !== "object" || fields === null) return;
    for (const [name, value] of Object.entries(fields)) {
      if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
        flat.set(name.toLowerCase(), value);
    }
  };
  take(entry);
  take(entry.attributes);
  const coordinator = entry.coordinator;
  if (typeof coordinator === "object" && coordinator !== null && "hostId" in coordinator)
    flat.set("coordinator", String(coordinator.hostId));
  return { line, cell: (column) => flat.get(column) };
}

export function queryOfManagerEntry(row: LogRow): LoggedQuery {
  const start = momentOf(row, "starttime");
  if (start === null) throw new UnreadableCell("startTime", "", "the start of the query");
  const end = momentOf(row, "endtime");
  const planning = waitOf(row, "planning_wait_time") ?? 0;
  const status = textOf(row, "query_status");
  const missing = textOf(row, "stats_missing") === "true";
  const duration = numberOf(row, "durationmillis");
  const unregistered = end !== null ? end - start : duration !== null ? Math.round(duration * 1000) : null;
  const query = commonOf(row, status, {
    start,
    planning,
    unregistered,
    pool: textOf(row, "pool") ?? textOf(row, "request_pool") ?? "",
    queryId: textOf(row, "queryid") ?? "",
    user: textOf(row, "user") ?? "",
    statementType: textOf(row, "querytype") ?? "",
  });
  const state = (textOf(row, "querystate") ?? "").toUpperCase();
  return {
    ...query,
    end: unregistered === null || /^(?:RUNNING|CREATED|INITIALIZED|COMPILED)$/.test(state) ? "running" : query.end,
    estimate: wholeOf(row, "estimated_per_node_peak_memory"),
    clusterAdmitted: null,
    backends: wholeOf(row, "num_backends"),
    leastBackends: leastBackendsOf(row),
    peakMax: wholeOf(row, "memory_per_node_peak"),
    spilled: wholeOf(row, "memory_spilled"),
    clientWait: waitOf(row, "client_fetch_wait_time"),
    statsMissing: missing,
    failedForMemory: query.failedForMemory || textOf(row, "oom") === "true",
  };
}

/**
 * Older Managers tell the peak over all hosts and that of the busiest one, but not how many hosts there were: none had
 * more than the busiest. Null where nothing was used.
 */
function leastBackendsOf(row: LogRow): number | null {
  const [all, busiest] = [wholeOf(row, "memory_aggregate_peak"), wholeOf(row, "memory_per_node_peak")];
  return all === null || !busiest ? null : Math.max(1, Math.ceil(all / busiest));
}

export function queryOfConsoleRow(row: LogRow): LoggedQuery {
  const start = momentOf(row, "start_time");
  if (start === null) throw new UnreadableCell("start_time", "", "the start of the query");
  const end = momentOf(row, "end_time");
  const status = textOf(row, "query_status");
  const query = commonOf(row, status, {
    start,
    planning: waitOf(row, "planning_wait_time") ?? 0,
    unregistered: end === null ? null : end - start,
    pool: textOf(row, "resource_pool") ?? "",
    queryId: textOf(row, "query_id") ?? "",
    user: textOf(row, "user") ?? textOf(row, "db_user") ?? "",
    statementType: textOf(row, "query_type") ?? "",
  });
  return {
    ...query,
    end: end === null ? "running" : query.end,
    clusterAdmitted: sizeOf(row, "cluster_memory_admitted") || null,
    estimate: sizeOf(row, "per_host_mem_estimate") ?? sizeOf(row, "estimated_per_node_peak_memory"),
    backends: wholeOf(row, "backends_count") ?? wholeOf(row, "num_backends"),
    peakMax: sizeOf(row, "memory_per_node_peak"),
    spilled: sizeOf(row, "memory_spilled"),
  };
}

interface Basics {
  readonly start: number;
  readonly planning: number;
  readonly unregistered: number | null;
  readonly pool: string;
  readonly queryId: string;
  readonly user: string;
  readonly statementType: string;
}

function commonOf(row: LogRow, status: string | null, basics: Basics): LoggedQuery {
  const { planning, ...rest } = basics;
  const statement = textOf(row, "statement") ?? textOf(row, "sql");
  const result = textOf(row, "admission_result");
  const wait = waitOf(row, "admission_wait");
  const named = outcomeOf(result, status);
  if (named === null) throw new UnreadableCell("admission_result", result, 'a result such as "Admitted immediately"');
  // A flat list has no result column: a wait says that there was a queue, a pool that admission saw it.
  const outcome = named === "none" && result === null && basics.pool !== "" ? guessedOutcome(wait) : named;
  return {
    ...rest,
    line: row.line,
    clusterId: null,
    sessionId: textOf(row, "session_id"),
    clientAddress: textOf(row, "network_address"),
    coordinator: textOf(row, "coordinator") ?? textOf(row, "impala_coordinator"),
    isLogWriter: isLogWriterText(statement),
    fingerprint: fingerprintOf(statement ?? ""),
    tables: tablesRead(statement, textOf(row, "database") ?? textOf(row, "default_db")),
    missingStats: null,
    statsMissing: false,
    submitted: planning,
    completedAdmission: outcome === "none" || outcome === "waiting" ? null : planning + (wait ?? 0),
    firstRow: null,
    lastRow: null,
    released: null,
    clientWait: null,
    outcome,
    rejection: outcome === "rejected" ? rejectionOf(status) : null,
    end: endOfStatus(status),
    failedForMemory: !isRefused(outcome) && isMemoryFailure(status),
    estimate: null,
    coordinatorEstimate: null,
    reservation: null,
    options: optionsOf(textOf(row, "query_opts_config")) ?? NO_OPTIONS,
    clusterAdmitted: null,
    backends: null,
    leastBackends: null,
    coordinatorOnly: null,
    hosts: null,
    peakMax: null,
    peakMin: null,
    peakMean: null,
    spilled: null,
    executorSlots: null,
    coordinatorSlots: null,
  };
}

/** Ten milliseconds: the timer around an admission that did not wait never reads more. */
const guessedOutcome = (wait: number | null): "immediately" | "fromQueue" =>
  (wait ?? 0) > 10_000 ? "fromQueue" : "immediately";
