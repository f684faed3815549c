/**
 * The pools of a scenario as they stand when the run begins: files or flags, groups of its users.
 */
import { ConfigError } from "./config-error.ts";
import { type ImpalaFlags, parseFlags } from "./impala-flags.ts";
import { openPoolDirectory, type PoolDirectory } from "./pool-directory.ts";
import type { Scenario } from "./scenario.ts";
import { injectedGroups, type UserGroups } from "./user-groups.ts";

/** Throws ConfigError for a flag of the wrong type. */
export const flagsOf = (scenario: Scenario): ImpalaFlags =>
  parseFlags(scenario.flags, (name) => ({ file: `${scenario.file}, flag ${name}`, line: null }));

/** Throws ConfigError when a file is missing or does not load. */
export function openPools(scenario: Scenario, flags: ImpalaFlags): PoolDirectory {
  const { pools } = scenario;
  const paths =
    pools.kind === "files"
      ? { fairScheduler: pools.fairScheduler, llamaSite: pools.llamaSite }
      : { fairScheduler: null, llamaSite: null };
  return openPoolDirectory(paths, poolSettings(scenario, flags));
}

/** The pools after a fault of kind `configChanges`: a file that it does not name stays. */
export function openChangedPools(
  scenario: Scenario,
  flags: ImpalaFlags,
  change: { readonly fairScheduler: string | null; readonly llamaSite: string | null },
): PoolDirectory {
  if (scenario.pools.kind !== "files")
    throw new ConfigError(
      { file: scenario.file, line: null },
      "a configChanges fault needs pool files, and this scenario has its pools from flags",
      "Write  pools: { fairScheduler: ..., llamaSite: ... }",
    );
  const { fairScheduler, llamaSite } = scenario.pools;
  return openPoolDirectory(
    { fairScheduler: change.fairScheduler ?? fairScheduler, llamaSite: change.llamaSite ?? llamaSite },
    poolSettings(scenario, flags),
  );
}

const poolSettings = (scenario: Scenario, flags: ImpalaFlags) => ({
  flags,
  groups: groupsOfUsers(scenario, flags),
  physicalMemory: scenario.cluster.executors[0]?.memory ?? 0,
});

/** The scenario's table first, then the product's own test flag. A user of neither is in no group. */
function groupsOfUsers(scenario: Scenario, flags: ImpalaFlags): UserGroups {
  const injected = injectedGroups(flags.injected_group_members_debug_only);
  return {
    groupsOf: (user) =>
      Object.hasOwn(scenario.users, user) ? (scenario.users[user] ?? null) : (injected.groupsOf(user) ?? []),
  };
}
