/**
 * Hash join that spills (memory 4.4, O18 to O22, O25): inner, on the key.
 *
 * The build rows are dealt to sixteen partitions. When a page is refused, the partition with the most bytes is spilled:
 * all its pages but the one being written may go to disk. At the end of the build, write pages for the probe rows of
 * spilled partitions come first, then tables for the others; both may cost a further partition its place in memory.
 * Probe rows of spilled partitions are kept too. Afterwards each spilled pair is joined alone, last one first, or dealt
 * out once more with another hash.
 *
 *   partitioningBuild -> partitioningProbe -> (probingSpilledPartition | repartitioningBuild -> repartitioningProbe)*
 *
 * Must keep: every row is in one stream or has been joined (I21); with the minimum and no increase it ends (I19), unless
 * one key alone is too large (code 76); levels stay below 16 (I22).
 */
import { fail } from "../../core/assert.ts";
import { pow2AtLeast } from "../../core/memory/buffer-allocator.ts";
import type { ClientSnapshot } from "../../core/memory/buffer-pool.ts";
import { OperatorFailure } from "../../core/memory/operator-failure.ts";
import { Suballocator } from "../../core/memory/suballocator.ts";
import type { ChecksumSink } from "./checksum-sink.ts";
import { HashTable } from "./hash-table.ts";
import { NearTables, type RowList } from "./near-tables.ts";
import { type OperatorContext, startSpilling, u32At } from "./operator-context.ts";
import {
  ABSENT,
  FANOUT,
  IN_MEMORY,
  KEEP_ALL,
  KEEP_ONE,
  largest,
  levelSeeds,
  PartitionRecords,
  SLOT_BYTES,
  SPILLED,
  STAGED,
} from "./partitions.ts";
import { type Batch, type RowShape, type RowSource, VARIABLE_HEADER } from "./row-source.ts";
import { RowStream, SetAside } from "./row-stream.ts";

export const PARTITIONED_HASH_JOIN_MAX_PARTITION_DEPTH = 27;
export const PARTITIONED_HASH_JOIN_REPARTITION_FAILS = 76;

/** Pairs that one call of the probe kernel hands out. */
const PAIRS = 4096;
const PAIR_BYTES = 8;
/** Hashes of a slice of 256 rows, and a word. */
const INSERT_WORK = 1024 + 64;

export interface JoinCounters {
  buildRows: number;
  probeRows: number;
  probeRowsPartitioned: number;
  partitionsCreated: number;
  spilledPartitions: number;
  maxPartitionLevel: number;
  largestPartitionPercent: number;
  numRepartitions: number;
  numHashTableBuildsSkipped: number;
  /** Child "Hash Table". */
  probes: number;
  /** Steps beyond the first bucket while tables were built. */
  travel: number;
  hashCollisions: number;
  hashBuckets: number;
}

interface Partition {
  readonly index: number;
  readonly level: number;
  readonly build: RowStream;
  readonly probe: RowStream;
  table: HashTable | null;
  spilled: boolean;
}

export class HashJoin {
  readonly counters: JoinCounters = {
    buildRows: 0,
    probeRows: 0,
    probeRowsPartitioned: 0,
    partitionsCreated: 0,
    spilledPartitions: 0,
    maxPartitionLevel: 0,
    largestPartitionPercent: 0,
    numRepartitions: 0,
    numHashTableBuildsSkipped: 0,
    probes: 0,
    travel: 0,
    hashCollisions: 0,
    hashBuckets: 0,
  };
  readonly #ctx: OperatorContext;
  readonly #buildShape: RowShape;
  readonly #probeShape: RowShape;
  readonly #sink: ChecksumSink;
  readonly #suballocator: Suballocator;
  readonly #setAside: SetAside;
  readonly #records: PartitionRecords;
  readonly #seeds: number;
  readonly #rows: number;
  readonly #hashes: number;
  readonly #slots: number;
  readonly #pairs: number;
  readonly #control: number;
  readonly #insertWork: number;
  readonly #near: NearTables;
  readonly #insertStats: number;
  /** Partitions that rows are dealt to now, by record. */
  #current: Partition[] = [];
  /** Spilled pairs, the next one last (O21). */
  readonly #spilledPairs: Partition[] = [];
  /** The pair that is being worked on. */
  #pouring: Partition | null = null;

