/**
 * What several coordinators and a statestore bring about, with the numbers that the rules give: limits checked
 * by k coordinators, a statestore that forgets, one controller for all, and processes that die.
 */
import { describe, expect, test } from "vitest";
import { parseScenario } from "../../src/config/scenario-file.ts";
import { flagsOf } from "../../src/config/scenario-pools.ts";
import type { EventKind, EventOf, RunEvent } from "../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../src/core/pool-config.ts";
import type { Millis } from "../../src/core/units.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";

interface Story {
  readonly coordinators?: number;
  readonly admission?: "distributed" | "admissiond";
  readonly every?: string;
  readonly arrivals: readonly unknown[];
  readonly duration?: string;
  readonly cancelAfter?: string;
  readonly faults?: readonly unknown[];
  readonly pool?: Partial<PoolConfig>;
  readonly executors?: number;
  readonly flags?: Readonly<Record<string, string>>;
  readonly uses?: Readonly<Record<string, unknown>>;
}

const common = { user: "ana", pool: "root.adhoc", estimate: "100mb", uses: { peak: "10mb" } };

function told(s: Story): RunEvent[] {
  const scenario = parseScenario(
    JSON.stringify({
      cluster: {
        executors: [{ count: s.executors ?? 4, memory: "64gb", slots: 16 }],
        coordinators: [{ count: s.coordinators ?? 1, on: "dedicated", memory: "64gb" }],
        admission: s.admission ?? "distributed",
        statestore: { every: s.every ?? "100ms" },
      },
      pools: "flags",
      flags: s.flags ?? {},
      queries: {
        q: {
          ...common,
          ...(s.uses && { uses: s.uses, options: { MEM_LIMIT: "1gb" } }),
          duration: s.duration ?? "3s",
          ...(s.cancelAfter && { cancelAfter: s.cancelAfter }),
        },
        minute: { ...common, duration: "60s" },
      },
      arrivals: s.arrivals,
      faults: s.faults ?? [],
    }),
    "story.json",
  );
  const config: PoolConfig = {
    ...DEFAULT_POOL_CONFIG,
    maxRequests: 10,
    queueTimeout: 600_000 as Millis,
    ...s.pool,
  };
  const events: RunEvent[] = [];
  simulate({
    scenario,
    workload: createWorkload(scenario, {
      resolve: (pool, user) => ({ kind: "resolved", pool, user, groups: [], defaultOptions: {}, maxMtDop: -1 }),
    }),
    pools: { configOf: () => config },
    flags: flagsOf(scenario),
    emit: (e) => events.push(e),
  });
  return events;
}

const ofKind = <K extends EventKind>(events: readonly RunEvent[], kind: K): EventOf<K>[] =>
  events.filter((e): e is EventOf<K> => e.kind === kind);

/** Most running at once, over all coordinators, and when that was first so. */
function peakRunning(events: readonly RunEvent[]): { peak: number; at: number } {
  let running = 0;
  let most = { peak: 0, at: 0 };
  for (const e of events) {
    if (e.kind === "released") running--;
    if (e.kind === "admitted" && ++running > most.peak) most = { peak: running, at: e.at };
  }
  return most;
}

describe("T-12, T-26 a limit checked by k coordinators is up to k limits", () => {
  test.each([
    { coordinators: 1, peak: 10 },
    { coordinators: 2, peak: 20 },
    { coordinators: 4, peak: 40 },
    { coordinators: 8, peak: 80 },
  ])("80 queries in one instant over $coordinators: $peak run", ({ coordinators, peak }) => {
    const events = told({ coordinators, arrivals: [{ at: "0s", query: "q", count: 80 }] });
    expect(peakRunning(events).peak).toBe(peak);
    expect(ofKind(events, "released")).toHaveLength(80);
  });

  test("and with admissiond it is one limit", () => {
    const events = told({
      coordinators: 8,
      admission: "admissiond",
      arrivals: [{ at: "0s", query: "q", count: 80 }],
    });
    expect(peakRunning(events).peak).toBe(10);
  });

  test("the older the views, the further over the limit", () => {
    const peaks = ["100ms", "500ms", "2s"].map(
      (every) =>
        peakRunning(told({ coordinators: 4, every, arrivals: [{ every: "50ms", query: "q", count: 80 }] })).peak,
    );
    expect(peaks[0]).toBeGreaterThan(10);
    expect(peaks[1]).toBeGreaterThanOrEqual(peaks[0]!);
    expect(peaks[2]).toBeGreaterThan(peaks[1]!);
  });
});

