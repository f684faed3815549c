/**
 * What is fixed for one controller's life: whose it is, which mode, and the process flags that change its
 * decisions (admission 11.1), with the product's defaults.
 */
import type { Millis } from "../units.ts";

export interface ControllerFlags {
  readonly queueWaitTimeout: number;
  readonly clampQueryMemLimitBackendMemLimit: boolean;
  readonly useDedicatedCoordinatorEstimates: boolean;
  readonly balanceQueriesAcrossExecutorGroups: boolean;
  readonly staleTopicThreshold: Millis;
}

export const DEFAULT_CONTROLLER_FLAGS: ControllerFlags = {
  queueWaitTimeout: 60_000,
  clampQueryMemLimitBackendMemLimit: true,
  useDedicatedCoordinatorEstimates: true,
  balanceQueriesAcrossExecutorGroups: false,
  staleTopicThreshold: 5000 as Millis,
};

export interface ControllerOptions {
  /** `hostname:port` under which it publishes; its own entries are ignored when they come back. */
  readonly hostId: string;
  /** `global`: one controller for all coordinators, whose waiters poll (admission 7.7). */
  readonly mode: "distributed" | "global";
  readonly flags: ControllerFlags;
  /**
   * False: as the product does it, faults included. True: T-28, the leaked quota load, is repaired, and so is
   * T-10: what needs no executors is dequeued while there are none.
   */
  readonly repaired: boolean;
  /** Global mode with compressed requests: a queued query is scheduled anew at its next attempt (5.1). */
  readonly dropsSchedulesWhenQueued: boolean;
  /** False: every id is known to be new and nobody asks by id, so none is looked at (or, if made when read, made). */
  readonly keepsIds: boolean;
  /** Order of pools in a pass and in an update (T-11). */
  readonly poolOrder: (a: string, b: string) => number;
}

export const byName = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

export const controllerOptions = (
  given: Partial<ControllerOptions> & { readonly hostId: string },
): ControllerOptions => ({
  hostId: given.hostId,
  mode: given.mode ?? "distributed",
  flags: given.flags ?? DEFAULT_CONTROLLER_FLAGS,
  repaired: given.repaired ?? false,
  dropsSchedulesWhenQueued: given.dropsSchedulesWhenQueued ?? false,
  keepsIds: given.keepsIds ?? true,
  poolOrder: given.poolOrder ?? byName,
});
