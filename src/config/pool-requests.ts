/**
 * Whether the classes of a scenario can reach a pool at all, and whether its thresholds ask about one that somebody can
 * reach: asked before a run.
 *
 * Impala refuses a request whose pool does not exist one by one, with a text that speaks of access. In a scenario
 * such a class is nearly always a slip of the pen, and a run in which none of its queries did anything would hide
 * it. A user without the right to a pool that exists is another matter: that is what the pool files are for, and it
 * stays an event of the run. In the same way a threshold on a pool that there is not would be said not to hold, run
 * after run.
 */
import { ROOT_POOL } from "../core/pool-config.ts";
import { nearestName } from "./nearest-name.ts";
import { withRoot } from "./placement-policy.ts";
import type { PoolDirectory } from "./pool-directory.ts";
import type { QueryClass, Scenario } from "./scenario.ts";
import { scenarioError } from "./scenario-file.ts";
import { changedPools } from "./scenario-pools.ts";
import { parseThreshold } from "./threshold.ts";

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

/** Throws ConfigError for a threshold on a pool that is declared at no time of the run and that no class gets into. */
export function checkThresholdPools(scenario: Scenario, pools: PoolDirectory, shownAs: string): void {
  // A log may speak of pools that are gone, or that rules make.
  if (scenario.arrivals.some((a) => a.kind === "trace")) return;
  const known = poolsOfRun(scenario, pools);
  scenario.thresholds.forEach((text, i) => {
    const parsed = parseThreshold(text);
    const pool = parsed.ok ? parsed.threshold.pool : null;
    if (pool === null || known.has(pool)) return;
    throw scenarioError(
      scenario.file,
      shownAs,
      ["thresholds", i],
      `threshold "${text}" asks about the pool "${pool}", which is not declared and which no class gets into`,
      nearestPool(pool, [...known]) ?? "Ask about a pool of this scenario.",
    );
  });
}

function poolsOfRun(scenario: Scenario, pools: PoolDirectory): Set<string> {
  const known = new Set<string>();
  for (const directory of directoriesOfRun(scenario, pools)) {
    for (const pool of directory.declaredPools()) known.add(pool);
    for (const { requestedPool, users } of scenario.queries)
      for (const user of users) {
        const { pool } = directory.resolve(requestedPool, user);
        if (pool !== null) known.add(pool);
      }
  }
  return known;
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

function nearestPool(wanted: string, known: readonly string[]): string | null {
  const near = nearestName(wanted, known);
  return near === null ? null : `Did you mean "${near}"?`;
}

function remedyFor(wanted: string, pools: PoolDirectory): string {
  const declared = pools.declaredPools().filter((pool) => pool !== ROOT_POOL);
  const near = nearestPool(wanted, declared);
  if (near !== null) return near;
  if (declared.length === 0) return "Declare it there as a <queue>.";
  const more = declared.length > MOST_NAMED ? `, and ${declared.length - MOST_NAMED} more` : "";
  return `Declare it there, or use one of ${declared.slice(0, MOST_NAMED).join(", ")}${more}.`;
}
