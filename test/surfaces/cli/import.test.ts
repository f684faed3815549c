import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { importLog, importText } from "../../../src/surfaces/cli/import.ts";
import {
  csvOf,
  fileWith,
  GiB,
  MiB,
  REJECTED_ROW,
  TABLE_ROW,
  type TableRow,
} from "../../workload/query-log/log-fixtures.ts";
import { waterhole } from "./command-line.ts";

const row = (i: number, fields: TableRow = {}): TableRow => ({
  ...TABLE_ROW,
  query_id: `${i}:0`,
  session_id: `${i}:0`,
  start_time_utc: `2026-08-22 10:${String(Math.floor(i / 60)).padStart(2, "0")}:${String(i % 60).padStart(2, "0")}`,
  ...fields,
});

const LOG: readonly TableRow[] = [
  ...Array.from({ length: 400 }, (_, i) =>
    row(
      i,
      i % 10 === 0
        ? {
            admission_result: "Admitted (queued)",
            event_completed_admission: "2101.000",
            event_last_row_fetched: "6101.000",
            event_unregister_query: "6200.000",
          }
        : {},
    ),
  ),
  ...Array.from({ length: 3 }, (_, i) => ({
    ...REJECTED_ROW,
    ...pick(row(100 + i), ["start_time_utc"]),
    query_id: `rejected-${i}:0`,
    sql: `insert ${"x".repeat(i + 1)}`,
  })),
  row(401, { admission_result: "", resource_pool: "", query_type: "DDL" }),
];

function pick(r: TableRow, keys: readonly string[]): TableRow {
  return Object.fromEntries(keys.map((k) => [k, r[k]!]));
}

const FAIR = `<?xml version="1.0"?>
<allocations><queue name="root"><queue name="etl"><maxResources>200000 mb, 0 vcores</maxResources></queue></queue></allocations>
`;
const SITE = `<?xml version="1.0"?>
<configuration>
<property><name>impala.admission-control.min-query-mem-limit.root.etl</name><value>1073741824</value></property>
<property><name>impala.admission-control.max-query-mem-limit.root.etl</name><value>8589934592</value></property>
</configuration>
`;

describe("waterhole import", () => {
  test("the report: what was cut, pools, classes, advice, guesses", async () => {
    const { report } = await importLog(fileWith(csvOf(LOG)), {});
    const text = importText({ ...report, file: "log.csv" });
    expect(text).toMatchInlineSnapshot(`
      "log.csv: query log table, 404 statements; 102 requests from 2026-08-22 10:00:00.101Z to 2026-08-22 10:01:40.101Z
      left out: 301 outside the covered range, 1 no admission
      cut: the last 300 s of arrivals are left out: long ones among them are not written yet

      pool      statements  at once  trivial  queued      rejected  timed out  cancelled  failed  wait p50      p95      max   lost  mem-time
      root.etl         102       90        0      11  1 queue full          0          0       0   2s000ms  2s000ms  2s000ms  1.0 %   100.0 %

      class              pool    n  estimate  admitted   peak p50        p95  inflation  hosts  hold p50      p95  waited p95  spilled  never used
      orders-36a7df  root.etl  101   1.00 GB   1.00 GB  700.00 MB  700.00 MB       1.5x     10   4s000ms  4s000ms     2s000ms    0.0 %   0.4 GiB·h
      and 1 smaller class

      K4  Set max-query-mem-limit of root.etl to 939524096 (896.00 MB): no peak in the log needs more, and 1 class is estimated above it (orders-36a7df).

      guessed for 1: refused queries have no duration: a finished one of the same class and size stands in for each, whole"
    `);
  });

  test("where no request is used, none is the first or the last", async () => {
    const refused = fileWith(csvOf([REJECTED_ROW]));
    const { report } = await importLog(refused, {});
    expect(report).toMatchObject({ statements: 1, requests: 0, from: null, to: null });
    expect(importText(report).split("\n")[0]).toMatch(/1 statement; 0 requests$/);
  });

  test("with today's pool files the amounts are checked", async () => {
    const options = { fairScheduler: fileWith(FAIR), llamaSite: fileWith(SITE) };
    const agreed = await importLog(fileWith(csvOf(LOG)), options);
    expect(importText(agreed.report)).toContain("agree with the pool files in all 400 rows");
    const other = LOG.map((r) => (r.admission_result === "Rejected" ? r : { ...r, cluster_memory_admitted: 77 * GiB }));
    const broken = await importLog(fileWith(csvOf(other)), options);
    expect(importText(broken.report)).toMatch(
      /400 of 400 amounts contradict the pool files .*recorded amounts are used/,
    );
    expect(broken.demand.requests[0]?.options).toMatchObject({
      memLimitExecutors: Math.round((77 * GiB - 100 * MiB) / 9),
      memLimitCoordinators: 100 * MiB,
    });
  });

  test("the trace is written, plain and anonymised", async () => {
    const trace = fileWith("");
    await importLog(fileWith(csvOf(LOG)), { trace });
    const lines = readFileSync(trace, "utf8").trimEnd().split("\n");
    expect(JSON.parse(lines[0]!)).toMatchObject({ format: "waterhole-trace", version: 2, requests: lines.length - 1 });
    expect(lines[1]).toContain('"user":"ana"');
    await importLog(fileWith(csvOf(LOG)), { trace, anonymise: true });
    expect(readFileSync(trace, "utf8")).not.toContain("ana");
  });

  test("a trace that cannot be written says so", async () => {
    await expect(importLog(fileWith(csvOf(LOG)), { trace: "/nowhere/at/all" })).rejects.toThrow(
      /\/nowhere\/at\/all: the trace cannot be written: there is no such folder\. Name another/,
    );
  });

  test.each([50, 60, 80, 120, 150])("no line is wider than a terminal of %i columns", async (columns) => {
    const { report } = await importLog(fileWith(csvOf(LOG)), {});
    const look = { colour: false, unicode: true, columns, tableColumns: columns };
    const lines = importText({ ...report, file: "log.csv" }, null, look).split("\n");
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns);
    expect(lines.filter((line) => line.startsWith("root.etl "))).toHaveLength(1);
  });

  test.each([
    [["--anonymise"], "--anonymise: it is the trace that is written without names.", "Add  --trace FILE"],
    [["--rename-pools", "--trace", "t"], "--rename-pools: pools are renamed in an anonymised trace only.", "Add"],
    [["--anonymise", "--classes", "c"], "--anonymise: a scenario of classes keeps the names", "Leave out --classes."],
    [["--llama-site", "l"], "--llama-site: a site file says nothing without its", "Add  --fair-scheduler FILE"],
  ])("%j would not be done, and that is said", async (flags, problem, remedy) => {
    const { code, stdout, stderr } = await waterhole("import", fileWith(csvOf(LOG)), ...flags);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr.startsWith(problem), stderr).toBe(true);
    expect(stderr).toContain(`\nnext: ${remedy}`);
  });

  test("the next step goes on with what was written", async () => {
    const log = fileWith(csvOf(LOG));
    const classes = fileWith("", "classes.json");
    const trace = fileWith("", "trace.jsonl");
    const nextOf = async (...flags: string[]): Promise<string | undefined> =>
      (await waterhole("import", log, ...flags)).stdout.trimEnd().split("\n").at(-1);
    expect(await nextOf()).toContain(`arrivals: [{ trace: ${log} }]`);
    expect(await nextOf("--trace", trace, "--classes", classes)).toContain(`arrivals: [{ trace: ${trace} }]`);
    expect(await nextOf("--classes", classes)).toContain(`waterhole simulate ${classes}`);
  });
});
