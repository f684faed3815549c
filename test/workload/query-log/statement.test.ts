import { describe, expect, test } from "vitest";
import {
  fingerprintOf,
  normalStatement,
  reservationText,
  tablesOf,
  tablesRead,
  tablesWithoutStats,
} from "../../../src/workload/query-log/statement.ts";

describe("insight 4.5 statement fingerprints", () => {
  test.each([
    ["select a from t where d = '2026-01-01'", "SELECT a\n  FROM t -- of today\n WHERE d = '2026-12-31'"],
    ["select a from t where id in (1)", "select a from t where id in (1, 2, 3)"],
    ["select a from t where id in (1,2)", "/* report 17 */ select a from t where id in ('x')"],
    ["select 'it''s' from t", 'select "it" from t;'],
    ["select 'a\\'b' from t", "select 'c' from t"],
    ["select `A` from t", "select a from t"],
    ["select 1.5e3 from t", "select 7 from t"],
    ["insert into t values (1,'a'),(2,'b')", "insert into t values (3,'c')"],
  ])("%j and %j are one statement", (a, b) => {
    expect(fingerprintOf(a)).toBe(fingerprintOf(b));
  });

  test.each([
    ["select a from t", "select a from u"],
    ["select a from t", "select b from t"],
    ["select a from t where b = 1", "select a from t where b > 1"],
    ["select a from t1", "select a from t2"],
  ])("%j and %j are two", (a, b) => {
    expect(fingerprintOf(a)).not.toBe(fingerprintOf(b));
  });

  test("a quote that never closes ends with the text", () => {
    expect(normalStatement("select 'abc")).toBe("select ?");
    expect(normalStatement("select /* abc")).toBe("select");
  });

  test("no text, no fingerprint", () => {
    expect(fingerprintOf("")).toBeNull();
    expect(fingerprintOf("-- only a comment")).toBeNull();
  });

  test("tables, missing statistics and reservations are read where the product writes them", () => {
    expect(tablesOf("sales.orders, Sales.Items,sales.orders")).toEqual(["sales.items", "sales.orders"]);
    expect(tablesOf(null)).toEqual([]);
    const plan =
      "Max Per-Host Resource Reservation: Memory=15.94MB Threads=4\nWARNING: The following tables are missing relevant table and/or column statistics.\nsales.orders, sales.items\n\nPLAN-ROOT SINK";
    expect(tablesWithoutStats(plan)).toEqual(["sales.items", "sales.orders"]);
    expect(tablesWithoutStats("PLAN-ROOT SINK")).toEqual([]);
    expect(tablesWithoutStats(null)).toBeNull();
    expect(reservationText(plan)).toBe("15.94MB");
  });
});

describe("insight 4.5 tables of a statement, where a log has no list", () => {
  test.each([
    ["select a from t", ["sales.t"]],
    [
      "SELECT a FROM Other.T x JOIN `sales`.`u` y ON x.k = y.k left join v using (k)",
      ["other.t", "sales.u", "sales.v"],
    ],
    ["with w as (select a from t where b > 1) select * from w join u", ["sales.t", "sales.u"]],
    ["select count(*) from (select k from t group by k) x", ["sales.t"]],
    ["select extract(year from sold), trim(both ' ' from name) from t -- from nowhere", ["sales.t"]],
    ["insert into t select 'from x' from u where v in (select k from w)", ["sales.u", "sales.w"]],
    ["select 1", []],
  ])("%s", (sql, tables) => {
    expect(tablesRead(sql, "sales")).toEqual(tables);
  });

  test("without a database names stay as they are; without a text there are none", () => {
    expect(tablesRead("select a from t join b.u", null)).toEqual(["b.u", "t"]);
    expect(tablesRead(null, "sales")).toEqual([]);
  });
});
