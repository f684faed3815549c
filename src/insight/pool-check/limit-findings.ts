/**
 * L01 to L12: limits that do something else than they seem to.
 */
import { isUnlimited, MiB } from "../../core/units.ts";
import {
  byOrigin,
  type CheckContext,
  type CheckedPool,
  isMeantForQueries,
  originPlace,
  originText,
  queuePlace,
  type Rule,
} from "./check-context.ts";
import { type Finding, type FindingId, finding } from "./finding.ts";

export const limitFindings: Rule = (context) => [
  ...values(context, "L01", "maxQueued", ({ config }) => config.maxQueued <= 0, {
    effect:
      "Every query is rejected, on an idle cluster and trivial ones too: whether the queue is full is asked before anything else.",
    remedy: "At least 1; for queries that should not wait set a short timeout.",
  }),
  ...values(context, "L02", "maxRequests", ({ config }) => config.maxRequests === 0, {
    effect: "Every query is rejected, waiting ones too: disabled by requests limit set to 0.",
    remedy: "-1 for no limit; to close a pool use its access list.",
  }),
  ...values(
    context,
    "L03",
    "queueTimeout",
    ({ config, origins }) => config.queueTimeout === null && origins.queueTimeout.from !== "builtIn",
    {
      effect: `Neither "no waiting" nor "for ever": the flag queue_wait_timeout_ms holds, ${context.flags.queue_wait_timeout_ms} ms.`,
      remedy: "Write a number of milliseconds above 0, or delete the key.",
    },
  ),
  ...values(
    context,
    "L04",
    "queueTimeout",
    ({ config }) => config.queueTimeout !== null && config.queueTimeout < 1000,
    {
      effect: "Milliseconds; it looks like seconds.",
      remedy: "Multiply it by 1000.",
    },
  ),
  ...context.pools.flatMap((pool) => ofPool(pool, context)),
];

/** Findings about one value, once for each place it is written. */
function values(
  context: CheckContext,
  id: FindingId,
  field: "maxQueued" | "maxRequests" | "queueTimeout",
  holds: (pool: CheckedPool) => boolean,
  text: { readonly effect: string; readonly remedy: string },
): readonly Finding[] {
  return byOrigin(context, field, holds).map(({ at, pool, pools }) =>
    finding(id, { at, pool, found: pools[0] === undefined ? "" : originText(pools[0], field), ...text }),
  );
}

function ofPool(pool: CheckedPool, context: CheckContext): readonly Finding[] {
  return [
    ...bounds(pool, context),
    ...tinyBounds(pool, context),
    ...(isMeantForQueries(pool) ? [...estimates(pool, context), ...nothing(pool, context)] : []),
    ...clampOff(pool, context),
  ];
}

/** L05 to L07. */
function bounds(pool: CheckedPool, context: CheckContext): readonly Finding[] {
  const { minQueryMemLimit: min, maxQueryMemLimit: max, maxMemResources: limit } = pool.config;
  const findings: Finding[] = [];
  const at = (field: "minQueryMemLimit" | "maxQueryMemLimit") => originPlace(pool, field, context);
  if (max > 0 && min > max)
    findings.push(
      finding("L05", {
        at: at("minQueryMemLimit"),
        pool: pool.name,
        found: `min-query-mem-limit ${min}, max-query-mem-limit ${max}`,
        effect: `Every query is rejected: Invalid pool config: the min_query_mem_limit is greater than the max_query_mem_limit (${min} > ${max}).`,
        remedy: "Swap the two, or lower the minimum.",
      }),
    );
  if (limit > 0 && min > limit)
    findings.push(
      finding("L06", {
        at: at("minQueryMemLimit"),
        pool: pool.name,
        found: `min-query-mem-limit ${min}, the pool has ${limit}`,
        effect: `Every query is rejected: Invalid pool config: the min_query_mem_limit ${min} is greater than the max_mem_resources ${limit}.`,
        remedy: "Lower the minimum, or give the pool more memory.",
      }),
    );
  if (limit > 0 && max > limit)
    findings.push(
      finding("L07", {
        at: at("maxQueryMemLimit"),
        pool: pool.name,
        found: `max-query-mem-limit ${max}, the pool has ${limit}`,
        effect: "An inflated estimate is not lowered to what fits the pool; the query is rejected.",
        remedy: "At most the pool's memory divided by the number of hosts a query runs on.",
      }),
    );
  return findings;
}

function tinyBounds(pool: CheckedPool, context: CheckContext): readonly Finding[] {
  return (["minQueryMemLimit", "maxQueryMemLimit"] as const)
    .filter((field) => pool.config[field] > 0 && pool.config[field] < MiB)
    .map((field) =>
      finding("L08", {
        at: originPlace(pool, field, context),
        pool: pool.name,
        found: originText(pool, field),
        effect:
          field === "maxQueryMemLimit"
            ? "Bytes: with a maximum this small no reservation fits, and nearly all queries are rejected."
            : "Bytes: a minimum this small has no effect.",
        remedy: `Write bytes: ${pool.config[field]} MB are ${pool.config[field] * MiB}.`,
      }),
    );
}

/** L09, L10: nobody has said how much a query may use. */
function estimates(pool: CheckedPool, context: CheckContext): readonly Finding[] {
  const { minQueryMemLimit, maxQueryMemLimit, maxMemResources } = pool.config;
  if (minQueryMemLimit !== 0 || maxQueryMemLimit !== 0 || pool.defaultMemLimit > 0 || maxMemResources === 0) return [];
  const at = queuePlace(pool, context);
  if (isUnlimited(maxMemResources))
    return [
      finding("L09", {
        at,
        pool: pool.name,
        found: "no maxResources, no min- or max-query-mem-limit, no default mem_limit",
        effect: "Queries run without a memory limit; the planner's estimates are only booked.",
        remedy: "Set one of them.",
      }),
    ];
  return [
    finding("L10", {
      at,
      pool: pool.name,
      found: "maxResources, but no min- or max-query-mem-limit and no default mem_limit",
      effect:
        "The planner's estimate is charged to the pool and enforced: one too low spills or fails, one too high fills the pool. (Releases before March 2026 enforced none.)",
      remedy: "Set min-query-mem-limit and max-query-mem-limit.",
    }),
  ];
}

function clampOff(pool: CheckedPool, context: CheckContext): readonly Finding[] {
  const { clampMemLimitQueryOption, minQueryMemLimit, maxQueryMemLimit } = pool.config;
  if (clampMemLimitQueryOption || (minQueryMemLimit <= 0 && maxQueryMemLimit <= 0)) return [];
  return [
    finding("L11", {
      at: originPlace(pool, "clampMemLimitQueryOption", context),
      pool: pool.name,
      found: originText(pool, "clampMemLimitQueryOption"),
      effect: "A user's MEM_LIMIT ignores the bounds. (MEM_LIMIT_EXECUTORS and MEM_LIMIT_COORDINATORS always do.)",
      remedy: "Set it to true.",
    }),
  ];
}

function nothing(pool: CheckedPool, context: CheckContext): readonly Finding[] {
  if (!isUnlimited(pool.config.maxMemResources) || !isUnlimited(pool.config.maxRequests)) return [];
  return [
    finding("L12", {
      at: queuePlace(pool, context),
      pool: pool.name,
      found: "neither memory nor running queries are limited",
      effect: "Nothing ever queues but for slots: the pool has no admission control.",
      remedy: "Set maxResources or a limit on running queries.",
    }),
  ];
}
