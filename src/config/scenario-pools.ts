/**
 * The pools of a scenario as they stand when the run begins: files or flags, groups of its users.
 */
import { existsSync } from "node:fs";
import { parseAllocationFile, readAllocationFile } from "./allocation-file.ts";
import { ConfigError } from "./config-error.ts";
import { type ImpalaFlags, parseFlags } from "./impala-flags.ts";
import { openPoolDirectory, PoolDirectory } from "./pool-directory.ts";
import { DEFAULT_SETTINGS } from "./pool-settings.ts";
import type { Fault, Scenario } from "./scenario.ts";
import { EMPTY_SITE, parseSiteFile, readSiteFile } from "./site-file.ts";
import { injectedGroups, type UserGroups } from "./user-groups.ts";

/** Throws ConfigError for a flag of the wrong type. */
export const flagsOf = (scenario: Scenario): ImpalaFlags =>
  parseFlags(scenario.flags, (name) => ({ file: `${scenario.file}, flag ${name}`, line: null }));

/** Throws ConfigError when a file is missing or does not load, also one that takes a place during the run. */
export function openPools(scenario: Scenario, flags: ImpalaFlags): PoolDirectory {
  const { pools } = scenario;
  for (const change of scenario.faults) if (change.kind === "configChanges") checkChange(change, scenario);
  const paths =
    pools.kind === "files"
      ? { fairScheduler: pools.fairScheduler, llamaSite: pools.llamaSite }
      : { fairScheduler: null, llamaSite: null };
  return openPoolDirectory(paths, poolSettings(scenario, flags));
}

/** The pools of a run that was recorded, from the texts its records carry. */
export function poolsFromTexts(
  scenario: Scenario,
  flags: ImpalaFlags,
  texts: { readonly fairScheduler: NamedText | null; readonly llamaSite: NamedText | null },
): PoolDirectory {
  const { fairScheduler, llamaSite } = texts;
  return new PoolDirectory({
    ...DEFAULT_SETTINGS,
    ...poolSettings(scenario, flags),
    allocation: fairScheduler === null ? null : parseAllocationFile(fairScheduler.text, fairScheduler.path),
    site: llamaSite === null ? null : parseSiteFile(llamaSite.text, llamaSite.path),
  });
}

export interface NamedText {
  readonly path: string;
  readonly text: string;
}

type ConfigChange = Extract<Fault, { readonly kind: "configChanges" }>;

/** A broken file is a story worth telling, a missing one is a slip of the pen. */
function checkChange({ fairScheduler, llamaSite }: ConfigChange, { file, pools }: Scenario): void {
  if (pools.kind !== "files")
    throw new ConfigError(
      { file, line: null },
      "a configChanges fault needs pool files, and this scenario has its pools from flags",
      "Write  pools: { fairScheduler: ..., llamaSite: ... }",
    );
  for (const path of [fairScheduler, llamaSite])
    if (path !== null && !existsSync(path))
      throw new ConfigError(
        { file, line: null },
        `configChanges names ${path}, and there is no such file`,
        "Check the path.",
      );
}

/**
 * The pools after a fault of kind `configChanges`: a file that it does not name stays, and so does the allocation
 * file when the new one is broken. A broken site file leaves built-in defaults (pool-configuration 4.2); that one
 * lookup fails before that is nobody's business here, because it is the one whose errors are only logged.
 */
export function changedPools(current: PoolDirectory, change: ConfigChange): PoolDirectory {
  return new PoolDirectory({
    ...current.settings,
    allocation:
      (change.fairScheduler === null ? null : loadedOrNull(change.fairScheduler, readAllocationFile)) ??
      current.settings.allocation,
    site:
      change.llamaSite === null ? current.settings.site : (loadedOrNull(change.llamaSite, readSiteFile) ?? EMPTY_SITE),
  });
}

function loadedOrNull<T>(path: string, load: (path: string) => T): T | null {
  try {
    return load(path);
  } catch (error) {
    if (error instanceof ConfigError) return null;
    throw error;
  }
}

/** All but the files. */
export const poolSettings = (scenario: Scenario, flags: ImpalaFlags) => ({
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
