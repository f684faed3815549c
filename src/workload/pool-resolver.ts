/**
 * Where a request of a user lands, from the pool files: what the workload asks once per class and user.
 */
import { type ExpectedGroupSet, expectedGroupSets } from "../config/expected-group-sets.ts";
import type { ImpalaFlags } from "../config/impala-flags.ts";
import type { PoolSource } from "../config/pool-directory.ts";
import { parseOptionString } from "../config/query-options.ts";
import { shortName } from "../config/short-name.ts";
import { chooseGroupSet, type GroupSet } from "../core/cluster/group-sets.ts";
import { ROOT_POOL } from "../core/pool-config.ts";
import type { Resolution, Resolver } from "./workload.ts";

/**
 * `currentPools` is asked each time, since a reload may have made others.
 *
 * A request is resolved twice, as in the product: at submission, where errors only cost the pool's default options,
 * and at admission, where they fail the query (pool-configuration 3.5). Between the two the default options of the
 * first pool are overlaid, and a REQUEST_POOL among them sends the query elsewhere. Between the two the planner also
 * chooses among executor group sets, if some are expected, and the chosen set's prefix is the pool to ask for (6.4).
 */
export function poolResolver(
  currentPools: () => PoolSource,
  flags: ImpalaFlags,
  users: Readonly<Record<string, readonly string[] | null>>,
): Resolver {
  const processDefaults = optionsOf(flags.default_query_options);
  const sets = setsOf(flags.expected_executor_group_sets);
  const skipsLast = flags.skip_resource_checking_on_last_executor_group_set;
  return {
    resolve(requestedPool, connectedUser, estimateUnder): Resolution {
      const pools = currentPools();
      const asked = requestedPool === "" ? (processDefaults.REQUEST_POOL ?? "") : requestedPool;
      const early = earlyOptions(pools, asked, connectedUser);
      const requested = requestedPool === "" ? (early.options.REQUEST_POOL ?? asked) : asked;
      const defaultOptions = { ...processDefaults, ...early.options };
      const planned = early.isOnlyCoordinators
        ? { pool: requested }
        : planFor(sets, pools, requested, () => estimateUnder(defaultOptions, early.maxMtDop), skipsLast);
      if ("error" in planned) return { kind: "unresolved", error: planned.error };
      const found = pools.resolve(planned.pool, connectedUser);
      if (found.kind === "refused") return { kind: "unresolved", error: found.error };
      const error = recordError(pools, found.pool);
      if (error !== null) return { kind: "unresolved", error };
      const user = shortName(found.effectiveUser) ?? found.effectiveUser;
      return {
        kind: "resolved",
        pool: found.pool,
        user,
        groups: Object.hasOwn(users, user) && users[user] === null ? null : pools.groupsOf(user),
        defaultOptions,
        maxMtDop: early.maxMtDop,
      };
    },
  };
}

/** What submission takes from the pool: nothing when it has none or its record cannot be built. */
function earlyOptions(pools: PoolSource, asked: string, user: string) {
  const found = pools.resolve(asked, user);
  const record = found.kind === "resolved" ? pools.lookUp(found.pool) : null;
  return record?.kind === "found"
    ? {
        options: optionsOf(record.config.defaultQueryOptions),
        maxMtDop: record.config.maxMtDop,
        isOnlyCoordinators: record.config.onlyCoordinators,
      }
    : { options: {}, maxMtDop: -1, isOnlyCoordinators: false };
}

/** The flag was looked at when the scenario was read. */
function setsOf(text: string): readonly ExpectedGroupSet[] {
  const parsed = expectedGroupSets(text);
  return parsed.ok ? parsed.sets : [];
}

/**
 * The pool that the planner asks for. Widths are the expected ones: without COMPUTE_PROCESSING_COST, whose figures no
 * scenario has, those of the moment would only break ties between sets of the same memory limit.
 */
function planFor(
  sets: readonly ExpectedGroupSet[],
  pools: PoolSource,
  requestPool: string,
  estimate: () => number,
  skipsLast: boolean,
): { readonly pool: string } | { readonly error: string } {
  if (sets.length === 0) return { pool: requestPool };
  const query = { requestPool, perHostMemEstimate: estimate(), cpuAsk: null, isFixed: false };
  const choice = chooseGroupSet(
    sets.map((s) => withLimits(s, pools)),
    [],
    query,
    skipsLast,
  );
  return choice.kind === "failed" ? { error: choice.error } : { pool: choice.set.prefix };
}

function withLimits(set: ExpectedGroupSet, pools: PoolSource): GroupSet {
  const record = pools.lookUp(set.prefix);
  const limits = record.kind === "found" ? record.config : { maxQueryMemLimit: 0, maxQueryCpuCorePerNodeLimit: 0 };
  const { maxQueryMemLimit, maxQueryCpuCorePerNodeLimit } = limits;
  return { ...set, maxQueryMemLimit, maxQueryCpuCorePerNodeLimit };
}

/** Every admission builds the record of its pool and that of root, so a bad number in either fails it (2.4). */
function recordError(pools: PoolSource, pool: string): string | null {
  for (const name of [pool, ROOT_POOL]) {
    const record = pools.lookUp(name);
    if (record.kind === "failed") return record.error;
  }
  return null;
}

/** A bad piece is dropped and the others apply (pool-configuration 2.5). */
const optionsOf = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(parseOptionString(text).options);
