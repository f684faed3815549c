/**
 * W01 to W08: the pools against their traffic, by closed forms (insight 3.3). What needs a run is left to `size` and
 * `simulate`.
 */
import { reservationAllowedBy } from "../../core/admission/reservation-math.ts";
import { prettyBytes, prettyMillis } from "../../core/pretty.ts";
import { type CheckContext, type CheckedPool, originPlace, queuePlace, type Rule } from "./check-context.ts";
import type { TrafficClass } from "./check-input.ts";
import { type Finding, finding } from "./finding.ts";
import { needOf, type PoolHosts, perHostOf, placesOf, poolHosts } from "./pool-hosts.ts";
import { classesIn, landingOf } from "./traffic-of-pool.ts";

export const trafficFindings: Rule = (context) => {
  const { cluster, traffic } = context.input;
  if (traffic === null) return [];
  return [
    ...wrongPool(context),
    ...context.pools.flatMap((pool) => {
      const hosts = cluster === null ? null : poolHosts(pool.name, cluster);
      const classes = classesIn(pool.name, context);
      if (classes.length === 0) return [];
      return [
        ...limitsOfClasses(pool, classes, context),
        ...(hosts === null ? [] : ofPool({ pool, hosts, classes }, context)),
      ];
    }),
  ];
};

interface PoolTraffic {
  readonly pool: CheckedPool;
  readonly hosts: PoolHosts;
  readonly classes: readonly TrafficClass[];
}

const ofPool = (traffic: PoolTraffic, context: CheckContext): readonly Finding[] => [
  ...hopelessQueue(traffic, context),
  ...burstRejected(traffic, context),
  ...overload(traffic, context),
  ...mixedSizes(traffic, context),
  ...inflated(traffic, context),
];

/** Memory times time a class holds: what says which class matters. */
const memoryTime = (c: TrafficClass, { pool, hosts }: PoolTraffic): number =>
  c.count * c.meanHold * needOf(c, pool, hosts);

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** Queries at once and their mean hold, each class weighted by how often it comes. */
function mixOf(traffic: PoolTraffic): { readonly places: number; readonly hold: number } {
  const { pool, hosts, classes } = traffic;
  const queries = sum(classes.map((c) => c.count));
  const hold = sum(classes.map((c) => c.count * c.meanHold)) / queries;
  const shareOfPlace = sum(classes.map((c) => (c.count * c.meanHold) / placesOf(c, pool, hosts))) / (queries * hold);
  return { places: Math.floor(1 / shareOfPlace + 1e-9), hold };
}

/** W01: whoever stands further back than the timeout's worth of departures waits in vain. */
function hopelessQueue(traffic: PoolTraffic, context: CheckContext): readonly Finding[] {
  const { pool } = traffic;
  const { places, hold } = mixOf(traffic);
  const timeout = pool.config.queueTimeout ?? Math.max(0, context.flags.queue_wait_timeout_ms);
  const hope = Math.floor((timeout * places) / hold);
  if (!Number.isFinite(places) || pool.config.maxQueued <= hope) return [];
  return [
    finding("W01", {
      at: originPlace(pool, "maxQueued", context),
      pool: pool.name,
      found: `queue of ${pool.config.maxQueued}, timeout ${prettyMillis(timeout)}, ${places} at once for ${prettyMillis(hold)} each`,
      effect: `${hopefulPlaces(hope)}, and under lasting overload every loss is a late one.`,
      // With a queue of 0 every query is rejected (T-1).
      remedy: hope === 0 ? "A longer timeout, or more throughput." : `A queue of ${hope}, or more throughput.`,
    }),
  ];
}

function hopefulPlaces(hope: number): string {
  if (hope === 0) return "No place in it has hope: queries there can only time out";
  return hope === 1
    ? "Only the first place has hope; beyond it queries can only time out"
    : `Only the first ${hope} places have hope; beyond them queries can only time out`;
}

/** W02. */
function burstRejected(traffic: PoolTraffic, context: CheckContext): readonly Finding[] {
  const { pool, classes } = traffic;
  const burst = sum(classes.map((c) => c.largestBurst));
  const { places } = mixOf(traffic);
  const lost = burst - places - Math.max(0, pool.config.maxQueued);
  if (!(lost > 0)) return [];
  return [
    finding("W02", {
      at: originPlace(pool, "maxQueued", context),
      pool: pool.name,
      found: `a burst of ${burst}, ${places} at once and a queue of ${pool.config.maxQueued}`,
      effect: `${lost} are rejected at once.`,
      remedy: `A queue of at least ${burst - places}.`,
    }),
  ];
}

/** W03. */
function overload(traffic: PoolTraffic, context: CheckContext): readonly Finding[] {
  const { pool, classes } = traffic;
  const rate = sum(classes.map((c) => c.peakRate));
  const { places, hold } = mixOf(traffic);
  const load = (rate * hold) / 1000 / places;
  if (!(load >= 0.95)) return [];
  return [
    finding("W03", {
      at: originPlace(pool, "maxMemResources", context),
      pool: pool.name,
      found: `${rate.toFixed(2)} queries a second in the busiest hour, ${((places * 1000) / hold).toFixed(2)} can be served`,
      effect: `${(load * 100).toFixed(0)} % of what the pool can carry: waits grow until timeouts or rejections balance them.`,
      remedy: "More memory, better estimates, or other limits; `waterhole size` finds them.",
    }),
  ];
}

