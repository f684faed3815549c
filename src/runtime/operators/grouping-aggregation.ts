/**
 * Grouping aggregation that spills (memory 4.2, O6 to O14).
 *
 * Sixteen partitions, each with a table and a stream of groups. When a table or a stream may not grow, the partition
 * with the most bytes is spilled: its table goes, its groups may go to disk, and its later rows are kept as they come.
 * After the input, what stayed in memory is put out; each spilled partition is then built back alone, and dealt out
 * once more with another hash if it still does not fit.
 *
 * Must keep: every row is in exactly one group or one raw stream (I21); with the minimum and no increase it ends (I19);
 * levels stay below 16 (I22).
 */
import { fail } from "../../core/assert.ts";
import { OperatorFailure } from "../../core/memory/operator-failure.ts";
import { Suballocator } from "../../core/memory/suballocator.ts";
import type { ChecksumSink } from "./checksum-sink.ts";
import { HashTable, roomOf } from "./hash-table.ts";
import { type OperatorContext, startSpilling, u32At } from "./operator-context.ts";
import {
  FANOUT,
  IN_MEMORY,
  KEEP_ALL,
  KEEP_ONE,
  largest,
  levelSeeds,
  PartitionRecords,
  SLOT_BYTES,
  SPILLED,
} from "./partitions.ts";
import { type Batch, type RowShape, type RowSource, VARIABLE_HEADER } from "./row-source.ts";
import { RowStream, SetAside } from "./row-stream.ts";

export const PARTITIONED_AGG_MAX_PARTITION_DEPTH = 28;
/** O5: a table's first size. */
const FIRST_BUCKETS = 1024;

const GROUPS = 1;
const VARIABLE = 2;

export interface AggregationCounters {
  inputRows: number;
  partitionsCreated: number;
  spilledPartitions: number;
  maxPartitionLevel: number;
  numRepartitions: number;
  rowsRepartitioned: number;
  largestPartitionPercent: number;
  resizes: number;
}

/** A group's length: key, count, and what is kept of the row (kernels/assembly/aggregate.ts). */
export const groupBytesOf = (shape: RowShape): number =>
  shape.stride === 0 ? 32 : 8 + 8 * Math.max(1, Math.floor((shape.stride - 8) / 8));

/** What kernels call rows of this kind. */
export const kindOf = (shape: RowShape, groups: boolean): number =>
  (groups ? GROUPS : 0) | (shape.stride === 0 ? VARIABLE : 0);

interface Partition {
  readonly index: number;
  readonly level: number;
  readonly groups: RowStream;
  readonly raw: RowStream;
  table: HashTable | null;
  spilled: boolean;
}

export class GroupingAggregation {
  readonly counters: AggregationCounters = {
    inputRows: 0,
    partitionsCreated: 0,
    spilledPartitions: 0,
    maxPartitionLevel: 0,
    numRepartitions: 0,
    rowsRepartitioned: 0,
    largestPartitionPercent: 0,
    resizes: 0,
  };
  readonly #ctx: OperatorContext;
  readonly #shape: RowShape;
  readonly #sink: ChecksumSink;
  readonly #groupBytes: number;
  readonly #minReservation: number;
  readonly #suballocator: Suballocator;
  readonly #setAside: SetAside;
  readonly #records: PartitionRecords;
  readonly #seeds: number;
  /** Addresses and hashes of a batch, and the groups it may meet. */
  readonly #rows: number;
  readonly #hashes: number;
  readonly #slots: number;
  /** Partitions that rows are dealt to now, by record. */
  #current: Partition[] = [];
  /** Spilled ones, the next first. */
  #workList: Partition[] = [];
  /** The spilled one that is read now. */
  #pouring: Partition | null = null;
  /** Rows that come are groups, from a rebuild or a streaming aggregation (O9). */
  #groupsAreComing = false;

  constructor(ctx: OperatorContext, shape: RowShape, sink: ChecksumSink, minReservation: number) {
    this.#ctx = ctx;
    this.#shape = shape;
    this.#sink = sink;
    this.#groupBytes = groupBytesOf(shape);
    this.#minReservation = minReservation;
    this.#suballocator = new Suballocator(ctx.pool, ctx.pageBytes);
    this.#setAside = new SetAside(ctx.pool.reservation);
    this.#records = new PartitionRecords(ctx.workspace);
    this.#seeds = levelSeeds(ctx.workspace);
    this.#rows = ctx.workspace.take(4 * ctx.batchRows);
    this.#hashes = ctx.workspace.take(4 * ctx.batchRows);
    this.#slots = ctx.workspace.take(SLOT_BYTES);
  }

  /** The minimum reservation is the client's before this starts. */
  *run(source: RowSource): Generator<void> {
    this.open(false);
    for (let batch = source.next(); batch !== null; batch = source.next()) {
      this.add(batch);
      yield;
    }
    yield* this.finish();
  }

