/**
 * Merging sorted runs (O28): one page of each is in memory, the smallest row is next.
 *
 * source, 32 bytes:  ptr u32 | end u32 | key u64 (of the row at ptr, sign turned) | done u32 | page of variable data u32
 *                    (its number in the run) | where that page lies u32
 * The tree of losers stands behind the sources: u32 each, [0] the winner, [1 .. leaves - 1] losers.
 *
 * A merge stops when the output is full or when a source has no row left in its page; it tells which, and goes on
 * where it stopped once the operator has put that right.
 */
import { copyRow, VARIABLE_HEADER } from "./rows";

const SIGN: u64 = 0x8000000000000000;
const SOURCE: u32 = 32;
const DONE: u32 = 16;
const VARIABLE_PAGE: u32 = 20;
const VARIABLE_AT: u32 = 24;

/** What stopped a merge, in the u32 at `status`; the source it is about stands behind it. */
const OUTPUT_FULL: u32 = 0;
const SOURCE_EMPTY: u32 = 1;
const SOURCE_NEEDS_VARIABLE_PAGE: u32 = 2;
const VARIABLE_OUTPUT_FULL: u32 = 3;
const ALL_DONE: u32 = 4;
/** Rows that the call put out, behind the source; a tuple's length. */
const ROWS_OUT: u32 = 12;
export const TUPLE: u32 = 32;

// @ts-ignore: decorator
@inline function sourceAt(sources: u32, s: u32): u32 {
  return sources + s * SOURCE;
}

/** To be called for a source whose ptr, end or done was set, before the tree is played. */
export function loadKey(sources: u32, s: u32): void {
  const source = sourceAt(sources, s);
  if (load<u32>(source, DONE) == 0) store<u64>(source, load<u64>(load<u32>(source)) ^ SIGN, 8);
}

// @ts-ignore: decorator
@inline function isBefore(sources: u32, a: u32, b: u32, hasNumber: bool): bool {
  const x = sourceAt(sources, a);
  const y = sourceAt(sources, b);
  if (load<u32>(x, DONE) != 0) return false;
  if (load<u32>(y, DONE) != 0) return true;
  const p = load<u64>(x, 8);
  const q = load<u64>(y, 8);
  if (p != q) return p < q;
  return hasNumber && load<u64>(load<u32>(x), 8) < load<u64>(load<u32>(y), 8);
}

/** Plays the whole tree. Its leaves are the sources; a number from k on stands for a source that is done. */
export function playTree(sources: u32, k: u32, tree: u32, hasNumber: bool): void {
  store<u32>(tree, k == 1 ? 0 : play(sources, k, tree, 1, hasNumber));
}

function play(sources: u32, k: u32, tree: u32, node: u32, hasNumber: bool): u32 {
  if (node >= k) return node - k;
  const a = play(sources, k, tree, node << 1, hasNumber);
  const b = play(sources, k, tree, (node << 1) + 1, hasNumber);
  const aWins = !isBefore(sources, b, a, hasNumber);
  store<u32>(tree + (node << 2), aWins ? b : a);
  return aWins ? a : b;
}

/** The winner has a new row (or is done): up from its leaf. */
// @ts-ignore: decorator
@inline function replay(sources: u32, k: u32, tree: u32, s: u32, hasNumber: bool): u32 {
  let winner = s;
  for (let node = (s + k) >> 1; node > 0; node >>= 1) {
    const at = tree + (node << 2);
    const loser = load<u32>(at);
    if (isBefore(sources, loser, winner, hasNumber)) {
      store<u32>(at, winner);
      winner = loser;
    }
  }
  store<u32>(tree, winner);
  return winner;
}

/** After a source that was reported empty got its next page, or is done. */
export function resume(sources: u32, k: u32, tree: u32, s: u32, hasNumber: bool): void {
  loadKey(sources, s);
  replay(sources, k, tree, s, hasNumber);
}

