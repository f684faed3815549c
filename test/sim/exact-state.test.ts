/**
 * What one controller believes is what is: with one nothing is stale, but for the memory that hosts have given back
 * and the topic has not told yet (admission 7.5, insight 2.4). With several something is.
 */
import { describe, expect, test } from "vitest";
import { parseScenario } from "../../src/config/scenario-file.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../src/core/pool-config.ts";
import { type Bytes, GiB } from "../../src/core/units.ts";
import type { PoolSummary } from "../../src/insight/summary.ts";
import { SummaryFold } from "../../src/insight/summary-fold.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";

const ROUND_MS = 100;

interface Cluster {
  readonly coordinators: number;
  readonly admission?: "distributed" | "admissiond";
  readonly seed?: number;
  readonly slots?: number;
}

/** Four hosts of 20 GiB with some slots in a group of the pool; thin queries and wide ones. */
function run(
  config: Partial<PoolConfig>,
  { coordinators, admission = "distributed", seed = 1, slots = 4 }: Cluster,
): PoolSummary {
  const scenario = parseScenario(
    `
seed: ${seed}
cluster:
  executors: [{ count: 4, memory: 20gb, slots: ${slots}, executorGroup: root.p-all }]
  coordinators: [{ count: ${coordinators}, on: dedicated, memory: 20gb, slots: 100 }]
  admission: ${admission}
pools: flags
queries:
  thin: { pool: root.p, estimate: 1gb, duration: { exponential: { mean: 2s } }, uses: { peak: 900mb } }
  wide: { pool: root.p, estimate: 6gb, mtDop: 2, duration: { exponential: { mean: 4s } }, uses: { peak: 5gb } }
arrivals: [{ rate: 2, query: { thin: 0.7, wide: 0.3 }, to: 120s }]
`,
    "/exact.yaml",
  );
  const pool: PoolConfig = { ...DEFAULT_POOL_CONFIG, maxQueued: 1000, ...config };
  const fold = new SummaryFold({ configOf: () => pool, admission });
  simulate({
    scenario,
    workload: createWorkload(scenario, {
      resolve: (name, user) => ({
        kind: "resolved",
        pool: name,
        user,
        groups: [],
        defaultOptions: {},
        maxMtDop: -1,
      }),
    }),
    pools: { configOf: () => pool },
    observer: fold,
    looksAtHosts: true,
  });
  const { broken, pools } = fold.finish();
  expect(broken).toEqual([]);
  return pools[0]!;
}

const memory = (gib: number) => ({ maxMemResources: (gib * GiB) as Bytes });
const causes = (p: PoolSummary) => new Set(p.binding?.shares.map((s) => s.constraint));

describe("insight 2.4 with one controller nothing is stale", () => {
  const clusters: Cluster[] = [1, 2, 3].flatMap((seed) => [
    { coordinators: 1, seed },
    { coordinators: 3, admission: "admissiond", seed },
  ]);

  test.each(clusters)("slots and the running limit: $coordinators coordinators, seed $seed", (cluster) => {
    const p = run({ maxRequests: 4 }, cluster);
    expect(causes(p)).toContain("runningLimit");
    expect(causes(p)).toContain("slots");
    expect(p.overAdmission).toMatchObject({
      staleAdmissions: 0,
      phantomWaits: 0,
      phantomMs: 0,
      viewAgeMs: null,
      running: { most: 0 },
      queued: { most: 0 },
    });
    expect(causes(p)).not.toContain("staleView");
  });

  test.each(clusters)(
    "memory: nobody waits for news longer than it takes: $coordinators coordinators, seed $seed",
    (cluster) => {
      const p = run(memory(40), cluster);
      expect(p.overAdmission).toMatchObject({ staleAdmissions: 0, memoryBytes: { most: 0 } });
      expect(p.overAdmission.phantomWaits).toBeGreaterThan(0);
      expect(p.overAdmission.phantomMs).toBeLessThanOrEqual(2 * ROUND_MS * p.overAdmission.phantomWaits);
    },
  );
});

describe("insight 2.3 what is hidden behind the first check that fails", () => {
  test("slots beside the running limit: joint, where the product names the running limit only", () => {
    const p = run({ maxRequests: 4 }, { coordinators: 1 });
    expect(p.binding!.shares.find((s) => s.constraint === "slots")!.jointMs).toBeGreaterThan(0);
  });

  test("hosts beside the pool's memory", () => {
    // A wide one holds 6 of a host's 20 GiB: three fit, and in the pool's 72 GiB too.
    const p = run({ ...memory(72) }, { coordinators: 1, slots: 100 });
    const host = p.binding!.shares.find((s) => s.constraint === "hostMemory");
    expect(host?.jointMs).toBeGreaterThan(0);
  });

  test("thin ones that could go behind a wide head: order, with how long the worst of them stood so", () => {
    const { headOfLine } = run({ ...memory(60) }, { coordinators: 1 }).binding!;
    expect(headOfLine.waitedMs).toBeGreaterThan(0);
    expect(headOfLine.longestMs).toBeGreaterThan(0);
    expect(headOfLine.share).toBeLessThan(1);
  });
});

describe("insight 2.4 with several controllers", () => {
  const p = run({ maxRequests: 4 }, { coordinators: 3 });

  test("admissions that a view of everything would have refused, and heads that waited for news", () => {
    expect(p.overAdmission.staleAdmissions).toBeGreaterThan(0);
    expect(p.overAdmission.phantomWaits).toBeGreaterThan(0);
    expect(causes(p)).toContain("staleView");
  });

  test("what they know of each other is one to two rounds old: until it is told, and until it is heard", () => {
    const { p50, p99 } = p.overAdmission.viewAgeMs!;
    expect(p50).toBeGreaterThan(ROUND_MS / 2);
    expect(p99).toBeGreaterThan(p50!);
    expect(p99).toBeLessThanOrEqual(2 * ROUND_MS);
  });
});
