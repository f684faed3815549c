/**
 * Sorting the rows of a run where they lie, over pages that are not next to each other (O26).
 *
 * A large range is dealt into 256 parts in place by the eight highest bits in which its keys differ; a part that
 * fits the work space is sorted there by key and address, and its rows are put in order by one copy out and one back.
 * No page beside the run's own is needed, so the run may fill the whole reservation.
 *
 * Order: key as a signed number, then `number`, the u64 behind it, if the rows have one. Nothing else decides.
 *
 * run at `run`:  table u32 (addresses of the pages, u32 each) | rows a page u32 | stride u32 | has number u32 |
 *                work u32 (two lists of `capacity` entries, then capacity x stride bytes) | capacity u32 | stack u32
 */
import { copyRow, hashOf } from "./rows";

const SIGN: u64 = 0x8000000000000000;
const ENTRY: u32 = 16;
/** Bits that are sorted by counting before neighbours are compared. */
const COUNTED_BITS: i32 = 24;
const PARTS: u32 = 256;
/** The counts of one counting pass stand first in the stack, then level by level: 256 counts, 256 cursors. */
const LEVEL_BYTES: u32 = 256 * 4 + 256 * 16;

let table: u32 = 0;
let rowsPerPage: u32 = 0;
let stride: u32 = 0;
let hasNumber: bool = false;
let listA: u32 = 0;
let listB: u32 = 0;
let spare: u32 = 0;
let capacity: u32 = 0;
let stack: u32 = 0;
/** Depends on lines read ahead of their use, so that the reads stay in the program. */
let ahead: u32 = 0;
/** Hash that `clusterRun` deals by. */
let seed: u64 = 0;

/** What a range is dealt by: word 0 the key, word 1 the row number, HASH the key's hash. */
const HASH: u32 = 2;

export function sortRun(run: u32, rows: u32): void {
  open(run);
  sortRange(0, rows, 0, 0);
}

/**
 * Deals the rows of a run into 256 parts by eight bits of their hash, in place: rows whose buckets are near each other
 * come to lie near each other too, so that a table is built, and later asked in that order, from near memory.
 */
export function clusterRun(run: u32, rows: u32, seedAt: u32, shift: u32): void {
  open(run);
  seed = load<u64>(seedAt);
  deal(0, rows, HASH, shift, stack + PARTS * 4);
}

function open(run: u32): void {
  table = load<u32>(run);
  rowsPerPage = load<u32>(run, 4);
  stride = load<u32>(run, 8);
  hasNumber = load<u32>(run, 12) != 0;
  capacity = load<u32>(run, 20);
  listA = load<u32>(run, 16);
  listB = listA + capacity * ENTRY;
  spare = listB + capacity * ENTRY;
  stack = load<u32>(run, 24);
}

// @ts-ignore: decorator
@inline function keyAt(row: u32, word: u32): u64 {
  return word == 1 ? load<u64>(row, 8) : keyOf(load<u64>(row), 0, word);
}

/** Same, from the row's first two words. */
// @ts-ignore: decorator
@inline function keyOf(a: u64, b: u64, word: u32): u64 {
  return word == 0 ? a ^ SIGN : word == 1 ? b : <u64>hashOf(a, seed);
}

// @ts-ignore: decorator
@inline function pageOf(index: u32): u32 {
  return load<u32>(table + (index << 2));
}

/** What a pass over a range's keys finds out: in which bits they differ, and whether they are in order already. */
let first: u64 = 0;
let differing: u64 = 0;
let inOrder: bool = true;
let previous: u64 = 0;
let previousNumber: u64 = 0;

// Passes over a range go page by page through functions of their own: a function that is called often is soon compiled
// at its best, while one long call would stay as it began.

function startLooking(row: u32, word: u32): void {
  first = keyAt(row, word);
  differing = 0;
  inOrder = true;
  previous = first;
  previousNumber = 0;
}

