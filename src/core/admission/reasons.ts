/**
 * Why a request waits or is refused, as data, and the product's wording of it (admission 3, 4, 6.5, 8.2).
 *
 * A reason is made when a check fails and keeps the figures of that moment; its text is made when somebody
 * reads it. `rule` is the id in the rules; metrics and folds count by it.
 */
import { unreachable } from "../assert.ts";
import { prettyBytes, prettyMillis } from "../pretty.ts";
import type { Bytes, MaxBytes } from "../units.ts";

/** How old the controller's view was: null fresh, -1 no update ever, else the age in ms (admission 7.6). */
export type StaleAge = number | null;

/** Where a memory figure came from; the names are the product's (admission 2.3). */
export type MemorySource =
  | "QUERY_OPTION_MEM_LIMIT"
  | "QUERY_PLAN_PER_HOST_MEM_ESTIMATE"
  | "QUERY_PLAN_DEDICATED_COORDINATOR_MEM_ESTIMATE"
  | "ADJUSTED_PER_HOST_MEM_ESTIMATE"
  | "ADJUSTED_DEDICATED_COORDINATOR_MEM_ESTIMATE"
  | "POOL_CONFIG_MIN_QUERY_MEM_LIMIT"
  | "POOL_CONFIG_MAX_QUERY_MEM_LIMIT"
  | "QUERY_OPTION_MEM_LIMIT_COORDINATORS"
  | "QUERY_OPTION_MEM_LIMIT_EXECUTORS"
  | "HOST_MEM_TRACKER_LIMIT"
  | "COORDINATOR_ONLY_OPTIMIZATION";

/** REJ-B2b and ADM-6: the plan's minimum reservations don't fit under the limit that was chosen. */
export interface ReservationAboveLimit {
  readonly needed: Bytes;
  readonly source: MemorySource;
  readonly pool: string;
  /** `limitNeededFor(needed)`. */
  readonly limitNeeded: Bytes;
}

export type QueueReason =
  | { readonly rule: "ADM-1"; readonly queued: number; readonly stale: StaleAge }
  | { readonly rule: "ADM-2"; readonly running: number; readonly limit: number; readonly stale: StaleAge }
  | {
      readonly rule: "ADM-3";
      readonly host: string;
      readonly needed: number;
      readonly inUse: number;
      readonly slots: number;
    }
  | {
      readonly rule: "ADM-4";
      readonly pool: string;
      readonly limit: Bytes;
      readonly needed: Bytes;
      /** Floored at 0: an over-committed pool offers nothing. */
      readonly available: Bytes;
      readonly stale: StaleAge;
    }
  | {
      readonly rule: "ADM-5";
      readonly host: string;
      readonly limit: Bytes;
      readonly needed: Bytes;
      readonly available: Bytes;
      readonly stale: StaleAge;
    }
  | ({ readonly rule: "ADM-6" } & ReservationAboveLimit)
  /** No group, only unhealthy ones, or all blacklisted (admission 6.5). */
  | { readonly rule: "NO-EXECUTORS" }
  | { readonly rule: "NO-COORDINATOR" };

