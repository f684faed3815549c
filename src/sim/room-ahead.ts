/**
 * What a host's buffers leave to a footprint over its whole course (memory 2.1, R13), where others hold some of them:
 * everybody follows the shape of his footprint, as on the live fleet.
 *
 * Who comes last is the one that is refused; those before him keep the course that was planned for them. Looked at in
 * the steps in which live footprints grow.
 */
import type { FootprintProfile } from "../config/scenario.ts";
import { progressOfPeak, shareOfPeak } from "../workload/footprint.ts";
import type { Micros } from "./event-queue.ts";

const STEPS = 16;

/** Somebody who holds buffers of the host. */
export interface Holder {
  readonly profile: FootprintProfile;
  readonly peak: number;
  /** What is over this he writes to scratch. */
  readonly most: number;
  /** What he would have if the host let him: he takes what becomes free. */
  readonly asks: number;
  readonly since: Micros;
  readonly duration: Micros;
  /** He has given everything back after that. */
  readonly until: Micros;
}

export interface FirstRefusal {
  /** Share of the duration. */
  readonly at: number;
  /** What it has by then. */
  readonly holding: number;
}

/** What a footprint can hold all along, writing the rest to scratch, and where it is first refused; null: nowhere. */
export interface Room {
  readonly most: number;
  readonly refused: FirstRefusal | null;
  /** Left to those who begin in this instant, before anybody of it grows (R16). */
  readonly atStart: number;
}

/** `own.most` is what its own limits leave, Infinity: no limit; `limit` the host's. */
export function roomAhead(limit: number, others: readonly Holder[], own: Omit<Holder, "until" | "asks">): Room {
  let refused: FirstRefusal | null = null;
  let most = own.peak;
  let holding = 0;
  for (const progress of stepsOf(own.profile)) {
    const at = own.since + progress * own.duration;
    const wanted = shareOfPeak(own.profile, progress) * own.peak;
    const left = Math.min(own.most, limit - heldUpTo(limit, others, at));
    holding = Math.max(holding, Math.min(wanted, left));
    if (wanted <= left) continue;
    refused ??= { at: progress, holding: Math.floor(holding) };
    most = Math.min(most, own.peak - (wanted - left));
  }
  return { most: Math.max(0, Math.floor(most)), refused, atStart: limit - askedBefore(limit, others, own.since) };
}

/** Its peak is one of them, wherever it lies. */
function stepsOf(profile: FootprintProfile): readonly number[] {
  const even = Array.from({ length: STEPS + 1 }, (_, i) => i / STEPS);
  return [...new Set([...even, progressOfPeak(profile)])].sort((a, b) => a - b);
}

/** All that others hold, or the host's limit where that is less: then the rest of them makes no difference. */
function heldUpTo(limit: number, others: readonly Holder[], at: Micros): number {
  let held = 0;
  for (let i = 0; i < others.length && held < limit; i++) held += heldAt(others[i]!, at, others[i]!.most);
  return Math.min(limit, held);
}

/**
 * The same of those who began before. What is refused them now they take as soon as it is free: a host that is asked
 * for more than it has is full.
 */
function askedBefore(limit: number, others: readonly Holder[], at: Micros): number {
  let asked = 0;
  for (let i = 0; i < others.length && asked < limit; i++)
    if (others[i]!.since < at) asked += heldAt(others[i]!, at, others[i]!.asks);
  return Math.min(limit, asked);
}

const heldAt = ({ profile, peak, since, duration, until }: Holder, at: Micros, most: number): number =>
  at > until ? 0 : Math.min(most, shareOfPeak(profile, duration === 0 ? 1 : (at - since) / duration) * peak);
