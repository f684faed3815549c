/** A seed of the sweep, run with somebody listening. */
import { DEFAULT_FLAGS } from "../../src/config/impala-flags.ts";
import type { RunEvent } from "../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../src/core/pool-config.ts";
import type { RunObserver } from "../../src/core/run-observer.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { randomRun } from "../../src/sim/sweep/random-scenario.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";

export interface Listener {
  readonly emit?: (event: RunEvent) => void;
  readonly observer?: RunObserver;
}

export function simulateSeed(seed: number, listener: Listener): void {
  const { scenario, configs, laterConfigs } = randomRun(seed);
  const pools = (of: ReadonlyMap<string, PoolConfig>) => ({
    configOf: (pool: string) => of.get(pool) ?? DEFAULT_POOL_CONFIG,
  });
  simulate({
    scenario,
    workload: createWorkload(scenario, {
      resolve: (pool, user) => ({ kind: "resolved", pool, user, groups: [], defaultOptions: {}, maxMtDop: -1 }),
    }),
    pools: pools(configs),
    flags: DEFAULT_FLAGS,
    changedPools: () => pools(laterConfigs),
    ...listener,
  });
}
