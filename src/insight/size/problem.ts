/**
 * Everything that evaluating a setting needs, as plain data over shared memory, and the evaluating itself.
 *
 * A job is one setting on one stretch of one day by one of the two engines; its outcome depends on nothing
 * else. So it does not matter which thread or which machine runs it, and outcomes can be kept by key.
 */
import type { ImpalaFlags } from "../../config/impala-flags.ts";
import type { Scenario } from "../../config/scenario.ts";
import { fail } from "../../core/assert.ts";
import type { PoolConfig } from "../../core/pool-config.ts";
import type { RecordedRequests } from "../../workload/recorded-requests.ts";
import { SummaryFold } from "../summary-fold.ts";
import { NeedBook } from "./needs.ts";
import type { Outcome } from "./outcome.ts";
import { runPoolModel } from "./pool-model.ts";
import { runByRules } from "./rules-run.ts";
import { configUnder, keyOf, memoryOfPart, type Setting } from "./setting.ts";

export interface SizeProblem {
  readonly scenario: Scenario;
  readonly flags: ImpalaFlags;
  readonly pool: string;
  /** Pool name -> record as the files have it, for every pool that they declare or that occurs. */
  readonly configs: Readonly<Record<string, PoolConfig>>;
  /** One replication each. */
  readonly days: readonly RecordedRequests[];
  readonly sigma: number;
  /** For the pool model: from a release until its memory counts as free. */
  readonly memoryLag: number;
  /** Recorded traffic: most queries of the pool that ever ran at once; null: drawn traffic. */
  readonly observedConcurrency: number | null;
  /** What was done to the traffic so that settings can be compared on it, in words. */
  readonly remarks: readonly string[];
}

export type Engine = "model" | "rules";

export interface Job {
  readonly engine: Engine;
  readonly day: number;
  /** Indexes of the day's requests. */
  readonly from: number;
  readonly to: number;
  readonly setting: Setting;
  /** One more slot on every host, or one more executor: what would it help (insight 2.3). */
  readonly ease?: "slots" | "executors";
  /** Say also what the waiting was due to; only by the rules. */
  readonly binding?: true;
  /** Another price of spilling than the problem's: what rests on it is shown for its half and its double. */
  readonly sigma?: number;
}

export const jobKey = (j: Job): string =>
  `${j.engine} ${j.day} ${j.from}-${j.to} ${j.ease ?? "-"} ${j.binding ? "b" : "-"} ${j.sigma ?? "-"} ${keyOf(j.setting)}`;

/** Somebody who runs jobs: this thread, a pool of them, or a file of outcomes of other machines. */
export type Evaluate = (jobs: readonly Job[]) => Promise<readonly Outcome[]>;

/** Runs jobs in this thread. */
export class Evaluator {
  readonly problem: SizeProblem;
  private readonly needBooks = new Map<number, NeedBook>();

  constructor(problem: SizeProblem) {
    this.problem = problem;
  }

  run(job: Job): Outcome {
    return job.engine === "rules" ? this.byRules(job) : this.byModel(job);
  }

  needs(day: number): NeedBook {
    let book = this.needBooks.get(day);
    if (book === undefined) {
      book = new NeedBook(this.problem.scenario, this.problem.flags, this.problem.days[day]!);
      this.needBooks.set(day, book);
    }
    return book;
  }

  configOf(pool: string): PoolConfig {
    return this.problem.configs[pool] ?? fail("a pool without a record");
  }

  private byRules(job: Job): Outcome {
    const { flags, pool, days } = this.problem;
    const sigma = job.sigma ?? this.problem.sigma;
    const needs = this.needs(job.day);
    const scenario = easedScenario(this.problem.scenario, job.ease, needs.groupOf(pool, this.configOf(pool)));
    const problem = {
      scenario,
      flags,
      pool,
      sigma,
      requests: days[job.day]!,
      needs,
      configOf: (name: string) => this.configOf(name),
    };
    if (job.binding === undefined) return runByRules(problem, job.setting, job.from, job.to);
    const config = configUnder(this.configOf(pool), job.setting);
    const fold = new SummaryFold({
      configOf: (name) => (name === pool ? config : (this.problem.configs[name] ?? null)),
      admission: scenario.cluster.admission,
    });
    const outcome = runByRules(problem, job.setting, job.from, job.to, fold);
    const found = fold.finish().pools.find((p) => p.pool === pool)?.binding;
    const all = found?.shares.reduce((sum, s) => sum + s.waitedMs, 0) ?? 0;
    return {
      ...outcome,
      binding: (found?.shares ?? []).map((s) => ({ constraint: s.constraint, share: s.waitedMs / all })),
    };
  }

