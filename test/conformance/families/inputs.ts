/**
 * From the vectors' words to the core's records, for the families that speak of requests, schedules and
 * states (the schema is in the vectors' README).
 */
import type { MemoryToAdmit } from "../../../src/core/admission/memory-to-admit.ts";
import {
  type AdmissionOptions,
  DEFAULT_ADMISSION_OPTIONS,
  type RequestShape,
} from "../../../src/core/admission/request.ts";
import type { HostsView } from "../../../src/core/admission/views.ts";
import type { Schedule, ScheduledBackend } from "../../../src/core/cluster/schedule.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../../src/core/pool-config.ts";
import type { Bytes, Millis } from "../../../src/core/units.ts";
import type { Verdict } from "../family.ts";

// biome-ignore lint/suspicious/noExplicitAny: vectors are JSON of many shapes.
export type Json = any;

export function poolConfigFrom(limits: Json = {}): PoolConfig {
  return {
    ...DEFAULT_POOL_CONFIG,
    maxRequests: limits.max_requests ?? -1,
    maxQueued: limits.max_queued ?? 200,
    maxMemResources: limits.max_mem_resources ?? -1,
    queueTimeout: (limits.queue_timeout_ms ?? null) as Millis | null,
    minQueryMemLimit: limits.min_query_mem_limit ?? 0,
    maxQueryMemLimit: limits.max_query_mem_limit ?? 0,
    clampMemLimitQueryOption: limits.clamp_mem_limit_query_option ?? true,
    userQueryLimits: new Map(Object.entries(limits.user_query_limits ?? {})),
    groupQueryLimits: new Map(Object.entries(limits.group_query_limits ?? {})),
    onlyCoordinators: limits.only_coordinators ?? false,
  };
}

export function optionsFrom(options: Json = {}): AdmissionOptions {
  return {
    ...DEFAULT_ADMISSION_OPTIONS,
    memLimit: options.mem_limit ?? 0,
    memLimitExecutors: options.mem_limit_executors ?? 0,
    memLimitCoordinators: options.mem_limit_coordinators ?? 0,
    maxMemEstimateForAdmission: options.max_mem_estimate_for_admission ?? 0,
    bufferPoolLimit: options.buffer_pool_limit ?? 0,
    threadReservationLimit: options.thread_reservation_limit ?? 0,
    threadReservationAggregateLimit: options.thread_reservation_aggregate_limit ?? 0,
  };
}

export const shapeFrom = (request: Json): RequestShape => ({
  stmtType: request.stmt_type ?? "QUERY",
  perHostMemEstimate: request.per_host_mem_estimate ?? 0,
  dedicatedCoordMemEstimate: request.dedicated_coord_mem_estimate ?? 0,
  isTrivial: false,
  coordinatorOnly: false,
  includeAllCoordinators: false,
  executors: "all",
  fragments: [],
  options: optionsFrom(request.options),
  maxSlotsPerExecutor: null,
});

export const clampFlag = (input: Json): boolean => input.flags?.clamp_query_mem_limit_backend_mem_limit ?? true;

/** The vector's schedule as it stands, in address order. */
export function scheduleFrom(schedule: Json, request: Json): Schedule {
  const backends = schedule.backends.map(backendFrom).sort(byAddress) as ScheduledBackend[];
  const coordinatorBackend = backends.find((b) => b.isCoordBackend)!;
  const others = backends.filter((b) => !b.isCoordBackend);
  const smallest = [...others].sort((a, b) => a.desc.admitMemLimit - b.desc.admitMemLimit)[0];
  const most = (figure: (b: ScheduledBackend) => number) => {
    const largest = backends.reduce((a, b) => (figure(b) > figure(a) ? b : a));
    return { value: figure(largest) as Bytes, host: largest.desc.address };
  };
  return {
    shape: shapeFrom(request),
    group: request.executor_group,
    coordinator: coordinatorBackend.desc.address,
    backends,
    hosts: backends.map((b) => b.desc.address),
    coordinatorBackend,
    isFullWidth: false,
    executorSlots: others[0]?.slots ?? 0,
    coordinatorSlots: coordinatorBackend.slots,
    largestMinReservation: request.largest_min_reservation ?? 0,
    coordMinReservation: request.coord_min_reservation ?? 0,
    largestReservation: most((b) => b.minReservation),
    sumMinReservation: backends.reduce((sum, b) => sum + b.minReservation, 0) as Bytes,
    largestThreads: most((b) => b.threadReservation),
    sumThreads: backends.reduce((sum, b) => sum + b.threadReservation, 0),
    slotsTooFew: backends.find((b) => b.slots > b.desc.admissionSlots) ?? null,
    smallestExecutor: smallest?.desc ?? null,
  };
}

