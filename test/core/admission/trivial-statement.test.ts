import { describe, expect, test } from "vitest";
import { isTrivialStatement } from "../../../src/core/admission/trivial-statement.ts";

describe("5.3 trivial statements", () => {
  test.each([
    "select 1",
    "SELECT 1;",
    "select 'it''s union all', now() -- union all select 2",
    "select * from t limit 0",
    "select * from t where x in (select 1) limit 0",
    "(select 1)",
    "select a from (select 1 a) s",
    "select id from t limit 0 union all select 1",
    "select id from t limit 0 union select id from u limit 0",
    "select 1 union all select 2 limit 0",
  ])("%s", (sql) => {
    expect(isTrivialStatement(sql)).toBe(true);
  });

  test.each([
    "select 1 union all select 2",
    "select * from t",
    "select * from t limit 1",
    "select * from t limit 10",
    "select sleep(1)",
    "select a from (select 1 a, sleep(1)) s",
    "select count(*) from (select 1 a) s",
    "select a from (select 1 a union all select 2) s",
    "select a from (select 1 a) s, t",
    "select x from t limit 0 union all select ISTRUE(sleep(1))",
    "insert into t select 1",
    "select",
    "",
  ])("not %s", (sql) => {
    expect(isTrivialStatement(sql)).toBe(false);
  });

  test("a column called sleep is no call", () => {
    expect(isTrivialStatement("select sleep from t limit 0")).toBe(true);
  });

  test("the option switches it off", () => {
    expect(isTrivialStatement("select 1", false)).toBe(false);
  });
});
