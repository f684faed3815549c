/**
 * How much of a query's memory limit may be reserved, and back: R8 and R9 (memory 2.3).
 *
 * The rest is for memory outside reservations (R10).
 */
import { MiB } from "../units.ts";

const FRACTION = 0.8;
const REMAINDER = 32 * MiB;

/**
 * R8. `bufferPoolLimit` counts as set if > 0 and then stands alone; otherwise the lowest hard limit of query and
 * process decides. Returns -1 when nothing limits, and at least 0 else.
 */
export function reservationLimitFor(memLimit: number, processLimit: number, bufferPoolLimit: number): number {
  if (bufferPoolLimit > 0) return bufferPoolLimit;
  const limit = lowest(memLimit, processLimit);
  if (limit < 0) return -1;
  return Math.max(0, Math.min(Math.floor(limit * FRACTION), limit - REMAINDER));
}

/** R9: smallest memory limit under which `reservation` fits. */
export const memLimitFor = (reservation: number): number =>
  Math.max(Math.ceil(reservation / FRACTION), reservation + REMAINDER);

function lowest(a: number, b: number): number {
  if (a < 0) return b;
  return b < 0 ? a : Math.min(a, b);
}
