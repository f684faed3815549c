/**
 * How many queries each user has queued and running (admission 8.3). A user without any has no entry.
 */
export class UserLoads {
  readonly #loads = new Map<string, number>();

  get size(): number {
    return this.#loads.size;
  }

  get(user: string): number {
    return this.#loads.get(user) ?? 0;
  }

  increment(user: string): number {
    const load = this.get(user) + 1;
    this.#loads.set(user, load);
    return load;
  }

  /** Never below 0: an unknown user stays at 0, as in a release build of the product. */
  decrement(user: string): number {
    const load = this.get(user) - 1;
    if (load > 0) this.#loads.set(user, load);
    else this.#loads.delete(user);
    return Math.max(0, load);
  }

  set(user: string, load: number): void {
    if (load > 0) this.#loads.set(user, load);
    else this.#loads.delete(user);
  }

  add(loads: ReadonlyMap<string, number>): void {
    for (const [user, load] of loads) this.set(user, this.get(user) + load);
  }

  clear(): void {
    this.#loads.clear();
  }

  entries(): ReadonlyMap<string, number> {
    return this.#loads;
  }

  users(): string[] {
    return [...this.#loads.keys()].sort();
  }
}

/** `user1:1 user2:4 `: sorted, a blank after each, as in the product's debug text. */
export const loadsText = (loads: ReadonlyMap<string, number>): string =>
  [...loads.keys()]
    .sort()
    .map((user) => `${user}:${loads.get(user)} `)
    .join("");
