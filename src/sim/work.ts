/**
 * How long a query works on each of its hosts, and what it spills there: the nominal model of an executor.
 *
 * A footprint whose peak fits under what its limits leave for reservations (R8) takes its drawn duration. One
 * that does not writes the rest to scratch and takes longer by those bytes over the host's scratch bandwidth;
 * one that cannot spill, or may hold nothing that it could spill, fails when its profile crosses the limit, and one
 * that may not write so much when it has written what it may.
 * What other queries leave of a host is `HostBuffers`' and `HostScratch`'s business.
 */
import type { FootprintProfile, ModelSpec, QueryClass } from "../config/scenario.ts";
import { hostNameOf } from "../config/scenario-cluster.ts";
import { progressOfPeak, shareOfPeak } from "../workload/footprint.ts";
import type { Micros } from "./event-queue.ts";
import type { FirstRefusal } from "./room-ahead.ts";

const MICROS_PER_SECOND = 1_000_000;
const STEPS = 1000;

/** What one fragment instance's host goes through. */
export interface HostWork {
  /** From the start of the query's work; whole microseconds. */
  readonly takes: Micros;
  readonly peak: number;
  readonly spilled: number;
  /** It fails then, for want of that. */
  readonly wants: Want | null;
}

/** Memory; scratch that its own limit of 0, its own limit, or the host's scratch does not give it. */
export type Want = "memory" | "scratchOff" | "scratchLimit" | "scratchSpace";

/** Pieces in which a footprint grows from its minimum to its peak, each one growth of a reservation. */
const PIECES = 64;

/**
 * `refused` of the growths to the peak met chance instead of a limit; each writes a piece out, or ends it. What the
 * minimum covers needs no growth, so no dice (R1).
 */
export function hostWorkWithRefusals(
  work: HostWork,
  queryClass: QueryClass,
  model: ModelSpec,
  minimum: number,
  refused: Refusals,
): HostWork {
  const { uses } = queryClass;
  const growth = work.peak - minimum;
  if (refused.count === 0 || work.wants !== null || uses.kind !== "footprint" || growth <= 0) return work;
  if (!uses.spillable || minimum === 0) {
    const peak = Math.round(minimum + (growth * refused.firstAt) / PIECES);
    const takes = Math.floor(work.takes * whenReached(uses.profile, peak / work.peak));
    return { takes, peak, spilled: 0, wants: "memory" };
  }
  const spilled = Math.round((refused.count * growth) / PIECES);
  const takes = work.takes + writing(spilled, work.peak - spilled, work.takes, model);
  return { takes, peak: work.peak - spilled, spilled: work.spilled + spilled, wants: null };
}

/** How many growths on the way to the peak are refused, and which piece is the first. */
export interface Refusals {
  readonly count: number;
  readonly firstAt: number;
}

/** `refuses` throws the dice, once a piece: what was written out made room for it, so it is not asked for again. */
export function throwRefusals(refuses: () => boolean): Refusals {
  let count = 0;
  let firstAt = PIECES;
  for (let piece = 0; piece < PIECES; piece++) if (refuses() && count++ === 0) firstAt = piece;
  return { count, firstAt };
}

/** What may be reserved for a query on a host. */
export interface WorkRoom {
  /** -1: any amount. */
  readonly bytes: number;
  /** When others leave it too little for the first time; null: only its own limit counts. */
  readonly refused: FirstRefusal | null;
}

/** What a query wants of a host. */
export interface WorkWanted {
  readonly peak: number;
  readonly duration: Micros;
  /** Bytes whose writing `duration` contains: a recorded query spilled there already. */
  readonly spilled: number;
}

/** What comes of it where so much may be reserved for the query. */
export function hostWork(
  queryClass: QueryClass,
  model: ModelSpec,
  { peak, duration, spilled: paid }: WorkWanted,
  { bytes: room, refused }: WorkRoom,
): HostWork {
  const { uses } = queryClass;
  if (room < 0 || peak <= room || uses.kind !== "footprint") return { takes: duration, peak, spilled: 0, wants: null };
  if (!uses.spillable || room === 0) {
    const takes = Math.floor(duration * (refused?.at ?? whenReached(uses.profile, room / peak)));
    return { takes, peak: refused?.holding ?? room, spilled: 0, wants: "memory" };
  }
  const spilled = peak - room;
  return { takes: duration + writing(spilled - paid, room, duration, model), peak: room, spilled, wants: null };
}

/** What it adds to `duration` to write so much, where it holds `held` bytes at most. */
function writing(bytes: number, held: number, duration: Micros, { scratchBandwidth, spillSigma }: ModelSpec): Micros {
  if (bytes <= 0) return 0;
  return spillSigma === undefined
    ? Math.round((bytes / scratchBandwidth) * MICROS_PER_SECOND)
    : Math.round(duration * (spillFactor(held + bytes, held, spillSigma) - 1));
}

const SLOWEST = 3;

/** A query that needs more than its limit leaves takes longer, at most three times as long (insight 3.2). */
export const spillFactor = (peak: number, room: number, sigma: number): number =>
  peak <= room ? 1 : Math.min(SLOWEST, 1 + sigma * (peak / room - 1));

/**
 * The same where it may not write so much: `limit` is SCRATCH_LIMIT (S7, -1: none), `free` what the host's scratch has
 * left (S9).
 */
export function hostWorkWithScratch(
  work: HostWork,
  { uses }: QueryClass,
  model: ModelSpec,
  { peak, duration, spilled: paid }: WorkWanted,
  limit: number,
  free: number,
): HostWork {
  const most = limit < 0 ? free : Math.min(limit, free);
  if (work.wants !== null || work.spilled <= most || uses.kind !== "footprint") return work;
  const share = (peak - work.spilled + most) / peak;
  const takes =
    Math.floor(duration * whenReached(uses.profile, share)) + writing(most - paid, work.peak, duration, model);
  const wants = limit === 0 ? "scratchOff" : most === limit ? "scratchLimit" : "scratchSpace";
  return { takes, peak: work.peak, spilled: most, wants };
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
