/**
 * Streaming pre-aggregation (memory 4.3, O15 to O17): groups what it can hold and passes the rest on.
 *
 * It never spills and never fails for want of memory: a row whose group is not there, and for which there is no room,
 * becomes a group of its own and goes downstream at once. Tables grow only while grouping pays (O16).
 */
import { fail } from "../../core/assert.ts";
import { Suballocator } from "../../core/memory/suballocator.ts";
import { KiB, MiB } from "../../core/units.ts";
import { groupBytesOf, kindOf } from "./grouping-aggregation.ts";
import { HashTable, roomOf } from "./hash-table.ts";
import type { OperatorContext } from "./operator-context.ts";
import { FANOUT, IN_MEMORY, KEEP_ALL, levelSeeds, PartitionRecords, SLOT_BYTES } from "./partitions.ts";
import { type Batch, type RowShape, rowsPerBatch } from "./row-source.ts";
import { RowStream, SetAside } from "./row-stream.ts";

const FIRST_BUCKETS = 1024;

/** O16: from so many bytes of tables on, grouping must at least halve the rows (or so). */
const GROWTH: readonly { readonly from: number; readonly reduction: number }[] = [
  { from: 0, reduction: 0 },
  { from: 256 * KiB, reduction: 1.1 },
  { from: 2 * MiB, reduction: 2 },
];

/** O16: the reduction that tables of so many bytes must reach before they may grow. */
export function reductionToExpand(tableBytes: number): number {
  return GROWTH.findLast((step) => tableBytes >= step.from)!.reduction;
}

/**
 * O16: rows per group at the end of the input, from what is known now. `aggregated`: input rows that were not passed on;
 * `expected`: the planner's estimate of the input less the rows passed on.
 */
export function estimatedReduction(aggregated: number, groups: number, expected: number): number {
  const current = aggregated / groups;
  if (aggregated >= expected) return current;
  return 1 + Math.floor(expected / aggregated) * (current - 1);
}

export interface StreamingCounters {
  inputRows: number;
  rowsPassedThrough: number;
  reductionFactorEstimate: number;
  reductionFactorThresholdToExpand: number;
  resizes: number;
}

interface Partition {
  readonly index: number;
  readonly groups: RowStream;
  table: HashTable;
}

export class StreamingAggregation {
  readonly counters: StreamingCounters = {
    inputRows: 0,
    rowsPassedThrough: 0,
    reductionFactorEstimate: 0,
    reductionFactorThresholdToExpand: 0,
    resizes: 0,
  };
  readonly #ctx: OperatorContext;
  readonly #shape: RowShape;
  readonly #expectedRows: number;
  readonly #groupBytes: number;
  readonly #suballocator: Suballocator;
  readonly #setAside: SetAside;
  readonly #records: PartitionRecords;
  readonly #seeds: number;
  readonly #rows: number;
  readonly #hashes: number;
  readonly #slots: number;
  readonly #passedOn: number;
  readonly #control: number;
  #partitions: Partition[] = [];

  /** `expectedRows`: what the planner thinks will come in. */
  constructor(ctx: OperatorContext, shape: RowShape, expectedRows: number) {
    this.#ctx = ctx;
    this.#shape = shape;
    this.#expectedRows = expectedRows;
    this.#groupBytes = groupBytesOf(shape);
    this.#suballocator = new Suballocator(ctx.pool, ctx.pageBytes);
    this.#setAside = new SetAside(ctx.pool.reservation);
    const { workspace } = ctx;
    this.#records = new PartitionRecords(workspace);
    this.#seeds = levelSeeds(workspace);
    this.#rows = workspace.take(4 * ctx.batchRows);
    this.#hashes = workspace.take(4 * ctx.batchRows);
    this.#slots = workspace.take(SLOT_BYTES);
    this.#passedOn = workspace.takeAsItIs(this.#groupBytes * rowsPerBatch(ctx.batchRows, shape));
    this.#control = workspace.take(8);
  }

