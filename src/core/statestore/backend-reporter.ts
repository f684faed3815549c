/**
 * What a process that only executes publishes (admission 7.1): its reservations per pool.
 *
 * In the product every impalad has a whole admission controller for this; here it needs only the part that
 * speaks. It marks a pool when its reservation changes, like a controller's memory refresh (7.3), and its
 * own host map is left out, as readers take nothing from it (7.2).
 */
import { type BackendUsage, NO_USAGE } from "../admission/pool-stats.ts";
import type { PoolFigures, TopicEntry } from "./topic.ts";

const NO_LOADS: ReadonlyMap<string, number> = new Map();

export class BackendReporter {
  readonly hostId: string;
  readonly #pools = new Map<string, { usage: BackendUsage; published: number }>();

  constructor(hostId: string) {
    this.hostId = hostId;
  }

  setBackendUsage(pool: string, usage: BackendUsage): void {
    const known = this.#pools.get(pool);
    if (known === undefined) this.#pools.set(pool, { usage, published: NO_USAGE.memReserved });
    else known.usage = usage;
  }

  /** Pools in the order in which they were first heard of. */
  collectUpdate(): TopicEntry[] {
    const entries: TopicEntry[] = [];
    for (const [pool, p] of this.#pools) {
      if (p.usage.memReserved === p.published) continue;
      p.published = p.usage.memReserved;
      entries.push({ kind: "pool", pool, host: this.hostId, stats: figuresOf(p.usage) });
    }
    return entries;
  }
}

const figuresOf = (usage: BackendUsage): PoolFigures => ({
  numAdmittedRunning: 0,
  numQueued: 0,
  backendMemReserved: usage.memReserved,
  userLoads: NO_LOADS,
  heavyQueries: usage.heavyQueries,
  minMemConsumed: usage.minMemConsumed,
  maxMemConsumed: usage.maxMemConsumed,
  totalMemConsumed: usage.totalMemConsumed,
  numRunning: usage.numRunning,
});
