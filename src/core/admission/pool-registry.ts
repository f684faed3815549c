/**
 * The pools that one controller has seen, by a submission or by a topic entry, in the order in which passes
 * and updates go through them (T-11); and which of them have something to publish (admission 7.3).
 */
import { Pool } from "./pool.ts";

export class PoolRegistry {
  readonly inOrder: readonly Pool[];
  readonly #inOrder: Pool[] = [];
  readonly #byName = new Map<string, Pool>();
  readonly #order: (a: string, b: string) => number;
  #last: Pool | null = null;
  #numMarked = 0;

  constructor(order: (a: string, b: string) => number) {
    this.#order = order;
    this.inOrder = this.#inOrder;
  }

  find(name: string): Pool | undefined {
    return this.#byName.get(name);
  }

  /** hot: bench/decision. The pool, made now if it is new. */
  get(name: string): Pool {
    if (this.#last?.name === name) return this.#last;
    let pool = this.#byName.get(name);
    if (pool === undefined) {
      pool = new Pool(name);
      this.#byName.set(name, pool);
      this.#inOrder.push(pool);
      this.#inOrder.sort((a, b) => this.#order(a.name, b.name));
    }
    this.#last = pool;
    return pool;
  }

  get isAnyMarked(): boolean {
    return this.#numMarked > 0;
  }

  /** hot: bench/decision */
  mark(pool: Pool): void {
    if (pool.isMarked) return;
    pool.isMarked = true;
    this.#numMarked++;
  }

  /** The marked ones, which then are no more. */
  takeMarked(): Pool[] {
    const marked = this.#inOrder.filter((p) => p.isMarked);
    for (const pool of marked) pool.isMarked = false;
    this.#numMarked = 0;
    return marked;
  }
}
