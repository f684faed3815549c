/**
 * What both sides of bench/spill.ts are told: the same rows, limit and folder.
 */
import type { KeySpec } from "../src/config/scenario.ts";
import type { Compression } from "../src/runtime/scratch/scratch-page-store.ts";

export interface SpillTask {
  readonly what: "sort" | "aggregate" | "join";
  /** Input rows; of a join, the probe side. */
  readonly rows: number;
  /** Unique keys 0 .. buildRows - 1 on the build side. */
  readonly buildRows: number;
  /** Distinct keys of the input; 0: as many as 64 bits allow (2^32 in practice). */
  readonly distinct: number;
  readonly memory: number;
  readonly seed: number;
  readonly runs: number;
  readonly folder: string;
  readonly compression?: Compression;
  /** The thread that works also writes, so it writes what it must; see scratch-page-store.ts. */
  readonly writeBack?: "eager" | "whenNeeded";
}

export const keysOf = (t: SpillTask): KeySpec => ({
  kind: "uniform",
  distinct: t.distinct === 0 ? 2 ** 32 - 1 : t.distinct,
});