  /** A split pool is two models that know nothing of each other. */
  private byModel(job: Job): Outcome {
    const { setting } = job;
    if (setting.split === null) return this.modelOfPart(job, "whole");
    return added(this.modelOfPart(job, "small"), this.modelOfPart(job, "large"));
  }

  private modelOfPart(job: Job, part: "whole" | "small" | "large"): Outcome {
    const { pool, days, sigma, memoryLag } = this.problem;
    const { setting } = job;
    const requests = days[job.day]!;
    const book = this.needs(job.day);
    const all = book.under(configUnder(this.configOf(pool), setting));
    const above = setting.split?.above ?? Number.POSITIVE_INFINITY;
    const needs = all.map((need, kind) => {
      if (requests.kinds[kind]!.pool !== pool) return null;
      return part === "whole" || need.cluster > above === (part === "large") ? need : null;
    });
    return runPoolModel(
      { requests, from: job.from, to: job.to, needs, peaks: book.peaksUnder(this.configOf(pool)) },
      {
        maxMem: memoryOfPart(setting, part),
        maxRunning: setting.maxRunning,
        maxQueued: setting.maxQueued,
        timeout: setting.timeout,
        hostMemory: book.smallestHost,
        hosts: book.hostCount,
        slots: book.slotsOfHost,
        memoryLag,
        sigma,
      },
    );
  }
}

/** One more executor is one of the group that the pool's queries run on. */
function easedScenario(scenario: Scenario, ease: Job["ease"], group: string | null): Scenario {
  if (ease === undefined) return scenario;
  const { cluster } = scenario;
  const line = Math.max(
    0,
    cluster.executors.findIndex((e) => e.group.name === group),
  );
  const executors = cluster.executors.map((e, i) =>
    ease === "slots" ? { ...e, slots: e.slots + 1 } : i === line ? { ...e, count: e.count + 1 } : e,
  );
  return { ...scenario, cluster: { ...cluster, executors } };
}

/**
 * Whether one more executor leaves all names that somebody uses as they are: numbers have as many digits as the largest,
 * and count on through all lines of executors.
 */
export function canAddExecutor({ cluster, queries, faults }: Scenario): boolean {
  const count = cluster.executors.reduce((n, e) => n + e.count, 0);
  const isAsWide = String(count).length === String(count + 1).length;
  // Recorded requests name their coordinators, which live on the first executors.
  const coordinatorsStay = isAsWide || !cluster.coordinators.some((c) => c.on === "executor");
  const areNamed =
    faults.some((f) => "host" in f && f.host !== null) ||
    queries.some((q) => q.uses.kind === "footprint" && Object.keys(q.uses.skew).length > 0);
  return coordinatorsStay && (!areNamed || (isAsWide && cluster.executors.length === 1));
}

/** Two parts of a split pool as one outcome; the p95 is the worse part's, an upper bound of the whole's. */
function added(a: Outcome, b: Outcome): Outcome {
  const admitted = a.admitted + b.admitted;
  return {
    submitted: a.submitted + b.submitted,
    admitted,
    rejected: a.rejected + b.rejected,
    timedOut: a.timedOut + b.timedOut,
    failed: a.failed + b.failed,
    cutOff: a.cutOff + b.cutOff,
    onFullHosts: a.onFullHosts + b.onFullHosts,
    spilled: a.spilled + b.spilled,
    meanWait: admitted === 0 ? 0 : (a.meanWait * a.admitted + b.meanWait * b.admitted) / admitted,
    longestWait: Math.max(a.longestWait, b.longestWait),
    longestQueued: Math.max(a.longestQueued, b.longestQueued),
    p95: a.submitted === 0 ? b.p95 : b.submitted === 0 ? a.p95 : Math.max(a.p95, b.p95),
    p95ByClass: { ...a.p95ByClass, ...b.p95ByClass },
    peakRunning: Math.max(a.peakRunning, b.peakRunning),
    peakQueued: Math.max(a.peakQueued, b.peakQueued),
    memoryTime: a.memoryTime + b.memoryTime,
    span: Math.max(a.span, b.span),
    peakMemory: a.peakMemory + b.peakMemory,
  };
}
