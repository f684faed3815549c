/**
 * Where candidates come from: the values at which behaviour changes (insight 3.2).
 *
 * A grid of round numbers would miss the places between them and waste runs on values that differ in nothing.
 * So one run without any limit tells how much memory and how many places the traffic wants for what share of
 * the time, and those are tried.
 */
import { limitNeededFor } from "../../core/admission/reservation-math.ts";
import { MiB } from "../../core/units.ts";
import type { RecordedRequests } from "../../workload/recorded-requests.ts";
import { quantileOfSorted, sortedCopy } from "../quantile.ts";
import { CompletionHeap } from "./completion-heap.ts";
import type { KindNeed } from "./needs.ts";
import { hopefulQueue } from "./places.ts";
import { fifoLoss, splitPoints } from "./saturation.ts";
import { keyOf, type Setting, type Split } from "./setting.ts";

export interface GridInput {
  readonly requests: RecordedRequests;
  /** By kind under today's setting, null: another pool's. */
  readonly needs: readonly (KindNeed | null)[];
  readonly needsUnder: (s: Setting) => readonly (KindNeed | null)[];
  /** Of each request, on the host where it is largest. */
  readonly peaks: Float64Array;
  readonly now: Setting;
  readonly smallestHost: number;
  /** What a candidate may give the pool (`pool-room.ts`). */
  readonly mostMemory: number;
  /** What the user wants tried instead of the values found. */
  readonly asked: AskedValues;
  readonly most: number;
}

export interface AskedValues {
  readonly memory?: readonly number[];
  readonly running?: readonly number[];
  readonly queued?: readonly number[];
  readonly timeout?: readonly number[];
  readonly maxQueryMem?: readonly number[];
  readonly minQueryMem?: readonly number[];
}

const SHARES = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1];

/** How long so much memory was in use, how long so many ran: one run without limits. */
export interface Demand {
  /** By share of time, as `SHARES`. */
  readonly memory: readonly number[];
  readonly running: readonly number[];
  /** Mean hold in ms, largest burst (arrivals within a second). */
  readonly meanHold: number;
  readonly largestBurst: number;
  /** The class of need with most memory-time, and its share of all. */
  readonly principalNeed: number;
  readonly principalShare: number;
}

export function demandOfTraffic(r: RecordedRequests, needs: readonly (KindNeed | null)[]): Demand {
  const running = new CompletionHeap();
  const memoryAt: number[] = [];
  const runningAt: number[] = [];
  const length: number[] = [];
  const byNeed = new Map<number, number>();
  let used = 0;
  let last = 0;
  let holds = 0;
  let n = 0;
  let largestBurst = 0;
  let burstFrom = 0;
  const note = (now: number): void => {
    if (now > last && n > 0) {
      memoryAt.push(used);
      runningAt.push(running.size);
      length.push(now - last);
    }
    last = now;
  };
  const burst: number[] = [];
  for (let i = 0; i < r.count; i++) {
    const need = needs[r.kind[i]!];
    if (need === null || need === undefined) continue;
    while (running.size > 0 && running.firstTime <= r.at[i]!) {
      note(running.firstTime);
      used -= needs[r.kind[running.take()]!]!.cluster;
    }
    note(r.at[i]!);
    used += need.cluster;
    running.add(r.at[i]! + r.duration[i]!, i);
    n++;
    holds += r.duration[i]!;
    byNeed.set(need.cluster, (byNeed.get(need.cluster) ?? 0) + need.cluster * r.duration[i]!);
    burst.push(r.at[i]!);
    while (burst[burstFrom]! < r.at[i]! - 1000) burstFrom++;
    largestBurst = Math.max(largestBurst, burst.length - burstFrom);
  }
  const all = [...byNeed.values()].reduce((a, b) => a + b, 0);
  const [principalNeed, principalTime] = [...byNeed].reduce((a, b) => (b[1] > a[1] ? b : a), [0, 0]);
  return {
    memory: timeQuantiles(memoryAt, length),
    running: timeQuantiles(runningAt, length),
    meanHold: n === 0 ? 0 : holds / n,
    largestBurst,
    principalNeed,
    principalShare: all === 0 ? 0 : principalTime / all,
  };
}

