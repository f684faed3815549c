import { describe, expect, test } from "vitest";
import { instant } from "../../src/core/units.ts";
import { EventObserver } from "../../src/insight/event-observer.ts";
import { SummaryFold } from "../../src/insight/summary-fold.ts";
import { ADM1, ADM2, ADM4, COORD, pool, poolOf, Stream, summarise } from "./stream.ts";

describe("counts and conservation (insight 2.1)", () => {
  const all = new Stream()
    .submit(0, "a")
    .admit(0, "a", 10)
    .submit(0, "t")
    .admit(0, "t", 1, "trivially")
    .submit(0, "b")
    .queue(0, "b", ADM2(1, 1))
    .submit(0, "c")
    .queue(0, "c", ADM1(1))
    .submit(0, "d")
    .queue(0, "d", ADM1(2))
    .submit(1, "e")
    .reject(1, "e", { rule: "REJ-A5", limit: 3, queued: 3, stale: null })
    .end(100, "a")
    .end(100, "t")
    .admit(100, "b", 10, "fromQueue", 100)
    .cancel(150, "c", 150)
    .timeOut(200, "d", 200, ADM1(2))
    .end(300, "b");

  test("every end is counted once", () => {
    expect(poolOf(all)).toMatchObject({
      submitted: 6,
      admittedImmediately: 1,
      admittedTrivially: 1,
      admittedFromQueue: 1,
      rejected: 1,
      rejectedByRule: { "REJ-A5": 1 },
      timedOut: 1,
      cancelled: 1,
      finished: 3,
      stillWaiting: 0,
      stillRunning: 0,
    });
    expect(summarise(all).broken).toEqual([]);
  });

  test("loss is of all submitted", () => {
    expect(poolOf(all).lossShare).toBeCloseTo(3 / 6, 12);
  });

  test("an unresolved request belongs to no pool", () => {
    const s = new Stream()
      .submit(5, "x", { pool: "" })
      .other({ kind: "unresolved", at: instant(5), query: "x", error: "denied" });
    expect(summarise(s)).toMatchObject({
      submitted: 1,
      unresolved: 1,
      firstUnresolved: { at: 5, query: "x" },
      pools: [],
      broken: [],
    });
  });

  test("refused for another reason, it is still its pool's query", () => {
    const s = new Stream()
      .submit(5, "x")
      .other({ kind: "unresolved", at: instant(5), query: "x", error: "the coordinator is gone" });
    expect(summarise(s)).toMatchObject({ submitted: 1, unresolved: 1, broken: [] });
    expect(poolOf(s)).toMatchObject({ submitted: 1, unresolved: 1, lossShare: 1 });
  });

  test("a controller that may keep what nobody uses breaks no promise", () => {
    const fold = new SummaryFold({ configOf: () => null, admission: "distributed", mayLeak: true });
    const observer = new EventObserver(fold);
    for (const event of new Stream().submit(0, "a").admit(0, "a", 10).freePlace(10, "a").events) observer.add(event);
    observer.end();
    expect(fold.finish().broken).toEqual([]);
  });

  test("what is still going on at the end is said so", () => {
    const s = new Stream().submit(0, "a").admit(0, "a", 10).submit(0, "b").queue(0, "b", ADM2(1, 1));
    expect(poolOf(s, pool({ maxRequests: 1 }), 500)).toMatchObject({ stillRunning: 1, stillWaiting: 1, queuedMs: 500 });
    expect(summarise(s, pool({}), 500).broken).toEqual([]);
  });

  test("a stream that breaks a promise is caught", () => {
    const s = new Stream().submit(0, "a").admit(0, "a", 10).freePlace(10, "a");
    expect(summarise(s).broken).toEqual(["root.p: 10 bytes admitted with nothing running"]);
  });
});

