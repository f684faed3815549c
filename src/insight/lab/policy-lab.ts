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
  /** Share of the pool's memory that was admitted, over the run. */
  readonly memoryUsed: number;
  /** Admissions that passed a head. */
  readonly overtakings: number;
}

export interface LabReport {
  readonly pool: string;
  readonly requests: number;
  /** Charged more than this is large; null: all are charged about the same, so there is nothing to split. */
  readonly threshold: number | null;
  readonly largeShare: number;
  readonly rows: readonly PolicyRow[];
  readonly sentences: readonly string[];
}

export function policyLab(p: LabProblem): LabReport {
  const setting = settingOf(p.configs[p.pool] ?? fail("the pool has a record"), p.flags.queue_wait_timeout_ms);
  const needs = new NeedBook(p.scenario, p.flags, p.requests).under(p.configs[p.pool]!);
  const { threshold, largeShare } = sizesOf(
    p,
    needs.map((n) => n.cluster),
  );
  const isLarge = (kind: number): boolean => threshold !== null && needs[kind]!.cluster > threshold;
  const run = (policy: string, what: string, how: { discipline?: QueueDiscipline; split?: Setting }): PolicyRow => {
    const figures = runPolicy(p, isLarge, setting, how);
    const { discipline } = how;
    const overtakings = discipline instanceof BackfillWithAging ? discipline.overtakings : 0;
    return { policy, what, ...figures, overtakings };
  };
  const seconds = Math.round(p.patience / 1000);
  const rows = [
    run("strict FIFO", "Impala's order: nobody passes the head", {}),
    run("backfill", `whoever fits may pass a head, until it has waited ${seconds} s`, {
      discipline: new BackfillWithAging(p.patience),
    }),
    run("backfill, no aging", "whoever fits may pass a head for ever", {
      discipline: new BackfillWithAging(Number.POSITIVE_INFINITY as Millis),
    }),
  ];
  const part = threshold === null || setting.maxMem <= 0 ? null : partFor(setting.maxMem, largeShare, needs, isLarge);
  if (threshold !== null && part !== null)
    rows.push(
      run("split by size", "large ones in a pool of their own, memory by load", {
        split: { ...setting, split: { above: threshold, share: part } },
      }),
    );
  const sentences = sentencesOf(rows);
  if (threshold !== null && setting.maxMem > 0 && part === null)
    sentences.push("It is not split: its memory is too little for the largest query of either part.");
  return { pool: p.pool, requests: p.requests.count, threshold, largeShare, rows, sentences };
}

/** The widest gap between sizes, and what share of memory-time lies above it. */
function sizesOf(p: LabProblem, needOfKind: readonly number[]): { threshold: number | null; largeShare: number } {
  const { requests } = p;
  const sizes: number[] = [];
  const holds: number[] = [];
  for (let i = 0; i < requests.count; i++) {
    if (requests.kinds[requests.kind[i]!]!.pool !== p.pool) continue;
    sizes.push(needOfKind[requests.kind[i]!]!);
    holds.push(requests.duration[i]!);
  }
  const threshold = splitPoints(sizes, holds, 1)[0] ?? null;
  if (threshold === null) return { threshold, largeShare: 0 };
  let all = 0;
  let large = 0;
  sizes.forEach((size, i) => {
    all += size * holds[i]!;
    if (size > threshold) large += size * holds[i]!;
  });
  return { threshold, largeShare: large / all };
}

/** By load, but never less than the largest query of a part needs; null: there is not enough for both. */
function partFor(
  maxMem: number,
  largeShare: number,
  needs: readonly { readonly cluster: number }[],
  isLarge: (kind: number) => boolean,
): number | null {
  const largest = (large: boolean): number =>
    Math.max(0, ...needs.map((n, kind) => (isLarge(kind) === large ? n.cluster : 0)));
  const least = largest(true) / maxMem;
  const most = 1 - largest(false) / maxMem;
  return least > most ? null : Math.min(most, Math.max(least, largeShare));
}

function runPolicy(
  p: LabProblem,
  isLarge: (kind: number) => boolean,
  setting: Setting,
  how: { readonly discipline?: QueueDiscipline; readonly split?: Setting },
): Pick<PolicyRow, "all" | "small" | "large" | "memoryUsed"> {
  const { requests, pool, configs } = p;
  const base = configs[pool]!;
  const largePool = largePoolOf(pool);
  const { split } = how;
  const own = split === undefined ? base : configUnder(base, split, "small");
  const large = split === undefined ? base : configUnder(base, split, "large");
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

function sentencesOf(rows: readonly PolicyRow[]): string[] {
  const [fifo, ...others] = rows;
  if (fifo === undefined) return [];
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`;
  const best = others.reduce<PolicyRow | null>((a, b) => (a === null || b.all.meanWait < a.all.meanWait ? b : a), null);
  if (best === null || best.all.meanWait >= fifo.all.meanWait * 0.99)
    return ["No other order makes this traffic wait noticeably less: the head is seldom in the way."];
  return [
    `Under ${best.policy} the mean wait of all is ${seconds(best.all.meanWait)} instead of ${seconds(fifo.all.meanWait)}: that is what the strict order costs here.`,
    `Small ones wait ${seconds(best.small.meanWait)} instead of ${seconds(fifo.small.meanWait)}; ${largeSide(fifo, best)}.`,
  ];
}

/** Waits of the admitted look better the more are lost: so losses are told first. */
function largeSide(fifo: PolicyRow, best: PolicyRow): string {
  const lost = (row: PolicyRow): number => (row.large.submitted === 0 ? 0 : row.large.lost / row.large.submitted);
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  const [now, before] = [best, fifo].map((row) => `${(row.large.meanWait / 1000).toFixed(2)} s`);
  const waits = `they wait ${now} instead of ${before}`;
  if (best.large.submitted === 0) return "there are no large ones";
  if (lost(best) > lost(fifo) + 0.005)
    return `large ones pay for it: ${percent(lost(best))} of them are lost instead of ${percent(lost(fifo))}`;
  if (now === before) return `large ones wait as long as before, ${now}`;
  return best.large.meanWait > fifo.large.meanWait
    ? `large ones pay for it: ${waits}`
    : `large ones gain too: ${waits}`;
}
