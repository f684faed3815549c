/**
 * What the checks ask about the world: one pool's figures and one host's.
 *
 * Two implementations exist: a controller's own view, as old as the topic is, and the exact state over all
 * controllers, which insight compares it with (insight 2.3).
 */
export interface PoolView {
  readonly name: string;
  /** Queued at this controller only. */
  readonly localQueued: number;
  readonly aggRunning: number;
  readonly aggQueued: number;
  /** max(agg_mem_reserved, local_mem_admitted): a maximum, not a sum (T-26). */
  readonly effectiveMemReserved: number;
}

export interface HostsView {
  /**
   * max(mem_reserved, admitted by everybody known): `hostReserved(h)` of admission 4. The host is given by its
   * address and by its position in the schedule under check, which saves a controller the look-up.
   */
  memReservedOn(host: string, position: number): number;
  /** `slotsInUse(h)` of admission 4. */
  slotsInUseOn(host: string, position: number): number;
  /** Positions in the schedule before which no host is short of it; 0 when nothing is known. */
  slotsFrom(): number;
  memoryFrom(): number;
}
