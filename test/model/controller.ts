/**
 * A slow reference model of one admission controller, for tests only.
 *
 * Written from the rules (admission sections 2 to 10) in the plainest way: maps, arrays, everything
 * recomputed, nothing remembered that can be derived. It shares no code with the core, so where both agree on
 * a random sequence, two readings of the rules agree. Don't make it faster; make it easier to check by eye.
 */
import type { QueueReason, RejectReason, StaleAge } from "../../src/core/admission/reasons.ts";
import type { AdmissionRequest } from "../../src/core/admission/request.ts";
import type { PoolConfig } from "../../src/core/pool-config.ts";
import type { Bytes } from "../../src/core/units.ts";
import { type Heavy, type HeavyReport, hostDetails, NO_HEAVY, poolDetails, reportOf } from "./details.ts";
import { allowed, type Memory, memoryToAdmit, needed } from "./memory.ts";
import {
  candidateGroups,
  groupsOf,
  type ModelCluster,
  type ModelGroup,
  type ModelSchedule,
  scheduleOn,
} from "./schedule.ts";
import { reasonText } from "./texts.ts";

export interface ModelSettings {
  /** `hostname:port` of the process; its own topic entries come back and are ignored. */
  readonly host: string;
  readonly queueWaitTimeoutMs: number;
  readonly clampToHosts: boolean;
  readonly dedicatedCoordinatorEstimates: boolean;
  readonly balanceGroups: boolean;
  readonly staleThresholdMs: number;
  /** False: with the product's faults T-10 and T-28. */
  readonly repaired: boolean;
  /** One controller for all coordinators (7.7). */
  readonly admissiond: boolean;
  /** Pools that a pass visits first, in this order; the others follow by name (T-11). */
  readonly poolOrder: readonly string[];
  /** Compressed requests: a query that is enqueued loses its schedules (5.1). */
  readonly dropsSchedulesWhenQueued: boolean;
}

export function inPoolOrder(first: readonly string[]): (a: string, b: string) => number {
  const place = (pool: string): number => (first.includes(pool) ? first.indexOf(pool) : first.length);
  return (a, b) => place(a) - place(b) || (a < b ? -1 : a > b ? 1 : 0);
}

export interface ModelAdmission {
  readonly kind: "admit";
  readonly path: "immediately" | "trivially" | "fromQueue";
  readonly group: string;
  /** Load of the group with this query, 0 when the group isn't a known one. */
  readonly groupLoad: number;
  readonly memory: Memory;
  readonly backends: readonly { readonly address: string; readonly mem: number; readonly slots: number }[];
}

export type ModelDecision =
  | ModelAdmission
  | { readonly kind: "queue"; readonly reason: QueueReason }
  | { readonly kind: "cancelled" }
  | { readonly kind: "reject"; readonly reason: RejectReason }
  | { readonly kind: "error"; readonly text: string };

/** What stands in the outcome cell of a query that waited, with the wait. */
export type ModelEnd =
  | { readonly kind: "admit"; readonly waited: number; readonly admission: ModelAdmission }
  | { readonly kind: "reject"; readonly waited: number; readonly reason: RejectReason }
  | { readonly kind: "timedOut"; readonly waited: number; readonly reason: QueueReason; readonly error: string }
  | { readonly kind: "cancelled"; readonly waited: number };

export interface ModelHost {
  memReserved: number;
  memAdmitted: number;
  numAdmitted: number;
  slotsInUse: number;
}

export interface ModelPoolPayload {
  readonly running: number;
  readonly queued: number;
  readonly memReserved: number;
  readonly userLoads: ReadonlyMap<string, number>;
  readonly heavy: HeavyReport;
}

/** Keys as on the wire; `stats` null is a deletion. */
export type ModelTopicEntry =
  | { readonly pool: string; readonly host: string; readonly stats: ModelPoolPayload | null }
  | { readonly pool: null; readonly host: string; readonly stats: ReadonlyMap<string, ModelHost> | null };

export interface ModelPool {
  aggRunning: number;
  aggQueued: number;
  aggMemReserved: number;
  aggUserLoads: Map<string, number>;
  localMemAdmitted: number;
  localTrivial: number;
  localRunning: number;
  localQueued: number;
  localMemReserved: number;
  localHeavy: HeavyReport;
  localUserLoads: Map<string, number>;
  remote: Map<string, ModelPoolPayload>;
  totals: {
    admitted: number;
    queued: number;
    dequeued: number;
    rejected: number;
    timedOut: number;
    released: number;
    timeInQueueMs: number;
  };
  waitEma: number;
  peakHistogram: number[];
}

interface Waiting {
  readonly request: AdmissionRequest;
  readonly pool: PoolConfig;
  readonly root: PoolConfig;
  readonly since: number;
  readonly initialReason: QueueReason;
  /** Reason of the last real attempt (5.6). */
  reason: QueueReason;
  /** What the profile shows; also written by maxToDequeue. */
  latestReason: QueueReason;
  details: string;
  /** The outcome cell, written once. */
  cell: "admitted" | "rejected" | "cancelled" | "timedOut" | null;
  snapshot: { version: number; schedules: readonly ModelSchedule[] } | null;
}

interface Running {
  readonly pool: string;
  readonly group: string;
  readonly user: string | null;
  readonly trivial: boolean;
  readonly held: Map<string, { readonly mem: number; readonly slots: number }>;
}

