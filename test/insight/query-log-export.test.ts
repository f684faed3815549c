import { describe, expect, test } from "vitest";
import type { RunEvent } from "../../src/core/events.ts";
import type { Bytes, Instant, Millis } from "../../src/core/units.ts";
import {
  csvHeader,
  csvLine,
  jsonLine,
  QueryLogExport,
  type QueryLogRow,
  type RequestFigures,
} from "../../src/insight/query-log-export.ts";
import { DEFAULT_DEMAND, demandOf } from "../../src/workload/query-log/demand.ts";
import { QUERY_LOG_COLUMNS } from "../../src/workload/query-log/query-log-columns.ts";
import { readQueryLog } from "../../src/workload/query-log/read-query-log.ts";
import { fileWith, GiB, MiB } from "../workload/query-log/log-fixtures.ts";

const FIGURES: RequestFigures = {
  statement: 'select "a", b\nfrom tile',
  stmtType: "QUERY",
  estimate: 1.5 * GiB,
  coordinatorEstimate: 100 * MiB,
  options: { MEM_LIMIT: "2g", REQUEST_POOL: "root.dashboards" },
  executorSlots: 4,
  coordinatorSlots: 1,
};

const t = (ms: number): Instant => ms as Instant;
const HOSTS = ["exec-1:27000", "exec-2:27000"];

const submitted = (query: string, at: number, attempt = 1, request = query): RunEvent => ({
  kind: "submitted",
  at: t(at),
  query,
  queryClass: "tile",
  pool: "root.dashboards",
  user: "ana",
  coordinator: "exec-1:27000",
  intended: t(at),
  firstIntended: t(at),
  attempt,
  request,
});
const admitted = (query: string, at: number, waited: number): RunEvent => ({
  kind: "admitted",
  at: t(at),
  query,
  path: waited === 0 ? "immediately" : "fromQueue",
  waited: waited as Millis,
  group: "default",
  perHost: (1.5 * GiB) as Bytes,
  onCoordinator: (1.5 * GiB) as Bytes,
  cluster: (3 * GiB) as Bytes,
  memLimit: 1.5 * GiB,
  coordinatorMemLimit: 1.5 * GiB,
  hosts: HOSTS,
  stale: null,
});
const finished = (query: string, at: number, host: string, peak: number, spilled: number): RunEvent => ({
  kind: "fragmentFinished",
  at: t(at),
  query,
  host,
  instance: 0,
  peak: peak as Bytes,
  spilled: spilled as Bytes,
  error: null,
});
const released = (query: string, at: number): RunEvent => ({
  kind: "released",
  at: t(at),
  query,
  state: "finished",
  peak: GiB,
  error: null,
});

/** One at once, one from the queue, one rejected and tried again, one timed out, one cancelled, one still running. */
const EVENTS: readonly RunEvent[] = [
  submitted("1:0", 0),
  admitted("1:0", 0, 0),
  submitted("2:0", 0.001),
  {
    kind: "queued",
    at: t(0.001),
    query: "2:0",
    reason: { rule: "ADM-2", running: 1, limit: 1, stale: null },
    timeout: 30_000 as Millis,
  },
  submitted("3:0", 10),
  {
    kind: "rejected",
    at: t(10),
    query: "3:0",
    reason: { rule: "REJ-A5", limit: 1, queued: 1, stale: null },
    waited: 0 as Millis,
    fromQueue: false,
  },
  finished("1:0", 4000, HOSTS[0]!, 700 * MiB, 5 * MiB),
  finished("1:0", 4000.123, HOSTS[1]!, 900 * MiB, 0),
  released("1:0", 4000.123),
  admitted("2:0", 4100.5, 4100.499),
  submitted("4:0", 5000, 2, "3:0"),
  admitted("4:0", 5000, 0),
  released("4:0", 5500),
  submitted("5:0", 6000),
  submitted("6:0", 6001),
  {
    kind: "timedOut",
    at: t(36_000),
    query: "5:0",
    waited: 30_000 as Millis,
    timeout: 30_000 as Millis,
    reason: { rule: "ADM-1", queued: 2, stale: null },
    details: "Not Applicable",
  },
  { kind: "cancelled", at: t(36_500), query: "6:0", waited: 30_499 as Millis, wasQueued: true },
  released("2:0", 40_000),
  submitted("7:0", 41_000),
  admitted("7:0", 41_000, 0),
];

function exported(events: readonly RunEvent[]): { rows: QueryLogRow[]; unfinished: number } {
  const rows: QueryLogRow[] = [];
  const log = new QueryLogExport(
    (row) => rows.push(row),
    () => FIGURES,
  );
  for (const e of events) log.take(e);
  return { rows, unfinished: log.unfinished };
}

