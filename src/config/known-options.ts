/**
 * Which of Impala's query options and start flags a scenario may set. Others exist in the product; a scenario that
 * sets one of those gets an error rather than silence. What each takes is the business of `query-options.ts` and
 * `impala-flags.ts`.
 */
import { IMPALA_FLAGS, type ImpalaFlagName, REMOVED_FLAGS } from "./impala-flags.ts";

export const QUERY_OPTIONS: readonly string[] = [
  "REQUEST_POOL",
  "MEM_LIMIT",
  "MEM_LIMIT_EXECUTORS",
  "MEM_LIMIT_COORDINATORS",
  "MAX_MEM_ESTIMATE_FOR_ADMISSION",
  "BUFFER_POOL_LIMIT",
  "THREAD_RESERVATION_LIMIT",
  "THREAD_RESERVATION_AGGREGATE_LIMIT",
  "ENABLE_TRIVIAL_QUERY_FOR_ADMISSION",
  "MT_DOP",
  "SCRATCH_LIMIT",
  "DEFAULT_SPILLABLE_BUFFER_SIZE",
  "MIN_SPILLABLE_BUFFER_SIZE",
  "MAX_ROW_SIZE",
  "DISABLE_UNSAFE_SPILLS",
];

/** Set by a key of the scenario instead, which is what the remedy says. */
export const FLAGS_SET_ELSEWHERE: Readonly<Record<string, string>> = {
  fair_scheduler_allocation_path: "pools.fairScheduler",
  llama_site_path: "pools.llamaSite",
  statestore_priority_update_frequency_ms: "cluster.statestore.every",
  mem_limit: "cluster.executors[].memory",
  mem_limit_includes_jvm: "cluster.executors[].memory",
  codegen_cache_capacity: "cluster.executors[].memory",
  admission_control_slots: "cluster.executors[].slots",
  max_concurrent_queries: "cluster.executors[].slots",
  num_cores: "cluster.executors[].slots",
  executor_groups: "cluster.executors[].executorGroup",
  is_coordinator: "cluster.coordinators",
  is_executor: "cluster.executors",
  admission_service_host: "cluster.admission: admissiond",
  scratch_dirs: "cluster.executors[].scratch",
};

/** Known to `waterhole check`; nothing of a run depends on them. */
export const FLAGS_WITHOUT_EFFECT: readonly ImpalaFlagName[] = [
  "statestore_update_frequency_ms",
  "statestore_num_priority_update_threads",
  "statestore_subscriber_timeout_seconds",
  "admission_service_port",
  "admission_control_service_num_svc_threads",
  "admission_control_service_queue_mem_limit",
  "admission_control_rpc_compress_threshold_bytes",
  // Widths count only with COMPUTE_PROCESSING_COST, whose figures no scenario has (admission 6.4).
  "num_expected_executors",
  "query_cpu_count_divisor",
  "query_cpu_root_factor",
  // A decision takes no time, so workers and their backlog decide nothing (T-60).
  "admission_thread_pool_size",
  "max_admission_queue_size",
  // `admissiond` is always there, and its own memory is not emulated.
  "admission_max_retry_time_s",
  "enable_admission_service_mem_safeguard",
  "cluster_membership_topic_id",
];

/** Those that were removed are accepted and ignored, as the product does. */
export const FLAGS: readonly string[] = [...Object.keys(IMPALA_FLAGS), ...REMOVED_FLAGS].filter(
  (name) => !Object.hasOwn(FLAGS_SET_ELSEWHERE, name) && !FLAGS_WITHOUT_EFFECT.some((f) => f === name),
);
