/**
 * Where a request of a user lands, from the pool files: what the workload asks once per class and user.
 */
import type { ImpalaFlags } from "../config/impala-flags.ts";
import type { PoolSource } from "../config/pool-directory.ts";
import { parseOptionString } from "../config/query-options.ts";
import { shortName } from "../config/short-name.ts";
import { ROOT_POOL } from "../core/pool-config.ts";
import type { Resolution, Resolver } from "./workload.ts";

/**
 * `currentPools` is asked each time, since a reload may have made others.
 *
 * A request is resolved twice, as in the product: at submission, where errors only cost the pool's default options,
 * and at admission, where they fail the query (pool-configuration 3.5). Between the two the default options of the
 * first pool are overlaid, and a REQUEST_POOL among them sends the query elsewhere.
 */
export function poolResolver(
  currentPools: () => PoolSource,
  flags: ImpalaFlags,
  users: Readonly<Record<string, readonly string[] | null>>,
): Resolver {
  const processDefaults = optionsOf(flags.default_query_options);
  return {
    resolve(requestedPool, connectedUser): Resolution {
      const pools = currentPools();
      const asked = requestedPool === "" ? (processDefaults.REQUEST_POOL ?? "") : requestedPool;
      const early = earlyOptions(pools, asked, connectedUser);
      const wanted = requestedPool === "" ? (early.options.REQUEST_POOL ?? asked) : asked;
      const found = pools.resolve(wanted, connectedUser);
      if (found.kind === "refused") return { kind: "unresolved", error: found.error };
      const error = recordError(pools, found.pool);
      if (error !== null) return { kind: "unresolved", error };
      const user = shortName(found.effectiveUser) ?? found.effectiveUser;
      return {
        kind: "resolved",
        pool: found.pool,
        user,
        groups: Object.hasOwn(users, user) && users[user] === null ? null : pools.groupsOf(user),
        defaultOptions: { ...processDefaults, ...early.options },
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
    ? { options: optionsOf(record.config.defaultQueryOptions), maxMtDop: record.config.maxMtDop }
    : { options: {}, maxMtDop: -1 };
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