function timeQuantiles(values: readonly number[], lengths: readonly number[]): number[] {
  const order = Array.from(values, (_, i) => i).sort((a, b) => values[a]! - values[b]!);
  const all = lengths.reduce((a, b) => a + b, 0);
  const quantiles: number[] = [];
  let seen = 0;
  for (const i of order) {
    seen += lengths[i]!;
    while (quantiles.length < SHARES.length && seen >= SHARES[quantiles.length]! * all * (1 - 1e-12))
      quantiles.push(values[i]!);
  }
  while (quantiles.length < SHARES.length) quantiles.push(values[order.at(-1) ?? 0] ?? 0);
  return quantiles;
}

/** Candidates, today's setting not among them, in the order in which a cut to `most` keeps the likeliest. */
export function candidatesOf(input: GridInput): Setting[] {
  const { now, needs, requests, asked } = input;
  const demand = demandOfTraffic(requests, needs);
  const memory = asked.memory ?? memoryLevels(input, demand);
  const places = (maxMem: number): number =>
    maxMem < 0 || demand.principalNeed === 0
      ? (demand.running.at(-1) ?? 1)
      : Math.max(1, Math.floor(maxMem / demand.principalNeed));
  const running = asked.running ?? unique([now.maxRunning, ...demand.running.slice(2), -1].filter((r) => r !== 0));
  const found: Setting[] = [];
  const add = (s: Setting): void => {
    if (isAllowed(s, input) && keyOf(s) !== keyOf(now)) found.push(s);
  };
  for (const maxMem of memory) {
    const c = Math.min(places(maxMem), now.maxRunning < 0 ? Number.POSITIVE_INFINITY : now.maxRunning);
    const timeouts = asked.timeout ?? timeoutsOf(now, c, demand);
    for (const timeout of timeouts) {
      const queues = asked.queued ?? queuesOf(now, c, timeout, demand);
      for (const maxRunning of running)
        for (const maxQueued of queues) add({ ...now, maxMem, maxRunning, maxQueued, timeout, split: null });
    }
  }
  for (const maxQueryMem of asked.maxQueryMem ?? queryLimits(input))
    for (const maxMem of memory)
      add({ ...now, maxMem, maxQueryMem, minQueryMem: Math.min(now.minQueryMem, maxQueryMem) });
  for (const minQueryMem of asked.minQueryMem ?? leastLimits(input)) {
    const floored = { ...now, minQueryMem };
    const levels = asked.memory ?? memoryLevels(input, demandOfTraffic(requests, input.needsUnder(floored)));
    // Of smaller queries more fit, and a limit of running that was no obstacle becomes one.
    const limits = asked.running ?? unique([now.maxRunning, demand.running.at(-1) ?? -1, -1].filter((r) => r !== 0));
    for (const maxMem of levels) for (const maxRunning of limits) add({ ...floored, maxMem, maxRunning });
  }
  for (const split of splitsOf(input)) for (const maxMem of memory) add({ ...now, maxMem, split });
  return found.length <= input.most ? found : thinned(found, now, input.most);
}

/**
 * A cut must not take away whole levels of memory, nor all other limits of running: half of it and more is for these
 * two, the rest for query limits and splits, evenly from the first to the last.
 */
function thinned(found: readonly Setting[], now: Setting, most: number): Setting[] {
  const isPlain = (s: Setting): boolean =>
    s.split === null && s.minQueryMem === now.minQueryMem && s.maxQueryMem === now.maxQueryMem;
  const plain = found.filter(isPlain);
  const others = found.filter((s) => !isPlain(s));
  const share = Math.min(plain.length, Math.max(Math.ceil(most / 2), most - others.length));
  return [...thinnedPlain(plain, share), ...evenly(others, most - share)];
}

/**
 * Where there are more levels than fit, some from the first to the last, each with another limit of running than the
 * one before; else the first of each level, then one of each with another limit of running, and so on.
 */
