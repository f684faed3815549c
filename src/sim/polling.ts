/**
 * When a coordinator hears what `admissiond` has decided (admission 7.7).
 *
 * It asks in calls of up to `wait`, `retry` apart. A decision during a call comes back at once, one between two
 * calls when the next one begins; a time-out is noticed only where a call ends. So the answer to a waiting
 * query is up to `retry` late, and its time-out up to `wait + retry`.
 */
import type { Micros } from "./event-queue.ts";

export interface Polling {
  /** `--admission_status_wait_time_ms` and `--admission_status_retry_time_ms`. */
  readonly wait: Micros;
  readonly retry: Micros;
}

/** Calls began at `from`. A query's calls are never longer than its own timeout. */
export function heardAt(polling: Polling, from: Micros, timeout: Micros, decided: Micros): Micros {
  const call = Math.min(polling.wait, timeout);
  const cycle = call + polling.retry;
  if (cycle === 0) return decided;
  const into = (decided - from) % cycle;
  return into <= call ? decided : decided + (cycle - into);
}

/** End of the first call that ends at the deadline or later. */
export function timeoutNoticedAt(polling: Polling, from: Micros, timeout: Micros): Micros {
  const call = Math.min(polling.wait, timeout);
  const cycle = call + polling.retry;
  if (cycle === 0) return from + timeout;
  const calls = Math.ceil((timeout - call) / cycle);
  return from + calls * cycle + call;
}