  constructor(ctx: OperatorContext, build: RowShape, probe: RowShape, sink: ChecksumSink) {
    this.#ctx = ctx;
    this.#buildShape = build;
    this.#probeShape = probe;
    this.#sink = sink;
    const { workspace } = ctx;
    this.#suballocator = new Suballocator(ctx.pool, ctx.pageBytes);
    this.#setAside = new SetAside(ctx.pool.reservation);
    this.#records = new PartitionRecords(workspace);
    this.#seeds = levelSeeds(workspace);
    this.#near = new NearTables(ctx, build, probe);
    this.#rows = this.#near.toOrder.rows;
    this.#hashes = this.#near.toOrder.hashes;
    this.#slots = workspace.take(SLOT_BYTES);
    this.#pairs = workspace.takeAsItIs(PAIRS * PAIR_BYTES);
    this.#control = workspace.take(64);
    this.#insertWork = workspace.take(INSERT_WORK);
    this.#insertStats = workspace.take(64);
  }

  /** The minimum reservation is the client's before this starts. The build input is read to its end first. */
  *run(build: RowSource, probe: RowSource): Generator<void> {
    const { maxPageBytes, pageBytes } = this.#ctx;
    this.#setAside.put(2 * (maxPageBytes - pageBytes));
    this.#createPartitions(0);
    for (let batch = build.next(); batch !== null; batch = build.next()) {
      this.counters.buildRows += batch.rows;
      this.#addBuildRows(batch.address, batch.rows, 0);
      yield;
    }
    this.#finishBuild(0, false);
    for (let batch = probe.next(); batch !== null; batch = probe.next()) {
      this.counters.probeRows += batch.rows;
      this.#probeRows(batch.address, batch.rows, 0);
      yield;
    }
    this.#finishProbe();
    for (let pair = this.#spilledPairs.pop(); pair !== undefined; pair = this.#spilledPairs.pop()) {
      this.#pouring = pair;
      yield* this.#joinSpilled(pair);
      this.#pouring = null;
    }
    this.#takeStats();
  }

