import { describe, expect, test } from "vitest";
import { parseThreshold } from "../../src/config/threshold.ts";
import { evaluateThresholds } from "../../src/insight/thresholds.ts";
import { ADM2, pool, Stream, summarise } from "./stream.ts";

/** Two admitted (waits 0 and 1 s), one rejected. */
const summary = summarise(
  new Stream()
    .submit(0, "a")
    .admit(0, "a", 10)
    .submit(0, "b")
    .queue(0, "b", ADM2(1, 1))
    .submit(5, "c")
    .reject(5, "c", { rule: "REJ-A1" })
    .end(1000, "a")
    .admit(1000, "b", 10, "fromQueue", 1000)
    .end(2000, "b"),
  pool({ maxMem: 20, maxRequests: 1 }),
);

const result = (text: string) => evaluateThresholds([text], summary)[0];

describe("thresholds", () => {
  test.each([
    ["pool.root.p.wait.max < 1s", false, 1000],
    ["pool.root.p.wait.max <= 1s", true, 1000],
    ["wait.p50 == 0s", true, 0],
    ["wait.mean < 501ms", true, 500],
    ["rejected == 0", false, 1],
    ["rejected != 1", false, 1],
    ["pool.root.p.admitted >= 2", true, 2],
    ["submitted > 3", false, 3],
    ["loss < 34%", true, 1 / 3],
    ["peakMemory <= 10b", true, 10],
    ["utilisation < 0.51", true, 0.5],
    ["overAdmittedRunning == 0", true, 0],
    ["unresolved == 0", true, 0],
  ])("%s: %s at %d", (text, holds, value) => {
    expect(result(text)).toMatchObject({ expr: text, holds });
    expect(result(text)?.value).toBeCloseTo(value, 9);
  });

  test("lost queries make the quantile over all submitted infinite", () => {
    expect(result("waitAll.p95 < 100h")).toMatchObject({ holds: false, value: Number.POSITIVE_INFINITY });
    expect(result("waitAll.p50 < 2s")).toMatchObject({ holds: true });
  });

  test("over nothing there is no value, and it does not hold, whatever it says", () => {
    expect(result("pool.root.other.rejected == 0")).toMatchObject({ holds: false, value: null });
    expect(result("pool.root.other.wait.p95 < 20s")).toMatchObject({ holds: false, value: null });
    const nobody = summarise(new Stream().submit(0, "a").reject(0, "a", { rule: "REJ-A1" }));
    expect(evaluateThresholds(["wait.p95 < 1s"], nobody)[0]).toMatchObject({ holds: false, value: null });
  });

  test("waits of the run have none where one pool let nobody in", () => {
    const story = new Stream().submit(0, "a").admit(0, "a", 1).end(1, "a").submit(2, "b", { pool: "root.shut" });
    const shut = summarise(story.reject(2, "b", { rule: "REJ-A1" }));
    expect(evaluateThresholds(["wait.p95 < 1s"], shut)[0]).toMatchObject({ holds: false, value: null });
    expect(evaluateThresholds(["pool.root.p.wait.p95 < 1s"], shut)[0]).toMatchObject({ holds: true, value: 0 });
  });

  test("the first refused query is named", () => {
    expect(result("rejected == 0")?.first).toEqual({ at: 5, query: "c" });
    expect(result("wait.p95 < 1s")?.first).toBeNull();
  });

  test.each([
    ["pool.root.a.b.wait.p95 < 20s", "root.a.b", "wait.p95", 20_000],
    ["pool.wait.p95.rejected == 0", "wait.p95", "rejected", 0],
    ["  rejected==0 ", null, "rejected", 0],
    ["spilled < 1.5gb", null, "spilled", 1.5 * 2 ** 30],
    ["loss < 1%", null, "loss", 0.01],
  ])("%s is taken apart", (text, inPool, number, value) => {
    const parsed = parseThreshold(text);
    expect(parsed).toMatchObject({ ok: true, threshold: { pool: inPool, number, value } });
  });

  test.each([
    ["rejected", "is no comparison"],
    ["rejectd == 0", 'names the unknown number "rejectd"'],
    ["pool.root.a.wait.p96 < 1s", 'names the unknown number "wait.p96"'],
    ["wait.p95 < 20", 'compares with "20"'],
    ["rejected == few", 'compares with "few"'],
    ["toString == 0", 'names the unknown number "toString"'],
  ])("%s is refused", (text, problem) => {
    const parsed = parseThreshold(text);
    expect(parsed.ok ? "" : parsed.problem).toContain(problem);
  });
});