const NOT_APPLICABLE = "Not Applicable";
const NO_BACKENDS = "Cannot schedule query: no registered backends available.";

export class ModelController {
  readonly settings: ModelSettings;
  cluster: ModelCluster = { version: 0, backends: [], blacklisted: [], removedCoordinators: [] };
  readonly hosts = new Map<string, ModelHost>();
  readonly remoteHosts = new Map<string, Map<string, ModelHost>>();
  readonly pools = new Map<string, ModelPool>();
  rootUserLoads = new Map<string, number>();
  readonly configs = new Map<string, PoolConfig>();
  readonly queues = new Map<string, Waiting[]>();
  readonly running = new Map<string, Map<string, Running>>();
  readonly groupLoads = new Map<string, number>();
  readonly marked = new Set<string>();
  lastUpdate: number | null = null;
  /** The dequeue thread starts with one pass due (5.4). */
  pending = true;
  coordinatorLimited = 0;
  /** Own reservations per pool, as the memory trackers of this process stand now (7.2). */
  readonly trackers = new Map<string, { reserved: number; queries: readonly Heavy[] }>();
  /** REJ-C4: heap in use and its limit, admissiond only. */
  serviceMemory: { usage: number; limit: number } | null = null;
  private readonly unnoticed = new Map<string, Waiting>();
  private readonly heartbeats = new Map<string, number>();

  constructor(settings: ModelSettings) {
    this.settings = settings;
  }

  // ---- membership -------------------------------------------------------------------------------------

  setMembership(cluster: ModelCluster): void {
    this.cluster = cluster;
    const groups = groupsOf(cluster);
    for (const name of [...this.groupLoads.keys()])
      if (!groups.some((g) => g.name === name)) this.groupLoads.delete(name);
    for (const g of groups) {
      if (this.groupLoads.has(g.name)) continue;
      let load = 0;
      for (const b of g.executors) load = Math.max(load, this.hosts.get(b.address)?.numAdmitted ?? 0);
      this.groupLoads.set(g.name, load);
    }
    if (!this.settings.admissiond) return;
    // 9.5: queries of a vanished coordinator are released with all they hold.
    const present = cluster.backends.map((b) => b.address);
    for (const [coordinator, queries] of [...this.running])
      if (!present.includes(coordinator))
        for (const query of [...queries.keys()]) this.releaseQuery(coordinator, query, -1, true);
  }

  // ---- submission (3) ---------------------------------------------------------------------------------

  /** `cancelled`: the client gave up before the decision (5.6). A query that queues finds out at once. */
  submit(request: AdmissionRequest, pool: PoolConfig, root: PoolConfig, now: number, cancelled = false): ModelDecision {
    if (this.isKnown(request))
      return { kind: "error", text: "Cannot submit the same query for admission multiple times." };
    this.configs.set(request.pool, pool);
    const stats = this.pool(request.pool);
    const waiting: Waiting = {
      request,
      pool,
      root,
      since: now,
      // Overwritten below before anybody can read them.
      initialReason: { rule: "NO-EXECUTORS" },
      reason: { rule: "NO-EXECUTORS" },
      latestReason: { rule: "NO-EXECUTORS" },
      details: NOT_APPLICABLE,
      cell: null,
      snapshot: null,
    };
    const attempt = this.attempt(waiting, pool, false, now);
    if (attempt.kind === "reject") {
      // 5.6: the decision can't be published any more, and nothing is counted.
      if (cancelled) return { kind: "cancelled" };
      stats.totals.rejected += 1;
      return attempt;
    }
    const trivially = attempt.kind === "fits" && attempt.trivial;
    if (!trivially && this.serviceMemory !== null && this.serviceMemory.limit > 0) {
      const { usage, limit } = this.serviceMemory;
      if (usage > limit) {
        stats.totals.rejected += 1;
        return { kind: "reject", reason: { rule: "REJ-C4", usage, limit } };
      }
    }
    if (attempt.kind === "fits") {
      if (cancelled) return { kind: "cancelled" };
      const admission = this.admit(waiting, attempt, trivially ? "trivially" : "immediately");
      this.waited(stats, 0);
      return admission;
    }
    stats.aggQueued += 1;
    stats.localQueued += 1;
    stats.totals.queued += 1;
    if (hasQuotas(pool) || hasQuotas(root)) countUser(stats, request.user);
    const queue = this.queues.get(request.pool) ?? [];
    this.queues.set(request.pool, queue);
    queue.push({
      ...waiting,
      reason: attempt.reason,
      initialReason: attempt.reason,
      latestReason: attempt.reason,
      cell: cancelled ? "cancelled" : null,
      snapshot: this.settings.dropsSchedulesWhenQueued ? null : waiting.snapshot,
    });
    if (!cancelled) return { kind: "queue", reason: attempt.reason };
    this.waiterWakes(request.queryId, now);
    return { kind: "cancelled" };
  }

  private isKnown(request: AdmissionRequest): boolean {
    for (const queue of this.queues.values()) if (queue.some((w) => w.request.queryId === request.queryId)) return true;
    return false;
  }

  // ---- one attempt: steps 3 to 5 ------------------------------------------------------------------------

