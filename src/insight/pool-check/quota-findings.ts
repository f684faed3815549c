/**
 * Q03 to Q07: what quotas do and for whom.
 */
import type { AllocationFile, Located, LocatedQuotas } from "../../config/allocation-file.ts";
import type { QuotaTag } from "../../config/quota-element.ts";
import { elementsOf } from "../../config/value-element.ts";
import { ROOT_POOL } from "../../core/pool-config.ts";
import type { CheckContext, Rule } from "./check-context.ts";
import { type Finding, finding } from "./finding.ts";

export const quotaFindings: Rule = (context) => {
  const { allocation } = context;
  if (allocation === null) return [];
  const quotas = quotasOf(allocation);
  return [
    ...atTopLevel(allocation),
    ...quotas.flatMap((quota) => [
      ...onParent(quota, allocation),
      ...noEffect(quota, context),
      ...bars(quota, allocation),
    ]),
    ...groupMeaning(allocation),
    ...notReturned(context),
  ];
};

interface Quota {
  readonly tag: QuotaTag;
  readonly pool: string;
  readonly name: string;
  readonly limit: Located<number>;
}

const quotasOf = ({ allocations }: AllocationFile): readonly Quota[] => [
  ...ofKind("user", allocations.userQuotas),
  ...ofKind("group", allocations.groupQuotas),
];

const ofKind = (tag: QuotaTag, pools: ReadonlyMap<string, LocatedQuotas>): readonly Quota[] =>
  [...pools].flatMap(([pool, limits]) => [...limits].map(([name, limit]) => ({ tag, pool, name, limit })));

const textOf = ({ tag, name, limit }: Quota): string => `${tag} ${JSON.stringify(name)}: ${limit.value}`;

const isQuota = (name: string): boolean => name === "userQueryLimit" || name === "groupQueryLimit";

const atTopLevel = ({ file, root }: AllocationFile): readonly Finding[] =>
  elementsOf(root)
    .filter((element) => isQuota(element.name))
    .map((element) =>
      finding("Q03", {
        at: { file, ...element.at },
        found: `<${element.name}> at the top level`,
        effect: "Ignored, with one line in the log while loading.",
        remedy: "Move it into a pool, or into the root queue for all pools together.",
      }),
    );

function onParent(quota: Quota, { file, queues }: AllocationFile): readonly Finding[] {
  const isParent = queues.some((queue) => queue.pool === quota.pool && queue.hasChildren);
  if (quota.pool === ROOT_POOL || !isParent) return [];
  return [
    finding("Q03", {
      at: { file, ...quota.limit.at },
      pool: quota.pool,
      found: `${textOf(quota)} on a parent queue`,
      effect:
        "It holds only for queries run in this pool itself: pools below never look here, only at their own and at root.",
      remedy: "Put it on the leaf, or on root.",
    }),
  ];
}

/** Q04: something smaller binds first. */
function noEffect(quota: Quota, { allocation, pools }: CheckContext): readonly Finding[] {
  if (allocation === null || quota.pool === ROOT_POOL) return [];
  const { userQuotas, groupQuotas } = allocation.allocations;
  const above = (quota.tag === "user" ? userQuotas : groupQuotas).get(ROOT_POOL)?.get(quota.name);
  const config = pools.find((pool) => pool.name === quota.pool)?.config;
  const places =
    config === undefined || config.maxRequests < 0 ? null : config.maxRequests + Math.max(0, config.maxQueued);
  const why =
    above !== undefined && quota.limit.value > above.value
      ? `root allows only ${above.value} (line ${above.at.line})`
      : places !== null && quota.limit.value > places
        ? `the pool has only ${places} places, running and queued`
        : null;
  if (why === null) return [];
  return [
    finding("Q04", {
      at: { file: allocation.file, ...quota.limit.at },
      pool: quota.pool,
      found: textOf(quota),
      effect: `It can never bind: ${why}.`,
      remedy: "Lower it or drop it.",
    }),
  ];
}

function bars(quota: Quota, { file }: AllocationFile): readonly Finding[] {
  if (quota.limit.value > 0) return [];
  const ignored = quota.tag === "group" && quota.limit.value < 0;
  return [
    finding("Q05", {
      at: { file, ...quota.limit.at },
      pool: quota.pool,
      found: textOf(quota),
      effect: ignored
        ? "A negative group limit counts as if no group had matched, when it is the only one that does; the wildcard decides then."
        : `All queries of ${quota.name === "*" ? "everybody else" : quota.tag === "user" ? "that user" : "that group's members"} are rejected.`,
      remedy: "To keep somebody out use the access list.",
    }),
  ];
}

function groupMeaning({ file, allocations }: AllocationFile): readonly Finding[] {
  return [...allocations.groupQuotas].flatMap(([pool, limits]) => {
    const first = limits.values().next().value;
    if (first === undefined) return [];
    const notes = ["The limit is for each member of the group, not for the group together."];
    if (limits.has("*")) notes.push("A group called * is no wildcard, only user * is.");
    if (new Set([...limits.values()].map((limit) => limit.value)).size > 1)
      notes.push("Who is in several of these groups has the largest limit.");
    return [
      finding("Q06", {
        at: { file, ...first.at },
        pool,
        found: [...limits].map(([name, { value }]) => `group ${JSON.stringify(name)}: ${value}`).join(", "),
        effect: notes.join(" "),
        remedy: "Size it for one user.",
      }),
    ];
  });
}

/** Q07: a fault of the product that users see as "I have nothing running and still I am refused". */
function notReturned({ allocation, pools }: CheckContext): readonly Finding[] {
  if (allocation === null) return [];
  const { userQuotas, groupQuotas } = allocation.allocations;
  const canQueue = (pool: string): boolean =>
    pool === ROOT_POOL
      ? pools.some((p) => p.config.maxQueued > 0)
      : pools.some((p) => p.name === pool && p.config.maxQueued > 0);
  const withQuotas = new Set(
    [...userQuotas, ...groupQuotas].flatMap(([pool, limits]) => (limits.size > 0 ? [pool] : [])),
  );
  return [...withQuotas].filter(canQueue).map((pool) => {
    const first = [...(userQuotas.get(pool)?.values() ?? []), ...(groupQuotas.get(pool)?.values() ?? [])][0];
    const late =
      pool === ROOT_POOL ? " Root's counts are also refreshed only with the statestore, so a burst passes it." : "";
    return finding("Q07", {
      at: { file: allocation.file, ...(first?.at ?? allocation.root.at) },
      pool,
      found: "quotas on a pool whose queries can queue",
      effect: `A queued query that times out, is cancelled or is rejected never gives its count back: its user is short of it until a restart.${late}`,
      remedy: "Keep quotas generous and queues short.",
    });
  });
}
