/**
 * Scratch on each host, where it is limited (S9). A query that spills has its bytes from its start to its end; what is
 * free when it starts is what it may write.
 *
 * Must keep: nothing is taken over a host's limit, and everything is given back once.
 */
import { invariant } from "../core/assert.ts";

export class HostScratch {
  readonly #limits: readonly number[];
  readonly #inUse: Float64Array;

  /** By host number, Infinity: no limit. */
  constructor(limits: readonly number[]) {
    this.#limits = limits;
    this.#inUse = new Float64Array(limits.length);
  }

  freeOn(host: number): number {
    return this.#limits[host]! - this.#inUse[host]!;
  }

  inUseOn(host: number): number {
    return this.#inUse[host]!;
  }

  /** Negative amounts give back. */
  take(host: number, bytes: number): void {
    const inUse = this.#inUse[host]! + bytes;
    invariant(inUse >= 0, "S9 scratch is given back once");
    invariant(inUse <= this.#limits[host]!, "S9 a host's scratch is within its limit");
    this.#inUse[host] = inUse;
  }
}
