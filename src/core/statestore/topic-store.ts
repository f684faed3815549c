/**
 * The statestore's side of the request-queue topic (admission 7.1): versions, and what each subscriber has
 * not seen yet.
 *
 * A subscriber that is at version 0 gets full updates, and after a restart of the statestore everybody is;
 * as the topic is empty then, a full update wipes what readers knew of the others until somebody publishes
 * again (7.6, T-37). Entries are transient: they are deleted when their publisher is declared failed.
 *
 * Pure bookkeeping. When an exchange takes place, and how long its two halves travel, is the driver's.
 */
import { invariant } from "../assert.ts";
import type { TopicEntry, TopicUpdate } from "./topic.ts";

/** What stands under one key. */
interface Stored {
  entry: TopicEntry;
  version: number;
  /** Whose failure deletes it. */
  publisher: string;
}

/** Keys taken apart, as entries are: making their text ten times a second for everybody costs more than the rest. */
interface OfHost {
  readonly pools: Map<string, Stored>;
  hosts: Stored | null;
}

interface Subscriber {
  seen: number;
  /** Executors want `POOL:` entries only (7.1). */
  readonly poolsOnly: boolean;
}

interface LogLine {
  readonly version: number;
  readonly stored: Stored;
}

export class TopicStore {
  #version = 0;
  /** In order of their keys' first appearance. */
  #entries: Stored[] = [];
  readonly #byHost = new Map<string, OfHost>();
  /** Every change in order of version; lines that a later change of the same key outdates are skipped. */
  #log: LogLine[] = [];
  readonly #subscribers = new Map<string, Subscriber>();

  /** A subscriber registers, or registers again: it starts from nothing. */
  subscribe(id: string, poolsOnly = false): void {
    this.#subscribers.set(id, { seen: 0, poolsOnly });
  }

  isSubscribed(id: string): boolean {
    return this.#subscribers.has(id);
  }

  /** First half of an exchange: what the subscriber hasn't seen, its own entries included. */
  updateFor(id: string): TopicUpdate {
    const subscriber = this.#subscribers.get(id);
    invariant(subscriber !== undefined, "an update goes to a subscriber");
    const isDelta = subscriber.seen > 0;
    const entries: TopicEntry[] = [];
    for (let i = this.#firstAfter(subscriber.seen); i < this.#log.length; i++) {
      const { version, stored } = this.#log[i]!;
      if (stored.version !== version) continue;
      if (!isDelta && stored.entry.stats === null) continue;
      if (subscriber.poolsOnly && stored.entry.kind !== "pool") continue;
      entries.push(stored.entry);
    }
    subscriber.seen = this.#log.at(-1)?.version ?? 0;
    return { isDelta, entries };
  }

  /** Second half: what the subscriber has to say. Ignored when it is no longer registered. */
  publish(id: string, entries: readonly TopicEntry[]): void {
    if (!this.#subscribers.has(id)) return;
    for (const entry of entries) this.#store(entry, id);
  }

  /** The subscriber is declared failed: its entries are deleted, and the others will hear of it. */
  fail(id: string): void {
    this.#subscribers.delete(id);
    for (const { publisher, entry } of this.#entries)
      if (publisher === id && entry.stats !== null) this.#store({ ...entry, stats: null }, id);
  }

  /** An empty topic; subscribers register again by themselves. */
  restart(): void {
    this.#version = 0;
    this.#entries = [];
    this.#byHost.clear();
    this.#log = [];
    this.#subscribers.clear();
  }

  #store(entry: TopicEntry, publisher: string): void {
    this.#version++;
    const stored = this.#placeOf(entry);
    stored.entry = entry;
    stored.version = this.#version;
    stored.publisher = publisher;
    this.#log.push({ version: this.#version, stored });
    if (this.#log.length > 64 + 4 * this.#entries.length) this.#compact();
  }

  #placeOf(entry: TopicEntry): Stored {
    let ofHost = this.#byHost.get(entry.host);
    if (ofHost === undefined) {
      ofHost = { pools: new Map(), hosts: null };
      this.#byHost.set(entry.host, ofHost);
    }
    if (entry.kind === "hosts") {
      ofHost.hosts ??= this.#newPlace(entry);
      return ofHost.hosts;
    }
    let stored = ofHost.pools.get(entry.pool);
    if (stored === undefined) {
      stored = this.#newPlace(entry);
      ofHost.pools.set(entry.pool, stored);
    }
    return stored;
  }

  #newPlace(entry: TopicEntry): Stored {
    const stored = { entry, version: 0, publisher: "" };
    this.#entries.push(stored);
    return stored;
  }

  #compact(): void {
    this.#log = this.#log.filter((line) => line.stored.version === line.version);
  }

  /** Index of the first line after a version. */
  #firstAfter(version: number): number {
    let low = 0;
    let high = this.#log.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#log[middle]!.version <= version) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
