/**
 * One shape for the controller under test: the slow model here, the core in `core-port.ts`. The conformance
 * stepper drives either, and the random sequences drive both side by side, so everything that goes in or comes
 * out is plain data that can be compared.
 */
import type { QueueReason, RejectReason } from "../../src/core/admission/reasons.ts";
import type { AdmissionRequest } from "../../src/core/admission/request.ts";
import type { PoolConfig } from "../../src/core/pool-config.ts";
import {
  type ModelAdmission,
  ModelController,
  type ModelDecision,
  type ModelEnd,
  type ModelHost,
  type ModelSettings,
  type ModelTopicEntry,
} from "./controller.ts";
import type { Heavy } from "./details.ts";
import type { ModelCluster } from "./schedule.ts";
import { reasonText, staleText } from "./texts.ts";

const DUPLICATE = "Cannot submit the same query for admission multiple times.";

export interface Said<R> {
  readonly reason: R;
  readonly text: string;
}

export interface Admission {
  readonly kind: "admit";
  readonly path: ModelAdmission["path"];
  readonly group: string;
  readonly groupLoad: number;
  readonly perHost: number;
  readonly perHostSource: string;
  readonly coordinator: number;
  readonly coordinatorSource: string;
  readonly cluster: number;
  readonly perHostLimit: number;
  readonly coordinatorLimit: number;
  readonly backends: readonly { readonly address: string; readonly mem: number; readonly slots: number }[];
}

export type Decision =
  | Admission
  | ({ readonly kind: "queue" } & Said<QueueReason>)
  | ({ readonly kind: "reject" } & Said<RejectReason>)
  | { readonly kind: "cancelled" }
  | { readonly kind: "error"; readonly text: string };

export type End =
  | { readonly kind: "admit"; readonly waited: number; readonly admission: Admission }
  | ({ readonly kind: "reject"; readonly waited: number } & Said<RejectReason>)
  /** `reason`: of the last real attempt; `error`: what the client reads. */
  | { readonly kind: "timedOut"; readonly waited: number; readonly reason: QueueReason; readonly error: string }
  | { readonly kind: "cancelled"; readonly waited: number };

/** One entry as the statestore keeps it; what is in it is the controller's business. `value` null: deleted. */
export interface TopicItem {
  readonly key: string;
  readonly value: unknown;
}

type Counts = Readonly<Record<string, number>>;

export interface PoolFigures {
  readonly aggRunning: number;
  readonly aggQueued: number;
  readonly aggMemReserved: number;
  readonly aggUsers: Counts;
  readonly localMemAdmitted: number;
  readonly localTrivial: number;
  readonly localRunning: number;
  readonly localQueued: number;
  readonly localMemReserved: number;
  readonly localUsers: Counts;
  readonly totals: Counts;
  readonly waitEma: number;
  /** Bins that aren't empty. */
  readonly peaks: Counts;
  /** In order, each with what the profile shows as its latest reason. */
  readonly queue: readonly ({ readonly query: string } & Said<QueueReason>)[];
}

/** Everything a controller knows, in one order, with zeros of hosts left out. */
export interface Figures {
  readonly pools: Readonly<Record<string, PoolFigures>>;
  readonly hosts: Readonly<Record<string, Readonly<ModelHost>>>;
  readonly rootUsers: Counts;
  readonly groupLoads: Counts;
  readonly coordinatorLimited: number;
  readonly pending: boolean;
  readonly running: Readonly<Record<string, readonly string[]>>;
  readonly numQueries: number;
  readonly highWaterMark: number;
}

export interface ControllerPort {
  setMembership(cluster: ModelCluster, now: number): void;
  submit(request: AdmissionRequest, pool: PoolConfig, root: PoolConfig, now: number): Decision;
  /** The client gave up before the decision. */
  submitCancelled(request: AdmissionRequest, pool: PoolConfig, root: PoolConfig, now: number): Decision;
  resetInformational(pool: string): void;
  dequeuePass(now: number): readonly { readonly query: string; readonly end: End }[];
  isPending(): boolean;
  timeoutOf(query: string): number | null;
  /** The client cancels: the outcome cell only. False when the cell was already written or nobody waits. */
  markCancelled(query: string): boolean;
  /** The waiter wakes, because of its time-out or because the cell was written. */
  waiterWakes(query: string, now: number): End | null;
  releaseBackends(coordinator: string, query: string, hosts: readonly string[], now: number): void;
  releaseQuery(coordinator: string, query: string, peak: number, releaseRest: boolean, now: number): void;
  heartbeat(coordinator: string, version: number, queries: readonly string[], now: number): void;
  /** Queued or running here; of a service: not yet forgotten. */
  knows(query: string): boolean;
  /** `admission-control-service.num-queries` and its high-water mark; 0 for a coordinator's own controller. */
  numQueries(): number;
  highWaterMark(): number;
  setServiceMemory(usage: number, limit: number): void;
  setBackendReserved(pool: string, reserved: number, queries: readonly Heavy[]): void;
  publish(now: number): readonly TopicItem[] | null;
  apply(update: { readonly full: boolean; readonly items: readonly TopicItem[] }, now: number): void;
  /** `Admission control state staleness`, empty when fresh (7.6). */
  stalenessText(now: number): string;
  figures(): Figures;
}

