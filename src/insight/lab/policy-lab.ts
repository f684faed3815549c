/**
 * What first come, first served costs: the same requests under other orders (issue 5 item 6, insight 2.5).
 *
 * Three ways to serve one pool: Impala's, backfill with aging, and the pool split by size. The requests, their
 * holds and their needs are the same to the bit, so every difference is the policy's. A split moves waiting
 * more than it removes it, and backfill can make the large ones wait for ever: so small and large are always
 * shown apart.
 */
import type { ImpalaFlags } from "../../config/impala-flags.ts";
import type { Scenario } from "../../config/scenario.ts";
import { fail } from "../../core/assert.ts";
import type { PoolConfig } from "../../core/pool-config.ts";
import type { Millis } from "../../core/units.ts";
import { BackfillWithAging, type QueueDiscipline } from "../../sim/queue-discipline.ts";
import { simulate } from "../../sim/simulate.ts";
import { type RecordedRequests, RecordedWorkload } from "../../workload/recorded-requests.ts";
import { NeedBook } from "../size/needs.ts";
import { largePoolOf } from "../size/rules-run.ts";
import { splitPoints } from "../size/saturation.ts";
import { configUnder, type Setting, settingOf } from "../size/setting.ts";
import { type GroupFigures, GroupObserver } from "./group-observer.ts";

export interface LabProblem {
  readonly scenario: Scenario;
  readonly flags: ImpalaFlags;
  readonly requests: RecordedRequests;
  readonly configs: Readonly<Record<string, PoolConfig>>;
  readonly pool: string;
  /** A head that has waited so long is not passed any more. */
  readonly patience: Millis;
}

export interface PolicyRow {
  readonly policy: string;
  readonly what: string;
  readonly all: GroupFigures;
  readonly small: GroupFigures;
  readonly large: GroupFigures;
  /** Share of the pool's memory that was admitted, over the run; null: it has no limit. */
  readonly memoryUsed: number | null;
  /** Admissions that passed a head. */
  readonly overtakings: number;
}

export interface LabReport {
  readonly pool: string;
  /** Of the pool. */
  readonly requests: number;
  /** Charged more than this is large; null: all are charged about the same, so there is nothing to split. */
  readonly threshold: number | null;
  readonly largeShare: number;
  readonly rows: readonly PolicyRow[];
  readonly sentences: readonly string[];
}

interface Policy {
  readonly discipline?: QueueDiscipline;
  readonly split?: { readonly small: Setting; readonly large: Setting };
}

export function policyLab(p: LabProblem): LabReport {
  const setting = settingOf(p.configs[p.pool] ?? fail("the pool has a record"), p.flags.queue_wait_timeout_ms);
  const needs = needsOf(p);
  const { threshold, largeShare, largeHolds } = sizesOf(p, needs);
  const isLarge = (kind: number): boolean => threshold !== null && needs[kind]! > threshold;
  const run = (policy: string, what: string, how: Policy): PolicyRow => {
    const figures = runPolicy(p, isLarge, setting, how);
    const { discipline } = how;
    const overtakings = discipline instanceof BackfillWithAging ? discipline.overtakings : 0;
    return { policy, what, ...figures, overtakings };
  };
  const seconds = Math.round(p.patience / 1000);
  const rows = [
    run("strict FIFO", "Impala's order: nobody passes the head", {}),
    run("backfill", `whoever fits may pass a head, until it has waited ${seconds} s`, {
      discipline: new BackfillWithAging(p.pool, p.patience),
    }),
    run("backfill, no aging", "whoever fits may pass a head for ever", {
      discipline: new BackfillWithAging(p.pool, Number.POSITIVE_INFINITY as Millis),
    }),
  ];
  const part = threshold === null || setting.maxMem <= 0 ? null : partFor(setting.maxMem, largeShare, threshold, needs);
  const places = placesFor(setting.maxRunning, largeHolds);
  if (threshold !== null && part !== null && places !== null) {
    const split = { ...setting, split: { above: threshold, share: part } };
    rows.push(
      run("split by size", "large ones in a pool of their own, memory and places by load", {
        split: { small: { ...split, maxRunning: places.small }, large: { ...split, maxRunning: places.large } },
      }),
    );
  }
  const sentences = sentencesOf(rows);
  if (threshold !== null && setting.maxMem > 0 && part === null)
    sentences.push("It is not split: its memory is too little for the largest query of either part.");
  if (threshold !== null && part !== null && places === null) sentences.push("It is not split: it has one place only.");
  return { pool: p.pool, requests: rows[0]!.all.submitted, threshold, largeShare, rows, sentences };
}

/** What the pool is charged for each kind of its requests; 0 for those of other pools and those that it never lets run. */
function needsOf({ scenario, flags, requests, configs, pool }: LabProblem): Float64Array {
  const needs = new NeedBook(scenario, flags, requests).under(configs[pool]!);
  return Float64Array.from(needs, (need, kind) =>
    requests.kinds[kind]!.pool === pool && !need.isRejected ? need.cluster : 0,
  );
}

interface Sizes {
  /** The widest gap between sizes; null: there is none. */
  readonly threshold: number | null;
  /** What lies above it of the memory-time, and of the time in which places are held. */
  readonly largeShare: number;
  readonly largeHolds: number;
}

