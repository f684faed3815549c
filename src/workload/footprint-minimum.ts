/**
 * What a footprint holds on a host from its first moment to its last, whatever else the host is asked for: its
 * minimum reservation (R15). Both drivers ask here, so that a refusal ends a query in both or in neither.
 *
 * Every operator of the product that can spill is planned with a minimum above 0 (memory 6.3): with it, it goes on
 * however often it is refused (I19). A footprint that may spill and whose plan says nothing gets the least of them.
 * That is a matter of execution only: admission goes on seeing the 0 that the scenario says, because a minimum raises
 * small estimates (MEM-3) and rejects under small limits (REJ-B2b), which nobody asked for who left it out.
 */
import type { Use } from "../config/scenario.ts";
import { MiB } from "../core/units.ts";

/** Three buffers of 2 MiB, a sort's (P12): no spilling operator with buffers of that size is planned with less. */
export const LEAST_SPILLABLE_MINIMUM = 6 * MiB;

/**
 * Bytes on one host. `planned` is the plan's own minimum there, 0: it says nothing. The default is no more than the
 * query will use (`peak`) or may reserve (`room`, -1: no limit): it never fails a query that would do without.
 */
export function footprintMinimum(use: Use, planned: number, peak: number, room: number, instances: number): number {
  if (planned > 0 || use.kind !== "footprint" || !use.spillable) return planned;
  const wanted = Math.min(instances * LEAST_SPILLABLE_MINIMUM, peak);
  return room < 0 ? wanted : Math.min(wanted, room);
}
