/**
 * `admissiond` on real threads (admission 7.7, 9.5): the decisions of virtual time, waits that differ by timers only.
 * `admissiond.test.ts` has the moments.
 */
import { describe, expect, test } from "vitest";
import { heardAt, timeoutNoticedAt } from "../../src/core/admission/status-calls.ts";
import type { RunEvent } from "../../src/core/events.ts";
import { drainedWhileBusy, expectClean, leavesNothingBehind } from "./live-checks.ts";
import { expectSameAgain, firstEvent, open, runOf, type Small, small } from "./live-fixture.ts";
import { simulated } from "./simulated.ts";

leavesNothingBehind();

const CALLS = { wait: 100, retry: 10 };
const two = { coordinators: [{ count: 2, on: "dedicated", memory: "10gb" }], admission: "admissiond" };

const of = (s: Small) =>
  small({ ...s, cluster: two, flags: { default_pool_max_requests: "4", ...s.flags }, query: { ...s.query } });

/** What became of each query, without a moment. */
const fates = (events: readonly RunEvent[]): Record<string, string> => {
  const found: Record<string, string> = {};
  for (const e of events) {
    if (!("query" in e)) continue;
    const fate =
      e.kind === "admitted"
        ? e.path
        : e.kind === "released"
          ? e.state
          : ["queued", "rejected", "timedOut", "cancelled"].includes(e.kind)
            ? e.kind
            : null;
    if (fate !== null) found[e.query] = `${found[e.query] ?? ""} ${fate}`;
  }
  return found;
};

describe("7.7 live and in virtual time the same becomes of every query", () => {
  test.each([
    { name: "waves", small: { arrivals: [{ at: "0s", query: "q", count: 14 }] }, fate: " queued fromQueue finished" },
    {
      name: "time-outs",
      small: {
        query: { duration: "200s" },
        flags: { queue_wait_timeout_ms: "1000" },
        arrivals: [{ at: "0s", query: "q", count: 7 }],
        time: 100,
      },
      fate: " queued timedOut",
    },
    {
      name: "a full queue",
      small: { flags: { default_pool_max_queued: "2" }, arrivals: [{ at: "0s", query: "q", count: 9 }] },
      fate: " rejected",
    },
  ])("$name", async ({ small: said, fate }) => {
    const scenario = of(said);
    const { events, report } = await runOf(scenario);
    expect(fates(events)).toEqual(fates(simulated(scenario)));
    expect(Object.values(fates(events))).toContain(fate);
    expectClean(report);
  });
});

describe("7.7 what polling makes late", () => {
  test("nothing begins before its coordinator could have heard", async () => {
    const { events } = await runOf(of({ arrivals: [{ at: "0s", query: "q", count: 12 }] }));
    const submitted = new Map(events.flatMap((e) => (e.kind === "submitted" ? [[e.query, e.at]] : [])));
    let fromQueue = 0;
    for (const e of events) {
      if (e.kind !== "admitted" || e.path !== "fromQueue") continue;
      fromQueue++;
      const started = events.find((s) => s.kind === "fragmentStarted" && s.query === e.query)!;
      expect(started.at).toBeGreaterThanOrEqual(heardAt(CALLS, submitted.get(e.query)!, 60_000, e.at) - 0.01);
    }
    expect(fromQueue).toBe(8);
  });

  test("no time-out is noticed before the end of a call", async () => {
    const { events, count } = await runOf(
      of({
        query: { duration: "200s" },
        flags: { queue_wait_timeout_ms: "1000" },
        arrivals: [{ at: "0s", query: "q", count: 7 }],
        time: 100,
      }),
    );
    for (const e of events)
      if (e.kind === "timedOut") expect(e.waited).toBeGreaterThanOrEqual(timeoutNoticedAt(CALLS, 0, 1000) - 0.01);
    expect(count("timedOut")).toBe(3);
  });
});