  /** Whatever happened: no table, page or promise stays. */
  close(): void {
    const pouring = this.#pouring === null ? [] : [this.#pouring];
    for (const p of [...this.#current, ...this.#spilledPairs, ...pouring]) this.#drop(p);
    this.#current = [];
    this.#spilledPairs.length = 0;
    this.#pouring = null;
    this.#setAside.close();
  }

  #createPartitions(level: number): void {
    this.#current = Array.from({ length: FANOUT }, (_, index) => {
      this.#records.clear(index);
      return {
        index,
        level,
        build: new RowStream(this.#ctx, this.#records.cursor(index), this.#setAside),
        probe: new RowStream(this.#ctx, this.#records.rawCursor(index), this.#setAside),
        table: null,
        spilled: false,
      };
    });
    for (const p of this.#current) p.build.nextPage();
    this.counters.partitionsCreated += FANOUT;
    this.counters.maxPartitionLevel = Math.max(this.counters.maxPartitionLevel, level);
  }

  /** O18. Returns the end of the rows. */
  #addBuildRows(address: number, rows: number, level: number): number {
    const { kernels } = this.#ctx;
    const { stride } = this.#buildShape;
    const end = kernels.prepare(address, rows, stride, this.#seeds + 8 * level, KEEP_ALL, this.#rows, this.#hashes);
    for (let at = 0; at < rows; ) {
      at = kernels.scatter(this.#rows, this.#hashes, at, rows, stride, this.#records.address);
      if (at < rows && this.#makePlaceFor(at) === "appended") at++;
    }
    return end;
  }

  #makePlaceFor(row: number): "made room" | "appended" {
    const p = this.#partitionOf(row);
    const [address, bytes] = this.#rowAt(row, this.#buildShape.stride);
    if (p.spilled) return p.build.makeRoomFor(address, bytes);
    if (!p.build.tryAddPage(bytes, `a page of build rows for partition ${p.index}`)) this.#spillVictim(true);
    return "made room";
  }

  #partitionOf(row: number): Partition {
    const hash = this.#ctx.workspace.words[(this.#hashes >>> 2) + row]!;
    return this.#current[hash >>> 28] ?? fail("O18 a row belongs to a partition");
  }

  #rowAt(row: number, stride: number): [address: number, bytes: number] {
    const { words, bytes } = this.#ctx.workspace;
    const address = words[(this.#rows >>> 2) + row]!;
    return [address, stride === 0 ? VARIABLE_HEADER + u32At(bytes, address + 16) : stride];
  }

  /** O18: most bytes in memory; ties to the lowest index. */
  #spillVictim(keepWritePage: boolean): void {
    const bytes = this.#current.map((p) => (p.spilled ? -1 : p.build.pinnedBytes(true) + (p.table?.bytes ?? 0)));
    const victim = this.#current[largest(bytes)] ?? fail("I19 a partition can be spilled when memory is refused");
    this.#spill(victim, keepWritePage);
  }

  #spill(p: Partition, keepWritePage: boolean): void {
    startSpilling(this.#ctx);
    const bytes = p.build.pinnedBytes(true) + (p.table?.bytes ?? 0);
    p.spilled = true;
    this.counters.spilledPartitions++;
    this.#dropTable(p);
    if (keepWritePage) p.build.unpinExceptWritePage();
    else p.build.unpinAll();
    this.#ctx.note({ kind: "partitionSpilled", partition: p.index, level: p.level, bytes });
  }

  /**
   * O19. `inputSpilled`: the probe rows will be read from a stream, which needs a page too.
   *
   * What the probe needs is set aside piece by piece, from promise that is held already; nothing is asked for.
   */
  #finishBuild(level: number, inputSpilled: boolean): void {
    const { pageBytes } = this.#ctx;
    const before = this.#setAside.bytes;
    for (const p of this.#current) {
      // An empty partition is closed, even if it was spilled to make room for its first, long row.
      if (p.build.rows === 0) p.spilled = false;
      if (p.spilled) p.build.unpinAll();
      else p.build.finishWritePage();
    }
    const isSpilled = (p: Partition) => p.spilled;
    const pinned = this.#current.filter((p) => !p.spilled).reduce((sum, p) => sum + p.build.bytes, 0);
    this.#ctx.note({ kind: "buildFinished", level, spilled: this.#current.filter(isSpilled).length, pinned });
    const reserveProbePages = () => {
      for (;;) {
        const spilled = this.#current.filter(isSpilled).length;
        const missing = spilled * pageBytes + (inputSpilled ? pageBytes : 0) - (this.#setAside.bytes - before);
        if (this.#setAside.tryPut(missing)) return;
        this.#ctx.note({ kind: "refused", what: "probe buffers", bytes: missing, text: "" });
        this.#spillVictim(false);
      }
    };
    reserveProbePages();
    for (const p of this.#current)
      if (!p.spilled && p.build.rows > 0 && !this.#tryBuildTable(p, KEEP_ALL)) this.#spill(p, false);
    reserveProbePages();
    const forProbe = this.#current.filter(isSpilled).length * pageBytes;
    this.#ctx.note({ kind: "probeBuffers", level, spilled: forProbe / pageBytes, bytes: forProbe });
    this.#setAside.take(forProbe);
    this.#near.divide(this.#tables().map((p) => p.table?.bucketCount ?? 0));
    for (const p of this.#current) this.#startProbing(p);
  }

  #startProbing(p: Partition): void {
    if (p.spilled) {
      this.#records.setState(p.index, SPILLED);
      p.probe.pinned = false;
      p.probe.nextPage();
    } else if (p.table === null) this.#records.setState(p.index, ABSENT);
    else if (this.#near.isStaging) this.#clearStage(p);
    else this.#records.setState(p.index, IN_MEMORY);
  }

  #clearStage(p: Partition): void {
    const { address, bytes } = this.#stageOf(p);
    this.#records.setState(p.index, STAGED);
    this.#records.setRawCursor(p.index, address, bytes);
  }

  #stageOf(p: Partition): { readonly address: number; readonly bytes: number } {
    return this.#near.stageOf(this.#tables().indexOf(p));
  }

  /** Partitions that are joined in memory now. */
  #tables(): Partition[] {
    return this.#current.filter((p) => p.table !== null);
  }

  /** False: some part of it was refused; nothing of it stays. */
  #tryBuildTable(p: Partition, keep: number): boolean {
    const { kernels } = this.#ctx;
    // A search ends at an empty bucket, so there is always one.
    const buckets = Math.max(2, pow2AtLeast(Math.floor((3 * p.build.rows) / 2)));
    p.table = HashTable.tryCreate(this.#suballocator, kernels, buckets);
    if (p.table === null) return this.#tableRefused(p, buckets);
    this.#records.setTable(p.index, p.table);
    this.#records.setNodes(p.index, 0, 0);
    this.#near.cluster(p.build, buckets, this.#seeds + 8 * p.level);
    for (const page of p.build.read()) {
      const end = page.address + page.filled;
      for (let at = page.address; at < end; ) {
        at = kernels.insertRows(
          at,
          end,
          this.#buildShape.stride,
          this.#seeds + 8 * p.level,
          keep,
          this.#records.at(p.index),
          this.#insertWork,
          this.#insertStats,
        );
        if (at === end) break;
        const nodes = p.table.tryAddNodes();
        if (nodes === null) return this.#tableRefused(p, buckets);
        this.#records.setNodes(p.index, nodes.address, nodes.bytes);
      }
    }
    this.counters.hashBuckets += buckets;
    this.#ctx.note({ kind: "tableBuilt", partition: p.index, level: p.level, bytes: p.table.bytes });
    return true;
  }

  #tableRefused(p: Partition, buckets: number): false {
    this.#ctx.note({
      kind: "refused",
      what: `the hash table of partition ${p.index}`,
      bytes: buckets * 12,
      text: this.#ctx.pool.reservation.refusal,
    });
    this.#dropTable(p);
    return false;
  }

