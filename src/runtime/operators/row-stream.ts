/**
 * Rows in pages of one client, appended at the end and read from the front (memory 4, O1).
 *
 * Pages have the default length; a longer row gets a page of its own of the next power of two, up to the largest page
 * (error 104 beyond). The kernels append through a cursor of three words (ptr, end, rows of this page) that the
 * stream lends its write page to; between two calls of a kernel the cursor is the truth about that page.
 *
 * A stream is pinned (all pages in memory) or unpinned (only its write page is). A pinned one asks for each page and
 * may be refused; an unpinned one never asks: its next page takes the place of the last, and what a long row needs
 * beyond the default page was set aside (I19).
 */
import { fail, invariant } from "../../core/assert.ts";
import { pow2AtLeast } from "../../core/memory/buffer-allocator.ts";
import type { Page } from "../../core/memory/buffer-pool.ts";
import { OperatorFailure } from "../../core/memory/operator-failure.ts";
import type { ReservationClient } from "../../core/memory/reservation-client.ts";
import { granted, type OperatorContext, rowTooLong } from "./operator-context.ts";

export interface StreamPage {
  readonly page: Page;
  rows: number;
  /** Bytes of rows in it. */
  filled: number;
}

/** A page of a stream while it is read. */
export interface ReadPage {
  readonly address: number;
  readonly filled: number;
  readonly rows: number;
}

/** A part of the client's promise that only certain pages may use: long ones, and the one that is read (O1, O6). */
export class SetAside {
  readonly #client: ReservationClient;
  readonly #sub: ReservationClient;

  constructor(client: ReservationClient) {
    this.#client = client;
    this.#sub = client.subReservation();
  }

  get bytes(): number {
    return this.#sub.reservation;
  }

