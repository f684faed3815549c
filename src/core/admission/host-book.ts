/**
 * What one controller knows of every host: what it let in itself, what others published, and, per executor
 * group, the least room any member has left (admission 1.7, 4).
 *
 * Hosts are numbers here, given out as they are first seen and kept for good, so that a query can be released
 * whatever became of its host. Most queries run on every executor of a group and take the same from each;
 * such a charge is written once, on the group (`GroupLedger.mem`), and a host's own figures hold only what
 * differs from it. So at every moment
 *
 *     admitted by this controller on h = memAdmitted[h] + ledgerOf[h].mem         (0 without a ledger)
 *
 * and the same for numAdmitted and slotsInUse. A ledger lives as long as its group keeps its members; then
 * `retire` writes its charges down to the hosts, and releases of older queries go to the hosts as well.
 */
import type { BackendDescriptor } from "../cluster/backend.ts";
import type { ExecutorGroup } from "../cluster/executor-group.ts";
import type { HostFigures } from "../statestore/topic.ts";
import { HeadroomTree } from "./headroom-tree.ts";

export type HostId = number;

/** The charges and the least room of one executor group. */
export class GroupLedger {
  readonly name: string;
  /** In address order; leaf i of every tree is host `hosts[i]`. */
  readonly hosts: Int32Array;
  readonly memLimits: Float64Array;
  readonly slotLimits: Float64Array;
  /** Charged to every member alike. */
  mem = 0;
  num = 0;
  slots = 0;
  isRetired = false;
  /** limit - mem_reserved; limit - admitted by all known, `mem` not yet taken off; the same for slots. */
  readonly reservedRoom: HeadroomTree;
  readonly admittedRoom: HeadroomTree;
  readonly slotRoom: HeadroomTree;

  constructor(group: ExecutorGroup, hosts: Int32Array) {
    this.name = group.name;
    this.hosts = hosts;
    this.memLimits = Float64Array.from(group.executors, (e) => e.admitMemLimit);
    this.slotLimits = Float64Array.from(group.executors, (e) => e.admissionSlots);
    this.reservedRoom = new HeadroomTree(hosts.length);
    this.admittedRoom = new HeadroomTree(hosts.length);
    this.slotRoom = new HeadroomTree(hosts.length);
  }

  isFor(group: ExecutorGroup, book: HostBook): boolean {
    const { executors } = group;
    if (executors.length !== this.hosts.length) return false;
    return executors.every(
      (e, i) =>
        book.address(this.hosts[i]!) === e.address &&
        this.memLimits[i] === e.admitMemLimit &&
        this.slotLimits[i] === e.admissionSlots,
    );
  }
}

/** What one other controller published last, by our host numbers. */
interface RemoteFigures {
  /** The list whose positions `ids` translates; lists are shared between updates, so this rarely changes. */
  hosts: readonly string[];
  ids: Int32Array;
  mem: Float64Array<ArrayBuffer>;
  slots: Float64Array<ArrayBuffer>;
}

const NO_HOSTS: readonly string[] = [];

export class HostBook {
  readonly #ids = new Map<string, HostId>();
  #addresses: string[] = [];
  /** The address list as published; a new one only when a host was added. */
  #published: readonly string[] = NO_HOSTS;

  memReserved = new Float64Array(16);
  memAdmitted = new Float64Array(16);
  numAdmitted = new Float64Array(16);
  slotsInUse = new Float64Array(16);
  /** Sums over the other controllers. */
  remoteMem = new Float64Array(16);
  remoteSlots = new Float64Array(16);
  readonly #remote = new Map<string, RemoteFigures>();

  /** Σ over pools of the host's published backend_mem_reserved, and of how many pools (admission 7.4, 3 to 5). */
  #reservedSum = new Float64Array(16);
  #reservedPools = new Int32Array(16);
  #ledgers: GroupLedger[] = [];
  readonly #ledgerOf: (GroupLedger | null)[] = [];
  #leafOf = new Int32Array(16);
  /** Hosts whose published figures have changed since the last `settle`, each once. */
  #moved = new Int32Array(16);
  #numMoved = 0;
  /** Some of them by what another controller admitted there, not only by a reservation. */
  #haveOthersMoved = false;
  #hasMoved = new Uint8Array(16);
  /** What was published last, and at which count of changes. */
  #lastFigures: HostFigures | null = null;
  #lastFiguresAt = -1;
  #lastList: readonly string[] | null = null;
  #lastIds = new Int32Array(0);

  get size(): number {
    return this.#addresses.length;
  }

  address(h: HostId): string {
    return this.#addresses[h]!;
  }

