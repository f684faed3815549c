/**
 * How long executors and coordinators of each other's queries bear it that nobody answers (admission 9.5): that is how
 * they notice a death of which no statestore tells them.
 */
import type { Millis } from "../units.ts";

/** `--status_report_max_retry_s`: so long an executor tries to report to a coordinator, then it ends the query there. */
export const REPORTS_GIVEN_UP = 600_000 as Millis;
/** And so much longer, `--status_report_cancellation_padding` per cent, a coordinator waits for a report. */
export const REPORTS_MISSED = (REPORTS_GIVEN_UP * 1.2) as Millis;
