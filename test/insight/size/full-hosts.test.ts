import { describe, expect, test } from "vitest";
import { parseScenario } from "../../../src/config/scenario-file.ts";
import { DEFAULT_POOL_CONFIG } from "../../../src/core/pool-config.ts";
import type { MaxBytes } from "../../../src/core/units.ts";
import { Evaluator, type Job } from "../../../src/insight/size/problem.ts";
import { evaluatorOver, GiB, NOW, POOL } from "./size-fixtures.ts";

/** One host of 10 GiB, and queries that come one after the other before any coordinator has heard of another. */
const scenarioOf = (coordinators: number, estimates: readonly string[], pools: readonly string[], more = "") =>
  parseScenario(
    `
cluster: { executors: [{ count: 1, memory: 10gb }], coordinators: [{ count: ${coordinators}, on: dedicated }]${more} }
pools: flags
queries:
${estimates.map((gb, i) => `  q${i}: { pool: ${pools[i]}, estimate: ${gb}gb, duration: 10s, uses: { peak: 1mb } }`).join("\n")}
arrivals:
${estimates.map((_, i) => `  - { at: ${i}ms, query: q${i} }`).join("\n")}
`,
    "/full.yaml",
  );

const job = (count: number): Job => ({
  engine: "rules",
  day: 0,
  from: 0,
  to: count,
  setting: { ...NOW, maxMem: 100 * GiB },
});

describe("insight 3.2: no stale admission beyond a host's limit", () => {
  test.each([
    { name: "just what the host has", coordinators: 2, estimates: ["5", "5"], onFullHosts: 0 },
    { name: "a MiB more", coordinators: 2, estimates: ["5", "5.001"], onFullHosts: 1 },
    { name: "a third coordinator knows no more", coordinators: 3, estimates: ["5", "6", "6"], onFullHosts: 2 },
    { name: "one coordinator knows all", coordinators: 1, estimates: ["5", "6"], onFullHosts: 0 },
  ])("$name: $onFullHosts", ({ coordinators, estimates, onFullHosts }) => {
    const evaluator = evaluatorOver(
      scenarioOf(
        coordinators,
        estimates,
        estimates.map(() => POOL),
      ),
    );
    expect(evaluator.run(job(estimates.length)).onFullHosts).toBe(onFullHosts);
  });

  test("admissiond decides for all coordinators", () => {
    const scenario = scenarioOf(2, ["5", "6"], [POOL, POOL], ", admission: admissiond");
    expect(evaluatorOver(scenario).run(job(2)).onFullHosts).toBe(0);
  });

  test("a query of another pool for which the host has too little is one too", () => {
    const { problem } = evaluatorOver(scenarioOf(2, ["6", "5"], [POOL, "root.other"]));
    const other = { ...DEFAULT_POOL_CONFIG, maxMemResources: (100 * GiB) as MaxBytes };
    const evaluator = new Evaluator({ ...problem, configs: { ...problem.configs, "root.other": other } });
    expect(evaluator.run(job(2))).toMatchObject({ submitted: 1, onFullHosts: 1 });
  });
});
