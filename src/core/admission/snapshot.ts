/**
 * All of a controller as plain data, for pages, tests and the whole-state checks; nothing in it is live.
 */
import type { Instant } from "../units.ts";
import { isReleased } from "./charge.ts";
import type { AdmissionController } from "./controller.ts";
import type { Pool } from "./pool.ts";
import type { AdmissionQuery } from "./query.ts";
import type { QueueReason } from "./reasons.ts";

export interface PoolSnapshot {
  readonly name: string;
  readonly localRunning: number;
  readonly localQueued: number;
  readonly localMemAdmitted: number;
  readonly localTrivialRunning: number;
  readonly localMemReserved: number;
  readonly localMemUsage: number;
  readonly localLoads: Readonly<Record<string, number>>;
  readonly aggRunning: number;
  readonly aggQueued: number;
  readonly aggMemReserved: number;
  readonly aggLoads: Readonly<Record<string, number>>;
  readonly totalAdmitted: number;
  readonly totalQueued: number;
  readonly totalDequeued: number;
  readonly totalRejected: number;
  readonly totalTimedOut: number;
  readonly totalReleased: number;
  readonly timeInQueueMs: number;
  readonly waitTimeMsEma: number;
  readonly peakMemHistogram: readonly number[];
  /** In order of arrival. */
  readonly queue: readonly string[];
  readonly headReason: QueueReason | null;
}

export interface HostSnapshot {
  readonly memReserved: number;
  readonly memAdmitted: number;
  readonly numAdmitted: number;
  readonly slotsInUse: number;
  readonly remoteMemAdmitted: number;
  readonly remoteSlotsInUse: number;
}

/** What one running query still holds, by host. */
export interface HoldingSnapshot {
  readonly query: string;
  readonly pool: string;
  readonly user: string;
  readonly group: string;
  readonly isTrivial: boolean;
  readonly tracksUser: boolean;
  readonly hosts: readonly { readonly host: string; readonly mem: number; readonly slots: number }[];
}

export interface ControllerSnapshot {
  readonly at: Instant;
  readonly hostId: string;
  readonly membershipVersion: number;
  readonly timeSinceUpdate: number;
  readonly pools: readonly PoolSnapshot[];
  readonly hosts: ReadonlyMap<string, HostSnapshot>;
  readonly running: readonly HoldingSnapshot[];
  /** Users that the queued queries count for, one entry per query. */
  readonly queuedUsers: readonly { readonly pool: string; readonly user: string }[];
  readonly groupLoads: ReadonlyMap<string, number>;
  readonly rootUserLoads: Readonly<Record<string, number>>;
}

export function snapshotOf(controller: AdmissionController, at: Instant): ControllerSnapshot {
  return {
    at,
    hostId: controller.options.hostId,
    membershipVersion: controller.membership.version,
    timeSinceUpdate: controller.timeSinceUpdate(at),
    pools: controller.pools.map(poolSnapshot),
    hosts: hostsOf(controller),
    running: [...controller.runningQueries()].map(holding),
    queuedUsers: controller.pools.flatMap((pool) =>
      [...pool.queue].filter((q) => q.tracksUser).map((q) => ({ pool: pool.name, user: q.request.user })),
    ),
    groupLoads: new Map([...controller.groupLoads].map(([name, gauge]) => [name, gauge.value])),
    rootUserLoads: Object.fromEntries(controller.rootUserLoads),
  };
}

function poolSnapshot({ name, stats, queue }: Pool): PoolSnapshot {
  return {
    name,
    localRunning: stats.localRunning,
    localQueued: stats.localQueued,
    localMemAdmitted: stats.localMemAdmitted,
    localTrivialRunning: stats.localTrivialRunning,
    localMemReserved: stats.localMemReserved,
    localMemUsage: stats.published.memUsage,
    localLoads: Object.fromEntries(stats.localLoads.entries()),
    aggRunning: stats.aggRunning,
    aggQueued: stats.aggQueued,
    aggMemReserved: stats.aggMemReserved,
    aggLoads: Object.fromEntries(stats.aggLoads.entries()),
    totalAdmitted: stats.totalAdmitted,
    totalQueued: stats.totalQueued,
    totalDequeued: stats.totalDequeued,
    totalRejected: stats.totalRejected,
    totalTimedOut: stats.totalTimedOut,
    totalReleased: stats.totalReleased,
    timeInQueueMs: stats.timeInQueueMs,
    waitTimeMsEma: stats.waitTimeMsEma,
    peakMemHistogram: [...stats.peakMemHistogram],
    queue: [...queue].map((q) => q.id),
    headReason: queue.head?.latestReason ?? null,
  };
}

function hostsOf({ hosts: book }: AdmissionController): Map<string, HostSnapshot> {
  const hosts = new Map<string, HostSnapshot>();
  for (let h = 0; h < book.size; h++)
    hosts.set(book.address(h), {
      memReserved: book.memReserved[h]!,
      memAdmitted: book.admittedBySelf(h),
      numAdmitted: book.numAdmittedBySelf(h),
      slotsInUse: book.slotsBySelf(h),
      remoteMemAdmitted: book.remoteMem[h]!,
      remoteSlotsInUse: book.remoteSlots[h]!,
    });
  return hosts;
}

function holding(q: AdmissionQuery): HoldingSnapshot {
  const { schedule } = q.plan!;
  return {
    query: q.id,
    pool: q.request.pool,
    user: q.request.user,
    group: schedule.group,
    isTrivial: q.isTrivial,
    tracksUser: q.tracksUser,
    hosts: schedule.backends.flatMap((b, i) =>
      q.heldBackends === 0 || isReleased(q, i)
        ? []
        : [{ host: b.desc.address, mem: q.memOn(i) as number, slots: b.slots }],
    ),
  };
}
