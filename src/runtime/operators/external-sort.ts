/**
 * External merge sort (memory 4.5, O26 to O33).
 *
 * Rows fill pages of a run until a page is refused; the run is then sorted in place, its pages may go to disk, and the
 * next run begins. One run alone never leaves memory. Else runs are merged, a page of each at a time, as many as the
 * reservation allows, until one merge gives the result.
 *
 * Rows of variable length are kept as tuples of 32 bytes, which are sorted, and bytes, which lie in pages of their own
 * and are laid in order before they are written (O26): a page of each kind counts where one counts otherwise.
 *
 * Must keep: rows in = rows out, in order of key and row number, whatever was refused (I21); three pages (six) are
 * enough (O30, I19).
 */
import { fail, invariant } from "../../core/assert.ts";
import type { Page } from "../../core/memory/buffer-pool.ts";
import { OperatorFailure } from "../../core/memory/operator-failure.ts";
import { unusedOf } from "../../core/memory/reservation-client.ts";
import type { ChecksumSink } from "./checksum-sink.ts";
import { granted, type OperatorContext, rowTooLong, startSpilling, u32At } from "./operator-context.ts";
import type { Batch, RowShape, RowSource } from "./row-source.ts";
import { SetAside } from "./row-stream.ts";

const TUPLE_BYTES = 32;
const SOURCE_BYTES = 32;
/** Runs of one merge, at most. */
const MAX_SOURCES = 4096;
/** Entries of the two lists that one small sort uses, 16 bytes each; and bytes for its rows. */
const LIST_ENTRIES = 65536;
const ENTRY_BYTES = 16;
const SPARE_BYTES = 2 * 1024 * 1024;
/** Counts of one pass, then counts and cursors of 17 levels (kernels/assembly/sort.ts). */
const STACK_BYTES = 1024 + 17 * (1024 + 4096);
/** Pages of one kind in one run, at most. */
const MAX_RUN_PAGES = 65536;
const OUTPUT_BYTES = 256 * 1024;

const OUTPUT_FULL = 0;
const SOURCE_EMPTY = 1;
const SOURCE_NEEDS_VARIABLE_PAGE = 2;
const VARIABLE_OUTPUT_FULL = 3;

export interface SortCounters {
  inputRows: number;
  /** InitialRunsCreated; RunsCreated when nothing spilled. */
  initialRunsCreated: number;
  /** Unpinned initial runs and outputs of merges (O32). */
  spilledRuns: number;
  totalMergesPerformed: number;
  sortDataSize: number;
  /** Rows of each initial run. */
  readonly numRowsPerRun: number[];
}

interface RunPage {
  readonly page: Page;
  rows: number;
}

/** Pages of rows (or tuples) and of variable data, each in order. */
interface Run {
  readonly rows: RunPage[];
  readonly data: Page[];
  count: number;
}

const newRun = (): Run => ({ rows: [], data: [], count: 0 });

export class ExternalSort {
  readonly counters: SortCounters = {
    inputRows: 0,
    initialRunsCreated: 0,
    spilledRuns: 0,
    totalMergesPerformed: 0,
    sortDataSize: 0,
    numRowsPerRun: [],
  };
  readonly #ctx: OperatorContext;
  readonly #shape: RowShape;
  readonly #sink: ChecksumSink;
  readonly #variable: boolean;
  /** Bytes of what is sorted: a row, or a tuple. */
  readonly #stride: number;
  /** The extra page that data is laid in order with (O26), for variable rows. */
  readonly #setAside: SetAside;
  /** Spilled runs, in the order in which they are merged. */
  readonly #runs: Run[] = [];
  #run: Run = newRun();
  /** A merge's inputs and output while it goes on. */
  #merging: Run[] = [];
  #output: Run | null = null;

  readonly #rows: number;
  readonly #hashes: number;
  readonly #seed: number;
  readonly #outCursor: number;
  readonly #dataCursor: number;
  readonly #sortArguments: number;
  readonly #pageTable: number;
  readonly #sources: number;
  readonly #tree: number;
  readonly #status: number;
  readonly #outBuffer: number;
  readonly #outBytes: number;
  readonly #lists: number;
  readonly #stack: number;

