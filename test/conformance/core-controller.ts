/**
 * The core behind `ControllerPort`: translation only, no rule lives here. A coordinator's own controller is called
 * directly, the one of `admissiond` through its service.
 */
import { AdmissionService } from "../../src/core/admission/admission-service.ts";
import { AdmissionController } from "../../src/core/admission/controller.ts";
import { controllerOptions } from "../../src/core/admission/controller-options.ts";
import { NO_USAGE } from "../../src/core/admission/pool-stats.ts";
import type { AdmissionQuery } from "../../src/core/admission/query.ts";
import { queueReasonText, rejectReasonText, stalenessText, timeoutError } from "../../src/core/admission/reasons.ts";
import type { AdmissionRequest } from "../../src/core/admission/request.ts";
import { membershipOf } from "../../src/core/cluster/membership.ts";
import type { PoolConfig } from "../../src/core/pool-config.ts";
import { RequestError } from "../../src/core/request-error.ts";
import { parseTopicKey, type TopicEntry, topicKey } from "../../src/core/statestore/topic.ts";
import { bytes, instant, millis } from "../../src/core/units.ts";
import { inPoolOrder, type ModelSettings } from "../model/controller.ts";
import { type Heavy, reportOf } from "../model/details.ts";
import {
  type Admission,
  type ControllerPort,
  counts,
  type Decision,
  type End,
  type Figures,
  record,
  type TopicItem,
} from "../model/port.ts";
import type { ModelCluster } from "../model/schedule.ts";

export const makeCore = (settings: ModelSettings): ControllerPort => new CorePort(settings);

export class CorePort implements ControllerPort {
  readonly core: AdmissionController;
  private readonly service: AdmissionService | null;
  private membershipVersion = 0;
  private readonly handles = new Map<string, AdmissionQuery>();

  constructor(settings: ModelSettings) {
    this.core = new AdmissionController(
      controllerOptions({
        hostId: settings.host,
        mode: settings.admissiond ? "global" : "distributed",
        repaired: settings.repaired,
        dropsSchedulesWhenQueued: settings.dropsSchedulesWhenQueued,
        poolOrder: inPoolOrder(settings.poolOrder),
        flags: {
          queueWaitTimeout: settings.queueWaitTimeoutMs,
          clampQueryMemLimitBackendMemLimit: settings.clampToHosts,
          useDedicatedCoordinatorEstimates: settings.dedicatedCoordinatorEstimates,
          balanceQueriesAcrossExecutorGroups: settings.balanceGroups,
          staleTopicThreshold: millis(settings.staleThresholdMs),
        },
      }),
    );
    this.service = settings.admissiond ? new AdmissionService(this.core) : null;
  }

  setMembership(cluster: ModelCluster): void {
    if (cluster.version <= this.membershipVersion) return;
    this.membershipVersion = cluster.version;
    (this.service ?? this.core).setMembership(
      membershipOf({
        // The core's empty membership is version 1, and versions only grow.
        version: cluster.version + 1,
        backends: cluster.backends,
        blacklisted: new Set(cluster.blacklisted),
        removedCoordinators: new Set(cluster.removedCoordinators),
      }),
    );
  }

  submit(request: AdmissionRequest, pool: PoolConfig, root: PoolConfig, now: number): Decision {
    if (this.service !== null) return this.handOver(this.service, request, pool, root, now);
    return this.unlessKnown(() => this.core.submit(request, pool, root, instant(now)));
  }

  submitCancelled(request: AdmissionRequest, pool: PoolConfig, root: PoolConfig, now: number): Decision {
    if (this.service !== null) return this.handOver(this.service, request, pool, root, now, true);
    return this.unlessKnown(() => this.core.submitCancelled(request, pool, root, instant(now)));
  }

  resetInformational(pool: string): void {
    this.core.pool(pool)?.stats.resetInformational();
  }

  /** AdmitQuery and a worker's turn; `cancelled`: the cancellation came in between. */
  private handOver(
    service: AdmissionService,
    request: AdmissionRequest,
    pool: PoolConfig,
    root: PoolConfig,
    now: number,
    cancelled = false,
  ): Decision {
    if (!service.accept(request)) return { kind: "error", text: DUPLICATE };
    if (cancelled) service.cancel(request.queryId);
    return this.told(service.decide(request.queryId, pool, root, instant(now))!);
  }

