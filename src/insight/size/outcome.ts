/**
 * What a run of one setting gave: the record that settings are compared by (insight 2.2, 3.2).
 *
 * Waits are over all submitted requests, an unsuccessful one counting as endless: quantiles over the admitted
 * alone get better the more are lost. Plain numbers in fixed places, so that outcomes of other threads and
 * other machines are the same bytes.
 */

import type { Constraint } from "../binding.ts";

/** Waits below it are one bucket; above it 1,024 buckets for each power of two: less than 0.1 % (insight 2.7). */
const BUCKETS_PER_OCTAVE_BITS = 10;
const LEAST_EXPONENT = 1023 - 11;
const OCTAVES = 44;
export const WAIT_BUCKETS = 1 + (OCTAVES << BUCKETS_PER_OCTAVE_BITS);

const float = new Float64Array(1);
const words = new Uint32Array(float.buffer);
const HIGH = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1 ? 1 : 0;

/** Bucket of a wait in milliseconds, by the bits of the number: no logarithm. hot: bench/size */
export function waitBucket(ms: number): number {
  if (ms <= 0) return 0;
  float[0] = ms;
  const place = (words[HIGH]! >>> (20 - BUCKETS_PER_OCTAVE_BITS)) - (LEAST_EXPONENT << BUCKETS_PER_OCTAVE_BITS);
  return place < 0 ? 0 : place + 1 < WAIT_BUCKETS ? place + 1 : WAIT_BUCKETS - 1;
}

/** Largest wait of a bucket. */
export function bucketEnd(bucket: number): number {
  if (bucket <= 0) return 0;
  const octave = (bucket - 1) >> BUCKETS_PER_OCTAVE_BITS;
  const within = (bucket - 1) & ((1 << BUCKETS_PER_OCTAVE_BITS) - 1);
  return 2 ** (octave + LEAST_EXPONENT - 1023) * (1 + (within + 1) / (1 << BUCKETS_PER_OCTAVE_BITS));
}

export interface Outcome {
  readonly submitted: number;
  readonly admitted: number;
  readonly rejected: number;
  readonly timedOut: number;
  /** Admitted, and failed for want of memory or scratch. */
  readonly failed: number;
  /** Lost by a fault: their coordinator was gone when they came or died while they waited, or a host they ran on did. */
  readonly cutOff: number;
  /**
   * Let in although some host of theirs then had more than it can give (insight 2.4), of all pools: who takes a host's
   * memory may leave too little for others. Only where several controllers decide by the rules; the model has one.
   */
  readonly onFullHosts: number;
  /**
   * Of the submitted, those whose limit leaves less than their peak and that go on with less: admitted or not,
   * because a setting that loses them does not spill less.
   */
  readonly spilled: number;
  /** Of the admitted, milliseconds. */
  readonly meanWait: number;
  readonly longestWait: number;
  /** Of all that stood in the queue, however they left it. */
  readonly longestQueued: number;
  /** Over all submitted, Infinity when more than 5 % are lost. */
  readonly p95: number;
  /** The same by class name, where the run kept them apart. */
  readonly p95ByClass: Readonly<Record<string, number>>;
  readonly peakRunning: number;
  readonly peakQueued: number;
  /** Byte-milliseconds admitted, and the milliseconds they are over. */
  readonly memoryTime: number;
  readonly span: number;
  readonly peakMemory: number;
  /** What the waiting was due to, largest first, where the run was asked to say so. */
  readonly binding?: readonly BindingShare[];
}

export interface BindingShare {
  readonly constraint: Constraint;
  readonly share: number;
}

export const lossOf = (o: Outcome): number =>
  o.submitted === 0 ? 0 : (o.rejected + o.timedOut + o.failed + o.cutOff) / o.submitted;
export const spillShareOf = (o: Outcome): number => (o.submitted === 0 ? 0 : o.spilled / o.submitted);
export const failedShareOf = (o: Outcome): number => (o.submitted === 0 ? 0 : o.failed / o.submitted);
export const memoryUsedShare = (o: Outcome, maxMem: number): number =>
  maxMem <= 0 || o.span <= 0 ? 0 : o.memoryTime / (maxMem * o.span);

/** The p-quantile over `submitted`, of which `counts` were admitted with these waits, `longest` at most. */
export function quantileOfBuckets(counts: ArrayLike<number>, submitted: number, p: number, longest: number): number {
  const rank = Math.max(1, Math.ceil(p * submitted - 1e-9));
  let seen = 0;
  for (let b = 0; b < counts.length; b++) {
    seen += counts[b]!;
    if (seen >= rank) return Math.min(bucketEnd(b), longest);
  }
  return Number.POSITIVE_INFINITY;
}
