/**
 * How long a query works on each of its hosts, and what it spills there: the nominal model of an executor.
 *
 * A footprint whose peak fits under what its memory limit leaves for reservations (admission 2.1) takes its
 * drawn duration. One that does not writes the rest to scratch and takes longer by those bytes over the
 * host's scratch bandwidth; one that cannot spill fails when its profile crosses the limit. Other queries
 * never make a reservation fail here: that needs the ledgers (`executors: "ledger"`).
 */

import type { FootprintProfile, ModelSpec, QueryClass } from "../config/scenario.ts";
import { hostNameOf } from "../config/scenario-cluster.ts";
import { reservationAllowedBy } from "../core/admission/reservation-math.ts";
import { progressOfPeak, shareOfPeak } from "../workload/footprint.ts";
import type { Micros } from "./event-queue.ts";

const MICROS_PER_SECOND = 1_000_000;
const STEPS = 1000;

/** What one fragment instance's host goes through. */
export interface HostWork {
  /** From the start of the query's work; whole microseconds. */
  readonly takes: Micros;
  readonly peak: number;
  readonly spilled: number;
  /** It fails then, for want of memory. */
  readonly fails: boolean;
}

/** What a limit leaves for reservations; -1: there is none. hot: bench/simulate */
export const roomUnder = (limit: number): number =>
  limit < 0 ? Number.POSITIVE_INFINITY : reservationAllowedBy(limit);

/** Pieces in which a footprint grows to its peak, each one growth of a reservation. */
const PIECES = 64;

/** `refusals` of the growths to the peak met chance instead of a limit; each writes a piece out, or ends it. */
export function hostWorkWithRefusals(
  work: HostWork,
  queryClass: QueryClass,
  model: ModelSpec,
  firstAt: number,
  refusals: number,
): HostWork {
  const { uses } = queryClass;
  if (refusals === 0 || work.fails || uses.kind !== "footprint") return work;
  if (!uses.spillable) {
    const share = firstAt / PIECES;
    return {
      takes: Math.floor(work.takes * whenReached(uses.profile, share)),
      peak: Math.round(work.peak * share),
      spilled: 0,
      fails: true,
    };
  }
  const spilled = Math.round((refusals * work.peak) / PIECES);
  const extra = Math.round((spilled / model.scratchBandwidth) * MICROS_PER_SECOND);
  return { ...work, takes: work.takes + extra, spilled: work.spilled + spilled };
}

/** How often growths are refused on the way to the peak, and the first piece that was; `refuses` throws the dice. */
export function throwRefusals(refuses: () => boolean): { readonly count: number; readonly firstAt: number } {
  let count = 0;
  let firstAt = PIECES;
  for (let piece = 0; piece < PIECES; piece++)
    // A refused growth is tried again after something was written out; a die that always refuses must end.
    while (count < PIECES * PIECES && refuses()) {
      if (count++ === 0) firstAt = piece;
    }
  return { count, firstAt };
}

/** Peak on this host, limit in force there (-1: none). */
export function hostWork(
  queryClass: QueryClass,
  model: ModelSpec,
  duration: Micros,
  peak: number,
  limit: number,
): HostWork {
  const { uses } = queryClass;
  const room = roomUnder(limit);
  if (peak <= room || uses.kind !== "footprint") return { takes: duration, peak, spilled: 0, fails: false };
  if (!uses.spillable) {
    const takes = Math.floor(duration * whenReached(uses.profile, room / peak));
    return { takes, peak: room, spilled: 0, fails: true };
  }
  const spilled = peak - room;
  const extra = Math.round((spilled / model.scratchBandwidth) * MICROS_PER_SECOND);
  return { takes: duration + extra, peak: room, spilled, fails: false };
}

/** Share of the duration at which the profile first goes over this share of the peak, to a thousandth. */
export function whenReached(profile: FootprintProfile, share: number): number {
  const atPeak = progressOfPeak(profile);
  for (let step = 0; step < STEPS; step++) {
    const at = step / STEPS;
    if (at >= atPeak) break;
    if (shareOfPeak(profile, at) > share) return at;
  }
  return atPeak;
}

/** Factor on the peak by host number; null: the same everywhere. */
export function skewOf(queryClass: QueryClass, addresses: readonly string[]): Float64Array | null {
  const { uses } = queryClass;
  if (uses.kind !== "footprint" || Object.keys(uses.skew).length === 0) return null;
  const { skew } = uses;
  return Float64Array.from(addresses, (address) => skew[address] ?? skew[hostNameOf(address)] ?? 1);
}
