/**
 * Where a request of a user would land and why: rule by rule, then list by list (pool-configuration 1.8, 1.6).
 */
import { grants } from "../../config/acl.ts";
import type { AllocationFile } from "../../config/allocation-file.ts";
import { type PlacementRule, placementSteps, type RuleResult } from "../../config/placement-policy.ts";
import { type PoolDirectory, withAncestors } from "../../config/pool-directory.ts";
import { shortName } from "../../config/short-name.ts";
import { aclOf } from "./check-context.ts";

export interface LandingAnswer {
  readonly user: string;
  readonly groups: readonly string[];
  readonly requestedPool: string;
  readonly pool: string | null;
  readonly hasAccess: boolean;
  /** What the client reads when it is refused. */
  readonly error: string | null;
  /** Sentences in the order in which it is decided. */
  readonly because: readonly string[];
}

export function whereARequestLands(directory: PoolDirectory, requestedPool: string, user: string): LandingAnswer {
  const found = directory.resolve(requestedPool, user);
  const { allocation } = directory.settings;
  return {
    user: found.effectiveUser,
    groups: directory.groupsOf(found.effectiveUser),
    requestedPool,
    pool: found.pool,
    hasAccess: found.kind === "resolved",
    error: found.kind === "resolved" ? null : found.error,
    because:
      allocation === null
        ? ["Without an allocation file every query runs in default-pool, and everybody may."]
        : reasons(directory, allocation, requestedPool, found.effectiveUser),
  };
}

function reasons(
  directory: PoolDirectory,
  allocation: AllocationFile,
  requested: string,
  user: string,
): readonly string[] {
  const short = shortName(user);
  if (short === null) return [`${JSON.stringify(user)} is no Kerberos name, so no rule is asked.`];
  if (short === "") return ["A user is required (--require_username)."];
  const { allocations } = allocation;
  const steps = placementSteps(allocations.placement, {
    requested,
    user: short,
    groups: directory.settings.groups.groupsOf(short),
    isLeaf: (pool) => allocations.leafPools.has(pool),
    isDeclared: (pool) => directory.isDeclared(pool),
  });
  const placed = steps.map(({ rule, result }) => stepText(rule, result));
  const last = steps.at(-1)?.result;
  if (last?.kind !== "pool")
    return last?.kind === "pass" ? [...placed, "All rules passed, which is an internal error."] : placed;
  const declared = directory.isDeclared(last.pool)
    ? []
    : [`${last.pool} is not declared: it has built-in defaults and what the keys without pool name say.`];
  return [...placed, ...declared, accessText(last.pool, short, directory, allocation)];
}

function stepText(rule: PlacementRule, result: RuleResult): string {
  const line = rule.element === null ? "built-in" : `line ${rule.element.at.line}`;
  const name = `Rule ${rule.name}${rule.create || rule.name === "reject" ? "" : ' with create="false"'} (${line})`;
  switch (result.kind) {
    case "pass":
      return `${name} passes.`;
    case "pool":
      return `${name} says ${result.pool}.`;
    case "reject":
      return `${name} rejects.`;
    case "noGroups":
      return `${name} needs groups, and none are known for the user: an error, later rules are not asked.`;
    default:
      return `${name} decides nothing.`;
  }
}

function accessText(pool: string, user: string, directory: PoolDirectory, { allocations }: AllocationFile): string {
  const groups = directory.settings.groups.groupsOf(user) ?? [];
  for (const name of withAncestors(pool)) {
    const acl = aclOf(name, allocations);
    if (!grants(acl, user, groups)) continue;
    const who = acl.everybody
      ? "everybody"
      : acl.users.has(user)
        ? `user ${user}`
        : `group ${groups.find((g) => acl.groups.has(g)) ?? ""}`;
    const written = allocations.submitAcls.get(name);
    return `The access list of ${name} lets ${who} in${written == null ? " (none is written)" : ` (line ${written.at.line})`}.`;
  }
  return `No access list from ${pool} up to root lets the user in.`;
}
