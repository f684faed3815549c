import { join } from "node:path";
import * as zlib from "node:zlib";
import { gzipSync } from "node:zlib";
import { DuckDBInstance } from "@duckdb/node-api";
import { describe, expect, test } from "vitest";
import { readQueryLog } from "../../../src/workload/query-log/read-query-log.ts";
import { csvOf, fileWith, GiB, jsonLinesOf, MiB, REJECTED_ROW, TABLE_ROW, type TableRow } from "./log-fixtures.ts";

const QUEUED: TableRow = {
  ...TABLE_ROW,
  query_id: "7b4d1c9e02a6f315:c0de8f2200000000",
  admission_result: "Admitted (queued)",
  event_completed_admission: "38742.013",
  event_last_row_fetched: "51951.000",
  event_unregister_query: "52418.207",
};
const ROWS = [TABLE_ROW, QUEUED, REJECTED_ROW];

/** Node has it from 22.15 on. */
const HAS_ZSTD = "zstdDecompressSync" in zlib;

async function parquetOf(rows: readonly TableRow[], codec: string): Promise<string> {
  const json = fileWith(jsonLinesOf(rows), "rows.json");
  const path = join(json, "..", `${codec}-${rows.length}.parquet`);
  const connection = await (await DuckDBInstance.create(":memory:")).connect();
  await connection.run(
    `copy (select * replace (start_time_utc::timestamp as start_time_utc,
       event_completed_admission::decimal(18,3) as event_completed_admission,
       event_last_row_fetched::decimal(18,3) as event_last_row_fetched)
     from read_json('${json}')) to '${path}' (format parquet, codec '${codec}')`,
  );
  connection.closeSync();
  return path;
}