  /** From what the client has unused; false when that is less. */
  tryPut(bytes: number): boolean {
    const { reservation, used, child } = this.#client;
    if (reservation - used - child < bytes) return false;
    if (!this.#client.transferTo(this.#sub, bytes)) fail("O1 a sub-reservation has no limit of its own");
    return true;
  }

  put(bytes: number): void {
    if (!this.tryPut(bytes)) fail("I19 what is set aside is part of the minimum");
  }

  take(bytes: number): void {
    if (!this.#sub.transferTo(this.#client, bytes)) fail("O1 what was set aside comes back");
  }

  close(): void {
    if (this.bytes > 0) this.take(this.bytes);
    this.#sub.close();
  }
}

export class RowStream {
  readonly pages: StreamPage[] = [];
  /** All pages are in memory; else only the write page is sure to be. */
  pinned = true;
  readonly #ctx: OperatorContext;
  readonly #cursor: number;
  readonly #setAside: SetAside;
  #write: StreamPage | null = null;
  #rows = 0;

  /** `cursor`: address of the three words that kernels append through. */
  constructor(ctx: OperatorContext, cursor: number, setAside: SetAside) {
    this.#ctx = ctx;
    this.#cursor = cursor;
    this.#setAside = setAside;
    this.#setCursor(0, 0);
  }

  get rows(): number {
    return this.#rows + (this.#write === null ? 0 : this.#words[(this.#cursor >>> 2) + 2]!);
  }

  /** Bytes of pages in memory; the victim rules count the write page or not (O8, O18). */
  pinnedBytes(countWritePage: boolean): number {
    let bytes = 0;
    for (const p of this.pages) if (p.page.pins > 0 && (countWritePage || p !== this.#write)) bytes += p.page.bytes;
    return bytes;
  }

  get bytes(): number {
    return this.pages.reduce((sum, p) => sum + p.page.bytes, 0);
  }

  /** A pinned stream's next page, for a row of this length, if it is granted. */
  tryAddPage(rowBytes: number, what: string): boolean {
    const bytes = this.#pageFor(rowBytes);
    if (!granted(this.#ctx, what, bytes)) return false;
    this.#add(bytes);
    return true;
  }

  /** The next default page, from promise that the client has: the last one's place in an unpinned stream. */
  nextPage(): void {
    this.finishWritePage();
    const { pageBytes, pool } = this.#ctx;
    if (!pool.reservation.tryIncreaseToFit(pageBytes)) fail("I19 a stream has the promise for its write page");
    this.#add(pageBytes);
  }

  /** An unpinned stream's next page, so that the row at `address` fits; a long row is appended here and now. */
  makeRoomFor(address: number, rowBytes: number): "made room" | "appended" {
    if (rowBytes <= this.#ctx.pageBytes) {
      this.nextPage();
      return "made room";
    }
    const bytes = this.#pageFor(rowBytes);
    const extra = bytes - this.#ctx.pageBytes;
    this.finishWritePage();
    this.#setAside.take(extra);
    this.#add(bytes);
    this.#append(address, rowBytes);
    this.finishWritePage();
    this.#setAside.put(extra);
    this.nextPage();
    return "appended";
  }

  /** Nothing more is appended to the write page; in an unpinned stream it is unpinned. */
  finishWritePage(): void {
    const last = this.#write;
    if (last === null) return;
    const at = this.#cursor >>> 2;
    last.filled = this.#words[at]! - last.page.address;
    last.rows = this.#words[at + 2]!;
    this.#rows += last.rows;
    this.#write = null;
    this.#setCursor(0, 0);
    if (last.rows === 0) this.#drop(last);
    else if (!this.pinned) this.#ctx.pool.unpin(last.page);
  }

  /** All pages but the write page may go to disk from now on. A long write page is exchanged for a default one. */
  unpinExceptWritePage(): void {
    if (!this.pinned) return;
    this.pinned = false;
    for (const p of this.pages) if (p !== this.#write) this.#ctx.pool.unpin(p.page);
    if (this.#write !== null && this.#write.page.bytes > this.#ctx.pageBytes) this.nextPage();
  }

  unpinAll(): void {
    if (this.pinned) {
      this.finishWritePage();
      this.pinned = false;
      for (const p of this.pages) this.#ctx.pool.unpin(p.page);
    } else this.finishWritePage();
  }

  /** All pages back into memory, or none (O1). */
  tryPinAll(what: string): boolean {
    invariant(this.#write === null && !this.pinned, "O1 a finished unpinned stream is pinned as a whole");
    if (!granted(this.#ctx, what, this.bytes)) return false;
    for (const p of this.pages) this.#ctx.pool.pin(p.page);
    this.pinned = true;
    return true;
  }

  /** The pages of a pinned stream, which stay. */
  *read(): Generator<ReadPage> {
    this.finishWritePage();
    invariant(this.pinned, "O1 only a pinned stream is read and kept");
    for (const p of this.pages) yield { address: this.#ctx.pool.addressOf(p.page), filled: p.filled, rows: p.rows };
  }

  /** Each page in order, in memory while it is looked at and gone afterwards. Its promise was set aside. */
  *drain(): Generator<ReadPage> {
    const { pool } = this.#ctx;
    this.finishWritePage();
    for (let p = this.pages[0]; p !== undefined; p = this.pages[0]) {
      const { bytes } = p.page;
      const wasPinned = p.page.pins > 0;
      if (!wasPinned) {
        this.#setAside.take(bytes);
        pool.pin(p.page);
      }
      yield { address: pool.addressOf(p.page), filled: p.filled, rows: p.rows };
      this.pages.shift();
      pool.destroyPage(p.page);
      if (!wasPinned) this.#setAside.put(bytes);
    }
    this.#rows = 0;
  }

  destroy(): void {
    for (const p of this.pages) this.#ctx.pool.destroyPage(p.page);
    this.pages.length = 0;
    this.#write = null;
    this.#rows = 0;
    this.#setCursor(0, 0);
  }

  /** Length of the page that a row of this length needs; 104 when no page may be that long. */
  #pageFor(rowBytes: number): number {
    const { pageBytes, maxPageBytes } = this.#ctx;
    if (rowBytes <= pageBytes) return pageBytes;
    if (rowBytes <= maxPageBytes) return pow2AtLeast(rowBytes);
    throw new OperatorFailure(rowTooLong(this.#ctx, rowBytes));
  }

  #add(bytes: number): void {
    this.finishWritePage();
    const { pool } = this.#ctx;
    const added = { page: pool.createPage(bytes), rows: 0, filled: 0 };
    this.pages.push(added);
    this.#write = added;
    this.#setCursor(added.page.address, bytes);
  }

  #append(address: number, rowBytes: number): void {
    const at = this.#cursor >>> 2;
    this.#ctx.kernels.copyBytes(this.#words[at]!, address, rowBytes);
    this.#words[at]! += rowBytes;
    this.#words[at + 2]!++;
  }

  #drop(empty: StreamPage): void {
    this.pages.splice(this.pages.lastIndexOf(empty), 1);
    this.#ctx.pool.destroyPage(empty.page);
  }

  #setCursor(address: number, bytes: number): void {
    const at = this.#cursor >>> 2;
    this.#words[at] = address;
    this.#words[at + 1] = address + bytes;
    this.#words[at + 2] = 0;
  }

  get #words(): Uint32Array {
    return this.#ctx.workspace.words;
  }
}
