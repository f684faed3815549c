/**
 * How much of a memory limit reservations may take, and the other way round (admission 2.1).
 *
 * The two are not exact inverses, and the product's queries live with it (T-25): keep double arithmetic and
 * truncation as they are.
 */
import { type Bytes, MiB } from "../units.ts";

/**
 * Smallest query memory limit under which a reservation fits: max(trunc(1.25 r), r + 32 MiB). The branches
 * meet at r = 128 MiB. A negative reservation counts as 0. Raises the estimate in MEM-3, printed by REJ-B2b.
 */
export function limitNeededFor(reservation: number): Bytes {
  const r = Math.max(reservation, 0);
  return Math.max(Math.trunc(r * 1.25), r + 32 * MiB) as Bytes;
}

/** Largest reservation that fits under a limit: max(0, min(trunc(0.8 m), m - 32 MiB)). */
export function reservationAllowedBy(limit: number): Bytes {
  return Math.max(0, Math.min(Math.trunc(0.8 * limit), limit - 32 * MiB)) as Bytes;
}
