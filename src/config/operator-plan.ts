/**
 * What the planner would say about the real operators of a query class: estimate and minimum reservation
 * (memory P8, P9, P11, P12). The numbers that are known exactly here (rows, widths) are the statistics.
 */
import { type Bytes, KiB, MiB } from "../core/units.ts";
import { memoryOption, type OptionTexts } from "./option-values.ts";
import type { OperatorLimits, OperatorSpec, OperatorUse, RowsSpec, WrittenLimits } from "./scenario.ts";

export interface OperatorPlan {
  readonly estimate: number;
  readonly minReservation: number;
}

const KEY_BYTES = 8;
const DEFAULT_SPILLABLE_BUFFER = 2 * MiB;
const MIN_SPILLABLE_BUFFER = 64 * KiB;
const MAX_ROW = 512 * KiB;
/** Per hash table bucket, and per group beside its row (P9, P11). */
const BUCKET_BYTES = 12;
const DUPLICATE_BYTES = 16;
const LEAST_AGGREGATE_ESTIMATE = 10 * MiB;

/** Operators of one class run one after the other and hold their minimum throughout. */
export function planOf(operators: readonly OperatorSpec[]): OperatorPlan {
  const plans = operators.map(operatorPlan);
  return {
    estimate: plans.reduce((sum, p) => sum + p.estimate, 0),
    minReservation: plans.reduce((sum, p) => sum + p.minReservation, 0),
  };
}

function operatorPlan(op: OperatorSpec): OperatorPlan {
  const buffer = op.limits.bufferSize;
  const largest = Math.max(buffer, powerOfTwo(op.limits.maxRowSize));
  switch (op.kind) {
    case "sort": {
      const variable = op.input.width.min === op.input.width.max ? 1 : 2;
      return {
        estimate: dataBytes(op.input),
        minReservation: 3 * Math.max(buffer, powerOfTwo(op.limits.maxRowSize)) * variable,
      };
    }
    case "aggregate": {
      const groups = distinctKeys(op.input);
      const estimate = Math.max(Math.ceil(groups * (rowBytes(op.input) + BUCKET_BYTES)), LEAST_AGGREGATE_ESTIMATE);
      const merge = 15 * buffer + 2 * largest;
      const streaming = op.preAggregate ? 16 * buffer + Math.max(MiB, buffer) : 0;
      return { estimate: estimate * (op.preAggregate ? 2 : 1), minReservation: merge + streaming };
    }
    case "join":
      return { estimate: joinBuildBytes(op.build), minReservation: 15 * buffer + 2 * largest };
  }
}

/** A class's operators under options in force. */
export const operatorsUnder = ({ operators, written }: OperatorUse, options: OptionTexts): readonly OperatorSpec[] =>
  operators.map((op, i) => ({
    ...op,
    limits: limitsUnder(op.kind, op.kind === "join" ? op.build : op.input, written[i]!, options),
  }));

/** `rows`: those that are held in memory. */
export function limitsUnder(
  kind: OperatorSpec["kind"],
  rows: RowsSpec,
  written: WrittenLimits,
  options: OptionTexts,
): OperatorLimits {
  const wanted = written.bufferSize ?? sizeOption(options, "DEFAULT_SPILLABLE_BUFFER_SIZE", DEFAULT_SPILLABLE_BUFFER);
  const least = sizeOption(options, "MIN_SPILLABLE_BUFFER_SIZE", MIN_SPILLABLE_BUFFER);
  return {
    bufferSize: bufferSizeFor(kind, rows, wanted, least),
    maxRowSize: (written.maxRowSize ?? sizeOption(options, "MAX_ROW_SIZE", MAX_ROW)) as Bytes,
  };
}

function sizeOption(options: OptionTexts, name: string, otherwise: number): number {
  const size = memoryOption(options[name] ?? "") ?? 0;
  return size > 0 ? size : otherwise;
}

/** P8: the planner makes the buffers of small inputs smaller; sorts keep theirs (P12). */
function bufferSizeFor(kind: OperatorSpec["kind"], input: RowsSpec, wanted: number, least: number): Bytes {
  if (kind === "sort") return wanted as Bytes;
  const data = kind === "join" ? joinBuildBytes(input) : distinctKeys(input) * (rowBytes(input) + BUCKET_BYTES);
  const share = powerOfTwo(Math.floor(data / 16));
  return Math.min(wanted, Math.max(least, share)) as Bytes;
}

function joinBuildBytes(build: RowsSpec): number {
  const distinct = distinctKeys(build);
  const buckets = powerOfTwo(Math.floor((3 * build.rows) / 2));
  const duplicates = distinct > 1 && distinct < build.rows ? (build.rows - distinct) * DUPLICATE_BYTES : 0;
  return Math.ceil(build.rows * rowBytes(build) + buckets * BUCKET_BYTES + duplicates);
}

/** Average bytes of a row. */
const rowBytes = (rows: RowsSpec): number => KEY_BYTES + (rows.width.min + rows.width.max) / 2;

const dataBytes = (rows: RowsSpec): number => Math.ceil(rows.rows * rowBytes(rows));

function distinctKeys({ rows, keys }: RowsSpec): number {
  switch (keys.kind) {
    case "uniform":
    case "zipf":
      return Math.min(keys.distinct, rows);
    case "hot":
      return Math.min(keys.distinct + 1, rows);
    case "sorted":
    case "unique":
    case "dealt":
      return rows;
  }
}

/** Smallest power of two not below `n`; 1 for anything below 1. */
function powerOfTwo(n: number): number {
  let power = 1;
  while (power < n) power *= 2;
  return power;
}