describe("T-37 a statestore that comes back knows nothing", () => {
  const A = { coordinator: "coord-1", query: "q" };
  const B = { coordinator: "coord-2", query: "q" };

  test("ten that ran are forgotten, ten more start within an exchange of its return", () => {
    const events = told({
      coordinators: 2,
      duration: "20s",
      arrivals: [
        { ...A, at: "0s", count: 10 },
        { ...B, at: "1s", count: 10 },
      ],
      faults: [
        { fault: "statestoreStops", at: "5s" },
        { fault: "statestoreStarts", at: "12s" },
      ],
    });
    const { peak, at } = peakRunning(events);
    expect(peak).toBe(20);
    expect(at).toBeGreaterThanOrEqual(12_000);
    expect(at).toBeLessThanOrEqual(12_100);
    // While it was away, nobody was let in: B still believed in ten.
    expect(ofKind(events, "admitted").filter((e) => e.at > 1000 && e.at < 12_000)).toEqual([]);
  });

  test("without its absence they wait until the ten are done", () => {
    const events = told({
      coordinators: 2,
      duration: "20s",
      arrivals: [
        { ...A, at: "0s", count: 10 },
        { ...B, at: "1s", count: 10 },
      ],
    });
    expect(peakRunning(events).peak).toBe(10);
  });
});

describe("a statestore that stays away (nobody is declared failed)", () => {
  const stops = { at: "500ms", fault: "statestoreStops" };
  const once = [{ at: "0s", query: "q", count: 1 }];
  const released = (faults: readonly unknown[]) => told({ arrivals: once, faults }).find((e) => e.kind === "released");

  test("the coordinator of a query on a dead host gives up after 600 s and 20 % without a report", () => {
    expect(released([stops, { at: "1s", fault: "hostDies", host: "exec-1" }])).toMatchObject({
      at: 721_000,
      state: "failed",
      error: "No status report from exec-1:27000",
    });
  });

  test("so does it when a new process is there by then: that one does not report for the old one", () => {
    const host = "exec-1";
    const faults = [stops, { at: "1s", fault: "hostDies", host }, { at: "5s", fault: "hostReturns", host }];
    expect(released(faults)).toMatchObject({ at: 721_000, state: "failed" });
  });

  test("and when the statestore declared the host failed, and was gone before it told anybody", () => {
    // Declared at 11.01 s; the coordinator's next round would be at 11.1 s.
    const faults = [
      { at: "1010ms", fault: "hostDies", host: "exec-1" },
      { at: "11050ms", fault: "statestoreStops" },
    ];
    expect(released(faults)).toMatchObject({ at: 721_010, state: "failed" });
  });

  test("executors end the queries of a dead coordinator after 600 s", () => {
    expect(released([stops, { at: "1s", fault: "coordinatorDies", host: "coord-1" }])).toMatchObject({
      at: 601_000,
      state: "failed",
    });
  });

  test("once it is back it waits as long again before it declares a host failed", () => {
    const back = { at: "60s", fault: "statestoreStarts" };
    const faults = [stops, { at: "1s", fault: "hostDies", host: "exec-1" }, back];
    const flags = { statestore_subscriber_recovery_grace_period_ms: "1000" };
    const end = told({ arrivals: once, faults, flags }).find((e) => e.kind === "released");
    // Declared at 70 s; the coordinator hears in its next round.
    expect(end?.at).toBeGreaterThanOrEqual(70_000);
    expect(end?.at).toBeLessThanOrEqual(70_100);
  });
});

