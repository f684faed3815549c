/**
 * One operator of a scenario on one host, from its claimed minimum to nothing left (issue 4.4).
 *
 * The one place where a failure below becomes plain data, and where everything an operator held is given back,
 * whatever ended it: done, failed or cancelled (I23).
 */
import type { OperatorSpec } from "../../config/scenario.ts";
import { type BufferAllocator, pow2AtLeast } from "../../core/memory/buffer-allocator.ts";
import { BufferPoolClient, type BufferPoolCounters, type ClientSnapshot } from "../../core/memory/buffer-pool.ts";
import { OperatorFailure } from "../../core/memory/operator-failure.ts";
import type { Failure } from "../../core/memory/page-store.ts";
import { partitionedMinimum } from "../../core/memory/planned-memory.ts";
import type { ReservationClient } from "../../core/memory/reservation-client.ts";
import { MiB } from "../../core/units.ts";
import type { FileGroup, ScratchCounters } from "../scratch/file-group.ts";
import { type Compression, ScratchPageStore, type WriteBack } from "../scratch/scratch-page-store.ts";
import { ChecksumSink, type Output } from "./checksum-sink.ts";
import { ExternalSort } from "./external-sort.ts";
import { GroupingAggregation } from "./grouping-aggregation.ts";
import { HashJoin } from "./hash-join.ts";
import { type Kernels, kernelsOver } from "./kernels/kernels.ts";
import { type OperatorArena, WORKSPACE_BYTES } from "./operator-arena.ts";
import { BATCH_ROWS, type OperatorContext, type OperatorEvent, Workspace } from "./operator-context.ts";
import { MAX_PARTITION_DEPTH } from "./partitions.ts";
import { RowSource, shapeOf } from "./row-source.ts";
import { StreamingAggregation } from "./streaming-aggregation.ts";

/** Impala's code of errors that have none of their own. */
const GENERAL = 2;

/** What one reservation client of an operator is planned with (memory 4.1, P9, P11, P12). */
export interface PlannedClient {
  /** As in messages and profiles; the node id is added by the caller's plan. */
  readonly label: "SORT_NODE" | "AGGREGATION_NODE" | "HASH_JOIN_NODE";
  readonly minReservation: number;
  /** b and m. */
  readonly pageBytes: number;
  readonly maxPageBytes: number;
}

/** The clients that the operator needs, in the order in which `OperatorRun.clients` lists them. */
export function plannedClients(spec: OperatorSpec): readonly PlannedClient[] {
  const { bufferSize, maxRowSize } = spec.limits;
  const largest = Math.max(bufferSize, pow2AtLeast(maxRowSize));
  const partitioned = partitionedMinimum(bufferSize, largest);
  switch (spec.kind) {
    case "sort": {
      const minReservation = 3 * largest * (shapeOf(spec.input).stride === 0 ? 2 : 1);
      return [{ label: "SORT_NODE", minReservation, pageBytes: largest, maxPageBytes: largest }];
    }
    case "join":
      return [{ label: "HASH_JOIN_NODE", minReservation: partitioned, pageBytes: bufferSize, maxPageBytes: largest }];
    case "aggregate": {
      const pages = { pageBytes: bufferSize, maxPageBytes: largest };
      const merge: PlannedClient = { label: "AGGREGATION_NODE", minReservation: partitioned, ...pages };
      if (!spec.preAggregate) return [merge];
      const streaming = 16 * bufferSize + Math.max(MiB, bufferSize);
      return [merge, { label: "AGGREGATION_NODE", minReservation: streaming, ...pages }];
    }
  }
}