function look(row: u32, n: u32, word: u32): void {
  let bits = differing;
  let ordered = inOrder;
  let last = previous;
  let lastNumber = previousNumber;
  const start = first;
  const byNumber = hasNumber && word == 0;
  for (let i: u32 = 0; i < n; i++, row += stride) {
    const key = keyAt(row, word);
    bits |= key ^ start;
    if (ordered) {
      const number = byNumber ? load<u64>(row, 8) : 0;
      ordered = key > last || (key == last && number >= lastNumber);
      last = key;
      lastNumber = number;
    }
  }
  differing = bits;
  inOrder = ordered;
  previous = last;
  previousNumber = lastNumber;
}

/** Rows [low, high), whose words before `word` are all equal. */
function sortRange(low: u32, high: u32, word: u32, level: u32): void {
  const n = high - low;
  if (n < 2) return;
  if (n <= capacity) {
    sortSmall(low, n, word);
    return;
  }
  let page = low / rowsPerPage;
  let inPage = low - page * rowsPerPage;
  startLooking(pageOf(page) + inPage * stride, word);
  for (let left = n; left > 0; page++) {
    const here = min(left, rowsPerPage - inPage);
    look(pageOf(page) + inPage * stride, here, word);
    left -= here;
    inPage = 0;
  }
  if (inOrder) return;
  if (differing == 0) {
    if (word == 0 && hasNumber) sortRange(low, high, 1, level);
    return;
  }
  const top: i32 = 63 - <i32>clz<u64>(differing);
  const shift: u64 = <u64>max(0, top - 7);
  const counts = stack + PARTS * 4 + level * LEVEL_BYTES;
  deal(low, n, word, shift, counts);
  let start = low;
  for (let part: u32 = 0; part < PARTS; part++) {
    const count = load<u32>(counts + (part << 2));
    sortRange(start, start + count, word, level + 1);
    start += count;
  }
}

function countDigits(row: u32, n: u32, word: u32, shift: u64, counts: u32): void {
  for (let i: u32 = 0; i < n; i++, row += stride) {
    const at = counts + (<u32>((keyAt(row, word) >> shift) & 255) << 2);
    store<u32>(at, load<u32>(at) + 1);
  }
}

/** Rows [low, low + n) into parts by `(key >> shift) & 255`, in place; each part's size stays at `counts`. */
function deal(low: u32, n: u32, word: u32, shift: u64, counts: u32): void {
  memory.fill(counts, 0, PARTS * 4);
  let page = low / rowsPerPage;
  let inPage = low - page * rowsPerPage;
  for (let left = n; left > 0; page++) {
    const here = min(left, rowsPerPage - inPage);
    countDigits(pageOf(page) + inPage * stride, here, word, shift, counts);
    left -= here;
    inPage = 0;
  }
  // Cursor: address u32 | end of the rows in its page u32 | page u32 | rows still to be placed u32
  const cursors = counts + PARTS * 4;
  let start = low;
  for (let part: u32 = 0; part < PARTS; part++) {
    const count = load<u32>(counts + (part << 2));
    const cursor = cursors + (<u32>part << 4);
    const p = start / rowsPerPage;
    const base = count > 0 ? pageOf(p) : 0;
    store<u32>(cursor, <u32>base + (start - p * rowsPerPage) * stride);
    store<u32>(cursor, <u32>base + rowsPerPage * stride, 4);
    store<u32>(cursor, p, 8);
    store<u32>(cursor, count, 12);
    start += count;
  }
  for (let part: u32 = 0; part < PARTS; part++) {
    const own = cursors + (part << 4);
    if (stride == 24) while (load<u32>(own, 12) > 0) deal24(part, word, shift, cursors);
    else while (load<u32>(own, 12) > 0) dealAny(part, word, shift, cursors);
  }
}

// @ts-ignore: decorator
@inline function advance(cursor: u32, address: u32): void {
  store<u32>(cursor, load<u32>(cursor, 12) - 1, 12);
  address += stride;
  if (address == load<u32>(cursor, 4)) {
    const page = load<u32>(cursor, 8) + 1;
    store<u32>(cursor, page, 8);
    // The last part's cursor may step behind the last page; nobody reads there.
    if (load<u32>(cursor, 12) > 0) {
      address = <u32>pageOf(page);
      store<u32>(cursor, address + rowsPerPage * stride, 4);
    }
  }
  store<u32>(cursor, address);
}