/**
 * The model, and around it, for a service, what the service remembers of each query between a coordinator's
 * messages (7.7): from AdmitQuery until it is answered with a refusal, released, reported missing, dropped by a
 * pass, or its coordinator is gone. A message about a query that is forgotten has no effect.
 */
export class ModelPort implements ControllerPort {
  private readonly model: ModelController;
  /** Null: a coordinator's own controller. */
  private readonly entries: Set<string> | null;
  private most = 0;

  constructor(settings: ModelSettings) {
    this.model = new ModelController(settings);
    this.entries = settings.admissiond ? new Set() : null;
  }

  setMembership(cluster: ModelCluster): void {
    this.forgettingReleased(() => this.model.setMembership(cluster));
  }
  submit(request: AdmissionRequest, pool: PoolConfig, root: PoolConfig, now: number): Decision {
    if (this.entries?.has(request.queryId)) return { kind: "error", text: DUPLICATE };
    this.remember(request.queryId);
    return spoken(this.model.submit(request, pool, root, now));
  }
  submitCancelled(request: AdmissionRequest, pool: PoolConfig, root: PoolConfig, now: number): Decision {
    if (this.entries?.has(request.queryId)) return { kind: "error", text: DUPLICATE };
    this.remember(request.queryId);
    return spoken(this.model.submit(request, pool, root, now, true));
  }
  private remember(query: string): void {
    this.entries?.add(query);
    this.most = Math.max(this.most, this.entries?.size ?? 0);
  }
  private isForgotten(query: string): boolean {
    return this.entries !== null && !this.entries.has(query);
  }
  /** Whatever stops running by itself in the course of it is forgotten. */
  private forgettingReleased(work: () => void): void {
    const running = [...this.model.running.values()].flatMap((queries) => [...queries.keys()]);
    work();
    for (const query of running)
      if (![...this.model.running.values()].some((queries) => queries.has(query))) this.entries?.delete(query);
  }
  resetInformational(pool: string): void {
    this.model.resetInformational(pool);
  }
  dequeuePass(now: number): { query: string; end: End }[] {
    return this.model.dequeuePass(now).map(({ query, end }) => {
      if (end.kind === "cancelled") this.entries?.delete(query);
      return { query, end: endOf(end) };
    });
  }
  isPending(): boolean {
    return this.model.pending;
  }
  timeoutOf(query: string): number | null {
    return this.model.timeoutOf(query);
  }
  markCancelled(query: string): boolean {
    return this.isForgotten(query) ? false : this.model.markCancelled(query);
  }
  waiterWakes(query: string, now: number): End | null {
    if (this.isForgotten(query)) return null;
    const end = this.model.waiterWakes(query, now);
    const waits = this.model.timeoutOf(query) !== null;
    const runs = [...this.model.running.values()].some((queries) => queries.has(query));
    if (!waits && !runs) this.entries?.delete(query);
    return end === null ? null : endOf(end);
  }
  releaseBackends(coordinator: string, query: string, hosts: readonly string[]): void {
    const held = this.model.running.get(coordinator)?.get(query)?.held;
    // The service refuses the whole message when one of the backends isn't held any more.
    if (this.entries !== null && (this.isForgotten(query) || !hosts.every((h) => held?.has(h)))) return;
    this.model.releaseBackends(coordinator, query, hosts);
  }
  releaseQuery(coordinator: string, query: string, peak: number, releaseRest: boolean): void {
    if (this.isForgotten(query)) return;
    this.entries?.delete(query);
    this.model.releaseQuery(coordinator, query, peak, releaseRest);
  }
  heartbeat(coordinator: string, version: number, queries: readonly string[]): void {
    this.forgettingReleased(() => this.model.heartbeat(coordinator, version, queries));
  }
  knows(query: string): boolean {
    if (this.entries !== null) return this.entries.has(query);
    return this.model.timeoutOf(query) !== null || [...this.model.running.values()].some((r) => r.has(query));
  }
  numQueries(): number {
    return this.entries?.size ?? 0;
  }
  highWaterMark(): number {
    return this.most;
  }
  setServiceMemory(usage: number, limit: number): void {
    this.model.serviceMemory = { usage, limit };
  }
  setBackendReserved(pool: string, reserved: number, queries: readonly Heavy[]): void {
    this.model.setBackendReserved(pool, reserved, queries);
  }
  publish(): TopicItem[] | null {
    return this.model.publish()?.map((e) => ({ key: keyOf(e), value: e })) ?? null;
  }
  apply(update: { readonly full: boolean; readonly items: readonly TopicItem[] }, now: number): void {
    const entries = update.items.map(({ key, value }) => (value === null ? deletion(key) : (value as ModelTopicEntry)));
    this.model.apply({ full: update.full, entries }, now);
  }
  stalenessText(now: number): string {
    return staleText(this.model.staleAge(now), "");
  }

