/**
 * Asking a large table a near part at a time.
 *
 * A probe of a table of many MB misses the caches twice, for the bucket and for the row, and mostly the list of memory
 * pages too. So build rows are dealt in place by the high bits of their bucket, before the table is built, and probe rows
 * are asked in the order of the same bits, as many at a time as there are: whole pages of a restored partition; for tables
 * that share memory while the probe input streams by, each has a stage in work space where its rows wait.
 *
 * Nothing here changes what is joined or what is reserved: only the order within a page of work. Tables that are near
 * anyway are left alone.
 */
import { invariant } from "../../core/assert.ts";
import { MiB } from "../../core/units.ts";
import type { OperatorContext } from "./operator-context.ts";
import { type RowShape, VARIABLE_HEADER } from "./row-source.ts";
import type { RowStream } from "./row-stream.ts";

/** Rows that are asked in one go, in batches. */
const BATCHES = 64;
/** Bits of the position that rows are ordered by. */
const BITS = 8;
/** A table with fewer bits of position is near as a whole. */
const LEAST_BITS = 12;
/** From so many buckets on, all tables together, probe rows wait for each other. */
const LEAST_STAGED_BUCKETS = 2 ** 18;
const STAGE_BYTES = 4 * MiB;
/** Pages of one partition whose rows can be dealt. */
const MOST_PAGES = 4096;
/** Counts of one pass, then counts and cursors of one level (kernels/assembly/sort.ts). */
const STACK_BYTES = 1024 + 1024 + 4096;
const LINE = 64;

/** Addresses of rows and of their hashes, four bytes each. */
export interface RowList {
  readonly rows: number;
  readonly hashes: number;
}

export class NearTables {
  /** Rows that `toOrder`, `staged` and the result of `inOrder` have room for. */
  readonly capacity: number;
  /** For rows that are about to be ordered. */
  readonly toOrder: RowList;
  /** For those of a stage, while `toOrder` is in use. */
  readonly staged: RowList;
  readonly #ctx: OperatorContext;
  readonly #build: RowShape;
  readonly #probe: RowShape;
  readonly #ordered: RowList;
  readonly #counts: number;
  readonly #stage: number;
  #stageBytes = 0;
  readonly #run: number;
  readonly #pageTable: number;
  readonly #stack: number;
  readonly #twoRows: number;

  constructor(ctx: OperatorContext, build: RowShape, probe: RowShape) {
    this.#ctx = ctx;
    this.#build = build;
    this.#probe = probe;
    this.capacity = BATCHES * ctx.batchRows;
    const { workspace } = ctx;
    const list = (): RowList => ({
      rows: workspace.takeAsItIs(4 * this.capacity),
      hashes: workspace.takeAsItIs(4 * this.capacity),
    });
    this.toOrder = list();
    this.staged = list();
    this.#ordered = list();
    this.#counts = workspace.take(4 * 2 ** BITS);
    this.#stage = workspace.takeAsItIs(STAGE_BYTES);
    this.#run = workspace.take(28);
    this.#pageTable = workspace.takeAsItIs(4 * MOST_PAGES);
    this.#stack = workspace.take(STACK_BYTES);
    this.#twoRows = workspace.takeAsItIs(2 * build.stride);
  }

  /** Puts the rows of a pinned stream in the order of their buckets, as far as `BITS` tell. */
  cluster(stream: RowStream, buckets: number, seedAt: number): void {
    const { stride } = this.#build;
    const shift = shiftFor(buckets);
    if (stride === 0 || shift === null) return;
    const rowsPerPage = Math.floor(this.#ctx.pageBytes / stride);
    const { pages } = stream;
    const isEven = pages.every((page, i) => i === pages.length - 1 || page.rows === rowsPerPage);
    if (rowsPerPage === 0 || !isEven || pages.length > MOST_PAGES) return;
    const { words } = this.#ctx.workspace;
    const addresses = pages.map((page) => this.#ctx.pool.addressOf(page.page));
    words.set(addresses, this.#pageTable >>> 2);
    words.set([this.#pageTable, rowsPerPage, stride, 0, this.#twoRows, 0, this.#stack], this.#run >>> 2);
    this.#ctx.kernels.clusterRun(this.#run, stream.rows, seedAt, shift);
  }

  /** The same rows in the order in which a table of so many buckets is best asked. */
  inOrder(list: RowList, rows: number, buckets: number): RowList {
    invariant(rows <= this.capacity, "rows that are ordered fit their list");
    const shift = shiftFor(buckets);
    if (shift === null) return list;
    const to = this.#ordered;
    this.#ctx.kernels.orderByBucket(list.rows, list.hashes, rows, shift, to.rows, to.hashes, this.#counts);
    return to;
  }

  /** Gives each of the tables a stage, or none when they are near together. */
  divide(bucketCounts: readonly number[]): void {
    const buckets = bucketCounts.reduce((a, b) => a + b, 0);
    const shortest = this.#probe.stride || VARIABLE_HEADER;
    const share = Math.floor(STAGE_BYTES / Math.max(1, bucketCounts.length) / LINE) * LINE;
    const bytes = Math.min(share, this.capacity * shortest);
    this.#stageBytes = buckets < LEAST_STAGED_BUCKETS || bytes < this.#probe.longest ? 0 : bytes;
  }

  /** Probe rows wait in stages, since `divide`. */
  get isStaging(): boolean {
    return this.#stageBytes > 0;
  }

  /** The stage of the table that was so manieth in `divide`. */
  stageOf(place: number): { readonly address: number; readonly bytes: number } {
    return { address: this.#stage + place * this.#stageBytes, bytes: this.#stageBytes };
  }
}

/** Right shift of a hash whose low eight bits then are the highest of the position; null: the table is near. */
function shiftFor(buckets: number): number | null {
  const bits = Math.log2(buckets);
  return bits < LEAST_BITS ? null : bits - BITS;
}
