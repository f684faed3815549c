/**
 * What a query brings to admission (admission 1.1, 1.2): the planner's numbers, the options, and the shape
 * from which the scheduler derives one schedule per candidate group (admission 1.4).
 *
 * Everything of one *class* of queries is shared and frozen (`RequestShape`); what differs from query to
 * query is in `AdmissionRequest`. The split keeps a million queries a second from carrying a million plans.
 */
import type { Bytes } from "../units.ts";

/** Query options that admission looks at; 0 or false as in the product's defaults. */
export interface AdmissionOptions {
  /** Counts as set only if > 0; so do the next three. */
  readonly memLimit: number;
  readonly memLimitExecutors: number;
  readonly memLimitCoordinators: number;
  /** MEM-1, applied by the planner to both estimates before anything else. */
  readonly maxMemEstimateForAdmission: number;
  readonly bufferPoolLimit: number;
  /** REJ-B3; 3000 by default, acts only if > 0. */
  readonly threadReservationLimit: number;
  /** REJ-B4; acts only if > 0. */
  readonly threadReservationAggregateLimit: number;
  readonly enableTrivialQueryForAdmission: boolean;
}

export const DEFAULT_ADMISSION_OPTIONS: AdmissionOptions = {
  memLimit: 0,
  memLimitExecutors: 0,
  memLimitCoordinators: 0,
  maxMemEstimateForAdmission: 0,
  bufferPoolLimit: 0,
  threadReservationLimit: 3000,
  threadReservationAggregateLimit: 0,
  enableTrivialQueryForAdmission: true,
};

/** One plan fragment, as far as placement and minimum reservations go (admission 1.4, memory R15). */
export interface FragmentShape {
  /** `coordinator`: one instance on the coordinator. `executors`: on the chosen executors. */
  readonly runsOn: "coordinator" | "executors";
  /** Instances on each host it runs on (MT_DOP), >= 1. */
  readonly instancesPerHost: number;
  readonly minReservationPerInstance: Bytes;
  /** Once for each host the fragment has an instance on: runtime filters. */
  readonly minReservationPerBackend: Bytes;
  readonly threadReservationPerInstance: number;
  /** Marked by the planner under COMPUTE_PROCESSING_COST; only SLOT_COUNT_STRATEGY=PLANNER_CPU_ASK asks. */
  readonly isDominant: boolean;
}

export interface RequestShape {
  /** `QUERY` needs a coordinator fragment; DML does not. */
  readonly stmtType: "QUERY" | "DML";
  /** Planner's per-host peak estimate, before MEM-1. */
  readonly perHostMemEstimate: Bytes;
  /** Planner's estimate for a dedicated coordinator, before MEM-1. */
  readonly dedicatedCoordMemEstimate: Bytes;
  readonly isTrivial: boolean;
  readonly coordinatorOnly: boolean;
  /** System-table scans run on every coordinator (T-61). */
  readonly includeAllCoordinators: boolean;
  /** How many executors of the group are used; `all` is the usual full-width plan. */
  readonly executors: "all" | number;
  readonly fragments: readonly FragmentShape[];
  readonly options: AdmissionOptions;
  /** PLANNER_CPU_ASK and the group set's cores per executor, or null for the default strategy (admission 1.4). */
  readonly maxSlotsPerExecutor: number | null;
}

export interface AdmissionRequest {
  /** Two 16-digit halves joined by `:` where people see it. */
  readonly queryId: string;
  /** `hostname:port` of the coordinator that owns the query. */
  readonly coordinator: string;
  /** Resolved pool name; resolution and rights come before admission (admission 1.5). */
  readonly pool: string;
  /** Effective short user name (admission 8.4). */
  readonly user: string;
  /** Groups of the user in the order they are consulted; null when the lookup failed (admission 8.2). */
  readonly userGroups: readonly string[] | null;
  readonly shape: RequestShape;
  /** Addresses a transparently retried query must avoid; empty for all others. */
  readonly blacklistedExecutors: readonly string[];
  /** Where a query that uses fewer than all executors starts in the group's address order. */
  readonly placementOffset: number;
}
