/**
 * How long queries of a class held their place so far, and what that says of one that still does (insight 5.2).
 *
 * A query that has run for a minute is not a fresh one: its remaining time is drawn from past holds longer than
 * its age. Few past holds are resampled before every run, so that not knowing widens the interval; almost none
 * fall back to the whole pool's.
 */

/** Below it a class is resampled before each run. */
const ENOUGH = 200;
/** Below it the pool's holds stand in for the class's. */
const FEWEST = 20;
/** The newest are kept: traffic changes, and so does memory. */
const MOST = 5000;

export interface HoldSource {
  readonly basis: "class" | "pool";
  /** Rising, at least one. */
  readonly holds: Float64Array;
  /** So few that each run believes others (`believed`). */
  readonly isFew: boolean;
}

export interface HoldSources {
  /** null: nobody of this pool has ended yet, and nothing can be said. */
  sourceFor(pool: string, queryClass: string): HoldSource | null;
}

export class HoldBook implements HoldSources {
  readonly #byClass = new Map<string, number[]>();
  readonly #byPool = new Map<string, number[]>();
  readonly #sorted = new Map<readonly number[], Float64Array>();

  add(pool: string, queryClass: string, hold: number): void {
    this.#addTo(this.#byClass, `${pool}\n${queryClass}`, hold);
    this.#addTo(this.#byPool, pool, hold);
  }

  sourceFor(pool: string, queryClass: string): HoldSource | null {
    const own = this.#byClass.get(`${pool}\n${queryClass}`);
    if (own !== undefined && own.length >= FEWEST) return this.#sourceOf("class", own);
    const all = this.#byPool.get(pool);
    return all === undefined ? null : this.#sourceOf("pool", all);
  }

  #sourceOf(basis: HoldSource["basis"], holds: readonly number[]): HoldSource {
    return { basis, holds: this.#inOrder(holds), isFew: holds.length < ENOUGH };
  }

  #addTo(book: Map<string, number[]>, key: string, hold: number): void {
    const holds = book.get(key) ?? [];
    if (holds.length === 0) book.set(key, holds);
    this.#sorted.delete(holds);
    holds.push(hold);
    if (holds.length > MOST) holds.splice(0, holds.length - MOST);
  }

  #inOrder(holds: readonly number[]): Float64Array {
    let sorted = this.#sorted.get(holds);
    if (sorted === undefined) {
      sorted = Float64Array.from(holds).sort();
      this.#sorted.set(holds, sorted);
    }
    return sorted;
  }
}

/** What one run believes instead of few holds: as many, drawn from them with replacement. */
export const believed = (holds: Float64Array, uniform: (i: number) => number): Float64Array =>
  Float64Array.from(holds, (_, i) => holds[Math.floor(uniform(i) * holds.length)]!).sort();

/** A hold for one that has not begun. */
export const drawHold = (holds: Float64Array, u: number): number => holds[Math.floor(u * holds.length)]!;

/**
 * What is left for one that has held its place for `age`. Older than all past ones: as long again in the
 * median, and never "soon".
 */
export function drawRemaining(holds: Float64Array, age: number, u: number): number {
  const from = firstAbove(holds, age);
  const longer = holds.length - from;
  if (longer === 0) return (Math.max(1, age) * u) / (1 - u);
  return holds[from + Math.floor(u * longer)]! - age;
}

function firstAbove(sorted: Float64Array, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
