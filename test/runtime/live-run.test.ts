/** The fleet on real threads: counts, books, and what is left behind (issue: nothing). */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { readScenario } from "../../src/config/scenario-file.ts";
import { checkIdle } from "../../src/core/memory/ledger-checks.ts";
import type { LiveReport } from "../../src/runtime/live-run.ts";
import { firstEvent, open, runOf, SCRATCH, small } from "./live-fixture.ts";

const EXAMPLES = join(import.meta.dirname, "../../examples/dashboards");

const workers = (): number => process.getActiveResourcesInfo().filter((r) => /Worker|MessagePort/.test(r)).length;
const portsBefore = workers();

afterEach(() => {
  expect(existsSync(SCRATCH) ? readdirSync(SCRATCH) : []).toEqual([]);
  expect(workers()).toBe(portsBefore);
});
afterAll(() => rmSync(SCRATCH, { recursive: true, force: true }));

function expectClean(report: LiveReport): void {
  expect(report.leftBehind).toEqual([]);
  for (const h of report.hosts) expect(h.arenaPeak).toBeLessThanOrEqual(h.arenaSize);
}

describe("the worked example", () => {
  test.each([
    { file: "scenario.yaml", atOnce: 13, queued: 47, fromQueue: 47, timedOut: 0, rejected: 0 },
    { file: "dedicated-coordinator.yaml", atOnce: 12, queued: 48, fromQueue: 48, timedOut: 0, rejected: 0 },
    { file: "dropped-statistics.yaml", atOnce: 2, queued: 50, fromQueue: 14, timedOut: 36, rejected: 8 },
  ])("$file: $atOnce at once, $fromQueue from the queue", async ({ file, ...expected }) => {
    // Slower than the example: what other processes of the machine do meanwhile must not move a wave.
    const scenario = { ...readScenario(join(EXAMPLES, file)), scale: { time: 8, memory: 1024 } };
    const { count, events, report } = await runOf(scenario);
    const admitted = events.filter((e) => e.kind === "admitted");
    expect({
      atOnce: admitted.filter((e) => e.path === "immediately").length,
      queued: count("queued"),
      fromQueue: admitted.filter((e) => e.path === "fromQueue").length,
      timedOut: count("timedOut"),
      rejected: count("rejected"),
    }).toEqual(expected);
    expect(count("released")).toBe(admitted.length);
    expect(events.filter((e) => e.kind === "spilled")).toEqual([]);
    const full = events.find((e) => e.kind === "rejected");
    if (expected.rejected > 0) expect(full).toMatchObject({ reason: { rule: "REJ-A5", limit: 50, queued: 50 } });
    expectClean(report);
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

describe("a host dies", () => {
  test("alone on its thread: its queries fail with a clear reason, the thread is replaced, the fleet goes on", async () => {
    const told = await open(
      small({
        query: { duration: "10s", uses: { peak: "4gb" }, options: { MEM_LIMIT: "2gb" } },
        arrivals: [
          { at: "0s", query: "q", count: 2 },
          { at: "30s", query: "q", count: 1 },
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

  test("on a thread with others: only its own instances stop, and its memory is back at once", async () => {
    const told = await open(
      small({ threads: 1, query: { duration: "20s", hosts: 1 }, arrivals: [{ at: "0s", query: "q", count: 6 }] }),
    );
    const done = told.run.run();
    await firstEvent(told, () => told.count("fragmentStarted") >= 6);
    const used = new Set(told.events.flatMap((e) => (e.kind === "fragmentStarted" ? [e.host] : [])));
    const victim = [...used].find((h) => h.startsWith("exec")) ?? "";
    const host = told.run.hostNumber(victim);
    await told.run.fleet.loseHost(host, "killed by the test");
    expect(checkIdle(await told.run.fleet.snapshot(host))).toEqual([]);
    const report = await done;
    const failed = told.events.filter((e) => e.kind === "released" && e.state === "failed");
    const finished = told.events.filter((e) => e.kind === "released" && e.state === "finished");
    expect(failed.length).toBeGreaterThan(0);
    expect(finished.length).toBe(6 - failed.length);
    expectClean(report);
  });

  test("by plan, until it returns: meanwhile nothing is sent there", async () => {
    const { events, report } = await runOf(
      small({
        faults: [
          { at: "1s", fault: "hostDies", host: "exec-1" },
          { at: "20s", fault: "hostReturns", host: "exec-1" },
        ],
        arrivals: [{ every: "2s", count: 13, query: "q" }],
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

describe("Ctrl-C", () => {
  const busy = () =>
    small({
      flags: { default_pool_max_requests: "2" },
      query: { duration: "3s" },
      arrivals: [
        { at: "0s", query: "q", count: 5 },
        { every: "1s", query: "q", from: "1s", to: "10m" },
      ],
    });

  test("once: who waits is cancelled, who runs finishes, and there is a report", async () => {
    const told = await open(busy());
    const done = told.run.run();
    await firstEvent(told, () => told.count("fragmentStarted") >= 2 && told.count("queued") >= 3);
    told.run.drain();
    const report = await done;
    expect(report.ended).toBe("drained");
    expect(told.count("cancelled")).toBe(told.count("submitted") - told.count("admitted"));
    expect(told.events.filter((e) => e.kind === "released").map((e) => e.state)).not.toContain("cancelled");
    expectClean(report);
  });

  test("twice: who runs is cancelled too, at once", async () => {
    const told = await open(small({ query: { duration: "10h" } }));
    const done = told.run.run();
    await firstEvent(told, (e) => e.kind === "fragmentStarted");
    told.run.drain();
    told.run.stop();
    const report = await done;
    expect(report.ended).toBe("stopped");
    expect(told.events.at(-1)).toMatchObject({ kind: "released", state: "cancelled" });
    expectClean(report);
  });

  test("before the first thread is there", async () => {
    const told = await open(small());
    const done = told.run.run();
    told.run.drain();
    const report = await done;
    expect(told.count("submitted")).toBe(0);
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

describe("kill -9", () => {
  test("the next start finds and removes what the dead process left", async () => {
    const fixture = JSON.stringify(join(import.meta.dirname, "live-fixture.ts"));
    const script = `
      import { open, small, firstEvent } from ${fixture};
      const told = await open(small({ query: { duration: "20s", uses: { peak: "4gb", shape: "ramp" }, options: { MEM_LIMIT: "2gb" } } }));
      void told.run.run();
      await firstEvent(told, (e) => e.kind === "spilled");
      process.stdout.write(told.run.fleet.scratch.directory + "\\n");`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, WATERHOLE_TEST_SCRATCH: SCRATCH },
    });
    const [line] = await once(child.stdout, "data");
    child.kill("SIGKILL");
    await once(child, "exit");
    const directory = String(line).trim();
    expect(readdirSync(directory, { recursive: true }).length).toBeGreaterThan(0);
    const { report } = await runOf(small());
    expect(report.scratchRemoved).toEqual([directory.split("/").at(-1)]);
    expectClean(report);
  });
});