  /** The minimum covers a page and a first table for each partition (memory 4.1). */
  open(): void {
    this.#partitions = Array.from({ length: FANOUT }, (_, index) => {
      this.#records.clear(index);
      const groups = new RowStream(this.#ctx, this.#records.cursor(index), this.#setAside);
      groups.nextPage();
      const table = HashTable.tryCreate(this.#suballocator, this.#ctx.kernels, FIRST_BUCKETS);
      return { index, groups, table: table ?? fail("O15 the minimum covers the first tables") };
    });
    for (const p of this.#partitions) this.#show(p);
  }

  /** Groups one batch; returns the groups that are passed on, or null. They are overwritten by the next batch. */
  add(batch: Batch): Batch | null {
    const { kernels, workspace } = this.#ctx;
    const { stride } = this.#shape;
    this.#growTables(batch.rows);
    this.counters.inputRows += batch.rows;
    const control = this.#control >>> 2;
    workspace.words.set([0, this.#passedOn], control);
    kernels.prepare(batch.address, batch.rows, stride, this.#seeds, KEEP_ALL, this.#rows, this.#hashes);
    this.#addPages();
    kernels.aggregate(
      this.#rows,
      this.#hashes,
      0,
      batch.rows,
      kindOf(this.#shape, false),
      stride,
      this.#groupBytes,
      this.#records.address,
      this.#slots,
      this.#passedOn,
      this.#control,
    );
    const rows = workspace.words[control]!;
    this.counters.rowsPassedThrough += rows;
    if (rows === 0) return null;
    this.#ctx.note({ kind: "passedThrough", rows });
    return { address: this.#passedOn, rows };
  }

  /** What was held, at the end of the input. */
  *drain(): Generator<Batch> {
    for (let p = this.#partitions[0]; p !== undefined; p = this.#partitions[0]) {
      for (const page of p.groups.drain()) {
        for (let done = 0; done < page.rows; done += this.#ctx.batchRows)
          yield {
            address: page.address + done * this.#groupBytes,
            rows: Math.min(this.#ctx.batchRows, page.rows - done),
          };
      }
      p.table.destroy();
      this.#partitions.shift();
    }
  }

  close(): void {
    for (const p of this.#partitions) {
      p.table.destroy();
      p.groups.destroy();
    }
    this.#partitions = [];
    this.#setAside.close();
  }

  /** O16: granted, and worth it. A refusal leaves the table as it is; rows are passed on instead. */
  #growTables(rows: number): void {
    for (const p of this.#partitions) {
      const needed = this.#records.filled(p.index) + rows;
      if (needed <= roomOf(p.table.bucketCount) || !this.#isWorthGrowing()) continue;
      if (p.table.tryGrow(p.table.bucketCount * 2)) {
        this.counters.resizes++;
        this.#show(p);
      }
    }
  }

  #isWorthGrowing(): boolean {
    const groups = this.#partitions.reduce((sum, p) => sum + this.#records.filled(p.index), 0);
    if (groups === 0) return true;
    const passed = this.counters.rowsPassedThrough;
    const threshold = reductionToExpand(this.#partitions.reduce((sum, p) => sum + p.table.bytes, 0));
    const estimate = estimatedReduction(this.counters.inputRows - passed, groups, this.#expectedRows - passed);
    this.counters.reductionFactorEstimate = estimate;
    this.counters.reductionFactorThresholdToExpand = threshold;
    return estimate > threshold;
  }

  /** A full page gets a successor, if it is granted; else rows are passed on. What still fits in one is not wasted. */
  #addPages(): void {
    const { words } = this.#ctx.workspace;
    for (const p of this.#partitions) {
      const at = this.#records.cursor(p.index) >>> 2;
      const left = words[at + 1]! - words[at]!;
      if (left < this.#groupBytes) p.groups.tryAddPage(this.#groupBytes, "a page of groups");
    }
  }

  #show(p: Partition): void {
    this.#records.setState(p.index, IN_MEMORY);
    this.#records.setTable(p.index, p.table);
  }
}
