/**
 * Rows of a query log with neutral defaults, and the files made of them.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import type { LoggedQuery } from "../../../src/workload/query-log/logged-query.ts";
import { NO_OPTIONS } from "../../../src/workload/query-log/logged-query.ts";
import type { QueryLog } from "../../../src/workload/query-log/read-query-log.ts";

export const MiB = 1024 ** 2;
export const GiB = 1024 ** 3;

let folder: string | null = null;
let files = 0;

afterAll(() => {
  if (folder !== null) rmSync(folder, { recursive: true, force: true });
});

/** A new file in a folder of this process's own. */
export function fileWith(content: string | Buffer, name = "log"): string {
  folder ??= mkdtempSync(join(tmpdir(), "waterhole-log-"));
  const path = join(folder, `${files++}-${name}`);
  writeFileSync(path, content);
  return path;
}

export type TableRow = Readonly<Record<string, string | number>>;

/** Admitted at once at second 0, 1 GiB on ten hosts, held 4 s. */
export const TABLE_ROW: TableRow = {
  cluster_id: "c1",
  query_id: "7b4d1c9e02a6f315:c0de8f2100000000",
  session_id: "40be77a1c2d93e5f:9a01f7c3b8e64d20",
  db_user: "ana",
  impala_coordinator: "coord-1:27000",
  query_status: "OK",
  query_state: "FINISHED",
  impala_query_end_state: "FINISHED",
  query_type: "QUERY",
  network_address: "10.0.0.50:51020",
  start_time_utc: "2026-08-22 10:15:00.000000000",
  total_time_ms: "4200.000",
  query_opts_config: "REQUEST_POOL=root.etl",
  resource_pool: "root.etl",
  per_host_mem_estimate: GiB,
  dedicated_coord_mem_estimate: 100 * MiB,
  per_host_fragment_instances: "coord-1:27000=1,exec-1:27000=2",
  backends_count: 10,
  admission_result: "Admitted immediately",
  cluster_memory_admitted: 10 * GiB,
  compressed_bytes_spilled: 0,
  event_planning_finished: "100.000",
  event_submit_for_admission: "101.000",
  event_completed_admission: "102.500",
  event_first_row_fetched: "4000.000",
  event_last_row_fetched: "4102.500",
  event_unregister_query: "4200.000",
  pernode_peak_mem_min: 100 * MiB,
  pernode_peak_mem_max: 700 * MiB,
  pernode_peak_mem_mean: 400 * MiB,
  sql: "select region, sum(amount) from orders group by region",
  plan: "",
  tables_queried: "sales.orders",
  coordinator_slots: 1,
  executor_slots: 2,
};

export const REJECTED_ROW: TableRow = {
  ...TABLE_ROW,
  query_status: "Rejected query from pool root.etl: queue full, limit=50, num_queued=50.",
  query_state: "EXCEPTION",
  impala_query_end_state: "ERROR",
  admission_result: "Rejected",
  backends_count: 0,
  cluster_memory_admitted: 0,
  per_host_fragment_instances: "",
  event_first_row_fetched: "0",
  event_last_row_fetched: "0",
  pernode_peak_mem_min: 0,
  pernode_peak_mem_max: 0,
  pernode_peak_mem_mean: 0,
};

export function csvOf(rows: readonly TableRow[], delimiter = ",", columns = Object.keys(TABLE_ROW)): string {
  const field = (v: string | number | undefined): string => {
    const text = String(v ?? "");
    return text.includes(delimiter) || /["\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = rows.map((r) => columns.map((c) => field(r[c])).join(delimiter));
  return `${[columns.join(delimiter), ...lines].join("\n")}\n`;
}

export const jsonLinesOf = (rows: readonly TableRow[]): string => rows.map((r) => `${JSON.stringify(r)}\n`).join("");

let queries = 0;

/** One logged query as read, with an id of its own; the test says only what matters to it. Times in microseconds. */
export const logged = (fields: Partial<LoggedQuery>): LoggedQuery => ({
  line: 1,
  queryId: `${++queries}:0`,
  clusterId: null,
  sessionId: null,
  user: "ana",
  clientAddress: null,
  coordinator: "coord-1:27000",
  pool: "root.etl",
  statementType: "QUERY",
  isLogWriter: false,
  fingerprint: "f1",
  tables: ["sales.orders"],
  missingStats: null,
  statsMissing: false,
  start: 0,
  submitted: 1000,
  completedAdmission: 1000,
  firstRow: null,
  lastRow: 4_001_000,
  unregistered: 4_001_000,
  released: null,
  clientWait: null,
  outcome: "immediately",
  rejection: null,
  end: "finished",
  failedForMemory: false,
  estimate: GiB,
  coordinatorEstimate: 100 * MiB,
  reservation: null,
  options: NO_OPTIONS,
  clusterAdmitted: 10 * GiB,
  leastBackends: null,
  coordinatorOnly: null,
  backends: 10,
  hosts: null,
  peakMax: 700 * MiB,
  peakMin: null,
  peakMean: null,
  spilled: 0,
  executorSlots: 1,
  coordinatorSlots: 1,
  ...fields,
});

export const logOf = (queries: readonly LoggedQuery[], fields: Partial<QueryLog> = {}): QueryLog => ({
  file: "log.csv",
  form: "profiles",
  queries,
  unreadable: { count: 0, first: [] },
  warnings: [],
  missingColumns: [],
  ...fields,
});
