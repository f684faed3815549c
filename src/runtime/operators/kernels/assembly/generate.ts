/**
 * Seeded rows (issue 4.4): each row is a function of seed and row number, so batches of any size give the same
 * rows and a test can ask for any part of them again.
 */
import { hashOf, mix, VARIABLE_HEADER } from "./rows";

const UNIFORM: u32 = 0;
const SORTED: u32 = 1;
const UNIQUE: u32 = 2;
const HOT: u32 = 3;
/** 4: keys were put at `keysAt` by the caller. */
const DEALT: u32 = 5;

/** x in [0, n), each equally likely, from 64 random bits. */
// @ts-ignore: decorator
@inline function below(n: u64, bits: u64): u64 {
  // The top 56 bits times n, without a 128-bit product; n is at most 2^32.
  return ((bits >> 40) * n + (((bits & 0xffffffffff) >> 8) * n >> 32)) >> 24;
}

/** Half the bits of the smallest power of four that is at least n. */
function halfBitsFor(n: u64): u64 {
  let bits: u64 = 1;
  while (bits < 32 && <u64>1 << (bits << 1) < n) bits++;
  return bits;
}

/** A permutation of 0 .. n-1: four Feistel rounds on that power of four, walked until it falls below n. */
// @ts-ignore: decorator
@inline function permuted(x: u64, n: u64, bits: u64, roundKey: u64): u64 {
  const mask = ((<u64>1) << bits) - 1;
  do {
    let left = x >> bits;
    let right = x & mask;
    for (let round: u64 = 0; round < 4; round++) {
      const next = left ^ ((((right ^ (roundKey >> (round << 3))) * 0x9e3779b97f4a7c15) >> 29) & mask);
      left = right;
      right = next;
    }
    x = (left << bits) | right;
  } while (x >= n);
  return x;
}

/** The first key of the row's own 4096 that the hash puts into partition row mod 16. */
function dealt(row: u64, seed: u64): u64 {
  let key = row << 12;
  while (<u64>(hashOf(key, seed) >> 28) != (row & 15)) key++;
  return key;
}

/**
 * Writes n rows from `firstRow` on (row number at `firstRowAt`, u64) and returns the end of the batch.
 *
 * parameters at `spec`: seed u64 | distinct u64 | hot share of 2^32 u64 | total rows u64 | kind u32 | width min u32 |
 * width max u32 | stride u32 (0: variable) | keysAt u32 | (pad) | hash seed of level 0 u64
 */
export function generate(batch: u32, n: u32, firstRowAt: u32, spec: u32): u32 {
  const seed = load<u64>(spec);
  const distinct = load<u64>(spec, 8);
  const hot = load<u64>(spec, 16);
  const total = load<u64>(spec, 24);
  const kind = load<u32>(spec, 32);
  const widthMin = load<u32>(spec, 36);
  const widthMax = load<u32>(spec, 40);
  const stride = load<u32>(spec, 44);
  const keysAt = load<u32>(spec, 48);
  const first = load<u64>(firstRowAt);
  const halfBits = halfBitsFor(total);
  const roundKey = mix(seed);
  let row = batch;
  for (let i: u32 = 0; i < n; i++) {
    const number = first + i;
    const random = mix(number * 0x9e3779b97f4a7c15 + seed);
    let key: u64;
    if (kind == UNIFORM) key = below(distinct, random);
    else if (kind == SORTED) key = number;
    else if (kind == UNIQUE) key = permuted(number, total, halfBits, roundKey);
    else if (kind == HOT) key = (random & 0xffffffff) < hot ? 0 : 1 + below(distinct, mix(random));
    else if (kind == DEALT) key = dealt(number, load<u64>(spec, 56));
    else key = load<u64>(keysAt + (i << 3));
    store<u64>(row, key);
    if (stride != 0) {
      fill(row + 8, widthMin, number, random);
      row += stride;
    } else {
      const width = widthMin + <u32>below(widthMax - widthMin + 1, mix(random + 1));
      store<u64>(row, number, 8);
      store<u32>(row, width, 16);
      fill(row + VARIABLE_HEADER, width, number, random);
      row += VARIABLE_HEADER + width;
    }
  }
  return row;
}

/** Row number first, then words that differ from row to row and from place to place. */
// @ts-ignore: decorator
@inline function fill(at: u32, width: u32, number: u64, random: u64): void {
  let word = number;
  let done: u32 = 0;
  for (; done + 8 <= width; done += 8) {
    store<u64>(at + done, word);
    word = random ^ (<u64>(done + 1) * 0xd6e8feb86659fd93);
  }
  for (; done < width; done++) {
    store<u8>(at + done, <u8>word);
    word >>= 8;
  }
}
