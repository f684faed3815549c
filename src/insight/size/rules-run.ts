/**
 * One setting by the full rules: the simulator on recorded requests, folded into an outcome.
 *
 * The setting replaces the pool's record and nothing else; other pools, hosts, coordinators and the topic are
 * as in the scenario. A split is two pools with the same rules. What it costs to have too little memory is the
 * simulator's business, priced by sigma instead of by a scratch bandwidth nobody has measured.
 */
import type { ImpalaFlags } from "../../config/impala-flags.ts";
import type { Scenario } from "../../config/scenario.ts";
import type { QueueReason, RejectReason } from "../../core/admission/reasons.ts";
import type { AdmissionPath, FinishState } from "../../core/events.ts";
import type { PoolConfig } from "../../core/pool-config.ts";
import type { NameKind, QueryFacts, RunObserver } from "../../core/run-observer.ts";
import { simulate } from "../../sim/simulate.ts";
import { isMemoryFailure } from "../../workload/query-log/logged-query.ts";
import { type RecordedRequests, RecordedWorkload } from "../../workload/recorded-requests.ts";
import { SilentObserver } from "../silent-observer.ts";
import { type KindNeed, type NeedBook, spillsUnder } from "./needs.ts";
import { type Outcome, quantileOfBuckets, WAIT_BUCKETS, waitBucket } from "./outcome.ts";
import { configUnder, type Setting } from "./setting.ts";

export interface RulesProblem {
  readonly scenario: Scenario;
  readonly flags: ImpalaFlags;
  readonly requests: RecordedRequests;
  readonly needs: NeedBook;
  /** The pool that is sized. */
  readonly pool: string;
  readonly configOf: (pool: string) => PoolConfig;
  readonly sigma: number;
}

/** Each knows of the others only what the topic has told it. */
export const hasManyControllers = ({ cluster }: Scenario): boolean =>
  cluster.admission === "distributed" && cluster.coordinators.reduce((n, c) => n + c.count, 0) > 1;

export const largePoolOf = (pool: string): string => `${pool}-large`;

/** Requests [from, to) under the setting; `extra` observers are told the same story. */
export function runByRules(
  p: RulesProblem,
  setting: Setting,
  from = 0,
  to: number = p.requests.count,
  extra: RunObserver | null = null,
): Outcome {
  const base = p.configOf(p.pool);
  const isSplit = setting.split !== null;
  const own = configUnder(base, setting, isSplit ? "small" : "whole");
  const large = configUnder(base, setting, "large");
  const largePool = largePoolOf(p.pool);
  const needs = p.needs.under(configUnder(base, setting));
  const isLarge = (kind: number): boolean => setting.split !== null && needs[kind]!.cluster > setting.split.above;
  const { requests } = p;
  const workload = new RecordedWorkload(requests, from, to, {
    ...(isSplit
      ? {
          poolOf: (kind: number) => {
            const name = requests.kinds[kind]!.pool;
            return name === p.pool && isLarge(kind) ? largePool : name;
          },
        }
      : {}),
  });
  const peaks = p.needs.peaksUnder(base);
  const spills = (i: number): boolean => spillsUnder(needs[requests.kind[i]!]!, peaks[i]!);
  const observer = new OutcomeObserver(
    isSplit ? [p.pool, largePool] : [p.pool],
    someSpill(p, needs, peaks) ? (queryId) => spills(Number(queryId)) : null,
  );
  simulate({
    scenario: { ...p.scenario, model: { ...p.scenario.model, spillSigma: p.sigma } },
    workload,
    pools: { configOf: (name) => (name === p.pool ? own : name === largePool ? large : p.configOf(name)) },
    flags: p.flags,
    looksAtHosts: extra !== null || hasManyControllers(p.scenario),
    observer: extra === null ? observer : new BothObservers(observer, extra),
  });
  return observer.outcome(from < to ? requests.at[from]! : 0);
}

/** Whether any kind has a limit at all that a peak could be above: then queries are looked at one by one. */
function someSpill({ requests, pool }: RulesProblem, needs: readonly KindNeed[], peaks: Float64Array): boolean {
  const largest = new Float64Array(requests.kinds.length);
  for (let i = 0; i < requests.count; i++) {
    const kind = requests.kind[i]!;
    if (peaks[i]! > largest[kind]!) largest[kind] = peaks[i]!;
  }
  return requests.kinds.some((k, kind) => k.pool === pool && spillsUnder(needs[kind]!, largest[kind]!));
}

