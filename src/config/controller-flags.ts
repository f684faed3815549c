/**
 * The flags of a controller out of Impala's, the same for every driver.
 */
import type { ControllerFlags } from "../core/admission/controller-options.ts";
import type { Millis } from "../core/units.ts";
import type { ImpalaFlags } from "./impala-flags.ts";

export const controllerFlagsOf = (flags: ImpalaFlags): ControllerFlags => ({
  queueWaitTimeout: flags.queue_wait_timeout_ms,
  clampQueryMemLimitBackendMemLimit: flags.clamp_query_mem_limit_backend_mem_limit,
  useDedicatedCoordinatorEstimates: flags.use_dedicated_coordinator_estimates,
  balanceQueriesAcrossExecutorGroups: flags.balance_queries_across_executor_groups,
  staleTopicThreshold: flags.admission_control_stale_topic_threshold_ms as Millis,
});