  constructor(ctx: OperatorContext, shape: RowShape, sink: ChecksumSink) {
    this.#ctx = ctx;
    this.#shape = shape;
    this.#sink = sink;
    this.#variable = shape.stride === 0;
    this.#stride = this.#variable ? TUPLE_BYTES : shape.stride;
    this.#setAside = new SetAside(ctx.pool.reservation);
    const { workspace } = ctx;
    this.#rows = workspace.take(4 * ctx.batchRows);
    this.#hashes = workspace.take(4 * ctx.batchRows);
    this.#seed = workspace.take(8);
    this.#outCursor = workspace.take(8);
    this.#dataCursor = workspace.take(16);
    this.#sortArguments = workspace.take(28);
    this.#pageTable = workspace.takeAsItIs(4 * MAX_RUN_PAGES);
    this.#sources = workspace.takeAsItIs(SOURCE_BYTES * MAX_SOURCES);
    this.#tree = workspace.takeAsItIs(4 * MAX_SOURCES);
    this.#status = workspace.take(16);
    this.#outBytes = Math.max(OUTPUT_BYTES, shape.longest);
    this.#outBuffer = workspace.takeAsItIs(this.#outBytes);
    this.#lists = workspace.takeAsItIs(2 * LIST_ENTRIES * ENTRY_BYTES + SPARE_BYTES);
    this.#stack = workspace.takeAsItIs(STACK_BYTES);
  }