describe("insight 4.1 the form is recognised by content", () => {
  test("CSV, TSV, JSON lines, a JSON array, gzip and Parquet of the same rows read the same", async () => {
    const csv = await readQueryLog(fileWith(csvOf(ROWS), "no-ending"));
    expect(csv.form).toBe("query log table");
    expect(csv.queries).toHaveLength(3);
    const others = [
      fileWith(csvOf(ROWS, "\t")),
      fileWith(csvOf(ROWS).replaceAll("\n", "\r\n")),
      fileWith(`\uFEFF${csvOf(ROWS)}`),
      fileWith(jsonLinesOf(ROWS)),
      fileWith(JSON.stringify(ROWS)),
      fileWith(gzipSync(csvOf(ROWS))),
      fileWith(gzipSync(jsonLinesOf(ROWS))),
      await parquetOf(ROWS, "snappy"),
      await parquetOf(ROWS, "gzip"),
      ...(HAS_ZSTD ? [await parquetOf(ROWS, "zstd")] : []),
      // As Hive and beeline name columns.
      fileWith(csvOf(ROWS).replace(/^.*\n/, (head) => head.replace(/\w+/g, "impala_query_log.$&"))),
    ];
    const figures = (q: object): object => ({ ...q, line: 0 });
    for (const file of others)
      expect((await readQueryLog(file)).queries.map(figures), file).toEqual(csv.queries.map(figures));
  });

  test("a row's times, amounts, options and outcome", async () => {
    const { queries } = await readQueryLog(fileWith(csvOf(ROWS)));
    expect(queries[1]).toMatchObject({
      line: 3,
      outcome: "fromQueue",
      start: Date.UTC(2026, 7, 22, 10, 15) * 1000,
      submitted: 101_000,
      completedAdmission: 38_742_013,
      lastRow: 51_951_000,
      pool: "root.etl",
      estimate: GiB,
      peakMax: 700 * MiB,
      backends: 10,
      hosts: ["coord-1:27000", "exec-1:27000"],
      tables: ["sales.orders"],
      executorSlots: 2,
      end: "finished",
    });
  });

  test("what never happened is unknown, not 0", async () => {
    const { queries } = await readQueryLog(fileWith(csvOf(ROWS)));
    expect(queries[2]).toMatchObject({
      outcome: "rejected",
      rejection: "queueFull",
      lastRow: null,
      backends: null,
      clusterAdmitted: null,
      peakMax: null,
      hosts: null,
    });
  });

  test("columns in capitals, in another order, and missing ones", async () => {
    const columns = Object.keys(TABLE_ROW).filter((c) => c !== "executor_slots" && c !== "plan");
    const csv = csvOf(ROWS, ",", columns.reverse());
    const upper = csv.replace(/^[^\n]*/, (header) => header.toUpperCase());
    const log = await readQueryLog(fileWith(upper));
    expect(log.missingColumns).toEqual(["plan", "executor_slots"]);
    expect(log.queries[0]).toMatchObject({ executorSlots: null, peakMax: 700 * MiB });
  });

  test("a statement with line feeds, commas and quotes stays one field", async () => {
    const sql = 'select "a",\n b -- "odd\nfrom t';
    const { queries } = await readQueryLog(fileWith(csvOf([{ ...TABLE_ROW, sql }, QUEUED])));
    expect(queries.map((q) => q.line)).toEqual([2, 5]);
    expect(queries[0]?.fingerprint).not.toBe(queries[1]?.fingerprint);
  });

  test("options: MEM_LIMIT in bytes and with units", async () => {
    const rows = [
      "MEM_LIMIT=2147483648,REQUEST_POOL=root.etl",
      "mem_limit=2g",
      "MEM_LIMIT_EXECUTORS=512mb",
      "MEM_LIMIT=80%",
    ];
    const { queries } = await readQueryLog(fileWith(csvOf(rows.map((o) => ({ ...TABLE_ROW, query_opts_config: o })))));
    expect(queries.map((q) => q.options)).toMatchObject([
      { memLimit: 2 * GiB, requestPool: "root.etl" },
      { memLimit: 2 * GiB },
      { memLimit: 0, memLimitExecutors: 512 * MiB },
      { memLimit: 0 },
    ]);
  });

  test.each([
    ["Rejected query from pool p: queue full, limit=3, num_queued=3.", "queueFull"],
    [
      "Rejected query from pool p: request memory needed 4.35 GB is greater than pool max mem resources 4.00 GB.",
      "memory",
    ],
    ["Rejected query from pool p: minimum memory reservation is greater than memory available", "reservation"],
    ["Rejected query from pool p: disabled by requests limit set to 0", "disabled"],
    [
      "Rejected query from pool p: current per-user load 3 for user 'ana' is at or above the user limit 3 in pool 'p'",
      "quota",
    ],
    ["Rejected query from pool p: The coordinator no longer exists: x", "other"],
  ])("status %j is a rejection for %s", async (query_status, rejection) => {
    const { queries } = await readQueryLog(fileWith(csvOf([{ ...REJECTED_ROW, query_status }])));
    expect(queries[0]?.rejection).toBe(rejection);
  });
});