  #dropTable(p: Partition): void {
    p.table?.destroy();
    p.table = null;
    this.#records.setTable(p.index, null);
  }

  /** O20. Returns the end of the rows. */
  #probeRows(address: number, rows: number, level: number): number {
    const end = this.#prepareProbe(address, rows, level, KEEP_ALL, this.#near.toOrder);
    if (this.#near.isStaging) this.#routeRows(rows);
    else this.#probePrepared(this.#near.toOrder, rows);
    return end;
  }

  /** Rows of tables in memory to their stage, those of spilled partitions to their stream. */
  #routeRows(rows: number): void {
    const { stride } = this.#probeShape;
    for (let at = 0; at < rows; ) {
      at = this.#ctx.kernels.route(this.#rows, this.#hashes, at, rows, stride, this.#records.address);
      if (at === rows) return;
      const p = this.#partitionOf(at);
      if (!p.spilled) this.#probeStaged(p);
      else if (this.#makePlaceForProbe(at) === "appended") at++;
    }
  }

  /** The rows that wait for a table in memory. */
  #probeStaged(p: Partition): void {
    const rows = this.#records.rawRows(p.index);
    const { staged } = this.#near;
    this.#prepareProbe(this.#stageOf(p).address, rows, p.level, KEEP_ALL, staged);
    this.#records.setState(p.index, IN_MEMORY);
    this.#probePrepared(this.#near.inOrder(staged, rows, p.table?.bucketCount ?? 0), rows);
    this.#clearStage(p);
  }

  /** Rows of one partition that is alone in memory. Returns the end of the rows. */
  #probeAloneRows(address: number, rows: number, pair: Partition): number {
    const { toOrder } = this.#near;
    const end = this.#prepareProbe(address, rows, pair.level, KEEP_ONE, toOrder);
    this.#probePrepared(this.#near.inOrder(toOrder, rows, pair.table?.bucketCount ?? 0), rows);
    return end;
  }

  #prepareProbe(address: number, rows: number, level: number, keep: number, to: RowList): number {
    const seedAt = this.#seeds + 8 * level;
    return this.#ctx.kernels.prepare(address, rows, this.#probeShape.stride, seedAt, keep, to.rows, to.hashes);
  }

  #probePrepared(list: RowList, rows: number): void {
    const { kernels, workspace } = this.#ctx;
    const { stride } = this.#probeShape;
    for (let at = 0; at < rows; ) {
      at = kernels.probe(
        list.rows,
        list.hashes,
        at,
        rows,
        stride,
        this.#records.address,
        this.#slots,
        this.#pairs,
        PAIRS,
        this.#control,
      );
      const pairs = workspace.words[this.#control >>> 2]!;
      if (pairs > 0) this.#sink.pairs(this.#pairs, pairs, stride, this.#buildShape.stride);
      if (at < rows && pairs < PAIRS && this.#makePlaceForProbe(at) === "appended") at++;
    }
  }

  #makePlaceForProbe(row: number): "made room" | "appended" {
    const [address, bytes] = this.#rowAt(row, this.#probeShape.stride);
    return this.#partitionOf(row).probe.makeRoomFor(address, bytes);
  }

  /** Everything probed: what was in memory goes, spilled pairs wait their turn (O21). */
  #finishProbe(): void {
    if (this.#near.isStaging) for (const p of this.#tables()) this.#probeStaged(p);
    for (const p of this.#current) {
      if (!p.spilled) this.#drop(p);
      else {
        p.probe.unpinAll();
        this.counters.probeRowsPartitioned += p.probe.rows;
        this.#spilledPairs.push(p);
      }
    }
    this.#noteLargest();
    this.#current = [];
  }

  *#joinSpilled(pair: Partition): Generator<void> {
    if (pair.probe.rows === 0) {
      this.counters.numHashTableBuildsSkipped++;
      this.#drop(pair);
      return;
    }
    this.#setAside.put(this.#ctx.pageBytes);
    if (this.#tryRestore(pair)) yield* this.#probeAlone(pair);
    else yield* this.#repartition(pair);
    this.#drop(pair);
  }

  /** O21: the whole build side and its table in memory, or neither. */
  #tryRestore(pair: Partition): boolean {
    if (!pair.build.tryPinAll(`spilled partition ${pair.index}`)) return false;
    for (let p = 0; p < FANOUT; p++) this.#records.clear(p);
    if (this.#tryBuildTable(pair, KEEP_ONE)) return true;
    pair.build.unpinAll();
    return false;
  }

  *#probeAlone(pair: Partition): Generator<void> {
    this.#ctx.note({ kind: "partitionRestored", level: pair.level, rows: pair.build.rows });
    // Without the top four hash bits every row asks record 0.
    if (pair.table !== null) {
      this.#records.setTable(0, pair.table);
      this.#records.setState(0, IN_MEMORY);
    }
    for (const page of pair.probe.drain())
      yield* this.#inBatches(page, (a, n) => this.#probeAloneRows(a, n, pair), this.#near.capacity);
    this.#setAside.take(this.#ctx.pageBytes);
  }

  /** O21, O22. */
  *#repartition(pair: Partition): Generator<void> {
    const level = pair.level + 1;
    if (level >= this.#ctx.partitionDepth) throw new OperatorFailure(tooDeep(this.#ctx));
    const rows = pair.build.rows;
    this.counters.numRepartitions++;
    this.#createPartitions(level);
    for (const page of pair.build.drain()) yield* this.#inBatches(page, (a, n) => this.#addBuildRows(a, n, level));
    const most = Math.max(...this.#current.map((p) => p.build.rows));
    this.#ctx.note({ kind: "repartitioned", level, rows, largest: most });
    if (most === rows)
      throw new OperatorFailure(
        oneKey(this.#ctx.nodeId, level, rows, partitionsText(this.#current), clientText(this.#ctx.pool.snapshot())),
      );
    // The page the build rows were read with now serves the probe rows (O19).
    this.#setAside.take(this.#ctx.pageBytes);
    this.#finishBuild(level, true);
    for (const page of pair.probe.drain()) yield* this.#inBatches(page, (a, n) => this.#probeRows(a, n, level));
    this.#setAside.take(this.#ctx.pageBytes);
    this.#finishProbe();
  }

  *#inBatches(
    page: Batch,
    work: (address: number, rows: number) => number,
    most = this.#ctx.batchRows,
  ): Generator<void> {
    let address = page.address;
    for (let left = page.rows; left > 0; ) {
      const rows = Math.min(left, most);
      address = work(address, rows);
      left -= rows;
      yield;
    }
  }

  #drop(p: Partition): void {
    this.#dropTable(p);
    p.build.destroy();
    p.probe.destroy();
  }

  #noteLargest(): void {
    const rows = this.#current.map((p) => p.build.rows);
    const all = rows.reduce((a, b) => a + b, 0);
    if (all === 0) return;
    const percent = Math.round((100 * Math.max(...rows)) / all);
    this.counters.largestPartitionPercent = Math.max(this.counters.largestPartitionPercent, percent);
  }

  #takeStats(): void {
    const { words } = this.#ctx.workspace;
    const probe = this.#control >>> 2;
    const insert = this.#insertStats >>> 2;
    this.counters.probes = this.counters.probeRows + this.counters.buildRows;
    this.counters.travel = words[insert]!;
    this.counters.hashCollisions = words[probe + 2]! + words[insert + 1]!;
  }
}

