/**
 * One candidate for a pool's settings, and the pool record that it makes (insight 3.2).
 */
import type { PoolChange } from "../../config/pool-file-patch.ts";
import type { PoolConfig } from "../../core/pool-config.ts";
import type { MaxBytes, Millis } from "../../core/units.ts";

/** What a patch of the files can write, and a second pool. */
export interface Setting extends PoolChange {
  /** Large queries in a pool of their own; null: one pool for all. */
  readonly split: Split | null;
}

export interface Split {
  /** Queries that are charged more than this go to the pool for large ones. */
  readonly above: number;
  /** Of `maxMem`, for the large ones. */
  readonly share: number;
}

/** What the files say today. */
export const settingOf = (config: PoolConfig, flagTimeout: number): Setting => ({
  maxMem: config.maxMemResources,
  maxRunning: config.maxRequests,
  maxQueued: config.maxQueued,
  timeout: config.queueTimeout ?? flagTimeout,
  minQueryMem: config.minQueryMemLimit,
  maxQueryMem: config.maxQueryMemLimit,
  split: null,
});

/** The pool's record under a setting; for a split, of its large or small part. */
export function configUnder(base: PoolConfig, s: Setting, part: "whole" | "small" | "large" = "whole"): PoolConfig {
  return {
    ...base,
    maxMemResources: memoryOfPart(s, part) as MaxBytes,
    maxRequests: s.maxRunning,
    maxQueued: s.maxQueued,
    queueTimeout: s.timeout as Millis,
    minQueryMemLimit: s.minQueryMem,
    maxQueryMemLimit: s.maxQueryMem,
  };
}

export function memoryOfPart(s: Setting, part: "whole" | "small" | "large"): number {
  if (s.split === null || part === "whole" || s.maxMem < 0) return s.maxMem;
  const large = Math.round(s.maxMem * s.split.share);
  return part === "large" ? large : s.maxMem - large;
}

/** Equal settings have equal keys, on every machine. */
export function keyOf(s: Setting): string {
  const split = s.split === null ? "-" : `${s.split.above}/${s.split.share}`;
  return [s.maxMem, s.maxRunning, s.maxQueued, s.timeout, s.minQueryMem, s.maxQueryMem, split].join(" ");
}

const asLimit = (n: number): number => (n < 0 ? Number.MAX_VALUE : n);

/**
 * The order in which "cheapest" is meant: memory that others don't get, then the simpler setting, then the one
 * that changes least of today's, then the tighter one, which of two floors is the higher: it catches estimates that
 * are too low. Total, so that two machines never disagree about a tie.
 */
export const costOrder =
  (now: Setting) =>
  (a: Setting, b: Setting): number =>
    asLimit(a.maxMem) - asLimit(b.maxMem) ||
    Number(a.split !== null) - Number(b.split !== null) ||
    changesFrom(now, a) - changesFrom(now, b) ||
    asLimit(a.maxRunning) - asLimit(b.maxRunning) ||
    a.maxQueued - b.maxQueued ||
    a.timeout - b.timeout ||
    a.maxQueryMem - b.maxQueryMem ||
    b.minQueryMem - a.minQueryMem ||
    (keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : 0);

const changesFrom = (now: Setting, s: Setting): number =>
  Number(s.maxRunning !== now.maxRunning) +
  Number(s.maxQueued !== now.maxQueued) +
  Number(s.timeout !== now.timeout) +
  Number(s.minQueryMem !== now.minQueryMem) +
  Number(s.maxQueryMem !== now.maxQueryMem);

/** `a` takes no more of anything than `b`. */
export const costsNoMore = (a: Setting, b: Setting): boolean =>
  asLimit(a.maxMem) <= asLimit(b.maxMem) &&
  asLimit(a.maxRunning) <= asLimit(b.maxRunning) &&
  a.maxQueued <= b.maxQueued &&
  a.timeout <= b.timeout;
