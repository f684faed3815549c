/**
 * How much memory a scenario's hosts have for buffers, from what they give to queries (memory 2.4).
 */
import type { BackendDescriptor } from "../core/cluster/backend.ts";
import { type Bytes, KiB } from "../core/units.ts";
import type { HostSpec } from "./fleet.ts";

/** `--buffer_pool_limit` (R13). */
const BUFFER_POOL_SHARE = 0.85;
const MIN_BUFFER_SIZE = 8 * KiB;

/**
 * R13: 85 % of what admission may give away, in whole buffers. The process limit stands at what admission may give
 * away too: codegen cache and JVM are not emulated (R12).
 */
export function hostSpecOf(backend: BackendDescriptor): HostSpec {
  const share = Math.floor(backend.admitMemLimit * BUFFER_POOL_SHARE);
  const bufferPoolLimit = (share - (share % MIN_BUFFER_SIZE)) as Bytes;
  return { backend, memory: { bufferPoolLimit, processLimit: backend.admitMemLimit } };
}
