/**
 * The units of the house: bytes, milliseconds, moments. Brands cost nothing at run time and catch the
 * wrong argument; arithmetic inside a function is plain `number`, cast once at the return.
 */
import { fail } from "./assert.ts";

declare const unit: unique symbol;
/** Whole bytes, 0 to 2^53 - 1. */
export type Bytes = number & { readonly [unit]: "bytes" };
/** A length of time in milliseconds of emulated time, >= 0. */
export type Millis = number & { readonly [unit]: "millis" };
/** A moment: milliseconds of emulated time since the run began, on the virtual or the real clock. */
export type Instant = number & { readonly [unit]: "instant" };

/** A configured maximum: -1 (any negative) is no limit, 0 is disabled. */
export type MaxBytes = Bytes | -1;
/** A configured maximum of a count: -1 (any negative) is no limit, 0 is disabled. */
export type MaxCount = number;

export const KiB = 1024;
export const MiB = 1024 * 1024;
export const GiB = 1024 * 1024 * 1024;

/** Times from outside and from generators are whole microseconds, so that ties are ties everywhere (insight 6.1). */
export const MICROS_PER_MS = 1000;

export const isUnlimited = (max: number): boolean => max < 0;

/** The one way in from outside: parsed files, options, JSON. Throws InvariantError on anything but 0 to 2^53 - 1. */
export function bytes(n: number): Bytes {
  if (!Number.isSafeInteger(n) || n < 0) fail(`not a byte count: ${n}`);
  return n as Bytes;
}

/** Same for lengths of time; fractions of a millisecond are allowed. */
export function millis(n: number): Millis {
  if (!Number.isFinite(n) || n < 0) fail(`not a length of time: ${n}`);
  return n as Millis;
}

export const instant = (n: number): Instant => n as Instant;
