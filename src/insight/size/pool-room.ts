/**
 * How much memory a candidate may give its pool: what its hosts have and other pools have not been promised
 * (insight 3.2, the sum of all limits).
 *
 * Limits that add up to more than the hosts have are promises that cannot all be kept: then hosts decide who waits,
 * and a pool that was sized alone waits for others. Files may do so on purpose, so what the pool has today is never
 * too much, and `--oversubscribe` allows more.
 */
import type { ClusterSpec } from "../../config/scenario.ts";
import { backendsOf } from "../../config/scenario-cluster.ts";
import { groupsOfPool } from "../../core/cluster/candidate-groups.ts";
import { type Membership, membershipOf } from "../../core/cluster/membership.ts";
import { type PoolConfig, ROOT_POOL } from "../../core/pool-config.ts";

export interface PoolRoom {
  /** Bytes of the hosts that the pool's queries run on. */
  readonly hosts: number;
  /** Limits of the other pools on any of them; of a pool that is shut nothing. */
  readonly others: number;
  /** Those of them that have no limit and so cannot be counted, in name order. */
  readonly unlimited: readonly string[];
  /** What a candidate may give at most: what is left of the hosts, or what the pool has today if that is more. */
  readonly most: number;
  /** Today's limit is more than what is left. */
  readonly isOvercommitted: boolean;
  /** Of what the hosts have, so much may be promised. */
  readonly oversubscribe: number;
}

/** `configs`: of every pool there is. */
export function roomOf(
  pool: string,
  configs: Readonly<Record<string, PoolConfig>>,
  cluster: ClusterSpec,
  oversubscribe: number,
): PoolRoom {
  const membership = membershipOf({ version: 2, backends: backendsOf(cluster) });
  const own = hostsOf(pool, configs[pool]!, membership);
  const neighbours = Object.keys(configs)
    .filter((name) => name !== pool && name !== ROOT_POOL)
    .filter((name) => [...hostsOf(name, configs[name]!, membership).keys()].some((address) => own.has(address)))
    .sort();
  const hosts = [...own.values()].reduce((sum, memory) => sum + memory, 0);
  const others = neighbours.reduce((sum, name) => sum + Math.max(0, configs[name]!.maxMemResources), 0);
  const left = Math.max(0, Math.floor(hosts * oversubscribe) - others);
  const today = configs[pool]!.maxMemResources;
  return {
    hosts,
    others,
    unlimited: neighbours.filter((name) => configs[name]!.maxMemResources < 0),
    most: Math.max(left, today),
    isOvercommitted: today > left,
    oversubscribe,
  };
}

/** Memory by address. */
function hostsOf(pool: string, { onlyCoordinators }: PoolConfig, membership: Membership): ReadonlyMap<string, number> {
  const groups = onlyCoordinators ? [membership.allCoordinators] : groupsOfPool(pool, membership.groups);
  return new Map(groups.flatMap((g) => g.executors.map((b): [string, number] => [b.address, b.admitMemLimit])));
}
