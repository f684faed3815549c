/**
 * Sixteen partitions: where the next row of each goes, and its hash table (O6, O18, O20).
 *
 * A partition is a record of 64 bytes that the operator fills and the kernels advance:
 *
 *    0 state    ABSENT, IN_MEMORY, SPILLED or STAGED (3, looks like SPILLED to route)        4 ptr  8 end  12 rows     cursor of the stream of built or grouped rows
 *   16 buckets  8 bytes each: hash u32 | row u32   20 mask  24 filled  28 room  (rows until the table must grow)
 *               A join keeps 28 bits of the hash and in the highest bit whether the key has duplicates; what chooses the
 *               partition is the same for all its rows.
 *   32 rawPtr  36 rawEnd  40 rawRows                cursor of the stream of raw rows (aggregation) or probe rows (join)
 *   44 links    4 bytes a bucket: head of the duplicates  48 nodePtr  52 nodeEnd
 *
 * A table takes 12 bytes a bucket in two allocations of a power of two, as Impala's does (O5); row 0 means empty.
 * A kernel stops at the first row for which something is missing and returns its index; it has changed nothing
 * for that row, so the operator gets a page, or spills, and calls again from there.
 */
import { copyRow, hashOf, rowLength } from "./rows";

export const ABSENT: u32 = 0;
export const IN_MEMORY: u32 = 1;
export const SPILLED: u32 = 2;

export const HASH_BITS: u32 = 0x0fffffff;
export const HAS_DUPLICATES: u32 = 0x80000000;

// @ts-ignore: decorator
@inline export function partitionOf(partitions: u32, hash: u32): u32 {
  return partitions + ((<u32>hash >> 28) << 6);
}

/** Appends rows [start, n) to the streams at ptr (or rawPtr); stops at the first whose page is full. */
export function scatter(rows: u32, hashes: u32, start: u32, n: u32, stride: u32, partitions: u32): u32 {
  for (let i = start; i < n; i++) {
    const part = partitionOf(partitions, load<u32>(hashes + (i << 2)));
    const row = load<u32>(rows + (i << 2));
    const to = load<u32>(part, 4);
    const length = rowLength(row, stride);
    if (to + length > load<u32>(part, 8)) return i;
    copyRow(to, row, length);
    store<u32>(part, to + length, 4);
    store<u32>(part, load<u32>(part, 12) + 1, 12);
  }
  return n;
}

/** Rows that are looked at together: what they touch is still near when it is used. */
export const SLICE: u32 = 256;

/**
 * Finds, for rows [start, end), the bucket that holds the row's hash: its address to `slots`, 0 when there is none or the
 * partition has no table in memory.
 *
 * In two passes, so that cache misses stand side by side instead of one after the other: the first looks at every row's
 * home bucket; the second, which finds the buckets near, goes on to the right one and looks at both ends of the row it
 * names (a row of 24 bytes often lies in two lines). What they saw is stored, so that no compiler leaves it out.
 */
// @ts-ignore: decorator
@inline export function find(hashes: u32, start: u32, end: u32, partitions: u32, slots: u32): void {
  let seen: u32 = 0;
  for (let i = start; i < end; i++) {
    const hash = load<u32>(hashes + (i << 2));
    const part = partitionOf(partitions, hash);
    let bucket: u32 = 0;
    if (load<u32>(part) == IN_MEMORY) {
      bucket = load<u32>(part, 16) + ((hash & load<u32>(part, 20)) << 3);
      seen ^= load<u32>(bucket);
    }
    store<u32>(slots + ((i - start) << 2), bucket);
  }
  for (let i = start; i < end; i++) {
    let bucket = load<u32>(slots + ((i - start) << 2));
    if (bucket == 0) continue;
    let row = load<u32>(bucket, 4);
    const hash = load<u32>(hashes + (i << 2));
    if (row == 0 || ((load<u32>(bucket) ^ hash) & HASH_BITS) != 0) {
      const part = partitionOf(partitions, hash);
      bucket = 0;
      if (row != 0) bucket = findFrom(hash, (hash & load<u32>(part, 20)) + 1, part);
      store<u32>(slots + ((i - start) << 2), bucket);
      if (bucket == 0) continue;
      row = load<u32>(bucket, 4);
    }
    seen ^= load<u32>(row) ^ load<u32>(row, 20);
  }
  store<u32>(slots + (SLICE << 2), seen);
}

/** The first bucket from `position` on with this hash; 0 when an empty one comes first. */
// @ts-ignore: decorator
@inline export function findFrom(hash: u32, position: u32, part: u32): u32 {
  const buckets = load<u32>(part, 16);
  const mask = load<u32>(part, 20);
  let pos = position & mask;
  while (true) {
    const bucket = buckets + (pos << 3);
    if (load<u32>(bucket, 4) == 0) return 0;
    if (((load<u32>(bucket) ^ hash) & HASH_BITS) == 0) return bucket;
    pos = (pos + 1) & mask;
  }
}