  private attempt(waiting: Waiting, pool: PoolConfig, fromQueue: boolean, now: number): Attempt {
    const { request } = waiting;
    const byCluster = this.rejectForCluster(request.pool, pool, fromQueue, now);
    if (byCluster !== null) return { kind: "reject", reason: byCluster };

    const coordinator = this.cluster.backends.find((b) => b.address === request.coordinator);
    if (
      waiting.snapshot === null ||
      waiting.snapshot.version < this.cluster.version ||
      waiting.snapshot.schedules.length === 0
    ) {
      if (coordinator === undefined) {
        waiting.snapshot = { version: this.cluster.version, schedules: [] };
        if (this.cluster.removedCoordinators.includes(request.coordinator))
          return { kind: "reject", reason: { rule: "REJ-C2", coordinator: request.coordinator } };
        return this.notNow(waiting, { rule: "NO-COORDINATOR" }, false);
      }
      const schedules: ModelSchedule[] = [];
      for (const group of this.orderedGroups(request, waiting.pool)) {
        const schedule = scheduleOn(group, this.cluster, request, coordinator);
        if (schedule === "error") {
          waiting.snapshot = { version: this.cluster.version, schedules: [] };
          return { kind: "reject", reason: { rule: "REJ-C1", error: NO_BACKENDS } };
        }
        if (schedule !== null) schedules.push(schedule);
      }
      waiting.snapshot = { version: this.cluster.version, schedules };
    }
    if (waiting.snapshot.schedules.length === 0) return this.notNow(waiting, { rule: "NO-EXECUTORS" }, false);
    if (coordinator === undefined) return this.notNow(waiting, { rule: "NO-COORDINATOR" }, false);

    let coordinatorLimited = false;
    let last: QueueReason = { rule: "NO-EXECUTORS" };
    for (const schedule of waiting.snapshot.schedules) {
      const own = schedule.backends.find((b) => b.isCoordBackend);
      if (own === undefined) throw new Error("a schedule without its coordinator");
      let largest = 0;
      for (const b of schedule.backends) if (!b.isCoordBackend) largest = Math.max(largest, b.minReservation);
      const memory = memoryToAdmit({
        shape: request.shape,
        pool,
        largestMinReservation: largest,
        coordMinReservation: own.minReservation,
        numBackends: schedule.backends.length,
        coordinatorIsExecutor: own.desc.isExecutor,
        coordinatorInstances: own.instances,
        smallestExecutor: schedule.smallestExecutor,
        coordinatorHost: coordinator.admitMemLimit,
        clampToHosts: this.settings.clampToHosts,
        dedicatedCoordinatorEstimates: this.settings.dedicatedCoordinatorEstimates,
      });
      const candidate: Candidate = { schedule, memory, largest, coordReservation: own.minReservation };

      if (isTrivial(request) && this.pool(request.pool).localTrivial + 1 <= 3)
        return { kind: "fits", trivial: true, candidate };
      const impossible = this.rejectForSchedule(request, pool, candidate);
      if (impossible !== null) return { kind: "reject", reason: impossible };
      if (!fromQueue) {
        const quota = this.quotaReason(request, pool, waiting.root);
        if (quota !== null) return { kind: "reject", reason: quota };
      }
      const why = this.canAdmit(waiting, pool, candidate, fromQueue, now);
      if (why === null) return { kind: "fits", trivial: false, candidate };
      last = why.reason;
      if (why.onCoordinator) coordinatorLimited = true;
    }
    return this.notNow(waiting, last, coordinatorLimited);
  }

  private notNow(waiting: Waiting, reason: QueueReason, coordinatorLimited: boolean): Attempt {
    waiting.reason = reason;
    return { kind: "notNow", reason, coordinatorLimited };
  }

  private orderedGroups(request: AdmissionRequest, captured: PoolConfig): ModelGroup[] {
    const groups = candidateGroups(this.cluster, request, captured);
    if (!this.settings.balanceGroups) return groups;
    const free = (g: ModelGroup): [number, number] => {
      let mem = 0;
      let slots = 0;
      for (const b of g.executors) {
        mem += b.admitMemLimit - this.hostReserved(b.address);
        slots += b.admissionSlots - this.slotsInUse(b.address);
      }
      return [mem, slots];
    };
    // Array.sort is stable, so ties stay in name order, as they are meant to.
    return [...groups].sort((a, b) => {
      const [memA, slotsA] = free(a);
      const [memB, slotsB] = free(b);
      return memB - memA || slotsB - slotsA;
    });
  }

  // ---- rejections (3.1, 3.2) ----------------------------------------------------------------------------

  private rejectForCluster(name: string, pool: PoolConfig, fromQueue: boolean, now: number): RejectReason | null {
    const { maxMemResources, minQueryMemLimit, maxQueryMemLimit } = pool;
    if (pool.maxRequests === 0) return { rule: "REJ-A1" };
    if (maxMemResources === 0) return { rule: "REJ-A2" };
    if (maxMemResources > 0 && minQueryMemLimit > maxMemResources)
      return { rule: "REJ-A3", minQueryMemLimit, maxMemResources };
    if (maxQueryMemLimit > 0 && minQueryMemLimit > maxQueryMemLimit)
      return { rule: "REJ-A4", minQueryMemLimit, maxQueryMemLimit };
    const queued = this.pool(name).aggQueued;
    if (!fromQueue && queued >= pool.maxQueued)
      return { rule: "REJ-A5", limit: pool.maxQueued, queued, stale: this.staleAge(now) };
    return null;
  }

