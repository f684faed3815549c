import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { KeptTexts } from "../../../src/workload/query-log/kept-texts.ts";
import type { LoggedQuery } from "../../../src/workload/query-log/logged-query.ts";
import { logged, MiB } from "./log-fixtures.ts";

/** Bytes in use once everything that nobody holds is gone. */
function bytesHeld(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}

const NAMES = ["pool", "user", "session", "address", "table"] as const;
const ROWS = 256;
/** Not so much that Node keeps it outside of the heap. */
const ROW = MiB / 4;

/** One whose texts are cut out of a long row, as a reader of lines cuts them. */
function cutOut(row: number, keep: (q: LoggedQuery) => LoggedQuery): LoggedQuery {
  const name = (what: string): string => `a-name-of-some-length-${what}-${row}`;
  const text = Buffer.from([...NAMES.map(name), "x".repeat(ROW)].join(",")).toString("utf8");
  const cut = (what: string): string =>
    text.slice(text.indexOf(name(what)), text.indexOf(name(what)) + name(what).length);
  const [pool, user, session, address, table] = [
    cut("pool"),
    cut("user"),
    cut("session"),
    cut("address"),
    cut("table"),
  ];
  return keep(
    logged({
      queryId: session,
      pool,
      user,
      sessionId: session,
      clientAddress: address,
      tables: [table],
      hosts: [table],
    }),
  );
}

const rowsWith = (keep: (q: LoggedQuery) => LoggedQuery): LoggedQuery[] =>
  Array.from({ length: ROWS }, (_, row) => cutOut(row, keep));

describe("what is kept of a log's texts", () => {
  test("the texts are the same", () => {
    const texts = new KeptTexts();
    const same = rowsWith((q) => q);
    expect(rowsWith((q) => texts.query(q)).map((q) => ({ ...q, fingerprint: "" }))).toEqual(
      same.map((q) => ({ ...q, fingerprint: "" })),
    );
    const empty = logged({ pool: "", sessionId: null, missingStats: null, hosts: null, tables: [] });
    expect(texts.query(empty)).toEqual(empty);
  });

  test("of long rows less than a thirtieth is held", () => {
    const before = bytesHeld();
    const texts = new KeptTexts();
    const kept = rowsWith((q) => texts.query(q));
    expect(bytesHeld() - before).toBeLessThan((ROWS * ROW) / 30);
    expect(kept).toHaveLength(ROWS);
  });
});
