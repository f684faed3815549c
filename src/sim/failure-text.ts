/**
 * What a query fails with on a host in virtual time: the product's words, as the live fleet has them (memory 1.5, 5.2,
 * 8). There are no trackers to print and no files: the lines with their figures are left out.
 */
import { unreachable } from "../core/assert.ts";
import { INCREASE_FAILED, NO_SCRATCH_LIMIT } from "../core/memory/refusal-text.ts";
import { scratchAllocationFailed, scratchLimitExceeded } from "../core/memory/scratch-failures.ts";
import type { Want } from "./work.ts";

/** Stands for the host's only scratch directory. */
const DIRECTORY = "scratch";

export interface ScratchFigures {
  readonly limit: number;
  readonly ofQuery: number;
  /** The query's own included. */
  readonly onHost: number;
}

export function failureText(wants: Want, backend: string, { limit, ofQuery, onHost }: ScratchFigures): string {
  switch (wants) {
    case "memory":
      return outOfMemory(INCREASE_FAILED, backend);
    case "scratchOff":
      return outOfMemory(NO_SCRATCH_LIMIT, backend);
    case "scratchLimit":
      return scratchLimitExceeded(limit, backend).text;
    case "scratchSpace":
      return scratchAllocationFailed({
        directories: [DIRECTORY],
        backend,
        hostBytes: onHost,
        queryBytes: ofQuery,
        atCapacity: [DIRECTORY],
        earlier: [],
      }).text;
    default:
      return unreachable(wants);
  }
}

const outOfMemory = (why: string, backend: string): string =>
  `Memory limit exceeded: ${why}\nError occurred on backend ${backend}`;

const UNREACHABLE = "Failed due to unreachable impalad(s): ";
const NO_REPORT = "No status report from ";
const LEFT = " left the cluster";

export const executorUnreachable = (host: string): string => `${UNREACHABLE}${host}`;
export const reportMissed = (host: string): string => `${NO_REPORT}${host}`;
export const coordinatorLeft = (host: string): string => `The coordinator ${host}${LEFT}`;

/** It failed because somebody noticed that a host was gone, and not by what it did itself. */
export const isByLostHost = (error: string): boolean =>
  error.startsWith(UNREACHABLE) || error.startsWith(NO_REPORT) || error.endsWith(LEFT);
