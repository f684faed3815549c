/**
 * Keys with Zipf's law: key k (0, 1, 2, ...) comes with a probability proportional to 1 / (k + 1)^exponent.
 *
 * By rejection from the inverse of the integral of x^-exponent (Hormann and Derflinger 1996): no table, so a hundred
 * million distinct keys cost nothing. The draws are a function of seed, row and attempt.
 */

export class ZipfKeys {
  readonly #exponent: number;
  readonly #seed: number;
  readonly #low: number;
  readonly #high: number;
  readonly #distinct: number;

  constructor(distinct: number, exponent: number, seed: number) {
    this.#distinct = distinct;
    this.#exponent = exponent;
    this.#seed = seed >>> 0;
    this.#low = this.#integral(1.5) - 1;
    this.#high = this.#integral(distinct + 0.5);
  }

  key(row: number): number {
    for (let attempt = 0; ; attempt++) {
      const u = this.#high + draw(this.#seed, row, attempt) * (this.#low - this.#high);
      const x = this.#inverse(u);
      const k = Math.min(this.#distinct, Math.max(1, Math.round(x)));
      if (u >= this.#integral(k + 0.5) - k ** -this.#exponent) return k - 1;
    }
  }

  /** Integral of x^-exponent, up to a constant. */
  #integral(x: number): number {
    const power = 1 - this.#exponent;
    return power === 0 ? Math.log(x) : (x ** power - 1) / power;
  }

  #inverse(y: number): number {
    const power = 1 - this.#exponent;
    return power === 0 ? Math.exp(y) : (1 + y * power) ** (1 / power);
  }
}

/** In [0, 1), from 53 bits. */
function draw(seed: number, row: number, attempt: number): number {
  let a = (seed ^ Math.imul(row | 0, 0x9e3779b1) ^ Math.imul(attempt + 1, 0x85ebca77)) >>> 0;
  let b = (seed + Math.floor(row / 2 ** 32) + attempt) >>> 0;
  for (let round = 0; round < 3; round++) {
    a = Math.imul(a ^ (a >>> 16), 0x7feb352d) >>> 0;
    a = (Math.imul(a ^ (a >>> 15), 0x846ca68b) ^ b) >>> 0;
    b = (Math.imul(b ^ a, 0xc2b2ae35) + a) >>> 0;
    b ^= b >>> 15;
  }
  return ((a >>> 5) * 2 ** 26 + (b >>> 6)) / 2 ** 53;
}
