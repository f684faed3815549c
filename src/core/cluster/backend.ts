/**
 * One backend process as the membership topic describes it (admission 1.3).
 *
 * A backend can execute, coordinate, or both. Its host name with port is its identity everywhere.
 */
import type { Bytes } from "../units.ts";

/** The group that executors without `--executor_groups` belong to; its slots are never tested (T-39). */
export const DEFAULT_GROUP = "default";
/** Reserved: a query without executors runs here (admission 6.2). */
export const EMPTY_GROUP = "empty group (using coordinator only)";
/** Reserved: the group of pools marked `onlyCoordinators` (admission 6.2). */
export const ALL_COORDINATORS_GROUP = "all-coordinators";

export interface BackendDescriptor {
  /** `hostname:port`, the address in reasons, profiles and pages. */
  readonly address: string;
  readonly isCoordinator: boolean;
  readonly isExecutor: boolean;
  readonly isQuiescing: boolean;
  /** What the host can give to queries, > 0. */
  readonly admitMemLimit: Bytes;
  readonly admissionSlots: number;
  readonly executorGroup: { readonly name: string; readonly minSize: number };
}
