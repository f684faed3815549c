/** Several coordinators, each on a thread of its own: what they admit together, how they die, and that none is left. */
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Scenario } from "../../src/config/scenario.ts";
import { readScenario } from "../../src/config/scenario-file.ts";
import type { RunEvent } from "../../src/core/events.ts";
import { EventObserver } from "../../src/insight/event-observer.ts";
import { SummaryFold } from "../../src/insight/summary-fold.ts";
import { drainedAtOnce, drainedWhileBusy, expectClean, leavesNothingBehind, startedThreads } from "./live-checks.ts";
import { expectSameAgain, firstEvent, open, runOf, small, type Told } from "./live-fixture.ts";
import { simulated } from "./simulated.ts";

leavesNothingBehind();

/** The thread that wakes the main thread for its appointments. */
const ALARM = 1;

const three = { coordinators: [{ count: 3, on: "dedicated", memory: "10gb" }] };

/** Most queries that run after one event, and before the next. */
function peakRunning(events: readonly RunEvent[]): number {
  let running = 0;
  let most = 0;
  for (const { kind } of events) {
    if (kind === "admitted") running++;
    if (kind === "released") running--;
    most = Math.max(most, running);
  }
  return most;
}

/** What the summary finds wrong with the stream as it is told: flows that don't add up, ends that are missing. */
function brokenIn({ events }: Told): readonly string[] {
  const fold = new SummaryFold({ configOf: () => null, admission: "distributed" });
  const observer = new EventObserver(fold);
  for (const event of events) observer.add(event);
  observer.end();
  return fold.finish().broken;
}

/** Who was asked, in the order of the first call. */
const controllersOf = ({ calls }: Told): Set<string> =>
  new Set(calls.flatMap((e) => (e.kind === "controllerCall" ? [e.controller] : [])));

/** How each query ended, by the coordinator that it went to. */
function endingsAt({ events }: Told, coordinator: string): Record<string, number> {
  const mine = new Set(
    events.flatMap((e) => (e.kind === "submitted" && e.coordinator === coordinator ? [e.query] : [])),
  );
  const found: Record<string, number> = {};
  for (const e of events) {
    if (!("query" in e) || !mine.has(e.query)) continue;
    const how = e.kind === "released" ? e.state : e.kind === "cancelled" ? "gone from the queue" : null;
    if (how !== null) found[how] = (found[how] ?? 0) + 1;
  }
  return found;
}

describe("T-12 a limit that several coordinators check", () => {
  const example = readScenario(join(import.meta.dirname, "../../examples/stale-coordinators/scenario.yaml"));

  /** The example on fewer threads, faster, with so many coordinators. */
  function withCoordinators(count: number): Scenario {
    const [group] = example.cluster.coordinators;
    const coordinators = [{ ...group!, count }];
    return { ...example, cluster: { ...example.cluster, coordinators }, threads: 2, scale: { time: 20, memory: 1024 } };
  }

  test("one admits exactly the limit of 10", async () => {
    const { events, report, count } = await runOf(withCoordinators(1));
    expect(peakRunning(events)).toBe(10);
    expect(count("released")).toBe(80);
    expectClean(report);
  });

  test("four admit more than that together, none of them more than 10 by its own count", async () => {
    const told = await runOf(withCoordinators(4));
    const atOnce = new Map<string, number>();
    const coordinatorOf = new Map(
      told.events.flatMap((e) => (e.kind === "submitted" ? [[e.query, e.coordinator]] : [])),
    );
    for (const e of told.events) {
      if (e.kind !== "admitted" || e.path !== "immediately") continue;
      const coordinator = coordinatorOf.get(e.query) ?? "";
      atOnce.set(coordinator, (atOnce.get(coordinator) ?? 0) + 1);
    }
    expect(peakRunning(told.events)).toBeGreaterThan(10);
    expect(peakRunning(told.events)).toBeLessThanOrEqual(40);
    expect(Math.max(...atOnce.values())).toBeLessThanOrEqual(10);
    expect(controllersOf(told).size).toBe(4);
    expect(brokenIn(told)).toEqual([]);
    expect(told.count("released")).toBe(80);
    expectClean(told.report);
  });
});

