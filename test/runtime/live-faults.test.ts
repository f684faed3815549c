/**
 * What goes wrong in a live run, by itself or by plan, and that nothing stays behind (I23, I24).
 *
 * Where an outcome depends on what comes first, there are five real seconds between the two: another process may have
 * the machine to itself for a while.
 */
import { describe, expect, test } from "vitest";
import { checkIdle } from "../../src/core/memory/ledger-checks.ts";
import { expectClean, leavesNothingBehind } from "./live-checks.ts";
import { firstEvent, open, runOf, small } from "./live-fixture.ts";

leavesNothingBehind();

describe("a host dies", () => {
  test("alone on its thread: its queries fail with a clear reason, the thread is replaced, the fleet goes on", async () => {
    const told = await open(
      small({
        // Spills at once, and goes on for long enough.
        query: { duration: "100s", uses: { peak: "4gb", shape: "flat" }, options: { MEM_LIMIT: "2gb" } },
        arrivals: [
          { at: "0s", query: "q", count: 2 },
          { at: "100s", query: "q", count: 1 },
        ],
      }),
    );
    const done = told.run.run();
    await firstEvent(told, (e) => e.kind === "spilled" && e.host === "exec-2:27000");
    await told.run.fleet.killThread(told.run.fleet.threadOf(told.run.hostNumber("exec-2:27000")), "killed by the test");
    const report = await done;
    const ends = told.events.filter((e) => e.kind === "released");
    expect(ends.map((e) => e.state).sort()).toEqual(["failed", "failed", "finished"]);
    expect(ends[0]).toMatchObject({ error: "Failed due to unreachable impalad(s): exec-2:27000" });
    expect(told.events.find((e) => e.kind === "hostLost")).toMatchObject({ why: "killed by the test" });
    expect(told.count("hostJoined")).toBe(1);
    expectClean(report);
  });

  test("silently, on a thread with others: only its own instances stop, and its memory is back at once", async () => {
    const told = await open(
      small({ threads: 1, query: { duration: "100s", hosts: 1 }, arrivals: [{ at: "0s", query: "q", count: 6 }] }),
    );
    const done = told.run.run();
    await firstEvent(told, () => told.count("fragmentStarted") >= 6);
    const used = told.events.flatMap((e) => (e.kind === "fragmentStarted" ? [e.host] : []));
    const host = told.run.hostNumber(used.find((h) => h.startsWith("exec")) ?? "");
    await told.run.fleet.silenceHost(host, "silenced by the test");
    expect(checkIdle(await told.run.fleet.snapshot(host))).toEqual([]);
    const report = await done;
    const failed = told.events.filter((e) => e.kind === "released" && e.state === "failed");
    const finished = told.events.filter((e) => e.kind === "released" && e.state === "finished");
    expect(failed.length).toBeGreaterThan(0);
    expect(finished.length).toBe(6 - failed.length);
    expectClean(report);
  });

  test("by plan: what runs there hangs until it is missed, and nothing stays behind", async () => {
    const { events, report } = await runOf(
      small({
        time: 5,
        query: { duration: "60s", uses: { peak: "512mb", shape: "flat" } },
        faults: [{ at: "10s", fault: "hostDies", host: "exec-1" }],
      }),
    );
    const lost = events.find((e) => e.kind === "hostLost")?.at ?? Number.NaN;
    const finished = events.flatMap((e) => (e.kind === "fragmentFinished" ? [e.at - lost] : []));
    expect(finished).toHaveLength(4);
    expect(Math.min(...finished)).toBeGreaterThanOrEqual(10_000);
    expect(events.filter((e) => e.kind === "released")).toMatchObject([
      { state: "failed", error: "Failed due to unreachable impalad(s): exec-1:27000" },
    ]);
    expectClean(report);
  });

  test("by plan, until it returns: meanwhile nothing is sent there", async () => {
    const { events, report } = await runOf(
      small({
        faults: [
          { at: "1s", fault: "hostDies", host: "exec-1" },
          { at: "20s", fault: "hostReturns", host: "exec-1" },
        ],
        arrivals: [{ every: "2s", count: 70, query: "q" }],
      }),
    );
    const startedOn = (from: number, to: number) =>
      events.filter((e) => e.kind === "fragmentStarted" && e.host === "exec-1:27000" && e.at > from && e.at < to);
    const lost = events.find((e) => e.kind === "hostLost")?.at ?? 0;
    const joined = events.find((e) => e.kind === "hostJoined")?.at ?? 0;
    expect(joined).toBeGreaterThanOrEqual(20_000);
    expect(startedOn(lost, joined)).toEqual([]);
    expect(startedOn(joined, Number.POSITIVE_INFINITY).length).toBeGreaterThan(0);
    expectClean(report);
  });
});

