/**
 * The numbers of a run as a plain record: what `--json` prints, thresholds are held against, and tables show.
 *
 * Waits are emulated milliseconds, memory is emulated bytes. `null` is "over nothing"; a quantile over all
 * submitted that lies among those who got no answer is Infinity.
 */
import type { PoolConfig } from "../core/pool-config.ts";
import type { NameKind } from "../core/run-observer.ts";
import type { Constraint, ConstraintShare } from "./binding.ts";
import type { Histogram } from "./histogram.ts";
import type { PoolFold, WaitShare } from "./pool-fold.ts";
import type { EarlyRefusal, EarlyRefusals, Refusal, Refusals } from "./refusals.ts";

export interface Quantiles {
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
  readonly max: number | null;
}

export interface PoolSummary {
  readonly pool: string;
  /** Attempts; `requests` are intentions, so attempts / requests is the amplification by retries. */
  readonly submitted: number;
  readonly requests: number;
  readonly admittedImmediately: number;
  readonly admittedTrivially: number;
  readonly admittedFromQueue: number;
  readonly rejected: number;
  readonly rejectedByRule: Readonly<Record<string, number>>;
  readonly timedOut: number;
  /** Before they were admitted. */
  readonly cancelled: number;
  /** Refused before admission although they have a pool: their coordinator was gone. */
  readonly unresolved: number;
  /**
   * With `admissiond` also queries of coordinators that died: they stand in its queue, and in the product's
   * `local-num-queued`, until they are refused at the head (T-59). Only what nothing could move any more is left here.
   */
  readonly stillWaiting: number;
  readonly finished: number;
  readonly failed: number;
  readonly cancelledRunning: number;
  readonly stillRunning: number;
  /** Rejected, timed out, cancelled, unresolved and failed, of all submitted. */
  readonly lossShare: number;
  /** From the intended arrival to the decision, of admitted queries. */
  readonly waitMs: Quantiles & { readonly mean: number | null };
  /** The same over all submitted: who got no answer has waited longer than anybody, Infinity. */
  readonly waitAllMs: Quantiles;
  /** From the first attempt's intention, of admitted queries. */
  readonly requestWaitMs: Quantiles;
  readonly peakRunning: number;
  readonly peakQueued: number;
  readonly peakMemoryBytes: number;
  readonly spilledBytes: number;
  /** Of the pool's memory and places over the span; null without a limit. */
  readonly utilisationShare: number | null;
  readonly placesUtilisationShare: number | null;
  readonly meanQueued: number;
  /** Time with a nonempty queue. */
  readonly queuedMs: number;
  /** Share of pool memory that was free while queries waited. */
  readonly idleWhileQueuedShare: number | null;
  /** Admissions a second while queries waited. */
  readonly admittedPerSecondUnderPressure: number | null;
  readonly overAdmission: OverAdmission;
  readonly binding: Binding | null;
  readonly fairness: {
    /** Jain's index of mean waits over coordinators: 1 is equal. */
    readonly coordinators: number | null;
    readonly meanWaitMsByUser: Readonly<Record<string, number>>;
  };
  readonly limits: PoolLimits | null;
  readonly refusals: readonly Refusal[];
  /** The admitted query that waited longest, empty when nobody was admitted. */
  readonly longestWaiter: string;
  readonly classes: readonly ClassSummary[];
}

export interface PoolLimits {
  readonly maxRequests: number;
  readonly maxQueued: number;
  readonly maxMemoryBytes: number;
  readonly queueTimeoutMs: number | null;
}

export interface OverAdmission {
  readonly running: ExcessSummary;
  readonly memoryBytes: ExcessSummary;
  readonly queued: ExcessSummary;
  /** Admissions that the exact state would have refused. */
  readonly staleAdmissions: number;
  /** Times at which a head waited on although the exact state would have let it in, and how long heads did. */
  readonly phantomWaits: number;
  readonly phantomMs: number;
  /** Of the views that admissions were decided on; null where one controller decides. */
  readonly viewAgeMs: { readonly p50: number | null; readonly p99: number | null } | null;
}

export interface ExcessSummary {
  readonly most: number;
  readonly timeMs: number;
  /** Most x time would be an upper bound of it. */
  readonly areaMs: number;
}