  /** The minimum reservation is the client's before this starts. */
  *run(source: RowSource): Generator<void> {
    if (this.#shape.stride > this.#ctx.pageBytes) throw new OperatorFailure(rowTooLong(this.#ctx, this.#shape.stride));
    if (this.#variable) this.#setAside.put(this.#ctx.pageBytes);
    this.#beginRun();
    for (let batch = source.next(); batch !== null; batch = source.next()) {
      this.counters.inputRows += batch.rows;
      if (this.#variable) this.#addVariable(batch);
      else this.#addFixed(batch);
      yield;
    }
    if (this.#runs.length === 0) yield* this.#putOutInMemory();
    else {
      this.#endRun();
      if (this.#variable) this.#setAside.take(this.#ctx.pageBytes);
      yield* this.#mergeAll();
    }
  }

  /** Whatever happened: no page or promise stays. */
  close(): void {
    const output = this.#output === null ? [] : [this.#output];
    for (const run of [this.#run, ...this.#runs, ...this.#merging, ...output]) this.#destroy(run);
    this.#runs.length = 0;
    this.#run = newRun();
    this.#merging = [];
    this.#output = null;
    this.#setAside.close();
  }

  // Filling runs

  #beginRun(): void {
    this.#run = newRun();
    if (!this.#tryRowPage() || (this.#variable && !this.#tryDataPage())) fail("O30 a run can always begin");
  }

  #addFixed(batch: Batch): void {
    const { kernels } = this.#ctx;
    const stride = this.#stride;
    let from = batch.address;
    for (let left = batch.rows; left > 0; ) {
      const [at, end] = this.#cursor(this.#outCursor);
      const n = Math.min(left, Math.floor((end - at) / stride));
      kernels.copyBytes(at, from, n * stride);
      this.#advance(this.#outCursor, n * stride);
      this.#count(n);
      this.counters.sortDataSize += n * stride;
      from += n * stride;
      left -= n;
      if (left > 0 && !this.#tryRowPage()) this.#spillRun();
    }
  }

  #addVariable(batch: Batch): void {
    const { kernels, pageBytes } = this.#ctx;
    kernels.prepare(batch.address, batch.rows, 0, this.#seed, 0, this.#rows, this.#hashes);
    for (let i = 0; ; ) {
      const [, end] = this.#cursor(this.#outCursor);
      const before = this.#cursor(this.#dataCursor)[0];
      const next = kernels.toTuples(this.#rows, i, batch.rows, this.#outCursor, end, this.#dataCursor);
      this.#count(next - i);
      this.counters.sortDataSize += (next - i) * TUPLE_BYTES + this.#cursor(this.#dataCursor)[0] - before;
      i = next;
      if (i === batch.rows) return;
      const length = u32At(this.#ctx.workspace.bytes, this.#words[(this.#rows >>> 2) + i]! + 16);
      // What is told is the length of the variable part alone.
      if (length > pageBytes) throw new OperatorFailure(rowTooLong(this.#ctx, length));
      const [at, outEnd] = this.#cursor(this.#outCursor);
      const hasPage = at + TUPLE_BYTES > outEnd ? this.#tryRowPage() : this.#tryDataPage();
      if (!hasPage) this.#spillRun();
    }
  }

  #count(rows: number): void {
    this.#run.count += rows;
    this.#run.rows.at(-1)!.rows += rows;
  }

  #tryRowPage(): boolean {
    const { pool, pageBytes } = this.#ctx;
    if (!granted(this.#ctx, "a page of rows", pageBytes)) return false;
    this.#run.rows.push({ page: pool.createPage(pageBytes), rows: 0 });
    this.#setCursor(this.#outCursor, this.#run.rows.at(-1)!.page.address, pageBytes);
    return true;
  }

  #tryDataPage(): boolean {
    const { pool, pageBytes } = this.#ctx;
    if (!granted(this.#ctx, "a page of variable-length data", pageBytes)) return false;
    this.#addDataPage(this.#run.data, pool.createPage(pageBytes));
    return true;
  }

  /** The cursor's third and fourth words: the page's number in its run and where it lies. */
  #addDataPage(data: Page[], page: Page): void {
    data.push(page);
    this.#setCursor(this.#dataCursor, page.address, page.bytes);
    this.#words.set([data.length - 1, page.address], (this.#dataCursor >>> 2) + 2);
  }

  // Sorting and unpinning a run

  /** O26: a page was refused. */
  #spillRun(): void {
    startSpilling(this.#ctx);
    this.#endRun();
    this.#beginRun();
  }

  /** Sorts the run that was filled and unpins it. */
  #endRun(): void {
    const run = this.#run;
    this.#dropEmptyPage(run);
    this.#sortInPlace(run, true);
    if (this.#variable) this.#layInOrder(run);
    else for (const { page } of run.rows) this.#ctx.pool.unpin(page);
    this.#run = newRun();
    this.#runs.push(run);
    this.counters.spilledRuns++;
  }

  #sortInPlace(run: Run, spilled: boolean): void {
    const { pool, kernels, pageBytes } = this.#ctx;
    this.#fillTable(run.rows.map(({ page }) => pool.addressOf(page)));
    const capacity = Math.min(LIST_ENTRIES, Math.floor(SPARE_BYTES / this.#stride));
    const rowsPerPage = Math.floor(pageBytes / this.#stride);
    this.#words.set(
      [this.#pageTable, rowsPerPage, this.#stride, this.#shape.hasNumber ? 1 : 0, this.#lists, capacity, this.#stack],
      this.#sortArguments >>> 2,
    );
    kernels.sortRun(this.#sortArguments, run.count);
    this.counters.initialRunsCreated++;
    this.counters.numRowsPerRun.push(run.count);
    this.#ctx.note({ kind: "runSorted", run: this.counters.initialRunsCreated, rows: run.count, spilled });
  }

  /** O26: data in the order of its tuples, through one extra page at a time; every page unpinned when it is done with. */
  #layInOrder(run: Run): void {
    const { pool, kernels, pageBytes } = this.#ctx;
    const old = [...run.data];
    this.#fillTable(old.map((page) => pool.addressOf(page)));
    run.data.length = 0;
    this.#setAside.take(pageBytes);
    this.#addDataPage(run.data, pool.createPage(pageBytes));
    for (const { page, rows } of run.rows) {
      const end = page.address + rows * TUPLE_BYTES;
      for (let at = page.address; at < end; ) {
        at = kernels.layInOrder(at, end, this.#pageTable, this.#dataCursor);
        if (at === end) break;
        pool.unpin(run.data.at(-1)!);
        this.#addDataPage(run.data, pool.createPage(pageBytes));
      }
    }
    for (const page of old) pool.destroyPage(page);
    pool.unpin(run.data.at(-1)!);
    this.#setAside.put(pageBytes);
    for (const { page } of run.rows) pool.unpin(page);
  }

  // Output

  /** O27: one run, nothing was written. */
  *#putOutInMemory(): Generator<void> {
    const { pool } = this.#ctx;
    const run = this.#run;
    this.#sortInPlace(run, false);
    if (this.#variable) this.#fillTable(run.data.map((page) => pool.addressOf(page)));
    for (let next = run.rows[0]; next !== undefined; next = run.rows[0]) {
      if (this.#variable) yield* this.#putOutTuples(next);
      else yield* this.#putOutRows(next.page.address, next.rows);
      run.rows.shift();
      pool.destroyPage(next.page);
    }
    this.#destroy(run);
  }

  *#putOutRows(address: number, rows: number): Generator<void> {
    const { batchRows } = this.#ctx;
    for (let done = 0; done < rows; done += batchRows) {
      const n = Math.min(batchRows, rows - done);
      this.#sink.ordered(address + done * this.#stride, n, this.#stride, this.#shape.hasNumber);
      yield;
    }
  }

  *#putOutTuples({ page, rows }: RunPage): Generator<void> {
    const end = page.address + rows * TUPLE_BYTES;
    for (let at = page.address; at < end; ) {
      this.#words[this.#outCursor >>> 2] = this.#outBuffer;
      const next = this.#ctx.kernels.flatten(
        at,
        end,
        this.#pageTable,
        this.#outCursor,
        this.#outBuffer + this.#outBytes,
      );
      invariant(next > at, "O33 a row fits the output batch");
      this.#sink.ordered(this.#outBuffer, (next - at) / TUPLE_BYTES, 0, true);
      at = next;
      yield;
    }
  }

  // Merging

  /** O28. */
  *#mergeAll(): Generator<void> {
    const { pageBytes, pool } = this.#ctx;
    const pagesPerRun = this.#variable ? 2 : 1;
    for (;;) {
      const n = this.#runs.length;
      this.#growTo(n * pagesPerRun);
      const available = Math.floor(unusedOf(pool.reservation) / pageBytes);
      const fit = Math.min(n, MAX_SOURCES, Math.floor(available / pagesPerRun));
      if (fit === n) break;
      const most = Math.min(fit, Math.floor((available - pagesPerRun) / pagesPerRun));
      invariant(most >= 2, "O30 two runs and an output can be merged");
      const inputs = 2 * most >= n ? n - most : most;
      yield* this.#mergeToRun(this.#runs.splice(0, inputs));
      this.#ctx.note({ kind: "runsMerged", inputs, left: this.#runs.length, final: false });
    }
    const inputs = this.#runs.splice(0);
    yield* this.#mergeToClient(inputs);
    this.#ctx.note({ kind: "runsMerged", inputs: inputs.length, left: 0, final: true });
  }

  /** As many pages as merging all runs would need, one at a time, as far as they are granted. */
  #growTo(pages: number): void {
    const { pool, pageBytes } = this.#ctx;
    while (Math.floor(unusedOf(pool.reservation) / pageBytes) < pages)
      if (!pool.reservation.tryIncrease(pageBytes)) return;
  }

  *#mergeToRun(inputs: Run[]): Generator<void> {
    const { pool, pageBytes } = this.#ctx;
    const output = newRun();
    this.#output = output;
    this.#beginMerge(inputs);
    const addRowPage = () => output.rows.push({ page: pool.createPage(pageBytes), rows: 0 });
    addRowPage();
    let at = output.rows[0]!.page.address;
    if (this.#variable) this.#addDataPage(output.data, pool.createPage(pageBytes));
    for (;;) {
      const page = output.rows.at(-1)!;
      const next = this.#merge(inputs.length, this.#variable ? this.#dataCursor : 0, at, page.page.address + pageBytes);
      page.rows += (next - at) / this.#stride;
      output.count += (next - at) / this.#stride;
      at = next;
      const why = this.#words[this.#status >>> 2]!;
      if (why === OUTPUT_FULL) {
        pool.unpin(page.page);
        addRowPage();
        at = output.rows.at(-1)!.page.address;
        yield;
      } else if (why === VARIABLE_OUTPUT_FULL) {
        pool.unpin(output.data.at(-1)!);
        this.#addDataPage(output.data, pool.createPage(pageBytes));
      } else if (!this.#feed(inputs, why)) break;
    }
    for (const last of [output.rows.at(-1)!.page, ...output.data.slice(-1)]) pool.unpin(last);
    this.#merging = [];
    this.#output = null;
    this.#runs.push(output);
    this.counters.totalMergesPerformed++;
    this.counters.spilledRuns++;
  }

  *#mergeToClient(inputs: Run[]): Generator<void> {
    this.#beginMerge(inputs);
    const { batchRows } = this.#ctx;
    const bytes = this.#variable ? this.#outBytes : Math.min(this.#outBytes, batchRows * this.#stride);
    for (let at = this.#outBuffer, rows = 0; ; ) {
      const next = this.#merge(inputs.length, 0, at, this.#outBuffer + bytes);
      rows += this.#variable ? this.#words[(this.#status >>> 2) + 3]! : (next - at) / this.#stride;
      at = next;
      const why = this.#words[this.#status >>> 2]!;
      const more = why === OUTPUT_FULL || this.#feed(inputs, why);
      if (more && why !== OUTPUT_FULL) continue;
      if (rows > 0) this.#sink.ordered(this.#outBuffer, rows, this.#shape.stride, this.#shape.hasNumber);
      at = this.#outBuffer;
      rows = 0;
      yield;
      if (!more) break;
    }
    this.#merging = [];
    this.counters.totalMergesPerformed++;
  }

  /** Goes on until something is missing; returns the end of what was put out. */
  #merge(k: number, dataOut: number, at: number, end: number): number {
    const { kernels } = this.#ctx;
    return this.#variable
      ? kernels.mergeTuples(this.#sources, k, this.#tree, dataOut, at, end, this.#status)
      : kernels.mergeRows(
          this.#sources,
          k,
          this.#tree,
          this.#stride,
          this.#shape.hasNumber ? 1 : 0,
          at,
          end,
          this.#status,
        );
  }

  #beginMerge(inputs: Run[]): void {
    this.#merging = inputs;
    for (const [s, run] of inputs.entries()) {
      this.#showRowPage(s, run);
      if (this.#variable) this.#showDataPage(s, run, 0);
      this.#ctx.kernels.loadKey(this.#sources, s);
    }
    this.#ctx.kernels.playTree(this.#sources, inputs.length, this.#tree, this.#shape.hasNumber ? 1 : 0);
  }

  /** What the merge stopped for. False: all sources are done. */
  #feed(inputs: readonly Run[], why: number): boolean {
    const s = this.#words[(this.#status >>> 2) + 1]!;
    const run = inputs[s];
    if (run === undefined) return false;
    if (why === SOURCE_EMPTY) {
      this.#ctx.pool.destroyPage(run.rows.shift()!.page);
      this.#showRowPage(s, run);
      this.#ctx.kernels.resume(this.#sources, inputs.length, this.#tree, s, this.#shape.hasNumber ? 1 : 0);
      return true;
    }
    if (why !== SOURCE_NEEDS_VARIABLE_PAGE) return false;
    this.#ctx.pool.destroyPage(run.data.shift()!);
    this.#showDataPage(s, run, this.#words[(this.#source(s) >>> 2) + 5]! + 1);
    return true;
  }

  /** The run's first page that is left becomes what source s reads; none left: the source is done. */
  #showRowPage(s: number, run: Run): void {
    const next = run.rows[0];
    const at = this.#source(s) >>> 2;
    this.#words[at + 4] = next === undefined ? 1 : 0;
    if (next === undefined) {
      for (const page of run.data.splice(0)) this.#ctx.pool.destroyPage(page);
      return;
    }
    const address = this.#pinned(next.page);
    this.#words[at] = address;
    this.#words[at + 1] = address + next.rows * this.#stride;
  }

  #showDataPage(s: number, run: Run, number: number): void {
    const at = this.#source(s) >>> 2;
    const page = run.data[0] ?? fail("O26 tuples name data pages in order");
    this.#words[at + 5] = number;
    this.#words[at + 6] = this.#pinned(page);
  }

  #pinned(page: Page): number {
    const { pool } = this.#ctx;
    if (!pool.reservation.tryIncreaseToFit(page.bytes)) fail("O28 a merge has a page for each of its runs");
    pool.pin(page);
    return pool.addressOf(page);
  }

  // Small things

  /** A page of rows was granted and the data page for the same row was not: a merge must not meet an empty page. */
  #dropEmptyPage(run: Run): void {
    if (run.rows.at(-1)!.rows === 0) this.#ctx.pool.destroyPage(run.rows.pop()!.page);
  }

  #destroy(run: Run): void {
    for (const { page } of run.rows) this.#ctx.pool.destroyPage(page);
    for (const page of run.data) this.#ctx.pool.destroyPage(page);
    run.rows.length = 0;
    run.data.length = 0;
  }

  #fillTable(addresses: readonly number[]): void {
    invariant(addresses.length <= MAX_RUN_PAGES, "a run's pages fit the table of their addresses");
    this.#words.set(addresses, this.#pageTable >>> 2);
  }

  #source(s: number): number {
    return this.#sources + s * SOURCE_BYTES;
  }
  #cursor(at: number): [next: number, end: number] {
    return [this.#words[at >>> 2]!, this.#words[(at >>> 2) + 1]!];
  }
  #setCursor(at: number, address: number, bytes: number): void {
    this.#words.set([address, address + bytes], at >>> 2);
  }
  #advance(at: number, bytes: number): void {
    this.#words[at >>> 2]! += bytes;
  }
  get #words(): Uint32Array {
    return this.#ctx.workspace.words;
  }
}