  private unlessKnown(submit: () => AdmissionQuery): Decision {
    try {
      return this.told(submit());
    } catch (error) {
      if (error instanceof RequestError) return { kind: "error", text: DUPLICATE };
      throw error;
    }
  }

  private told(q: AdmissionQuery): Decision {
    this.handles.set(q.id, q);
    if (q.state === "running") return admissionOf(q);
    if (q.state === "cancelled") return { kind: "cancelled" };
    if (q.state === "queued")
      return { kind: "queue", reason: q.initialReason!, text: queueReasonText(q.initialReason!) };
    return { kind: "reject", reason: q.rejectReason!, text: rejectReasonText(q.rejectReason!) };
  }

  dequeuePass(now: number): { query: string; end: End }[] {
    const ends: { query: string; end: End }[] = [];
    const told = (q: AdmissionQuery): void => {
      ends.push({ query: q.id, end: endOf(q) });
    };
    (this.service ?? this.core).dequeuePass(instant(now), {
      admitted: told,
      rejected: told,
      cancelled: told,
      stillQueued: () => undefined,
    });
    return ends;
  }

  isPending(): boolean {
    return this.core.isPassDue;
  }
  timeoutOf(query: string): number | null {
    const q = this.handles.get(query);
    return q?.state === "queued" ? q.timeout : null;
  }
  markCancelled(query: string): boolean {
    const q = this.handles.get(query);
    const isOpen = q !== undefined && q.state === "queued" && !q.isCancelMarked;
    if (this.service !== null) return this.service.cancel(query) && isOpen;
    if (isOpen) this.core.markCancelled(q);
    return isOpen;
  }
  waiterWakes(query: string, now: number): End | null {
    const q = this.handles.get(query);
    if (q === undefined) return null;
    const waits = q.state === "queued";
    if (this.service === null) this.core.timeOut(q, instant(now));
    else this.service.poll(query, instant(now));
    return waits && q.state !== "queued" ? endOf(q) : null;
  }
  releaseBackends(coordinator: string, query: string, hosts: readonly string[]): void {
    if (this.service !== null) {
      this.service.releaseBackends(query, hosts);
      return;
    }
    const q = this.runningQuery(coordinator, query);
    if (q === undefined) return;
    const positions = hosts.map((h) => q.plan!.schedule.hosts.indexOf(h)).filter((i) => i >= 0);
    this.core.releaseBackends(q, positions);
  }
  releaseQuery(coordinator: string, query: string, peak: number): void {
    if (this.service !== null) {
      this.service.release(query, peak);
      return;
    }
    const q = this.runningQuery(coordinator, query);
    if (q !== undefined) this.core.releaseQuery(q, peak);
  }
  private runningQuery(coordinator: string, query: string): AdmissionQuery | undefined {
    const q = this.core.find(query);
    return q?.state === "running" && q.request.coordinator === coordinator ? q : undefined;
  }
  heartbeat(coordinator: string, version: number, queries: readonly string[]): void {
    this.service?.heartbeat(coordinator, version, new Set(queries));
  }
  knows(query: string): boolean {
    if (this.service !== null) return this.service.knows(query);
    return this.core.find(query) !== undefined;
  }
  numQueries(): number {
    return this.service?.numQueries ?? 0;
  }
  highWaterMark(): number {
    return this.service?.highWaterMark ?? 0;
  }
  setServiceMemory(usage: number, limit: number): void {
    this.core.setProcessMemory(usage, limit);
  }

  setBackendReserved(pool: string, reserved: number, queries: readonly Heavy[]): void {
    const r = reportOf(queries);
    this.core.setBackendUsage(pool, {
      ...NO_USAGE,
      memReserved: bytes(reserved),
      memUsage: bytes(r.total),
      heavyQueries: r.heavy.map((h) => ({ queryId: h.query, consumed: bytes(h.consumed) })),
      minMemConsumed: bytes(r.min),
      maxMemConsumed: bytes(r.max),
      totalMemConsumed: bytes(r.total),
      numRunning: r.numRunning,
    });
  }