describe("6.1 after a reconnection the membership stands still", () => {
  /** One query every 10 s; one of the four hosts takes nothing new from 5 s on. */
  const withHost = (flags: Record<string, string>) =>
    ofKind(
      told({
        flags,
        arrivals: [{ from: "0s", every: "10s", query: "q", count: 5 }],
        faults: [
          { fault: "statestoreStops", at: "1s" },
          { fault: "statestoreStarts", at: "2s" },
          { fault: "hostQuiesces", at: "5s", host: "exec-2" },
        ],
      }),
      "admitted",
    )
      .filter((e) => e.hosts.includes("exec-2:27000"))
      .map((e) => e.at);

  test("for 30 s from the statestore's return, 2 s to 32 s", () => {
    expect(withHost({})).toEqual([0, 10_000, 20_000, 30_000]);
  });

  test("or as long as --statestore_subscriber_recovery_grace_period_ms says", () => {
    expect(withHost({ statestore_subscriber_recovery_grace_period_ms: "15000" })).toEqual([0, 10_000]);
    expect(withHost({ statestore_subscriber_recovery_grace_period_ms: "0" })).toEqual([0]);
  });
});

describe("7.7 admissiond is asked, and answers when asked", () => {
  const events = told({
    coordinators: 2,
    admission: "admissiond",
    pool: { queueTimeout: 1000 as Millis },
    arrivals: [{ at: "0s", query: "q", count: 12 }],
  });

  test("a time-out comes with the end of a call, up to 110 ms late", () => {
    // Calls of 100 ms, 10 apart, from 0: the tenth ends at 1,090.
    expect(ofKind(events, "timedOut").map((e) => [e.at, e.waited])).toEqual([
      [1090, 1090],
      [1090, 1090],
    ]);
  });

  test("what is admitted from the queue starts when its coordinator hears of it", () => {
    const later = told({
      coordinators: 2,
      admission: "admissiond",
      duration: "3005ms",
      arrivals: [{ at: "0s", query: "q", count: 11 }],
    });
    const [admitted] = ofKind(later, "admitted").filter((e) => e.path === "fromQueue");
    const starts = ofKind(later, "fragmentStarted").filter((e) => e.query === admitted?.query);
    // Decided at 3,005 ms; calls begin at 2,970 and 3,080, so this one hears at once.
    expect([admitted?.at, starts[0]?.at]).toEqual([3005, 3005]);
    const gap = told({
      coordinators: 2,
      admission: "admissiond",
      duration: "3075ms",
      arrivals: [{ at: "0s", query: "q", count: 11 }],
    });
    const inGap = ofKind(gap, "admitted").find((e) => e.path === "fromQueue");
    expect(inGap?.at).toBe(3075);
    expect(ofKind(gap, "fragmentStarted").find((e) => e.query === inGap?.query)?.at).toBe(3080);
  });

  test("a lost release is made up for by the next heartbeat", () => {
    const lossy = told({
      admission: "admissiond",
      duration: "1500ms",
      arrivals: [{ at: "0s", query: "q", count: 1 }],
      faults: [{ fault: "releasesLost", at: "0s", chance: 1 }],
    });
    expect(ofKind(lossy, "released").map((e) => e.at)).toEqual([2000]);
  });

  test("who lost it, and had its answer, is not failed when its coordinator leaves before the heartbeat", () => {
    // Declared failed at 1700 ms; `admissiond` hears at its next exchange.
    const events = told({
      admission: "admissiond",
      coordinators: 2,
      duration: "11500ms",
      arrivals: [{ coordinator: "coord-1", at: "0s", query: "q", count: 1 }],
      faults: [
        { fault: "releasesLost", at: "0s", chance: 1 },
        { fault: "coordinatorCutOff", at: "1700ms", host: "coord-1" },
      ],
    });
    expect(ofKind(events, "releaseLost").map((e) => [e.at, e.hosts, e.state])).toEqual([[11_500, [], "finished"]]);
    const [released] = ofKind(events, "released");
    expect(released).toMatchObject({ state: "finished", error: null });
    expect(released!.at).toBeGreaterThanOrEqual(11_700);
    expect(released!.at).toBeLessThanOrEqual(11_800);
  });

  test("one heartbeat makes up for all that its coordinator has lost, and for nobody else's", () => {
    const lossy = told({
      coordinators: 2,
      admission: "admissiond",
      arrivals: [
        { coordinator: "coord-1", at: "0s", query: "q", count: 2 },
        // Ends as the other two are released, and is lost after that.
        { coordinator: "coord-2", at: "1s", query: "q", count: 1 },
      ],
      duration: "2950ms",
      faults: [{ fault: "releasesLost", at: "0s", chance: 1 }],
    });
    expect(ofKind(lossy, "released").map((e) => e.at)).toEqual([3000, 3000, 4000]);
  });

  test("a client that gives up in the gap: the query is admitted, never begins, and is given back when heard of", () => {
    const gap = told({
      coordinators: 2,
      admission: "admissiond",
      duration: "3075ms",
      cancelAfter: "3078ms",
      arrivals: [{ at: "0s", query: "q", count: 11 }],
    });
    const last = ofKind(gap, "admitted").at(-1)!;
    expect([last.at, last.path]).toEqual([3075, "fromQueue"]);
    expect(gap.filter((e) => "query" in e && e.query === last.query && e.kind === "fragmentStarted")).toEqual([]);
    expect(ofKind(gap, "released").at(-1)).toMatchObject({ query: last.query, at: 3080, state: "cancelled" });
  });

  test.each([
    { at: 1000, during: "a call", heard: 1000 },
    { at: 1095, during: "a pause", heard: 1100 },
  ])("9.4 a cancellation during $during is cleaned up at $heard ms", ({ at, heard }) => {
    const events = told({
      admission: "admissiond",
      cancelAfter: `${at}ms`,
      pool: { maxRequests: 1 },
      arrivals: [
        { at: "0s", query: "minute", count: 1 },
        { at: "0s", query: "q", count: 1 },
      ],
    });
    expect(ofKind(events, "cancelled").map((e) => [e.at, e.wasQueued])).toEqual([[heard, true]]);
  });
});

