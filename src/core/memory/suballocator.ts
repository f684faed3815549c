/**
 * Pieces of buffers: hash tables and their nodes (memory 3.3 B15).
 *
 * Buddy splitting inside buffers of the spillable size, smallest piece 4 KB, joined eagerly; a piece larger than
 * that size is a buffer of its own. When more is needed it asks for reservation, and a refusal is the answer null.
 * Must keep: pieces of one buffer never overlap and a buffer without pieces is given back at once.
 */
import { fail } from "../assert.ts";
import { pow2AtLeast } from "./buffer-allocator.ts";
import type { BufferPoolClient } from "./buffer-pool.ts";

const SMALLEST_PIECE = 4096;

export interface Piece {
  readonly address: number;
  /** A power of two. */
  readonly bytes: number;
  /** Where its buffer begins and how long it is. */
  readonly buffer: number;
  readonly bufferBytes: number;
}

export class Suballocator {
  readonly #pool: BufferPoolClient;
  /** Length of the buffers that are split; larger pieces have their own. */
  readonly bufferBytes: number;
  readonly #smallest: number;
  /** Free pieces by size, each list by address. */
  readonly #free = new Map<number, Piece[]>();
  #pieceBytes = 0;

  constructor(pool: BufferPoolClient, bufferBytes: number) {
    this.#pool = pool;
    this.bufferBytes = bufferBytes;
    this.#smallest = Math.min(SMALLEST_PIECE, bufferBytes);
  }

  /** Bytes in pieces that are out. */
  get pieceBytes(): number {
    return this.#pieceBytes;
  }

  /** null: the reservation was refused. */
  tryAllocate(bytes: number): Piece | null {
    const size = Math.max(this.#smallest, pow2AtLeast(bytes));
    const piece = this.#takeFree(size) ?? this.#fromNewBuffer(size);
    if (piece !== null) this.#pieceBytes += piece.bytes;
    return piece;
  }

  free(piece: Piece): void {
    this.#pieceBytes -= piece.bytes;
    let whole = piece;
    for (;;) {
      const buddy = this.#takeBuddy(whole);
      if (buddy === null) break;
      whole = { ...whole, address: Math.min(whole.address, buddy.address), bytes: whole.bytes * 2 };
    }
    if (whole.bytes === whole.bufferBytes) this.#pool.freeBuffer(whole.buffer, whole.bufferBytes);
    else this.#putFree(whole);
  }

  /** Smallest free piece that is large enough, cut down to size. */
  #takeFree(size: number): Piece | null {
    for (let bytes = size; bytes <= this.bufferBytes; bytes *= 2) {
      const found = this.#free.get(bytes)?.shift();
      if (found !== undefined) return this.#cut(found, size);
    }
    return null;
  }

  #fromNewBuffer(size: number): Piece | null {
    const bytes = Math.max(size, this.bufferBytes);
    if (!this.#pool.reservation.tryIncreaseToFit(bytes)) return null;
    const address = this.#pool.allocateBuffer(bytes);
    return this.#cut({ address, bytes, buffer: address, bufferBytes: bytes }, size);
  }

  #cut(piece: Piece, size: number): Piece {
    let rest = piece;
    while (rest.bytes > size) {
      const bytes = rest.bytes / 2;
      this.#putFree({ ...rest, address: rest.address + bytes, bytes });
      rest = { ...rest, bytes };
    }
    return rest;
  }

  #putFree(piece: Piece): void {
    const same = this.#free.get(piece.bytes) ?? [];
    const at = same.findIndex((p) => p.address >= piece.address);
    if (same[at]?.address === piece.address) fail("B15 a piece is given back once");
    same.splice(at < 0 ? same.length : at, 0, piece);
    this.#free.set(piece.bytes, same);
  }

  #takeBuddy(piece: Piece): Piece | null {
    if (piece.bytes === piece.bufferBytes) return null;
    const offset = piece.address - piece.buffer;
    if (offset % piece.bytes !== 0) fail("B15 a piece lies on a multiple of its size");
    const address = piece.buffer + (offset % (piece.bytes * 2) === 0 ? offset + piece.bytes : offset - piece.bytes);
    const same = this.#free.get(piece.bytes) ?? [];
    const at = same.findIndex((p) => p.address === address);
    return at < 0 ? null : same.splice(at, 1)[0]!;
  }
}
