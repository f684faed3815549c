/**
 * What the planner says an operator needs: spillable buffer, minimum reservation, estimate (memory 6.3, P8 to P12).
 *
 * The minimum is the contract between planner and operator: with exactly this much and every increase refused, the
 * operator still finishes (I19). So the operators take their buffer sizes from here and nowhere else.
 */
import { KiB, MiB } from "../units.ts";
import { pow2AtLeast } from "./buffer-allocator.ts";

/** Query options of memory 6.1, in bytes. */
export interface SpillOptions {
  /** DEFAULT_SPILLABLE_BUFFER_SIZE. */
  readonly defaultBuffer: number;
  /** MIN_SPILLABLE_BUFFER_SIZE. */
  readonly minBuffer: number;
  /** MAX_ROW_SIZE. */
  readonly maxRow: number;
}

export const DEFAULT_SPILL_OPTIONS: SpillOptions = { defaultBuffer: 2 * MiB, minBuffer: 64 * KiB, maxRow: 512 * KiB };

export interface PlannedMemory {
  /** E, never below the reservation (P1). */
  readonly estimate: number;
  /** R. */
  readonly minReservation: number;
  /** b; 0 when the operator has no spillable pages. */
  readonly buffer: number;
  /** m (P3). */
  readonly maxRowBuffer: number;
}

/** 16 partitions and one page to read with, of which two may be of the largest size (memory 4.1). */
const PARTITIONS = 16;
const BUCKET_BYTES = 12;
const DUPLICATE_BYTES = 16;

/** P3. */
export const maxRowBufferFor = (buffer: number, o: SpillOptions): number => Math.max(buffer, pow2AtLeast(o.maxRow));

/** P8; `dataBytes` null: unknown. */
export function spillableBuffer(dataBytes: number | null, o: SpillOptions): number {
  if (dataBytes === null) return o.defaultBuffer;
  const share = Math.floor(dataBytes / PARTITIONS);
  return Math.min(o.defaultBuffer, Math.max(o.minBuffer, pow2AtLeast(share)));
}

/** Memory 4.1: 15 b + 2 m, one b more for each extra stream (null-aware, serialize). */
export const partitionedMinimum = (buffer: number, maxRowBuffer: number, extraStreams = 0): number =>
  (PARTITIONS + 1 + extraStreams - 2) * buffer + 2 * maxRowBuffer;

export interface JoinBuild {
  /** Rows of the right side, null when unknown. */
  readonly rows: number | null;
  readonly rowBytes: number;
  /** Product over the keys of min(ndv, rows); null when unknown. */
  readonly ndv: number | null;
  /** Instances that share the build rows (PARTITIONED), else 1. */
  readonly instances: number;
  readonly nullAware: boolean;
  /** Probe threads that share the build (mt_dop > 0), else 1. */
  readonly probeThreads: number;
}

/** P9. */
export function plannedJoin(j: JoinBuild, o: SpillOptions): PlannedMemory {
  const data = j.rows === null ? null : Math.ceil(joinBuildBytes(j.rows, j.rowBytes, j.ndv) / j.instances);
  const buffer = spillableBuffer(data, o);
  const maxRowBuffer = maxRowBufferFor(buffer, o);
  const build = partitionedMinimum(buffer, maxRowBuffer, j.nullAware ? 1 : 0) * j.probeThreads;
  return planned(data ?? 2048 * MiB, build, buffer, maxRowBuffer);
}

function joinBuildBytes(rows: number, rowBytes: number, ndv: number | null): number {
  const buckets = pow2AtLeast(Math.floor((3 * rows) / 2));
  const duplicates = ndv !== null && ndv > 1 && ndv < rows ? (rows - ndv) * DUPLICATE_BYTES : 0;
  return Math.ceil(rows * rowBytes + buckets * BUCKET_BYTES + duplicates);
}

export interface Grouping {
  /** Groups of one instance after the caps of P11; null when the NDV is unknown. */
  readonly groups: number | null;
  readonly rowBytes: number;
  readonly streaming: boolean;
  /** State outside the tuple needs a serialize stream. */
  readonly serializes: boolean;
}

/** P11, with grouping; groups are already divided and capped by the caller. */
export function plannedAggregation(g: Grouping, o: SpillOptions): PlannedMemory {
  const data = g.groups === null ? null : Math.ceil(g.groups * (g.rowBytes + BUCKET_BYTES));
  const buffer = spillableBuffer(data, o);
  const maxRowBuffer = maxRowBufferFor(buffer, o);
  const minimum = g.streaming
    ? PARTITIONS * buffer + Math.max(MiB, buffer)
    : partitionedMinimum(buffer, maxRowBuffer, g.serializes ? 1 : 0);
  const estimate = data === null ? 128 * MiB : Math.max(data, 10 * MiB);
  return planned(estimate, minimum, buffer, maxRowBuffer);
}

/** P11: groups of one instance. A merge may see all input, a streaming node half of 1.5 times it. */
export function groupsOfInstance(inputRows: number, instances: number, streaming: boolean): number {
  if (!streaming) return Math.ceil(inputRows / instances);
  return instances === 1 ? Math.floor(inputRows / 2) : Math.ceil(Math.ceil((1.5 * inputRows) / instances) / 2);
}

/** P12: buffers are not made smaller for small inputs; variable-length data doubles them. */
export function plannedSort(
  input: { readonly bytes: number | null; readonly variable: boolean; readonly partial?: boolean },
  o: SpillOptions,
): PlannedMemory {
  const buffer = Math.max(o.defaultBuffer, pow2AtLeast(o.maxRow));
  const pages = (input.partial === true ? 1 : 3) * (input.variable ? 2 : 1);
  return planned(input.bytes ?? 128 * MiB, pages * buffer, buffer, buffer);
}

const planned = (estimate: number, minReservation: number, buffer: number, maxRowBuffer: number): PlannedMemory => ({
  estimate: Math.max(estimate, minReservation),
  minReservation,
  buffer,
  maxRowBuffer,
});
