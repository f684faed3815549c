/**
 * C01 to C10: the pools against the hosts they run on.
 */
import { DEFAULT_GROUP } from "../../core/cluster/backend.ts";
import { prettyBytes } from "../../core/pretty.ts";
import {
  type CheckContext,
  type CheckedPool,
  isMeantForQueries,
  originPlace,
  queuePlace,
  type Rule,
} from "./check-context.ts";
import type { ClusterFacts } from "./check-input.ts";
import { type Finding, finding } from "./finding.ts";
import { chargeOf, coordinatorShare, executorsOf, type PoolHosts, perHostOf, poolHosts } from "./pool-hosts.ts";
import { classesIn } from "./traffic-of-pool.ts";

export const clusterFindings: Rule = (context) => {
  const { cluster } = context.input;
  if (cluster === null) return [];
  const placed = context.pools.flatMap((pool) => {
    const hosts = poolHosts(pool.name, cluster);
    return hosts === null ? [] : [{ pool, hosts }];
  });
  return [
    ...placed.flatMap(({ pool, hosts }) => [
      ...boundsAgainstHosts(pool, hosts, context),
      ...belowOneQuery(pool, hosts, cluster, context),
      ...coordinatorsShare(pool, hosts, cluster, context),
      ...overshoot(pool, cluster, context),
      ...slotsBind(pool, hosts, context),
    ]),
    ...aboveCluster(placed, context),
    ...byProcessLimit(placed, context),
    ...unlimitedNeighbours(placed, context),
  ];
};

interface PlacedPool {
  readonly pool: CheckedPool;
  readonly hosts: PoolHosts;
}

/** C01, C02. */
function boundsAgainstHosts(pool: CheckedPool, hosts: PoolHosts, context: CheckContext): readonly Finding[] {
  const { minQueryMemLimit: min, maxQueryMemLimit: max } = pool.config;
  const smallest = prettyBytes(hosts.smallest);
  const findings: Finding[] = [];
  if (max > hosts.smallest)
    findings.push(
      finding("C01", {
        at: originPlace(pool, "maxQueryMemLimit", context),
        pool: pool.name,
        found: `max-query-mem-limit ${prettyBytes(max)}, smallest host ${smallest}`,
        effect: "Silently lowered to the smallest host of the group.",
        remedy: `At most ${hosts.smallest}.`,
      }),
    );
  if (min > hosts.smallest / 2)
    findings.push(
      finding("C02", {
        at: originPlace(pool, "minQueryMemLimit", context),
        pool: pool.name,
        found: `min-query-mem-limit ${prettyBytes(min)}, smallest host ${smallest}`,
        effect: `One query of this pool on a host at a time${min > hosts.smallest ? ", and the minimum is lowered to the host" : ""}.`,
        remedy: `A smaller minimum, at most ${Math.floor(hosts.smallest / 2)}.`,
      }),
    );
  return findings;
}

/** C06, C07: what the smallest full-width query needs. */
function belowOneQuery(
  pool: CheckedPool,
  hosts: PoolHosts,
  cluster: ClusterFacts,
  context: CheckContext,
): readonly Finding[] {
  const { minQueryMemLimit: min, maxMemResources: limit, maxRequests } = pool.config;
  if (min <= 0 || limit <= 0) return [];
  const need = chargeOf(min, hosts.executors.length, hosts, cluster.coordinatorEstimate);
  if (limit < need)
    return [
      finding("C06", {
        at: originPlace(pool, "maxMemResources", context),
        pool: pool.name,
        found: `the pool has ${prettyBytes(limit)}, the least query on ${hosts.executors.length} executors needs ${prettyBytes(need)}`,
        effect: "A query that uses all executors can never run and is rejected; narrow ones can.",
        remedy: "Raise the limit, or lower min-query-mem-limit.",
      }),
    ];
  const fit = Math.floor(limit / need);
  if (maxRequests <= fit) return [];
  return [
    finding("C07", {
      at: originPlace(pool, "maxRequests", context),
      pool: pool.name,
      found: `${maxRequests} running, memory for ${fit}`,
      effect: "Memory always binds first; the limit on running queries is only a fuse.",
      remedy: `Lower it to ${fit}, or know that it is a fuse.`,
    }),
  ];
}

