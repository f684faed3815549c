/**
 * When a coordinator and `admissiond` hear of each other (admission 7.7): both drivers ask here, with moments in a
 * unit of their own.
 *
 * A coordinator asks in calls of up to `wait`, `retry` apart, from the moment at which it handed its query over. A
 * decision during a call comes back at once, one between two calls when the next one begins; a time-out is noticed
 * only where a call ends. So the answer to a waiting query is up to `retry` late, and its time-out up to
 * `wait + retry`. The calls in between bring nothing and change nothing: no driver makes them.
 */

export interface StatusCalls {
  /** `--admission_status_wait_time_ms`; 0 or less: a call lasts as long as its query may wait. */
  readonly wait: number;
  /** `--admission_status_retry_time_ms` */
  readonly retry: number;
}

/** A query's calls are never longer than its own timeout. */
const callOf = ({ wait }: StatusCalls, timeout: number): number => (wait > 0 ? Math.min(wait, timeout) : timeout);

/** Calls began at `from`; `decided` is not before that. */
export function heardAt(calls: StatusCalls, from: number, timeout: number, decided: number): number {
  const call = callOf(calls, timeout);
  const cycle = call + calls.retry;
  if (cycle === 0) return decided;
  const into = (decided - from) % cycle;
  return into <= call ? decided : decided + (cycle - into);
}

/** End of the first call that ends at the deadline or later. */
export function timeoutNoticedAt(calls: StatusCalls, from: number, timeout: number): number {
  const call = callOf(calls, timeout);
  const cycle = call + calls.retry;
  if (cycle === 0) return from + timeout;
  const before = Math.ceil((timeout - call) / cycle);
  return from + before * cycle + call;
}

/** A coordinator's next report of its live queries after `now`; they come a `period` apart (9.5). */
export const nextHeartbeat = (period: number, now: number): number => (Math.floor(now / period) + 1) * period;
