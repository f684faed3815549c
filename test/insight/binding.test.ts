import { describe, expect, test } from "vitest";
import type { QueueReason } from "../../src/core/admission/reasons.ts";
import { bytes } from "../../src/core/units.ts";
import { ADM1, ADM2, ADM4, pool, poolOf, Stream, summarise } from "./stream.ts";

/** `a` runs from 0 to 1000 with `memory`; `b` waits from 0 to 1000 for `reason`. */
function oneWaits(memory: number, reason: QueueReason): Stream {
  return new Stream()
    .submit(0, "a")
    .admit(0, "a", memory)
    .submit(0, "b")
    .queue(0, "b", reason)
    .end(1000, "a")
    .admit(1000, "b", 60, "fromQueue", 1000)
    .end(2000, "b");
}

const causes = (stream: Stream, config = pool({})): (readonly [string, number])[] =>
  poolOf(stream, config).binding?.shares.map((s) => [s.constraint, s.waitedMs] as const) ?? [];

describe("every waiting second has a cause (insight 2.3)", () => {
  test.each([
    ["pool memory", ADM4(60, 100), pool({ maxMem: 100 }), [["poolMemory", 1000]]],
    ["running limit", ADM2(1, 1), pool({ maxRequests: 1 }), [["runningLimit", 1000]]],
    [
      "host memory",
      { rule: "ADM-5", host: "h", limit: bytes(1), needed: bytes(1), available: bytes(0), stale: null },
      pool({ maxMem: 1000 }),
      [["hostMemory", 1000]],
    ],
    ["slots", { rule: "ADM-3", host: "h", needed: 1, inUse: 1, slots: 1 }, pool({}), [["slots", 1000]]],
    ["executors", { rule: "NO-EXECUTORS" }, pool({}), [["executorsMissing", 1000]]],
    ["coordinator", { rule: "NO-COORDINATOR" }, pool({}), [["coordinatorMissing", 1000]]],
  ] as const)("%s alone", (_, reason, config, expected) => {
    expect(causes(oneWaits(60, reason), config)).toEqual(expected);
  });

  test("two at once share it and are marked as joint, whichever was named", () => {
    const config = pool({ maxMem: 100, maxRequests: 1 });
    // The need of b is known from the class, which a has too.
    expect(poolOf(oneWaits(60, ADM2(1, 1)), config).binding?.shares).toMatchObject([
      { constraint: "runningLimit", waitedMs: 500, jointMs: 500, headMs: 1000 },
      { constraint: "poolMemory", waitedMs: 500, jointMs: 500, headMs: 1000 },
    ]);
  });

  test("what only the controller believes is a stale view", () => {
    expect(causes(oneWaits(40, ADM4(60, 100)), pool({ maxMem: 100 }))).toEqual([["staleView", 1000]]);
  });

  test("a head that was never tried and could go is a wake-up", () => {
    expect(causes(oneWaits(40, ADM1(1)), pool({ maxMem: 100 }))).toEqual([["wakeUp", 1000]]);
  });

  test("a follower that fits waits for its order, one that does not for the head's cause", () => {
    const s = new Stream()
      .submit(0, "small0", { queryClass: "small" })
      .admit(0, "small0", 10)
      .submit(0, "a", { queryClass: "large" })
      .admit(0, "a", 60)
      .submit(0, "b", { queryClass: "large" })
      .queue(0, "b", ADM4(60, 100))
      .submit(0, "c", { queryClass: "small" })
      .queue(0, "c", ADM1(1))
      .submit(0, "d", { queryClass: "large" })
      .queue(0, "d", ADM1(2))
      .end(1000, "a")
      .admit(1000, "b", 60, "fromQueue", 1000)
      .admit(1000, "c", 10, "fromQueue", 1000)
      .head(1000, "d", ADM4(60, 100))
      .end(1500, "b")
      .admit(1500, "d", 60, "fromQueue", 1500)
      .end(2000, "small0")
      .end(2000, "c")
      .end(2000, "d");
    expect(causes(s, pool({ maxMem: 100 }))).toEqual([
      ["poolMemory", 1000 + 1000 + 500],
      ["queueOrder", 1000],
    ]);
    expect(summarise(s, pool({ maxMem: 100 })).broken).toEqual([]);
  });

  test("what a class will be charged is known before one of it was", () => {
    const s = new Stream()
      .submit(0, "a", { queryClass: "large" })
      .admit(0, "a", 60)
      .submit(0, "b", { queryClass: "large" })
      .queue(0, "b", ADM4(60, 100))
      .submit(0, "c", { queryClass: "small" })
      .queue(0, "c", ADM1(1))
      .end(1000, "a")
      .admit(1000, "b", 60, "fromQueue", 1000)
      .admit(1000, "c", 10, "fromQueue", 1000)
      .end(2000, "b")
      .end(2000, "c");
    const needOf = (_: string, queryClass: string) => (queryClass === "small" ? 10 : 60);
    const [p] = summarise(s, pool({ maxMem: 100 }), undefined, needOf).pools;
    expect(p?.binding?.shares.map((x) => [x.constraint, x.waitedMs])).toEqual([
      ["poolMemory", 1000],
      ["queueOrder", 1000],
    ]);
  });

  test("time in which several coordinators' heads wait for one cause counts once", () => {
    const s = new Stream().submit(0, "a").admit(0, "a", 60);
    for (const i of [1, 2, 3]) s.submit(0, `w${i}`, { coordinator: `coord-${i}:27000` }).queue(0, `w${i}`, ADM2(1, 1));
    s.end(1000, "a");
    for (const i of [1, 2, 3]) s.admit(1000, `w${i}`, 60, "fromQueue", 1000).end(1000, `w${i}`);
    const [p] = summarise(s, pool({ maxRequests: 1 })).pools;
    expect(p?.binding).toMatchObject({ headMs: 1000, shares: [{ constraint: "runningLimit", waitedMs: 3000 }] });
  });

  test("the cause changes when another query takes the last place", () => {
    const s = new Stream()
      .submit(0, "a")
      .admit(0, "a", 60)
      .submit(0, "b")
      .queue(0, "b", ADM4(60, 100))
      .submit(400, "t", { queryClass: "tiny" })
      .admit(400, "t", 1)
      .end(1000, "a")
      .admit(1000, "b", 60, "fromQueue", 1000)
      .end(1500, "b")
      .end(1500, "t");
    expect(poolOf(s, pool({ maxMem: 100, maxRequests: 2 })).binding?.shares).toMatchObject([
      { constraint: "poolMemory", waitedMs: 400 + 300, jointMs: 300 },
      { constraint: "runningLimit", waitedMs: 300, jointMs: 300 },
    ]);
  });

  test("nothing waited, nothing bound", () => {
    expect(poolOf(new Stream().submit(0, "a").admit(0, "a", 1).end(9, "a")).binding).toBeNull();
  });

  test("over time: sixty intervals, blank where nothing waited", () => {
    const over = poolOf(oneWaits(60, ADM2(1, 1)), pool({ maxRequests: 1 })).binding?.overTime;
    expect(over).toHaveLength(60);
    expect(over?.slice(0, 30).every((c) => c === "runningLimit")).toBe(true);
    expect(over?.slice(31).every((c) => c === null)).toBe(true);
  });

  test("a run that outgrows its bins a hundred times keeps its sums", () => {
    const s = new Stream();
    for (let i = 0; i < 200; i++) {
      const t = i * 60_000;
      s.submit(t, `a${i}`).admit(t, `a${i}`, 1).submit(t, `b${i}`).queue(t, `b${i}`, ADM2(1, 1));
      s.end(t + 30_000, `a${i}`)
        .admit(t + 30_000, `b${i}`, 1, "fromQueue", 30_000)
        .end(t + 50_000, `b${i}`);
    }
    const binding = poolOf(s, pool({ maxRequests: 1 })).binding;
    expect(binding?.shares).toMatchObject([
      { constraint: "runningLimit", waitedMs: 200 * 30_000, headMs: 200 * 30_000 },
    ]);
    expect(binding?.overTime.every((c) => c === "runningLimit")).toBe(true);
  });
});