export type RejectReason =
  | { readonly rule: "REJ-A1" }
  | { readonly rule: "REJ-A2" }
  | { readonly rule: "REJ-A3"; readonly minQueryMemLimit: number; readonly maxMemResources: number }
  | { readonly rule: "REJ-A4"; readonly minQueryMemLimit: number; readonly maxQueryMemLimit: number }
  | { readonly rule: "REJ-A5"; readonly limit: number; readonly queued: number; readonly stale: StaleAge }
  | { readonly rule: "REJ-B1"; readonly host: string; readonly needed: number; readonly slots: number }
  | { readonly rule: "REJ-B2a"; readonly host: string; readonly needed: Bytes }
  | ({ readonly rule: "REJ-B2b" } & ReservationAboveLimit)
  | { readonly rule: "REJ-B3"; readonly host: string; readonly threads: number; readonly limit: number }
  | { readonly rule: "REJ-B4"; readonly backends: number; readonly threads: number; readonly limit: number }
  | { readonly rule: "REJ-B6"; readonly limit: MaxBytes; readonly needed: Bytes }
  | { readonly rule: "REJ-B7"; readonly needed: Bytes; readonly limit: MaxBytes }
  | {
      readonly rule: "REJ-B8" | "REJ-B9";
      readonly host: string;
      readonly needed: Bytes;
      readonly limit: Bytes;
    }
  | { readonly rule: "REJ-C1"; readonly error: string }
  | { readonly rule: "REJ-C2"; readonly coordinator: string }
  | {
      readonly rule: "REJ-C3";
      readonly kind: "user" | "wildcard";
      readonly load: number;
      readonly user: string;
      readonly limit: number;
      /** `root` when the cluster-wide level refused. */
      readonly pool: string;
    }
  | {
      readonly rule: "REJ-C3";
      readonly kind: "group";
      readonly load: number;
      readonly user: string;
      readonly group: string;
      readonly limit: number;
      readonly pool: string;
      /** Other matching groups with their limits, in the order in which they were outdone (8.2). */
      readonly ignored: readonly (readonly [group: string, limit: number])[];
    }
  /** Group lookup failed: rejected with an empty reason (admission 8.2). */
  | { readonly rule: "REJ-C3"; readonly kind: "lookupFailed" }
  | { readonly rule: "REJ-C3"; readonly kind: "badName"; readonly user: string }
  | { readonly rule: "REJ-C4"; readonly usage: number; readonly limit: number }
  | { readonly rule: "REJ-C5"; readonly error: string };

const MIN_RESERVATION_KEY = "Per Host Min Memory Reservation";

const USE_MEM_LIMIT =
  "Use the MEM_LIMIT query option to indicate how much memory is required per node. The total memory needed is the per-node MEM_LIMIT times the number of nodes executing the query. See the Admission Control documentation for more information.";

/** Warning without prefix, or empty when the view is fresh (admission 7.6). */
export function stalenessText(age: StaleAge): string {
  if (age === null) return "";
  const head = "Warning: admission control information from statestore is stale: ";
  return age < 0
    ? `${head}no update has been received.`
    : `${head}${prettyMillis(age)} since last update was received.`;
}

const staleSuffix = (age: StaleAge): string => (age === null ? "" : ` ${stalenessText(age)}`);

/** `$1` of REJ-B2b: what a person can change so that the query fits. */
function limitName(source: MemorySource, pool: string): string {
  switch (source) {
    case "QUERY_OPTION_MEM_LIMIT":
    case "QUERY_PLAN_PER_HOST_MEM_ESTIMATE":
    case "QUERY_PLAN_DEDICATED_COORDINATOR_MEM_ESTIMATE":
    case "ADJUSTED_PER_HOST_MEM_ESTIMATE":
    case "ADJUSTED_DEDICATED_COORDINATOR_MEM_ESTIMATE":
    case "COORDINATOR_ONLY_OPTIMIZATION":
      return "MEM_LIMIT option";
    case "QUERY_OPTION_MEM_LIMIT_EXECUTORS":
      return "MEM_LIMIT_EXECUTORS option";
    case "QUERY_OPTION_MEM_LIMIT_COORDINATORS":
      return "MEM_LIMIT_COORDINATORS option";
    case "POOL_CONFIG_MIN_QUERY_MEM_LIMIT":
      return `impala.admission-control.min-query-mem-limit of request pool '${pool}'`;
    case "POOL_CONFIG_MAX_QUERY_MEM_LIMIT":
      return `impala.admission-control.max-query-mem-limit of request pool '${pool}'`;
    case "HOST_MEM_TRACKER_LIMIT":
      return "system memory or the CGroup memory limit";
    default:
      return unreachable(source);
  }
}