export interface Binding {
  /** The one with most query-milliseconds. */
  readonly constraint: Constraint;
  readonly share: number;
  readonly headMs: number;
  readonly shares: readonly ConstraintShare[];
  /** What strict order cost (insight 2.5): who could have gone and stood behind somebody who could not. */
  readonly headOfLine: {
    readonly waitedMs: number;
    /** Of all waiting. */
    readonly share: number;
    /** Longest that one query stood so behind one head. */
    readonly longestMs: number;
  };
  /** One for each sixtieth of the run, null where nothing waited. */
  readonly overTime: readonly (Constraint | null)[];
}

export interface ClassSummary {
  readonly queryClass: string;
  readonly admitted: number;
  /** What the pool is charged for one, -1 unknown. */
  readonly needBytes: number;
  /** Largest peak of one on one host, -1 unknown. */
  readonly peakBytes: number;
  readonly waitMs: Quantiles;
}

export interface RunSummary {
  /** First intended arrival to last event. */
  readonly fromMs: number;
  readonly untilMs: number;
  readonly submitted: number;
  readonly unresolved: number;
  readonly firstUnresolved: { readonly at: number; readonly query: string } | null;
  /** Why those were refused, by class; `unresolved` may count more where there are very many texts. */
  readonly earlyRefusals: readonly EarlyRefusal[];
  /** Mean time from the intended moment to the controller; live only above 0. */
  readonly submitLagMs: number;
  readonly pools: readonly PoolSummary[];
  /** Identities that do not hold: empty unless something is broken (insight 6.5). */
  readonly broken: readonly string[];
}

/** What a fold has gathered when the run is over; by pool number. */
export interface RunTotals {
  readonly names: Readonly<Record<NameKind, readonly string[]>>;
  readonly pools: readonly PoolFold[];
  readonly refusals: readonly Refusals[];
  readonly earlyRefusals: EarlyRefusals;
  readonly unresolvedCount: number;
  readonly firstUnresolved: RunSummary["firstUnresolved"];
  /** First intended arrival and last event. */
  readonly from: number;
  readonly until: number;
  readonly submitLagMs: number;
  readonly mayLeak: boolean;
}

const INTERVALS = 60;

export function summaryOf(fold: RunTotals): RunSummary {
  const from = Number.isFinite(fold.from) ? fold.from : 0;
  const span = fold.until - from;
  const indexed = fold.pools
    .map((pool, index) => ({ pool, index }))
    .filter(({ pool }) => pool !== undefined && pool.name !== "")
    .sort((a, b) => (a.pool.name < b.pool.name ? -1 : 1));
  const pools = indexed.map(({ pool, index }) =>
    poolSummary(pool, span, fold.until, fold.names, fold.refusals[index]?.list() ?? []),
  );
  const submitted = fold.pools.reduce((sum, pool) => sum + (pool?.submitted ?? 0), 0);
  return {
    fromMs: from,
    untilMs: fold.until,
    submitted,
    unresolved: fold.unresolvedCount,
    firstUnresolved: fold.firstUnresolved,
    earlyRefusals: fold.earlyRefusals.list(),
    submitLagMs: submitted === 0 ? 0 : fold.submitLagMs / submitted,
    pools,
    broken: [
      ...brokenTotals(pools, submitted, fold.unresolvedCount),
      ...indexed.flatMap(({ pool }) => brokenIdentities(pool, fold.mayLeak)),
    ],
  };
}

