/**
 * The wordings of admission 3, 4, 6.5, 7.6, 8.2 and 14.1 once more, for the slow reference model: the core's
 * texts are held against these, so nothing here may be imported from it but types.
 */
import type { MemorySource, QueueReason, RejectReason } from "../../src/core/admission/reasons.ts";

export function bytesText(n: number): string {
  const units: [number, string][] = [
    [2 ** 30, "GB"],
    [2 ** 20, "MB"],
    [2 ** 10, "KB"],
    [1, "B"],
  ];
  for (const [size, unit] of units) if (Math.abs(n) >= size) return `${(n / size).toFixed(2)} ${unit}`;
  return "0";
}

export function timeText(ms: number): string {
  let rest = Math.floor(ms);
  if (rest === 0) return "0";
  const h = Math.floor(rest / 3600000);
  rest -= h * 3600000;
  const m = Math.floor(rest / 60000);
  rest -= m * 60000;
  const s = Math.floor(rest / 1000);
  rest -= s * 1000;
  const parts: string[] = [];
  if (h > 0) parts.push(`${h}h`);
  if (m > 0) parts.push(`${m}m`);
  if (h === 0 && s > 0) parts.push(`${s}s`);
  if (h === 0 && m === 0) parts.push(s > 0 ? `${String(rest).padStart(3, "0")}ms` : `${rest}ms`);
  return parts.join("");
}

/** null: fresh; below 0: never an update; else the age. */
export function staleText(age: number | null, prefix: string): string {
  if (age === null) return "";
  const what = age < 0 ? "no update has been received." : `${timeText(age)} since last update was received.`;
  return `${prefix}Warning: admission control information from statestore is stale: ${what}`;
}

const RESERVATION_KEY = "Per Host Min Memory Reservation";

const optionName = (source: MemorySource, pool: string): string => {
  if (source === "POOL_CONFIG_MIN_QUERY_MEM_LIMIT")
    return `impala.admission-control.min-query-mem-limit of request pool '${pool}'`;
  if (source === "POOL_CONFIG_MAX_QUERY_MEM_LIMIT")
    return `impala.admission-control.max-query-mem-limit of request pool '${pool}'`;
  if (source === "HOST_MEM_TRACKER_LIMIT") return "system memory or the CGroup memory limit";
  if (source === "QUERY_OPTION_MEM_LIMIT_EXECUTORS") return "MEM_LIMIT_EXECUTORS option";
  if (source === "QUERY_OPTION_MEM_LIMIT_COORDINATORS") return "MEM_LIMIT_COORDINATORS option";
  return "MEM_LIMIT option";
};