  /** O6. `groups`: its input is that of a streaming aggregation. */
  open(groups: boolean): void {
    const { maxPageBytes, pageBytes } = this.#ctx;
    this.#groupsAreComing = groups;
    this.#setAside.put(2 * (maxPageBytes - pageBytes));
    this.#createPartitions(0, FANOUT);
  }

  add(batch: Batch): void {
    this.counters.inputRows += batch.rows;
    this.#addRows(batch.address, batch.rows, 0);
  }

  /** O10: what is in memory first, then one spilled partition after the other. */
  *finish(): Generator<void> {
    yield* this.#closeCurrent();
    for (let next = this.#workList.shift(); next !== undefined; next = this.#workList.shift()) {
      yield* this.#buildBack(next);
    }
  }

  /** Whatever happened: no table, page or promise stays. */
  close(): void {
    const pouring = this.#pouring === null ? [] : [this.#pouring];
    for (const p of [...this.#current, ...this.#workList, ...pouring]) {
      p.table?.destroy();
      p.groups.destroy();
      p.raw.destroy();
    }
    this.#current = [];
    this.#workList = [];
    this.#pouring = null;
    this.#setAside.close();
  }

  /** O6: a partition whose table does not fit starts spilled. */
  #createPartitions(level: number, count: number): void {
    this.#current = Array.from({ length: count }, (_, index) => {
      this.#records.clear(index);
      return {
        index,
        level,
        groups: new RowStream(this.#ctx, this.#records.cursor(index), this.#setAside),
        raw: new RowStream(this.#ctx, this.#records.rawCursor(index), this.#setAside),
        table: null,
        spilled: false,
      };
    });
    this.counters.partitionsCreated += count;
    this.counters.maxPartitionLevel = Math.max(this.counters.maxPartitionLevel, level);
    for (const p of this.#current) p.groups.nextPage();
    for (const p of this.#current) {
      p.table = HashTable.tryCreate(this.#suballocator, this.#ctx.kernels, FIRST_BUCKETS);
      if (p.table !== null) this.#show(p);
      else {
        this.#noteRefusal("a hash table", FIRST_BUCKETS);
        this.#spill(p);
      }
    }
  }

  /** Rows next to each other, to the current partitions, by the hash of `level`. Returns the end of the rows. */
  #addRows(address: number, rows: number, level: number): number {
    const { kernels } = this.#ctx;
    const stride = this.#groupsAreComing ? this.#groupBytes : this.#shape.stride;
    const keep = this.#current.length === 1 ? KEEP_ONE : KEEP_ALL;
    this.#makeRoom(rows);
    const end = kernels.prepare(address, rows, stride, this.#seeds + 8 * level, keep, this.#rows, this.#hashes);
    for (let at = 0; at < rows; ) {
      at = kernels.aggregate(
        this.#rows,
        this.#hashes,
        at,
        rows,
        kindOf(this.#shape, this.#groupsAreComing),
        stride,
        this.#groupBytes,
        this.#records.address,
        this.#slots,
        0,
        0,
      );
      if (at < rows && this.#makePlaceFor(at, stride) === "appended") at++;
    }
    return end;
  }

  /** O7: every table in memory can take the whole batch, or somebody is spilled until that is so. */
  #makeRoom(rows: number): void {
    for (const p of this.#current)
      while (p.table !== null) {
        const needed = this.#records.filled(p.index) + rows;
        let buckets = p.table.bucketCount;
        while (needed > roomOf(buckets)) buckets *= 2;
        if (buckets === p.table.bucketCount) break;
        if (p.table.tryGrow(buckets)) {
          this.counters.resizes++;
          this.#show(p);
        } else {
          this.#noteRefusal("a larger hash table", buckets);
          this.#spillVictim();
        }
      }
  }

  /** The kernel stopped at a row whose stream has no room. */
  #makePlaceFor(row: number, stride: number): "made room" | "appended" {
    const { words } = this.#ctx.workspace;
    const hash = words[(this.#hashes >>> 2) + row]!;
    const p = this.#current[hash >>> 28] ?? fail("O6 a row belongs to a partition");
    if (!p.spilled) {
      if (!p.groups.tryAddPage(this.#groupBytes, "a page of groups")) this.#spillVictim();
      return "made room";
    }
    const address = words[(this.#rows >>> 2) + row]!;
    const bytes = stride === 0 ? VARIABLE_HEADER + u32At(this.#ctx.workspace.bytes, address + 16) : stride;
    return (this.#groupsAreComing ? p.groups : p.raw).makeRoomFor(address, bytes);
  }

  /** O8: most bytes, not counting the page that is written to. */
  #spillVictim(): void {
    const bytes = this.#current.map((p) => (p.spilled ? -1 : p.groups.pinnedBytes(false) + (p.table?.bytes ?? 0)));
    this.#spill(this.#current[largest(bytes)] ?? fail("I19 a partition can be spilled when memory is refused"));
  }

  /** O9. */
  #spill(p: Partition): void {
    startSpilling(this.#ctx);
    const bytes = p.groups.pinnedBytes(true) + (p.table?.bytes ?? 0);
    p.spilled = true;
    p.table?.destroy();
    p.table = null;
    this.#records.setTable(p.index, null);
    this.#records.setState(p.index, SPILLED);
    this.counters.spilledPartitions++;
    if (this.#groupsAreComing) p.groups.unpinExceptWritePage();
    else this.#startRawRows(p);
    this.#ctx.note({ kind: "partitionSpilled", partition: p.index, level: p.level, bytes });
  }

  #startRawRows(p: Partition): void {
    p.groups.unpinAll();
    p.raw.pinned = false;
    p.raw.nextPage();
  }

  #show(p: Partition): void {
    this.#records.setState(p.index, IN_MEMORY);
    this.#records.setTable(p.index, p.table);
  }

  /** O10, O11: spilled ones to the front of the list, the rest to the client. */
  *#closeCurrent(): Generator<void> {
    const done = this.#current;
    this.#noteLargest(done);
    for (const p of done) {
      p.table?.destroy();
      p.table = null;
      if (!p.spilled) continue;
      p.groups.unpinAll();
      p.raw.unpinAll();
      this.#workList.unshift(p);
    }
    this.#current = done.filter((p) => !p.spilled);
    // O13: nothing more will be asked for.
    if (this.#workList.length === 0) this.#ctx.pool.releaseUnusedAbove(this.#minReservation);
    for (const p of this.#current)
      for (const page of p.groups.drain()) {
        this.#sink.rows(page.address, page.rows, this.#groupBytes);
        yield;
      }
    this.#current = [];
  }

  /** O11: alone into one partition of the same level; if that does not do, into sixteen of the next. */
  *#buildBack(spilled: Partition): Generator<void> {
    const rows = spilled.groups.rows + spilled.raw.rows;
    yield* this.#pour(spilled, spilled.level, 1);
    const alone = this.#current[0]!;
    if (!alone.spilled) {
      this.#ctx.note({ kind: "partitionRestored", level: alone.level, rows });
      yield* this.#closeCurrent();
      return;
    }
    alone.groups.unpinAll();
    alone.raw.unpinAll();
    this.#current = [];
    yield* this.#repartition(alone);
  }

  *#repartition(p: Partition): Generator<void> {
    const level = p.level + 1;
    this.#pouring = p;
    if (level >= this.#ctx.partitionDepth) throw new OperatorFailure(tooDeep(this.#ctx));
    const rows = p.groups.rows + p.raw.rows;
    this.counters.numRepartitions++;
    this.counters.rowsRepartitioned += rows;
    yield* this.#pour(p, level, FANOUT);
    this.#ctx.note({ kind: "repartitioned", level, rows, largest: Math.max(...this.#current.map(rowsIn)) });
    yield* this.#closeCurrent();
  }

  /** Groups first, then raw rows (O11), into new partitions. The page that is read is set aside before all else. */
  *#pour(from: Partition, level: number, count: number): Generator<void> {
    this.#pouring = from;
    this.#setAside.put(this.#ctx.pageBytes);
    this.#groupsAreComing = true;
    this.#createPartitions(level, count);
    for (const page of from.groups.drain()) yield* this.#addPage(page, level);
    this.#groupsAreComing = false;
    for (const p of this.#current) if (p.spilled) this.#startRawRows(p);
    for (const page of from.raw.drain()) yield* this.#addPage(page, level);
    this.#setAside.take(this.#ctx.pageBytes);
    this.#pouring = null;
  }

  *#addPage(page: Batch, level: number): Generator<void> {
    let address = page.address;
    for (let left = page.rows; left > 0; ) {
      const rows = Math.min(left, this.#ctx.batchRows);
      address = this.#addRows(address, rows, level);
      left -= rows;
      yield;
    }
  }

  #noteLargest(partitions: readonly Partition[]): void {
    const rows = partitions.map(rowsIn);
    const all = rows.reduce((a, b) => a + b, 0);
    if (partitions.length < FANOUT || all === 0) return;
    const percent = Math.round((100 * Math.max(...rows)) / all);
    this.counters.largestPartitionPercent = Math.max(this.counters.largestPartitionPercent, percent);
  }

  #noteRefusal(what: string, buckets: number): void {
    this.#ctx.note({ kind: "refused", what, bytes: buckets * 12, text: this.#ctx.pool.reservation.refusal });
  }
}

const rowsIn = (p: Partition): number => p.groups.rows + p.raw.rows;

const tooDeep = ({ nodeId, partitionDepth }: OperatorContext) => ({
  code: PARTITIONED_AGG_MAX_PARTITION_DEPTH,
  text:
    `Cannot perform aggregation at hash aggregation node with id ${nodeId}. The input data was partitioned the maximum number of ` +
    `${partitionDepth} times. This could mean there is significant skew in the data or the memory limit is set too low.`,
});
