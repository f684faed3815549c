/**
 * What queries have reserved from each host's buffer pool: the root of the tree of reservations, the one number
 * in it that other queries move (memory 2.1, R13).
 *
 * Below the root nothing can be refused that a query's own limit does not refuse, and that is known before it
 * starts. The root can refuse only where admission let in more than a host has: with a pool that has no maximum
 * (T-15), or several controllers (7.5). Only then does the simulator keep these numbers. A footprint reserves
 * its peak for as long as it runs, or as much of it as is free when it starts; the rest goes to scratch.
 *
 * Those that start in one instant all claim their minimum before anybody grows (R16), so who is counted last among
 * them has its minimum, though others have the rest of the host by then. That minimum is not counted here.
 *
 * Must keep: nothing is granted over a host's limit, and everything is given back once.
 */
import { invariant } from "../core/assert.ts";
import { KiB } from "../core/units.ts";
import type { Placement } from "./placement.ts";

/** `--buffer_pool_limit`, 85 % of what admission gives away, in whole buffers: as the live fleet's hosts have it. */
const BUFFER_POOL_SHARE = 0.85;
const MIN_BUFFER_SIZE = 8 * KiB;

export class HostBuffers {
  readonly #limits: Float64Array;
  readonly #inUse: Float64Array;
  /** Of it, taken in the latest instant in which somebody took anything there. */
  readonly #takenAt: Float64Array;
  readonly #takenThen: Float64Array;

  constructor(admitMemLimits: readonly number[]) {
    this.#limits = Float64Array.from(admitMemLimits, (limit) => {
      const share = Math.floor(limit * BUFFER_POOL_SHARE);
      return share - (share % MIN_BUFFER_SIZE);
    });
    this.#inUse = new Float64Array(admitMemLimits.length);
    this.#takenAt = new Float64Array(admitMemLimits.length).fill(-1);
    this.#takenThen = new Float64Array(admitMemLimits.length);
  }

  /** Never less than nothing: what ran before the numbers were kept may take more than there is. */
  freeOn(host: number): number {
    return Math.max(0, this.#limits[host]! - this.#inUse[host]!);
  }

  /** What was free before anything of this instant, and is for minimums. */
  claimableOn(host: number, now: number): number {
    return this.freeOn(host) + (this.#takenAt[host] === now ? this.#takenThen[host]! : 0);
  }

  /** hot: bench/simulate. A footprint starts. */
  start(host: number, bytes: number, now: number): void {
    this.take(host, bytes);
    if (this.#takenAt[host] !== now) this.#takenThen[host] = 0;
    this.#takenAt[host] = now;
    this.#takenThen[host] = this.#takenThen[host]! + bytes;
  }

  inUseOn(host: number): number {
    return this.#inUse[host]!;
  }

  /** Every host on which the footprint runs has so much free. hot: bench/simulate */
  haveRoom({ hosts, hasFootprint }: Placement, bytes: number): boolean {
    for (let i = 0; i < hosts.length; i++) if (hasFootprint[i] === 1 && bytes > this.freeOn(hosts[i]!)) return false;
    return true;
  }

  /** hot: bench/simulate. Negative amounts give back. */
  take(host: number, bytes: number): void {
    const inUse = this.#inUse[host]! + bytes;
    invariant(inUse >= 0, "R13 buffers are given back once");
    invariant(bytes <= 0 || inUse <= this.#limits[host]!, "R13 a host's buffers are within their limit");
    this.#inUse[host] = inUse;
  }

  /** Held by a query that began before anybody counted; trivial ones may have passed every check (T-3). */
  adopt(host: number, bytes: number): void {
    this.#inUse[host] = this.#inUse[host]! + bytes;
  }
}
