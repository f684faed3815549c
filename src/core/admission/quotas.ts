/**
 * How many queries one user may have queued and running: in the pool, and in the whole cluster (admission 8).
 *
 * At each level the first kind of rule that matches decides alone: the user's own, then the largest of the
 * user's groups', then the wildcard's. Checked on submission only (T-31).
 */
import { type PoolConfig, ROOT_POOL } from "../pool-config.ts";
import type { RejectReason } from "./reasons.ts";

export interface QuotaCheck {
  readonly pool: string;
  readonly user: string;
  /** In the order in which they are consulted; null: the lookup failed. */
  readonly groups: readonly string[] | null;
  readonly config: PoolConfig;
  readonly rootConfig: PoolConfig;
  /** Queued and running in the pool; the same over all pools as of the last topic update (T-29). */
  readonly poolLoad: number;
  readonly rootLoad: number;
}

/** hot: bench/decision */
export const hasQuotas = (config: PoolConfig): boolean =>
  config.userQueryLimits.size > 0 || config.groupQueryLimits.size > 0;

/** REJ-C3: the pool first, then `root`; levels between them are not consulted (8.1). */
export function quotaReason(check: QuotaCheck): RejectReason | null {
  return (
    levelReason(check, check.config, check.pool, check.poolLoad) ??
    levelReason(check, check.rootConfig, ROOT_POOL, check.rootLoad)
  );
}

function levelReason(check: QuotaCheck, config: PoolConfig, pool: string, load: number): RejectReason | null {
  if (!hasQuotas(config)) return null;
  const { user } = check;
  const own = config.userQueryLimits.get(user);
  if (own !== undefined) return load + 1 > own ? { rule: "REJ-C3", kind: "user", load, user, limit: own, pool } : null;
  // Groups are looked up even when the level has no group rules, so a failing lookup refuses here too.
  if (check.groups === null) return { rule: "REJ-C3", kind: "lookupFailed" };
  const ruled = groupsWithRule(check.groups, config);
  if (ruled.length > 0) return groupReason(ruled, load, user, pool);
  const wildcard = config.userQueryLimits.get("*");
  if (wildcard !== undefined && load + 1 > wildcard)
    return { rule: "REJ-C3", kind: "wildcard", load, user, limit: wildcard, pool };
  return null;
}

type GroupRule = readonly [group: string, limit: number];

const groupsWithRule = (groups: readonly string[], config: PoolConfig): readonly GroupRule[] =>
  groups.flatMap((g): GroupRule[] => {
    const limit = config.groupQueryLimits.get(g);
    return limit === undefined ? [] : [[g, limit]];
  });

/** The largest limit counts, the first one on ties; the others are listed in the order they lost. */
function groupReason(rules: readonly GroupRule[], load: number, user: string, pool: string): RejectReason | null {
  let best: GroupRule = rules[0]!;
  const ignored: GroupRule[] = [];
  for (const rule of rules.slice(1)) {
    if (rule[1] > best[1]) {
      ignored.push(best);
      best = rule;
    } else ignored.push(rule);
  }
  const [group, limit] = best;
  return load + 1 > limit ? { rule: "REJ-C3", kind: "group", load, user, group, limit, pool, ignored } : null;
}