  /** The host's number, given out now if it has none: in the product mere lookups create an entry too. */
  host(address: string): HostId {
    const known = this.#ids.get(address);
    if (known !== undefined) return known;
    const h = this.#addresses.length;
    if (h === this.memReserved.length) this.#grow();
    this.#addresses.push(address);
    this.#ids.set(address, h);
    this.#ledgerOf.push(null);
    return h;
  }

  knows(address: string): boolean {
    return this.#ids.has(address);
  }

  admittedBySelf(h: HostId): number {
    const ledger = this.#ledgerOf[h];
    return ledger ? this.memAdmitted[h]! + ledger.mem : this.memAdmitted[h]!;
  }

  numAdmittedBySelf(h: HostId): number {
    return this.numAdmitted[h]! + (this.#ledgerOf[h]?.num ?? 0);
  }

  slotsBySelf(h: HostId): number {
    const ledger = this.#ledgerOf[h];
    return ledger ? this.slotsInUse[h]! + ledger.slots : this.slotsInUse[h]!;
  }

  /** hot: bench/decision. `hostReserved(h)` of admission 4. */
  effectiveReserved(h: HostId): number {
    const reserved = this.memReserved[h]!;
    const admitted = this.admittedBySelf(h) + this.remoteMem[h]!;
    return Math.max(reserved, admitted);
  }

  /** hot: bench/decision. */
  effectiveSlots(h: HostId): number {
    return this.slotsBySelf(h) + this.remoteSlots[h]!;
  }

  memReservedOn(address: string): number {
    const h = this.#ids.get(address);
    return h === undefined ? 0 : this.effectiveReserved(h);
  }

  slotsInUseOn(address: string): number {
    const h = this.#ids.get(address);
    return h === undefined ? 0 : this.effectiveSlots(h);
  }

  /** hot: bench/decision. Adds to one host; negative amounts take away. */
  add(h: HostId, mem: number, num: number, slots: number): void {
    this.memAdmitted[h] = this.memAdmitted[h]! + mem;
    this.numAdmitted[h] = this.numAdmitted[h]! + num;
    this.slotsInUse[h] = this.slotsInUse[h]! + slots;
    const ledger = this.#ledgerOf[h];
    if (!ledger) return;
    const i = this.#leafOf[h]!;
    if (mem !== 0) ledger.admittedRoom.set(i, this.#admittedRoom(ledger, i, h));
    if (slots !== 0) ledger.slotRoom.set(i, this.#slotRoom(ledger, i, h));
  }

  #admittedRoom(ledger: GroupLedger, i: number, h: HostId): number {
    return ledger.memLimits[i]! - this.memAdmitted[h]! - this.remoteMem[h]!;
  }

  #slotRoom(ledger: GroupLedger, i: number, h: HostId): number {
    return ledger.slotLimits[i]! - this.slotsInUse[h]! - this.remoteSlots[h]!;
  }

  // ---- groups

  /** Keeps the ledgers of groups that stayed as they were and retires the others. */
  setGroups(groups: readonly ExecutorGroup[]): void {
    const before = new Map(this.#ledgers.map((l) => [l.name, l]));
    const kept = new Map<string, GroupLedger>();
    for (const g of groups) {
      const old = before.get(g.name);
      if (old?.isFor(g, this)) kept.set(g.name, old);
    }
    for (const l of this.#ledgers) if (!kept.has(l.name)) this.#retire(l);
    this.#ledgers = groups.map((g) => kept.get(g.name) ?? this.#open(g));
  }

  ledgerOfGroup(name: string): GroupLedger | null {
    return this.#ledgers.find((l) => l.name === name) ?? null;
  }

  /** Position of a host in its group's ledger, -1 when it isn't a member. */
  leafIn(ledger: GroupLedger, h: HostId): number {
    return this.#ledgerOf[h] === ledger ? this.#leafOf[h]! : -1;
  }

  #open(group: ExecutorGroup): GroupLedger {
    const hosts = Int32Array.from(group.executors, (e: BackendDescriptor) => this.host(e.address));
    const ledger = new GroupLedger(group, hosts);
    hosts.forEach((h, i) => {
      this.#ledgerOf[h] = ledger;
      this.#leafOf[h] = i;
    });
    this.#measure(ledger);
    return ledger;
  }

  #retire(ledger: GroupLedger): void {
    ledger.isRetired = true;
    for (const h of ledger.hosts) {
      this.#ledgerOf[h] = null;
      this.add(h, ledger.mem, ledger.num, ledger.slots);
    }
  }

  #measureHost(h: HostId): void {
    const ledger = this.#ledgerOf[h];
    if (!ledger) return;
    const i = this.#leafOf[h]!;
    ledger.reservedRoom.set(i, ledger.memLimits[i]! - this.memReserved[h]!);
    if (!this.#haveOthersMoved) return;
    ledger.admittedRoom.set(i, this.#admittedRoom(ledger, i, h));
    ledger.slotRoom.set(i, this.#slotRoom(ledger, i, h));
  }

  #measure(ledger: GroupLedger): void {
    ledger.hosts.forEach((h, i) => {
      ledger.reservedRoom.put(i, ledger.memLimits[i]! - this.memReserved[h]!);
      ledger.admittedRoom.put(i, this.#admittedRoom(ledger, i, h));
      ledger.slotRoom.put(i, this.#slotRoom(ledger, i, h));
    });
    ledger.reservedRoom.rebuild();
    ledger.admittedRoom.rebuild();
    ledger.slotRoom.rebuild();
  }

  /** The same when nothing but reservations moved. hot: bench/simulate */
  #measureReserved(ledger: GroupLedger): void {
    const { hosts, memLimits, reservedRoom } = ledger;
    for (let i = 0; i < hosts.length; i++) reservedRoom.put(i, memLimits[i]! - this.memReserved[hosts[i]!]!);
    reservedRoom.rebuild();
  }

  // ---- what others published

  /** `STAT:` of another controller: overwrites host by host; hosts missing from the list are kept (T-38). */
  mergeRemote(controller: string, figures: HostFigures): void {
    const remote = this.#remoteOf(controller, figures.hosts);
    for (let i = 0; i < figures.hosts.length; i++) {
      const h = remote.ids[i]!;
      if (remote.mem[h] === figures.memAdmitted[i] && remote.slots[h] === figures.slotsInUse[i]) continue;
      this.#haveOthersMoved = true;
      this.#move(h);
      this.remoteMem[h] = this.remoteMem[h]! + figures.memAdmitted[i]! - remote.mem[h]!;
      this.remoteSlots[h] = this.remoteSlots[h]! + figures.slotsInUse[i]! - remote.slots[h]!;
      remote.mem[h] = figures.memAdmitted[i]!;
      remote.slots[h] = figures.slotsInUse[i]!;
    }
  }

  forgetRemote(controller: string): void {
    const remote = this.#remote.get(controller);
    if (remote === undefined) return;
    for (let h = 0; h < remote.mem.length && h < this.size; h++) {
      if (remote.mem[h] === 0 && remote.slots[h] === 0) continue;
      this.#haveOthersMoved = true;
      this.#move(h);
      this.remoteMem[h] = this.remoteMem[h]! - remote.mem[h]!;
      this.remoteSlots[h] = this.remoteSlots[h]! - remote.slots[h]!;
    }
    this.#remote.delete(controller);
  }

  #remoteOf(controller: string, hosts: readonly string[]): RemoteFigures {
    let remote = this.#remote.get(controller);
    if (remote === undefined) {
      remote = { hosts: NO_HOSTS, ids: new Int32Array(0), mem: new Float64Array(0), slots: new Float64Array(0) };
      this.#remote.set(controller, remote);
    }
    if (remote.hosts !== hosts) {
      remote.hosts = hosts;
      remote.ids = Int32Array.from(hosts, (address) => this.host(address));
      remote.mem = grown(remote.mem, this.memReserved.length);
      remote.slots = grown(remote.slots, this.memReserved.length);
    }
    return remote;
  }

  /** One pool's published reservation on a host changes from `before` to `after`; null: no entry. */
  changeReserved(address: string, before: number | null, after: number | null): void {
    const h = this.host(address);
    this.#move(h);
    this.#reservedSum[h] = this.#reservedSum[h]! + (after ?? 0) - (before ?? 0);
    this.#reservedPools[h] = this.#reservedPools[h]! + (after === null ? 0 : 1) - (before === null ? 0 : 1);
  }

  /** The same by number; NaN: no entry. A deletion that is told of takes the host's figure with it. */
  changeReservedOn(h: HostId, before: number, after: number, isTold: boolean): void {
    this.#move(h);
    const had = !Number.isNaN(before);
    const has = !Number.isNaN(after);
    this.#reservedSum[h] = this.#reservedSum[h]! + (has ? after : 0) - (had ? before : 0);
    this.#reservedPools[h] = this.#reservedPools[h]! + (has ? 1 : 0) - (had ? 1 : 0);
    if (!has && isTold && this.#reservedPools[h] === 0) this.memReserved[h] = 0;
  }

  /**
   * The same for a list of hosts at once: where `bytes` differs from `known`, `known` takes it over. The change of
   * their sum. hot: bench/simulate
   */
  changeReservedColumn(hosts: readonly string[], known: Float64Array, bytes: Float64Array, isTold: boolean): number {
    const ids = this.#idsOf(hosts);
    let change = 0;
    for (let i = 0; i < known.length; i++) {
      const before = known[i]!;
      const after = bytes[i]!;
      if (before === after) continue;
      const had = !Number.isNaN(before);
      const has = !Number.isNaN(after);
      if (!had && !has) continue;
      known[i] = after;
      const difference = (has ? after : 0) - (had ? before : 0);
      change += difference;
      const h = ids[i]!;
      this.#move(h);
      this.#reservedSum[h] = this.#reservedSum[h]! + difference;
      if (had === has) continue;
      this.#reservedPools[h] = this.#reservedPools[h]! + (has ? 1 : -1);
      if (!has && isTold && this.#reservedPools[h] === 0) this.memReserved[h] = 0;
    }
    return change;
  }

  /** Numbers of a list of hosts; a list is looked up once. */
  #idsOf(hosts: readonly string[]): Int32Array {
    if (this.#lastList !== hosts) {
      this.#lastList = hosts;
      this.#lastIds = Int32Array.from(hosts, (address) => this.host(address));
    }
    return this.#lastIds;
  }

  /** After an update: hosts in the sum take it, explicitly deleted ones without one fall to 0, others keep theirs. */
  settle(deleted: ReadonlySet<string>): void {
    for (const address of deleted) this.#move(this.host(address));
    const moved = this.#moved;
    const count = this.#numMoved;
    const isMost = count * 4 > this.size;
    for (let i = 0; i < count; i++) {
      const h = moved[i]!;
      this.#hasMoved[h] = 0;
      if (this.#reservedPools[h]! > 0) this.memReserved[h] = this.#reservedSum[h]!;
      else if (deleted.has(this.address(h))) this.memReserved[h] = 0;
      if (!isMost) this.#measureHost(h);
    }
    if (isMost)
      for (const ledger of this.#ledgers)
        if (this.#haveOthersMoved) this.#measure(ledger);
        else this.#measureReserved(ledger);
    this.#haveOthersMoved = false;
    this.#numMoved = 0;
  }

  #move(h: HostId): void {
    if (this.#hasMoved[h] === 1) return;
    this.#hasMoved[h] = 1;
    this.#moved[this.#numMoved++] = h;
  }

  /**
   * `STAT:` of this controller: the whole map, as it is now (admission 7.2). The same object as long as
   * `changes`, the controller's count of what moved, stays the same.
   */
  publish(changes: number): HostFigures {
    if (this.#lastFigures === null || this.#lastFiguresAt !== changes) this.#lastFigures = this.#copyFigures();
    this.#lastFiguresAt = changes;
    return this.#lastFigures;
  }

  #copyFigures(): HostFigures {
    const n = this.size;
    if (this.#published.length !== n) this.#published = this.#addresses.slice();
    const memReserved = columnOf(this.memReserved, n);
    const memAdmitted = columnOf(this.memAdmitted, n);
    const numAdmitted = columnOf(this.numAdmitted, n);
    const slotsInUse = columnOf(this.slotsInUse, n);
    for (const { hosts, mem, num, slots } of this.#ledgers)
      for (let i = 0; i < hosts.length; i++) {
        const h = hosts[i]!;
        memAdmitted[h] = memAdmitted[h]! + mem;
        numAdmitted[h] = numAdmitted[h]! + num;
        slotsInUse[h] = slotsInUse[h]! + slots;
      }
    return { hosts: this.#published, memReserved, memAdmitted, numAdmitted, slotsInUse };
  }

  #grow(): void {
    const room = this.memReserved.length * 2;
    this.memReserved = grown(this.memReserved, room);
    this.memAdmitted = grown(this.memAdmitted, room);
    this.numAdmitted = grown(this.numAdmitted, room);
    this.slotsInUse = grown(this.slotsInUse, room);
    this.remoteMem = grown(this.remoteMem, room);
    this.remoteSlots = grown(this.remoteSlots, room);
    this.#reservedSum = grown(this.#reservedSum, room);
    const pools = new Int32Array(room);
    pools.set(this.#reservedPools);
    this.#reservedPools = pools;
    const hasMoved = new Uint8Array(room);
    hasMoved.set(this.#hasMoved);
    this.#hasMoved = hasMoved;
    const moved = new Int32Array(room);
    moved.set(this.#moved);
    this.#moved = moved;
    const leaves = new Int32Array(room);
    leaves.set(this.#leafOf);
    this.#leafOf = leaves;
  }
}

/** hot: bench/eta. A loop: for ten hosts it takes a twentieth of what a copied typed array takes. */
function columnOf(values: Float64Array, n: number): number[] {
  const column = new Array<number>(n);
  for (let h = 0; h < n; h++) column[h] = values[h]!;
  return column;
}

function grown(values: Float64Array<ArrayBuffer>, length: number): Float64Array<ArrayBuffer> {
  if (values.length >= length) return values;
  const longer = new Float64Array(length);
  longer.set(values);
  return longer;
}