  private rejectForSchedule(request: AdmissionRequest, pool: PoolConfig, c: Candidate): RejectReason | null {
    const { options } = request.shape;
    const { backends } = c.schedule;
    if (c.schedule.group !== "default")
      for (const b of backends)
        if (b.slots > b.desc.admissionSlots)
          return { rule: "REJ-B1", host: b.address, needed: b.slots, slots: b.desc.admissionSlots };

    if (options.bufferPoolLimit > 0) {
      let worst = backends[0];
      for (const b of backends) if (worst !== undefined && b.minReservation > worst.minReservation) worst = b;
      if (worst !== undefined && worst.minReservation > options.bufferPoolLimit)
        return { rule: "REJ-B2a", host: worst.address, needed: worst.minReservation as Bytes };
    } else {
      const above = reservationAboveLimit(request.pool, c);
      if (above !== null) return { rule: "REJ-B2b", ...above };
    }

    let most = backends[0];
    let threads = 0;
    for (const b of backends) {
      threads += b.threads;
      if (most !== undefined && b.threads > most.threads) most = b;
    }
    if (options.threadReservationLimit > 0 && most !== undefined && most.threads > options.threadReservationLimit)
      return { rule: "REJ-B3", host: most.address, threads: most.threads, limit: options.threadReservationLimit };
    if (options.threadReservationAggregateLimit > 0 && threads > options.threadReservationAggregateLimit)
      return { rule: "REJ-B4", backends: backends.length, threads, limit: options.threadReservationAggregateLimit };

    const limit = pool.maxMemResources;
    if (limit <= 0) return null;
    let reservations = 0;
    for (const b of backends) reservations += b.minReservation;
    if (reservations > limit) return { rule: "REJ-B6", limit, needed: reservations as Bytes };
    if (c.memory.cluster > limit) return { rule: "REJ-B7", needed: c.memory.cluster as Bytes, limit };
    if (this.settings.clampToHosts) return null;
    const executors = backends.filter((b) => !b.isCoordBackend);
    let smallest = executors[0];
    for (const b of executors)
      if (smallest !== undefined && b.desc.admitMemLimit < smallest.desc.admitMemLimit) smallest = b;
    if (smallest !== undefined && c.memory.perHost > smallest.desc.admitMemLimit)
      return {
        rule: "REJ-B8",
        host: smallest.address,
        needed: c.memory.perHost as Bytes,
        limit: smallest.desc.admitMemLimit,
      };
    const coordinator = backends.find((b) => b.isCoordBackend);
    if (coordinator !== undefined && c.memory.coordinator > coordinator.desc.admitMemLimit)
      return {
        rule: "REJ-B9",
        host: coordinator.address,
        needed: c.memory.coordinator as Bytes,
        limit: coordinator.desc.admitMemLimit,
      };
    return null;
  }

  // ---- quotas (8) ---------------------------------------------------------------------------------------

  private quotaReason(request: AdmissionRequest, pool: PoolConfig, root: PoolConfig): RejectReason | null {
    const inPool = this.pool(request.pool).aggUserLoads.get(request.user) ?? 0;
    const inRoot = this.rootUserLoads.get(request.user) ?? 0;
    return quotaAt(request, pool, request.pool, inPool) ?? quotaAt(request, root, "root", inRoot);
  }

  // ---- can-admit (4) ------------------------------------------------------------------------------------

  private canAdmit(
    waiting: Waiting,
    pool: PoolConfig,
    c: Candidate,
    fromQueue: boolean,
    now: number,
  ): { readonly reason: QueueReason; readonly onCoordinator: boolean } | null {
    const { request } = waiting;
    const stats = this.pool(request.pool);
    const stale = this.staleAge(now);
    if (!fromQueue && stats.localQueued > 0)
      return { reason: { rule: "ADM-1", queued: stats.localQueued, stale }, onCoordinator: false };
    if (pool.maxRequests >= 0 && stats.aggRunning >= pool.maxRequests)
      return {
        reason: { rule: "ADM-2", running: stats.aggRunning, limit: pool.maxRequests, stale },
        onCoordinator: false,
      };
    const exempt =
      c.schedule.group === "default" ||
      (c.schedule.group === "empty group (using coordinator only)" && request.pool === "default-pool");
    if (!exempt)
      for (const b of c.schedule.backends) {
        const inUse = this.slotsInUse(b.address);
        if (inUse + b.slots > b.desc.admissionSlots)
          return {
            reason: { rule: "ADM-3", host: b.address, needed: b.slots, inUse, slots: b.desc.admissionSlots },
            onCoordinator: b.desc.isCoordinator,
          };
      }
    const limit = pool.maxMemResources;
    if (limit < 0) return null;
    const reserved = Math.max(stats.aggMemReserved, stats.localMemAdmitted);
    if (reserved + c.memory.cluster > limit) {
      waiting.details = this.topOfPool(request.pool);
      return {
        reason: {
          rule: "ADM-4",
          pool: request.pool,
          limit: limit as Bytes,
          needed: c.memory.cluster as Bytes,
          available: Math.max(0, limit - reserved) as Bytes,
          stale,
        },
        onCoordinator: false,
      };
    }
    for (const b of c.schedule.backends) {
      const mem = memoryOn(b.isCoordBackend, c.memory);
      const onHost = this.hostReserved(b.address);
      if (onHost + mem > b.desc.admitMemLimit) {
        waiting.details = this.topOfHost(b.address);
        return {
          reason: {
            rule: "ADM-5",
            host: b.address,
            limit: b.desc.admitMemLimit,
            needed: mem as Bytes,
            available: Math.max(0, b.desc.admitMemLimit - onHost) as Bytes,
            stale,
          },
          onCoordinator: b.desc.isCoordinator,
        };
      }
    }
    if (request.shape.options.bufferPoolLimit <= 0) {
      const above = reservationAboveLimit(request.pool, c);
      if (above !== null) return { reason: { rule: "ADM-6", ...above }, onCoordinator: false };
    }
    return null;
  }

