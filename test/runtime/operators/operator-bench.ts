/**
 * A host for operator tests: arena, pool, reservation tree, scratch directory; and one call that runs an operator there
 * and looks at what is left.
 */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KeySpec, OperatorSpec, RowsSpec } from "../../../src/config/scenario.ts";
import type { BufferAllocator } from "../../../src/core/memory/buffer-allocator.ts";
import { NO_LOCK } from "../../../src/core/memory/buffer-allocator.ts";
import { brokenPoolRules } from "../../../src/core/memory/buffer-pool-checks.ts";
import { LocalReservation } from "../../../src/core/memory/local-reservation.ts";
import type { Failure } from "../../../src/core/memory/page-store.ts";
import { type Bytes, KiB } from "../../../src/core/units.ts";
import { createArena, type OperatorArena, privateAllocator } from "../../../src/runtime/operators/operator-arena.ts";
import type { OperatorEvent } from "../../../src/runtime/operators/operator-context.ts";
import {
  type OperatorOutcome,
  type OperatorRun,
  operatorSteps,
  plannedClients,
} from "../../../src/runtime/operators/run-operator.ts";
import { FileGroup, type ScratchFiles } from "../../../src/runtime/scratch/file-group.ts";
import { brokenScratchRules } from "../../../src/runtime/scratch/scratch-checks.ts";
import { ScratchBooks, scratchBookWords } from "../../../src/runtime/scratch/scratch-directories.ts";
import type { Compression } from "../../../src/runtime/scratch/scratch-page-store.ts";
import { seeded } from "../../core/memory/simulated-store.ts";

export const rowsOf = (rows: number, keys: KeySpec, width = 16, maxWidth = width): RowsSpec => ({
  rows,
  keys,
  width: { min: width, max: maxWidth },
});

export const limits = (bufferSize: number, maxRowSize = bufferSize) => ({
  bufferSize: bufferSize as Bytes,
  maxRowSize: maxRowSize as Bytes,
});

export interface TestHostOptions {
  readonly poolBytes: number;
  readonly minBufferBytes?: number;
  /** 0: what was written leaves memory at once, so every read comes from disk. A tenth of the pool unless said. */
  readonly cleanBytes?: number;
  readonly directories?: readonly { readonly limit?: number; readonly priority?: number }[];
  readonly files?: ScratchFiles;
}

/** Disposable: its directory goes with it. */
export class TestHost {
  readonly root: LocalReservation;
  readonly arena: OperatorArena;
  readonly allocator: BufferAllocator;
  readonly books: ScratchBooks;
  readonly folder: string;
  readonly #files: ScratchFiles | undefined;

  constructor(o: TestHostOptions) {
    this.folder = mkdtempSync(join(tmpdir(), "waterhole-test-"));
    this.arena = createArena({
      poolBytes: o.poolBytes,
      minBufferBytes: o.minBufferBytes ?? 4 * KiB,
      threads: 2,
      ...(o.cleanBytes === undefined ? {} : { cleanBytes: o.cleanBytes }),
    });
    this.allocator = privateAllocator(this.arena);
    this.root = new LocalReservation({ label: "Process", limit: o.poolBytes });
    const directories = (o.directories ?? [{}]).map((d) => ({
      path: this.folder,
      limit: d.limit ?? Number.POSITIVE_INFINITY,
      priority: d.priority ?? 0,
    }));
    this.books = new ScratchBooks(directories, new Float64Array(scratchBookWords(directories.length, 4)), NO_LOCK);
    this.#files = o.files;
  }

  /** What must be nothing when no query runs (I24): reservation, buffers in use, scratch, files. */
  leftBehind(): Record<string, number> {
    const pool = this.allocator.snapshot();
    return {
      reservation: this.root.reservation,
      child: this.root.child,
      inUse: pool.inUse,
      clean: pool.clean,
      scratch: this.books.hostBytes(),
      files: readdirSync(this.folder).length,
    };
  }

