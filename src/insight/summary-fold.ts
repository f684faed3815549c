/**
 * The numbers of a whole run: one `PoolFold` for each pool, told what happened by either driver.
 *
 * Memory does not grow with the number of queries. Whatever is ratio, quantile or text is made in `finish`.
 */
import type { QueueReason, RejectReason } from "../core/admission/reasons.ts";
import type { AdmissionPath, FinishState } from "../core/events.ts";
import type { PoolConfig } from "../core/pool-config.ts";
import type { NameKind, QueryFacts, RunObserver } from "../core/run-observer.ts";
import { PoolFold } from "./pool-fold.ts";
import { EarlyRefusals, Refusals } from "./refusals.ts";
import { type RunSummary, type RunTotals, summaryOf } from "./summary.ts";

export interface FoldSettings {
  /** The record of a pool, null when it cannot be known: then nothing is compared with limits. */
  readonly configOf: (pool: string) => PoolConfig | null;
  /** Goes up when records may be others than before; left out: they stay as they are. */
  readonly changes?: () => number;
  /** Cluster memory that a query of the class will be charged there (MEM-10), null: not to be known. */
  readonly needOf?: (pool: string, queryClass: string) => number | null;
  /** One queue per pool for all coordinators, or one for each. */
  readonly admission: "distributed" | "admissiond";
  /** Faults can make a controller keep what nobody uses: then memory without a running query is no mistake of ours. */
  readonly mayLeak?: boolean;
}

export class SummaryFold implements RunObserver, RunTotals {
  readonly #settings: FoldSettings;
  readonly mayLeak: boolean;
  readonly names: Readonly<Record<NameKind, string[]>> = { pool: [], class: [], user: [], coordinator: [] };
  readonly pools: PoolFold[] = [];
  readonly refusals: Refusals[] = [];
  readonly earlyRefusals = new EarlyRefusals();
  unresolvedCount = 0;
  firstUnresolved: { readonly at: number; readonly query: string } | null = null;
  /** First intended arrival and last event. */
  from = Number.POSITIVE_INFINITY;
  until = 0;
  submitLagMs = 0;
  /** By pool, how many changes its record has seen. */
  readonly #seenChanges: number[] = [];

  constructor(settings: FoldSettings) {
    this.#settings = settings;
    this.mayLeak = settings.mayLeak ?? false;
  }

  named(kind: NameKind, index: number, name: string): void {
    this.names[kind][index] = name;
  }

  submitted(at: number, q: QueryFacts): void {
    if (q.intended < this.from) this.from = q.intended;
    this.submitLagMs += at - q.intended;
    const pool = this.#poolAt(at, q);
    this.#takeChanges(pool, q.pool);
    pool.submitted++;
    if (q.attempt === 1) pool.requests++;
  }

  unresolved(at: number, q: QueryFacts, error: string): void {
    const pool = this.#poolAt(at, q);
    pool.unresolved++;
    this.unresolvedCount++;
    this.firstUnresolved ??= { at, query: q.queryId };
    this.earlyRefusals.add(this.names.class[q.queryClass] ?? "", error, () => ({
      user: this.names.user[q.user] ?? "",
      pool: pool.name,
      firstAtMs: at,
      firstQuery: q.queryId,
    }));
  }

  queued(at: number, q: QueryFacts, reason: QueueReason): void {
    this.#poolAt(at, q).enqueue(this.#queueOf(q), q, reason);
  }

