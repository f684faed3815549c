/**
 * Why a query is refused for good (admission 3): what its pool rules out (REJ-A1 to A5), and what no state of
 * its group could ever allow (REJ-B1 to B9).
 *
 * Both keep the product's order, because the first reason is the one people read. REJ-A5 comes before any
 * attempt to fit the query, so a full queue refuses what would have run at once (T-1, T-2).
 */
import { DEFAULT_GROUP } from "../cluster/backend.ts";
import type { Largest, Schedule } from "../cluster/schedule.ts";
import type { PoolConfig } from "../pool-config.ts";
import type { Bytes, MaxBytes } from "../units.ts";
import type { MemoryToAdmit } from "./memory-to-admit.ts";
import type { MemorySource, RejectReason, ReservationAboveLimit, StaleAge } from "./reasons.ts";
import type { AdmissionOptions } from "./request.ts";
import { limitNeededFor, reservationAllowedBy } from "./reservation-math.ts";

/** A pool that lets nothing run, whatever it is asked. */
export const isDisabled = (config: PoolConfig): boolean => config.maxRequests === 0 || config.maxMemResources === 0;

const REJ_A1: RejectReason = { rule: "REJ-A1" };
const REJ_A2: RejectReason = { rule: "REJ-A2" };

/** REJ-A1 to A4: checked on submission and again at every attempt from the queue, with the newest config. */
export function rejectForPool(config: PoolConfig): RejectReason | null {
  const { maxMemResources, minQueryMemLimit, maxQueryMemLimit } = config;
  if (config.maxRequests === 0) return REJ_A1;
  if (maxMemResources === 0) return REJ_A2;
  if (maxMemResources > 0 && minQueryMemLimit > maxMemResources)
    return { rule: "REJ-A3", minQueryMemLimit, maxMemResources };
  if (maxQueryMemLimit > 0 && minQueryMemLimit > maxQueryMemLimit)
    return { rule: "REJ-A4", minQueryMemLimit, maxQueryMemLimit };
  return null;
}

/** REJ-A5, on submission only: the whole cluster's queue as this controller knows it. */
export const isQueueFull = (config: PoolConfig, aggQueued: number): boolean => aggQueued >= config.maxQueued;

export const queueFull = (config: PoolConfig, aggQueued: number, stale: StaleAge): RejectReason => ({
  rule: "REJ-A5",
  limit: config.maxQueued,
  queued: aggQueued,
  stale,
});

export interface ScheduleCheck {
  readonly pool: string;
  readonly schedule: Schedule;
  readonly memory: MemoryToAdmit;
  readonly config: PoolConfig;
  readonly options: AdmissionOptions;
  readonly clampToHosts: boolean;
}

/** REJ-B1 to B9. A rejection by one group ends the query although another could take it (T-42). */
export function rejectForSchedule(check: ScheduleCheck): RejectReason | null {
  return slotsReason(check) ?? reservationReason(check) ?? threadsReason(check) ?? memoryReason(check);
}

function slotsReason({ schedule }: ScheduleCheck): RejectReason | null {
  const few = schedule.slotsTooFew;
  if (few === null || schedule.group === DEFAULT_GROUP) return null;
  return { rule: "REJ-B1", host: few.desc.address, needed: few.slots, slots: few.desc.admissionSlots };
}

function reservationReason({ schedule, memory, options, pool }: ScheduleCheck): RejectReason | null {
  if (options.bufferPoolLimit > 0) {
    const { value, host } = schedule.largestReservation;
    return value > options.bufferPoolLimit ? { rule: "REJ-B2a", host, needed: value } : null;
  }
  const above = reservationAboveLimit(memory, schedule, pool);
  return above === null ? null : { rule: "REJ-B2b", ...above };
}

/** REJ-B2b and ADM-6: executors first, then the coordinator; a limit of 0 or less always passes. */
export function reservationAboveLimit(
  memory: Pick<MemoryToAdmit, "memLimit" | "coordinatorMemLimit" | "perHostSource" | "onCoordinatorSource">,
  needs: { readonly largestMinReservation: Bytes; readonly coordMinReservation: Bytes },
  pool: string,
): ReservationAboveLimit | null {
  return (
    overLimit(memory.memLimit, needs.largestMinReservation, memory.perHostSource, pool) ??
    overLimit(memory.coordinatorMemLimit, needs.coordMinReservation, memory.onCoordinatorSource, pool)
  );
}

function overLimit(limit: number, needed: Bytes, source: MemorySource, pool: string): ReservationAboveLimit | null {
  if (limit <= 0 || needed <= reservationAllowedBy(limit)) return null;
  return { needed, source, pool, limitNeeded: limitNeededFor(needed) };
}

function threadsReason({ schedule, options }: ScheduleCheck): RejectReason | null {
  const perBackend = options.threadReservationLimit;
  const { value: threads, host }: Largest = schedule.largestThreads;
  if (perBackend > 0 && threads > perBackend) return { rule: "REJ-B3", host, threads, limit: perBackend };
  const inAll = options.threadReservationAggregateLimit;
  if (inAll > 0 && schedule.sumThreads > inAll)
    return { rule: "REJ-B4", backends: schedule.backends.length, threads: schedule.sumThreads, limit: inAll };
  return null;
}

function memoryReason(check: ScheduleCheck): RejectReason | null {
  const { schedule, memory, config } = check;
  const limit: MaxBytes = config.maxMemResources;
  // REJ-B5: unreachable after REJ-A2, kept because the product has it here too.
  if (limit === 0) return REJ_A2;
  if (limit < 0) return null;
  if (schedule.sumMinReservation > limit) return { rule: "REJ-B6", limit, needed: schedule.sumMinReservation };
  if (memory.cluster > limit) return { rule: "REJ-B7", limit, needed: memory.cluster };
  return check.clampToHosts ? null : hostTooSmall(schedule, memory);
}

/** Only without the host clamp: with it the amounts were already lowered to the hosts (T-16). */
function hostTooSmall({ smallestExecutor, coordinatorBackend }: Schedule, memory: MemoryToAdmit): RejectReason | null {
  if (smallestExecutor !== null && memory.perHost > smallestExecutor.admitMemLimit)
    return {
      rule: "REJ-B8",
      host: smallestExecutor.address,
      needed: memory.perHost,
      limit: smallestExecutor.admitMemLimit,
    };
  const { address, admitMemLimit } = coordinatorBackend.desc;
  if (memory.onCoordinator > admitMemLimit)
    return { rule: "REJ-B9", host: address, needed: memory.onCoordinator, limit: admitMemLimit };
  return null;
}