const tooDeep = ({ nodeId, partitionDepth }: OperatorContext) => ({
  code: PARTITIONED_HASH_JOIN_MAX_PARTITION_DEPTH,
  text:
    `Cannot perform join at hash join node with id ${nodeId}. The input data was partitioned the maximum number of ` +
    `${partitionDepth} times. This could mean there is significant skew in the data or the memory limit is set too low.`,
});

/** After the number of rows: the partitions and the client, as far as their states are not addresses. */
const oneKey = (nodeId: number, level: number, rows: number, partitions: string, client: string) => ({
  code: PARTITIONED_HASH_JOIN_REPARTITION_FAILS,
  text:
    `Cannot perform hash join at node with id ${nodeId}. Repartitioning did not reduce the size of a spilled partition. ` +
    `Repartitioning level ${level}. Number of rows ${rows}:\n${partitions}\n${client}`,
});

function partitionsText(partitions: readonly Partition[]): string {
  const lines = partitions.map(
    (p) =>
      ` Hash partition ${p.index} <Partition>: id=${p.index}${p.spilled ? " Spilled" : ""}\n    Build Rows: ${p.build.rows}`,
  );
  return [` Hash partitions: ${partitions.length}:`, ...lines].join("\n");
}

const clientText = (c: ClientSnapshot): string =>
  `<BufferPool::Client> name: ${c.label} buffers allocated ${c.allocated} num_pages: ${c.pages.length} pinned_bytes: ` +
  `${c.pinned} dirty_unpinned_bytes: ${c.dirty} in_flight_write_bytes: ${c.inFlight} reservation: {` +
  `<ReservationTracker>: reservation ${c.reservation} used_reservation ${c.used} child_reservations ${c.child}}`;