describe("9.1 the coordinator's host is done last, in the same instant too", () => {
  const lives = (uses: Record<string, unknown>, at: number): string[] =>
    told({ arrivals: [{ at: "0s", query: "q", count: 1 }], executors: 3, duration: "500ms", uses }).flatMap((e) =>
      e.at < at
        ? []
        : e.kind === "fragmentFinished"
          ? [`done ${e.host}`]
          : e.kind === "backendsReleased"
            ? [`given back ${e.hosts}`]
            : [],
    );

  test("where all take the same time", () => {
    const done = lives({ peak: "10mb" }, 500).slice(0, 4);
    expect(done).toEqual(["done exec-1:27000", "done exec-2:27000", "done exec-3:27000", "done coord-1:27000"]);
  });

  // exec-3 wants twice what it may have and writes the rest. After 500 ms no timed release is due yet.
  test("where one takes longer: with it all executors are given back, and the coordinator with the query", () => {
    const skewed = { peak: "10mb", perHost: { "exec-3": 200 } };
    expect(lives(skewed, 501)).toEqual([
      "done exec-3:27000",
      "given back exec-1:27000,exec-2:27000,exec-3:27000",
      "done coord-1:27000",
      "given back coord-1:27000",
    ]);
  });
});

describe("9.5 processes that die", () => {
  test("a query on a dead executor hangs until its coordinator hears, after ten seconds and an exchange", () => {
    const events = told({
      arrivals: [{ at: "0s", query: "q", count: 1 }],
      faults: [{ fault: "hostDies", at: "1s", host: "exec-2" }],
    });
    const [released] = ofKind(events, "released");
    expect(released).toMatchObject({ state: "failed", error: "Failed due to unreachable impalad(s): exec-2:27000" });
    expect(released?.at).toBeGreaterThanOrEqual(11_000);
    expect(released?.at).toBeLessThanOrEqual(11_100);
  });

  test("one sent there meanwhile fails at once, and the next avoids the host", () => {
    const events = told({
      arrivals: [{ from: "2s", every: "1s", query: "q", count: 3 }],
      faults: [{ fault: "hostDies", at: "1s", host: "exec-2" }],
    });
    const ends = ofKind(events, "released");
    expect(ends[0]).toMatchObject({ at: 2000, state: "failed" });
    expect(ends.slice(1).map((e) => e.state)).toEqual(["finished", "finished"]);
    for (const e of ofKind(events, "admitted").slice(1)) expect(e.hosts).not.toContain("exec-2:27000");
  });

  test("a coordinator's queue dies with it, and its running queries when the executors hear", () => {
    const events = told({
      coordinators: 2,
      duration: "30s",
      arrivals: [{ coordinator: "coord-1", at: "0s", query: "q", count: 12 }],
      faults: [{ fault: "coordinatorDies", at: "1s", host: "coord-1" }],
    });
    expect(ofKind(events, "cancelled").map((e) => e.at)).toEqual([1000, 1000]);
    expect(ofKind(events, "released").every((e) => e.at === 11_000 && e.state === "failed")).toBe(true);
    expect(ofKind(events, "released")).toHaveLength(10);
  });

  test("T-59 with admissiond its queued ones stay, and are refused at the head", () => {
    const events = told({
      coordinators: 2,
      admission: "admissiond",
      duration: "30s",
      arrivals: [
        { coordinator: "coord-1", at: "0s", query: "q", count: 12 },
        { coordinator: "coord-2", at: "2s", query: "q", count: 1 },
      ],
      faults: [{ fault: "coordinatorDies", at: "1s", host: "coord-1" }],
    });
    expect(ofKind(events, "rejected").map((e) => e.reason.rule)).toEqual(["REJ-C2", "REJ-C2"]);
    const survivor = ofKind(events, "admitted").at(-1);
    // One refusal ends a pass (T-9), so the one behind them gets in two wake-ups after the ten were released.
    expect(survivor?.at).toBeGreaterThan(11_000);
    expect(survivor?.at).toBeLessThanOrEqual(11_400);
  });

  /** Ten run at coord-1 and three wait there; it dies at 2 s and is missed at 12 s. Nobody else asks for anything. */
  const left = {
    coordinators: 1,
    admission: "admissiond",
    arrivals: [{ at: "0s", query: "minute", count: 13 }],
  } as const;
  const dies = { fault: "coordinatorDies", at: "2s", host: "coord-1" };

  test("T-59 though nobody waits for them: one with each exchange, as each refusal ends its pass", () => {
    const events = told({ ...left, faults: [dies] });
    const refused = ofKind(events, "rejected");
    expect(refused.map((e) => e.reason.rule)).toEqual(["REJ-C2", "REJ-C2", "REJ-C2"]);
    const missed = ofKind(events, "released").map((e) => e.at);
    expect(missed).toEqual(Array(10).fill(missed[0]));
    expect(refused.map((e) => Math.round(e.at - missed[0]!))).toEqual([0, 100, 200]);
    expect(missed[0]).toBeGreaterThanOrEqual(12_000);
  });

  test("T-59 with the statestore gone nobody is missed: three stay queued, ten are held, and the run ends", () => {
    const events = told({ ...left, faults: [{ fault: "statestoreStops", at: "1s" }, dies] });
    expect(ofKind(events, "rejected")).toEqual([]);
    expect(ofKind(events, "released")).toEqual([]);
    expect(ofKind(events, "queued")).toHaveLength(3);
  });
});
