/**
 * One schedule per candidate group: which hosts, and what each of them holds (admission 1.4, 6.3).
 *
 * A schedule is immutable and shared by every query of the same shape, coordinator, group, membership and
 * placement, so all that a decision asks of it (maxima, sums, who is largest) is worked out once, here.
 * Backends stand in address order; where the product names whichever host its hash map yields first, the
 * first in that order is named.
 */
import type { FragmentShape, RequestShape } from "../admission/request.ts";
import type { Bytes } from "../units.ts";
import type { BackendDescriptor } from "./backend.ts";
import type { ExecutorGroup } from "./executor-group.ts";

export interface ScheduledBackend {
  readonly desc: BackendDescriptor;
  readonly isCoordBackend: boolean;
  readonly numInstances: number;
  readonly minReservation: Bytes;
  readonly threadReservation: number;
  readonly slots: number;
}

/** A largest value and the first backend in address order that has it. */
export interface Largest<T extends number = number> {
  readonly value: T;
  readonly host: string;
}

export interface Schedule {
  readonly shape: RequestShape;
  readonly group: string;
  readonly coordinator: string;
  /** In address order; the coordinator always has an entry, even with no instance on it. */
  readonly backends: readonly ScheduledBackend[];
  /** Their addresses, in the same order. */
  readonly hosts: readonly string[];
  readonly coordinatorBackend: ScheduledBackend;
  /** Every executor of the usable group is in the schedule, each with the same instances and slots. */
  readonly isFullWidth: boolean;
  /** What any backend other than the coordinator holds; all of them hold the same. */
  readonly executorSlots: number;
  readonly coordinatorSlots: number;
  /** RE and RC of admission 2.3. */
  readonly largestMinReservation: Bytes;
  readonly coordMinReservation: Bytes;
  /** Over all backends: REJ-B2a, REJ-B6, REJ-B3, REJ-B4. */
  readonly largestReservation: Largest<Bytes>;
  readonly sumMinReservation: Bytes;
  readonly largestThreads: Largest;
  readonly sumThreads: number;
  /** The first backend that needs more slots than its host has, or null (REJ-B1). */
  readonly slotsTooFew: ScheduledBackend | null;
  /** Smallest `admit_mem_limit` among the other backends (REJ-B8); null when there is none. */
  readonly smallestExecutor: BackendDescriptor | null;
}

export interface SchedulingInput {
  readonly shape: RequestShape;
  readonly coordinator: BackendDescriptor;
  readonly group: ExecutorGroup;
  /** For shapes that run on every coordinator (T-61); ignored by the others. */
  readonly allCoordinators: ExecutorGroup;
  readonly placementOffset: number;
}

export function scheduleFor(input: SchedulingInput): Schedule {
  const backends = backendsFor(input);
  const coordinatorBackend = backends.find((b) => b.isCoordBackend)!;
  const others = backends.filter((b) => !b.isCoordBackend);
  const smallestExecutor = leastBy(others, (b) => b.desc.admitMemLimit)?.desc ?? null;
  return {
    shape: input.shape,
    group: input.group.name,
    coordinator: input.coordinator.address,
    backends,
    hosts: backends.map((b) => b.desc.address),
    coordinatorBackend,
    isFullWidth: isFullWidth(input, backends),
    executorSlots: others[0]?.slots ?? 0,
    coordinatorSlots: coordinatorBackend.slots,
    largestMinReservation: largest(others, (b) => b.minReservation).value as Bytes,
    coordMinReservation: coordinatorBackend.minReservation,
    largestReservation: largest(backends, (b) => b.minReservation) as Largest<Bytes>,
    sumMinReservation: sum(backends, (b) => b.minReservation) as Bytes,
    largestThreads: largest(backends, (b) => b.threadReservation),
    sumThreads: sum(backends, (b) => b.threadReservation),
    slotsTooFew: backends.find((b) => b.slots > b.desc.admissionSlots) ?? null,
    smallestExecutor,
  };
}

/** Where a host stands in a schedule, -1 when it isn't in it. */
export function positionOf({ hosts }: Schedule, address: string): number {
  let low = 0;
  let high = hosts.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (hosts[middle]! < address) low = middle + 1;
    else high = middle;
  }
  return hosts[low] === address ? low : -1;
}