  private topOfPool(pool: string): string {
    const stats = this.pool(pool);
    return poolDetails(pool, [stats.localHeavy, ...[...stats.remote.values()].map((r) => r.heavy)]);
  }

  private topOfHost(host: string): string {
    const reports = new Map<string, HeavyReport>();
    for (const [name, stats] of this.pools) {
      const report = host === this.settings.host ? stats.localHeavy : stats.remote.get(host)?.heavy;
      if (report !== undefined) reports.set(name, report);
    }
    return hostDetails(host, reports);
  }

  private slotsInUse(host: string): number {
    let sum = this.hosts.get(host)?.slotsInUse ?? 0;
    for (const map of this.remoteHosts.values()) sum += map.get(host)?.slotsInUse ?? 0;
    return sum;
  }

  private hostReserved(host: string): number {
    let admitted = this.hosts.get(host)?.memAdmitted ?? 0;
    for (const map of this.remoteHosts.values()) admitted += map.get(host)?.memAdmitted ?? 0;
    return Math.max(this.hosts.get(host)?.memReserved ?? 0, admitted);
  }

  // ---- admission (5.8) ------------------------------------------------------------------------------------

  private admit(waiting: Waiting, fits: Fits, path: ModelAdmission["path"]): ModelAdmission {
    const { request } = waiting;
    const { schedule, memory } = fits.candidate;
    const stats = this.pool(request.pool);
    const held = new Map<string, { mem: number; slots: number }>();
    for (const b of schedule.backends) {
      const mem = memoryOn(b.isCoordBackend, memory);
      const host = this.host(b.address);
      host.memAdmitted += mem;
      host.numAdmitted += 1;
      host.slotsInUse += b.slots;
      held.set(b.address, { mem, slots: b.slots });
    }
    stats.localMemAdmitted += memory.cluster;
    stats.aggRunning += 1;
    stats.localRunning += 1;
    stats.totals.admitted += 1;
    if (fits.trivial) stats.localTrivial += 1;
    const tracked = hasQuotas(waiting.pool) || hasQuotas(waiting.root);
    if (tracked && path !== "fromQueue") countUser(stats, request.user);
    this.marked.add(request.pool);
    const load = this.groupLoads.get(schedule.group);
    if (load !== undefined) this.groupLoads.set(schedule.group, load + 1);
    const ofCoordinator = this.running.get(request.coordinator) ?? new Map<string, Running>();
    this.running.set(request.coordinator, ofCoordinator);
    ofCoordinator.set(request.queryId, {
      pool: request.pool,
      group: schedule.group,
      user: tracked ? request.user : null,
      trivial: fits.trivial,
      held,
    });
    return {
      kind: "admit",
      path,
      group: schedule.group,
      groupLoad: this.groupLoads.get(schedule.group) ?? 0,
      memory,
      backends: [...held].map(([address, { mem, slots }]) => ({ address, mem, slots })),
    };
  }

  // ---- one dequeue pass (5.5) -----------------------------------------------------------------------------

  /** Ends of queries in the order in which they came about. */
  dequeuePass(now: number): { readonly query: string; readonly end: ModelEnd }[] {
    this.pending = false;
    const ends: { query: string; end: ModelEnd }[] = [];
    if (groupsOf(this.cluster).length === 0 && !this.settings.repaired) return ends;
    for (const name of [...this.configs.keys()].sort(inPoolOrder(this.settings.poolOrder))) {
      const config = this.configs.get(name);
      const stats = this.pool(name);
      const queue = this.queues.get(name) ?? [];
      if (config === undefined || stats.localQueued === 0) continue;
      let k = this.maxToDequeue(name, config, now);
      if (k === 0) continue;
      while (k > 0 && queue.length > 0) {
        const head = queue[0];
        if (head === undefined) break;
        const attempt: Attempt | { kind: "drop" } =
          head.cell === "cancelled" ? { kind: "drop" } : this.attempt(head, config, true, now);
        if (attempt.kind === "notNow") {
          head.latestReason = attempt.reason;
          if (attempt.coordinatorLimited) this.coordinatorLimited += 1;
          break;
        }
        queue.shift();
        k -= 1;
        stats.aggQueued -= 1;
        stats.localQueued -= 1;
        stats.totals.dequeued += 1;
        const query = head.request.queryId;
        const waited = now - head.since;
        if (attempt.kind === "reject") {
          head.cell = "rejected";
          stats.totals.rejected += 1;
          this.forgiveUser(head);
          this.endOfPass(head, waited);
          ends.push({ query, end: { kind: "reject", waited, reason: attempt.reason } });
          return ends;
        }
        if (attempt.kind === "drop") {
          this.forgiveUser(head);
          this.endOfPass(head, waited);
          ends.push({ query, end: { kind: "cancelled", waited } });
          return ends;
        }
        head.cell = "admitted";
        const admission = this.admit(head, attempt, "fromQueue");
        this.endOfPass(head, waited);
        ends.push({ query, end: { kind: "admit", waited, admission } });
      }
      this.marked.add(name);
    }
    return ends;
  }

