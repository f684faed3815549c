/**
 * A controller's part in an exchange with the statestore: what goes out, what comes in, and what is summed up
 * afterwards (admission 7.3, 7.4).
 *
 * The product recomputes all aggregates at every update; here only what an entry changed is added and taken
 * away, with the same result. Two things are deliberately not symmetrical and must stay so: a full update
 * forgets other publishers' pool figures but not their host maps (T-38), and reserved memory of a host whose
 * entries vanished without being deleted keeps its last value (7.4 item 5).
 */
import type { PoolFigures, ReservedColumn, TopicEntry, TopicUpdate } from "../statestore/topic.ts";
import type { Instant } from "../units.ts";
import type { HostBook, HostId } from "./host-book.ts";
import type { Pool } from "./pool.ts";
import type { PoolRegistry } from "./pool-registry.ts";
import type { BackendUsage } from "./pool-stats.ts";
import { UserLoads } from "./user-loads.ts";

const NOBODY: Set<string> = new Set();
const NO_COLUMNS: readonly ReservedColumn[] = [];

export class TopicExchange {
  #ownNumber: HostId | null = null;
  readonly #hostId: string;
  readonly #pools: PoolRegistry;
  readonly #book: HostBook;
  /** Loads over all pools, as of the last update (T-29). */
  readonly rootLoads = new UserLoads();
  /** -1: none ever came. */
  lastUpdate = -1;
  /** Some entry told of heavy queries; until then there is nothing to look through for details. */
  knowsConsumers = false;

  constructor(hostId: string, pools: PoolRegistry, book: HostBook) {
    this.#hostId = hostId;
    this.#pools = pools;
    this.#book = book;
  }

  /** What this host's trackers say about a pool; taken over at the next exchange. */
  setBackendUsage(pool: string, usage: BackendUsage): void {
    if (usage.heavyQueries.length > 0) this.knowsConsumers = true;
    this.#pools.get(pool).stats.usage = usage;
  }

  /** Every pool's reservation as it is now; one that moved marks its pool. */
  refreshUsage(): void {
    for (const pool of this.#pools.inOrder) if (pool.stats.refreshUsage()) this.#pools.mark(pool);
  }

  /** Nothing unless a pool is marked; then those pools and the whole host map. `changes`: see `HostBook.publish`. */
  collect(changes: number): TopicEntry[] {
    this.refreshUsage();
    if (!this.#pools.isAnyMarked) return [];
    const host = this.#hostId;
    const entries = this.#pools
      .takeMarked()
      .map((pool): TopicEntry => ({ kind: "pool", pool: pool.name, host, stats: pool.stats.publish() }));
    entries.push({ kind: "hosts", host, stats: this.#book.publish(changes) });
    return entries;
  }

  /** True when a figure that decisions look at may have moved. */
  apply(update: TopicUpdate, now: Instant): boolean {
    const { isDelta, entries, columns = NO_COLUMNS } = update;
    if (!isDelta) for (const pool of this.#pools.inOrder) this.#forgetRemotes(pool);
    const deleted = entries.length > 0 ? new Set<string>() : NOBODY;
    for (const entry of entries) this.#applyEntry(entry, deleted);
    for (let i = 0; i < columns.length; i++) this.#applyColumn(columns[i]!, isDelta);
    const hasOwnMoved = this.#aggregate(deleted);
    this.lastUpdate = now;
    return !isDelta || entries.length > 0 || columns.length > 0 || hasOwnMoved;
  }

  #forgetRemotes(pool: Pool): void {
    for (const host of [...pool.stats.remotes().keys()]) this.#setRemote(pool, host, null);
  }

  /** Own entries that come back are out of date. */
  #applyEntry(entry: TopicEntry, deleted: Set<string>): void {
    if (entry.host === this.#hostId) return;
    if (entry.kind === "hosts") {
      if (entry.stats === null) this.#book.forgetRemote(entry.host);
      else this.#book.mergeRemote(entry.host, entry.stats);
      return;
    }
    if (entry.stats === null) deleted.add(entry.host);
    this.#setRemote(this.#pools.get(entry.pool), entry.host, entry.stats);
  }

  /** The same for hosts that publish nothing but a reservation; figures that didn't change cost a comparison. */
  #applyColumn({ pool, hosts, bytes }: ReservedColumn, isDelta: boolean): void {
    const { stats } = this.#pools.get(pool);
    stats.addRemoteReserved(this.#book.changeReservedColumn(hosts, stats.columnOver(hosts), bytes, isDelta));
  }

  #setRemote(pool: Pool, host: string, figures: PoolFigures | null): void {
    if (figures !== null && figures.heavyQueries.length > 0) this.knowsConsumers = true;
    const before = pool.stats.remote(host)?.backendMemReserved ?? null;
    pool.stats.setRemote(host, figures);
    const after = figures?.backendMemReserved ?? null;
    if (before !== after) this.#book.changeReserved(host, before, after);
  }

  /** True when this host's own reservations moved. */
  #aggregate(deleted: ReadonlySet<string>): boolean {
    let hasOwnMoved = false;
    let haveLoadsChanged = false;
    for (const { stats } of this.#pools.inOrder) {
      if (stats.countedMemReserved !== stats.localMemReserved) {
        this.#ownNumber ??= this.#book.host(this.#hostId);
        const before = stats.countedMemReserved ?? Number.NaN;
        this.#book.changeReservedOn(this.#ownNumber, before, stats.localMemReserved, false);
        stats.countedMemReserved = stats.localMemReserved;
        hasOwnMoved = true;
      }
      stats.updateAggregates();
      haveLoadsChanged ||= stats.loadsChanged;
    }
    this.#book.settle(deleted);
    if (haveLoadsChanged) this.#sumRootLoads();
    return hasOwnMoved;
  }

  #sumRootLoads(): void {
    this.rootLoads.clear();
    for (const { stats } of this.#pools.inOrder) {
      this.rootLoads.add(stats.aggLoads.entries());
      stats.loadsChanged = false;
    }
  }
}