describe("waits", () => {
  test("from the intended arrival, not from the submission", () => {
    const s = new Stream()
      .submit(30, "a", { intended: instant(10) })
      .admit(50, "a", 1)
      .end(60, "a");
    expect(poolOf(s).waitMs.max).toBe(40);
    expect(summarise(s).submitLagMs).toBe(20);
  });

  test("over all submitted, who got no answer has waited longest", () => {
    const s = new Stream()
      .submit(0, "a")
      .admit(0, "a", 1)
      .submit(0, "b")
      .reject(0, "b", { rule: "REJ-A1" })
      .end(10, "a");
    expect(poolOf(s)).toMatchObject({
      waitMs: { p50: 0, max: 0 },
      waitAllMs: { p50: 0, p90: Number.POSITIVE_INFINITY, max: Number.POSITIVE_INFINITY },
    });
  });

  test("a request's wait starts with its first attempt", () => {
    const s = new Stream()
      .submit(0, "a")
      .reject(0, "a", { rule: "REJ-A1" })
      .submit(700, "a2", { attempt: 2, firstIntended: instant(0), request: "a" })
      .admit(750, "a2", 1)
      .submit(760, "b")
      .admit(760, "b", 1)
      .end(800, "a2")
      .end(800, "b");
    expect(poolOf(s)).toMatchObject({
      submitted: 3,
      requests: 2,
      waitMs: { max: 50 },
      requestWaitMs: { p50: 0, max: 750 },
    });
  });
});

describe("peaks are those of instants that are over (DESIGN 3)", () => {
  test("between giving back memory and giving back the place nobody sees a peak", () => {
    const s = new Stream()
      .submit(0, "a")
      .admit(0, "a", 10)
      .submit(1, "b")
      .queue(1, "b", ADM4(10, 10))
      .freeMemory(100, "a")
      .admit(100, "b", 10, "fromQueue", 99)
      .freePlace(100, "a")
      .end(200, "b");
    expect(poolOf(s)).toMatchObject({ peakRunning: 1, peakQueued: 1, peakMemoryBytes: 10 });
  });

  test("if the two are a microsecond apart, somebody does", () => {
    const s = new Stream()
      .submit(0, "a")
      .admit(0, "a", 10)
      .freeMemory(100, "a")
      .submit(100, "b")
      .admit(100, "b", 10)
      .freePlace(100.001, "a")
      .end(200, "b");
    expect(poolOf(s).peakRunning).toBe(2);
  });

  test("who queues and goes in one instant was never queued for long", () => {
    const s = new Stream().submit(5, "a").queue(5, "a", ADM2(1, 1)).admit(5, "a", 1, "fromQueue", 0).end(9, "a");
    expect(poolOf(s)).toMatchObject({ peakQueued: 0, queuedMs: 0, admittedFromQueue: 1 });
  });
});

describe("integrals (insight 2.2)", () => {
  const s = new Stream()
    .submit(0, "a")
    .admit(0, "a", 60)
    .submit(100, "b")
    .queue(100, "b", ADM4(60, 100))
    .end(400, "a")
    .admit(400, "b", 60, "fromQueue", 300)
    .end(500, "b");
  const config = pool({ maxMem: 100, maxRequests: 2 });

  test("utilisation of memory and places over the span", () => {
    expect(poolOf(s, config)).toMatchObject({
      utilisationShare: 0.6,
      placesUtilisationShare: 0.5,
      meanQueued: 0.6,
      queuedMs: 300,
    });
  });

  test("idle while queued", () => {
    expect(poolOf(s, config).idleWhileQueuedShare).toBeCloseTo(0.4, 12);
  });

  test("without a limit there is no share of it", () => {
    expect(poolOf(s)).toMatchObject({
      utilisationShare: null,
      placesUtilisationShare: null,
      idleWhileQueuedShare: null,
    });
  });
});

describe("over-admission (insight 2.4)", () => {
  test("how far, how long, how much of both, and which admissions", () => {
    const s = new Stream()
      .submit(0, "a")
      .admit(0, "a", 60)
      .submit(100, "b")
      .admit(100, "b", 60)
      .submit(150, "c")
      .admit(150, "c", 60)
      .end(200, "c")
      .end(300, "b")
      .end(400, "a");
    expect(poolOf(s, pool({ maxMem: 100, maxRequests: 1 })).overAdmission).toEqual({
      running: { most: 2, timeMs: 200, areaMs: 250 },
      memoryBytes: { most: 80, timeMs: 200, areaMs: 20 * 150 + 80 * 50 },
      queued: { most: 0, timeMs: 0, areaMs: 0 },
      staleAdmissions: 2,
      phantomWaits: 0,
      phantomMs: 0,
      viewAgeMs: null,
    });
  });

  test("at the limit is not over it", () => {
    const s = new Stream().submit(0, "a").admit(0, "a", 100).end(100, "a");
    expect(poolOf(s, pool({ maxMem: 100, maxRequests: 1 })).overAdmission).toMatchObject({
      running: { most: 0 },
      memoryBytes: { most: 0 },
      staleAdmissions: 0,
    });
  });
});