  private maxToDequeue(name: string, config: PoolConfig, now: number): number {
    const stats = this.pool(name);
    if (config.maxRequests <= 0) return stats.localQueued;
    const free = config.maxRequests - stats.aggRunning;
    if (free <= 0) {
      const head = this.queues.get(name)?.[0];
      if (head !== undefined)
        head.latestReason = {
          rule: "ADM-2",
          running: stats.aggRunning,
          limit: config.maxRequests,
          stale: this.staleAge(now),
        };
      return 0;
    }
    const ratio = stats.localQueued / Math.max(1, stats.aggQueued);
    return Math.min(stats.localQueued, Math.max(1, Math.trunc(ratio * free)));
  }

  // ---- the end of a wait (5.6) ------------------------------------------------------------------------------

  timeoutOf(query: string): number | null {
    const waiting = this.waiting(query);
    if (waiting === null) return null;
    return Math.max(0, waiting.pool.queueTimeout ?? this.settings.queueWaitTimeoutMs);
  }

  /** The client cancels: only the cell is written; the waiter or a dequeue pass cleans up. */
  markCancelled(query: string): boolean {
    const waiting = this.waiting(query);
    if (waiting === null || waiting.cell !== null) return false;
    waiting.cell = "cancelled";
    return true;
  }

  /**
   * The waiter wakes: because of its timeout, because the query was cancelled, or, in global mode, by a poll after
   * a pass or when nothing is due yet. Null: a pass ended the wait and has told how, or it goes on.
   */
  waiterWakes(query: string, now: number): ModelEnd | null {
    const decided = this.unnoticed.get(query);
    if (decided !== undefined) {
      this.unnoticed.delete(query);
      this.endWait(decided, now - decided.since);
      return null;
    }
    const waiting = this.waiting(query);
    if (waiting === null) return null;
    const timeout = Math.max(0, waiting.pool.queueTimeout ?? this.settings.queueWaitTimeoutMs);
    const waited = now - waiting.since;
    if (this.settings.admissiond && waiting.cell === null && waited < timeout) return null;
    const queue = this.queues.get(waiting.request.pool) ?? [];
    const stats = this.pool(waiting.request.pool);
    queue.splice(queue.indexOf(waiting), 1);
    stats.aggQueued -= 1;
    stats.localQueued -= 1;
    this.forgiveUser(waiting);
    this.endWait(waiting, waited);
    if (waiting.cell === "cancelled") {
      stats.totals.dequeued += 1;
      return { kind: "cancelled", waited };
    }
    waiting.cell = "timedOut";
    stats.totals.timedOut += 1;
    return {
      kind: "timedOut",
      waited,
      reason: waiting.reason,
      error: `Admission for query exceeded timeout ${timeout}ms in pool ${waiting.request.pool}. Queued reason: ${reasonText(waiting.reason)} Additional Details: ${waiting.details}`,
    };
  }

  /** In global mode nobody sleeps on the cell: what a pass decided is noticed by the next poll (7.7). */
  private endOfPass(waiting: Waiting, waited: number): void {
    if (this.settings.admissiond) this.unnoticed.set(waiting.request.queryId, waiting);
    else this.endWait(waiting, waited);
  }

  private endWait(waiting: Waiting, waited: number): void {
    this.marked.add(waiting.request.pool);
    this.waited(this.pool(waiting.request.pool), waited);
  }

  private waited(stats: ModelPool, ms: number): void {
    stats.totals.timeInQueueMs += ms;
    stats.waitEma = stats.waitEma === 0 ? ms : stats.waitEma * (1 - 0.2) + ms * 0.2;
  }

  /** T-28: in the product the load of a query that leaves its queue without running stays up. */
  private forgiveUser(waiting: Waiting): void {
    if (!this.settings.repaired) return;
    if (hasQuotas(waiting.pool) || hasQuotas(waiting.root))
      discountUser(this.pool(waiting.request.pool), waiting.request.user);
  }

  waiting(query: string): Waiting | null {
    for (const queue of this.queues.values()) for (const w of queue) if (w.request.queryId === query) return w;
    return null;
  }

  // ---- release (9) --------------------------------------------------------------------------------------------

  releaseBackends(coordinator: string, query: string, hosts: readonly string[]): void {
    const running = this.running.get(coordinator)?.get(query);
    if (running === undefined) return;
    let sum = 0;
    for (const address of hosts) {
      const share = running.held.get(address);
      if (share === undefined) continue;
      running.held.delete(address);
      const host = this.host(address);
      host.memAdmitted -= share.mem;
      host.numAdmitted -= 1;
      host.slotsInUse -= share.slots;
      sum += share.mem;
    }
    this.pool(running.pool).localMemAdmitted -= sum;
    this.marked.add(running.pool);
    this.pending = true;
  }