  headWaits(at: number, q: QueryFacts, reason: QueueReason): void {
    const pool = this.#poolAt(at, q);
    pool.learnFrom(q.queryClass, reason);
    pool.queue(this.#queueOf(q)).headWaits(q, reason);
  }

  admitted(at: number, q: QueryFacts, path: AdmissionPath, waited: number, cluster: number): void {
    const pool = this.#poolAt(at, q);
    if (path === "fromQueue") {
      pool.fromQueue++;
      pool.dequeue(this.#queueOf(q), q, waited);
    } else if (path === "trivially") pool.trivially++;
    else pool.immediately++;
    const wait = at - q.intended;
    pool.admit(q.queryClass, cluster, wait, at - q.firstIntended, path === "trivially");
    if (wait > pool.longestWait) {
      pool.longestWait = wait;
      pool.longestWaiter = q.queryId;
    }
    pool.share(pool.byUser, q.user, wait);
    pool.share(pool.byCoordinator, q.coordinator, wait);
  }

  hostsChecked(at: number, q: QueryFacts, slots: boolean, hostMemory: boolean): void {
    this.#poolAt(at, q).queue(this.#queueOf(q)).hostsChecked(q, slots, hostMemory);
  }

  viewUsed(at: number, q: QueryFacts, ageMs: number, isOverOnAHost: boolean | null): void {
    this.#poolAt(at, q).viewUsed(ageMs, isOverOnAHost === true);
  }

  rejected(at: number, q: QueryFacts, reason: RejectReason, waited: number, fromQueue: boolean): void {
    const pool = this.#poolAt(at, q);
    pool.rejected++;
    pool.rejectedByRule.set(reason.rule, (pool.rejectedByRule.get(reason.rule) ?? 0) + 1);
    if (fromQueue) pool.dequeue(this.#queueOf(q), q, waited);
    this.#refusals(q.pool).rejected(at, () => q.queryId, reason);
  }

  timedOut(at: number, q: QueryFacts, waited: number, reason: QueueReason): void {
    const pool = this.#poolAt(at, q);
    pool.timedOut++;
    pool.dequeue(this.#queueOf(q), q, waited);
    this.#refusals(q.pool).timedOut(at, () => q.queryId, reason);
  }

  cancelled(at: number, q: QueryFacts, waited: number, wasQueued: boolean): void {
    const pool = this.#poolAt(at, q);
    pool.cancelled++;
    if (wasQueued) pool.dequeue(this.#queueOf(q), q, waited);
  }

  spilled(at: number, q: QueryFacts, bytes: number): void {
    this.#poolAt(at, q).spilledBytes += bytes;
  }

  memoryReleased(at: number, q: QueryFacts, bytes: number): void {
    this.#poolAt(at, q).memory -= bytes;
  }

  released(at: number, q: QueryFacts, state: FinishState, _hold: number, peak: number, error: string | null): void {
    const pool = this.#poolAt(at, q);
    pool.running--;
    pool.learnPeak(q.queryClass, peak);
    if (state === "finished") pool.finished++;
    else if (state === "failed") {
      pool.failed++;
      this.#refusals(q.pool).failed(at, () => q.queryId, error ?? "");
    } else pool.cancelledRunning++;
  }

  ended(at: number): void {
    this.until = Math.max(this.until, at);
    for (const pool of this.pools) pool?.advance(this.until);
  }

  finish(): RunSummary {
    return summaryOf(this);
  }

  #poolAt(at: number, q: QueryFacts): PoolFold {
    this.until = at;
    const pool = this.pools[q.pool] ?? this.#newPool(at, q.pool);
    pool.advance(at);
    return pool;
  }

  /** A submission brings its pool's new record (admission 5.7). */
  #takeChanges(pool: PoolFold, index: number): void {
    const changes = this.#settings.changes?.() ?? 0;
    if (this.#seenChanges[index] === changes) return;
    const isFirst = this.#seenChanges[index] === undefined;
    this.#seenChanges[index] = changes;
    if (!isFirst && pool.name !== "") pool.useConfig(this.#settings.configOf(pool.name));
  }

  #newPool(at: number, index: number): PoolFold {
    const name = this.names.pool[index] ?? "";
    const { configOf, needOf } = this.#settings;
    const foreseenNeed = (queryClass: number): number => needOf?.(name, this.names.class[queryClass] ?? "") ?? -1;
    const pool = new PoolFold(name, name === "" ? null : configOf(name), at, foreseenNeed);
    this.pools[index] = pool;
    return pool;
  }

  #queueOf(q: QueryFacts): number {
    return this.#settings.admission === "admissiond" ? 0 : q.coordinator;
  }

  #refusals(pool: number): Refusals {
    this.refusals[pool] ??= new Refusals();
    return this.refusals[pool];
  }
}