describe("a thread is killed in the middle of a sort that spills", () => {
  test("I23 its files and buffers are gone, and the next query on that host is right", async () => {
    const sort = { rows: 2_000_000, width: 16, keys: { uniform: { distinct: 100_000 } } };
    const told = await open(
      small({
        memory: "400mb",
        scaleMemory: 1,
        time: 1,
        query: { estimate: undefined, uses: undefined, duration: undefined, sort, options: { MEM_LIMIT: "40mb" } },
        arrivals: [
          { at: "0s", query: "q", count: 1 },
          { at: "8s", query: "q", count: 1 },
        ],
      }),
    );
    const done = told.run.run();
    await firstEvent(told, (e) => e.kind === "spilled" && e.host === "exec-2:27000");
    await told.run.fleet.killThread(told.run.fleet.threadOf(told.run.hostNumber("exec-2:27000")), "killed by the test");
    await firstEvent(told, (e) => e.kind === "hostLost");
    expect(checkIdle(await told.run.fleet.snapshot(told.run.hostNumber("exec-2:27000")))).toEqual([]);
    const report = await done;
    expect(told.events.flatMap((e) => (e.kind === "released" ? [e.state] : []))).toEqual(["failed", "finished"]);
    expectClean(report);
  });
});

describe("faults of the scenario", () => {
  test("refusals: every growth is refused by dice, and each query still finishes with its minimum (I19)", async () => {
    const { count, events, report } = await runOf(
      small({
        query: { uses: { peak: "512mb" }, minReservation: "64mb" },
        faults: [{ at: "0s", fault: "refusals", chance: 1 }],
        arrivals: [{ at: "100s", query: "q", count: 3 }],
      }),
    );
    expect(events.filter((e) => e.kind === "released").map((e) => e.state)).toEqual([
      "finished",
      "finished",
      "finished",
    ]);
    expect(count("spilled")).toBeGreaterThan(0);
    const peaks = events.flatMap((e) => (e.kind === "fragmentFinished" ? [e.peak] : []));
    expect(Math.max(...peaks)).toBe(64 * 1024 * 1024);
    expectClean(report);
  });

  test("a coordinator dies: its queue goes with it, its queries are stopped, and it comes back empty", async () => {
    const { count, events, report } = await runOf(
      small({
        flags: { default_pool_max_requests: "1" },
        query: { duration: "100s" },
        faults: [
          { at: "2s", fault: "coordinatorDies", host: "coord-1" },
          { at: "4s", fault: "coordinatorReturns", host: "coord-1" },
        ],
        arrivals: [
          { at: "0s", query: "q", count: 3 },
          { at: "6s", query: "q", count: 1 },
        ],
      }),
    );
    const ends = events.filter((e) => e.kind === "released").map((e) => e.state);
    expect(ends).toEqual(["failed", "finished"]);
    expect(count("cancelled")).toBe(2);
    expectClean(report);
  });

  test("without a statestore it goes on deciding, on its last view", async () => {
    const { count, events, report } = await runOf(
      small({
        faults: [
          { at: "1s", fault: "statestoreStops" },
          { at: "9s", fault: "statestoreStarts" },
        ],
        arrivals: [{ every: "2s", count: 6, query: "q" }],
      }),
    );
    const kinds = events.map((e) => e.kind).filter((kind) => kind === "fault" || kind === "topicApplied");
    const stopped = kinds.indexOf("fault");
    expect(kinds.slice(stopped + 1, stopped + 3)).toEqual(["fault", "topicApplied"]);
    expect(count("released")).toBe(6);
    expectClean(report);
  });
});