function poolSummary(
  p: PoolFold,
  span: number,
  until: number,
  names: RunTotals["names"],
  refusals: readonly Refusal[],
): PoolSummary {
  const admitted = p.immediately + p.trivially + p.fromQueue;
  const lost = p.rejected + p.timedOut + p.cancelled + p.unresolved;
  const { config } = p;
  return {
    pool: p.name,
    submitted: p.submitted,
    requests: p.requests,
    admittedImmediately: p.immediately,
    admittedTrivially: p.trivially,
    admittedFromQueue: p.fromQueue,
    rejected: p.rejected,
    rejectedByRule: Object.fromEntries([...p.rejectedByRule].sort(([a], [b]) => (a < b ? -1 : 1))),
    timedOut: p.timedOut,
    cancelled: p.cancelled,
    unresolved: p.unresolved,
    stillWaiting: p.queued,
    finished: p.finished,
    failed: p.failed,
    cancelledRunning: p.cancelledRunning,
    stillRunning: p.running,
    lossShare: p.submitted === 0 ? 0 : (lost + p.failed) / p.submitted,
    waitMs: { ...quantilesOf(p.waits, 0), mean: p.waits.mean },
    waitAllMs: quantilesOf(p.waits, p.submitted - admitted),
    requestWaitMs: quantilesOf(p.requestWaits, 0),
    peakRunning: p.peakRunning,
    peakQueued: p.peakQueued,
    peakMemoryBytes: p.peakMemory,
    spilledBytes: p.spilledBytes,
    utilisationShare: ofLimit(
      p.memoryMs,
      limitArea(p, (c) => c.maxMemResources, until - span, until),
    ),
    placesUtilisationShare: ofLimit(
      p.runningMs,
      limitArea(p, (c) => c.maxRequests, until - span, until),
    ),
    meanQueued: span > 0 ? p.queuedMs / span : 0,
    queuedMs: p.busyMs,
    idleWhileQueuedShare: idleShare(p),
    admittedPerSecondUnderPressure: p.busyMs > 0 ? (p.admittedUnderPressure / p.busyMs) * 1000 : null,
    overAdmission: {
      running: excess(p.overRunning),
      memoryBytes: excess(p.overMemory),
      queued: excess(p.overQueued),
      staleAdmissions: p.staleAdmissions,
      phantomWaits: p.ledger.phantomWaits,
      phantomMs: p.ledger.shares().find((s) => s.constraint === "staleView")?.headMs ?? 0,
      viewAgeMs: p.viewAges.count === 0 ? null : { p50: p.viewAges.quantile(0.5), p99: p.viewAges.quantile(0.99) },
    },
    binding: bindingOf(p, until),
    fairness: {
      coordinators: jain(p.byCoordinator),
      meanWaitMsByUser: meanWaits(p.byUser, names.user),
    },
    limits: config === null ? null : limitsOf(config),
    refusals,
    longestWaiter: p.longestWaiter,
    classes: classSummaries(p, names.class),
  };
}

/** In name order: numbers of classes differ from one teller to another. */
function classSummaries(p: PoolFold, names: readonly string[]): ClassSummary[] {
  const found: ClassSummary[] = [];
  p.byClass.forEach((waits, i) => {
    found.push({
      queryClass: names[i] ?? "",
      admitted: waits.count,
      needBytes: p.needOf(i),
      peakBytes: p.peakByClass[i] ?? -1,
      waitMs: quantilesOf(waits, 0),
    });
  });
  return found.sort((a, b) => (a.queryClass < b.queryClass ? -1 : 1));
}

const quantilesOf = (waits: Histogram, missing: number): Quantiles => ({
  p50: waits.quantile(0.5, missing),
  p90: waits.quantile(0.9, missing),
  p95: waits.quantile(0.95, missing),
  p99: waits.quantile(0.99, missing),
  max: waits.quantile(1, missing),
});

/** A limit times how long it was in force; null where for some time there was none. */
function limitArea(p: PoolFold, limitOf: (c: PoolConfig) => number, from: number, until: number): number | null {
  const lengths = p.eras.map((era, i) => (p.eras[i + 1]?.from ?? until) - (i === 0 ? from : era.from));
  return areaOver(p, limitOf, lengths);
}

function areaOver({ eras }: PoolFold, limitOf: (c: PoolConfig) => number, lengths: readonly number[]): number | null {
  let area = 0;
  for (const [i, { config }] of eras.entries()) {
    if (lengths[i]! <= 0) continue;
    const limit = config === null ? -1 : limitOf(config);
    if (limit <= 0) return null;
    area += limit * lengths[i]!;
  }
  return area;
}

const ofLimit = (area: number, limitArea: number | null): number | null =>
  limitArea === null || limitArea <= 0 ? null : area / limitArea;

function idleShare(p: PoolFold): number | null {
  const limits = areaOver(
    p,
    (c) => c.maxMemResources,
    p.eras.map((era) => era.busyMs),
  );
  const filled = ofLimit(p.busyMemoryMs, limits);
  return filled === null ? null : 1 - filled;
}