/** C08: a dedicated coordinator's share can cost one whole query. */
function coordinatorsShare(
  pool: CheckedPool,
  hosts: PoolHosts,
  cluster: ClusterFacts,
  context: CheckContext,
): readonly Finding[] {
  const { maxMemResources: limit, minQueryMemLimit } = pool.config;
  if (!hosts.dedicated || limit <= 0) return [];
  const all = hosts.executors.length;
  const candidates = classesIn(pool.name, context).map((c) => ({
    what: `queries of ${c.name}`,
    perHost: perHostOf(c, pool, hosts),
    width: executorsOf(c, hosts),
    share: c.coordinatorEstimate,
  }));
  if (minQueryMemLimit > 0)
    candidates.push({
      what: "queries of the least size",
      perHost: minQueryMemLimit,
      width: all,
      share: cluster.coordinatorEstimate,
    });
  const without = (q: (typeof candidates)[number]) => Math.floor(limit / (q.perHost * q.width));
  const within = (q: (typeof candidates)[number]) => Math.floor(limit / chargeOf(q.perHost, q.width, hosts, q.share));
  const lossy = candidates.find((q) => without(q) !== within(q));
  if (lossy === undefined) return [];
  const share = prettyBytes(coordinatorShare(lossy.share));
  return [
    finding("C08", {
      at: originPlace(pool, "maxMemResources", context),
      pool: pool.name,
      found: `${prettyBytes(limit)} for ${lossy.what}, ${prettyBytes(lossy.perHost)} on each of ${lossy.width} executors`,
      effect: `${without(lossy)} would fit, with the coordinator's share of ${share} only ${within(lossy)}.`,
      remedy: `Add ${without(lossy)} times that share to the limit.`,
    }),
  ];
}

/** C09: every coordinator may fill the same free place between two updates. */
function overshoot(pool: CheckedPool, cluster: ClusterFacts, context: CheckContext): readonly Finding[] {
  const coordinators = cluster.hosts.filter((host) => host.isCoordinator).length;
  const limit = pool.config.maxRequests;
  if (cluster.admissiond || limit <= 0 || coordinators - 1 <= limit / 10) return [];
  return [
    finding("C09", {
      at: originPlace(pool, "maxRequests", context),
      pool: pool.name,
      found: `${coordinators} coordinators, ${limit} running queries`,
      effect: `Each coordinator may fill the same free place until the next update: up to ${limit} + ${coordinators - 1} times what arrives in two updates.`,
      remedy: "Leave headroom, use fewer coordinators for this pool, or admissiond.",
    }),
  ];
}

/** C10: slots are tested in named groups only. */
function slotsBind(pool: CheckedPool, hosts: PoolHosts, context: CheckContext): readonly Finding[] {
  if (hosts.groups.includes(DEFAULT_GROUP)) return [];
  const perQuery = Math.max(1, pool.defaultMtDop, ...classesIn(pool.name, context).map((c) => c.slotsPerHost));
  const slots = Math.min(...hosts.all.map((host) => host.slots));
  if (pool.config.maxRequests * perQuery <= slots) return [];
  return [
    finding("C10", {
      at: originPlace(pool, "maxRequests", context),
      pool: pool.name,
      found: `${pool.config.maxRequests} running with ${perQuery} slots each, ${slots} slots on a host`,
      effect: "Slots bind before the running limit.",
      remedy: `Raise admission_control_slots, or at most ${Math.floor(slots / perQuery)} running.`,
    }),
  ];
}

