import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { RunEvent } from "../../../src/core/events.ts";
import { readRecords } from "../../../src/surfaces/cli/records-file.ts";
import { type Outcome, testFolder, waterhole } from "./command-line.ts";

const dir = testFolder();

/** Two hosts of 10 GB, a pool of 8 GB with room for two queries of 4 GB: five in waves of two. */
const SCENARIO = `
cluster: { executors: [{ count: 2, memory: 10gb }] }
flags: { default_pool_mem_limit: 8gb, default_pool_max_requests: 5, default_pool_max_queued: 2, queue_wait_timeout_ms: 600000 }
queries: { q: { estimate: 2gb, uses: { peak: 1gb }, duration: 1s } }
arrivals: [{ at: 0s, count: 5 }]
scale: { time: 20, memory: 1024 }
threads: 1
`;

function run(text: string, ...args: string[]): Promise<Outcome> {
  const file = join(dir, "small.yaml");
  writeFileSync(file, text);
  return waterhole("run", file, "--scratch", dir, ...args);
}

describe("waterhole run", () => {
  test("one JSON document, records that are whole, nothing left behind", async () => {
    const records = join(dir, "small.jsonl");
    const { code, stdout, stderr } = await run(SCENARIO, "--json", "--records", records);
    expect(stderr).toBe("");
    const json = JSON.parse(stdout);
    expect(json.pools["default-pool"]).toMatchObject({
      submitted: 5,
      admittedImmediately: 2,
      admittedFromQueue: 2,
      rejected: 1,
      rejectedByRule: { "REJ-A5": 1 },
      finished: 4,
      peakQueued: 2,
      peakMemoryBytes: 8 * 2 ** 30,
    });
    expect(json).toMatchObject({
      mode: "live",
      interrupted: false,
      broken: [],
      fleet: { hosts: 2, threads: 1, left: [] },
    });
    expect(json.fleet.peakArenaBytes).toBeGreaterThan(0);
    expect(json.fleet.peakArenaBytes).toBeLessThanOrEqual(json.fleet.arenaBytes);
    expect(code).toBe(0);
    const events: RunEvent[] = [];
    const reader = await readRecords(records, (event) => events.push(event));
    expect(reader.isComplete).toBe(true);
    expect(reader.header.machine?.cores).toBeGreaterThan(0);
    expect(events.filter((e) => e.kind === "fragmentFinished")).toHaveLength(4 * 2);
    expect(readdirSync(dir).filter((name) => !name.startsWith("small"))).toEqual([]);
  });

  test("a report as text, a failing threshold, exit code 99", async () => {
    const { code, stdout, stderr } = await run(`${SCENARIO}thresholds: ["rejected == 0"]\n`, "--no-records");
    expect(code).toBe(99);
    expect(stdout).toContain("fleet    2 hosts on 1 threads");
    expect(stdout).toMatch(/FAIL {2}rejected == 0 {5}1 {2}first at/);
    expect(stderr).toBe("");
  });

  test("a scenario that is wrong starts no thread: exit code 2", async () => {
    expect(await run(SCENARIO.replace("2gb", "2"))).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining("estimate 2 has no unit"),
    });
  });
});