/** Only then can a charge be one number for the whole group; `group` may be a filtered copy. */
function isFullWidth(input: SchedulingInput, backends: readonly ScheduledBackend[]): boolean {
  const used = new Set(backends.map((b) => b.desc.address));
  const members = input.group.executors;
  const outside = members.some((e) => e.address === input.coordinator.address) ? 0 : 1;
  return (
    members.length > 0 && backends.length === members.length + outside && members.every((e) => used.has(e.address))
  );
}

function backendsFor(input: SchedulingInput): ScheduledBackend[] {
  const { shape, coordinator } = input;
  const workers = workersOf(input);
  const onWorkers = fragmentsOn(shape, "executors");
  const onCoordinator = fragmentsOn(shape, "coordinator");
  const held = new Map<string, ScheduledBackend>();
  for (const desc of workers)
    held.set(desc.address, scheduled(desc, desc.address === coordinator.address, onWorkers, shape));
  const also = held.has(coordinator.address) ? [...onWorkers, ...onCoordinator] : onCoordinator;
  held.set(coordinator.address, scheduled(coordinator, true, also, shape));
  return [...held.values()].sort((a, b) => (a.desc.address < b.desc.address ? -1 : 1));
}

/** Without executors, and for an unpartitioned plan in any group, everything runs on the coordinator. */
function workersOf(input: SchedulingInput): readonly BackendDescriptor[] {
  const { shape, group, allCoordinators, placementOffset } = input;
  if (!hasFragments(shape, "executors")) return [];
  if (shape.coordinatorOnly || (group.executors.length === 0 && !shape.includeAllCoordinators))
    return [input.coordinator];
  const some = inTurn(group.executors, shape.executors, placementOffset);
  if (!shape.includeAllCoordinators) return some;
  const extra = allCoordinators.executors.filter((c) => !some.some((e) => e.address === c.address));
  return [...some, ...extra];
}

const hasFragments = (shape: RequestShape, where: FragmentShape["runsOn"]): boolean =>
  shape.fragments.some((f) => f.runsOn === where);

const fragmentsOn = (shape: RequestShape, where: FragmentShape["runsOn"]): readonly FragmentShape[] =>
  shape.fragments.filter((f) => f.runsOn === where);

/** `count` neighbours in address order from `offset` on, around the end; all of them when there are no more. */
function inTurn<T>(items: readonly T[], count: "all" | number, offset: number): readonly T[] {
  if (count === "all" || count >= items.length) return items;
  return Array.from({ length: count }, (_, i) => items[(offset + i) % items.length]!);
}

function scheduled(
  desc: BackendDescriptor,
  isCoordBackend: boolean,
  fragments: readonly FragmentShape[],
  shape: RequestShape,
): ScheduledBackend {
  return {
    desc,
    isCoordBackend,
    numInstances: sum(fragments, (f) => f.instancesPerHost),
    minReservation: sum(
      fragments,
      (f) => f.instancesPerHost * f.minReservationPerInstance + f.minReservationPerBackend,
    ) as Bytes,
    threadReservation: sum(fragments, (f) => f.instancesPerHost * f.threadReservationPerInstance),
    slots: slotsFor(fragments, shape.maxSlotsPerExecutor),
  };
}

/** Default: instances of the largest fragment; PLANNER_CPU_ASK counts the dominant ones, capped (admission 1.4). */
export function slotsFor(fragments: readonly FragmentShape[], cap: number | null): number {
  let byDefault = 0;
  for (const f of fragments) if (f.instancesPerHost > byDefault) byDefault = f.instancesPerHost;
  if (cap === null || cap <= 0) return byDefault;
  const dominant = sum(fragments, (f) => (f.isDominant ? f.instancesPerHost : 0));
  return Math.min(cap, Math.max(dominant, byDefault));
}

function sum<T>(items: readonly T[], figure: (item: T) => number): number {
  let total = 0;
  for (const item of items) total += figure(item);
  return total;
}

function largest(backends: readonly ScheduledBackend[], figure: (b: ScheduledBackend) => number): Largest {
  let found: Largest = { value: 0, host: backends[0]?.desc.address ?? "" };
  for (const b of backends) if (figure(b) > found.value) found = { value: figure(b), host: b.desc.address };
  return found;
}

function leastBy<T>(items: readonly T[], figure: (item: T) => number): T | null {
  let found: T | null = null;
  for (const item of items) if (found === null || figure(item) < figure(found)) found = item;
  return found;
}
