import { describe, expect, test } from "vitest";
import { reservationLimitFor } from "../../../src/core/memory/reservation-limit.ts";
import { anonymised } from "../../../src/workload/query-log/anonymise.ts";
import { DEFAULT_DEMAND, demandOf } from "../../../src/workload/query-log/demand.ts";
import { readQueryLog } from "../../../src/workload/query-log/read-query-log.ts";
import { type TracedRequest, traceLines } from "../../../src/workload/query-log/traced-request.ts";
import { csvOf, fileWith, GiB, TABLE_ROW, type TableRow } from "./log-fixtures.ts";

const KEY = new Uint8Array(32).fill(7);
const WORDS = {
  db_user: "annabelle",
  resource_pool: "root.finance.weekly",
  impala_coordinator: "quarterdeck-1:27000",
  tables_queried: "payroll.salaries",
  sql: "select secretcolumn from payroll.salaries where office = 'Ulaanbaatar'",
  query_status: "OK",
  query_id: "feedfacecafebeef:0000000000000000",
  session_id: "0123456789abcdef:fedcba9876543210",
  network_address: "203.0.113.77:4711",
  per_host_fragment_instances: "quarterdeck-2:27000=1",
};

async function traceOf(rows: number, fields: TableRow = {}) {
  const csv = csvOf(
    Array.from({ length: rows }, (_, i) => ({
      ...TABLE_ROW,
      ...WORDS,
      ...fields,
      query_id: `${WORDS.query_id}${i}`,
      per_host_mem_estimate: GiB + i,
    })),
  );
  const demand = demandOf({ ...(await readQueryLog(fileWith(csv))), form: "profiles" }, DEFAULT_DEMAND);
  return { demand, hidden: anonymised(demand.start, demand.requests, { key: KEY, weeks: -60, renamePools: true }) };
}

describe("insight 4.7 anonymised traces", () => {
  test("no word of four letters or more of the log's text columns is left", async () => {
    const { hidden } = await traceOf(6);
    const text = [...traceLines(hidden.start, hidden.requests)].join("\n").toLowerCase();
    const words = Object.values(WORDS)
      .join(" ")
      .toLowerCase()
      .match(/[a-z0-9]{4,}/g)!
      .filter((w) => !["root", "27000"].includes(w));
    // The format's own words are no secrets of the log.
    for (const word of words.filter((w) => !["select", "where", "from", "0000000000000000"].includes(w)))
      expect(text, word).not.toContain(word);
  });

  test("the key decides the names, equal names stay equal, and pools can be renamed in step", async () => {
    const { demand, hidden } = await traceOf(6);
    expect(new Set(hidden.requests.map((r) => r.user)).size).toBe(1);
    expect(hidden.pools.get("root.finance.weekly")).toMatch(/^root\.p-[0-9a-f]{10}\.p-[0-9a-f]{10}$/);
    const other = anonymised(demand.start, demand.requests, {
      key: KEY.map((b) => b + 1),
      weeks: -60,
      renamePools: true,
    });
    expect(other.requests[0]?.user).not.toBe(hidden.requests[0]?.user);
    const kept = anonymised(demand.start, demand.requests, { key: KEY, weeks: -60, renamePools: false });
    expect(kept.requests[0]?.pool).toBe("root.finance.weekly");
  });

  test("weekday and hour stay, amounts keep three digits, times between requests are untouched", async () => {
    const { demand, hidden } = await traceOf(6);
    expect((demand.start - hidden.start) % (7 * 86_400e6)).toBe(0);
    expect(hidden.requests.map((r) => r.at)).toEqual(demand.requests.map((r) => r.at));
    expect(hidden.requests[0]?.estimate).toBe(1_080_000_000);
    expect(hidden.requests[0]?.hold).toBe(4_000_000);
  });

  test("what fitted under its limit still does (R8)", async () => {
    const { demand, hidden } = await traceOf(6, { pernode_peak_mem_max: GiB });
    const fits = ({ reserved, estimate }: TracedRequest): boolean => reserved <= reservationLimitFor(estimate, -1, 0);
    expect([...demand.requests, ...hidden.requests].map(fits)).toEqual(Array(12).fill(true));
    expect(hidden.requests[0]?.reserved).toBe(858_000_000);
  });

  test("classes with fewer than five executions become one a size", async () => {
    const { hidden } = await traceOf(4);
    expect(hidden.requests.map((r) => r.queryClass)).toEqual(["rare-30", "rare-30", "rare-30", "rare-30"]);
  });
});
