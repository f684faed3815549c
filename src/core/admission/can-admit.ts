/**
 * Whether a query may run now (admission 4, ADM-1 to ADM-6), check by check, over any view of the world.
 *
 * This is the plain form: it looks at every backend. The controller decides with the incremental figures of
 * its host book and comes here for the reason, and for the list of everything that fails; both must agree,
 * which the tests drive at random.
 *
 * Equality admits everywhere: only strictly over a limit waits.
 */
import { DEFAULT_GROUP, EMPTY_GROUP } from "../cluster/backend.ts";
import { positionOf, type Schedule } from "../cluster/schedule.ts";
import { DEFAULT_POOL, type PoolConfig } from "../pool-config.ts";
import { type Bytes, isUnlimited } from "../units.ts";
import type { MemoryToAdmit } from "./memory-to-admit.ts";
import type { QueueReason, StaleAge } from "./reasons.ts";
import { reservationAboveLimit } from "./reject.ts";
import type { HostsView, PoolView } from "./views.ts";

export interface AdmitCheck {
  readonly pool: PoolView;
  readonly hosts: HostsView;
  readonly schedule: Schedule;
  readonly memory: MemoryToAdmit;
  readonly config: PoolConfig;
  readonly fromQueue: boolean;
  readonly stale: StaleAge;
}

/** The first check that fails, in the product's order; null: admit. */
export function whyNotNow(check: AdmitCheck): QueueReason | null {
  return (
    queueNotEmpty(check) ?? tooManyRunning(check) ?? slotsMissing(check) ?? poolMemoryTaken(check) ?? afterPool(check)
  );
}

/** Every check that fails, each with the host that a message would name (insight 2.3). */
export function allThatFails(check: AdmitCheck): QueueReason[] {
  const found: (QueueReason | null)[] = [
    queueNotEmpty(check),
    tooManyRunning(check),
    slotsMissing(check),
    poolMemoryTaken(check),
    hostMemoryTaken(check),
    reservationTooLarge(check),
  ];
  return found.filter((reason) => reason !== null);
}

/** ADM-5 and ADM-6, as they follow a pool with memory to spare. */
const afterPool = (check: AdmitCheck): QueueReason | null => hostMemoryTaken(check) ?? reservationTooLarge(check);

/** ADM-1, on submission only: nobody overtakes this controller's own queue. */
function queueNotEmpty({ pool, fromQueue, stale }: AdmitCheck): QueueReason | null {
  return fromQueue || pool.localQueued === 0 ? null : { rule: "ADM-1", queued: pool.localQueued, stale };
}

/** ADM-2. */
function tooManyRunning({ pool, config, stale }: AdmitCheck): QueueReason | null {
  const limit = config.maxRequests;
  if (isUnlimited(limit) || pool.aggRunning < limit) return null;
  return { rule: "ADM-2", running: pool.aggRunning, limit, stale };
}

/** Slots are enforced neither in the group `default` nor for coordinator-only queries of `default-pool` (T-39). */
export const isSlotExempt = (group: string, pool: string): boolean =>
  group === DEFAULT_GROUP || (group === EMPTY_GROUP && pool === DEFAULT_POOL);

/** ADM-3, where slots count at all. */
const slotsMissing = (check: AdmitCheck): QueueReason | null =>
  isSlotExempt(check.schedule.group, check.pool.name) ? null : slotsTaken(check);

export function slotsTaken({ hosts, schedule }: AdmitCheck): QueueReason | null {
  const { backends } = schedule;
  for (let i = hosts.slotsFrom(); i < backends.length; i++) {
    const { desc, slots: needed } = backends[i]!;
    const inUse = hosts.slotsInUseOn(desc.address, i);
    if (inUse + needed > desc.admissionSlots)
      return { rule: "ADM-3", host: desc.address, needed, inUse, slots: desc.admissionSlots };
  }
  return null;
}

/** ADM-4; an unlimited pool is checked neither here nor on its hosts (T-15). */
export function poolMemoryTaken({ pool, memory, config, stale }: AdmitCheck): QueueReason | null {
  const limit = config.maxMemResources;
  if (isUnlimited(limit) || pool.effectiveMemReserved + memory.cluster <= limit) return null;
  const available = Math.max(0, limit - pool.effectiveMemReserved) as Bytes;
  return { rule: "ADM-4", pool: pool.name, limit: limit as Bytes, needed: memory.cluster, available, stale };
}

/** ADM-5; on the coordinator's own host the coordinator's amount is needed. */
export function hostMemoryTaken(check: AdmitCheck): QueueReason | null {
  const { hosts, schedule, memory, config, stale } = check;
  if (isUnlimited(config.maxMemResources)) return null;
  const { backends } = schedule;
  for (let i = hosts.memoryFrom(); i < backends.length; i++) {
    const { desc, isCoordBackend } = backends[i]!;
    const needed = isCoordBackend ? memory.onCoordinator : memory.perHost;
    const limit = desc.admitMemLimit;
    const reserved = hosts.memReservedOn(desc.address, i);
    if (reserved + needed <= limit) continue;
    const available = Math.max(0, limit - reserved) as Bytes;
    return { rule: "ADM-5", host: desc.address, limit, needed, available, stale };
  }
  return null;
}

/** ADM-6: can't fail right after REJ-B2b, which asks the same; kept because the product asks again. */
export function reservationTooLarge({ schedule, memory, config, pool }: AdmitCheck): QueueReason | null {
  if (isUnlimited(config.maxMemResources) || schedule.shape.options.bufferPoolLimit > 0) return null;
  const above = reservationAboveLimit(memory, schedule, pool.name);
  return above === null ? null : { rule: "ADM-6", ...above };
}

/** The shortage is on a host that coordinates, so more executor groups would not help (T-55). */
export function isCoordinatorShort(reason: QueueReason, schedule: Schedule): boolean {
  if (reason.rule !== "ADM-3" && reason.rule !== "ADM-5") return false;
  return schedule.backends[positionOf(schedule, reason.host)]!.desc.isCoordinator;
}