describe("insight 4.1 the Manager's list", () => {
  const entry = {
    queryId: "9a4:1",
    statement: "select 1",
    queryType: "QUERY",
    queryState: "FINISHED",
    startTime: "2026-08-22T10:15:02.000Z",
    endTime: "2026-08-22T10:15:32.000Z",
    durationMillis: 30_000,
    user: "bob",
    coordinator: { hostId: "h-1" },
    attributes: {
      pool: "root.bi",
      admission_result: "Admitted (queued)",
      admission_wait: "5000",
      planning_wait_time: "1000.5",
      estimated_per_node_peak_memory: "3.1E7",
      memory_per_node_peak: "1520435.2",
      memory_spilled: "0",
      client_fetch_wait_time: "2500",
      stats_missing: "true",
      oom: "false",
      num_backends: "4",
      query_status: "OK",
    },
  };

  test("attributes are text; waits are lengths", async () => {
    const log = await readQueryLog(fileWith(JSON.stringify({ queries: [entry], warnings: [] }, null, 2)));
    expect(log.form).toBe("manager list");
    expect(log.queries[0]).toMatchObject({
      pool: "root.bi",
      user: "bob",
      coordinator: "h-1",
      outcome: "fromQueue",
      submitted: 1_000_500,
      completedAdmission: 6_000_500,
      unregistered: 30_000_000,
      estimate: 31_000_000,
      peakMax: 1_520_435,
      clientWait: 2_500_000,
      statsMissing: true,
      backends: 4,
      end: "finished",
    });
  });

  test("flattened, as scripts make it for spreadsheets: JSON lines, a JSON array, CSV", async () => {
    const nested = await readQueryLog(fileWith(JSON.stringify({ queries: [entry] })));
    const { attributes, coordinator, ...fields } = entry;
    const flat = { ...fields, coordinator: coordinator.hostId, ...attributes };
    const names = Object.keys(flat);
    for (const text of [JSON.stringify(flat), JSON.stringify([flat]), csvOf([flat], ",", names)]) {
      const log = await readQueryLog(fileWith(text));
      expect(log.form).toBe("manager list");
      expect({ ...log.queries[0], line: 1 }).toEqual(nested.queries[0]);
    }
  });

  test.each([
    // A published row: 3.14 times the busiest host.
    ["4781060.0", "1520435.2", 4],
    ["3040870", "1520435", 2],
    ["3040871", "1520435", 3],
    ["1520435", "1520435", 1],
    ["0", "0", null],
    [undefined, "1520435", null],
  ])("without num_backends: a peak of %s over all and %s on one host takes %s hosts", async (all, one, least) => {
    const { num_backends: _, ...attributes } = entry.attributes;
    const old = { ...entry, attributes: { ...attributes, memory_aggregate_peak: all, memory_per_node_peak: one } };
    const { queries } = await readQueryLog(fileWith(JSON.stringify({ queries: [old] })));
    expect(queries[0]).toMatchObject({ backends: null, leastBackends: least });
  });

  test("it has no list of tables: those of the statement, in the query's database", async () => {
    const reading = { ...entry, statement: "select a from orders join crm.clients using (id)", database: "sales" };
    const { queries } = await readQueryLog(fileWith(JSON.stringify({ queries: [reading] })));
    expect(queries[0]?.tables).toEqual(["crm.clients", "sales.orders"]);
  });

  test("Unknown means that admission never saw it; no end means running", async () => {
    const ddl = { ...entry, attributes: { ...entry.attributes, admission_result: "Unknown" } };
    const running = { ...entry, endTime: null, durationMillis: null, queryState: "RUNNING" };
    const { queries } = await readQueryLog(fileWith(JSON.stringify({ queries: [ddl, running] })));
    expect(queries.map((q) => [q.outcome, q.end])).toEqual([
      ["none", "finished"],
      ["fromQueue", "running"],
    ]);
  });

  test("an empty list says what to do", async () => {
    await expect(readQueryLog(fileWith('{"queries": []}'))).rejects.toThrow(/holds no queries.*Widen the time range/);
  });

  test("a flat console list: waits in ms, memory as text with a unit", async () => {
    const csv =
      "start_time,end_time,resource_pool,admission_wait,query_state,query_status,cluster_memory_admitted\n" +
      "2026-08-22 10:15:00,2026-08-22 10:15:10,root.default,4000,FINISHED,OK,4.20 GB\n" +
      "2026-08-22 10:16:00,2026-08-22 10:28:00,root.default,720000,EXCEPTION,Admission for query exceeded timeout 720000ms in pool root.default. Queued reason: x,0\n";
    const log = await readQueryLog(fileWith(csv));
    expect(log.form).toBe("console list");
    expect(log.queries).toMatchObject([
      { outcome: "fromQueue", completedAdmission: 4_000_000, clusterAdmitted: Math.round(4.2 * GiB), end: "finished" },
      { outcome: "timedOut", completedAdmission: 720_000_000, clusterAdmitted: null },
    ]);
  });
});