function reservationAboveLimitText(r: ReservationAboveLimit): string {
  return `minimum memory reservation is greater than memory available to the query for buffer reservations. Memory reservation needed given the current plan: ${prettyBytes(r.needed)}. Adjust the ${limitName(r.source, r.pool)} for the query to allow the query memory limit to be at least ${prettyBytes(r.limitNeeded)}. Note that changing the memory limit may also change the plan. See '${MIN_RESERVATION_KEY}' in the query profile for more information about the per-node memory requirements.`;
}

export function queueReasonText(r: QueueReason): string {
  switch (r.rule) {
    case "ADM-1":
      return `queue is not empty (size ${r.queued}); queued queries are executed first.${staleSuffix(r.stale)}`;
    case "ADM-2":
      return `number of running queries ${r.running} is at or over limit ${r.limit}.${staleSuffix(r.stale)}`;
    case "ADM-3":
      return `Not enough admission control slots available on host ${r.host}. Needed ${r.needed} slots but ${r.inUse}/${r.slots} are already in use.`;
    case "ADM-4":
      return `Not enough aggregate memory available in pool ${r.pool} with max mem resources ${prettyBytes(r.limit)}. Needed ${prettyBytes(r.needed)} but only ${prettyBytes(r.available)} was available.${staleSuffix(r.stale)}`;
    case "ADM-5":
      return `Not enough memory available on host ${r.host}. Needed ${prettyBytes(r.needed)} but only ${prettyBytes(r.available)} out of ${prettyBytes(r.limit)} was available.${staleSuffix(r.stale)}`;
    case "ADM-6":
      return reservationAboveLimitText(r);
    case "NO-EXECUTORS":
      return "Waiting for executors to start. Only DDL queries and queries scheduled only on the coordinator (either NUM_NODES set to 1 or when small query optimization is triggered) can currently run.";
    case "NO-COORDINATOR":
      return "Coordinator not registered with the statestore.";
    default:
      return unreachable(r);
  }
}

export function rejectReasonText(r: RejectReason): string {
  switch (r.rule) {
    case "REJ-A1":
      return "disabled by requests limit set to 0";
    case "REJ-A2":
      return "disabled by pool max mem resources set to 0";
    case "REJ-A3":
      return `Invalid pool config: the min_query_mem_limit ${r.minQueryMemLimit} is greater than the max_mem_resources ${r.maxMemResources}`;
    case "REJ-A4":
      return `Invalid pool config: the min_query_mem_limit is greater than the max_query_mem_limit (${r.minQueryMemLimit} > ${r.maxQueryMemLimit})`;
    case "REJ-A5":
      return `queue full, limit=${r.limit}, num_queued=${r.queued}.${staleSuffix(r.stale)}`;
    case "REJ-B1":
      return `number of admission control slots needed (${r.needed}) on backend '${r.host}' is greater than total slots available ${r.slots}. Reduce MT_DOP or MAX_FRAGMENT_INSTANCES_PER_NODE to less than ${r.slots} to ensure that the query can execute.`;
    case "REJ-B2a":
      return `minimum memory reservation on backend '${r.host}' is greater than memory available to the query for buffer reservations. Increase the buffer_pool_limit to ${prettyBytes(r.needed)}. See '${MIN_RESERVATION_KEY}' in the query profile for more information about the per-node memory requirements.`;
    case "REJ-B2b":
      return reservationAboveLimitText(r);
    case "REJ-B3":
      return `thread reservation on backend '${r.host}' is greater than the THREAD_RESERVATION_LIMIT query option value: ${r.threads} > ${r.limit}.`;
    case "REJ-B4":
      return `sum of thread reservations across all ${r.backends} backends is greater than the THREAD_RESERVATION_AGGREGATE_LIMIT query option value: ${r.threads} > ${r.limit}.`;
    case "REJ-B6":
      return `minimum memory reservation needed is greater than pool max mem resources. Pool max mem resources: ${prettyBytes(r.limit)}. Cluster-wide memory reservation needed: ${prettyBytes(r.needed)}. Increase the pool max mem resources. See '${MIN_RESERVATION_KEY}' in the query profile for more information about the per-node memory requirements.`;
    case "REJ-B7":
      return `request memory needed ${prettyBytes(r.needed)} is greater than pool max mem resources ${prettyBytes(r.limit)}.\n\n${USE_MEM_LIMIT}`;
    case "REJ-B8":
    case "REJ-B9":
      return `request memory needed ${prettyBytes(r.needed)} is greater than memory available for admission ${prettyBytes(r.limit)} of ${r.host}.\n\nUse the MEM_LIMIT query option to indicate how much memory is required per node.`;
    case "REJ-C1":
      return `Error during scheduling: ${r.error}`;
    case "REJ-C2":
      return `The coordinator no longer exists: ${r.coordinator}`;
    case "REJ-C3":
      switch (r.kind) {
        case "user":
          return `current per-user load ${r.load} for user '${r.user}' is at or above the user limit ${r.limit} in pool '${r.pool}'`;
        case "wildcard":
          return `current per-user load ${r.load} for user '${r.user}' is at or above the wildcard limit ${r.limit} in pool '${r.pool}'`;
        case "group": {
          const ignored = r.ignored.map(([group, limit]) => ` '${group}':${limit}`).join("");
          const tail = ignored === "" ? "" : ` (Ignored Group Quotas${ignored})`;
          return `current per-group load ${r.load} for user '${r.user}' in group '${r.group}' is at or above the group limit ${r.limit} in pool '${r.pool}'${tail}`;
        }
        case "lookupFailed":
          return "";
        case "badName":
          return `cannot parse user name ${r.user}`;
        default:
          return unreachable(r);
      }
    case "REJ-C4":
      return `Admission rejected due to memory pressure in admissiond. Current usage: ${r.usage} bytes, limit: ${r.limit} bytes`;
    case "REJ-C5":
      return `Failed to get query execution request: ${r.error}`;
    default:
      return unreachable(r);
  }
}

