/**
 * The text of `maxResources` and its like (pool-configuration 1.5.1): `200000 mb, 0 vcores`.
 *
 * The product searches the text for two patterns instead of reading it, so much that looks like a size is taken
 * for another one (`1,024 mb` is 24). What was passed over is kept, for those who want to warn about it.
 */

export interface ResourceValue {
  /** MiB; the int32 maximum means unlimited. */
  readonly memoryMb: number;
  readonly vcores: number;
}

export type ResourceReading =
  | { readonly kind: "value"; readonly value: ResourceValue }
  | { readonly kind: "missing"; readonly what: "mb" | "vcores" }
  | { readonly kind: "tooLarge"; readonly what: "mb" | "vcores" };

export const UNLIMITED_MB = 2147483647;

/** Where the memory part was found, and what of the text around it had no say. */
export interface MemoryMatch {
  readonly digits: string;
  /** With its point, empty without one. */
  readonly fraction: string;
  readonly index: number;
  readonly end: number;
}

// A match that begins inside a run of digits also begins at its start, so the look-behind changes no result and
// keeps the search linear.
const MEMORY = /(?<![0-9])([0-9]+)(\.[0-9]*)?[ \t\n\v\f\r]*mb/;
const VCORES = /(?<![0-9])([0-9]+)(\.[0-9]*)?[ \t\n\v\f\r]*vcores/;

export function readResourceValue(text: string): ResourceReading {
  const lower = text.toLowerCase();
  const memory = amount(MEMORY, lower);
  if (memory === null) return { kind: "missing", what: "mb" };
  if (memory > UNLIMITED_MB) return { kind: "tooLarge", what: "mb" };
  const vcores = amount(VCORES, lower);
  if (vcores === null) return { kind: "missing", what: "vcores" };
  if (vcores > UNLIMITED_MB) return { kind: "tooLarge", what: "vcores" };
  return { kind: "value", value: { memoryMb: memory, vcores } };
}

const amount = (pattern: RegExp, text: string): number | null => {
  const digits = pattern.exec(text)?.[1];
  return digits === undefined ? null : Number(digits);
};

export function memoryMatch(text: string): MemoryMatch | null {
  const found = MEMORY.exec(text.toLowerCase());
  if (found === null) return null;
  const [whole, digits = "", fraction = ""] = found;
  return { digits, fraction, index: found.index, end: found.index + whole.length };
}

/** The product's message; `Error reading resource config` for a number that is no int32. */
export const resourceError = (reading: Exclude<ResourceReading, { kind: "value" }>): string =>
  reading.kind === "missing" ? `Missing resource: ${reading.what}` : "Error reading resource config";

/** As the product logs it. */
export const resourceText = (r: ResourceValue): string => `<memory:${r.memoryMb}, vCores:${r.vcores}>`;