/** All buckets of a table into one twice (or more) as large. */
export function rehash(from: u32, fromMask: u32, to: u32, toMask: u32): void {
  for (let b: u32 = 0; b <= fromMask; b++) {
    const old = from + (b << 3);
    const row = load<u32>(old, 4);
    if (row == 0) continue;
    const hash = load<u32>(old);
    let pos = hash & toMask;
    while (load<u32>(to + (pos << 3), 4) != 0) pos = (pos + 1) & toMask;
    store<u32>(to + (pos << 3), hash);
    store<u32>(to + (pos << 3), row, 4);
  }
}

/**
 * Puts the rows of a page, from byte `at` on, into the partition's table; duplicates of a key hang in a list. Stops
 * when the next duplicate has no node left and returns where, or `end`.
 * counters at `stats`: travel u32 (steps beyond the first bucket) | collisions u32 (equal hash, other key)
 */
export function insertRows(at: u32, end: u32, stride: u32, seedAt: u32, keep: u32, part: u32, work: u32, stats: u32): u32 {
  const seed = load<u64>(seedAt);
  const buckets = load<u32>(part, 16);
  const mask = load<u32>(part, 20);
  const links = load<u32>(part, 44);
  let travel = load<u32>(stats);
  let collisions = load<u32>(stats, 4);
  while (at < end) {
    // A slice small enough that what was touched is still there when it is used.
    let n: u32 = 0;
    let row = at;
    let seen: u32 = 0;
    for (; n < 256 && row < end; n++) {
      const hash = hashOf(load<u64>(row), seed) & keep;
      store<u32>(work + (n << 2), hash);
      seen ^= load<u32>(buckets + (<u32>(hash & mask) << 3));
      row += rowLength(row, stride);
    }
    store<u32>(work, seen, 1024);
    for (let i: u32 = 0; i < n; i++) {
      const hash = load<u32>(work + (i << 2));
      const key = load<u64>(at);
      let pos = hash & mask;
      while (true) {
        const bucket = buckets + (pos << 3);
        const there = load<u32>(bucket, 4);
        if (there == 0) {
          store<u32>(bucket, hash);
          store<u32>(bucket, <u32>at, 4);
          store<u32>(part, load<u32>(part, 24) + 1, 24);
          break;
        }
        const stored = load<u32>(bucket);
        if (((stored ^ hash) & HASH_BITS) == 0) {
          if (load<u64>(there) == key) {
            const node = load<u32>(part, 48);
            if (node + 16 > load<u32>(part, 52)) {
              store<u32>(stats, travel);
              store<u32>(stats, collisions, 4);
              return at;
            }
            store<u32>(node, <u32>at);
            store<u32>(node, load<u32>(links + (pos << 2)), 4);
            store<u32>(links + (pos << 2), node);
            store<u32>(part, node + 16, 48);
            store<u32>(bucket, stored | HAS_DUPLICATES);
            break;
          }
          collisions++;
        }
        travel++;
        pos = (pos + 1) & mask;
      }
      at += rowLength(at, stride);
    }
  }
  store<u32>(stats, travel);
  store<u32>(stats, collisions, 4);
  return at;
}

/**
 * Appends rows [start, n) to the raw stream of their partition, whatever it is for; those of absent partitions go
 * nowhere. Stops at the first whose page is full.
 */
export function route(rows: u32, hashes: u32, start: u32, n: u32, stride: u32, partitions: u32): u32 {
  for (let i = start; i < n; i++) {
    const part = partitionOf(partitions, load<u32>(hashes + (i << 2)));
    if (load<u32>(part) == ABSENT) continue;
    const row = load<u32>(rows + (i << 2));
    const to = load<u32>(part, 32);
    const length = rowLength(row, stride);
    if (to + length > load<u32>(part, 36)) return i;
    copyRow(to, row, length);
    store<u32>(part, to + length, 32);
    store<u32>(part, load<u32>(part, 40) + 1, 40);
  }
  return n;
}

/**
 * Rows and hashes of a large batch in the order of eight bits of their position in the table, to rowsOut and hashesOut.
 * `counts`: 256 words of work space.
 */
export function orderByBucket(rows: u32, hashes: u32, n: u32, shift: u32, rowsOut: u32, hashesOut: u32, counts: u32): void {
  memory.fill(counts, 0, 1024);
  for (let i: u32 = 0; i < n; i++) {
    const at = counts + (((load<u32>(hashes + (i << 2)) >> shift) & 255) << 2);
    store<u32>(at, load<u32>(at) + 1);
  }
  let place: u32 = 0;
  for (let digit: u32 = 0; digit < 256; digit++) {
    const at = counts + (digit << 2);
    const count = load<u32>(at);
    store<u32>(at, place);
    place += count << 2;
  }
  for (let i: u32 = 0; i < n; i++) {
    const hash = load<u32>(hashes + (i << 2));
    const at = counts + (((hash >> shift) & 255) << 2);
    const to = load<u32>(at);
    store<u32>(at, to + 4);
    store<u32>(rowsOut + to, load<u32>(rows + (i << 2)));
    store<u32>(hashesOut + to, hash);
  }
}
