/** A scenario in virtual time, with everything that was told. */
import type { Scenario } from "../../src/config/scenario.ts";
import { flagsOf, openPools } from "../../src/config/scenario-pools.ts";
import type { RunEvent } from "../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG } from "../../src/core/pool-config.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { poolResolver } from "../../src/workload/pool-resolver.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";

export function simulated(scenario: Scenario): RunEvent[] {
  const events: RunEvent[] = [];
  const flags = flagsOf(scenario);
  const pools = openPools(scenario, flags);
  simulate({
    scenario,
    workload: createWorkload(
      scenario,
      poolResolver(() => pools, flags, scenario.users),
    ),
    pools: {
      configOf: (pool) => {
        const found = pools.lookUp(pool);
        return found.kind === "found" ? found.config : DEFAULT_POOL_CONFIG;
      },
    },
    flags,
    emit: (e) => events.push(e),
  });
  return events;
}
