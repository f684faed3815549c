/**
 * Grouping: one row per key, updated in place (O7, O15).
 *
 *   group of fixed rows     key i64 | count u64 | sum of payload word 1 | greatest of word 2 | ... word 3 | ...
 *   group of variable rows  key i64 | count u64 | sum of row numbers | sum of lengths
 *
 * All of them are sums or maxima, so that the order of rows and the number of times a group was merged don't show.
 */
import { copyRow, rowLength } from "./rows";
import { find, HASH_BITS, IN_MEMORY, partitionOf, SLICE } from "./partitions";

/** Kinds of rows that come in: raw or groups, made of fixed or of variable rows. */
const GROUPS: u32 = 1;
const VARIABLE: u32 = 2;

/**
 * Rows [start, n) of `kind`. A row of a spilled partition is appended as it is: raw ones to the raw stream, groups to
 * the stream of groups (O9). Stops at a row that needs a page.
 *
 * `passOn` not 0 (streaming, O15): a new group that has no room in table or page is written to `passOn` instead,
 * as a group; the number of those is added to the u32 at `control`, the end of them stands at control + 4. There
 * must be room for n groups.
 */
export function aggregate(
  rows: u32,
  hashes: u32,
  start: u32,
  n: u32,
  kind: u32,
  stride: u32,
  groupBytes: u32,
  partitions: u32,
  slots: u32,
  passOn: u32,
  control: u32,
): u32 {
  let sliceStart = start;
  let sliceEnd = start;
  for (let i = start; i < n; i++) {
    if (i == sliceEnd) {
      sliceStart = i;
      sliceEnd = min(n, i + SLICE);
      find(hashes, i, sliceEnd, partitions, slots);
    }
    const hash = load<u32>(hashes + (i << 2));
    const row = load<u32>(rows + (i << 2));
    const part = partitionOf(partitions, hash);
    if (load<u32>(part) == IN_MEMORY) {
      const key = load<u64>(row);
      const near = load<u32>(slots + ((i - sliceStart) << 2));
      if (near != 0 && load<u64>(load<u32>(near, 4)) == key) {
        addTo(load<u32>(near, 4), row, kind, groupBytes);
        continue;
      }
      // Not there when the slice was looked at: a row of this slice may have brought it since.
      const buckets = load<u32>(part, 16);
      const mask = load<u32>(part, 20);
      let pos = hash & mask;
      while (true) {
        const bucket = buckets + (pos << 3);
        const group = load<u32>(bucket, 4);
        if (group == 0) {
          const to = load<u32>(part, 4);
          const fits = to + groupBytes <= load<u32>(part, 8) && load<u32>(part, 24) < load<u32>(part, 28);
          if (fits) {
            newGroup(to, row, kind, groupBytes);
            store<u32>(bucket, hash);
            store<u32>(bucket, to, 4);
            store<u32>(part, to + groupBytes, 4);
            store<u32>(part, load<u32>(part, 12) + 1, 12);
            store<u32>(part, load<u32>(part, 24) + 1, 24);
          } else {
            if (passOn == 0) return i;
            newGroup(load<u32>(control, 4), row, kind, groupBytes);
            store<u32>(control, load<u32>(control) + 1);
            store<u32>(control, load<u32>(control, 4) + groupBytes, 4);
          }
          break;
        }
        if (((load<u32>(bucket) ^ hash) & HASH_BITS) == 0 && load<u64>(group) == key) {
          addTo(group, row, kind, groupBytes);
          break;
        }
        pos = (pos + 1) & mask;
      }
    } else {
      // Raw rows have a cursor of their own; groups go where groups are.
      const cursor: u32 = (kind & GROUPS) != 0 ? part + 4 : part + 32;
      const length = rowLength(row, stride);
      const to = load<u32>(cursor);
      if (to + length > load<u32>(cursor, 4)) return i;
      copyRow(to, row, length);
      store<u32>(cursor, to + length);
      store<u32>(cursor, load<u32>(cursor, 8) + 1, 8);
    }
  }
  return n;
}

// @ts-ignore: decorator
@inline function newGroup(to: u32, row: u32, kind: u32, groupBytes: u32): void {
  if ((kind & GROUPS) != 0) {
    copyRow(to, row, groupBytes);
    return;
  }
  store<u64>(to, load<u64>(row));
  store<u64>(to, 1, 8);
  if (kind == VARIABLE) {
    store<u64>(to, load<u64>(row, 8), 16);
    store<u64>(to, load<u32>(row, 16), 24);
    return;
  }
  for (let word: u32 = 16; word < groupBytes; word += 8) store<u64>(to + word, load<u64>(row + word));
}

// @ts-ignore: decorator
@inline function addTo(group: u32, row: u32, kind: u32, groupBytes: u32): void {
  store<u64>(group, load<u64>(group, 8) + ((kind & GROUPS) != 0 ? load<u64>(row, 8) : 1), 8);
  if (groupBytes == 16) return;
  if ((kind & VARIABLE) != 0) {
    const isGroup = (kind & GROUPS) != 0;
    store<u64>(group, load<u64>(group, 16) + load<u64>(row + (isGroup ? 16 : 8)), 16);
    store<u64>(group, load<u64>(group, 24) + (isGroup ? load<u64>(row, 24) : <u64>load<u32>(row, 16)), 24);
    return;
  }
  store<u64>(group, load<u64>(group, 16) + load<u64>(row, 16), 16);
  for (let word: u32 = 24; word < groupBytes; word += 8) {
    const value = load<i64>(row + word);
    if (value > load<i64>(group + word)) store<i64>(group + word, value);
  }
}