  figures(): Figures {
    const m = this.model;
    return {
      pools: record(m.pools, (p, name) => ({
        aggRunning: p.aggRunning,
        aggQueued: p.aggQueued,
        aggMemReserved: p.aggMemReserved,
        aggUsers: counts(p.aggUserLoads),
        localMemAdmitted: p.localMemAdmitted,
        localTrivial: p.localTrivial,
        localRunning: p.localRunning,
        localQueued: p.localQueued,
        localMemReserved: p.localMemReserved,
        localUsers: counts(p.localUserLoads),
        totals: p.totals,
        waitEma: p.waitEma,
        peaks: Object.fromEntries(p.peakHistogram.flatMap((n, bin) => (n > 0 ? [[bin, n]] : []))),
        queue: (m.queues.get(name) ?? []).map((w) => ({
          query: w.request.queryId,
          reason: w.latestReason,
          text: reasonText(w.latestReason),
        })),
      })),
      hosts: record(new Map([...m.hosts].filter(([, h]) => Object.values(h).some((n) => n !== 0))), (h) => ({ ...h })),
      rootUsers: counts(m.rootUserLoads),
      groupLoads: counts(m.groupLoads),
      coordinatorLimited: m.coordinatorLimited,
      pending: m.pending,
      running: Object.fromEntries(
        [...m.running].flatMap(([c, queries]) => (queries.size > 0 ? [[c, [...queries.keys()].sort()]] : [])).sort(),
      ),
      numQueries: this.numQueries(),
      highWaterMark: this.highWaterMark(),
    };
  }
}

export function record<T, R>(map: ReadonlyMap<string, T>, of: (value: T, key: string) => R): Record<string, R> {
  return Object.fromEntries([...map.keys()].sort().map((key) => [key, of(map.get(key) as T, key)]));
}

export const counts = (map: ReadonlyMap<string, number>): Counts => record(map, (n) => n);

const keyOf = (e: ModelTopicEntry): string => (e.pool === null ? `STAT:${e.host}` : `POOL:${e.pool}!${e.host}`);

function deletion(key: string): ModelTopicEntry {
  if (key.startsWith("STAT:")) return { pool: null, host: key.slice(5), stats: null };
  const at = key.lastIndexOf("!");
  return { pool: key.slice(5, at), host: key.slice(at + 1), stats: null };
}

function spoken(d: ModelDecision): Decision {
  if (d.kind === "queue") return { kind: "queue", reason: d.reason, text: reasonText(d.reason) };
  if (d.kind === "reject") return { kind: "reject", reason: d.reason, text: reasonText(d.reason) };
  return d.kind === "admit" ? admissionOf(d) : d;
}

function endOf(end: ModelEnd): End {
  if (end.kind === "admit") return { kind: "admit", waited: end.waited, admission: admissionOf(end.admission) };
  if (end.kind === "reject")
    return { kind: "reject", waited: end.waited, reason: end.reason, text: reasonText(end.reason) };
  return end;
}

const admissionOf = (a: ModelAdmission): Admission => ({
  kind: "admit",
  path: a.path,
  group: a.group,
  groupLoad: a.groupLoad,
  perHost: a.memory.perHost,
  perHostSource: a.memory.perHostSource,
  coordinator: a.memory.coordinator,
  coordinatorSource: a.memory.coordinatorSource,
  cluster: a.memory.cluster,
  perHostLimit: a.memory.perHostLimit,
  coordinatorLimit: a.memory.coordinatorLimit,
  backends: a.backends,
});