  /** The steps of one operator; the caller may take them in turn with another's, and must take them to the end. */
  *start(spec: OperatorSpec, o: RunOptions = {}): Generator<void, OperatorOutcome, "go on" | "cancel"> {
    const seed = o.seed ?? 1;
    const dice = seeded(seed + 7919);
    const denial = o.denial ?? 0;
    let isClaimed = false;
    const query = new LocalReservation({
      label: `Query(${o.slot ?? 0})`,
      parent: this.root,
      ...(o.limit === undefined ? {} : { limit: o.limit }),
    });
    const clients = plannedClients(spec).map(({ label, minReservation }, at) => {
      const client = new LocalReservation({
        label: `${label} (id=${at + 1})`,
        parent: query,
        denies: () => isClaimed && dice() < denial,
      });
      if (!client.tryIncrease(minReservation)) throw new Error(client.refusal);
      return client;
    });
    isClaimed = true;
    this.clients = clients;
    const scratch = new FileGroup({
      books: this.books,
      slot: o.slot ?? 0,
      queryId: "1:1",
      backend: "exec-1:27000",
      scratchLimit: o.scratchLimit ?? -1,
      chance: seeded(seed),
      ...(this.#files === undefined ? {} : { files: this.#files }),
    });
    const run: OperatorRun = {
      spec,
      clients,
      arena: this.arena,
      allocator: this.allocator,
      thread: o.slot ?? 0,
      owner: (o.slot ?? 0) + 1,
      scratch: o.noScratch === true ? null : scratch,
      compression: o.compression ?? "none",
      seed,
      nodeId: 1,
      spillingForbidden: o.spillingForbidden ?? null,
      ...(o.writeBack === undefined ? {} : { writeBack: o.writeBack }),
      ...(o.batchRows === undefined ? {} : { batchRows: o.batchRows }),
      ...(o.partitionDepth === undefined ? {} : { partitionDepth: o.partitionDepth }),
      ...(o.note === undefined ? {} : { note: o.note }),
      ...(o.checks === true && {
        inspect: (snapshots) => {
          const pools = snapshots();
          const live = pools.flatMap((p) => p.pages.flatMap((page) => page.range ?? []));
          const broken = [
            ...brokenPoolRules(this.allocator.snapshot(), pools, this.arena.pool.minBufferBytes),
            ...brokenScratchRules(scratch, live, o.scratchLimit ?? -1),
            ...clients.filter((c) => c.used + c.child > c.reservation).map((c) => `I1 ${c.label}`),
          ];
          if (broken.length > 0) throw new Error(broken.join("\n"));
        },
      }),
    };
    try {
      return yield* operatorSteps(run);
    } finally {
      this.peak = clients.map((c) => c.peakReservation);
      for (const c of clients) c.close();
      query.close();
      scratch.close();
    }
  }

  /** The running operator's reservations. */
  clients: readonly LocalReservation[] = [];
  /** Most that each client of the last operator had reserved. */
  peak: readonly number[] = [];

  run(spec: OperatorSpec, o: RunOptions = {}): OperatorOutcome {
    const steps = this.start(spec, o);
    for (let taken = 0; ; taken++) {
      const step = steps.next(o.cancelAfter !== undefined && taken > o.cancelAfter ? "cancel" : "go on");
      if (step.done) return step.value;
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface RunOptions {
  readonly seed?: number;
  /** Limit of the query's reservation. */
  readonly limit?: number;
  /** Probability of refusing an increase once the minimum is claimed (SET_DENY_RESERVATION_PROBABILITY). */
  readonly denial?: number;
  readonly slot?: number;
  readonly scratchLimit?: number;
  readonly noScratch?: boolean;
  readonly compression?: Compression;
  readonly writeBack?: "eager" | "whenNeeded";
  readonly spillingForbidden?: Failure;
  readonly batchRows?: number;
  readonly partitionDepth?: number;
  /** I1, I7 to I10 and I12 after every step. */
  readonly checks?: boolean;
  readonly cancelAfter?: number;
  readonly note?: (event: OperatorEvent) => void;
}

export const outputOf = (outcome: OperatorOutcome) => {
  if (outcome.kind !== "done") throw new Error(`the operator ${outcome.kind}: ${JSON.stringify(outcome)}`);
  return outcome.output;
};
