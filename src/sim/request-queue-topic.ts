/**
 * The statestore's request-queue topic in virtual time: who published what, and what a reader hasn't seen
 * (admission 7.1 to 7.4, 7.6).
 *
 * Two kinds of publishers. A controller publishes entries when its exchange comes, and the driver hands them
 * over then. A host without a controller publishes one figure per pool, its `backend_mem_reserved`, and there
 * are many of those and they move with every query; so their exchanges are no events. A change notes when the
 * host's next exchange will collect it, and the figure is moved on when a reader comes by, or when a later
 * change must not overtake it. What a reader sees is exactly what it would see with an event per exchange.
 *
 * Must keep: a reader gets each change, and never a value younger than the publisher's last exchange.
 */
import {
  NOTHING_NEW,
  type PoolFigures,
  type ReservedColumn,
  type TopicEntry,
  type TopicUpdate,
} from "../core/statestore/topic.ts";
import { TopicStore } from "../core/statestore/topic-store.ts";
import type { Bytes } from "../core/units.ts";
import type { Micros } from "./event-queue.ts";
import type { ExchangeTimes } from "./exchange-grid.ts";
import type { Placement } from "./placement.ts";
import { ReservationLayer } from "./reservation-layer.ts";

const NEVER = Number.POSITIVE_INFINITY;
/** A cell's number is its pool's above its host's: up to 65,536 hosts and 32,768 pools. */
const HOST_BITS = 16;
const HOST_MASK = 0xffff;
const NO_LOADS: ReadonlyMap<string, number> = new Map();
const NO_COLUMNS: readonly ReservedColumn[] = [];
const NO_ENTRIES: readonly TopicEntry[] = [];

/** What hosts hold for one pool, and how far that has got; one place per host. */
class PoolCells {
  readonly pool: string;
  /** Held now; and as the host collected it last: equal, and it has nothing to publish. */
  readonly current: Float64Array;
  readonly sent: Float64Array;
  /** When the host's next exchange takes `current`; NEVER: nothing to take. */
  readonly collectAt: Float64Array;
  /** `sent` is in the topic from this moment on; NEVER: nothing on its way. */
  readonly arrivesAt: Float64Array;
  readonly isMoving: Uint8Array;
  /** In the topic: NaN is no entry. The sum of what was collected here and of the layers' part. */
  readonly column: ReservedColumn;
  readonly ofCells: Float64Array;
  readonly ofLayers: Float64Array;
  /** By placement; only in a run that may keep them (`keepLayers`). */
  readonly layers = new Map<Placement, ReservationLayer>();
  readonly versions: Float64Array;
  /** Newest of `versions`. */
  version = 0;

  constructor(pool: string, hosts: readonly string[]) {
    const n = hosts.length;
    this.pool = pool;
    this.current = new Float64Array(n);
    this.sent = new Float64Array(n);
    this.collectAt = new Float64Array(n).fill(NEVER);
    this.arrivesAt = new Float64Array(n).fill(NEVER);
    this.isMoving = new Uint8Array(n);
    this.column = { pool, hosts, bytes: new Float64Array(n).fill(Number.NaN) };
    this.versions = new Float64Array(n);
    this.ofCells = new Float64Array(n);
    this.ofLayers = new Float64Array(n);
  }

  layerOf(placement: Placement): ReservationLayer {
    let layer = this.layers.get(placement);
    if (layer === undefined) {
      layer = new ReservationLayer(placement);
      this.layers.set(placement, layer);
    }
    return layer;
  }
}

interface MovingLayer {
  readonly cells: PoolCells;
  readonly layer: ReservationLayer;
}

/** What one controller has seen of the topic. */
export interface TopicReader {
  readonly address: string;
  seen: number;
  /** It starts from nothing: its next update is a full one. */
  needsFull: boolean;
}

interface Sent {
  readonly at: Micros;
  readonly publisher: string;
  readonly entries: readonly TopicEntry[];
}

export class RequestQueueTopic {
  readonly #grid: ExchangeTimes;
  readonly #receiveLag: Micros;
  readonly #publishLag: Micros;
  readonly #addresses: readonly string[];
  /** 1: the host has a controller, which speaks for it; its figures stay here until `ownReserved` asks. */
  readonly #hasController: Uint8Array;
  /** 1: the host does not reach the statestore. */
  readonly #isSilent: Uint8Array;
  /** By pool number. */
  readonly #pools: PoolCells[] = [];
  /** Cells with something to collect or on its way. */
  readonly #moving: number[] = [];
  /** Controllers' entries. */
  readonly #store = new TopicStore();
  #newestStored = 0;
  /** Counts everything that comes into the topic, from hosts and controllers. */
  #version = 0;
  /** Controllers' entries on their way, in order of arrival. */
  #sent: Sent[] = [];
  #isStopped = false;
  #keepsLayers = false;
  #movingLayers: MovingLayer[] = [];

