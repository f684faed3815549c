/**
 * Seeded randomness that gives the same bits on every engine (insight 6.1): 32-bit integer operations only.
 *
 * Two generators. Philox4x32-10 answers a question ("the second draw of query 17 of this class") without
 * having answered any other, so what is drawn for one thing can never shift what is drawn for another.
 * xoshiro128** gives a sequence where one is enough, such as the gaps of one arrival stream.
 */

const TWO_POW_MINUS_53 = 1.1102230246251565e-16;

const LARGEST_BELOW_ONE = 1 - TWO_POW_MINUS_53;

/** (k + 1/2) / 2^53 with k the upper 53 of 64 random bits: never 0, and never 1 although the last k would round to it. */
export function uniformOf(high: number, low: number): number {
  const u = ((high >>> 5) * 67_108_864 + (low >>> 6) + 0.5) * TWO_POW_MINUS_53;
  return u < 1 ? u : LARGEST_BELOW_ONE;
}

/**
 * Philox4x32-10, a keyed permutation of counters. One object per stream; the answer to the last question is
 * in the fields `w0` to `w3`.
 */
export class Philox {
  readonly #key0: number;
  readonly #key1: number;
  w0 = 0;
  w1 = 0;
  w2 = 0;
  w3 = 0;

  constructor(key0: number, key1: number) {
    this.#key0 = key0 >>> 0;
    this.#key1 = key1 >>> 0;
  }

  /** hot: bench/workload */
  at(c0: number, c1: number, c2: number, c3: number): void {
    let a = c0 >>> 0;
    let b = c1 >>> 0;
    let c = c2 >>> 0;
    let d = c3 >>> 0;
    let k0 = this.#key0;
    let k1 = this.#key1;
    for (let round = 0; round < 10; round++) {
      const high0 = multiplyHigh(0xd2511f53, a);
      const low0 = Math.imul(0xd2511f53, a);
      const high1 = multiplyHigh(0xcd9e8d57, c);
      const low1 = Math.imul(0xcd9e8d57, c);
      a = (high1 ^ b ^ k0) >>> 0;
      b = low1 >>> 0;
      c = (high0 ^ d ^ k1) >>> 0;
      d = low0 >>> 0;
      k0 = (k0 + 0x9e3779b9) >>> 0;
      k1 = (k1 + 0xbb67ae85) >>> 0;
    }
    this.w0 = a;
    this.w1 = b;
    this.w2 = c;
    this.w3 = d;
  }

  /** First and second uniform of the last answer. */
  first(): number {
    return uniformOf(this.w0, this.w1);
  }

  second(): number {
    return uniformOf(this.w2, this.w3);
  }
}

/** Upper 32 bits of the 64-bit product of two unsigned 32-bit numbers. In halves: doubles take three times as long. */
function multiplyHigh(x: number, y: number): number {
  const xl = x & 0xffff;
  const xh = x >>> 16;
  const yl = y & 0xffff;
  const yh = y >>> 16;
  const low = Math.imul(xl, yl) >>> 0;
  const middle = Math.imul(xh, yl) >>> 0;
  const other = Math.imul(xl, yh) >>> 0;
  const carry = (low >>> 16) + (middle & 0xffff) + (other & 0xffff);
  return (Math.imul(xh, yh) + (middle >>> 16) + (other >>> 16) + (carry >>> 16)) >>> 0;
}

/** xoshiro128**: a sequence of 32-bit words, period 2^128 - 1. */
export class Xoshiro128 {
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  /** Any state but four zeros. */
  constructor(a: number, b: number, c: number, d: number) {
    this.#a = a | 0;
    this.#b = b | 0;
    this.#c = c | 0;
    this.#d = d | 0;
  }

  /** hot: bench/workload. Unsigned 32 bits. */
  next(): number {
    const b = this.#b;
    const times5 = Math.imul(b, 5);
    const result = Math.imul((times5 << 7) | (times5 >>> 25), 9) >>> 0;
    const t = b << 9;
    this.#c ^= this.#a;
    this.#d ^= b;
    this.#b = b ^ this.#c;
    this.#a ^= this.#d;
    this.#c ^= t;
    this.#d = (this.#d << 11) | (this.#d >>> 21);
    return result;
  }

  uniform(): number {
    const high = this.next();
    return uniformOf(high, this.next());
  }

  /** 2^64 steps ahead. */
  jump(): void {
    const polynomial = [0x8764000b, 0xf542d2d3, 0x6fa035c3, 0x77f2db5b];
    let a = 0;
    let b = 0;
    let c = 0;
    let d = 0;
    for (const word of polynomial) {
      for (let bit = 0; bit < 32; bit++) {
        if ((word & (1 << bit)) !== 0) {
          a ^= this.#a;
          b ^= this.#b;
          c ^= this.#c;
          d ^= this.#d;
        }
        this.next();
      }
    }
    this.#a = a;
    this.#b = b;
    this.#c = c;
    this.#d = d;
  }
}

/**
 * Stream of a run = (seed, replication, purpose). Purposes are texts such as `hold/tile`, so that adding a
 * class leaves the streams of all others as they were.
 */
export const philoxFor = (seed: number, purpose: string): Philox => new Philox(seed, hashOf(purpose));

export function xoshiroFor(seed: number, replication: number, purpose: string): Xoshiro128 {
  const source = philoxFor(seed, purpose);
  source.at(replication, 0, 0, 0x5eed);
  return source.w0 === 0 && source.w1 === 0 && source.w2 === 0 && source.w3 === 0
    ? new Xoshiro128(1, 2, 3, 4)
    : new Xoshiro128(source.w0, source.w1, source.w2, source.w3);
}

/** FNV-1a over UTF-16 units, with a final mix so that similar names are far apart. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
