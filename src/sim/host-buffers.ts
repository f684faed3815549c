/**
 * What queries may hold of each host's buffer pool: the root of the tree of reservations, the one number in it that
 * other queries move (memory 2.1, R13).
 *
 * Below the root nothing can be refused that a query's own limit does not refuse, and that is known before it
 * starts. The root can refuse only where admission let in more than a host has: with a pool that has no maximum
 * (T-15), or several controllers (7.5). Only then does the simulator keep these numbers. They are everybody's most:
 * while these fit together, nobody can be refused, whatever shape his footprint has; when they don't, whoever comes
 * is looked at more closely (`roomAhead`).
 *
 * Must keep: everything is given back once.
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

  constructor(admitMemLimits: readonly number[]) {
    this.#limits = Float64Array.from(admitMemLimits, (limit) => {
      const share = Math.floor(limit * BUFFER_POOL_SHARE);
      return share - (share % MIN_BUFFER_SIZE);
    });
    this.#inUse = new Float64Array(admitMemLimits.length);
  }

  limitOf(host: number): number {
    return this.#limits[host]!;
  }

  /** What nobody may ever ask for; never less than nothing. */
  freeOn(host: number): number {
    return Math.max(0, this.#limits[host]! - this.#inUse[host]!);
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
    this.#inUse[host] = inUse;
  }
}
