/**
 * The least headroom among a group's hosts, kept while single hosts change (DESIGN 6).
 *
 * A tournament tree in one Float64Array: leaf i at `size + i`, every inner node the smaller of its two
 * children, the least of all in node 1. Unused leaves are Infinity. With it a query that takes the same from
 * every host of a group is decided in constant time, whatever the group's size.
 */
export class HeadroomTree {
  readonly #size: number;
  readonly #node: Float64Array;

  constructor(leaves: number) {
    let size = 1;
    while (size < leaves) size *= 2;
    this.#size = size;
    this.#node = new Float64Array(2 * size).fill(Number.POSITIVE_INFINITY);
  }

  /** Infinity when there are no leaves. */
  get least(): number {
    return this.#node[1]!;
  }

  leaf(i: number): number {
    return this.#node[this.#size + i]!;
  }

  /** Write leaves with this, then `rebuild`: cheaper than `set` when many change. */
  put(i: number, value: number): void {
    this.#node[this.#size + i] = value;
  }

  rebuild(): void {
    const node = this.#node;
    for (let at = this.#size - 1; at >= 1; at--) node[at] = Math.min(node[2 * at]!, node[2 * at + 1]!);
  }

  /** hot: bench/decision. Stops as soon as a parent stays the same. */
  set(i: number, value: number): void {
    const node = this.#node;
    let at = this.#size + i;
    node[at] = value;
    while (at > 1) {
      const sibling = node[at ^ 1]!;
      const mine = node[at]!;
      const least = Math.min(mine, sibling);
      at >>= 1;
      if (node[at] === least) return;
      node[at] = least;
    }
  }

  /** hot: bench/decision. The first leaf from `from` on that is below `need`, -1: none. */
  firstBelow(need: number, from = 0): number {
    const node = this.#node;
    let at = this.#size + from;
    while (!(node[at]! < need)) {
      // Nothing below here: on to the subtree at the right, which exists unless every step up was from the right.
      while (at & 1) at >>= 1;
      if (at === 0) return -1;
      at++;
    }
    while (at < this.#size) {
      at *= 2;
      if (!(node[at]! < need)) at++;
    }
    return at - this.#size;
  }

  /** The same, passing over one leaf. */
  firstBelowExcept(need: number, except: number): number {
    const first = this.firstBelow(need);
    if (first !== except || first < 0) return first;
    return except + 1 < this.#size ? this.firstBelow(need, except + 1) : -1;
  }

  /** hot: bench/decision. The least of all leaves but one. */
  leastExcept(i: number): number {
    const node = this.#node;
    let least = Number.POSITIVE_INFINITY;
    for (let at = this.#size + i; at > 1; at >>= 1) {
      const sibling = node[at ^ 1]!;
      if (sibling < least) least = sibling;
    }
    return least;
  }
}