describe("insight 4.1 wrong files say where, what, and what to do", () => {
  test.each([
    ["an empty file", "", /the file is empty\. Give a query log table/],
    ["another table", "a,b,c\n1,2,3\n", /:1: no query log begins with "a,b,c"\. Expected is a query log table/],
    ["garbage", "x".repeat(100_000), /:1: no query log begins with/],
    ["zero bytes", "a\u0000b", /not UTF-8 text/],
    ["the shell's frame", "+-----+----+\n| query_id |\n", /framed table.*impala-shell -B --print_header/],
    ["a table without some columns", "query_id,sql\n1,2\n", /no columns admission_result, event_completed_admission/],
    ["JSON without them", '{"query_id":"1","admission_result":""}', /there is no column event_completed_admission\. /],
    ["no header", csvOf([TABLE_ROW]).replace(/^.*\n/, ""), /the first line is a query already.*--print_header/],
    ["a profile as JSON", '[{"contents":{"profile_name":"Query (id=1:2)"}}]', /a profile as JSON.*Text Profile/],
    ["ORC", "ORC\u0008\u0003\u0000", /an ORC file.*Parquet, CSV or JSON lines/],
    ["zip", "PK\u0003\u0004\u0000", /a zip file.*Unpack it/],
    ["an encoded profile log", `1724318102118 7b4d1c9e02a6f315:c0de8f2100000000 eJzs\n`, /impala-profile-tool/],
    ["broken JSON", '{"queries": [\n{"queryId": 1,}\n]}', /:2: broken JSON/],
    ["a header alone", csvOf([]), /a header and no rows/],
    ["an open quote", `${csvOf([TABLE_ROW])}"never closed\n`, /:3: a quoted field opens here and never closes/],
  ])("%s", async (_name, content, message) => {
    await expect(readQueryLog(fileWith(content))).rejects.toThrow(message);
  });

  test("a missing file", async () => {
    await expect(readQueryLog("/nowhere/log.csv")).rejects.toThrow(/\/nowhere\/log\.csv.*no such file/);
  });

  test("ten megabytes of binary garbage", async () => {
    await expect(readQueryLog(fileWith(Buffer.alloc(10 << 20, 0xa7)))).rejects.toThrow(
      /no query log begins with|UTF-8/,
    );
  });

  test("a damaged Parquet and a cut gzip", async () => {
    await expect(readQueryLog(fileWith("PAR1 and then nothing of it"))).rejects.toThrow(/broken Parquet/);
    const gz = gzipSync(csvOf(Array.from({ length: 2000 }, (_, i) => ({ ...TABLE_ROW, query_id: `${i * 7919}:0` }))));
    await expect(readQueryLog(fileWith(gz.subarray(0, gz.length - 500)))).rejects.toThrow(/gzip data ends early/);
  });

  test("one bad row in a hundred is left out and counted, more than that is an error with the first one's place", async () => {
    const bad = { ...TABLE_ROW, backends_count: "many" };
    const good = Array.from({ length: 99 }, () => TABLE_ROW);
    const log = await readQueryLog(fileWith(csvOf([...good, bad])));
    expect(log.queries).toHaveLength(99);
    expect(log.unreadable).toEqual({
      count: 1,
      first: [{ line: 101, problem: 'column backends_count is "many"; expected a number' }],
    });
    await expect(readQueryLog(fileWith(csvOf([...good, bad, bad])))).rejects.toThrow(
      /:101: column backends_count is "many"; expected a number \(2 of 101 rows cannot be read\)\. Mend or remove/,
    );
  });

  test("a row with too few fields", async () => {
    await expect(readQueryLog(fileWith(`${csvOf([])}a,b\n`))).rejects.toThrow(/:2: 2 fields; expected \d+/);
  });
});