export function reasonText(r: QueueReason | RejectReason): string {
  switch (r.rule) {
    case "ADM-1":
      return `queue is not empty (size ${r.queued}); queued queries are executed first.${staleText(r.stale, " ")}`;
    case "ADM-2":
      return `number of running queries ${r.running} is at or over limit ${r.limit}.${staleText(r.stale, " ")}`;
    case "ADM-3":
      return `Not enough admission control slots available on host ${r.host}. Needed ${r.needed} slots but ${r.inUse}/${r.slots} are already in use.`;
    case "ADM-4":
      return `Not enough aggregate memory available in pool ${r.pool} with max mem resources ${bytesText(r.limit)}. Needed ${bytesText(r.needed)} but only ${bytesText(r.available)} was available.${staleText(r.stale, " ")}`;
    case "ADM-5":
      return `Not enough memory available on host ${r.host}. Needed ${bytesText(r.needed)} but only ${bytesText(r.available)} out of ${bytesText(r.limit)} was available.${staleText(r.stale, " ")}`;
    case "ADM-6":
    case "REJ-B2b":
      return `minimum memory reservation is greater than memory available to the query for buffer reservations. Memory reservation needed given the current plan: ${bytesText(r.needed)}. Adjust the ${optionName(r.source, r.pool)} for the query to allow the query memory limit to be at least ${bytesText(r.limitNeeded)}. Note that changing the memory limit may also change the plan. See '${RESERVATION_KEY}' in the query profile for more information about the per-node memory requirements.`;
    case "NO-EXECUTORS":
      return "Waiting for executors to start. Only DDL queries and queries scheduled only on the coordinator (either NUM_NODES set to 1 or when small query optimization is triggered) can currently run.";
    case "NO-COORDINATOR":
      return "Coordinator not registered with the statestore.";
    case "REJ-A1":
      return "disabled by requests limit set to 0";
    case "REJ-A2":
      return "disabled by pool max mem resources set to 0";
    case "REJ-A3":
      return `Invalid pool config: the min_query_mem_limit ${r.minQueryMemLimit} is greater than the max_mem_resources ${r.maxMemResources}`;
    case "REJ-A4":
      return `Invalid pool config: the min_query_mem_limit is greater than the max_query_mem_limit (${r.minQueryMemLimit} > ${r.maxQueryMemLimit})`;
    case "REJ-A5":
      return `queue full, limit=${r.limit}, num_queued=${r.queued}.${staleText(r.stale, " ")}`;
    case "REJ-B1":
      return `number of admission control slots needed (${r.needed}) on backend '${r.host}' is greater than total slots available ${r.slots}. Reduce MT_DOP or MAX_FRAGMENT_INSTANCES_PER_NODE to less than ${r.slots} to ensure that the query can execute.`;
    case "REJ-B2a":
      return `minimum memory reservation on backend '${r.host}' is greater than memory available to the query for buffer reservations. Increase the buffer_pool_limit to ${bytesText(r.needed)}. See '${RESERVATION_KEY}' in the query profile for more information about the per-node memory requirements.`;
    case "REJ-B3":
      return `thread reservation on backend '${r.host}' is greater than the THREAD_RESERVATION_LIMIT query option value: ${r.threads} > ${r.limit}.`;
    case "REJ-B4":
      return `sum of thread reservations across all ${r.backends} backends is greater than the THREAD_RESERVATION_AGGREGATE_LIMIT query option value: ${r.threads} > ${r.limit}.`;
    case "REJ-B6":
      return `minimum memory reservation needed is greater than pool max mem resources. Pool max mem resources: ${bytesText(r.limit)}. Cluster-wide memory reservation needed: ${bytesText(r.needed)}. Increase the pool max mem resources. See '${RESERVATION_KEY}' in the query profile for more information about the per-node memory requirements.`;
    case "REJ-B7":
      return `request memory needed ${bytesText(r.needed)} is greater than pool max mem resources ${bytesText(r.limit)}.\n\nUse the MEM_LIMIT query option to indicate how much memory is required per node. The total memory needed is the per-node MEM_LIMIT times the number of nodes executing the query. See the Admission Control documentation for more information.`;
    case "REJ-B8":
    case "REJ-B9":
      return `request memory needed ${bytesText(r.needed)} is greater than memory available for admission ${bytesText(r.limit)} of ${r.host}.\n\nUse the MEM_LIMIT query option to indicate how much memory is required per node.`;
    case "REJ-C1":
      return `Error during scheduling: ${r.error}`;
    case "REJ-C2":
      return `The coordinator no longer exists: ${r.coordinator}`;
    case "REJ-C3": {
      if (r.kind === "lookupFailed") return "";
      if (r.kind === "badName") return `cannot parse user name ${r.user}`;
      if (r.kind !== "group")
        return `current per-user load ${r.load} for user '${r.user}' is at or above the ${r.kind} limit ${r.limit} in pool '${r.pool}'`;
      let others = "";
      if (r.ignored.length > 0) {
        others = " (Ignored Group Quotas";
        for (const [group, limit] of r.ignored) others += ` '${group}':${limit}`;
        others += ")";
      }
      return `current per-group load ${r.load} for user '${r.user}' in group '${r.group}' is at or above the group limit ${r.limit} in pool '${r.pool}'${others}`;
    }
    case "REJ-C4":
      return `Admission rejected due to memory pressure in admissiond. Current usage: ${r.usage} bytes, limit: ${r.limit} bytes`;
    case "REJ-C5":
      return `Failed to get query execution request: ${r.error}`;
  }
}
