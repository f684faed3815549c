/**
 * A controller that writes down everything it is asked and what it answers (insight 7.1): the one both drivers
 * use when somebody keeps records.
 *
 * Decides nothing itself. Steps that the controller takes inside another step are part of that step and are
 * not told again. A verdict is told when its call is over, a pass as a whole when it has ended; so calls stand
 * in the order in which their steps took place.
 */
import type { Membership } from "../cluster/membership.ts";
import type { PoolConfig } from "../pool-config.ts";
import type { TopicEntry, TopicUpdate } from "../statestore/topic.ts";
import type { Instant } from "../units.ts";
import { AdmissionController } from "./controller.ts";
import type { ControllerCall, Verdict } from "./controller-call.ts";
import type { ControllerOptions } from "./controller-options.ts";
import type { DequeueSink } from "./dequeue-pass.ts";
import { plainConfig, plainEntry } from "./plain-forms.ts";
import type { BackendUsage } from "./pool-stats.ts";
import type { AdmissionQuery } from "./query.ts";
import type { RejectReason } from "./reasons.ts";
import type { AdmissionRequest, RequestShape } from "./request.ts";

/** `now`: as the controller was given it; null for calls that take no time. */
export type TellCall = (call: ControllerCall, now: Instant | null) => void;

export class RecordedController extends AdmissionController {
  readonly #tell: TellCall;
  readonly #shapes = new Map<RequestShape, number>();
  readonly #configs = new Map<PoolConfig, number>();
  #depth = 0;

  constructor(options: ControllerOptions, tell: TellCall) {
    super(options);
    this.#tell = tell;
    const { poolOrder: _, ...rest } = options;
    tell({ op: "start", options: rest }, null);
  }

