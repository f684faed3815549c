/**
 * Which groups a query may use and what its schedule on one of them looks like (admission 1.4, 6.2, 6.3), for
 * the slow reference model. Everything is recomputed from the list of backends each time it is asked.
 */
import type { AdmissionRequest } from "../../src/core/admission/request.ts";
import type { BackendDescriptor } from "../../src/core/cluster/backend.ts";
import type { PoolConfig } from "../../src/core/pool-config.ts";

export interface ModelCluster {
  readonly version: number;
  readonly backends: readonly BackendDescriptor[];
  /** Addresses this controller doesn't schedule on (6.1). */
  readonly blacklisted: readonly string[];
  /** Remembered by admissiond only (9.5). */
  readonly removedCoordinators: readonly string[];
}

export interface ModelGroup {
  readonly name: string;
  readonly minSize: number;
  readonly executors: readonly BackendDescriptor[];
}

export interface ModelBackend {
  readonly address: string;
  readonly desc: BackendDescriptor;
  readonly isCoordBackend: boolean;
  instances: number;
  minReservation: number;
  threads: number;
  slots: number;
}

export interface ModelSchedule {
  readonly group: string;
  /** Smallest executor of the group before blacklisted ones were left out (T-17), 0 when it has none. */
  readonly smallestExecutor: number;
  /** In address order; always one entry for the coordinator. */
  readonly backends: readonly ModelBackend[];
}

const byAddress = (a: { readonly address: string }, b: { readonly address: string }): number =>
  a.address < b.address ? -1 : a.address > b.address ? 1 : 0;

/**
 * Groups with at least one usable executor, by name. A backend with another min_size than its group's is ignored;
 * the first in address order decides, since a list of backends doesn't tell who came first.
 */
export function groupsOf(cluster: ModelCluster): ModelGroup[] {
  const members = new Map<string, BackendDescriptor[]>();
  const minSizes = new Map<string, number>();
  for (const b of [...cluster.backends].sort(byAddress)) {
    if (!b.isExecutor || b.isQuiescing || cluster.blacklisted.includes(b.address)) continue;
    const { name, minSize } = b.executorGroup;
    const known = minSizes.get(name);
    if (known !== undefined && known !== minSize) continue;
    minSizes.set(name, minSize);
    members.set(name, [...(members.get(name) ?? []), b]);
  }
  const names = [...members.keys()].sort();
  return names.map((name) => ({
    name,
    minSize: minSizes.get(name) ?? 1,
    executors: [...(members.get(name) ?? [])].sort(byAddress),
  }));
}

export function activeCoordinators(cluster: ModelCluster): BackendDescriptor[] {
  return cluster.backends.filter((b) => b.isCoordinator && !b.isQuiescing).sort(byAddress);
}

/** 6.2, before ordering by load. Empty: no group can be used now. */
export function candidateGroups(
  cluster: ModelCluster,
  request: AdmissionRequest,
  capturedConfig: PoolConfig,
): ModelGroup[] {
  if (capturedConfig.onlyCoordinators)
    return [{ name: "all-coordinators", minSize: 1, executors: activeCoordinators(cluster) }];
  if (request.shape.coordinatorOnly)
    return [{ name: "empty group (using coordinator only)", minSize: 1, executors: [] }];
  const all = groupsOf(cluster);
  let matching = all.filter((g) => g.name.startsWith(`${request.pool}-`));
  if (matching.length === 0) matching = all.filter((g) => g.name === "default");
  return matching.filter((g) => g.executors.length >= g.minSize);
}

/**
 * The schedule on one group, or null when a retried query finds all of its executors blacklisted (6.2, 6). Executors
 * are asked for, and the group has none: the scheduler's error (only an only-coordinators pool gets here).
 */
export function scheduleOn(
  group: ModelGroup,
  cluster: ModelCluster,
  request: AdmissionRequest,
  coordinator: BackendDescriptor,
): ModelSchedule | null | "error" {
  const { shape } = request;
  let usable = [...group.executors];
  if (request.blacklistedExecutors.length > 0 && group.name !== "empty group (using coordinator only)") {
    usable = usable.filter((b) => !request.blacklistedExecutors.includes(b.address));
    if (usable.length === 0) return null;
  }

  if (group.name === "all-coordinators" && usable.length === 0 && !shape.coordinatorOnly) return "error";

  const chosen = new Map<string, BackendDescriptor>();
  const width = shape.executors === "all" ? usable.length : Math.min(shape.executors, usable.length);
  for (let i = 0; i < width; i++) {
    const b = usable[(request.placementOffset + i) % usable.length];
    if (b !== undefined) chosen.set(b.address, b);
  }
  if (shape.includeAllCoordinators) for (const b of activeCoordinators(cluster)) chosen.set(b.address, b);

  const backends = new Map<string, ModelBackend>();
  const entry = (desc: BackendDescriptor): ModelBackend => {
    const found = backends.get(desc.address);
    if (found !== undefined) return found;
    const made: ModelBackend = {
      address: desc.address,
      desc,
      isCoordBackend: desc.address === coordinator.address,
      instances: 0,
      minReservation: 0,
      threads: 0,
      slots: 0,
    };
    backends.set(desc.address, made);
    return made;
  };
  const dominant = new Map<string, number>();
  entry(coordinator);
  for (const fragment of shape.fragments) {
    const hosts = fragment.runsOn === "coordinator" ? [coordinator] : [...chosen.values()];
    for (const host of hosts) {
      const b = entry(host);
      b.instances += fragment.instancesPerHost;
      b.minReservation +=
        fragment.instancesPerHost * fragment.minReservationPerInstance + fragment.minReservationPerBackend;
      b.threads += fragment.instancesPerHost * fragment.threadReservationPerInstance;
      b.slots = Math.max(b.slots, fragment.instancesPerHost);
      if (fragment.isDominant) dominant.set(b.address, (dominant.get(b.address) ?? 0) + fragment.instancesPerHost);
    }
  }
  const cap = shape.maxSlotsPerExecutor;
  if (cap !== null && cap > 0)
    for (const b of backends.values()) {
      const d = dominant.get(b.address) ?? 0;
      b.slots = Math.min(Math.max(d, b.slots), cap);
    }

  let smallest = 0;
  for (const b of group.executors) if (smallest === 0 || b.admitMemLimit < smallest) smallest = b.admitMemLimit;
  return { group: group.name, smallestExecutor: smallest, backends: [...backends.values()].sort(byAddress) };
}
