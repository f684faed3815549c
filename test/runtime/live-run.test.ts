/** The fleet on real threads: counts, one query's life, and the books. */
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { readScenario } from "../../src/config/scenario-file.ts";
import { BufferAllocator, NO_LOCK } from "../../src/core/memory/buffer-allocator.ts";
import { KiB } from "../../src/core/units.ts";
import { expectClean, leavesNothingBehind } from "./live-checks.ts";
import { firstEvent, open, runOf, small, type Told } from "./live-fixture.ts";

const EXAMPLES = join(import.meta.dirname, "../../examples/dashboards");

leavesNothingBehind();

/** How many of a run were admitted how, and what became of the others. */
function outcomesOf({ count, events }: Told) {
  const admitted = events.filter((e) => e.kind === "admitted");
  return {
    atOnce: admitted.filter((e) => e.path === "immediately").length,
    queued: count("queued"),
    fromQueue: admitted.filter((e) => e.path === "fromQueue").length,
    timedOut: count("timedOut"),
    rejected: count("rejected"),
  };
}

describe("the worked example", () => {
  const example = (file: string, time: number) => ({
    ...readScenario(join(EXAMPLES, file)),
    scale: { time, memory: 1024 },
  });

  // The last wave is 14 s before the time-out: at this pace more than five real seconds.
  test.each([
    { file: "scenario.yaml", atOnce: 13, queued: 47, fromQueue: 47, timedOut: 0, rejected: 0 },
    { file: "dedicated-coordinator.yaml", atOnce: 12, queued: 48, fromQueue: 48, timedOut: 0, rejected: 0 },
  ])("$file: $atOnce at once, $fromQueue from the queue", async ({ file, ...expected }) => {
    const told = await runOf(example(file, 2.5));
    expect(outcomesOf(told)).toEqual(expected);
    expect(told.count("released")).toBe(60);
    expect(told.count("spilled")).toBe(0);
    expectClean(told.report);
  });

  // Every wave that a busy machine delays moves the next one towards the time-out: how many are let in before it is
  // exact in virtual time only (worked-example.test.ts), and never more than there.
  test("dropped-statistics.yaml: 2 at once, 8 rejected, at most 14 from the queue before the others time out", async () => {
    const told = await runOf(example("dropped-statistics.yaml", 5));
    const { fromQueue, timedOut, ...rest } = outcomesOf(told);
    expect(rest).toEqual({ atOnce: 2, queued: 50, rejected: 8 });
    expect(fromQueue + timedOut).toBe(50);
    expect(fromQueue).toBeGreaterThanOrEqual(2);
    expect(fromQueue).toBeLessThanOrEqual(14);
    expect(told.count("released")).toBe(2 + fromQueue);
    expect(told.events.find((e) => e.kind === "rejected")).toMatchObject({
      reason: { rule: "REJ-A5", limit: 50, queued: 50 },
    });
    expectClean(told.report);
  });
});

describe("one query's life", () => {
  test("its events come in order, host by host", async () => {
    const { events, report } = await runOf(small());
    const kinds = events.filter((e) => e.kind !== "topicApplied").map((e) => e.kind);
    expect(kinds.slice(0, 2)).toEqual(["submitted", "admitted"]);
    expect(kinds.slice(-2)).toEqual(["backendsReleased", "released"]);
    // Three executors and the coordinator's own root fragment.
    expect(kinds.filter((k) => k === "fragmentStarted")).toHaveLength(4);
    expect(events.at(-1)).toMatchObject({ state: "finished", peak: 512 * 1024 * 1024, error: null });
    const times = events.map((e) => e.at);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(report.checks).toBeGreaterThan(0);
    expectClean(report);
  });

  test("a query over its memory limit spills on every host and finishes", async () => {
    const { events, report } = await runOf(small({ query: { options: { MEM_LIMIT: "1gb" }, uses: { peak: "2gb" } } }));
    const ends = events.filter((e) => e.kind === "fragmentFinished");
    expect(ends.filter((e) => e.spilled > 0)).toHaveLength(3);
    expect(events.at(-1)).toMatchObject({ kind: "released", state: "finished" });
    expect(report.hosts.some((h) => h.peakScratch > 0)).toBe(true);
    expectClean(report);
  });

  test("one that can't spill fails with Impala's text, and the other hosts are cancelled", async () => {
    const { events, report } = await runOf(
      small({ query: { options: { MEM_LIMIT: "1gb" }, uses: { peak: "2gb", spillable: false } } }),
    );
    expect(events.at(-1)).toMatchObject({ kind: "released", state: "failed" });
    expect(events.at(-1)).toMatchObject({ error: expect.stringContaining("Memory limit exceeded: ") });
    expectClean(report);
  });

  test("R17 on a host without room the query fails at once with code 106's text", async () => {
    const { events, report } = await runOf(
      small({
        memory: "1gb",
        query: { estimate: "100mb", minReservation: "600mb", options: { MEM_LIMIT: "900mb" } },
        arrivals: [{ at: "0s", query: "q", count: 2 }],
      }),
    );
    const failed = events.filter((e) => e.kind === "released" && e.state === "failed");
    expect(failed).toHaveLength(1);
    expect(failed[0]).toMatchObject({ error: expect.stringContaining("Failed to get minimum memory reservation of") });
    expectClean(report);
  });

  test("a client that gives up cancels a running query and a waiting one", async () => {
    const { count, events, report } = await runOf(
      small({
        flags: { default_pool_max_requests: "1" },
        query: { duration: "1h", cancelAfter: "2s" },
        arrivals: [{ at: "0s", query: "q", count: 2 }],
      }),
    );
    expect(events.find((e) => e.kind === "released")).toMatchObject({ state: "cancelled", error: null });
    expect(count("cancelled")).toBe(1);
    expectClean(report);
  });
});