const excess = (meter: { most: number; timeMs: number; area: number }): ExcessSummary => ({
  most: meter.most,
  timeMs: meter.timeMs,
  areaMs: meter.area,
});

const limitsOf = (config: PoolConfig): PoolLimits => ({
  maxRequests: config.maxRequests,
  maxQueued: config.maxQueued,
  maxMemoryBytes: config.maxMemResources,
  queueTimeoutMs: config.queueTimeout,
});

function bindingOf(p: PoolFold, until: number): Binding | null {
  const shares = p.ledger.shares();
  const [first] = shares;
  if (first === undefined) return null;
  return {
    constraint: first.constraint,
    share: first.waitedMs / p.ledger.totalMs,
    headMs: first.headMs,
    shares,
    headOfLine: headOfLineOf(p, shares),
    overTime: p.ledger.overTime(until, INTERVALS),
  };
}

function headOfLineOf({ ledger }: PoolFold, shares: readonly ConstraintShare[]): Binding["headOfLine"] {
  const waitedMs = shares.find((s) => s.constraint === "queueOrder")?.waitedMs ?? 0;
  return { waitedMs, share: waitedMs / ledger.totalMs, longestMs: ledger.longestBehind };
}

function meanWaits(shares: readonly (WaitShare | undefined)[], names: readonly string[]): Record<string, number> {
  const means: (readonly [string, number])[] = [];
  shares.forEach((share, i) => {
    if (share !== undefined) means.push([names[i] ?? "", share.waitedMs / share.admitted]);
  });
  return Object.fromEntries(means.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** (sum x)^2 / (m sum x^2) of mean waits; 1 when nobody waited. */
function jain(shares: readonly (WaitShare | undefined)[]): number | null {
  const means = shares.filter((s) => s !== undefined).map((s) => s.waitedMs / s.admitted);
  if (means.length === 0) return null;
  const sum = means.reduce((a, b) => a + b, 0);
  const squares = means.reduce((a, b) => a + b * b, 0);
  return squares === 0 ? 1 : (sum * sum) / (means.length * squares);
}

// Identities (insight 2.1, 2.2, 2.3, 6.5)

const RELATIVE = 1e-9;

function brokenIdentities(p: PoolFold, mayLeak: boolean): string[] {
  const broken: string[] = [];
  const decided = p.immediately + p.trivially + p.fromQueue + p.rejected + p.timedOut + p.cancelled + p.unresolved;
  if (p.submitted !== decided + p.queued)
    broken.push(`${p.name}: ${p.submitted} submitted, but ${decided} decided and ${p.queued} waiting`);
  const admitted = p.immediately + p.trivially + p.fromQueue;
  const ended = p.finished + p.failed + p.cancelledRunning;
  if (admitted !== ended + p.running)
    broken.push(`${p.name}: ${admitted} admitted, but ${ended} ended and ${p.running} running`);
  if (p.queued < 0 || p.running < 0 || p.memory < 0) broken.push(`${p.name}: a count fell below 0`);
  if (!mayLeak && p.running === 0 && p.memory !== 0)
    broken.push(`${p.name}: ${p.memory} bytes admitted with nothing running`);
  if (p.queued === 0 && differs(p.queuedMs, p.queueWaitMs))
    broken.push(`${p.name}: queue length over time is ${p.queuedMs} ms, waits add up to ${p.queueWaitMs} ms`);
  if (differs(p.ledger.totalMs, p.queuedMs))
    broken.push(`${p.name}: causes add up to ${p.ledger.totalMs} ms, waits to ${p.queuedMs} ms`);
  return broken;
}

function brokenTotals(pools: readonly PoolSummary[], submitted: number, unresolved: number): string[] {
  const inPools = pools.reduce((sum, p) => sum + p.submitted, 0);
  const withoutPool = unresolved - pools.reduce((sum, p) => sum + p.unresolved, 0);
  return inPools + withoutPool === submitted
    ? []
    : [`${submitted} submitted, but ${inPools} in pools and ${withoutPool} without one`];
}

const differs = (a: number, b: number): boolean => Math.abs(a - b) > RELATIVE * Math.max(Math.abs(a), Math.abs(b), 1);
