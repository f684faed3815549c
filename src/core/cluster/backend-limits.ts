/**
 * What a process offers to admission, from its flags and its machine (admission 1.3).
 */
import type { Bytes } from "../units.ts";

export interface ProcessMemory {
  /** `--mem_limit`, by default 80% of the smallest of physical memory, the strict commit limit and the cgroup. */
  readonly processLimit: number;
  /** The JVM's maximum heap with `--mem_limit_includes_jvm`, else 0. */
  readonly jvmHeap: number;
  /** `--codegen_cache_capacity`, 0: none. */
  readonly codegenCacheCapacity: number;
}

/** T-24: less than the process limit by the heap and by the codegen cache, which takes at most a tenth. */
export function admitMemLimit({ processLimit, jvmHeap, codegenCacheCapacity }: ProcessMemory): Bytes {
  const withoutHeap = processLimit - jvmHeap;
  const cache = codegenCacheCapacity > 0 ? Math.min(codegenCacheCapacity, Math.floor(0.1 * withoutHeap)) : 0;
  return (withoutHeap - cache) as Bytes;
}

export interface SlotFlags {
  /** `--admission_control_slots`, 0: not set. */
  readonly admissionControlSlots: number;
  /** `--max_concurrent_queries`, deprecated, 0: not set. */
  readonly maxConcurrentQueries: number;
  /** Honours `--num_cores`. */
  readonly cores: number;
  readonly isCoordinator: boolean;
  readonly isExecutor: boolean;
}

/** A coordinator that doesn't execute gets eight slots a core: it only waits for others. */
export function admissionSlots(f: SlotFlags): number {
  if (f.admissionControlSlots > 0) return f.admissionControlSlots;
  if (f.maxConcurrentQueries > 0) return f.maxConcurrentQueries;
  return f.isCoordinator && !f.isExecutor ? f.cores * 8 : f.cores;
}
