/**
 * Under want of memory a query ends the same way on the live fleet and in virtual time. Nothing here depends on when
 * something happens: every scenario has one outcome at any speed.
 */
import { describe, expect, test } from "vitest";
import type { RunEvent } from "../../src/core/events.ts";
import { expectClean, leavesNothingBehind } from "./live-checks.ts";
import { runOf, type Small, small } from "./live-fixture.ts";
import { simulated } from "./simulated.ts";

leavesNothingBehind();

/** By query id, so that one query's two ends stand against each other. */
const endsOf = (events: readonly RunEvent[]): Record<string, string> =>
  Object.fromEntries(
    events
      .flatMap((e) => (e.kind === "released" ? [[e.query, e.state] as const] : []))
      .sort(([a], [b]) => a.localeCompare(b)),
  );

/** First lines of what failed queries say, without what differs by machine: directories, and figures of the moment. */
const errorsOf = (events: readonly RunEvent[]): Record<string, string> =>
  Object.fromEntries(
    events.flatMap((e) => {
      if (e.kind !== "released" || e.error === null) return [];
      const [first] = e.error.split("\n");
      const said = first!
        .replace(/--scratch_dirs=[^)]*/, "--scratch_dirs=")
        .replace(/at capacity: .*/, "at capacity: ")
        .replace(/\d+\.\d\d [KMG]?B/g, "so much")
        .replace(/exec-\d:/, "exec-N:");
      return [[e.query, said] as const];
    }),
  );

const burst = (count: number) => [{ at: "0s", query: "q", count }];
const refusals = (chance: number) => ({
  faults: [{ at: "0s", fault: "refusals", chance }],
  // Five real seconds for the word to reach the threads.
  arrivals: [{ at: "100s", query: "q", count: 3 }],
});
const both = (spillable: boolean, query: object = {}) => ({ query: { uses: { peak: "512mb", spillable }, ...query } });

const spilling = (options: Record<string, string>, scratch?: string): Small => ({
  query: { uses: { peak: "2gb" }, options: { MEM_LIMIT: "1gb", ...options } },
  cluster: { executors: [{ count: 3, memory: "10gb", slots: 64, ...(scratch && { scratch }) }] },
});

const CASES: readonly { name: string; small: Small; ends: string }[] = [
  {
    // 12 footprints of 2 GB, and buffers of 8.5 GB on each host.
    name: "a host's buffers are fewer than the footprints together",
    small: { query: { estimate: "500mb", uses: { peak: "2gb" } }, arrivals: burst(12) },
    ends: "finished",
  },
  { name: "every growth is refused, and it can spill", small: { ...both(true), ...refusals(1) }, ends: "finished" },
  { name: "every growth is refused, and it can't", small: { ...both(false), ...refusals(1) }, ends: "failed" },
  {
    name: "every growth is refused, and it needs none beyond its minimum",
    small: { ...both(false, { estimate: "700mb", minReservation: "512mb" }), ...refusals(1) },
    ends: "finished",
  },
  {
    name: "a peak over the memory limit, and it can spill",
    small: { query: { uses: { peak: "2gb" }, options: { MEM_LIMIT: "1gb" } } },
    ends: "finished",
  },
  {
    name: "a peak over the memory limit, and it can't",
    small: { query: { uses: { peak: "2gb", spillable: false }, options: { MEM_LIMIT: "1gb" } } },
    ends: "failed",
  },
  {
    name: "a limit that leaves 2 MB for reservations is no reason to fail",
    small: { query: { uses: { peak: "100mb" }, options: { MEM_LIMIT: "34mb" } } },
    ends: "finished",
  },
  {
    name: "a limit that leaves nothing: there is nothing to spill",
    small: { query: { uses: { peak: "100mb" }, options: { MEM_LIMIT: "32mb" } } },
    ends: "failed",
  },
  {
    name: "no memory limit: the host's own counts, and it can't spill",
    small: { query: { uses: { peak: "9gb", spillable: false } } },
    ends: "failed",
  },
  {
    name: "BUFFER_POOL_LIMIT below the peak, and it can't spill",
    small: { query: { uses: { peak: "512mb", spillable: false }, options: { BUFFER_POOL_LIMIT: "100mb" } } },
    ends: "failed",
  },
];