describe("surfaces 4 a run as a query log", () => {
  test("56 columns in the table's order", () => {
    expect(QUERY_LOG_COLUMNS).toHaveLength(56);
    expect(Object.keys(exported(EVENTS).rows[0]!)).toEqual([...QUERY_LOG_COLUMNS]);
    expect(csvHeader().split(",")[55]).toBe("executor_slots");
  });

  test("a row is written when its query is over; what still runs has none", () => {
    const { rows, unfinished } = exported(EVENTS);
    expect(rows.map((r) => r.query_id)).toEqual(["3:0", "1:0", "4:0", "5:0", "6:0", "2:0"]);
    expect(unfinished).toBe(1);
  });

  test("texts and amounts are the product's", () => {
    const [rejected, served, , timedOut, cancelled, queued] = exported(EVENTS).rows;
    expect(rejected).toMatchObject({
      admission_result: "Rejected",
      query_status: "Rejected query from pool root.dashboards: queue full, limit=1, num_queued=1.",
      backends_count: 0,
      cluster_memory_admitted: 0,
      event_last_row_fetched: "0.000",
    });
    expect(served).toMatchObject({
      admission_result: "Admitted immediately",
      query_status: "OK",
      backends_count: 2,
      cluster_memory_admitted: 3 * GiB,
      pernode_peak_mem_min: 700 * MiB,
      pernode_peak_mem_max: 900 * MiB,
      compressed_bytes_spilled: 5 * MiB,
      per_host_fragment_instances: "exec-1:27000=1,exec-2:27000=1",
      query_opts_config: "MEM_LIMIT=2g,REQUEST_POOL=root.dashboards",
      start_time_utc: "2026-01-04 23:59:59.999000",
      event_completed_admission: "1.000",
      event_last_row_fetched: "4001.123",
    });
    expect(queued).toMatchObject({ admission_result: "Admitted (queued)", event_completed_admission: "4101.499" });
    expect(timedOut?.admission_result).toBe("Timed out (queued)");
    expect(timedOut?.query_status).toBe(
      "Admission for query exceeded timeout 30000ms in pool root.dashboards. Queued reason: queue is not empty (size 2); queued queries are executed first. Additional Details: Not Applicable",
    );
    expect(cancelled?.admission_result).toBe("Cancelled (queued)");
  });

  test("an unresolved query has no pool and no result; one cancelled while running keeps its figures", () => {
    const { rows } = exported([
      submitted("1:0", 0),
      { kind: "unresolved", at: t(0), query: "1:0", error: "Request from user 'x' denied" },
      submitted("2:0", 0),
      admitted("2:0", 0, 0),
      { kind: "cancelled", at: t(50), query: "2:0", waited: 0 as Millis, wasQueued: false },
      { kind: "released", at: t(60), query: "2:0", state: "cancelled", peak: -1, error: null },
    ]);
    expect(rows[0]).toMatchObject({ resource_pool: "", admission_result: "", query_state: "EXCEPTION" });
    expect(rows[1]).toMatchObject({
      admission_result: "Admitted immediately",
      query_status: "Cancelled",
      backends_count: 2,
    });
  });

  test.each([
    ["CSV", (rows: readonly QueryLogRow[]) => [csvHeader(), ...rows.map(csvLine)].join("\n")],
    ["JSON lines", (rows: readonly QueryLogRow[]) => rows.map(jsonLine).join("\n")],
  ])(
    "read back from %s: the same arrivals, waits, holds, amounts and requests, to the microsecond",
    async (_form, text) => {
      const log = await readQueryLog(fileWith(text(exported(EVENTS).rows)));
      expect(log.missingColumns).toEqual([]);
      const demand = demandOf(log, DEFAULT_DEMAND);
      expect(demand.coverage.cuts).toEqual([]);
      expect(demand.attempts).toMatchObject({ attempts: 6, requests: 5 });
      expect(demand.requests.map((r) => [r.at, r.hold, r.recorded.wait, r.recorded.outcome, r.queryClass])).toEqual([
        [0, 4_000_123, 0, "immediately", "tile"],
        [1, 35_899_500, 4_100_499, "fromQueue", "tile"],
        [10_000, expect.any(Number), 0, "rejected", "tile"],
        [6_000_000, expect.any(Number), 30_000_000, "timedOut", "tile"],
        [6_001_000, expect.any(Number), 30_499_000, "cancelledInQueue", "tile"],
      ]);
      expect(demand.requests[0]).toMatchObject({
        estimate: 1.5 * GiB,
        coordinatorEstimate: 100 * MiB,
        backends: 2,
        slots: 4,
        peak: 900 * MiB,
        spilled: 5 * MiB,
        options: { memLimit: 2 * GiB },
      });
    },
  );
});