function thinnedPlain(found: readonly Setting[], most: number): Setting[] {
  const levels = new Map<number, Setting[]>();
  for (const s of found) {
    const level = levels.get(s.maxMem);
    if (level === undefined) levels.set(s.maxMem, [s]);
    else level.push(s);
  }
  if (most < levels.size)
    return evenly([...levels.values()], most).map((level, k) => {
      const running = byRunning(level);
      return running[k % running.length]!;
    });
  const rows = [...levels.values()].map(runningFirst);
  const kept: Setting[] = [];
  for (let i = 0; kept.length < most; i++) {
    const round = rows.flatMap((row) => row.slice(i, i + 1));
    kept.push(...evenly(round, most - kept.length));
  }
  return kept;
}

/** The first with each limit of running. */
const byRunning = (level: readonly Setting[]): Setting[] =>
  level.filter((s, i) => level.findIndex((other) => other.maxRunning === s.maxRunning) === i);

/** Other limits of running before other queues and timeouts, each level beginning with another one. */
function runningFirst(level: readonly Setting[], index: number): Setting[] {
  const [first, ...others] = byRunning(level);
  const from = others.length === 0 ? 0 : index % others.length;
  const seen = new Set([first!, ...others]);
  return [first!, ...others.slice(from), ...others.slice(0, from), ...level.filter((s) => !seen.has(s))];
}

/** At most so many of them, the first and the last among them. */
function evenly<T>(items: readonly T[], most: number): T[] {
  if (items.length <= most) return [...items];
  if (most === 1) return items.slice(0, 1);
  return Array.from({ length: most }, (_, k) => items[Math.round((k * (items.length - 1)) / (most - 1))]!);
}

/** The file knows whole MiB only. */
const wholeMiB = (bytes: number): number => Math.ceil(bytes / MiB) * MiB;

/** Steps of the principal need where one need rules, else what the traffic wants for shares of the time. */
function memoryLevels({ now, mostMemory }: GridInput, demand: Demand): number[] {
  const wanted =
    demand.principalShare >= 0.9
      ? [...demand.running.flatMap((k) => [k, k + 1, k + 2]), ...wavesOf(now, demand)].map(
          (k) => Math.max(1, k) * demand.principalNeed,
        )
      : demand.memory.flatMap((m) => [m, m * 1.1]);
  const levels = wanted.filter((m) => m > 0).map(wholeMiB);
  const capped = levels.map((m) => Math.min(m, Math.floor(mostMemory / MiB) * MiB));
  return unique([...(now.maxMem > 0 ? [now.maxMem] : []), ...capped.filter((m) => m > 0)]);
}

/** A burst that does not fit comes in waves; fewer waves begin where it fits in one, in two, ... at once. */
const MOST_WAVES = 6;

function wavesOf(now: Setting, { principalNeed, largestBurst }: Demand): number[] {
  if (now.maxMem < 0 || largestBurst * principalNeed <= now.maxMem) return [];
  return Array.from({ length: MOST_WAVES }, (_, i) => Math.ceil(largestBurst / (i + 1)));
}

/** What they are willing to wait, and how long the present queue takes to drain. */
function timeoutsOf(now: Setting, c: number, demand: Demand): number[] {
  const drain = Math.ceil((now.maxQueued * demand.meanHold) / Math.max(1, c) / 1000) * 1000;
  return unique([now.timeout, Math.max(1000, drain)]);
}

function queuesOf(now: Setting, c: number, timeout: number, demand: Demand): number[] {
  const throughput = demand.meanHold === 0 ? 0 : c / demand.meanHold;
  return unique([now.maxQueued, Math.max(1, hopefulQueue(timeout, throughput)), Math.max(1, demand.largestBurst - c)]);
}