/** 2 GB under a limit that leaves about 0.8: some 1.2 GB have to be written on each host. */
const SCRATCH_CASES: readonly { name: string; small: Small; ends: string; error: string | null }[] = [
  {
    name: "O2 SCRATCH_LIMIT=0",
    small: spilling({ SCRATCH_LIMIT: "0" }),
    ends: "failed",
    error: "Memory limit exceeded: Could not free memory by spilling to disk: scratch_limit is 0",
  },
  {
    name: "SCRATCH_LIMIT=0 by default (1.2)",
    small: { ...spilling({}), flags: { default_query_options: "scratch_limit=0" } },
    ends: "failed",
    error: "Memory limit exceeded: Could not free memory by spilling to disk: scratch_limit is 0",
  },
  { name: "SCRATCH_LIMIT=-1", small: spilling({ SCRATCH_LIMIT: "-1" }), ends: "finished", error: null },
  {
    name: "S7 a SCRATCH_LIMIT below what has to be written",
    small: spilling({ SCRATCH_LIMIT: "1000mb" }),
    ends: "failed",
    error:
      "Scratch space limit of 1048576000 bytes exceeded for query while spilling data to disk on backend exec-N:27000.",
  },
  { name: "S7 a SCRATCH_LIMIT above it", small: spilling({ SCRATCH_LIMIT: "1500mb" }), ends: "finished", error: null },
  {
    name: "S7 a SCRATCH_LIMIT of 0 where nothing has to be written",
    small: { query: { uses: { peak: "500mb" }, options: { SCRATCH_LIMIT: "0" } } },
    ends: "finished",
    error: null,
  },
  {
    name: "S9 a host's scratch below it",
    small: spilling({}, "1000mb"),
    ends: "failed",
    error:
      "Could not create files in any configured scratch directories (--scratch_dirs=) on backend 'exec-N:27000'. so much of scratch is currently in use by this Impala Daemon (so much by this query). See logs for previous errors that may have prevented creating or writing scratch files. The following directories were at capacity: ",
  },
  { name: "S9 a host's scratch above it", small: spilling({}, "1500mb"), ends: "finished", error: null },
];

describe("S7, S9, O2 both drivers end a query that may not spill so much the same way", () => {
  test.each(SCRATCH_CASES)("$name: $ends", async ({ small: said, ends, error }) => {
    const scenario = small(said);
    const live = await runOf(scenario);
    const virtual = simulated(scenario);
    expect(endsOf(live.events)).toEqual(endsOf(virtual));
    expect(Object.values(endsOf(live.events))).toEqual([ends]);
    expect(errorsOf(live.events)).toEqual(errorsOf(virtual));
    expect(Object.values(errorsOf(virtual))).toEqual(error === null ? [] : [error]);
    expectClean(live.report);
  });
});

describe("R15, I19 both drivers end a query the same way", () => {
  test.each(CASES)("$name: $ends", async ({ small: said, ends }) => {
    const scenario = small(said);
    const live = await runOf(scenario);
    expect(endsOf(live.events)).toEqual(endsOf(simulated(scenario)));
    expect(errorsOf(live.events)).toEqual(errorsOf(simulated(scenario)));
    expect(new Set(Object.values(endsOf(live.events)))).toEqual(new Set([ends]));
    expectClean(live.report);
  });
});

describe("R13 footprints that follow their shape on hosts that have too little for their peaks", () => {
  /** 6 GB each, of 8.5; they grow all their time. */
  const two = (second: string, spillable: boolean): Small => ({
    executors: 1,
    query: { estimate: "1gb", duration: "40s", uses: { peak: "6gb", spillable } },
    arrivals: [
      { at: "0s", query: "q", count: 1 },
      { at: second, query: "q", count: 1 },
    ],
  });
  const fates = (events: readonly RunEvent[]): string[] => Object.values(endsOf(events)).sort();
  const spilt = (events: readonly RunEvent[]): boolean =>
    events.some((e) => e.kind === "fragmentFinished" && e.spilled > 0);

  test.each([
    { second: "0s", spillable: false, ends: ["failed", "finished"], spills: false },
    { second: "8s", spillable: false, ends: ["failed", "finished"], spills: false },
    { second: "32s", spillable: false, ends: ["finished", "finished"], spills: false },
    { second: "8s", spillable: true, ends: ["finished", "finished"], spills: true },
    { second: "32s", spillable: true, ends: ["finished", "finished"], spills: false },
  ])("the second after $second, spillable $spillable: $ends", async ({ second, spillable, ends, spills }) => {
    const scenario = small(two(second, spillable));
    const live = await runOf(scenario);
    const virtual = simulated(scenario);
    expect([fates(live.events), spilt(live.events)]).toEqual([ends, spills]);
    expect([fates(virtual), spilt(virtual)]).toEqual([ends, spills]);
    expectClean(live.report);
  });
});

