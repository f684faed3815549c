/**
 * A queue or reject reason as a document: its rule, the product's text, and its figures with their units.
 */
import {
  type QueueReason,
  queueReasonText,
  type RejectReason,
  rejectReasonText,
  type StaleAge,
} from "../../../core/admission/reasons.ts";

/** All their figures but the age are bytes; those of the other rules are counts. */
const IN_BYTES: ReadonlySet<string> = new Set([
  "ADM-4",
  "ADM-5",
  "ADM-6",
  "REJ-A3",
  "REJ-A4",
  "REJ-B2a",
  "REJ-B2b",
  "REJ-B6",
  "REJ-B7",
  "REJ-B8",
  "REJ-B9",
  "REJ-C4",
]);

export const queueReasonDocument = (reason: QueueReason): object => documentOf(reason, queueReasonText(reason));

export const rejectReasonDocument = (reason: RejectReason): object => documentOf(reason, rejectReasonText(reason));

function documentOf({ rule, ...figures }: QueueReason | RejectReason, text: string): object {
  const told = Object.entries(figures).map(([key, value]: [string, unknown]) => {
    if (key === "stale") return ["viewAgeMs", viewAgeMs(value as StaleAge)];
    return [typeof value === "number" && IN_BYTES.has(rule) ? `${key}Bytes` : key, value];
  });
  return { rule, text, figures: Object.fromEntries(told) };
}

/** null: fresh; endless: nothing was ever received. */
export const viewAgeMs = (age: StaleAge): number | null => (age !== null && age < 0 ? Number.POSITIVE_INFINITY : age);
