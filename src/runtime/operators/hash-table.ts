/**
 * The table of one partition: buckets, duplicate links and nodes in pieces of buffers (O5).
 *
 * 12 bytes a bucket in two pieces of a power of two; duplicate nodes of 16 bytes in pieces of 64 KB. Every piece is
 * reservation: when one is refused, the caller spills.
 */
import type { Piece, Suballocator } from "../../core/memory/suballocator.ts";
import { KiB } from "../../core/units.ts";
import type { Kernels } from "./kernels/kernels.ts";

const BUCKET_BYTES = 8;
const LINK_BYTES = 4;
const NODE_PIECE = 64 * KiB;
const FILL_FACTOR = 0.75;
/** O5. */
const MAX_BUCKETS = 2 ** 28;

/** Rows that a table of so many buckets takes before it must grow. */
export const roomOf = (buckets: number): number => Math.floor(buckets * FILL_FACTOR);

export class HashTable {
  readonly #suballocator: Suballocator;
  readonly #kernels: Kernels;
  readonly #nodes: Piece[] = [];
  #buckets: Piece;
  #links: Piece;
  #count: number;

  /** null: refused, or more buckets than a table can have. */
  static tryCreate(suballocator: Suballocator, kernels: Kernels, buckets: number): HashTable | null {
    const pieces = tryPieces(suballocator, buckets);
    return pieces === null ? null : new HashTable(suballocator, kernels, buckets, pieces);
  }

  private constructor(suballocator: Suballocator, kernels: Kernels, count: number, pieces: Pieces) {
    this.#suballocator = suballocator;
    this.#kernels = kernels;
    this.#count = count;
    this.#buckets = pieces.buckets;
    this.#links = pieces.links;
    this.#clear();
  }

  get bucketCount(): number {
    return this.#count;
  }
  get bucketsAt(): number {
    return this.#buckets.address;
  }
  get linksAt(): number {
    return this.#links.address;
  }
  /** O8, O18: what dropping it would give back. */
  get bytes(): number {
    return this.#buckets.bytes + this.#links.bytes + this.#nodes.reduce((sum, n) => sum + n.bytes, 0);
  }

  /** Old and new table are there at once while rows move (O5). False: refused, nothing changed. */
  tryGrow(buckets: number): boolean {
    const pieces = tryPieces(this.#suballocator, buckets);
    if (pieces === null) return false;
    const old = { buckets: this.#buckets, links: this.#links, count: this.#count };
    this.#buckets = pieces.buckets;
    this.#links = pieces.links;
    this.#count = buckets;
    this.#clear();
    this.#kernels.rehash(old.buckets.address, old.count - 1, this.#buckets.address, buckets - 1);
    this.#suballocator.free(old.buckets);
    this.#suballocator.free(old.links);
    return true;
  }

  /** Room for more duplicates; null: refused. */
  tryAddNodes(): Piece | null {
    const piece = this.#suballocator.tryAllocate(Math.min(NODE_PIECE, this.#suballocator.bufferBytes));
    if (piece !== null) this.#nodes.push(piece);
    return piece;
  }

  destroy(): void {
    for (const piece of [this.#buckets, this.#links, ...this.#nodes]) this.#suballocator.free(piece);
    this.#nodes.length = 0;
  }

  #clear(): void {
    this.#kernels.zero(this.#buckets.address, this.#count * BUCKET_BYTES);
    this.#kernels.zero(this.#links.address, this.#count * LINK_BYTES);
  }
}

interface Pieces {
  readonly buckets: Piece;
  readonly links: Piece;
}

function tryPieces(suballocator: Suballocator, count: number): Pieces | null {
  if (count > MAX_BUCKETS) return null;
  const buckets = suballocator.tryAllocate(count * BUCKET_BYTES);
  if (buckets === null) return null;
  const links = suballocator.tryAllocate(count * LINK_BYTES);
  if (links !== null) return { buckets, links };
  suballocator.free(buckets);
  return null;
}
