import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { memoryDemand, memoryWarning } from "../../../src/surfaces/cli/memory-warning.ts";
import { ScenarioRun } from "../../../src/surfaces/cli/scenario-run.ts";
import { testFolder } from "./command-line.ts";

const GB = 2 ** 30;
const dir = testFolder();

/** Four hosts of 10 GB, so buffers of 8.5 GB each; queries of 1 GB on all of them. */
function open(said: { arrival?: string; flags?: string; memory?: number; query?: string }): Promise<ScenarioRun> {
  const file = join(dir, "scenario.yaml");
  writeFileSync(
    file,
    `
cluster: { executors: [{ count: 4, memory: 10gb }] }
flags: { ${said.flags ?? "default_pool_max_requests: 100"} }
queries: { q: { ${said.query ?? "estimate: 1gb, uses: { peak: 1gb }, duration: 1s"} } }
arrivals: [{ ${said.arrival ?? "at: 0s, count: 4"} }]
scale: { memory: ${said.memory ?? 1} }
`,
  );
  return ScenarioRun.open(file, { seed: null });
}

describe("how much real memory a run may touch", () => {
  test.each([
    { name: "no more than comes", said: {}, gb: 4 * 4 },
    { name: "no more than the hosts have", said: { arrival: "at: 0s, count: 50" }, gb: 4 * 8.5 },
    { name: "open traffic can fill the hosts", said: { arrival: "rate: 10/s, to: 10m" }, gb: 4 * 8.5 },
    { name: "clients wait for their answers", said: { arrival: "clients: 3, to: 10m" }, gb: 4 * 3 },
    { name: "the pool lets two run", said: { flags: "default_pool_max_requests: 2" }, gb: 4 * 2 },
    { name: "the pool's memory is enough for three", said: { flags: "default_pool_mem_limit: 13gb" }, gb: 4 * 3 },
    { name: "divided by the scale", said: { memory: 16 }, gb: 1 },
  ])("$name: $gb GB", async ({ said, gb }) => {
    expect(memoryDemand(await open(said))).toBeCloseTo(gb * GB, -5);
  });

  test.each([
    { free: 33 * GB, warns: false },
    { free: 32 * GB, warns: false },
    { free: 31 * GB, warns: true },
  ])("16 GB of $free bytes: $warns", async ({ free, warns }) => {
    expect(memoryWarning(await open({}), free) !== null).toBe(warns);
  });

  test("the remedy is the scale that fits", async () => {
    const said = memoryWarning(await open({}), 8 * GB);
    expect(said).toBe(
      "This run may touch up to 16.00 GB of real memory, and 8.00 GB are free. With  scale: { memory: 4 }  it fits.",
    );
    expect(memoryWarning(await open({ memory: 4 }), 8 * GB)).toBeNull();
    expect(memoryWarning(await open({ memory: 2 }), 8 * GB)).not.toBeNull();
  });

  test("with real operators another scale is no remedy", async () => {
    const run = await open({ query: "sort: { rows: 10000000, width: 100 }" });
    expect(memoryWarning(run, GB)).toContain("Real operators need scale.memory 1");
  });
});