/** Folds the numbers of an outcome over the queries of some pools. */
export class OutcomeObserver extends SilentObserver {
  private readonly names: readonly string[];
  private readonly spills: ((queryId: string) => boolean) | null;
  private spilledCount = 0;
  private readonly own: boolean[] = [];
  private readonly classNames: string[] = [];
  private readonly waits = new Uint32Array(WAIT_BUCKETS);
  private readonly waitsByClass: (Uint32Array | undefined)[] = [];
  private readonly submittedByClass: number[] = [];
  private submittedCount = 0;
  private admittedCount = 0;
  private rejectedCount = 0;
  private timedOutCount = 0;
  private failedCount = 0;
  private cutOffCount = 0;
  private onFullHosts = 0;
  private sumWaits = 0;
  private longestWait = 0;
  private longestQueued = 0;
  private running = 0;
  private peakRunning = 0;
  private queue = 0;
  private peakQueued = 0;
  private memory = 0;
  private peakMemory = 0;
  private memoryTime = 0;
  private memoryAt = 0;
  private end = 0;

  /** `spills` says of a recorded request whether it does under this setting; null: none can. */
  constructor(pools: readonly string[], spills: ((queryId: string) => boolean) | null) {
    super();
    this.names = pools;
    this.spills = spills;
  }

  override named(kind: NameKind, index: number, name: string): void {
    if (kind === "pool") this.own[index] = this.names.includes(name);
    else if (kind === "class") this.classNames[index] = name;
  }

  override submitted(_at: number, q: QueryFacts): void {
    if (this.own[q.pool] !== true) return;
    this.submittedCount++;
    if (this.spills?.(q.queryId) === true) this.spilledCount++;
    this.submittedByClass[q.queryClass] = (this.submittedByClass[q.queryClass] ?? 0) + 1;
  }

  override queued(_at: number, q: QueryFacts, _reason: QueueReason): void {
    if (this.own[q.pool] !== true) return;
    this.queue++;
    if (this.queue > this.peakQueued) this.peakQueued = this.queue;
  }

  override admitted(at: number, q: QueryFacts, path: AdmissionPath, waited: number, cluster: number): void {
    if (this.own[q.pool] !== true) return;
    if (path === "fromQueue") this.leave(waited);
    const wait = at - q.intended;
    this.admittedCount++;
    this.sumWaits += wait;
    if (wait > this.longestWait) this.longestWait = wait;
    const bucket = waitBucket(wait);
    this.waits[bucket]!++;
    let byClass = this.waitsByClass[q.queryClass];
    if (byClass === undefined) {
      byClass = new Uint32Array(WAIT_BUCKETS);
      this.waitsByClass[q.queryClass] = byClass;
    }
    byClass[bucket]!++;
    this.running++;
    if (this.running > this.peakRunning) this.peakRunning = this.running;
    this.changeMemory(at, cluster);
  }

  override viewUsed(_at: number, _q: QueryFacts, _ageMs: number, isOverOnAHost: boolean | null): void {
    if (isOverOnAHost === true) this.onFullHosts++;
  }

  override rejected(_at: number, q: QueryFacts, _reason: RejectReason, waited: number, fromQueue: boolean): void {
    if (this.own[q.pool] !== true) return;
    this.rejectedCount++;
    if (fromQueue) this.leave(waited);
  }

  override timedOut(_at: number, q: QueryFacts, waited: number): void {
    if (this.own[q.pool] !== true) return;
    this.timedOutCount++;
    this.leave(waited);
  }

  override unresolved(_at: number, q: QueryFacts): void {
    if (this.own[q.pool] === true) this.cutOffCount++;
  }

  override cancelled(_at: number, q: QueryFacts, waited: number, wasQueued: boolean): void {
    if (this.own[q.pool] !== true) return;
    this.cutOffCount++;
    if (wasQueued) this.leave(waited);
  }

  override memoryReleased(at: number, q: QueryFacts, bytes: number): void {
    if (this.own[q.pool] === true) this.changeMemory(at, -bytes);
  }

  override released(
    _at: number,
    q: QueryFacts,
    state: FinishState,
    _hold: number,
    _peak: number,
    error: string | null,
  ): void {
    if (this.own[q.pool] !== true) return;
    this.running--;
    if (state !== "failed") return;
    if (isMemoryFailure(error)) this.failedCount++;
    else this.cutOffCount++;
  }

  override ended(at: number): void {
    this.changeMemory(at, 0);
    this.end = at;
  }

  private leave(waited: number): void {
    this.queue--;
    if (waited > this.longestQueued) this.longestQueued = waited;
  }

