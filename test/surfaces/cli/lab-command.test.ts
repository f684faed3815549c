import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { testFolder, waterhole } from "./command-line.ts";

const EXAMPLES = resolve(import.meta.dirname, "../../../examples/dashboards");
const dir = testFolder();

const SCENARIO = join(dir, "mixed.yaml");
writeFileSync(
  SCENARIO,
  `cluster:
  executors: [{ count: 10, memory: 100gb, slots: 16 }]
  coordinators: [{ count: 1, on: executor }]
pools: { fairScheduler: ${join(EXAMPLES, "fair-scheduler.xml")}, llamaSite: ${join(EXAMPLES, "llama-site.xml")} }
queries:
  tile: { pool: root.dashboards, user: ana, estimate: 1.5gb, duration: { exponential: { mean: 4s } }, uses: { peak: 1.1gb } }
  big: { pool: root.dashboards, user: ana, estimate: 8gb, duration: { exponential: { mean: 60s } }, uses: { peak: 6gb } }
arrivals: [{ rate: 1, query: { tile: 0.98, big: 0.02 }, from: 0s, to: 600s }]
`,
);

describe("waterhole lab", () => {
  test("one table over the policies, same seed, and what it means", async () => {
    const { code, stdout, stderr } = await waterhole("lab", SCENARIO);
    expect(stderr).toBe("");
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^root\.dashboards: \d+ requests, the same for every policy; large is charged more than 15\.0 GiB/,
    );
    for (const policy of ["strict FIFO", "backfill", "backfill, no aging", "split by size"])
      expect(stdout).toMatch(new RegExp(`\\n${policy} +\\d`));
  });

  test("--json, another patience, another seed", async () => {
    const rows = async (...more: string[]): Promise<{ policy: string; overtakings: number }[]> =>
      JSON.parse((await waterhole("lab", SCENARIO, "--json", ...more)).stdout).rows;
    const usual = await rows();
    const none = await rows("--patience", "0s");
    expect(usual[1]?.overtakings).toBeGreaterThan(0);
    expect(none[1]?.overtakings).toBe(0);
    expect(await rows()).toEqual(usual);
    expect(await rows("--seed", "9")).not.toEqual(usual);
  });

  test("where all are charged the same, nothing is said of large ones", async () => {
    const same = join(dir, "same.yaml");
    const text = readFileSync(SCENARIO, "utf8").replace("{ tile: 0.98, big: 0.02 }", "tile");
    writeFileSync(same, text);
    const { stdout } = await waterhole("lab", same);
    expect(stdout).toMatch(/; all are charged about the same\n/);
    expect(stdout).not.toContain("large");
  });

  test("statistics dropped on the way are in the requests of every policy", async () => {
    const dropped = join(dir, "dropped.yaml");
    const fault = "faults: [{ at: 300s, fault: statisticsDropped, query: tile, factor: 4 }]\n";
    writeFileSync(dropped, readFileSync(SCENARIO, "utf8") + fault);
    const { code, stdout, stderr } = await waterhole("lab", dropped, "--json");
    expect([code, stderr]).toEqual([0, ""]);
    const [fifo] = JSON.parse(stdout).rows;
    const [before] = JSON.parse((await waterhole("lab", SCENARIO, "--json")).stdout).rows;
    expect(fifo.all.submitted).toBe(before.all.submitted);
    expect(fifo.memoryUsedShare).toBeGreaterThan(before.memoryUsedShare);
  });

  test("of a pool without a memory limit there is no share that was used", async () => {
    const open = join(dir, "open.yaml");
    writeFileSync(
      open,
      "cluster: { executors: [{ count: 2, memory: 10gb }] }\nflags: { default_pool_max_requests: 1 }\nqueries: { q: { estimate: 1gb, duration: 4s } }\narrivals: [{ at: 0s, count: 3 }]\n",
    );
    const { rows } = JSON.parse((await waterhole("lab", open, "--json")).stdout);
    expect(rows.map((row: { memoryUsedShare: number | null }) => row.memoryUsedShare)).toEqual([null, null, null]);
    expect((await waterhole("lab", open)).stdout).toMatch(/\nstrict FIFO .* - +0\n/);
  });

  test("pool files that change on the way: code 2, found and remedy", async () => {
    const changing = join(dir, "changing.yaml");
    const files = `fairScheduler: ${join(EXAMPLES, "fair-scheduler.xml")}`;
    writeFileSync(
      changing,
      `${readFileSync(SCENARIO, "utf8")}faults: [{ at: 300s, fault: configChanges, ${files} }]\n`,
    );
    for (const command of ["lab", "size"]) {
      const { code, stderr } = await waterhole(command, changing);
      expect(code).toBe(2);
      expect(stderr).toMatch(
        /changing\.yaml: settings are compared that hold .* \(fault configChanges\)\.\nnext: Leave/,
      );
    }
  });

  test("a wrong time ends with code 2", async () => {
    const { code, stderr } = await waterhole("lab", SCENARIO, "--patience", "soon");
    expect(code).toBe(2);
    expect(stderr).toMatch(/"soon" is no time such as 10s/);
  });
});