function sizesOf({ requests }: LabProblem, needs: Float64Array): Sizes {
  const sizes: number[] = [];
  const holds: number[] = [];
  for (let i = 0; i < requests.count; i++) {
    const size = needs[requests.kind[i]!]!;
    if (size === 0) continue;
    sizes.push(size);
    holds.push(requests.duration[i]!);
  }
  const threshold = splitPoints(sizes, holds, 1)[0] ?? null;
  if (threshold === null) return { threshold, largeShare: 0, largeHolds: 0 };
  const shareOf = (weight: (i: number) => number): number => {
    let all = 0;
    let large = 0;
    sizes.forEach((size, i) => {
      all += weight(i);
      if (size > threshold) large += weight(i);
    });
    return all === 0 ? 0 : large / all;
  };
  return { threshold, largeShare: shareOf((i) => sizes[i]! * holds[i]!), largeHolds: shareOf((i) => holds[i]!) };
}

/**
 * Together as many as the whole had: with all of them in each part, more would run, and that would be called the gain
 * of another order. Null: one place cannot be shared.
 */
function placesFor(most: number, largeHolds: number): { readonly small: number; readonly large: number } | null {
  if (most <= 0) return { small: most, large: most };
  if (most === 1) return null;
  const large = Math.min(most - 1, Math.max(1, Math.round(most * largeHolds)));
  return { small: most - large, large };
}

/** By load, but never less than the largest query of a part needs; null: there is not enough for both. */
function partFor(maxMem: number, largeShare: number, threshold: number, needs: Float64Array): number | null {
  let largest = 0;
  let largestSmall = 0;
  for (const need of needs)
    if (need > threshold) largest = Math.max(largest, need);
    else largestSmall = Math.max(largestSmall, need);
  const least = largest / maxMem;
  const most = 1 - largestSmall / maxMem;
  return least > most ? null : Math.min(most, Math.max(least, largeShare));
}

function runPolicy(
  p: LabProblem,
  isLarge: (kind: number) => boolean,
  setting: Setting,
  how: Policy,
): Pick<PolicyRow, "all" | "small" | "large" | "memoryUsed"> {
  const { requests, pool, configs } = p;
  const base = configs[pool]!;
  const largePool = largePoolOf(pool);
  const { split } = how;
  const own = split === undefined ? base : configUnder(base, split.small, "small");
  const large = split === undefined ? base : configUnder(base, split.large, "large");
  const workload = new RecordedWorkload(requests, 0, requests.count, {
    poolOf: (kind) => {
      const name = requests.kinds[kind]!.pool;
      return split !== undefined && name === pool && isLarge(kind) ? largePool : name;
    },
  });
  const observer = new GroupObserver([pool, largePool], (queryId) => isLarge(requests.kind[Number(queryId)]!));
  simulate({
    scenario: p.scenario,
    workload,
    flags: p.flags,
    pools: { configOf: (name) => (name === pool ? own : name === largePool ? large : (configs[name] ?? base)) },
    observer,
    ...(how.discipline === undefined ? {} : { discipline: how.discipline }),
  });
  return observer.finish(setting.maxMem);
}

const lostShare = ({ lost, submitted }: GroupFigures): number => (submitted === 0 ? 0 : lost / submitted);

/** A policy that loses more is no answer: who is lost waits no longer. */
const MORE_LOST = 0.005;

export function sentencesOf(rows: readonly PolicyRow[]): string[] {
  const [fifo, ...others] = rows;
  if (fifo === undefined) return [];
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`;
  const best = others
    .filter((row) => lostShare(row.all) <= lostShare(fifo.all) + MORE_LOST)
    .reduce<PolicyRow | null>((a, b) => (a === null || b.all.meanWait < a.all.meanWait ? b : a), null);
  if (best === null || best.all.meanWait >= fifo.all.meanWait * 0.99)
    return ["No other order makes this traffic wait noticeably less: the head is seldom in the way."];
  return [
    `Under ${best.policy} the mean wait of all is ${seconds(best.all.meanWait)} instead of ${seconds(fifo.all.meanWait)}: that is what the strict order costs here.`,
    `Small ones wait ${seconds(best.small.meanWait)} instead of ${seconds(fifo.small.meanWait)}; ${largeSide(fifo, best)}.`,
  ];
}

/** Waits of the admitted look better the more are lost: so losses are told first. */
function largeSide(fifo: PolicyRow, best: PolicyRow): string {
  const lost = (row: PolicyRow): number => lostShare(row.large);
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  const [now, before] = [best, fifo].map((row) => `${(row.large.meanWait / 1000).toFixed(2)} s`);
  const waits = `they wait ${now} instead of ${before}`;
  if (best.large.submitted === 0) return "there are no large ones";
  if (lost(best) > lost(fifo) + MORE_LOST)
    return `large ones pay for it: ${percent(lost(best))} of them are lost instead of ${percent(lost(fifo))}`;
  if (now === before) return `large ones wait as long as before, ${now}`;
  return best.large.meanWait > fifo.large.meanWait
    ? `large ones pay for it: ${waits}`
    : `large ones gain too: ${waits}`;
}