  publish(): TopicItem[] | null {
    const entries = this.core.collectUpdate();
    return entries.length === 0 ? null : entries.map((e) => ({ key: topicKey(e), value: e }));
  }
  apply(update: { readonly full: boolean; readonly items: readonly TopicItem[] }, now: number): void {
    const entries = update.items.map(({ key, value }) => (value === null ? deletionOf(key) : (value as TopicEntry)));
    this.core.applyUpdate({ isDelta: !update.full, entries }, instant(now));
  }
  stalenessText(now: number): string {
    return stalenessText(this.core.staleAge(instant(now)));
  }

  figures(): Figures {
    const { core } = this;
    const book = core.hosts;
    const hosts = Array.from(
      { length: book.size },
      (_, h) =>
        [
          book.address(h),
          {
            memReserved: book.memReserved[h]!,
            memAdmitted: book.admittedBySelf(h),
            numAdmitted: book.numAdmittedBySelf(h),
            slotsInUse: book.slotsBySelf(h),
          },
        ] as const,
    );
    const running = new Map<string, string[]>();
    for (const q of core.runningQueries())
      running.set(q.request.coordinator, [...(running.get(q.request.coordinator) ?? []), q.id].sort());
    return {
      pools: record(new Map(core.pools.map((p) => [p.name, p])), (p) => ({
        aggRunning: p.stats.aggRunning,
        aggQueued: p.stats.aggQueued,
        aggMemReserved: p.stats.aggMemReserved,
        aggUsers: counts(p.stats.aggLoads.entries()),
        localMemAdmitted: p.stats.localMemAdmitted,
        localTrivial: p.stats.localTrivialRunning,
        localRunning: p.stats.localRunning,
        localQueued: p.stats.localQueued,
        localMemReserved: p.stats.localMemReserved,
        localUsers: counts(p.stats.localLoads.entries()),
        totals: {
          admitted: p.stats.totalAdmitted,
          queued: p.stats.totalQueued,
          dequeued: p.stats.totalDequeued,
          rejected: p.stats.totalRejected,
          timedOut: p.stats.totalTimedOut,
          released: p.stats.totalReleased,
          timeInQueueMs: p.stats.timeInQueueMs,
        },
        waitEma: p.stats.waitTimeMsEma,
        peaks: Object.fromEntries([...p.stats.peakMemHistogram].flatMap((n, bin) => (n > 0 ? [[bin, n]] : []))),
        queue: [...p.queue].map((q) => ({
          query: q.id,
          reason: q.latestReason!,
          text: queueReasonText(q.latestReason!),
        })),
      })),
      hosts: record(new Map(hosts.filter(([, h]) => Object.values(h).some((n) => n !== 0))), (h) => h),
      rootUsers: counts(core.rootUserLoads),
      groupLoads: record(core.groupLoads, (g) => g.value),
      coordinatorLimited: core.totalDequeueFailedCoordinatorLimited,
      pending: core.isPassDue,
      running: record(running, (ids) => ids),
      numQueries: this.numQueries(),
      highWaterMark: this.highWaterMark(),
    };
  }
}

const DUPLICATE = "Cannot submit the same query for admission multiple times.";

function deletionOf(key: string): TopicEntry {
  const parsed = parseTopicKey(key);
  if (parsed === null) throw new Error(`not a topic key: ${key}`);
  return { ...parsed, stats: null };
}

function admissionOf(q: AdmissionQuery): Admission {
  const plan = q.plan!;
  const memory = q.memory!;
  return {
    kind: "admit",
    path: q.path!,
    group: plan.schedule.group,
    groupLoad: q.groupLoad,
    perHost: memory.perHost,
    perHostSource: memory.perHostSource,
    coordinator: memory.onCoordinator,
    coordinatorSource: memory.onCoordinatorSource,
    cluster: memory.cluster,
    perHostLimit: memory.memLimit,
    coordinatorLimit: memory.coordinatorMemLimit,
    backends: plan.schedule.backends.map((b, i) => ({ address: b.desc.address, mem: q.memOn(i), slots: b.slots })),
  };
}

function endOf(q: AdmissionQuery): End {
  const { waited } = q;
  if (q.state === "running") return { kind: "admit", waited, admission: admissionOf(q) };
  if (q.state === "rejected")
    return { kind: "reject", waited, reason: q.rejectReason!, text: rejectReasonText(q.rejectReason!) };
  if (q.state === "cancelled") return { kind: "cancelled", waited };
  const reason = q.attemptReason!;
  return { kind: "timedOut", waited, reason, error: timeoutError(q.timeout, q.request.pool, reason, q.details) };
}