  constructor(grid: ExchangeTimes, lags: { publish: Micros; receive: Micros }, addresses: readonly string[]) {
    this.#grid = grid;
    this.#publishLag = lags.publish;
    this.#receiveLag = lags.receive;
    this.#addresses = addresses;
    this.#hasController = new Uint8Array(addresses.length);
    this.#isSilent = new Uint8Array(addresses.length);
  }

  /** The host's controller publishes for it. */
  speaksFor(host: number): void {
    this.#hasController[host] = 1;
  }

  /**
   * What moves alike on many hosts is kept as one number. Not for runs in which hosts or the statestore fail,
   * or readers want entries instead of columns.
   */
  keepLayers(): void {
    this.#keepsLayers = true;
  }

  /** Something is not in the topic yet, or not collected. */
  get isMoving(): boolean {
    return this.#moving.length > 0 || this.#movingLayers.length > 0 || this.#sent.length > 0;
  }

  addPool(pool: number, name: string): void {
    this.#pools[pool] = new PoolCells(name, this.#addresses);
  }

  /** What a host holds for a pool. */
  heldOn(host: number, pool: number): number {
    const { current, layers } = this.#pools[pool]!;
    let held = current[host]!;
    for (const layer of layers.values()) if (layer.hosts.includes(host)) held += layer.level;
    return held;
  }

  /**
   * The hosts of a schedule where something runs hold more for the pool: so much each, the coordinator's
   * another amount; negative amounts give back. hot: bench/simulate
   */
  changeAll(placement: Placement, pool: number, onExecutor: number, onCoordinator: number, now: Micros): void {
    const { hosts, hasWork, coordinatorAt } = placement;
    const cells = this.#pools[pool]!;
    if (this.#keepsLayers) {
      this.#changeLayer(cells, placement, onExecutor, now);
      if (hasWork[coordinatorAt] === 1) this.change(hosts[coordinatorAt]!, pool, onCoordinator, now);
      return;
    }
    const { current, sent, collectAt } = cells;
    for (let i = 0; i < hosts.length; i++) {
      if (hasWork[i] === 0) continue;
      const host = hosts[i]!;
      // As in `change`, which see.
      if (collectAt[host]! < now) this.#collect(cells, host);
      const held = current[host]! + (i === coordinatorAt ? onCoordinator : onExecutor);
      current[host] = held;
      if (held === sent[host]!) collectAt[host] = NEVER;
      else if (collectAt[host] === NEVER) this.#planCollection(cells, host, pool, now);
    }
  }

