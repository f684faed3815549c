/** When coordinators talk to `admissiond`, out of Impala's flags (admission 7.7, 9.5), the same for both drivers. */
import type { StatusCalls } from "../core/admission/status-calls.ts";
import type { ImpalaFlags } from "./impala-flags.ts";

/** In milliseconds. */
export interface ServiceTiming {
  readonly calls: StatusCalls;
  /** At least one. */
  readonly heartbeat: number;
}

export const serviceTimingOf = (flags: ImpalaFlags): ServiceTiming => ({
  calls: { wait: flags.admission_status_wait_time_ms, retry: Math.max(0, flags.admission_status_retry_time_ms) },
  heartbeat: Math.max(1, flags.admission_heartbeat_frequency_ms),
});