export interface OperatorRun {
  readonly spec: OperatorSpec;
  /** One for each of `plannedClients`, each holding its minimum (R19). */
  readonly clients: readonly ReservationClient[];
  readonly arena: OperatorArena;
  readonly allocator: BufferAllocator;
  /** Whose work space: below `arena.threads`, and nobody else's while this runs. */
  readonly thread: number;
  /** In the allocator's books, so that a dead thread's buffers come back. */
  readonly owner: number;
  /** null: there is no file group (SCRATCH_LIMIT = 0), so nothing may be unpinned. */
  readonly scratch: FileGroup | null;
  readonly compression?: Compression;
  /** Impala's eager write-back unless said. */
  readonly writeBack?: WriteBack;
  readonly seed: number;
  readonly nodeId: number;
  /** O2: the failure an operator meets when it would have to spill. */
  readonly spillingForbidden: Failure | null;
  readonly batchRows?: number;
  /** 1 to MAX_PARTITION_DEPTH. */
  readonly partitionDepth?: number;
  /** What happens, as it happens. */
  readonly note?: (event: OperatorEvent) => void;
  /** After every step, for checks: the books of each client's pages are made when they are asked for. */
  readonly inspect?: (clients: () => readonly ClientSnapshot[]) => void;
  /** The client of the query takes a batch; a slow one may block here. */
  readonly pause?: (rows: number) => void;
}

export interface OperatorCounters {
  /** O14, O17, O25, O32, by their names. */
  readonly operator: Readonly<Record<string, number>>;
  /** One a client. */
  readonly bufferPool: readonly BufferPoolCounters[];
  readonly scratch: ScratchCounters | null;
}

export type OperatorOutcome =
  | { readonly kind: "done"; readonly output: Output; readonly counters: OperatorCounters }
  | { readonly kind: "failed"; readonly failure: Failure; readonly counters: OperatorCounters }
  | { readonly kind: "cancelled"; readonly counters: OperatorCounters };

/** To the end, on this thread. `isCancelled` is asked between batches. */
export function runOperator(run: OperatorRun, isCancelled: () => boolean = () => false): OperatorOutcome {
  const steps = operatorSteps(run);
  for (;;) {
    const step = steps.next(isCancelled() ? "cancel" : "go on");
    if (step.done) return step.value;
  }
}

/**
 * The same in steps of a batch: `next("cancel")` ends it. Whoever drops it without that leaves its memory behind.
 */
export function* operatorSteps(run: OperatorRun): Generator<void, OperatorOutcome, "go on" | "cancel"> {
  const parts = partsOf(run);
  try {
    const { work } = parts;
    const tooSmall = bufferTooSmall(run);
    if (tooSmall !== null) return { kind: "failed", failure: tooSmall, counters: parts.counters() };
    for (;;) {
      const step = work.next();
      run.inspect?.(parts.snapshot);
      if (step.done) break;
      if ((yield) === "cancel") return { kind: "cancelled", counters: parts.counters() };
    }
    return { kind: "done", output: parts.sink.output, counters: parts.counters() };
  } catch (error) {
    if (!(error instanceof OperatorFailure)) throw error;
    return { kind: "failed", failure: error.failure, counters: parts.counters() };
  } finally {
    parts.close();
  }
}

/** R19: checked when the operator opens. */
function bufferTooSmall(run: OperatorRun): Failure | null {
  const smallest = run.allocator.minBufferBytes;
  const found = plannedClients(run.spec).find((c) => c.pageBytes < smallest);
  if (found === undefined) return null;
  const text = `Spillable buffer size for node ${run.nodeId} of ${found.pageBytes} bytes is less than the minimum buffer pool buffer size of ${smallest} bytes`;
  return { code: GENERAL, text };
}

interface Parts {
  readonly work: Generator<void>;
  readonly sink: ChecksumSink;
  counters(): OperatorCounters;
  snapshot(): readonly ClientSnapshot[];
  /** Pages, tables and buffers go; the reservation stays the caller's to return (R20). */
  close(): void;
}

