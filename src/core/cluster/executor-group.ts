/**
 * A named set of executors that a query is placed on as a whole (admission 6.1).
 *
 * Health is a minimum only: there is no maximum size in admission, and the expected size of a group set
 * matters to planning alone.
 */
import type { Bytes } from "../units.ts";
import type { BackendDescriptor } from "./backend.ts";

export class ExecutorGroup {
  readonly name: string;
  readonly minSize: number;
  /** In address order. */
  readonly executors: readonly BackendDescriptor[];
  /** hostE of MEM-7: the smallest `admit_mem_limit` of the group, 0 when it is empty (T-17). */
  readonly smallestMemLimit: Bytes;

  constructor(name: string, minSize: number, executors: readonly BackendDescriptor[]) {
    this.name = name;
    this.minSize = minSize;
    this.executors = executors;
    this.smallestMemLimit = smallestLimit(executors);
  }

  get isHealthy(): boolean {
    return this.executors.length >= this.minSize;
  }

  /** A retried query avoids these; the copy may be empty (admission 6.2 item 6). */
  without(addresses: readonly string[]): ExecutorGroup {
    const avoided = new Set(addresses);
    return new ExecutorGroup(
      this.name,
      this.minSize,
      this.executors.filter((e) => !avoided.has(e.address)),
    );
  }
}

function smallestLimit(executors: readonly BackendDescriptor[]): Bytes {
  let least = executors[0]?.admitMemLimit ?? 0;
  for (const e of executors) if (e.admitMemLimit < least) least = e.admitMemLimit;
  return least as Bytes;
}