/** Rows placed in one call, about. */
const STINT: u32 = 65536;

/** Fills the part's places with its own rows, each pushed-out row carried on to where it belongs. */
function deal24(part: u32, word: u32, shift: u64, cursors: u32): void {
  const own = cursors + (part << 4);
  let seen: u32 = 0;
  for (let left = STINT; left > 0 && load<u32>(own, 12) > 0; left--) {
    const home = load<u32>(own);
    let a = load<u64>(home);
    let b = load<u64>(home, 8);
    let c = load<u64>(home, 16);
    while (true) {
      const key = keyOf(a, b, word);
      const target = <u32>((key >> shift) & 255);
      if (target == part) break;
      const cursor = cursors + (target << 4);
      const to = load<u32>(cursor);
      const nextA = load<u64>(to);
      const nextB = load<u64>(to, 8);
      const nextC = load<u64>(to, 16);
      store<u64>(to, a);
      store<u64>(to, b, 8);
      store<u64>(to, c, 16);
      a = nextA;
      b = nextB;
      c = nextC;
      // The next line of this part's stream, asked for long before it is needed.
      seen ^= load<u32>(to, 192);
      advance(cursor, to);
      if (left > 1) left--;
    }
    store<u64>(home, a);
    store<u64>(home, b, 8);
    store<u64>(home, c, 16);
    advance(own, home);
  }
  ahead ^= seen;
}

/** The same for rows of any length, through two rows of scratch: the one in hand and the one it pushes out. */
function dealAny(part: u32, word: u32, shift: u64, cursors: u32): void {
  const own = cursors + (part << 4);
  let inHand: u32 = spare;
  let other: u32 = spare + stride;
  for (let left = STINT; left > 0 && load<u32>(own, 12) > 0; left--) {
    const home = load<u32>(own);
    let target = <u32>((keyAt(home, word) >> shift) & 255);
    if (target != part) {
      copyRow(inHand, home, stride);
      while (target != part) {
        const cursor = cursors + (target << 4);
        const to = load<u32>(cursor);
        copyRow(other, to, stride);
        copyRow(to, inHand, stride);
        advance(cursor, to);
        const swap = inHand;
        inHand = other;
        other = swap;
        target = <u32>((keyAt(inHand, word) >> shift) & 255);
        if (left > 1) left--;
      }
      copyRow(home, inHand, stride);
    }
    advance(own, home);
  }
}

/** Entries (key u64 | address u32) of rows next to each other; returns the end of the entries. */
function listRows(row: u32, n: u32, word: u32, entry: u32): u32 {
  for (let i: u32 = 0; i < n; i++, row += stride, entry += ENTRY) {
    store<u64>(entry, keyAt(row, word));
    store<u32>(entry, row, 8);
  }
  return entry;
}

/** At most `capacity` rows: entries are sorted, then the rows follow them. */
function sortSmall(low: u32, n: u32, word: u32): void {
  const lowPage = low / rowsPerPage;
  const lowInPage = low - lowPage * rowsPerPage;
  let page = lowPage;
  let inPage = lowInPage;
  let entry = listA;
  startLooking(pageOf(page) + inPage * stride, word);
  for (let left = n; left > 0; page++) {
    const here = min(left, rowsPerPage - inPage);
    const row = pageOf(page) + inPage * stride;
    look(row, here, word);
    entry = listRows(row, here, word, entry);
    left -= here;
    inPage = 0;
  }
  if (inOrder) return;
  const sorted = sortEntries(n, word, differing);
  let to = spare;
  const end = sorted + n * ENTRY;
  for (entry = sorted; entry < end; entry += ENTRY) {
    copyRow(to, load<u32>(entry, 8), stride);
    to += stride;
  }
  page = lowPage;
  inPage = lowInPage;
  let from = spare;
  for (let left = n; left > 0; page++) {
    const here = min(left, rowsPerPage - inPage);
    memory.copy(pageOf(page) + inPage * stride, from, here * stride);
    from += here * stride;
    left -= here;
    inPage = 0;
  }
}