function partsOf(run: OperatorRun): Parts {
  const { memory } = run.arena;
  const kernels = kernelsOver(memory);
  const workspace = new Workspace(memory, run.arena.workspaces + run.thread * WORKSPACE_BYTES, WORKSPACE_BYTES);
  const pools = run.clients.map((reservation) => poolClient(run, reservation, kernels, workspace));
  const contexts = plannedClients(run.spec).map(
    (planned, at): OperatorContext => ({
      kernels,
      workspace,
      pool: pools[at]!,
      pageBytes: planned.pageBytes,
      maxPageBytes: planned.maxPageBytes,
      maxRowSize: run.spec.limits.maxRowSize,
      batchRows: run.batchRows ?? BATCH_ROWS,
      partitionDepth: run.partitionDepth ?? MAX_PARTITION_DEPTH,
      nodeId: run.nodeId,
      spillingForbidden: run.spillingForbidden,
      note: run.note ?? (() => undefined),
    }),
  );
  const sink = new ChecksumSink(contexts[0]!, run.pause);
  const operator = operatorOf(run, contexts, sink);
  return {
    work: operator.work,
    sink,
    counters: () => ({
      operator: operator.counters(),
      bufferPool: pools.map((p) => ({ ...p.counters })),
      scratch: run.scratch === null ? null : { ...run.scratch.counters },
    }),
    snapshot: () => pools.map((p) => p.snapshot()),
    close: () => {
      operator.close();
      for (const p of pools) p.close();
    },
  };
}

function poolClient(
  run: OperatorRun,
  reservation: ReservationClient,
  kernels: Kernels,
  workspace: Workspace,
): BufferPoolClient {
  const { compression = "none", writeBack = "eager" } = run;
  const store =
    run.scratch === null ? null : new ScratchPageStore(run.scratch, workspace.bytes, compression, writeBack);
  const { allocator, owner } = run;
  return new BufferPoolClient({ allocator, reservation, store, owner, checksum: kernels.pageSum });
}

interface Operator {
  readonly work: Generator<void>;
  counters(): Readonly<Record<string, number>>;
  close(): void;
}

function operatorOf(run: OperatorRun, contexts: readonly OperatorContext[], sink: ChecksumSink): Operator {
  const { spec, seed } = run;
  const [ctx, streamingCtx] = contexts as [OperatorContext, OperatorContext | undefined];
  switch (spec.kind) {
    case "sort": {
      const source = new RowSource(ctx, spec.input, seed);
      const sort = new ExternalSort(ctx, source.shape, sink);
      return { work: sort.run(source), counters: () => numbersOf(sort.counters), close: () => sort.close() };
    }
    case "join": {
      const build = new RowSource(ctx, spec.build, seed);
      const probe = new RowSource(ctx, spec.probe, seed + 1);
      const join = new HashJoin(ctx, build.shape, probe.shape, sink);
      return { work: join.run(build, probe), counters: () => ({ ...join.counters }), close: () => join.close() };
    }
    case "aggregate": {
      const source = new RowSource(ctx, spec.input, seed);
      const planned = plannedClients(spec)[0]!;
      const merge = new GroupingAggregation(ctx, source.shape, sink, planned.minReservation);
      if (streamingCtx === undefined)
        return { work: merge.run(source), counters: () => ({ ...merge.counters }), close: () => merge.close() };
      const streaming = new StreamingAggregation(streamingCtx, source.shape, spec.input.rows);
      return {
        work: inTwoPhases(source, streaming, merge),
        counters: () => ({ ...merge.counters, ...streaming.counters, mergeInputRows: merge.counters.inputRows }),
        close: () => {
          streaming.close();
          merge.close();
        },
      };
    }
  }
}

/** Memory 4.3: what the streaming one passes on, and at the end what it held, is the merging one's input. */
function* inTwoPhases(source: RowSource, streaming: StreamingAggregation, merge: GroupingAggregation): Generator<void> {
  merge.open(true);
  streaming.open();
  for (let batch = source.next(); batch !== null; batch = source.next()) {
    const passed = streaming.add(batch);
    if (passed !== null) merge.add(passed);
    yield;
  }
  for (const held of streaming.drain()) {
    merge.add(held);
    yield;
  }
  yield* merge.finish();
}

const numbersOf = (counters: object): Record<string, number> =>
  Object.fromEntries(
    Object.entries(counters).filter((entry): entry is [string, number] => typeof entry[1] === "number"),
  );