describe("a coordinator's thread", () => {
  test("is its own: three of them beside those of the executors, the same decisions again in virtual time", async () => {
    const before = startedThreads.length;
    const told = await open(
      small({
        cluster: { ...three, statestore: { every: "100ms", publishLag: "20ms", receiveLag: "30ms" } },
        flags: { default_pool_max_requests: "2", queue_wait_timeout_ms: "2500" },
        arrivals: [
          { at: "0s", query: "q", count: 18 },
          { every: "500ms", query: "q", from: "1s", count: 6 },
        ],
      }),
    );
    const done = told.run.run();
    await firstEvent(told, (e) => e.kind === "queued");
    expect(startedThreads.length - before).toBe(ALARM + 4 + 3);
    const report = await done;
    const outcomes = told.count("released") + told.count("timedOut");
    expect(outcomes).toBe(24);
    expect(told.count("timedOut")).toBeGreaterThan(0);
    expect([...controllersOf(told)].sort()).toEqual(["coord-1:27000", "coord-2:27000", "coord-3:27000"]);
    const times = told.events.map((e) => e.at);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(brokenIn(told)).toEqual([]);
    expectSameAgain(told.calls);
    expectClean(report);
  });

  test("a client that gives up is heard there too", async () => {
    const { count, events, report } = await runOf(
      small({
        cluster: three,
        flags: { default_pool_max_requests: "1" },
        query: { duration: "1h", cancelAfter: "2s" },
        arrivals: [{ at: "0s", query: "q", count: 9 }],
      }),
    );
    const ends = events.flatMap((e) => (e.kind === "released" ? [e.state] : []));
    expect(new Set(ends)).toEqual(new Set(["cancelled"]));
    expect(ends.length + count("cancelled")).toBe(9);
    expectClean(report);
  });

  test("one that fails by itself ends the run, and names the coordinator", async () => {
    const told = await open(small({ cluster: three, query: { duration: "1h" } }));
    const broken = expect(told.run.run()).rejects.toThrow("the thread of coord-1:27000 failed: ");
    await firstEvent(told, (e) => e.kind === "admitted");
    const coordinator = told.run.coordinators[0]!;
    const [query] = coordinator.queries;
    // No driver of ours submits a query twice; the controller won't have it.
    coordinator.submit(query!.submission, told.run.now());
    await broken;
  });
});

describe("faults of one coordinator among several", () => {
  test("it dies: its thread ends, its queue is gone, its queries are stopped; it comes back as a new process", async () => {
    const before = startedThreads.length;
    const told = await open(
      small({
        cluster: three,
        flags: { default_pool_max_requests: "1" },
        time: 2, // a second of real time between the last admission and the death
        query: { duration: "4s" },
        faults: [
          { at: "2s", fault: "coordinatorDies", host: "coord-1" },
          { at: "4s", fault: "coordinatorReturns", host: "coord-1" },
        ],
        arrivals: [
          { at: "0s", query: "q", count: 9 },
          { at: "18s", query: "q", count: 3 },
        ],
      }),
    );
    const done = told.run.run();
    await firstEvent(told, (e) => e.kind === "fault");
    await Promise.race(startedThreads.slice(before).map((t) => once(t, "exit")));
    expect(told.run.state).toBe("running");
    const report = await done;
    const { "gone from the queue": gone, failed, finished } = endingsAt(told, "coord-1:27000");
    expect({ gone, failed, finished }).toEqual({ gone: 2, failed: 1, finished: 1 });
    for (const other of ["coord-2:27000", "coord-3:27000"]) expect(endingsAt(told, other)).toEqual({ finished: 4 });
    expect(controllersOf(told)).toContain("coord-1:27000#2");
    // The one that died, and the one that took its place.
    expect(startedThreads.length - before).toBe(ALARM + 4 + 3 + 1);
    expect(brokenIn(told)).toEqual([]);
    expectSameAgain(told.calls);
    expectClean(report);
  });

  test("its host dies: both threads end, and both come back with the host", async () => {
    const before = startedThreads.length;
    const told = await runOf(
      small({
        cluster: { coordinators: [{ count: 3, on: "executor" }] },
        threads: 3,
        time: 8,
        faults: [
          { at: "1s", fault: "hostDies", host: "exec-1" },
          { at: "8s", fault: "hostReturns", host: "exec-1" },
        ],
        query: { duration: "3s", hosts: 1 },
        arrivals: [
          { at: "0s", query: "q", count: 6 },
          { at: "16s", query: "q", count: 6 },
        ],
      }),
    );
    expect(endingsAt(told, "exec-1:27000")).toMatchObject({ failed: 2, finished: 2 });
    expect(controllersOf(told)).toContain("exec-1:27000#2");
    expect(startedThreads.length - before).toBe(ALARM + 3 + 1 + 3 + 1);
    expect(brokenIn(told)).toEqual([]);
    expectClean(told.report);
  });

  test("cut off from the statestore it decides on, by the view it had", async () => {
    const { events, count, report } = await runOf(
      small({
        cluster: three,
        faults: [{ at: "0s", fault: "coordinatorCutOff", host: "coord-2" }],
        arrivals: [{ every: "500ms", query: "q", count: 9 }],
      }),
    );
    const heard = events.filter((e) => e.kind === "topicApplied" && e.coordinator === "coord-2:27000");
    const others = events.filter((e) => e.kind === "topicApplied" && e.coordinator !== "coord-2:27000");
    // The one that it began with, and at most one that was on its way.
    expect(heard.length).toBeLessThanOrEqual(2);
    expect(others.length).toBeGreaterThan(2 * heard.length);
    expect(count("released")).toBe(9);
    expectClean(report);
  });
});