  private changeMemory(at: number, by: number): void {
    this.memoryTime += this.memory * (at - this.memoryAt);
    this.memoryAt = at;
    this.memory += by;
    if (this.memory > this.peakMemory) this.peakMemory = this.memory;
  }

  outcome(start: number): Outcome {
    const p95ByClass: Record<string, number> = {};
    this.submittedByClass.forEach((n, c) => {
      p95ByClass[this.classNames[c] ?? String(c)] = quantileOfBuckets(
        this.waitsByClass[c] ?? [],
        n,
        0.95,
        this.longestWait,
      );
    });
    return {
      submitted: this.submittedCount,
      admitted: this.admittedCount,
      rejected: this.rejectedCount,
      timedOut: this.timedOutCount,
      failed: this.failedCount,
      cutOff: this.cutOffCount,
      onFullHosts: this.onFullHosts,
      spilled: this.spilledCount,
      meanWait: this.admittedCount === 0 ? 0 : this.sumWaits / this.admittedCount,
      longestWait: this.longestWait,
      longestQueued: this.longestQueued,
      p95: quantileOfBuckets(this.waits, this.submittedCount, 0.95, this.longestWait),
      p95ByClass,
      peakRunning: this.peakRunning,
      peakQueued: this.peakQueued,
      memoryTime: this.memoryTime,
      span: Math.max(0, this.end - start),
      peakMemory: this.peakMemory,
    };
  }
}

/** Tells two observers the same story. */
class BothObservers implements RunObserver {
  private readonly a: RunObserver;
  private readonly b: RunObserver;
  constructor(a: RunObserver, b: RunObserver) {
    this.a = a;
    this.b = b;
  }
  named(kind: NameKind, index: number, name: string): void {
    this.a.named(kind, index, name);
    this.b.named(kind, index, name);
  }
  submitted(at: number, q: QueryFacts): void {
    this.a.submitted(at, q);
    this.b.submitted(at, q);
  }
  unresolved(at: number, q: QueryFacts, error: string): void {
    this.a.unresolved(at, q, error);
    this.b.unresolved(at, q, error);
  }
  queued(at: number, q: QueryFacts, reason: QueueReason): void {
    this.a.queued(at, q, reason);
    this.b.queued(at, q, reason);
  }
  headWaits(at: number, q: QueryFacts, reason: QueueReason): void {
    this.a.headWaits(at, q, reason);
    this.b.headWaits(at, q, reason);
  }
  admitted(at: number, q: QueryFacts, path: AdmissionPath, waited: number, cluster: number): void {
    this.a.admitted(at, q, path, waited, cluster);
    this.b.admitted(at, q, path, waited, cluster);
  }
  hostsChecked(at: number, q: QueryFacts, slots: boolean, hostMemory: boolean): void {
    this.a.hostsChecked(at, q, slots, hostMemory);
    this.b.hostsChecked(at, q, slots, hostMemory);
  }
  viewUsed(at: number, q: QueryFacts, ageMs: number, isOverOnAHost: boolean | null): void {
    this.a.viewUsed(at, q, ageMs, isOverOnAHost);
    this.b.viewUsed(at, q, ageMs, isOverOnAHost);
  }
  rejected(at: number, q: QueryFacts, reason: RejectReason, waited: number, fromQueue: boolean): void {
    this.a.rejected(at, q, reason, waited, fromQueue);
    this.b.rejected(at, q, reason, waited, fromQueue);
  }
  timedOut(at: number, q: QueryFacts, waited: number, reason: QueueReason): void {
    this.a.timedOut(at, q, waited, reason);
    this.b.timedOut(at, q, waited, reason);
  }
  cancelled(at: number, q: QueryFacts, waited: number, wasQueued: boolean): void {
    this.a.cancelled(at, q, waited, wasQueued);
    this.b.cancelled(at, q, waited, wasQueued);
  }
  spilled(at: number, q: QueryFacts, bytes: number): void {
    this.a.spilled(at, q, bytes);
    this.b.spilled(at, q, bytes);
  }
  memoryReleased(at: number, q: QueryFacts, bytes: number): void {
    this.a.memoryReleased(at, q, bytes);
    this.b.memoryReleased(at, q, bytes);
  }
  released(at: number, q: QueryFacts, state: FinishState, hold: number, peak: number, error: string | null): void {
    this.a.released(at, q, state, hold, peak, error);
    this.b.released(at, q, state, hold, peak, error);
  }
  ended(at: number): void {
    this.a.ended(at);
    this.b.ended(at);
  }
}
