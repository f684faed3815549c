/**
 * The product's texts when spilling fails (memory 5.2, 5.3, 8).
 */

import { prettyBytes } from "../pretty.ts";
import type { Failure } from "./page-store.ts";

export const SCRATCH_LIMIT_EXCEEDED = 90;
export const SCRATCH_ALLOCATION_FAILED = 101;
export const SCRATCH_READ_TRUNCATED = 102;
export const SCRATCH_READ_VERIFY_FAILED = 118;

/** S5 (2), S7: per query and host. */
export const scratchLimitExceeded = (limit: number, backend: string): Failure => ({
  code: SCRATCH_LIMIT_EXCEEDED,
  text: `Scratch space limit of ${limit} bytes exceeded for query while spilling data to disk on backend ${backend}.`,
});

/** S5 (5), S9: every directory is full or has failed; the earlier errors stand below. */
export function scratchAllocationFailed(o: {
  readonly directories: readonly string[];
  readonly backend: string;
  readonly hostBytes: number;
  readonly queryBytes: number;
  readonly atCapacity: readonly string[];
  readonly earlier: readonly string[];
}): Failure {
  const first =
    `Could not create files in any configured scratch directories (--scratch_dirs=${o.directories.join(",")}) on ` +
    `backend '${o.backend}'. ${prettyBytes(o.hostBytes)} of scratch is currently in use by this Impala Daemon ` +
    `(${prettyBytes(o.queryBytes)} by this query). See logs for previous errors that may have prevented creating or ` +
    `writing scratch files. The following directories were at capacity: ${o.atCapacity.join(",")}`;
  return { code: SCRATCH_ALLOCATION_FAILED, text: [first, ...o.earlier].join("\n") };
}

export interface ReadPlace {
  readonly bytes: number;
  readonly file: string;
  readonly backend: string;
  readonly offset: number;
}

export const readTruncated = (at: ReadPlace, got: number): Failure => ({
  code: SCRATCH_READ_TRUNCATED,
  text: `${readError(at)}: could only read ${got} bytes`,
});

export const readVerifyFailed = (at: ReadPlace): Failure => ({
  code: SCRATCH_READ_VERIFY_FAILED,
  text: `${readError(at)}: verification of read data failed.`,
});

const readError = (at: ReadPlace): string =>
  `Error reading ${at.bytes} bytes from scratch file '${at.file}' on backend ${at.backend} at offset ${at.offset}`;