/** Fixed rows to [out, outEnd). Returns the end of what was written. */
export function mergeRows(
  sources: u32,
  k: u32,
  tree: u32,
  stride: u32,
  hasNumber: bool,
  out: u32,
  outEnd: u32,
  status: u32,
): u32 {
  if (k == 2) return mergeTwo(sources, tree, stride, hasNumber, out, outEnd, status);
  let s = load<u32>(tree);
  let seen: u32 = 0;
  while (true) {
    const source = sourceAt(sources, s);
    if (load<u32>(source, DONE) != 0) return stop(status, ALL_DONE, s, out);
    if (out + stride > outEnd) return stop(status, OUTPUT_FULL, s, out);
    const row = load<u32>(source);
    copyRow(out, row, stride);
    out += stride;
    const next = row + stride;
    store<u32>(source, next);
    if (next == load<u32>(source, 4)) return stop(status, SOURCE_EMPTY, s, out);
    seen ^= load<u32>(next, 128);
    store<u64>(source, load<u64>(next) ^ SIGN, 8);
    s = replay(sources, k, tree, s, hasNumber);
    store<u32>(status, seen, 8);
  }
}

/** The usual case without a tree: both keys stay in locals. */
function mergeTwo(
  sources: u32,
  tree: u32,
  stride: u32,
  hasNumber: bool,
  out: u32,
  outEnd: u32,
  status: u32,
): u32 {
  const x = sources;
  const y = sources + SOURCE;
  if (load<u32>(x, DONE) != 0 && load<u32>(y, DONE) != 0) return stop(status, ALL_DONE, 0, out);
  let a = load<u32>(x);
  let b = load<u32>(y);
  const aEnd = load<u32>(x, 4);
  const bEnd = load<u32>(y, 4);
  const aDone = load<u32>(x, DONE) != 0;
  const bDone = load<u32>(y, DONE) != 0;
  let p = load<u64>(x, 8);
  let q = load<u64>(y, 8);
  let why = OUTPUT_FULL;
  let who: u32 = 0;
  while (out + stride <= outEnd) {
    const takeA = bDone || (!aDone && (p != q ? p < q : !hasNumber || load<u64>(a, 8) <= load<u64>(b, 8)));
    if (takeA) {
      copyRow(out, a, stride);
      out += stride;
      a += stride;
      if (a == aEnd) {
        why = SOURCE_EMPTY;
        break;
      }
      p = load<u64>(a) ^ SIGN;
    } else {
      copyRow(out, b, stride);
      out += stride;
      b += stride;
      if (b == bEnd) {
        why = SOURCE_EMPTY;
        who = 1;
        break;
      }
      q = load<u64>(b) ^ SIGN;
    }
  }
  store<u32>(x, a);
  store<u32>(y, b);
  store<u64>(x, p, 8);
  store<u64>(y, q, 8);
  store<u32>(tree, who);
  return stop(status, why, who, out);
}

/**
 * Tuples with variable data: key | number | length u32 | page u32 | offset u32 | pad. With `dataOut` (two u32: ptr,
 * end; then the number of its page) tuples go to `out` and their data there; without (0), whole variable rows go to
 * `out`.
 */
