/**
 * `--check` where real operators work: the buffers, pages and scratch files of a host, between two steps of whatever
 * runs there (I7 to I10, I12).
 *
 * On the host's own thread, because pages are known only there; one thread carries the host, so between two steps all
 * its books stand still and must agree.
 */
import type { BufferAllocator } from "../core/memory/buffer-allocator.ts";
import type { ClientSnapshot } from "../core/memory/buffer-pool.ts";
import { brokenPoolRules } from "../core/memory/buffer-pool-checks.ts";
import type { FileGroup } from "./scratch/file-group.ts";
import { brokenScratchRules } from "./scratch/scratch-checks.ts";

/** Steps between two looks: a look costs as much as some batches. */
const STEPS_PER_LOOK = 16;

/** One operator's books while it is open. */
export interface OperatorBooks {
  readonly clients: () => readonly ClientSnapshot[];
  /** Null: there is no file group (S7). */
  readonly group: FileGroup | null;
  readonly scratchLimit: number;
}

export class OperatorChecks {
  readonly #allocator: BufferAllocator;
  readonly #minBufferBytes: number;
  /** By task. */
  readonly #open = new Map<number, OperatorBooks>();
  #steps = 0;
  looks = 0;

  constructor(allocator: BufferAllocator, minBufferBytes: number) {
    this.#allocator = allocator;
    this.#minBufferBytes = minBufferBytes;
  }

  /** After a step of the task's operator: what does not hold on the host. Not every step is looked at. */
  afterStep(task: number, books: OperatorBooks): readonly string[] {
    this.#open.set(task, books);
    return this.#steps++ % STEPS_PER_LOOK === 0 ? this.look() : [];
  }

  /** The task's operator has given its buffers back, or main does it. */
  closed(task: number): void {
    this.#open.delete(task);
  }

  look(): readonly string[] {
    this.looks++;
    const all = [...this.#open.values()].map((books) => ({ ...books, pools: books.clients() }));
    const pools = all.flatMap((o) => o.pools);
    return [...brokenPoolRules(this.#allocator.snapshot(), pools, this.#minBufferBytes), ...all.flatMap(brokenFiles)];
  }
}

function brokenFiles(o: OperatorBooks & { readonly pools: readonly ClientSnapshot[] }): readonly string[] {
  if (o.group === null) return [];
  const live = o.pools.flatMap((pool) => pool.pages.flatMap((page) => page.range ?? []));
  return brokenScratchRules(o.group, live, o.scratchLimit);
}
