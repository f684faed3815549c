/**
 * A size as Impala's flags and query options write it: `1610612736`, `1.5gb`, `80%` (pool-configuration 2.5, 3.1).
 */

export type MemorySpec =
  | { readonly kind: "bytes"; readonly bytes: number }
  /** Of a reference the reader knows, usually the physical memory of the host. */
  | { readonly kind: "percent"; readonly percent: number };

const UNITS: Readonly<Record<string, number>> = { k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };

/**
 * null when Impala can't parse it, negative sizes but -1 included. Empty and -1 are 0, which means "none" or
 * "unlimited" to whoever asked. Sizes beyond 2^53 - 1 become that.
 */
export function parseMemorySpec(text: string): MemorySpec | null {
  if (text === "") return { kind: "bytes", bytes: 0 };
  const percent = /^\s*([+-]?[0-9]+)%$/.exec(text);
  if (percent !== null) {
    const value = Number(percent[1]);
    return value < 0 ? null : { kind: "percent", percent: value };
  }
  const withUnit = /^\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)\s*([kmgt])b?$/i.exec(text);
  if (withUnit !== null) return bytesOf(Number(withUnit[1]) * (UNITS[(withUnit[2] ?? "").toLowerCase()] ?? 1));
  const plain = /^\s*([+-]?[0-9]+)\s*b?$/i.exec(text);
  // Without unit it is an int64, and beyond that no number at all.
  return plain === null || Math.abs(Number(plain[1])) >= 2 ** 63 ? null : bytesOf(Number(plain[1]));
}

function bytesOf(size: number): MemorySpec | null {
  const bytes = Math.min(Math.trunc(size), Number.MAX_SAFE_INTEGER);
  if (bytes === -1) return { kind: "bytes", bytes: 0 };
  return bytes < 0 || Number.isNaN(bytes) ? null : { kind: "bytes", bytes };
}

/** Bytes of a spec whose percentages are of `reference`. */
export const specBytes = (spec: MemorySpec, reference: number): number =>
  spec.kind === "bytes" ? spec.bytes : Math.trunc((spec.percent / 100) * reference);