/** C03: all limits together, and each alone. */
function aboveCluster(placed: readonly PlacedPool[], context: CheckContext): readonly Finding[] {
  const limited = placed.filter(({ pool }) => pool.isLeaf && pool.config.maxMemResources > 0);
  const alone = limited
    .filter(({ pool, hosts }) => pool.config.maxMemResources > hosts.sum)
    .map(({ pool, hosts }) =>
      finding("C03", {
        at: originPlace(pool, "maxMemResources", context),
        pool: pool.name,
        found: `the pool has ${prettyBytes(pool.config.maxMemResources)}, its hosts ${prettyBytes(hosts.sum)}`,
        effect: "The limit never binds: hosts do first.",
        remedy: `At most ${prettyBytes(hosts.sum)}.`,
      }),
    );
  const sum = limited.reduce((total, { pool }) => total + pool.config.maxMemResources, 0);
  const hosts = totalOf(placed);
  const ratio = hosts === 0 ? 0 : sum / hosts;
  if (ratio <= 1 || limited.length < 2) return alone;
  return [
    ...alone,
    finding("C03", {
      at: { file: context.allocation?.file ?? "", line: context.allocation?.root.at.line ?? null },
      found: `all pools together ${prettyBytes(sum)}, the hosts ${prettyBytes(hosts)} (${ratio.toFixed(2)} times)`,
      effect: "The pools cannot all be full: hosts bind first, and one pool's load makes another wait.",
      remedy: "Keep the sum at or below the hosts' memory, unless the peaks are at different hours.",
      severity: ratio > 1.5 ? "warning" : "hint",
    }),
  ];
}

/** Memory of all executors that some pool uses, each counted once. */
function totalOf(placed: readonly PlacedPool[]): number {
  const hosts = new Map(placed.flatMap((p) => p.hosts.all.map((host) => [host.address, host.admitMemLimit] as const)));
  return [...hosts.values()].reduce((a, b) => a + b, 0);
}

/** C04: sized by what the process has, not by what it can give. */
function byProcessLimit(placed: readonly PlacedPool[], context: CheckContext): readonly Finding[] {
  const hosts = [...new Map(placed.flatMap((p) => p.hosts.all.map((host) => [host.address, host] as const))).values()];
  if (hosts.length === 0 || hosts.some((host) => host.processMemLimit === null)) return [];
  const process = hosts.reduce((sum, host) => sum + (host.processMemLimit ?? 0), 0);
  const admit = hosts.reduce((sum, host) => sum + host.admitMemLimit, 0);
  const near = (limit: number, of: number): boolean => Math.abs(limit - of) <= of / 100;
  const looksSized = (limit: number): boolean => near(limit, process) && !near(limit, admit);
  const limited = placed.filter(({ pool }) => pool.isLeaf && pool.config.maxMemResources > 0);
  const text = (limit: number) => ({
    found: `${prettyBytes(limit)}, and the hosts' mem_limit is ${prettyBytes(process)} together`,
    effect: `Hosts give queries less than their mem_limit: ${prettyBytes(admit)} together, after the code cache and where asked for the JVM heap.`,
    remedy: `Size by admit_mem_limit: ${prettyBytes(admit)}.`,
  });
  const single = limited
    .filter(({ pool }) => looksSized(pool.config.maxMemResources))
    .map(({ pool }) =>
      finding("C04", {
        at: originPlace(pool, "maxMemResources", context),
        pool: pool.name,
        ...text(pool.config.maxMemResources),
      }),
    );
  const sum = limited.reduce((total, { pool }) => total + pool.config.maxMemResources, 0);
  if (single.length > 0 || limited.length < 2 || !looksSized(sum)) return single;
  const { allocation } = context;
  return [
    finding("C04", { at: { file: allocation?.file ?? "", line: allocation?.root.at.line ?? null }, ...text(sum) }),
  ];
}

/** C05: one pool's queries are never held back by hosts, and fill them for the other. */
function unlimitedNeighbours(placed: readonly PlacedPool[], context: CheckContext): readonly Finding[] {
  const candidates = placed.filter(({ pool }) => isMeantForQueries(pool));
  return candidates
    .filter(({ pool }) => pool.config.maxMemResources < 0)
    .flatMap(({ pool, hosts }) => {
      const others = candidates.filter(
        (other) =>
          other.pool.config.maxMemResources > 0 && other.hosts.groups.some((group) => hosts.groups.includes(group)),
      );
      if (others.length === 0) return [];
      const names = others.map((other) => other.pool.name).join(", ");
      return [
        finding("C05", {
          at: queuePlace(pool, context),
          pool: pool.name,
          found: `no memory limit here, one for ${names}, on the same hosts`,
          effect: `Queries of this pool are never checked against the hosts but count there, so only ${names} wait for them.`,
          remedy: "Limit both.",
        }),
      ];
    });
}
