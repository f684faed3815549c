/**
 * Where a request of a user lands, from the pool files: what the workload asks once per class and user.
 */
import type { ImpalaFlags } from "../config/impala-flags.ts";
import type { PoolSource } from "../config/pool-directory.ts";
import { shortName } from "../config/short-name.ts";
import type { Resolution, Resolver } from "./workload.ts";

/** `currentPools` is asked each time, since a reload may have made others. */
export function poolResolver(
  currentPools: () => PoolSource,
  flags: ImpalaFlags,
  users: Readonly<Record<string, readonly string[] | null>>,
): Resolver {
  const processDefaults = optionsOf(flags.default_query_options);
  return {
    resolve(requestedPool, connectedUser): Resolution {
      const pools = currentPools();
      const found = pools.resolve(requestedPool, connectedUser);
      if (found.kind === "refused") return { kind: "unresolved", error: found.error };
      const record = pools.lookUp(found.pool);
      if (record.kind === "failed") return { kind: "unresolved", error: record.error };
      const user = shortName(found.effectiveUser) ?? found.effectiveUser;
      return {
        kind: "resolved",
        pool: found.pool,
        user,
        groups: Object.hasOwn(users, user) && users[user] === null ? null : pools.groupsOf(user),
        defaultOptions: { ...processDefaults, ...optionsOf(record.config.defaultQueryOptions) },
        maxMtDop: record.config.maxMtDop,
      };
    },
  };
}

/** `k=v,k=v`; a bad piece is dropped and the others apply (pool-configuration 2.5). */
function optionsOf(text: string): Record<string, string> {
  const options: Record<string, string> = {};
  for (const piece of text.split(",")) {
    const [name, value, more] = piece.trim().split(/=+/);
    if (name && value && more === undefined) options[name.toUpperCase()] = value;
  }
  return options;
}