const backendFrom = (b: Json): ScheduledBackend => ({
  desc: {
    address: b.host,
    isCoordinator: b.is_coordinator ?? false,
    isExecutor: b.is_executor ?? false,
    isQuiescing: false,
    admitMemLimit: b.admit_mem_limit,
    admissionSlots: b.admission_slots,
    executorGroup: { name: "", minSize: 1 },
  },
  isCoordBackend: b.runs_coordinator ?? false,
  numInstances: 1,
  minReservation: b.min_mem_reservation ?? 0,
  threadReservation: b.thread_reservation ?? 0,
  slots: b.slots_to_use ?? 0,
});

const byAddress = (a: ScheduledBackend, b: ScheduledBackend): number => (a.desc.address < b.desc.address ? -1 : 1);

/** `schedule.mem`: the outcome of the memory rules, given so that the family stands alone. */
export const memoryFrom = (mem: Json): MemoryToAdmit => ({
  perHost: mem.executor?.mem_to_admit ?? 0,
  onCoordinator: mem.coordinator?.mem_to_admit ?? 0,
  perHostSource: mem.executor?.source,
  onCoordinatorSource: mem.coordinator?.source,
  memLimit: mem.executor?.mem_limit ?? -1,
  coordinatorMemLimit: mem.coordinator?.mem_limit ?? -1,
  cluster: mem.cluster_mem_to_admit ?? 0,
});

/** `state.hosts` and `state.remote_hosts`. */
export function hostsFrom(state: Json = {}): HostsView {
  const sum = (host: string, figure: "mem_admitted" | "slots_in_use"): number => {
    let total = state.hosts?.[host]?.[figure] ?? 0;
    for (const remote of Object.values<Json>(state.remote_hosts ?? {})) total += remote[host]?.[figure] ?? 0;
    return total;
  };
  return {
    memReservedOn: (host) => Math.max(state.hosts?.[host]?.mem_reserved ?? 0, sum(host, "mem_admitted")),
    slotsInUseOn: (host) => sum(host, "slots_in_use"),
    slotsFrom: () => 0,
    memoryFrom: () => 0,
  };
}

/** Null fresh, -1 never, else the age: the vectors' `ms_since_topic_update` with the default threshold. */
export function staleFrom(state: Json = {}, flags: Json = {}): number | null {
  const age = state?.ms_since_topic_update ?? null;
  if (age === null) return -1;
  return age >= (flags?.admission_control_stale_topic_threshold_ms ?? 5000) ? age : null;
}

const PASS: Verdict = { kind: "pass" };

/** Every expected field equals what was found; fields that aren't expected don't matter. */
export function compare(expected: Json, got: Json): Verdict {
  const wrong = Object.keys(expected).filter((key) => !same(expected[key], got[key]));
  if (wrong.length === 0) return PASS;
  const pick = (from: Json) => Object.fromEntries(wrong.map((key) => [key, from[key]]));
  return { kind: "fail", expected: pick(expected), got: pick(got) };
}

function same(a: Json, b: Json): boolean {
  if (a === null || typeof a !== "object") return a === b;
  if (b === null || typeof b !== "object") return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => same(a[key], b[key]));
}

/** `reason_contains`, `reason_equals`, `reason_regex`, and the same with another prefix. */
export function textMatches(expected: Json, text: string, prefix = "reason"): boolean {
  const parts: string[] = [expected[`${prefix}_contains`] ?? []].flat();
  const equals = expected[`${prefix}_equals`];
  const regex = expected[`${prefix}_regex`];
  return (
    parts.every((part) => text.includes(part)) &&
    (equals === undefined || equals === text) &&
    (regex === undefined || new RegExp(regex, "s").test(text))
  );
}

/** A decision with its reason, against `expected` or any of its `any_of`. */
export function compareDecision(expected: Json, got: { decision: string; reason: string } & Json): Verdict {
  const alternatives: Json[] = expected.any_of ?? [expected];
  const holds = (e: Json) =>
    (e.decision ?? expected.decision) === got.decision &&
    textMatches(e, got.reason) &&
    (e.coordinator_resource_limited === undefined ||
      e.coordinator_resource_limited === got.coordinator_resource_limited);
  return alternatives.some(holds) ? PASS : { kind: "fail", expected, got };
}