/** Returns the list that holds the result. */
function sortEntries(n: u32, word: u32, differing: u64): u32 {
  if (n <= 32) {
    insertion(listA, n, word, u32.MAX_VALUE);
    return listA;
  }
  if (differing == 0) return word == 0 && hasNumber ? byNumberThenKey(n, 0) : listA;
  const bits: i32 = 64 - <i32>clz<u64>(differing);
  const lowest = max(0, bits - COUNTED_BITS);
  const list = countingPasses(listA, n, lowest, bits);
  // What the counted bits leave undecided is mostly a neighbour or two; if it isn't, count everything.
  if (insertion(list, n, word, n << 2)) return list;
  if (list != listA) memory.copy(listA, list, n * ENTRY);
  return byNumberThenKey(n, word);
}

/** Every bit counted: by number if that breaks ties, then, stable, by key. Entries stand in list A. */
function byNumberThenKey(n: u32, word: u32): u32 {
  let list = listA;
  if (word == 0 && hasNumber) {
    for (let entry = list; entry < list + n * ENTRY; entry += ENTRY) store<u64>(entry, load<u64>(load<u32>(entry, 8), 8));
    list = countingPasses(list, n, 0, 64);
    for (let entry = list; entry < list + n * ENTRY; entry += ENTRY)
      store<u64>(entry, load<u64>(load<u32>(entry, 8)) ^ SIGN);
  }
  return countingPasses(list, n, 0, 64);
}

/** Least significant digit first, eight bits at a time, of key bits [lowest, highest); digits all alike are skipped. */
function countingPasses(from: u32, n: u32, lowest: i32, highest: i32): u32 {
  const counts = stack;
  let list = from;
  for (let shift = lowest; shift < highest; shift += 8) {
    memory.fill(counts, 0, PARTS * 4);
    const end = list + n * ENTRY;
    for (let entry = list; entry < end; entry += ENTRY) {
      const at = counts + (<u32>((load<u64>(entry) >> <u64>shift) & 255) << 2);
      store<u32>(at, load<u32>(at) + 1);
    }
    const to = list == listA ? listB : listA;
    let place = <u32>to;
    let alike = false;
    for (let digit: u32 = 0; digit < PARTS; digit++) {
      const at = counts + (digit << 2);
      const count = load<u32>(at);
      if (count == n) alike = true;
      store<u32>(at, place);
      place += count * ENTRY;
    }
    if (alike) continue;
    for (let entry = list; entry < end; entry += ENTRY) {
      const key = load<u64>(entry);
      const at = counts + (<u32>((key >> <u64>shift) & 255) << 2);
      const target = load<u32>(at);
      store<u64>(target, key);
      store<u64>(target, load<u64>(entry, 8), 8);
      store<u32>(at, target + ENTRY);
    }
    list = to;
  }
  return list;
}

/** Compares whole orders. Gives up, true to its budget of moves, and returns false; the list is still a permutation. */
function insertion(list: u32, n: u32, word: u32, budget: u32): bool {
  const end = list + n * ENTRY;
  let moves: u32 = 0;
  for (let entry = list + ENTRY; entry < end; entry += ENTRY) {
    const key = load<u64>(entry);
    const address = load<u64>(entry, 8);
    let hole = entry;
    while (hole > list) {
      const before = hole - ENTRY;
      const other = load<u64>(before);
      if (other < key) break;
      if (other == key) {
        if (word != 0 || !hasNumber) break;
        if (load<u64>(load<u32>(before, 8), 8) <= load<u64>(<u32>address, 8)) break;
      }
      store<u64>(hole, other);
      store<u64>(hole, load<u64>(before, 8), 8);
      hole = before;
      moves++;
    }
    store<u64>(hole, key);
    store<u64>(hole, address, 8);
    if (moves > budget) return false;
  }
  return true;
}