/** What the client reads (admission 3): `Rejected query from pool P: REASON`. */
export const rejectionError = (pool: string, r: RejectReason): string =>
  `Rejected query from pool ${pool}: ${rejectReasonText(r)}`;

/** What the client reads after a queue timeout (admission 5.6). */
export const timeoutError = (timeoutMs: number, pool: string, r: QueueReason, details: string): string =>
  `Admission for query exceeded timeout ${timeoutMs}ms in pool ${pool}. Queued reason: ${queueReasonText(r)} Additional Details: ${details}`;

/** hot: bench/simulate. Same rule and same figures: nothing new to tell. */
export function sameReason(a: QueueReason, b: QueueReason): boolean {
  switch (a.rule) {
    case "ADM-1":
      return b.rule === "ADM-1" && a.queued === b.queued && a.stale === b.stale;
    case "ADM-2":
      return b.rule === "ADM-2" && a.running === b.running && a.limit === b.limit && a.stale === b.stale;
    case "ADM-3":
      return b.rule === "ADM-3" && a.host === b.host && a.needed === b.needed && sameSlots(a, b);
    case "ADM-4":
      return b.rule === "ADM-4" && a.pool === b.pool && sameRoom(a, b);
    case "ADM-5":
      return b.rule === "ADM-5" && a.host === b.host && sameRoom(a, b);
    case "ADM-6":
      return b.rule === "ADM-6" && a.needed === b.needed && a.source === b.source && a.limitNeeded === b.limitNeeded;
    case "NO-EXECUTORS":
    case "NO-COORDINATOR":
      return a.rule === b.rule;
    default:
      return unreachable(a);
  }
}

type OfRule<R extends QueueReason["rule"]> = Extract<QueueReason, { readonly rule: R }>;

const sameSlots = (a: OfRule<"ADM-3">, b: OfRule<"ADM-3">): boolean => a.inUse === b.inUse && a.slots === b.slots;

const sameRoom = (a: OfRule<"ADM-4" | "ADM-5">, b: OfRule<"ADM-4" | "ADM-5">): boolean =>
  a.limit === b.limit && a.needed === b.needed && a.available === b.available && a.stale === b.stale;