describe("the pages are real", () => {
  test("the process holds what the arenas say: 1.5 GB of accounts at 1/4 are 384 MB", async () => {
    const told = await open(
      small({
        scaleMemory: 4,
        query: { estimate: "1gb", uses: { peak: "512mb", shape: "flat" }, duration: "4s" },
      }),
    );
    const done = told.run.run();
    await firstEvent(told, (e) => e.kind === "submitted");
    const before = process.memoryUsage().rss;
    await firstEvent(told, () => told.events.filter((e) => e.kind === "reserved" && e.used > 500_000_000).length >= 3);
    const grown = process.memoryUsage().rss - before;
    const report = await done;
    const touched = report.hosts.reduce((n, h) => n + h.arenaPeak, 0);
    expect(touched).toBe(3 * 128 * 1024 * 1024);
    // Something else may have been given back in the meantime.
    expect(grown).toBeGreaterThan(0.8 * touched);
    expectClean(report);
  });
});

describe("real operators", () => {
  const sort = { rows: 400_000, width: 16, keys: { uniform: { distinct: 100_000 } } };
  const real = (options: object, more: object = {}) =>
    small({
      memory: "400mb",
      scaleMemory: 1,
      query: { estimate: undefined, uses: undefined, duration: undefined, sort, options },
      ...more,
    });

  test("sort real rows on every host, with room and without", async () => {
    const wide = await runOf(real({ MEM_LIMIT: "200mb" }));
    const narrow = await runOf(real({ MEM_LIMIT: "40mb" }));
    expect(wide.count("spilled")).toBe(0);
    const ends = narrow.events.filter((e) => e.kind === "fragmentFinished" && e.spilled > 0);
    expect(ends).toHaveLength(3);
    for (const { events, report } of [wide, narrow]) {
      expect(events.at(-1)).toMatchObject({ kind: "released", state: "finished" });
      expectClean(report);
    }
  });

  test("--check: a host whose buffers don't add up ends the run (I9)", async () => {
    const format = vi.spyOn(BufferAllocator, "format");
    const { run } = await open(real({ MEM_LIMIT: "200mb" }));
    // Before the threads are there: a buffer on one of the hosts that no operator has.
    const [words, pool] = format.mock.calls[1]!;
    format.mockRestore();
    new BufferAllocator(words, pool, NO_LOCK).allocate(64 * KiB, 99);
    await expect(run.run()).rejects.toThrow(
      /^exec-2:27000: I9 clients hold \d+ bytes of buffers, the pool counts \d+ in use \(seed \d+\)$/,
    );
  });

  test("a host too large for real memory is a mistake of the scenario", async () => {
    await expect(open(real({}, { memory: "100gb" }))).rejects.toThrow(
      "a host with real operators can give them at most",
    );
  });
});

describe("several coordinators, admissiond", () => {
  const four = { coordinators: [{ count: 4, on: "dedicated", memory: "10gb" }] };
  const burst = [{ at: "0s", query: "q", count: 20 }];

  test.each(["distributed", "admissiond"])("%s: every query ends, and the books are at zero", async (admission) => {
    const { count, events, report } = await runOf(
      small({
        cluster: { ...four, admission },
        flags: { default_pool_max_requests: "4" },
        arrivals: burst,
      }),
    );
    const coordinators = new Set(events.flatMap((e) => (e.kind === "submitted" ? [e.coordinator] : [])));
    expect(coordinators.size).toBe(4);
    const atOnce = events.filter((e) => e.kind === "admitted" && e.path === "immediately").length;
    // T-12: each controller fills the same free places; one for all does not.
    expect(atOnce).toBe(admission === "admissiond" ? 4 : 16);
    expect(count("released")).toBe(20);
    expectClean(report);
  });
});

describe("more hosts than threads", () => {
  test("100 hosts on 8 threads", async () => {
    const { count, report } = await runOf(
      small({ executors: 100, threads: 8, arrivals: [{ at: "0s", query: "q", count: 5 }] }),
    );
    expect(report.threads).toBe(8);
    expect(count("fragmentFinished")).toBe(5 * 101);
    expect(count("released")).toBe(5);
    expectClean(report);
  });
});