describe("6.1 a membership that stands still after a reconnection, live and in virtual time", () => {
  /** The host takes nothing new from 3 s on; the statestore, which tells of it, was away before. */
  const scenario = (flags: Record<string, string>, admission: string): Small => ({
    flags,
    cluster: { admission },
    arrivals: [{ at: "6s", query: "q", count: 1 }],
    faults: [
      { at: "1s", fault: "statestoreStops" },
      { at: "2s", fault: "statestoreStarts" },
      { at: "3s", fault: "hostQuiesces", host: "exec-2" },
    ],
  });
  const hostsOf = (events: readonly RunEvent[]) => events.flatMap((e) => (e.kind === "admitted" ? e.hosts : []));
  const others = ["coord-1:27000", "exec-1:27000", "exec-3:27000"];
  const all = ["coord-1:27000", "exec-1:27000", "exec-2:27000", "exec-3:27000"];

  test.each([
    { flags: {}, admission: "distributed", hosts: all },
    { flags: {}, admission: "admissiond", hosts: all },
    { flags: { statestore_subscriber_recovery_grace_period_ms: "500" }, admission: "distributed", hosts: others },
    { flags: { statestore_subscriber_recovery_grace_period_ms: "500" }, admission: "admissiond", hosts: others },
  ])("$admission, $flags", async ({ flags, admission, hosts }) => {
    const said = small(scenario(flags, admission));
    const live = await runOf(said);
    expect(hostsOf(live.events)).toEqual(hosts);
    expect(hostsOf(simulated(said))).toEqual(hosts);
    expectClean(live.report);
  });
});

describe("MT_DOP: several instances on a host", () => {
  const mtDop = 3;

  test("each has its part of the peak and of the minimum, and they share the query's limit", async () => {
    const { events, report, count } = await runOf(
      small({ query: { mtDop, uses: { peak: "100mb" }, minReservation: "8mb" } }),
    );
    const finished = events.filter((e) => e.kind === "fragmentFinished");
    // Three executors, and the root fragment on the coordinator.
    expect(finished).toHaveLength(3 * mtDop + 1);
    expect(count("fragmentStarted")).toBe(3 * mtDop + 1);
    expect(new Set(finished.map((e) => e.instance)).size).toBe(3 * mtDop + 1);
    const onFirst = finished.filter((e) => e.host === "exec-1:27000").map((e) => e.peak);
    expect(onFirst.reduce((sum, peak) => sum + peak, 0)).toBe(100 * 2 ** 20);
    expect(events.at(-1)).toMatchObject({ kind: "released", state: "finished" });
    expectClean(report);
  });

  test("over the query's limit all of them spill, each to its own file", async () => {
    const { events, report } = await runOf(
      // Long, so that the three are there at the same time on a busy machine too.
      small({ query: { mtDop, duration: "100s", uses: { peak: "2gb" }, options: { MEM_LIMIT: "1gb" } } }),
    );
    const spilling = events.filter((e) => e.kind === "fragmentFinished" && e.spilled > 0);
    expect(new Set(spilling.map((e) => e.kind === "fragmentFinished" && e.host)).size).toBe(3);
    expect(events.at(-1)).toMatchObject({ kind: "released", state: "finished" });
    expectClean(report);
  });

  test("R16, R17 a minimum that is not there ends all of them with code 106", async () => {
    const { events, report, count } = await runOf(
      small({
        memory: "1gb",
        query: { mtDop, estimate: "100mb", minReservation: "200mb", options: { MEM_LIMIT: "900mb" } },
        arrivals: burst(2),
      }),
    );
    expect(events.flatMap((e) => (e.kind === "released" ? [e.state] : [])).sort()).toEqual(["failed", "finished"]);
    expect(count("fragmentFinished")).toBe(2 * (3 * mtDop + 1));
    expectClean(report);
  });

  test("one that can't spill fails, and its siblings end with it", async () => {
    const { events, report, count } = await runOf(
      small({
        query: { mtDop, duration: "100s", uses: { peak: "2gb", spillable: false }, options: { MEM_LIMIT: "1gb" } },
      }),
    );
    expect(events.at(-1)).toMatchObject({ kind: "released", state: "failed" });
    expect(count("fragmentFinished")).toBe(3 * mtDop + 1);
    expectClean(report);
  });

  test("I23 a host that dies takes all of them, and its books are at zero when it is back", async () => {
    const { events, report } = await runOf(
      small({
        threads: 1,
        query: { mtDop, duration: "1h", cancelAfter: "3h", hosts: "all" },
        faults: [{ at: "200s", fault: "hostDies", host: "exec-1" }],
        time: 200,
      }),
    );
    expect(events.at(-1)).toMatchObject({ kind: "released", state: "failed" });
    expectClean(report);
  });
});
