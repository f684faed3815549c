/** The example of page-and-demos 4.6, with 1, 2, 4 and 8 coordinators. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readScenario } from "../../src/config/scenario-file.ts";
import { flagsOf, openPools } from "../../src/config/scenario-pools.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../src/core/pool-config.ts";
import { SummaryFold } from "../../src/insight/summary-fold.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { poolResolver } from "../../src/workload/pool-resolver.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";

const example = readScenario(join(import.meta.dirname, "../../examples/stale-coordinators/scenario.yaml"));

describe("T-12 examples/stale-coordinators: a limit of 10 that k coordinators check is up to k limits", () => {
  test.each([
    { admission: "distributed", count: 1, peak: 10 },
    { admission: "distributed", count: 2, peak: 20 },
    { admission: "distributed", count: 4, peak: 40 },
    { admission: "distributed", count: 8, peak: 80 },
    { admission: "admissiond", count: 8, peak: 10 },
  ] as const)("$admission, $count coordinators: $peak run at the most", ({ admission, count, peak }) => {
    const [coordinator] = example.cluster.coordinators;
    const scenario = {
      ...example,
      cluster: { ...example.cluster, admission, coordinators: [{ ...coordinator!, count }] },
    };
    const flags = flagsOf(scenario);
    const pools = openPools(scenario, flags);
    const configOf = (pool: string): PoolConfig => {
      const found = pools.lookUp(pool);
      return found.kind === "found" ? found.config : DEFAULT_POOL_CONFIG;
    };
    const workload = createWorkload(
      scenario,
      poolResolver(() => pools, flags, scenario.users),
    );
    const fold = new SummaryFold({ configOf, admission });
    simulate({ scenario, workload, flags, pools: { configOf }, observer: fold });
    const [adhoc] = fold.finish().pools;
    expect(adhoc).toMatchObject({
      pool: "root.adhoc",
      finished: 80,
      peakRunning: peak,
      overAdmission: { running: { most: peak - 10 } },
    });
    // Nothing is taken back: what is over the limit is so until those queries end.
    if (peak > 10) expect(adhoc?.overAdmission.running.timeMs).toBeGreaterThanOrEqual(3000);
  });
});
