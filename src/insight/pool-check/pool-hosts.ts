/**
 * Which hosts a pool's queries can use, and how many equal queries fit there at once (insight 0, 1.5).
 */
import { DEFAULT_GROUP } from "../../core/cluster/backend.ts";
import { MiB } from "../../core/units.ts";
import type { CheckedPool } from "./check-context.ts";
import type { ClusterFacts, HostFacts, TrafficClass } from "./check-input.ts";

export interface PoolHosts {
  /** Names in order; several groups are used one after the other. */
  readonly groups: readonly string[];
  /** Executors of the largest group: a query never spans two. */
  readonly executors: readonly HostFacts[];
  /** Executors of all its groups. */
  readonly all: readonly HostFacts[];
  readonly smallest: number;
  readonly sum: number;
  /** Whether some coordinator of the cluster is not among the executors. */
  readonly dedicated: boolean;
}

/** Groups that begin with the pool's name and a hyphen, else the group `default`; null without executors. */
export function poolHosts(pool: string, cluster: ClusterFacts): PoolHosts | null {
  const executors = cluster.hosts.filter((host) => host.isExecutor);
  const own = executors.filter((host) => host.group.name.startsWith(`${pool}-`));
  const all = own.length > 0 ? own : executors.filter((host) => host.group.name === DEFAULT_GROUP);
  if (all.length === 0) return null;
  const groups = [...new Set(all.map((host) => host.group.name))].sort();
  const sizes = groups.map((name) => all.filter((host) => host.group.name === name));
  const largest = sizes.reduce((a, b) => (b.length > a.length ? b : a));
  return {
    groups,
    executors: largest,
    all,
    smallest: Math.min(...all.map((host) => host.admitMemLimit)),
    sum: all.reduce((sum, host) => sum + host.admitMemLimit, 0),
    dedicated: cluster.hosts.some((host) => host.isCoordinator && !host.isExecutor),
  };
}

/** The coordinator's share when it is not one of the executors; at least what a reservation of 0 needs (MEM-3). */
export const coordinatorShare = (estimate: number): number => Math.max(32 * MiB, estimate);

/** Charge of a query on `executors` hosts with `perHost` each. */
export function chargeOf(perHost: number, executors: number, hosts: PoolHosts, coordinatorEstimate: number): number {
  return perHost * executors + (hosts.dedicated ? coordinatorShare(coordinatorEstimate) : 0);
}

/** What a class is charged for on each executor in a pool. */
export function perHostOf(c: TrafficClass, pool: CheckedPool, hosts: PoolHosts): number {
  const { minQueryMemLimit: min, maxQueryMemLimit: max, clampMemLimitQueryOption: clamp } = pool.config;
  const written = c.memLimit > 0 ? c.memLimit : pool.defaultMemLimit;
  let perHost = written > 0 ? written : c.perHostEstimate;
  if (written === 0 || clamp) {
    if (min > 0) perHost = Math.max(perHost, min);
    if (max > 0) perHost = Math.min(perHost, max);
  }
  return Math.min(perHost, hosts.smallest);
}

export const executorsOf = (c: TrafficClass, hosts: PoolHosts): number =>
  c.executors === "all" ? hosts.executors.length : Math.min(c.executors, hosts.executors.length);

/** Cluster-wide charge of one query of the class. */
export const needOf = (c: TrafficClass, pool: CheckedPool, hosts: PoolHosts): number =>
  chargeOf(perHostOf(c, pool, hosts), executorsOf(c, hosts), hosts, c.coordinatorEstimate);

/** How many queries of the class run at once when the pool has nothing else; Infinity when nothing bounds it. */
export function placesOf(c: TrafficClass, pool: CheckedPool, hosts: PoolHosts): number {
  const { maxMemResources, maxRequests } = pool.config;
  const bounds = [Number.POSITIVE_INFINITY];
  if (maxMemResources >= 0) bounds.push(Math.floor(maxMemResources / needOf(c, pool, hosts)));
  if (maxRequests >= 0) bounds.push(maxRequests);
  // A full-width query takes its share of every host; hosts are not checked in a pool without a memory limit.
  if (maxMemResources >= 0 && executorsOf(c, hosts) === hosts.executors.length)
    bounds.push(Math.floor(hosts.smallest / perHostOf(c, pool, hosts)) * hosts.groups.length);
  if (!hosts.groups.includes(DEFAULT_GROUP) && c.slotsPerHost > 0)
    bounds.push(Math.floor(Math.min(...hosts.all.map((h) => h.slots)) / c.slotsPerHost) * hosts.groups.length);
  return Math.min(...bounds);
}