/** W04: small queries wait behind large ones that the pool cannot fit yet. */
function mixedSizes(traffic: PoolTraffic, context: CheckContext): readonly Finding[] {
  const { pool, hosts, classes } = traffic;
  const needs = classes.map((c) => ({ c, need: needOf(c, pool, hosts) })).toSorted((a, b) => a.need - b.need);
  const median = medianNeed(needs);
  const large = needs.filter(({ need }) => need >= 4 * median);
  const share = sum(large.map(({ c }) => memoryTime(c, traffic))) / sum(classes.map((c) => memoryTime(c, traffic)));
  if (!(share > 0.1)) return [];
  return [
    finding("W04", {
      at: queuePlace(pool, context),
      pool: pool.name,
      found: `${large.map(({ c, need }) => `${c.name} with ${prettyBytes(need)}`).join(", ")} beside a median of ${prettyBytes(median)}`,
      effect: `Queues are first come first served: small queries wait behind large ones, which hold ${(share * 100).toFixed(0)} % of memory and time.`,
      remedy: "Give the large ones a pool of their own.",
    }),
  ];
}

function medianNeed(ascending: readonly { readonly c: TrafficClass; readonly need: number }[]): number {
  const half = sum(ascending.map(({ c }) => c.count)) / 2;
  let seen = 0;
  for (const { c, need } of ascending) {
    seen += c.count;
    if (seen >= half) return need;
  }
  return ascending.at(-1)?.need ?? 0;
}

/** W05: the pool fills with memory that nobody uses. */
function inflated(traffic: PoolTraffic, context: CheckContext): readonly Finding[] {
  const { pool, hosts, classes } = traffic;
  const total = sum(classes.map((c) => memoryTime(c, traffic)));
  return classes.flatMap((c) => {
    const admitted = perHostOf(c, pool, hosts);
    if (c.peak === null || c.peak.mean <= 0 || memoryTime(c, traffic) < 0.05 * total) return [];
    const ratio = admitted / c.peak.mean;
    if (ratio < 4) return [];
    return [
      finding("W05", {
        at: queuePlace(pool, context),
        pool: pool.name,
        found: `${c.name}: ${prettyBytes(admitted)} admitted on each host, peak ${prettyBytes(c.peak.mean)}`,
        effect: `${ratio.toFixed(1)} times what it uses: the pool fills with unused memory.`,
        remedy: "Compute statistics for its tables, or set max-query-mem-limit.",
      }),
    ];
  });
}

/** W06, W07: what a class needs against what the pool lets it have. */
function limitsOfClasses(
  pool: CheckedPool,
  classes: readonly TrafficClass[],
  context: CheckContext,
): readonly Finding[] {
  const max = pool.config.maxQueryMemLimit;
  if (max <= 0) return [];
  const at = originPlace(pool, "maxQueryMemLimit", context);
  return classes.flatMap((c) => {
    const findings: Finding[] = [];
    if (c.peak !== null && max < c.peak.p95)
      findings.push(
        finding("W06", {
          at,
          pool: pool.name,
          found: `max-query-mem-limit ${prettyBytes(max)}, ${c.name} peaks at ${prettyBytes(c.peak.p95)} (95 %)`,
          effect: "Such queries spill, or fail where they cannot.",
          remedy: `Raise it to ${Math.ceil(c.peak.p95)} at least, or give them a pool of their own.`,
        }),
      );
    if (reservationAllowedBy(max) < c.minReservation)
      findings.push(
        finding("W07", {
          at,
          pool: pool.name,
          found: `max-query-mem-limit ${prettyBytes(max)}, ${c.name} reserves ${prettyBytes(c.minReservation)}`,
          effect: `Reservations may take ${prettyBytes(reservationAllowedBy(max))} of that limit: every such query is rejected.`,
          remedy: "Raise it until the reservation fits: a quarter more than it, and 32 MB at least.",
        }),
      );
    return findings;
  });
}

/** W08: limits that were meant for the traffic do not apply to it. */
function wrongPool(context: CheckContext): readonly Finding[] {
  const { allocation, directory, input } = context;
  if (allocation === null || directory === null) return [];
  const classes = input.traffic?.classes ?? [];
  const total = sum(classes.map((c) => c.count));
  const fallback = allocation.allocations.placement.rules.find((rule) => rule.name === "default")?.pool;
  const stray = new Map<string, number>();
  for (const c of classes) {
    const pool = landingOf(c, context);
    if (pool === null) continue;
    const asked = c.landedPool === null && (c.requestedPool === pool || `root.${c.requestedPool}` === pool);
    if (!directory.isDeclared(pool) || (pool === fallback && !asked)) stray.set(pool, (stray.get(pool) ?? 0) + c.count);
  }
  return [...stray]
    .filter(([, count]) => count > 0.05 * total)
    .map(([pool, count]) =>
      finding("W08", {
        at: { file: allocation.file, line: allocation.root.at.line, column: allocation.root.at.column },
        pool,
        found: `${((100 * count) / total).toFixed(1)} % of the traffic lands in ${pool}${directory.isDeclared(pool) ? " where placement puts queries that ask for no pool" : ", which is not declared"}`,
        effect: "Limits that were meant for these queries do not apply to them.",
        remedy: "Set REQUEST_POOL in the clients; see P01 and P05.",
      }),
    );
}
