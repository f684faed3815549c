/**
 * A records file that nobody asked for must not fill a disk: what it would weigh is known beforehand.
 */
import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readScenario } from "../../../src/config/scenario-file.ts";
import { expectedRecordsBytes } from "../../../src/surfaces/cli/scenario-run.ts";
import { usualRecordsPath } from "../../../src/surfaces/cli/simulate-command.ts";
import { testFolder, waterhole } from "./command-line.ts";

const dir = testFolder();
const MB = 1e6;

/** Tiles of a second on every host, `queries` of them, ten a second. */
function scenario(hosts: number, queries: number): string {
  const path = join(dir, `h${hosts}-q${queries}.yaml`);
  writeFileSync(
    path,
    `cluster: { executors: [{ count: ${hosts}, memory: 100gb, slots: 16 }], coordinators: [{ count: 1, on: dedicated }] }
pools: flags
queries: { tile: { user: ana, estimate: 1gb, uses: { peak: 1gb }, duration: 1s } }
arrivals: [{ every: 100ms, count: ${queries}, query: tile }]
`,
  );
  return path;
}

describe("the size of records (DESIGN 4)", () => {
  test.each([
    [2, 400],
    [10, 400],
    [100, 60],
  ])("on %d hosts, %d queries: within a factor of two of what is foretold", async (hosts, queries) => {
    const path = scenario(hosts, queries);
    const records = join(dir, `h${hosts}.jsonl`);
    await waterhole("simulate", path, "--records", records);
    const ratio = statSync(records).size / expectedRecordsBytes(readScenario(path));
    expect(ratio).toBeGreaterThan(0.5);
    expect(ratio).toBeLessThan(2);
  });

  test("records above 256 MB are written only when they are asked for", async () => {
    const path = scenario(300, 3000);
    expect(expectedRecordsBytes(readScenario(path))).toBeGreaterThan(256 * MB);
    const { stdout } = await waterhole("simulate", path, "--seed", "97");
    expect(stdout).toContain("records  not written; --records FILE writes them");
    expect(existsSync(usualRecordsPath({ scenario: { ...readScenario(path), seed: 97 } }))).toBe(false);
  });
});
