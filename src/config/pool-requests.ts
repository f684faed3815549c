/**
 * Whether the classes of a scenario can reach a pool at all, asked before a run.
 *
 * Impala refuses a request whose pool does not exist one by one, with a text that speaks of access. In a scenario
 * such a class is nearly always a slip of the pen, and a run in which none of its queries did anything would hide
 * it. A user without the right to a pool that exists is another matter: that is what the pool files are for, and it
 * stays an event of the run.
 */
import { ROOT_POOL } from "../core/pool-config.ts";
import { nearestName } from "./nearest-name.ts";
import { withRoot } from "./placement-policy.ts";
import type { PoolDirectory } from "./pool-directory.ts";
import type { QueryClass, Scenario } from "./scenario.ts";
import { scenarioError } from "./scenario-file.ts";
import { changedPools } from "./scenario-pools.ts";

/** Throws ConfigError for a class whose pool is declared at no time of the run, and that no rule places elsewhere. */
export function checkPoolRequests(scenario: Scenario, pools: PoolDirectory, shownAs: string): void {
  const directories = directoriesOfRun(scenario, pools);
  const lost = scenario.queries.find((q) => q.requestedPool !== "" && directories.every((d) => placesNobody(d, q)));
  if (lost === undefined) return;
  const wanted = withRoot(lost.requestedPool);
  throw scenarioError(
    scenario.file,
    shownAs,
    ["queries", lost.name, "pool"],
    `pool "${lost.requestedPool}" of query class "${lost.name}" is not declared in ${allocationFileOf(pools)}, and the placement rules there send its requests nowhere else`,
    remedyFor(wanted, pools),
  );
}

function directoriesOfRun(scenario: Scenario, pools: PoolDirectory): PoolDirectory[] {
  const all = [pools];
  for (const fault of scenario.faults) if (fault.kind === "configChanges") all.push(changedPools(all.at(-1)!, fault));
  return all;
}

/** No rule has a place for it; what fails for want of groups or of rights has another cause. */
function placesNobody(pools: PoolDirectory, { requestedPool, users }: QueryClass): boolean {
  if (pools.isDeclared(withRoot(requestedPool))) return false;
  return users.every((user) => {
    const found = pools.resolve(requestedPool, user);
    return found.kind === "refused" && found.pool === null && found.status === "ok";
  });
}

const allocationFileOf = (pools: PoolDirectory): string => pools.settings.allocation?.file ?? "the allocation file";

const MOST_NAMED = 10;

function remedyFor(wanted: string, pools: PoolDirectory): string {
  const declared = pools.declaredPools().filter((pool) => pool !== ROOT_POOL);
  const near = nearestName(wanted, declared);
  if (near !== null) return `Did you mean "${near}"?`;
  if (declared.length === 0) return "Declare it there as a <queue>.";
  const more = declared.length > MOST_NAMED ? `, and ${declared.length - MOST_NAMED} more` : "";
  return `Declare it there, or use one of ${declared.slice(0, MOST_NAMED).join(", ")}${more}.`;
}
