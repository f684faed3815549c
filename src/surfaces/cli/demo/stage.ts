/**
 * One host on which a story runs its operators: real arena, buffer pool, reservations and scratch files, in this
 * process, a slice at a time, so that the picture moves and Ctrl-C is heard.
 *
 * Everything it made is gone when it is closed; each act ends with nothing reserved and nothing on disk, or the story is
 * broken (I24).
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError, whyNotWritten } from "../../../config/config-error.ts";
import type { OperatorSpec, RowsSpec } from "../../../config/scenario.ts";
import { invariant } from "../../../core/assert.ts";
import { type BufferAllocator, NO_LOCK } from "../../../core/memory/buffer-allocator.ts";
import { LocalReservation } from "../../../core/memory/local-reservation.ts";
import type { Failure } from "../../../core/memory/page-store.ts";
import { reservationLimitFor } from "../../../core/memory/reservation-limit.ts";
import { type Bytes, KiB } from "../../../core/units.ts";
import { createArena, type OperatorArena, privateAllocator } from "../../../runtime/operators/operator-arena.ts";
import type { OperatorEvent } from "../../../runtime/operators/operator-context.ts";
import { type OperatorOutcome, operatorSteps, plannedClients } from "../../../runtime/operators/run-operator.ts";
import { FileGroup } from "../../../runtime/scratch/file-group.ts";
import { ScratchBooks, scratchBookWords } from "../../../runtime/scratch/scratch-directories.ts";
import type { MemoryFacts } from "./memory-picture.ts";

const QUERIES = 2;
const ADDRESS = "exec-1:27000";

export interface StagedQuery {
  readonly name: string;
  readonly spec: OperatorSpec;
  /** MEM_LIMIT, from which R8 makes the limit of reservations. */
  readonly memLimit: number;
  readonly seed: number;
  readonly scratchLimit?: number;
  readonly spillingForbidden?: Failure;
  readonly note?: (event: OperatorEvent) => void;
}

export class Stage {
  readonly root: LocalReservation;
  readonly #arena: OperatorArena;
  readonly #allocator: BufferAllocator;
  readonly #books: ScratchBooks;
  readonly #folder: string;
  readonly #free = Array.from({ length: QUERIES }, (_, slot) => slot);

  readonly #removeFolder = (): void => rmSync(this.#folder, { recursive: true, force: true });

  /** `directoryLimits`: bytes that queries may write to each scratch directory; one without limit unless said. */
  constructor(poolBytes: number, directoryLimits: readonly number[] = [Number.POSITIVE_INFINITY]) {
    this.#folder = newFolder();
    // Whoever listens may stop listening (`| head`), and then the process ends in the middle of the story.
    process.once("exit", this.#removeFolder);
    this.#arena = createArena({ poolBytes, minBufferBytes: 8 * KiB, threads: QUERIES });
    this.#allocator = privateAllocator(this.#arena);
    this.root = new LocalReservation({ label: "Process", limit: poolBytes });
    const directories = directoryLimits.map((limit, at) => {
      const path = join(this.#folder, `disk-${at + 1}`);
      mkdirSync(path);
      return { path, limit, priority: 0 };
    });
    this.#books = new ScratchBooks(
      directories,
      new Float64Array(scratchBookWords(directories.length, QUERIES)),
      NO_LOCK,
    );
  }

  start(query: StagedQuery): StagedRun {
    const slot = this.#free.shift();
    invariant(slot !== undefined, "a stage has room for two queries");
    return new StagedRun({
      query,
      slot,
      root: this.root,
      arena: this.#arena,
      allocator: this.#allocator,
      books: this.#books,
      ended: () => this.#free.unshift(slot),
    });
  }

  /** I24. */
  leftBehind(): { readonly reserved: number; readonly onDisk: number } {
    return { reserved: this.root.reservation, onDisk: this.#books.hostBytes() };
  }

  close(): void {
    process.off("exit", this.#removeFolder);
    this.#removeFolder();
  }
}

/** In the system's temporary folder. Throws ConfigError where nothing can be written. */
function newFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), `waterhole-demo-${process.pid}-`));
  } catch (cause) {
    throw new ConfigError(
      { file: tmpdir(), line: null },
      `the temporary folder cannot be used: ${whyNotWritten(cause)}`,
      "Set TMPDIR to one that can be written.",
      { cause },
    );
  }
}

