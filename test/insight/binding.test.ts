import { describe, expect, test } from "vitest";
import type { QueueReason } from "../../src/core/admission/reasons.ts";
import { bytes, instant } from "../../src/core/units.ts";
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

/** As the driver has looked: what of the hosts stops `query` and its kind. */
const hosts = (at: number, query: string, slots: boolean, hostMemory: boolean) =>
  ({ kind: "hostsChecked", at: instant(at), query, slots, hostMemory }) as const;
const ADM3: QueueReason = { rule: "ADM-3", host: "h", needed: 1, inUse: 1, slots: 1 };

describe("slots and hosts in the exact state (insight 2.3)", () => {
  test("a head that is told of the running limit, and would not have the slots either, waits for both", () => {
    const s = new Stream()
      .submit(0, "a")
      .admit(0, "a", 60)
      .submit(0, "b")
      .queue(0, "b", ADM2(1, 1))
      .other(hosts(0, "b", true, false))
      .other(hosts(600, "b", false, false))
      .end(1000, "a")
      .admit(1000, "b", 60, "fromQueue", 1000)
      .end(2000, "b");
    expect(poolOf(s, pool({ maxRequests: 1 })).binding?.shares).toMatchObject([
      { constraint: "runningLimit", waitedMs: 300 + 400, jointMs: 300 },
      { constraint: "slots", waitedMs: 300, jointMs: 300 },
    ]);
  });

  test("slots that only the controller misses are a stale view; where nobody looks its word counts", () => {
    const waits = (looked: boolean): Stream => {
      const s = new Stream().submit(0, "a").admit(0, "a", 60).submit(0, "b").queue(0, "b", ADM3);
      if (looked) s.other(hosts(0, "b", false, false));
      return s.end(1000, "a").admit(1000, "b", 60, "fromQueue", 1000).end(2000, "b");
    };
    expect(causes(waits(false))).toEqual([["slots", 1000]]);
    expect(causes(waits(true))).toEqual([["staleView", 1000]]);
  });

  test("a follower of another class that has the slots waits for its order", () => {
    const s = new Stream()
      .submit(0, "t0", { queryClass: "thin" })
      .admit(0, "t0", 1)
      .end(0, "t0")
      .submit(0, "a", { queryClass: "wide" })
      .admit(0, "a", 60)
      .submit(0, "b", { queryClass: "wide" })
      .queue(0, "b", ADM3)
      .submit(0, "c", { queryClass: "thin" })
      .queue(0, "c", ADM1(1))
      .other(hosts(0, "b", true, false))
      .other(hosts(0, "c", false, false))
      .end(1000, "a")
      .admit(1000, "b", 60, "fromQueue", 1000)
      .admit(1000, "c", 1, "fromQueue", 1000)
      .end(2000, "b")
      .end(2000, "c");
    const { binding } = poolOf(s, pool({ maxMem: 1000 }));
    expect(binding?.shares.map((x) => [x.constraint, x.waitedMs])).toEqual([
      ["slots", 1000],
      ["queueOrder", 1000],
    ]);
    expect(binding?.headOfLine).toEqual({ waitedMs: 1000, share: 0.5, longestMs: 1000 });
  });
});

describe("head-of-line cost (insight 2.5)", () => {
  test("longest: behind one head; another head begins anew", () => {
    const s = new Stream();
    for (const q of ["s0", "a", "x"]) s.submit(0, q, { queryClass: q === "s0" ? "small" : "large" });
    s.admit(0, "s0", 10).admit(0, "a", 40).admit(0, "x", 40);
    s.submit(0, "b", { queryClass: "large" }).queue(0, "b", ADM4(40, 100));
    s.submit(0, "c", { queryClass: "large" }).queue(0, "c", ADM1(1));
    s.submit(200, "d", { queryClass: "small" }).queue(200, "d", ADM1(2));
    // The same head is tried again, with other figures: it is the same head.
    s.head(500, "b", ADM4(40, 99));
    s.end(1000, "a").admit(1000, "b", 40, "fromQueue", 1000).head(1000, "c", ADM4(40, 100));
    s.end(1500, "x").admit(1500, "c", 40, "fromQueue", 1500).admit(1500, "d", 10, "fromQueue", 1300);
    for (const q of ["s0", "b", "c", "d"]) s.end(2000, q);
    const { binding } = poolOf(s, pool({ maxMem: 100 }));
    expect(binding?.headOfLine).toMatchObject({ waitedMs: 1300, longestMs: 800 });
  });
});

describe("phantom waits (insight 2.4)", () => {
  test("each time that a head begins to wait for news only, and how long heads did", () => {
    const s = new Stream()
      .submit(0, "a")
      .admit(0, "a", 60)
      .submit(0, "b")
      .queue(0, "b", ADM4(60, 100))
      .submit(0, "c")
      .queue(0, "c", ADM1(1))
      .end(1000, "a")
      // Heard 100 ms later, in which two queries waited for news.
      .admit(1100, "b", 60, "fromQueue", 1100)
      .head(1100, "c", ADM4(60, 100))
      .end(1500, "b")
      .admit(1550, "c", 60, "fromQueue", 1550)
      .end(2000, "c");
    const p = poolOf(s, pool({ maxMem: 100 }));
    expect(p.overAdmission).toMatchObject({ phantomWaits: 2, phantomMs: 150, staleAdmissions: 0 });
    expect(causes(s, pool({ maxMem: 100 }))).toContainEqual(["staleView", 2 * 100 + 50]);
  });

  test("ages of views and admissions that a host had no room for, counted once", () => {
    const used = (at: number, query: string, ageMs: number, isOverOnAHost: boolean | null) =>
      ({ kind: "viewUsed", at: instant(at), query, ageMs, isOverOnAHost }) as const;
    const s = new Stream();
    ["a", "b", "c", "d"].forEach((q, i) => {
      s.submit(0, q)
        .admit(0, q, 60)
        .other(used(0, q, [10, 40, 90, -1][i]!, [false, true, true, null][i]!));
    });
    for (const q of ["a", "b", "c", "d"]) s.end(1000, q);
    // a fits; b is above the pool's limit and a host's; so are c and, for the pool, d.
    expect(poolOf(s, pool({ maxMem: 100 })).overAdmission).toMatchObject({
      staleAdmissions: 3,
      viewAgeMs: { p50: 40, p99: 90 },
    });
    expect(poolOf(s, pool({})).overAdmission.staleAdmissions).toBe(2);
  });
});