  releaseQuery(coordinator: string, query: string, peak: number, releaseRest: boolean): void {
    const running = this.running.get(coordinator)?.get(query);
    if (running === undefined) return;
    if (releaseRest && running.held.size > 0) this.releaseBackends(coordinator, query, [...running.held.keys()]);
    const stats = this.pool(running.pool);
    stats.aggRunning -= 1;
    stats.localRunning -= 1;
    stats.totals.released += 1;
    if (running.trivial) stats.localTrivial -= 1;
    if (running.user !== null) discountUser(stats, running.user);
    if (peak !== -1) {
      const bin = Math.min(128, Math.max(1, Math.ceil(peak / 2 ** 30))) - 1;
      stats.peakHistogram[bin] = (stats.peakHistogram[bin] ?? 0) + 1;
    }
    const load = this.groupLoads.get(running.group);
    if (load !== undefined) this.groupLoads.set(running.group, load - 1);
    this.running.get(coordinator)?.delete(query);
    this.marked.add(running.pool);
    this.pending = true;
  }

  /** 7.7, 9.5: what the coordinator no longer lists is released. Older versions are ignored. */
  heartbeat(coordinator: string, version: number, queries: readonly string[]): void {
    if (version <= (this.heartbeats.get(coordinator) ?? 0)) return;
    this.heartbeats.set(coordinator, version);
    for (const query of [...(this.running.get(coordinator)?.keys() ?? [])])
      if (!queries.includes(query)) this.releaseQuery(coordinator, query, -1, true);
  }

  // ---- topics (7) ---------------------------------------------------------------------------------------------

  /** Also makes the pool known here, so that it is reported with the next exchange. */
  setBackendReserved(pool: string, reserved: number, queries: readonly Heavy[]): void {
    this.pool(pool);
    this.trackers.set(pool, { reserved, queries });
  }

  /** What this process sends with an exchange, before it applies what came in; null: nothing. */
  publish(): ModelTopicEntry[] | null {
    for (const [name, stats] of this.pools) {
      const tracker = this.trackers.get(name);
      if (tracker !== undefined) stats.localHeavy = reportOf(tracker.queries);
      const reserved = tracker?.reserved ?? 0;
      if (reserved === stats.localMemReserved) continue;
      stats.localMemReserved = reserved;
      this.marked.add(name);
    }
    if (this.marked.size === 0) return null;
    const entries: ModelTopicEntry[] = [];
    for (const name of [...this.marked].sort()) {
      const stats = this.pool(name);
      entries.push({
        pool: name,
        host: this.settings.host,
        stats: {
          running: stats.localRunning,
          queued: stats.localQueued,
          memReserved: stats.localMemReserved,
          userLoads: new Map(stats.localUserLoads),
          heavy: stats.localHeavy,
        },
      });
    }
    this.marked.clear();
    const hosts = new Map<string, ModelHost>();
    for (const [address, h] of this.hosts) hosts.set(address, { ...h });
    entries.push({ pool: null, host: this.settings.host, stats: hosts });
    return entries;
  }

  apply(update: { readonly full: boolean; readonly entries: readonly ModelTopicEntry[] }, now: number): void {
    if (update.full) for (const stats of this.pools.values()) stats.remote.clear();
    const removed = new Set<string>();
    for (const entry of update.entries) {
      if (entry.host === this.settings.host) continue;
      if (entry.pool !== null) {
        const stats = this.pool(entry.pool);
        if (entry.stats === null) {
          stats.remote.delete(entry.host);
          removed.add(entry.host);
        } else stats.remote.set(entry.host, entry.stats);
      } else if (entry.stats === null) this.remoteHosts.delete(entry.host);
      else {
        const map = this.remoteHosts.get(entry.host) ?? new Map<string, ModelHost>();
        this.remoteHosts.set(entry.host, map);
        for (const [address, h] of entry.stats) map.set(address, { ...h });
      }
    }
    const reserved = new Map<string, number>();
    const add = (map: Map<string, number>, key: string, n: number): void => {
      map.set(key, (map.get(key) ?? 0) + n);
    };
    this.rootUserLoads = new Map();
    for (const stats of this.pools.values()) {
      stats.aggRunning = stats.localRunning;
      stats.aggQueued = stats.localQueued;
      stats.aggMemReserved = stats.localMemReserved;
      stats.aggUserLoads = new Map(stats.localUserLoads);
      add(reserved, this.settings.host, stats.localMemReserved);
      for (const [host, remote] of stats.remote) {
        stats.aggRunning += remote.running;
        stats.aggQueued += remote.queued;
        stats.aggMemReserved += remote.memReserved;
        for (const [user, load] of remote.userLoads) add(stats.aggUserLoads, user, load);
        add(reserved, host, remote.memReserved);
      }
      for (const [user, load] of stats.aggUserLoads) add(this.rootUserLoads, user, load);
    }
    for (const [host, bytes] of reserved) this.host(host).memReserved = bytes;
    for (const host of removed) {
      const known = this.hosts.get(host);
      if (known !== undefined && !reserved.has(host)) known.memReserved = 0;
    }
    this.lastUpdate = now;
    this.pending = true;
  }

  /** 7.6. */
  staleAge(now: number): StaleAge {
    if (this.lastUpdate === null) return -1;
    const age = now - this.lastUpdate;
    return age >= this.settings.staleThresholdMs ? age : null;
  }

