/**
 * A schedule in the simulator's own numbers: which of the cluster's hosts, in address order.
 *
 * Worked out once per schedule; all queries of one shape on one membership share it.
 */
import type { Schedule } from "../core/cluster/schedule.ts";

export interface Placement {
  /** By schedule position: number of the host; 1 if a fragment runs there; 1 if one with the footprint does. */
  readonly hosts: Int32Array;
  readonly hasWork: Uint8Array;
  readonly hasFootprint: Uint8Array;
  /** Fragment instances by schedule position. */
  readonly instances: Int32Array;
  /** Of them, those that share the footprint: the root fragment beside others only collects rows. */
  readonly working: Int32Array;
  /** Minimum reservation by schedule position, as planned (R15). */
  readonly minimums: Float64Array;
  /** Position of the coordinator's entry. */
  readonly coordinatorAt: number;
  readonly addresses: readonly string[];
}

export class Placements {
  readonly #hostNumbers: ReadonlyMap<string, number>;
  readonly #known = new WeakMap<Schedule, Placement>();
  #lastSchedule: Schedule | null = null;
  #last: Placement | null = null;

  constructor(addresses: readonly string[]) {
    this.#hostNumbers = new Map(addresses.map((address, i) => [address, i]));
  }

  /** hot: bench/simulate */
  of(schedule: Schedule): Placement {
    if (schedule !== this.#lastSchedule) {
      this.#lastSchedule = schedule;
      this.#last = this.#lookUp(schedule);
    }
    return this.#last!;
  }

  #lookUp(schedule: Schedule): Placement {
    let found = this.#known.get(schedule);
    if (found === undefined) {
      found = this.#place(schedule);
      this.#known.set(schedule, found);
    }
    return found;
  }

  #place(schedule: Schedule): Placement {
    const { backends } = schedule;
    const working = workingInstances(schedule);
    return {
      hosts: Int32Array.from(backends, (b) => this.#hostNumbers.get(b.desc.address)!),
      hasWork: Uint8Array.from(backends, (b) => (b.numInstances > 0 ? 1 : 0)),
      hasFootprint: Uint8Array.from(working, (n) => (n > 0 ? 1 : 0)),
      instances: Int32Array.from(backends, (b) => b.numInstances),
      working: Int32Array.from(working, (n) => Math.max(1, n)),
      minimums: Float64Array.from(backends, (b) => b.minReservation),
      coordinatorAt: backends.findIndex((b) => b.isCoordBackend),
      addresses: backends.map((b) => b.desc.address),
    };
  }
}

/** The root fragment on a coordinator only collects rows; what the query uses is in the others. */
function workingInstances({ backends, shape }: Schedule): number[] {
  const ofRoot = shape.fragments.reduce((n, f) => n + (f.runsOn === "coordinator" ? f.instancesPerHost : 0), 0);
  const onlyRoot = backends.length === 1;
  return backends.map((b) => b.numInstances - (b.isCoordBackend && !onlyRoot ? ofRoot : 0));
}

/** Addresses of the hosts on which a footprint has its peak. */
export function footprintHosts(schedule: Schedule): string[] {
  const working = workingInstances(schedule);
  return schedule.backends.filter((_, i) => working[i]! > 0).map((b) => b.desc.address);
}