describe("9.5 what admissiond is not told", () => {
  test("a lost release: its place is free after a heartbeat of its coordinator, not before", async () => {
    const { events, report, count } = await runOf(
      of({
        query: { duration: "1500ms" },
        arrivals: [{ at: "0s", query: "q", count: 8 }],
        faults: [{ at: "0s", fault: "releasesLost", chance: 1 }],
      }),
    );
    for (const e of events)
      if (e.kind === "released" || (e.kind === "admitted" && e.path === "fromQueue"))
        expect(e.at).toBeGreaterThanOrEqual(2000);
    expect(count("released")).toBe(8);
    expectClean(report);
  });

  test("T-59 a dead coordinator: what ran is released when it is missed, what waited is refused at the head", async () => {
    const scenario = of({
      query: { duration: "200s" },
      arrivals: [
        { at: "0s", coordinator: "coord-1", query: "q", count: 6 },
        { at: "1s", coordinator: "coord-2", query: "q", count: 1 },
      ],
      faults: [{ at: "50s", fault: "coordinatorDies", host: "coord-1" }],
      flags: { queue_wait_timeout_ms: "3600000" },
      time: 100,
    });
    const { events, report } = await runOf(scenario);
    expect(fates(events)).toEqual(fates(simulated(scenario)));
    const released = events.filter((e) => e.kind === "released" && e.state === "failed");
    expect(released).toHaveLength(4);
    for (const e of released) expect(e.at).toBeGreaterThanOrEqual(60_000);
    const [refused] = events.filter((e) => e.kind === "rejected");
    expect(refused).toMatchObject({ reason: { rule: "REJ-C2" }, fromQueue: true });
    expectClean(report);
  });

  test("more are gone than are remembered: nobody refuses what waits, and the run does not wait for it", async () => {
    const { events, report } = await runOf(
      of({
        query: { duration: "100s" },
        arrivals: [
          { at: "0s", coordinator: "coord-2", query: "q", count: 4 },
          { at: "1s", coordinator: "coord-1", query: "q", count: 3 },
        ],
        faults: [
          { at: "30s", fault: "coordinatorDies", host: "coord-1" },
          { at: "35s", fault: "coordinatorDies", host: "coord-2" },
        ],
        flags: { cluster_membership_retained_removed_coords: "1" },
        time: 100,
      }),
    );
    expect(Object.values(fates(events)).sort()).toEqual([
      ...Array(4).fill(" immediately failed"),
      ...Array(3).fill(" queued"),
    ]);
    expectClean(report);
  });
});

describe("nothing hangs (stepped, and for more stories, in ends.test.ts)", () => {
  test("the statestore is gone for good, all coordinators die: nobody is missed, and the run ends", async () => {
    const scenario = of({
      query: { duration: "100s" },
      arrivals: [{ at: "0s", query: "q", count: 7 }],
      faults: [
        { at: "20s", fault: "statestoreStops" },
        { at: "30s", fault: "coordinatorDies", host: "coord-1" },
        { at: "30s", fault: "coordinatorDies", host: "coord-2" },
      ],
      time: 100,
    });
    const { events, report } = await runOf(scenario);
    expect(report.ended).toBe("complete");
    expect(fates(events)).toEqual(fates(simulated(scenario)));
    expect(Object.values(fates(events)).sort()).toEqual([
      ...Array(4).fill(" immediately"),
      ...Array(3).fill(" queued"),
    ]);
    expectClean(report);
  });
});

describe("Ctrl-C with admissiond", () => {
  test("once: who waits is cancelled when its coordinator hears, who runs finishes", async () => {
    const told = await drainedWhileBusy(two, 12);
    expectSameAgain(told.calls);
  });

  test("twice: every query ends, and nothing runs on", async () => {
    const told = await open(
      of({ query: { duration: "10h" }, arrivals: [{ at: "0s", query: "q", count: 9 }], faults: [] }),
    );
    const done = told.run.run();
    await firstEvent(told, () => told.count("fragmentStarted") >= 1 && told.count("queued") >= 3);
    told.run.drain();
    told.run.stop();
    const report = await done;
    expect(report.ended).toBe("stopped");
    const ended = told.events.filter((e) => e.kind === "released" || e.kind === "cancelled");
    expect(ended).toHaveLength(told.count("submitted"));
    expectClean(report);
  });
});