export function mergeTuples(
  sources: u32,
  k: u32,
  tree: u32,
  dataOut: u32,
  out: u32,
  outEnd: u32,
  status: u32,
): u32 {
  store<u32>(status, 0, ROWS_OUT);
  while (true) {
    const s = load<u32>(tree);
    const source = sourceAt(sources, s);
    if (load<u32>(source, DONE) != 0) return stop(status, ALL_DONE, s, out);
    const tuple = load<u32>(source);
    const length = load<u32>(tuple, 16);
    const needed = dataOut != 0 ? TUPLE : VARIABLE_HEADER + length;
    if (out + needed > outEnd) return stop(status, OUTPUT_FULL, s, out);
    if (load<u32>(tuple, 20) != load<u32>(source, VARIABLE_PAGE)) return stop(status, SOURCE_NEEDS_VARIABLE_PAGE, s, out);
    const data = load<u32>(source, VARIABLE_AT) + load<u32>(tuple, 24);
    if (dataOut != 0) {
      const to = load<u32>(dataOut);
      if (to + length > load<u32>(dataOut, 4)) return stop(status, VARIABLE_OUTPUT_FULL, s, out);
      copyRow(to, data, length);
      store<u32>(dataOut, to + length);
      copyRow(out, tuple, 16);
      store<u32>(out, length, 16);
      store<u32>(out, load<u32>(dataOut, 8), 20);
      store<u32>(out, to - load<u32>(dataOut, 12), 24);
      store<u32>(out, 0, 28);
    } else {
      copyRow(out, tuple, VARIABLE_HEADER);
      copyRow(out + VARIABLE_HEADER, data, length);
    }
    out += needed;
    store<u32>(status, load<u32>(status, ROWS_OUT) + 1, ROWS_OUT);
    const next = tuple + TUPLE;
    store<u32>(source, next);
    if (next == load<u32>(source, 4)) return stop(status, SOURCE_EMPTY, s, out);
    store<u64>(source, load<u64>(next) ^ SIGN, 8);
    replay(sources, k, tree, s, true);
  }
}

// @ts-ignore: decorator
@inline function stop(status: u32, why: u32, source: u32, out: u32): u32 {
  store<u32>(status, why);
  store<u32>(status, source, 4);
  return out;
}

/**
 * Variable rows [start, n) of a batch become tuples at [out, outEnd) with their bytes at dataOut (as above). Stops
 * when either is full; ptr of `dataOut` tells which. Writes the end of the tuples to the u32 at `outAt`.
 */
export function toTuples(rows: u32, start: u32, n: u32, outAt: u32, outEnd: u32, dataOut: u32): u32 {
  let out: u32 = load<u32>(outAt);
  let i = start;
  for (; i < n; i++) {
    const row = load<u32>(rows + (i << 2));
    const length = load<u32>(row, 16);
    const to = load<u32>(dataOut);
    if (out + TUPLE > outEnd || to + length > load<u32>(dataOut, 4)) break;
    copyRow(out, row, VARIABLE_HEADER);
    store<u32>(out, load<u32>(dataOut, 8), 20);
    store<u32>(out, to - load<u32>(dataOut, 12), 24);
    store<u32>(out, 0, 28);
    copyRow(to, row + VARIABLE_HEADER, length);
    store<u32>(dataOut, to + length);
    out += TUPLE;
  }
  store<u32>(outAt, <u32>out);
  return i;
}

/**
 * Tuples [at, end): their data, which lies all over the run's pages (addresses at `pages`, u32 each), is copied in this
 * order to dataOut and the tuples are told (O26). Stops at a tuple whose data doesn't fit and returns where.
 */
export function layInOrder(at: u32, end: u32, pages: u32, dataOut: u32): u32 {
  for (; at < end; at += TUPLE) {
    const length = load<u32>(at, 16);
    const to = load<u32>(dataOut);
    if (to + length > load<u32>(dataOut, 4)) return at;
    copyRow(to, load<u32>(pages + (<u32>load<u32>(at, 20) << 2)) + load<u32>(at, 24), length);
    store<u32>(at, load<u32>(dataOut, 8), 20);
    store<u32>(at, to - load<u32>(dataOut, 12), 24);
    store<u32>(dataOut, to + length);
  }
  return at;
}

/** Tuples [at, end) with data at `pages` as whole variable rows at [out, outEnd); stops when the next doesn't fit. */
export function flatten(at: u32, end: u32, pages: u32, outAt: u32, outEnd: u32): u32 {
  let out: u32 = load<u32>(outAt);
  for (; at < end; at += TUPLE) {
    const length = load<u32>(at, 16);
    if (out + VARIABLE_HEADER + length > outEnd) break;
    copyRow(out, at, VARIABLE_HEADER);
    copyRow(out + VARIABLE_HEADER, load<u32>(pages + (<u32>load<u32>(at, 20) << 2)) + load<u32>(at, 24), length);
    out += VARIABLE_HEADER + length;
  }
  store<u32>(outAt, <u32>out);
  return at;
}