  /** 10.4: the seven counters, the histogram and the average. */
  resetInformational(pool: string): void {
    const stats = this.pools.get(pool);
    if (stats === undefined) return;
    for (const name of Object.keys(stats.totals) as (keyof ModelPool["totals"])[]) stats.totals[name] = 0;
    stats.waitEma = 0;
    stats.peakHistogram.fill(0);
  }

  // ---- records ---------------------------------------------------------------------------------------------

  pool(name: string): ModelPool {
    const known = this.pools.get(name);
    if (known !== undefined) return known;
    const made: ModelPool = {
      aggRunning: 0,
      aggQueued: 0,
      aggMemReserved: 0,
      aggUserLoads: new Map(),
      localMemAdmitted: 0,
      localTrivial: 0,
      localRunning: 0,
      localQueued: 0,
      localMemReserved: 0,
      localHeavy: NO_HEAVY,
      localUserLoads: new Map(),
      remote: new Map(),
      totals: { admitted: 0, queued: 0, dequeued: 0, rejected: 0, timedOut: 0, released: 0, timeInQueueMs: 0 },
      waitEma: 0,
      peakHistogram: new Array<number>(128).fill(0),
    };
    this.pools.set(name, made);
    return made;
  }

  private host(address: string): ModelHost {
    const known = this.hosts.get(address);
    if (known !== undefined) return known;
    const made: ModelHost = { memReserved: 0, memAdmitted: 0, numAdmitted: 0, slotsInUse: 0 };
    this.hosts.set(address, made);
    return made;
  }
}

interface Candidate {
  readonly schedule: ModelSchedule;
  readonly memory: Memory;
  /** RE and RC. */
  readonly largest: number;
  readonly coordReservation: number;
}

interface Fits {
  readonly kind: "fits";
  readonly trivial: boolean;
  readonly candidate: Candidate;
}

type Attempt =
  | Fits
  | { readonly kind: "notNow"; readonly reason: QueueReason; readonly coordinatorLimited: boolean }
  | { readonly kind: "reject"; readonly reason: RejectReason };

/** MEM-11. */
const memoryOn = (isCoordBackend: boolean, memory: Memory): number =>
  isCoordBackend ? memory.coordinator : memory.perHost;

/** The planner marks a query trivial only with the option on (5.3). */
const isTrivial = (request: AdmissionRequest): boolean =>
  request.shape.isTrivial && request.shape.options.enableTrivialQueryForAdmission;

const hasQuotas = (pool: PoolConfig): boolean => pool.userQueryLimits.size > 0 || pool.groupQueryLimits.size > 0;

function countUser(stats: ModelPool, user: string): void {
  stats.aggUserLoads.set(user, (stats.aggUserLoads.get(user) ?? 0) + 1);
  stats.localUserLoads.set(user, (stats.localUserLoads.get(user) ?? 0) + 1);
}

function discountUser(stats: ModelPool, user: string): void {
  for (const loads of [stats.aggUserLoads, stats.localUserLoads]) {
    const load = loads.get(user);
    if (load === undefined) continue;
    if (load > 1) loads.set(user, load - 1);
    else loads.delete(user);
  }
}

/** REJ-B2b and ADM-6: executors first, then the coordinator. */
function reservationAboveLimit(pool: string, c: Candidate) {
  const { memory } = c;
  if (memory.perHostLimit > 0 && c.largest > allowed(memory.perHostLimit))
    return {
      needed: c.largest as Bytes,
      source: memory.perHostSource,
      pool,
      limitNeeded: needed(c.largest) as Bytes,
    };
  if (memory.coordinatorLimit > 0 && c.coordReservation > allowed(memory.coordinatorLimit))
    return {
      needed: c.coordReservation as Bytes,
      source: memory.coordinatorSource,
      pool,
      limitNeeded: needed(c.coordReservation) as Bytes,
    };
  return null;
}

/** One level of 8.2. */
function quotaAt(request: AdmissionRequest, config: PoolConfig, level: string, load: number): RejectReason | null {
  const { user } = request;
  if (!hasQuotas(config)) return null;
  const exact = config.userQueryLimits.get(user);
  if (exact !== undefined)
    return load + 1 > exact ? { rule: "REJ-C3", kind: "user", load, user, limit: exact, pool: level } : null;

  if (request.userGroups === null) return { rule: "REJ-C3", kind: "lookupFailed" };
  let best: [string, number] | null = null;
  // In the order in which the product notes them: a group that is outdone is noted when that happens.
  const ignored: [string, number][] = [];
  for (const group of request.userGroups) {
    const limit = config.groupQueryLimits.get(group);
    if (limit === undefined) continue;
    if (best === null) best = [group, limit];
    else if (limit > best[1]) {
      ignored.push(best);
      best = [group, limit];
    } else ignored.push([group, limit]);
  }
  if (best !== null) {
    const [group, limit] = best;
    return load + 1 > limit ? { rule: "REJ-C3", kind: "group", load, user, group, limit, pool: level, ignored } : null;
  }

  const wildcard = config.userQueryLimits.get("*");
  if (wildcard !== undefined && load + 1 > wildcard)
    return { rule: "REJ-C3", kind: "wildcard", load, user, limit: wildcard, pool: level };
  return null;
}
