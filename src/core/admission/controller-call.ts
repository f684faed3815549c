/**
 * Everything that was asked of a controller, and what it answered, as plain data: what a replay goes through
 * again (insight 7.1).
 *
 * Inputs and answers stand together, so that the first difference is seen where it arises. Shapes and pool
 * records, which thousands of requests share, come once as calls of their own and are named by number.
 */

import type { BackendDescriptor } from "../cluster/backend.ts";
import type { AdmissionPath } from "../events.ts";
import type { PoolConfig } from "../pool-config.ts";
import type { HostFigures, PoolFigures } from "../statestore/topic.ts";
import type { ControllerOptions } from "./controller-options.ts";
import type { BackendUsage } from "./pool-stats.ts";
import type { QueryState } from "./query.ts";
import type { QueueReason, RejectReason } from "./reasons.ts";
import type { AdmissionRequest, RequestShape } from "./request.ts";

/** What the controller has decided about a query so far. */
export interface Verdict {
  readonly query: string;
  readonly state: QueryState;
  readonly path: AdmissionPath | null;
  readonly rejectReason: RejectReason | null;
  /** The reason it waits for, null when it never waited. */
  readonly queueReason: QueueReason | null;
  readonly group: string | null;
  readonly hosts: readonly string[] | null;
  /** MEM-9 to MEM-11, null unless it runs or ran. */
  readonly perHost: number | null;
  readonly onCoordinator: number | null;
  readonly cluster: number | null;
  readonly memLimit: number | null;
  readonly coordinatorMemLimit: number | null;
}

/** Maps as lists of pairs, columns as lists: what JSON can hold. */
export type PlainConfig = Omit<PoolConfig, "userQueryLimits" | "groupQueryLimits"> & {
  readonly userQueryLimits: readonly (readonly [string, number])[];
  readonly groupQueryLimits: readonly (readonly [string, number])[];
};

export type PlainEntry =
  | {
      readonly kind: "pool";
      readonly pool: string;
      readonly host: string;
      readonly stats:
        | (Omit<PoolFigures, "userLoads"> & { readonly userLoads: readonly (readonly [string, number])[] })
        | null;
    }
  | {
      readonly kind: "hosts";
      readonly host: string;
      readonly stats: HostFigures | null;
    };

export type ControllerCall =
  /** A process started: whatever came before under this name is gone. */
  | { readonly op: "start"; readonly options: Omit<ControllerOptions, "poolOrder"> }
  | { readonly op: "shape"; readonly number: number; readonly shape: RequestShape }
  | { readonly op: "config"; readonly number: number; readonly config: PlainConfig }
  | {
      readonly op: "membership";
      readonly version: number;
      readonly backends: readonly BackendDescriptor[];
      /** Addresses that stand in no group: blacklisted, or of another minimum size than their group. */
      readonly groupless: readonly string[];
      readonly removedCoordinators: readonly string[];
      readonly released: readonly string[];
    }
  | {
      readonly op: "submit" | "submitCancelled";
      readonly request: Omit<AdmissionRequest, "shape">;
      readonly shape: number;
      readonly config: number;
      readonly rootConfig: number;
      readonly verdict: Verdict;
    }
  | {
      readonly op: "pass";
      /** Who left the queue, in order. */
      readonly left: readonly Verdict[];
      /** Heads whose new reason was told. */
      readonly waiting: readonly Verdict[];
    }
  | { readonly op: "timeOut" | "cancel" | "markCancelled" | "settle" | "poll"; readonly verdict: Verdict }
  | { readonly op: "spoil"; readonly reason: RejectReason; readonly query: string }
  | {
      readonly op: "releaseBackends";
      readonly query: string;
      readonly positions: readonly number[];
      readonly bytes: number;
    }
  | { readonly op: "releaseRest"; readonly query: string; readonly bytes: number }
  | { readonly op: "releaseQuery"; readonly query: string; readonly peak: number; readonly done: boolean }
  | { readonly op: "usage"; readonly pool: string; readonly usage: BackendUsage }
  | { readonly op: "refresh" }
  | { readonly op: "collect"; readonly entries: readonly PlainEntry[] }
  | { readonly op: "apply"; readonly isDelta: boolean; readonly entries: readonly PlainEntry[] }
  /** `limit` null: none. */
  | { readonly op: "processMemory"; readonly use: number; readonly limit: number | null };
