/**
 * The text of a `--json` document, and the one rule that is the same in all of them (docs/json.md).
 *
 * JSON has no Infinity, and a wait over all submitted queries is endless as soon as it lies among the lost: that is
 * another thing than "over nothing". Both are null; the object says under `endless` which of its keys are so because
 * the wait is endless. Documents are therefore made with Infinity in them, and with null for "no value".
 *
 * Whatever else JSON would quietly turn into null or {} is a fault of ours.
 */
import { fail } from "../../../core/assert.ts";

export const jsonText = (document: unknown): string => JSON.stringify(document, withEndless, 2);

function withEndless(key: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) return fail(`"${key}" of a document is ${value}`);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  if (value instanceof Map || value instanceof Set || ArrayBuffer.isView(value))
    return fail(`"${key}" of a document has no form in JSON`);
  const entries = Object.entries(value);
  const endless = entries.filter(([, v]) => v === Number.POSITIVE_INFINITY).map(([name]) => name);
  if (endless.length === 0) return value;
  const finite = entries.map(([name, v]) => [name, v === Number.POSITIVE_INFINITY ? null : v] as const);
  return { ...Object.fromEntries(finite), endless };
}

/** For numbers that our records keep as null where they are endless. */
export const endlessIfNull = (ms: number | null): number => ms ?? Number.POSITIVE_INFINITY;