  #changeLayer(cells: PoolCells, placement: Placement, by: number, now: Micros): void {
    const layer = cells.layerOf(placement);
    layer.change(by, now);
    if (layer.isMoving) return;
    layer.isMoving = true;
    this.#movingLayers.push({ cells, layer });
  }

  /** One host holds `by` bytes more for the pool. hot: bench/simulate */
  change(host: number, pool: number, by: number, now: Micros): void {
    const cells = this.#pools[pool]!;
    // An exchange of this very instant still takes the new value; an earlier one has taken the old one.
    if (cells.collectAt[host]! < now) this.#collect(cells, host);
    const held = cells.current[host]! + by;
    cells.current[host] = held;
    if (held === cells.sent[host]!) cells.collectAt[host] = NEVER;
    else if (cells.collectAt[host] === NEVER) this.#planCollection(cells, host, pool, now);
  }

  #planCollection(cells: PoolCells, host: number, pool: number, now: Micros): void {
    if (this.#isSilent[host] === 1 || this.#isStopped) return;
    cells.collectAt[host] = this.#nextCollection(host, now);
    if (this.#hasController[host] === 0) this.#setMoving(cells, host, pool);
  }

  /** What the controller on a host is told of its own host, by its exchange at `at` (admission 7.3). */
  ownReserved(host: number, pool: number, at: Micros): number {
    const cells = this.#pools[pool]!;
    if (cells.collectAt[host]! <= at) this.#collect(cells, host);
    return cells.sent[host]!;
  }

  /** A later exchange will tell the controller on the host something else. */
  hasOwnNews(host: number): boolean {
    for (const cells of this.#pools) if (cells.collectAt[host] !== NEVER) return true;
    return false;
  }

  #nextCollection(host: number, now: Micros): Micros {
    return this.#grid.atOrAfter(host, now - this.#receiveLag) + this.#receiveLag;
  }

  #setMoving(cells: PoolCells, host: number, pool: number): void {
    if (cells.isMoving[host] === 1) return;
    cells.isMoving[host] = 1;
    this.#moving.push((pool << HOST_BITS) | host);
  }

  /** A controller registers, for the first time or again: it gets everything there is. */
  register(reader: TopicReader): void {
    this.#store.subscribe(reader.address);
    reader.needsFull = true;
    reader.seen = 0;
  }

  /** What a controller's exchange brings, in the topic one publish lag from now. */
  publish(publisher: string, entries: readonly TopicEntry[], now: Micros): void {
    this.#sent.push({ at: now + this.#publishLag, publisher, entries });
  }

  /** True when the reader's next update would bring something. */
  hasNewsFor(reader: TopicReader): boolean {
    return reader.needsFull || reader.seen < this.#version;
  }

  /**
   * What the reader hasn't seen, as the statestore has it at `now`. Hosts' figures as columns (fast, and only
   * good until the next change), or as entries like everybody's.
   */
  updateFor(reader: TopicReader, now: Micros, asColumns: boolean): TopicUpdate {
    this.settle(now);
    const { seen, needsFull } = reader;
    const isDelta = !needsFull;
    reader.seen = this.#version;
    reader.needsFull = false;
    if (isDelta && seen === this.#version) return NOTHING_NEW;
    const entries = needsFull || this.#newestStored > seen ? this.#store.updateFor(reader.address).entries : NO_ENTRIES;
    if (asColumns) return { isDelta, entries, columns: this.#columnsSince(seen) };
    return { isDelta, entries: [...entries, ...this.#reservedSince(seen, needsFull)] };
  }

  #columnsSince(since: number): readonly ReservedColumn[] {
    let found: ReservedColumn[] | null = null;
    for (const cells of this.#pools) {
      if (cells.version <= since) continue;
      found ??= [];
      found.push(cells.column);
    }
    return found ?? NO_COLUMNS;
  }

  #reservedSince(since: number, isFull: boolean): TopicEntry[] {
    const found: TopicEntry[] = [];
    for (const { pool, version, versions, column } of this.#pools) {
      if (version <= since) continue;
      column.bytes.forEach((bytes, i) => {
        if (versions[i]! <= since || (isFull && Number.isNaN(bytes))) return;
        const stats = Number.isNaN(bytes) ? null : onlyReserved(bytes as Bytes);
        found.push({ kind: "pool", pool, host: this.#addresses[i]!, stats });
      });
    }
    return found;
  }

  /** Brings into the topic what has arrived by `now`. hot: bench/simulate */
  settle(now: Micros): void {
    while (this.#sent.length > 0 && this.#sent[0]!.at <= now) this.#receive(this.#sent.shift()!);
    const moving = this.#moving;
    let kept = 0;
    for (let i = 0; i < moving.length; i++) {
      const id = moving[i]!;
      const host = id & HOST_MASK;
      const cells = this.#pools[id >>> HOST_BITS]!;
      if (cells.collectAt[host]! <= now) this.#collect(cells, host);
      if (cells.arrivesAt[host]! <= now) this.#arrive(cells, host);
      if (cells.collectAt[host] === NEVER && cells.arrivesAt[host] === NEVER) cells.isMoving[host] = 0;
      else moving[kept++] = id;
    }
    moving.length = kept;
    if (this.#movingLayers.length > 0) this.#settleLayers(now);
  }

  #settleLayers(now: Micros): void {
    let isAnySettled = false;
    for (const { cells, layer } of this.#movingLayers) {
      if (!this.#settleLayer(cells, layer, now)) continue;
      layer.isMoving = false;
      isAnySettled = true;
    }
    if (isAnySettled) this.#movingLayers = this.#movingLayers.filter((m) => m.layer.isMoving);
  }

  /** True when every host has published the level as it is. */
  #settleLayer(cells: PoolCells, layer: ReservationLayer, now: Micros): boolean {
    const { hosts, published } = layer;
    let oldest = NEVER;
    for (let i = 0; i < hosts.length; i++) {
      const host = hosts[i]!;
      const collected = this.#grid.atOrBefore(host, now - this.#receiveLag - this.#publishLag) + this.#receiveLag;
      if (collected < oldest) oldest = collected;
      const level = layer.levelAt(collected);
      if (level === published[i]) continue;
      cells.ofLayers[host] = cells.ofLayers[host]! + level - published[i]!;
      published[i] = level;
      this.#put(cells, host, cells.ofCells[host]! + cells.ofLayers[host]!);
    }
    return layer.forgetBefore(oldest);
  }

  #collect(cells: PoolCells, host: number): void {
    if (this.#hasController[host] === 1) {
      cells.sent[host] = cells.current[host]!;
      cells.collectAt[host] = NEVER;
      return;
    }
    // What was collected a round ago has arrived by now: a period is longer than the lag.
    if (cells.arrivesAt[host] !== NEVER) this.#arrive(cells, host);
    cells.arrivesAt[host] = cells.collectAt[host]! + this.#publishLag;
    cells.sent[host] = cells.current[host]!;
    cells.collectAt[host] = NEVER;
  }

  #arrive(cells: PoolCells, host: number): void {
    cells.arrivesAt[host] = NEVER;
    cells.ofCells[host] = cells.sent[host]!;
    this.#put(cells, host, cells.ofCells[host]! + cells.ofLayers[host]!);
  }

  #put(cells: PoolCells, host: number, bytes: number): void {
    cells.column.bytes[host] = bytes;
    cells.versions[host] = ++this.#version;
    cells.version = this.#version;
  }

  #receive({ publisher, entries }: Sent): void {
    this.#store.publish(publisher, entries);
    this.#newestStored = ++this.#version;
  }

  // Faults

  /** The host died or was cut off: it collects nothing any more; what is on its way arrives. */
  silence(host: number, now: Micros): void {
    this.settle(now);
    this.#isSilent[host] = 1;
    for (const cells of this.#pools) cells.collectAt[host] = NEVER;
  }

  isSilent(host: number): boolean {
    return this.#isSilent[host] === 1;
  }

  /** It reaches the statestore again. A new process has published nothing yet, the old one only what it had. */
  hear(host: number, isNew: boolean, now: Micros): void {
    this.#isSilent[host] = 0;
    this.#pools.forEach((cells, pool) => {
      if (isNew) cells.sent[host] = 0;
      if (cells.current[host] !== cells.sent[host]) this.#planCollection(cells, host, pool, now);
    });
  }

  /** The host was declared failed: its entries go (admission 7.1). */
  forgetHost(host: number, now: Micros): void {
    this.settle(now);
    for (const cells of this.#pools) {
      cells.arrivesAt[host] = NEVER;
      if (!Number.isNaN(cells.column.bytes[host]!)) this.#put(cells, host, Number.NaN);
    }
  }

  /** A controller was declared failed: its entries go. */
  forgetReader(reader: TopicReader, now: Micros): void {
    this.settle(now);
    this.#sent = this.#sent.filter((s) => s.publisher !== reader.address);
    this.#store.fail(reader.address);
    this.#newestStored = ++this.#version;
  }

  /** The statestore is away: nothing is collected, and what was on its way is lost. */
  stop(now: Micros): void {
    this.settle(now);
    this.#isStopped = true;
    this.#sent = [];
    for (const cells of this.#pools) {
      cells.collectAt.fill(NEVER);
      cells.arrivesAt.fill(NEVER);
    }
  }

  /** A restarted statestore knows nothing until somebody publishes, and hosts publish changes only (T-37). */
  restart(now: Micros): void {
    this.#isStopped = false;
    this.#store.restart();
    this.#pools.forEach((cells, pool) => {
      cells.column.bytes.fill(Number.NaN);
      cells.versions.fill(++this.#version);
      cells.version = this.#version;
      cells.current.forEach((held, host) => {
        if (held !== cells.sent[host]) this.#planCollection(cells, host, pool, now);
      });
    });
  }
}

/** TPoolStats of a process without a controller: nothing but what its host reserved. */
const onlyReserved = (backendMemReserved: Bytes): PoolFigures => ({
  numAdmittedRunning: 0,
  numQueued: 0,
  backendMemReserved,
  userLoads: NO_LOADS,
  heavyQueries: [],
  minMemConsumed: 0 as Bytes,
  maxMemConsumed: 0 as Bytes,
  totalMemConsumed: backendMemReserved,
  numRunning: 0,
});
