/**
 * What a scenario's hosts have: memory for buffers, from what they give to queries (memory 2.4), and scratch space.
 */
import type { Scenario } from "../config/scenario.ts";
import { scratchLimitsOf } from "../config/scenario-cluster.ts";
import type { BackendDescriptor } from "../core/cluster/backend.ts";
import { type Bytes, KiB } from "../core/units.ts";
import type { HostSpec } from "./fleet.ts";

/** `--buffer_pool_limit` (R13). */
const BUFFER_POOL_SHARE = 0.85;
const MIN_BUFFER_SIZE = 8 * KiB;

/** In the order of `backends`, which are the scenario's. */
export function hostSpecs({ cluster }: Scenario, backends: readonly BackendDescriptor[]): HostSpec[] {
  const scratch = scratchLimitsOf(cluster, backends);
  return backends.map((backend, i) => ({ backend, scratchLimit: scratch[i]!, memory: memoryOf(backend) }));
}

/**
 * R13: 85 % of what admission may give away, in whole buffers. The process limit stands at what admission may give
 * away too: codegen cache and JVM are not emulated (R12).
 */
function memoryOf({ admitMemLimit }: BackendDescriptor): HostSpec["memory"] {
  const share = Math.floor(admitMemLimit * BUFFER_POOL_SHARE);
  return { bufferPoolLimit: (share - (share % MIN_BUFFER_SIZE)) as Bytes, processLimit: admitMemLimit };
}