describe("fairness", () => {
  test("equal waits are 1, one coordinator that waits alone of two is one half", () => {
    const s = (wait: number) =>
      new Stream()
        .submit(0, "a")
        .admit(0, "a", 1)
        .submit(0, "b", { coordinator: "coord-2:27000" })
        .queue(0, "b", ADM2(1, 1))
        .admit(wait, "b", 1, "fromQueue", wait)
        .end(900, "a")
        .end(900, "b");
    expect(poolOf(s(100)).fairness.coordinators).toBe(0.5);
    expect(poolOf(new Stream().submit(0, "a").admit(0, "a", 1).end(1, "a")).fairness.coordinators).toBe(1);
  });
});

describe("what got no answer, grouped", () => {
  test("time-outs behind the head name the widest queue, rejections the first query", () => {
    const s = new Stream()
      .submit(0, "a")
      .queue(0, "a", ADM4(60, 100))
      .submit(0, "b")
      .queue(0, "b", ADM1(1))
      .submit(0, "c")
      .queue(0, "c", ADM1(2))
      .submit(1, "d")
      .reject(1, "d", { rule: "REJ-A5", limit: 3, queued: 3, stale: null })
      .timeOut(30, "a", 30, ADM4(60, 100))
      .timeOut(30, "b", 30, ADM1(1))
      .timeOut(30, "c", 30, ADM1(2));
    expect(poolOf(s).refusals).toMatchObject([
      { kind: "timedOut", rule: "ADM-1", count: 2, sizes: { least: 1, most: 2 }, firstQuery: "b" },
      {
        kind: "rejected",
        rule: "REJ-A5",
        count: 1,
        text: "queue full, limit=3, num_queued=3.",
        firstAtMs: 1,
        firstQuery: "d",
      },
      { kind: "timedOut", rule: "ADM-4", count: 1, sizes: null },
    ]);
  });
});

test("failures are grouped by what they say, whatever hosts and figures they name", () => {
  const s = new Stream();
  for (const [i, error] of [
    "Memory limit exceeded: no room\nQuery(00000000000000aa:0000000000000000) at exec-1:27000",
    "Failed due to unreachable impalad(s): exec-2:27000",
    "Failed due to unreachable impalad(s): exec-14:27000",
  ].entries())
    s.submit(i, `q${i}`)
      .admit(i, `q${i}`, 1)
      .fail(i + 0.5, `q${i}`, error);
  expect(poolOf(s).refusals).toMatchObject([
    { kind: "failed", count: 2, text: "Failed due to unreachable impalad(s): exec-2:27000", firstQuery: "q1" },
    { kind: "failed", count: 1, text: "Memory limit exceeded: no room" },
  ]);
  expect(poolOf(s)).toMatchObject({ failed: 3, lossShare: 1 });
});

test("the coordinator gives back its own share, executors theirs (MEM-11)", () => {
  const s = new Stream().submit(0, "a").admit(0, "a", 10);
  const [, admitted] = s.events;
  if (admitted?.kind !== "admitted") throw new Error("no admission");
  s.events[1] = { ...admitted, onCoordinator: 3 as typeof admitted.perHost, cluster: 13 as typeof admitted.cluster };
  s.other({ kind: "backendsReleased", at: instant(5), query: "a", hosts: [COORD] })
    .other({ kind: "backendsReleased", at: instant(9), query: "a", hosts: ["exec-1:27000"] })
    .freePlace(10, "a");
  expect(summarise(s).broken).toEqual([]);
  expect(poolOf(s, pool({ maxMem: 13 })).utilisationShare).toBeCloseTo((13 * 5 + 10 * 4) / (13 * 10), 12);
});
