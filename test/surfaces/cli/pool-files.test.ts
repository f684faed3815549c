/**
 * Pool files that change while a live run goes on (pool-configuration 4): real files, real modification times. Nothing
 * here waits: what follows a write is heard of, and the run ends when the test has heard it.
 */
import { utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { RunEvent } from "../../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG } from "../../../src/core/pool-config.ts";
import { type LiveRun, runLive } from "../../../src/runtime/live-run.ts";
import { newRunBus } from "../../../src/runtime/run-bus.ts";
import { Replay } from "../../../src/sim/replay.ts";
import { ScenarioRun } from "../../../src/surfaces/cli/scenario-run.ts";
import { testFolder, waterhole } from "./command-line.ts";

const dir = testFolder();
const FAIR = join(dir, "fair-scheduler.xml");
const SITE = join(dir, "llama-site.xml");
const SCENARIO = join(dir, "scenario.yaml");

const allocations = (memory: string): string =>
  `<allocations><queue name="root"><queue name="a"><maxResources>${memory}, 0 vcores</maxResources></queue></queue></allocations>`;
const site = (queued: number): string =>
  `<configuration><property><name>llama.am.throttling.maximum.queued.reservations.root.a</name><value>${queued}</value></property></configuration>`;

/** Queries of 2 GB on two hosts that come as long as the test wants. */
const scenario = (more = ""): string => `
cluster: { executors: [{ count: 2, memory: 100gb }] }
pools: { fairScheduler: fair-scheduler.xml, llamaSite: llama-site.xml }
queries: { q: { pool: root.a, estimate: 1gb, uses: { peak: 1mb }, duration: 100ms } }
arrivals: [{ every: 1s, query: q, from: 0s, to: 10h }]
scale: { time: 50, memory: 1024 }
threads: 1
${more}`;

function write(path: string, text: string): void {
  writeFileSync(path, text);
}

interface Run {
  readonly run: LiveRun;
  readonly events: RunEvent[];
  /** The first that is wanted, from now on. */
  heard<K extends RunEvent["kind"]>(
    kind: K,
    wanted?: (e: Extract<RunEvent, { kind: K }>) => boolean,
  ): Promise<Extract<RunEvent, { kind: K }>>;
  over(): Promise<void>;
}

async function start(): Promise<Run> {
  write(SCENARIO, scenario());
  const opened = await ScenarioRun.open(SCENARIO, { seed: null });
  const followed = opened.followPoolFiles()!;
  const bus = newRunBus();
  const events: RunEvent[] = [];
  bus.on("event", (e) => events.push(e));
  const pools = { current: () => opened.pools, change: () => undefined, followed };
  const { flags, workload } = opened;
  const { run, done } = runLive(opened.scenario, workload, pools, bus, { flags, scratchBase: dir });
  followed.onLine = (line) => run.emit({ kind: "poolFiles", at: run.now(), ...line });
  return {
    run,
    events,
    heard: (kind, wanted = () => true) =>
      new Promise((resolve) => {
        bus.on("event", function listen(e) {
          if (e.kind !== kind || !wanted(e as Parameters<typeof wanted>[0])) return;
          bus.off("event", listen);
          resolve(e as Parameters<typeof wanted>[0]);
        });
      }),
    over: async () => {
      run.drain();
      expect((await done).leftBehind).toEqual([]);
      const replay = new Replay();
      // As a records file has them: pools come with the calls, and the files of the start are not asked.
      const written = events.map((e) => JSON.parse(JSON.stringify(e)) as RunEvent);
      for (const e of written) if (e.kind === "controllerCall") expect(replay.take(e)).toBeNull();
    },
  };
}

describe("4.1 the allocation file", () => {
  test("a change counts from the first look at which it has rested, and a replay agrees", async () => {
    write(FAIR, allocations("100000 mb"));
    write(SITE, site(5));
    const run = await start();
    await run.heard("admitted");
    write(FAIR, allocations("1000 mb"));
    const line = await run.heard("poolFiles", (e) => e.text.startsWith("Completed loading"));
    expect(line).toMatchObject({ level: "info", text: `Completed loading allocation file ${FAIR}` });
    // Written after 0 and rested for 5 s: the look at 10 s is the first that can take it.
    expect(line.at).toBeGreaterThanOrEqual(10_000);
    const { reason } = await run.heard("rejected");
    expect(reason.rule).toBe("REJ-B7");
    await run.over();
    // Not a query was rejected before, and none admitted after.
    const at = run.events.indexOf(line);
    expect(run.events.slice(0, at).filter((e) => e.kind === "rejected")).toEqual([]);
    expect(run.events.slice(at).filter((e) => e.kind === "admitted")).toEqual([]);
  });

  test("a broken one leaves the old in force, and says why with file and line", async () => {
    write(FAIR, allocations("100000 mb"));
    write(SITE, site(5));
    const run = await start();
    await run.heard("admitted");
    write(FAIR, "<allocations>\n<queue name='root'></allocations>");
    const line = await run.heard("poolFiles", (e) => e.level === "error");
    expect(line.text).toContain("Failed to reload fair scheduler config file - will use existing allocations.");
    expect(line.text).toContain(`${FAIR}:2:`);
    await run.heard("admitted");
    await run.over();
    expect(run.events.filter((e) => e.kind === "rejected")).toEqual([]);
  });
});

describe("4.2 the site file", () => {
  test("broken: built-in defaults from then on, with file and line; repaired: its own again", async () => {
    write(FAIR, allocations("100000 mb"));
    write(SITE, site(5));
    const run = await start();
    await run.heard("admitted");
    expect(run.run.configOf("root.a").maxQueued).toBe(5);
    write(SITE, "<configuration>\n<property></configuration>");
    const broken = await run.heard("poolFiles", (e) => e.level === "error");
    expect(broken.text).toContain(`Failed to read ${SITE}`);
    expect(broken.text).toContain(`${SITE}:2`);
    expect(run.run.configOf("root.a").maxQueued).toBe(DEFAULT_POOL_CONFIG.maxQueued);
    await run.heard("admitted");
    write(SITE, site(7));
    await run.heard("poolFiles", (e) => e.text === `Loading configuration: ${SITE}`);
    expect(run.run.configOf("root.a").maxQueued).toBe(7);
    await run.heard("admitted");
    await run.over();
  });
});

describe("waterhole run", () => {
  test("the report and the JSON say what was reloaded", async () => {
    const brief = scenario().replace("every: 1s, query: q, from: 0s, to: 10h", "at: 0s, query: q, count: 1");
    write(FAIR, allocations("100000 mb"));
    write(SITE, site(5));
    write(SCENARIO, brief.replace("duration: 100ms", "duration: 120s"));
    // Newer than the run's start: every run finds it changed, and rested by 40 s at the latest.
    const soon = Date.now() / 1000 + 3600;
    utimesSync(SITE, soon, soon);
    const { stdout } = await waterhole("run", SCENARIO, "--no-records", "--scratch", dir, "--json");
    const json = JSON.parse(stdout);
    expect(json.poolFiles).toEqual([
      { atMs: expect.any(Number), level: "info", text: `Loading configuration: ${SITE}` },
    ]);
    expect(json.warnings).toEqual([]);
    const text = await waterhole("run", SCENARIO, "--no-records", "--scratch", dir);
    expect(text.stdout).toMatch(/^POOL FILES\n\d.*s {2}Loading configuration: .*llama-site\.xml$/m);
  });
});
