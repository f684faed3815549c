/**
 * Which client holds which page of the host's arena: lists threaded through one word a page.
 *
 * Pages given back are given out first and fresh ones in address order, so the part of the arena that was ever
 * touched stays as small as the highest use. A client's pages never stand for more than it uses, therefore all
 * pages together fit the arena whenever reservations fit the buffer pool (I1, I3): an empty list is a bug.
 */
import { invariant } from "../assert.ts";
import {
  at,
  F_PAGE_COUNT,
  F_PAGES,
  F_USED,
  get,
  type LedgerView,
  NONE,
  PAGE_BYTES,
  PAGE_CAPACITY,
  PAGE_FREE,
  PAGE_FRESH,
  PAGES_AT,
  PAGES_IN_USE,
  PAGES_PEAK,
} from "./ledger-layout.ts";
import { add, commit, put } from "./undo-log.ts";

/** Whole pages that stand behind so many emulated bytes. */
export const pagesFor = (v: LedgerView, bytes: number): number => Math.floor(bytes / v.f64[PAGE_BYTES]!);

/** How many pages the client may still take under what it uses now. */
export const missingPages = (v: LedgerView, client: number): number =>
  v.f64[PAGE_CAPACITY] === 0 ? 0 : pagesFor(v, get(v, client, F_USED)) - get(v, client, F_PAGE_COUNT);

/** Takes `into.length` pages for the client and writes their numbers there; the newest is the list's head. */
export function takePages(v: LedgerView, client: number, into: Int32Array): void {
  const w = v.f64;
  const n = into.length;
  if (n === 0) return;
  const links = w[PAGES_AT]!;
  const fromFree = collectFree(v, into);
  const fresh = w[PAGE_FRESH]!;
  invariant(fresh + n - fromFree <= w[PAGE_CAPACITY]!, "the arena has a page for every used byte");
  for (let i = fromFree; i < n; i++) into[i] = fresh + i - fromFree;
  // Links of fresh pages mean nothing until PAGE_FRESH has moved past them: plain writes.
  for (let i = fromFree; i < n; i++) w[links + into[i]!] = i + 1 < n ? into[i + 1]! : get(v, client, F_PAGES);
  if (fromFree > 0) {
    const last = links + into[fromFree - 1]!;
    put(v, PAGE_FREE, w[last]!);
    put(v, last, fromFree < n ? into[fromFree]! : get(v, client, F_PAGES));
  }
  put(v, PAGE_FRESH, fresh + n - fromFree);
  put(v, at(client, F_PAGES), into[0]!);
  add(v, at(client, F_PAGE_COUNT), n);
  add(v, PAGES_IN_USE, n);
  if (w[PAGES_IN_USE]! > w[PAGES_PEAK]!) w[PAGES_PEAK] = w[PAGES_IN_USE]!;
  commit(v);
}

/** The client's newest `into.length` pages, which must exist; they stay its own. */
export function newestPages(v: LedgerView, client: number, into: Int32Array): void {
  const links = v.f64[PAGES_AT]!;
  let page = get(v, client, F_PAGES);
  for (let i = 0; i < into.length; i++) {
    invariant(page !== NONE, "a client has the pages that it counts");
    into[i] = page;
    page = v.f64[links + page]!;
  }
}

/** Gives the client's newest `n` pages back. */
export function givePages(v: LedgerView, client: number, n: number): void {
  if (n === 0) return;
  const links = v.f64[PAGES_AT]!;
  const first = get(v, client, F_PAGES);
  let last = first;
  for (let i = 1; i < n; i++) last = v.f64[links + last]!;
  invariant(last !== NONE && n <= get(v, client, F_PAGE_COUNT), "a client has the pages that it counts");
  put(v, at(client, F_PAGES), v.f64[links + last]!);
  put(v, links + last, v.f64[PAGE_FREE]!);
  put(v, PAGE_FREE, first);
  add(v, at(client, F_PAGE_COUNT), -n);
  add(v, PAGES_IN_USE, -n);
  commit(v);
}

/** Fills `into` from the free list's front as far as it goes; the list itself is not changed. */
function collectFree(v: LedgerView, into: Int32Array): number {
  const links = v.f64[PAGES_AT]!;
  let page = v.f64[PAGE_FREE]!;
  let n = 0;
  while (n < into.length && page !== NONE) {
    into[n++] = page;
    page = v.f64[links + page]!;
  }
  return n;
}