  override setMembership(membership: Membership): readonly AdmissionQuery[] {
    const released = this.#within(() => super.setMembership(membership));
    const placed = new Set(membership.groups.flatMap((g) => g.executors.map((e) => e.address)));
    this.#tell(
      {
        op: "membership",
        version: membership.version,
        backends: membership.backends,
        groupless: membership.backends
          .filter((b) => b.isExecutor && !b.isQuiescing && !placed.has(b.address))
          .map((b) => b.address),
        removedCoordinators: [...membership.removedCoordinators],
        released: released.map((q) => q.id),
      },
      null,
    );
    return released;
  }

  override submit(request: AdmissionRequest, config: PoolConfig, rootConfig: PoolConfig, now: Instant): AdmissionQuery {
    const q = this.#within(() => super.submit(request, config, rootConfig, now));
    this.#tellSubmission("submit", request, config, rootConfig, q, now);
    return q;
  }

  override submitCancelled(
    request: AdmissionRequest,
    config: PoolConfig,
    rootConfig: PoolConfig,
    now: Instant,
  ): AdmissionQuery {
    const q = this.#within(() => super.submitCancelled(request, config, rootConfig, now));
    this.#tellSubmission("submitCancelled", request, config, rootConfig, q, now);
    return q;
  }

  #tellSubmission(
    op: "submit" | "submitCancelled",
    request: AdmissionRequest,
    config: PoolConfig,
    rootConfig: PoolConfig,
    q: AdmissionQuery,
    now: Instant,
  ): void {
    const shape = this.#shapeNumber(request.shape);
    const numbers = { config: this.#configNumber(config), rootConfig: this.#configNumber(rootConfig) };
    this.#tell({ op, request: plainRequest(request), shape, ...numbers, verdict: verdictOf(q) }, now);
  }

  #shapeNumber(shape: RequestShape): number {
    let number = this.#shapes.get(shape);
    if (number === undefined) {
      number = this.#shapes.size;
      this.#shapes.set(shape, number);
      this.#tell({ op: "shape", number, shape }, null);
    }
    return number;
  }

  #configNumber(config: PoolConfig): number {
    let number = this.#configs.get(config);
    if (number === undefined) {
      number = this.#configs.size;
      this.#configs.set(config, number);
      this.#tell({ op: "config", number, config: plainConfig(config) }, null);
    }
    return number;
  }

  /** The sink must not call the controller: what it did would stand before the pass that brought it about. */
  override dequeuePass(now: Instant, sink: DequeueSink): void {
    const left: Verdict[] = [];
    const waiting: Verdict[] = [];
    const noting =
      (list: Verdict[], then: (q: AdmissionQuery) => void) =>
      (q: AdmissionQuery): void => {
        list.push(verdictOf(q));
        then(q);
      };
    super.dequeuePass(now, {
      admitted: noting(left, (q) => sink.admitted(q)),
      rejected: noting(left, (q) => sink.rejected(q)),
      cancelled: noting(left, (q) => sink.cancelled(q)),
      stillQueued: noting(waiting, (q) => sink.stillQueued(q)),
    });
    this.#tell({ op: "pass", left, waiting }, now);
  }

  override timeOut(q: AdmissionQuery, now: Instant): void {
    this.#within(() => super.timeOut(q, now));
    this.#tellOuter({ op: "timeOut", verdict: verdictOf(q) }, now);
  }

  override cancel(q: AdmissionQuery, now: Instant): void {
    this.#within(() => super.cancel(q, now));
    this.#tellOuter({ op: "cancel", verdict: verdictOf(q) }, now);
  }

  override markCancelled(q: AdmissionQuery): void {
    this.#within(() => super.markCancelled(q));
    this.#tellOuter({ op: "markCancelled", verdict: verdictOf(q) });
  }

  override settle(q: AdmissionQuery, now: Instant): void {
    this.#within(() => super.settle(q, now));
    this.#tellOuter({ op: "settle", verdict: verdictOf(q) }, now);
  }

  override poll(q: AdmissionQuery, now: Instant): boolean {
    const answered = this.#within(() => super.poll(q, now));
    this.#tellOuter({ op: "poll", verdict: verdictOf(q) }, now);
    return answered;
  }

  override spoil(q: AdmissionQuery, reason: RejectReason): void {
    super.spoil(q, reason);
    this.#tellOuter({ op: "spoil", reason, query: q.id });
  }

  override releaseBackends(q: AdmissionQuery, positions: readonly number[]): number {
    const bytes = this.#within(() => super.releaseBackends(q, positions));
    this.#tellOuter({ op: "releaseBackends", query: q.id, positions, bytes });
    return bytes;
  }

  override releaseRest(q: AdmissionQuery): number {
    const bytes = this.#within(() => super.releaseRest(q));
    this.#tellOuter({ op: "releaseRest", query: q.id, bytes });
    return bytes;
  }

  override releaseQuery(q: AdmissionQuery, peak: number): boolean {
    const done = this.#within(() => super.releaseQuery(q, peak));
    this.#tellOuter({ op: "releaseQuery", query: q.id, peak, done });
    return done;
  }

  override setBackendUsage(pool: string, usage: BackendUsage): void {
    super.setBackendUsage(pool, usage);
    this.#tell({ op: "usage", pool, usage }, null);
  }

  override refreshBackendUsage(): void {
    this.#within(() => super.refreshBackendUsage());
    this.#tellOuter({ op: "refresh" });
  }

  override collectUpdate(): TopicEntry[] {
    const entries = this.#within(() => super.collectUpdate());
    this.#tell({ op: "collect", entries: entries.map(plainEntry) }, null);
    return entries;
  }

  override applyUpdate(update: TopicUpdate, now: Instant): void {
    super.applyUpdate(update, now);
    this.#tell({ op: "apply", isDelta: update.isDelta, entries: update.entries.map(plainEntry) }, now);
  }

  override setProcessMemory(use: number, limit: number): void {
    super.setProcessMemory(use, limit);
    this.#tell({ op: "processMemory", use, limit: Number.isFinite(limit) ? limit : null }, null);
  }

  #within<T>(step: () => T): T {
    this.#depth++;
    try {
      return step();
    } finally {
      this.#depth--;
    }
  }

  #tellOuter(call: ControllerCall, now: Instant | null = null): void {
    if (this.#depth === 0) this.#tell(call, now);
  }
}

/** A driver's request may carry more, and read-only accessors: only what admission sees is kept. */
const plainRequest = (r: AdmissionRequest): Omit<AdmissionRequest, "shape"> => ({
  queryId: r.queryId,
  coordinator: r.coordinator,
  pool: r.pool,
  user: r.user,
  userGroups: r.userGroups,
  blacklistedExecutors: r.blacklistedExecutors,
  placementOffset: r.placementOffset,
});

export function verdictOf(q: AdmissionQuery): Verdict {
  const { memory, plan, state, path } = q;
  const runs = memory !== null && (state === "running" || state === "released");
  return {
    query: q.id,
    state,
    path,
    rejectReason: q.rejectReason,
    queueReason: q.wasQueued ? (q.latestReason ?? q.initialReason) : null,
    group: runs ? plan!.schedule.group : null,
    hosts: runs ? plan!.schedule.hosts : null,
    perHost: runs ? memory.perHost : null,
    onCoordinator: runs ? memory.onCoordinator : null,
    cluster: runs ? memory.cluster : null,
    memLimit: runs ? memory.memLimit : null,
    coordinatorMemLimit: runs ? memory.coordinatorMemLimit : null,
  };
}