interface StagedRunOptions {
  readonly query: StagedQuery;
  readonly slot: number;
  readonly root: LocalReservation;
  readonly arena: OperatorArena;
  readonly allocator: BufferAllocator;
  readonly books: ScratchBooks;
  readonly ended: () => void;
}

export class StagedRun {
  readonly name: string;
  /** null until it has ended. */
  outcome: OperatorOutcome | null = null;
  peak = 0;
  readonly #o: StagedRunOptions;
  readonly #query: LocalReservation;
  readonly #clients: readonly LocalReservation[];
  readonly #scratch: FileGroup;
  readonly #steps: Generator<void, OperatorOutcome, "go on" | "cancel">;

  constructor(o: StagedRunOptions) {
    const { query } = o;
    this.name = query.name;
    this.#o = o;
    const limit = reservationLimitFor(query.memLimit, -1, 0);
    this.#query = new LocalReservation({ label: `Query(${query.name})`, parent: o.root, limit });
    this.#clients = plannedClients(query.spec).map(({ label, minReservation }, at) => {
      const client = new LocalReservation({ label: `${label} (id=${at + 1})`, parent: this.#query });
      invariant(client.tryIncrease(minReservation), "a story's query has its minimum");
      return client;
    });
    this.#scratch = new FileGroup({
      books: o.books,
      slot: o.slot,
      queryId: `${query.name}:0`,
      backend: ADDRESS,
      scratchLimit: query.scratchLimit ?? -1,
      chance: () => 0,
    });
    this.#steps = operatorSteps({
      spec: query.spec,
      clients: this.#clients,
      arena: o.arena,
      allocator: o.allocator,
      thread: o.slot,
      owner: o.slot + 1,
      scratch: this.#scratch,
      seed: query.seed,
      nodeId: 1,
      spillingForbidden: query.spillingForbidden ?? null,
      ...(query.note === undefined ? {} : { note: query.note }),
    });
  }

  get facts(): MemoryFacts {
    return {
      name: this.name,
      limit: this.#query.limit,
      reservation: this.#query.reservation,
      used: this.#clients.reduce((sum, c) => sum + c.used, 0),
      onDisk: this.outcome === null ? this.#o.books.queryBytes(this.#o.slot) : 0,
    };
  }

  get written(): number {
    return this.#scratch.counters.scratchBytesWritten;
  }

  /** So many batches further, or to the end. */
  advance(batches: number): void {
    for (let i = 0; i < batches && this.outcome === null; i++) {
      const step = this.#steps.next("go on");
      if (step.done) this.#finish(step.value);
    }
  }

  cancel(): void {
    if (this.outcome !== null) return;
    const step = this.#steps.next("cancel");
    if (step.done) this.#finish(step.value);
    else this.cancel();
  }

  #finish(outcome: OperatorOutcome): void {
    this.outcome = outcome;
    this.peak = this.#query.peakReservation;
    for (const client of this.#clients) client.close();
    this.#query.close();
    this.#scratch.close();
    this.#o.ended();
  }
}

/** Rows of a scenario, as stories write them. */
export const rows = (count: number, keys: RowsSpec["keys"], width: number): RowsSpec => ({
  rows: count,
  keys,
  width: { min: width, max: width },
});

export const spillLimits = (bufferSize: number) => ({
  bufferSize: bufferSize as Bytes,
  maxRowSize: (512 * KiB) as Bytes,
});