describe("9.5 a coordinator that the statestore misses, and that lives", () => {
  const releasedOf = (events: readonly RunEvent[]) =>
    Object.fromEntries(
      events.flatMap((e) => (e.kind === "released" ? [[e.query, `${e.state} ${e.error ?? ""}`.trim()] as const] : [])),
    );

  test.each(["distributed", "admissiond"])("%s: executors end what it runs, as in virtual time", async (admission) => {
    const scenario = small({
      cluster: { ...three, admission },
      query: { duration: "200s" },
      arrivals: [
        { at: "0s", coordinator: "coord-1", query: "q", count: 1 },
        { at: "0s", coordinator: "coord-2", query: "q", count: 2 },
        // Back in the cluster it runs queries to their ends again.
        { at: "150s", coordinator: "coord-2", query: "q", count: 1 },
      ],
      faults: [
        { at: "50s", fault: "coordinatorCutOff", host: "coord-2" },
        { at: "100s", fault: "coordinatorRejoins", host: "coord-2" },
      ],
      time: 100,
    });
    const told = await runOf(scenario);
    const released = releasedOf(told.events);
    expect(released).toEqual(releasedOf(simulated(scenario)));
    expect(Object.values(released).sort()).toEqual([
      "failed The coordinator coord-2:27000 left the cluster",
      "failed The coordinator coord-2:27000 left the cluster",
      "finished",
      "finished",
    ]);
    for (const e of told.events)
      if (e.kind === "released" && e.state === "failed") expect(e.at).toBeGreaterThanOrEqual(60_000);
    expectClean(told.report);
  });

  test("back before anybody misses it, nothing has happened", async () => {
    const scenario = small({
      cluster: three,
      query: { duration: "100s" },
      arrivals: [{ at: "0s", coordinator: "coord-2", query: "q", count: 2 }],
      faults: [
        { at: "20s", fault: "coordinatorCutOff", host: "coord-2" },
        { at: "21s", fault: "coordinatorRejoins", host: "coord-2" },
      ],
    });
    const { events, report } = await runOf(scenario);
    expect(Object.values(releasedOf(events))).toEqual(["finished", "finished"]);
    expectClean(report);
  });
});

describe("Ctrl-C with several coordinators", () => {
  test("once: who waits is cancelled, who runs finishes", async () => {
    const told = await drainedWhileBusy(three, 12);
    expectSameAgain(told.calls);
  });

  test("twice, with the answers still under way: every query ends, and nothing runs on", async () => {
    const told = await open(
      small({ cluster: three, query: { duration: "10h" }, arrivals: [{ at: "0s", query: "q", count: 6 }] }),
    );
    const done = told.run.run();
    await firstEvent(told, (e) => e.kind === "submitted");
    told.run.drain();
    told.run.stop();
    const report = await done;
    expect(report.ended).toBe("stopped");
    expect(told.count("cancelled") + told.count("released")).toBe(told.count("submitted"));
    expect(told.events.flatMap((e) => (e.kind === "released" ? [e.state] : [])).every((s) => s === "cancelled")).toBe(
      true,
    );
    expectClean(report);
  });

  test("before the first thread is there", () => drainedAtOnce(three));
});
