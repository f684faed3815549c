/**
 * What a row looks like and what is computed from its bytes alone: length, hash, check-sum, copies.
 *
 *   fixed     key i64 | payload, the same width in every row         (stride > 0)
 *   variable  key i64 | row number u64 | length u32 | bytes          (stride 0)
 *
 * Row by row rather than column by column: a page is what is spilled, so a row must lie in one page, and to
 * scatter it is one copy instead of one per column. Keys are signed. The first payload word of a fixed row with
 * at least 8 bytes is its row number; it breaks ties of the key, so that a sort has exactly one right answer.
 */

export const VARIABLE_HEADER: u32 = 20;

// @ts-ignore: decorator
@inline export function rowLength(row: u32, stride: u32): u32 {
  return stride != 0 ? stride : VARIABLE_HEADER + load<u32>(row, 16);
}

// @ts-ignore: decorator
@inline export function mix(x: u64): u64 {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93;
  x ^= x >> 32;
  return x;
}

/** 32 bits: the top four choose the partition (O6), the low ones the bucket. */
// @ts-ignore: decorator
@inline export function hashOf(key: u64, seed: u64): u32 {
  return <u32>(mix(key ^ seed) >> 32);
}

// @ts-ignore: decorator
@inline export function copyRow(to: u32, from: u32, length: u32): void {
  if (length == 24) {
    const a = load<u64>(from);
    const b = load<u64>(from, 8);
    const c = load<u64>(from, 16);
    store<u64>(to, a);
    store<u64>(to, b, 8);
    store<u64>(to, c, 16);
    return;
  }
  if (length > 256) {
    memory.copy(to, from, length);
    return;
  }
  let done: u32 = 0;
  for (; done + 8 <= length; done += 8) store<u64>(to + done, load<u64>(from + done));
  if (length & 4) {
    store<u32>(to + done, load<u32>(from + done));
    done += 4;
  }
  for (; done < length; done++) store<u8>(to + done, load<u8>(from + done));
}

/** Of all bytes of a row: each word times a factor of its own, so that the products don't wait for each other. */
// @ts-ignore: decorator
@inline export function rowSum(row: u32, length: u32): u64 {
  let sum: u64 = length;
  let factor: u64 = 0x9e3779b97f4a7c15;
  let done: u32 = 0;
  for (; done + 8 <= length; done += 8) {
    const word = load<u64>(row + done);
    sum += (word ^ (word >> 32)) * factor;
    factor += 0x3c6ef372fe94f82a;
  }
  let rest: u64 = 0;
  for (; done < length; done++) rest = (rest << 8) | load<u8>(row + done);
  sum += rest * factor;
  return (sum ^ (sum >> 32)) * 0xd6e8feb86659fd93;
}

/** Of a page: four lanes, so that it runs at memory speed. Whole 32-byte blocks; pages are powers of two. */
export function pageSum(at: u32, bytes: u32): u32 {
  let a: u64 = 1;
  let b: u64 = 2;
  let c: u64 = 3;
  let d: u64 = 4;
  const end = at + bytes;
  for (; at < end; at += 32) {
    a = (a ^ load<u64>(at)) * 0x9e3779b97f4a7c15;
    b = (b ^ load<u64>(at, 8)) * 0xc2b2ae3d27d4eb4f;
    c = (c ^ load<u64>(at, 16)) * 0x165667b19e3779f9;
    d = (d ^ load<u64>(at, 24)) * 0xff51afd7ed558ccd;
  }
  const all = mix(a ^ mix(b ^ mix(c ^ mix(d))));
  return <u32>(all ^ (all >> 32));
}

/**
 * Notes of a batch what every later step needs: where each row begins and its hash. Returns the end of the batch.
 * `keep` clears hash bits: without the top four every row belongs to partition 0.
 */
export function prepare(batch: u32, n: u32, stride: u32, seedAt: u32, keep: u32, rows: u32, hashes: u32): u32 {
  const seed = load<u64>(seedAt);
  let row = batch;
  for (let i: u32 = 0; i < n; i++) {
    store<u32>(rows + (i << 2), row);
    store<u32>(hashes + (i << 2), hashOf(load<u64>(row), seed) & keep);
    row += rowLength(row, stride);
  }
  return row;
}

/** Adds the rows' sums to the u64 at `total`: equal for equal multisets, whatever the order. */
export function addSums(batch: u32, n: u32, stride: u32, total: u32): void {
  let sum = load<u64>(total);
  let row = batch;
  for (let i: u32 = 0; i < n; i++) {
    const length = rowLength(row, stride);
    sum += rowSum(row, length);
    row += length;
  }
  store<u64>(total, sum);
}

/**
 * Same, and chains them in order into the u64 at total + 8. Returns how many rows are smaller than the row before;
 * the last key and row number stand at total + 16 and + 24, whether there was a row at all at total + 32.
 */
export function addInOrder(batch: u32, n: u32, stride: u32, hasNumber: bool, total: u32): u32 {
  let sum = load<u64>(total);
  let chain = load<u64>(total, 8);
  let lastKey = load<i64>(total, 16);
  let lastNumber = load<u64>(total, 24);
  let any = load<u32>(total, 32) != 0;
  let wrong: u32 = 0;
  let row = batch;
  for (let i: u32 = 0; i < n; i++) {
    const length = rowLength(row, stride);
    const s = rowSum(row, length);
    sum += s;
    chain = (chain ^ s) * 0x9e3779b97f4a7c15 + 1;
    const key = load<i64>(row);
    const number = hasNumber ? load<u64>(row, 8) : 0;
    if (any && (key < lastKey || (key == lastKey && number < lastNumber))) wrong++;
    lastKey = key;
    lastNumber = number;
    any = true;
    row += length;
  }
  store<u64>(total, sum);
  store<u64>(total, chain, 8);
  store<i64>(total, lastKey, 16);
  store<u64>(total, lastNumber, 24);
  store<u32>(total, <u32>any, 32);
  return wrong;
}

export function copyBytes(to: u32, from: u32, bytes: u32): void {
  memory.copy(to, from, bytes);
}

export function zero(at: u32, bytes: u32): void {
  memory.fill(at, 0, bytes);
}
