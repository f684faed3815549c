/**
 * Probing sixteen partitions at once (O20): rows of tables in memory give pairs, rows of spilled partitions go to
 * that partition's probe stream, rows of empty ones go nowhere.
 */
import { copyRow, rowLength, rowSum } from "./rows";
import { find, findFrom, HAS_DUPLICATES, IN_MEMORY, partitionOf, SLICE, SPILLED } from "./partitions";

/**
 * Rows [start, n). Pairs (probe row u32, build row u32) go to `out`, at most `capacity`.
 *
 * control: pairs u32 | next duplicate u32 (0: none) | collisions u32 | rows found u32
 * Stops at a row whose probe page is full or whose pairs don't fit any more; `pairs` tells which: it is `capacity`
 * in the second case. A duplicate list is gone on with where it stopped.
 */
export function probe(
  rows: u32,
  hashes: u32,
  start: u32,
  n: u32,
  stride: u32,
  partitions: u32,
  slots: u32,
  out: u32,
  capacity: u32,
  control: u32,
): u32 {
  let pairs: u32 = 0;
  let duplicate = load<u32>(control, 4);
  let collisions = load<u32>(control, 8);
  let found = load<u32>(control, 12);
  let i = start;
  let sliceStart = start;
  let sliceEnd = start;
  for (; i < n; i++) {
    if (i == sliceEnd) {
      sliceStart = i;
      sliceEnd = min(n, i + SLICE);
      find(hashes, i, sliceEnd, partitions, slots);
    }
    const hash = load<u32>(hashes + (i << 2));
    const row = load<u32>(rows + (i << 2));
    const part = partitionOf(partitions, hash);
    const state = load<u32>(part);
    if (state == IN_MEMORY) {
      if (duplicate == 0) {
        if (pairs == capacity) break;
        const key = load<u64>(row);
        let bucket = load<u32>(slots + ((i - sliceStart) << 2));
        while (bucket != 0) {
          const there = load<u32>(bucket, 4);
          const pos = (bucket - load<u32>(part, 16)) >> 3;
          if (load<u64>(there) == key) {
            store<u32>(out + (pairs << 3), row);
            store<u32>(out + (pairs << 3), there, 4);
            pairs++;
            found++;
            if ((load<u32>(bucket) & HAS_DUPLICATES) != 0) duplicate = load<u32>(load<u32>(part, 44) + (pos << 2));
            break;
          }
          collisions++;
          bucket = findFrom(hash, pos + 1, part);
        }
      }
      while (duplicate != 0 && pairs < capacity) {
        store<u32>(out + (pairs << 3), row);
        store<u32>(out + (pairs << 3), load<u32>(duplicate), 4);
        pairs++;
        duplicate = load<u32>(duplicate, 4);
      }
      if (duplicate != 0) break;
    } else if (state == SPILLED) {
      const length = rowLength(row, stride);
      const to = load<u32>(part, 32);
      if (to + length > load<u32>(part, 36)) break;
      copyRow(to, row, length);
      store<u32>(part, to + length, 32);
      store<u32>(part, load<u32>(part, 40) + 1, 40);
    }
  }
  store<u32>(control, pairs);
  store<u32>(control, duplicate, 4);
  store<u32>(control, collisions, 8);
  store<u32>(control, found, 12);
  return i;
}

/** Adds the pairs' sums to the u64 at `total`: equal for equal multisets of pairs. */
export function addPairSums(out: u32, pairs: u32, probeStride: u32, buildStride: u32, total: u32): void {
  let sum = load<u64>(total);
  for (let i: u32 = 0; i < pairs; i++) {
    const probeRow = load<u32>(out + (i << 3));
    const buildRow = load<u32>(out + (i << 3), 4);
    const a = rowSum(probeRow, rowLength(probeRow, probeStride));
    const b = rowSum(buildRow, rowLength(buildRow, buildStride));
    sum += (a ^ rotl<u64>(b, 23)) * 0x9e3779b97f4a7c15;
  }
  store<u64>(total, sum);
}