/** Quantiles of per-host peaks as limits under which such a reservation fits. */
function queryLimits({ requests, needs, peaks, now, smallestHost }: GridInput): number[] {
  const own: number[] = [];
  for (let i = 0; i < requests.count; i++) if (needs[requests.kind[i]!] !== null) own.push(peaks[i]!);
  const sorted = sortedCopy(own);
  const limits = [0.5, 0.9, 0.95, 0.99, 1].map((p) => wholeMiB(limitNeededFor(quantileOfSorted(sorted, p))));
  return unique(limits.map((m) => Math.min(m, smallestHost))).filter((m) => m > 0 && m !== now.maxQueryMem);
}

/** None, and what the median of the small queries needs; only where that changes what some query gets. */
function leastLimits(input: GridInput): number[] {
  const { now, needs } = input;
  const small = smallPeaks(input);
  const median = small.length === 0 ? 0 : wholeMiB(limitNeededFor(quantileOfSorted(small, 0.5)));
  return unique([0, median]).filter((minQueryMem) => {
    if (minQueryMem === now.minQueryMem) return false;
    const others = input.needsUnder({ ...now, minQueryMem });
    return needs.some((need, kind) => need !== null && !isSameNeed(need, others[kind]!));
  });
}

const isSameNeed = (a: KindNeed, b: KindNeed): boolean =>
  a.cluster === b.cluster && a.perHost === b.perHost && a.room === b.room && a.isRejected === b.isRejected;

/** A class that comes seldom is not what a floor for all is set by. */
const LEAST_OF_REQUESTS = 0.05;

/** Peaks of the class whose median is the smallest, sorted; of all where there are only seldom ones. */
function smallPeaks({ requests, needs, peaks }: GridInput): Float64Array {
  const all: number[] = [];
  const byClass = new Map<number, number[]>();
  for (let i = 0; i < requests.count; i++) {
    const kind = requests.kind[i]!;
    if (needs[kind] === null) continue;
    const { queryClass } = requests.kinds[kind]!;
    const own = byClass.get(queryClass);
    if (own === undefined) byClass.set(queryClass, [peaks[i]!]);
    else own.push(peaks[i]!);
    all.push(peaks[i]!);
  }
  const often = [...byClass.values()].filter((p) => p.length >= LEAST_OF_REQUESTS * all.length).map(sortedCopy);
  return often.length === 0
    ? sortedCopy(all)
    : often.reduce((a, b) => (quantileOfSorted(b, 0.5) < quantileOfSorted(a, 0.5) ? b : a));
}

const FIFO_LOSS_WORTH_A_SPLIT = 0.1;
const SPLIT_SAMPLE = 20_000;

/** Only where first come, first served costs this mix a tenth of its capacity (W04). */
function splitsOf({ requests, needs, now }: GridInput): Split[] {
  const sizes: number[] = [];
  const holds: number[] = [];
  for (let i = 0; i < requests.count && sizes.length < SPLIT_SAMPLE; i++) {
    const need = needs[requests.kind[i]!];
    if (need === null || need === undefined) continue;
    sizes.push(need.cluster);
    holds.push(requests.duration[i]!);
  }
  if (sizes.length === 0 || now.maxMem < 0) return [];
  const pool = { maxMem: now.maxMem, maxRunning: now.maxRunning };
  if (fifoLoss(sizes, holds, pool) <= FIFO_LOSS_WORTH_A_SPLIT) return [];
  return splitPoints(sizes, holds).flatMap((above) => {
    const time = (large: boolean): number =>
      sizes.reduce((sum, size, i) => (size > above === large ? sum + size * holds[i]! : sum), 0);
    const share = time(true) / (time(true) + time(false));
    return [0, -0.2, -0.1, 0.1, 0.2].map((by) => ({ above, share: Math.min(0.95, Math.max(0.05, share * (1 + by))) }));
  });
}

const isAllowed = (s: Setting, { now, mostMemory }: GridInput): boolean =>
  (s.maxQueryMem <= 0 || s.minQueryMem <= s.maxQueryMem) &&
  (s.maxMem < 0 || s.minQueryMem <= s.maxMem) &&
  (s.maxMem < 0 ? now.maxMem < 0 : s.maxMem <= mostMemory) &&
  s.maxQueued >= 1 &&
  s.timeout >= 1;

const unique = (values: readonly number[]): number[] => [...new Set(values)];
