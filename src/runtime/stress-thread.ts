/**
 * One thread that hammers ledgers: random steps on queries of its own, on any host, until it is told to stop or is
 * killed. It keeps its own count of what each of its clients must hold and compares after every step, so that a lost
 * update shows even where the sums still balance.
 */
import { givePages, missingPages, pagesFor, takePages } from "../core/memory/arena-pages.ts";
import { claim, takeMinimum } from "../core/memory/initial-reservations.ts";
import {
  F_MEM_OTHER,
  F_MEM_PARENT,
  F_PAGE_COUNT,
  F_RESERVATION,
  F_USED,
  get,
  type LedgerView,
  NONE,
} from "../core/memory/ledger-layout.ts";
import { release, SOFT, tryConsume } from "../core/memory/mem-trackers.ts";
import {
  allocateFrom,
  decreaseReservation,
  increaseReservation,
  increaseReservationToFit,
  releaseTo,
  transferReservation,
  unusedOf,
} from "../core/memory/reservation-trackers.ts";
import { openClient, openInstance, openQuery, openUnclaimed, takeScratch } from "../core/memory/tracker-records.ts";
import { type Xoshiro128, xoshiroFor } from "../core/random.ts";
import { MiB } from "../core/units.ts";
import { closeWithAll, type HostLedger, openHostLedger } from "./host-ledger.ts";

export interface StressSettings {
  readonly ledgers: readonly SharedArrayBuffer[];
  readonly seed: number;
  readonly lockId: number;
  readonly pools: number;
  /**
   *   word           unit     written by                   how
   *   i32[STOP]      flag     main                         Atomics
   *   i32[1 + slot]  steps    the thread in that slot      Atomics
   */
  readonly progress: SharedArrayBuffer;
  readonly slot: number;
}

export const STOP = 0;
/** Queries that a thread has open at a time. */
const MOST_OPEN = 6;
const LARGEST = 64 * MiB;

interface Held {
  readonly host: HostLedger;
  readonly query: number;
  readonly clients: readonly [number, number];
  readonly reservation: [number, number];
  readonly used: [number, number];
}

/** Returns when told to stop, with everything given back. Throws when a number is not what this thread left. */
export function hammer(settings: StressSettings): void {
  const { progress, slot, lockId, seed } = settings;
  const words = new Int32Array(progress);
  const hosts = settings.ledgers.map((l) => openHostLedger(l, lockId));
  const dice = xoshiroFor(seed, lockId, "stress");
  const open: Held[] = [];
  while (Atomics.load(words, STOP) === 0) {
    const host = hosts[below(dice, hosts.length)]!;
    if (open.length === 0 || (open.length < MOST_OPEN && dice.uniform() < 0.05)) begin(host, open, settings, dice);
    else step(open, dice);
    Atomics.add(words, 1 + slot, 1);
  }
  for (const held of open) held.host.run(closeAll, held);
}

const below = (dice: Xoshiro128, n: number): number => Math.floor(dice.uniform() * n);

function begin(host: HostLedger, open: Held[], settings: StressSettings, dice: Xoshiro128): void {
  const opened = host.run(openAll, settings.lockId, below(dice, settings.pools), below(dice, LARGEST), dice);
  if (opened === null) return;
  const { query, clients, min } = opened;
  open.push({ host, query, clients, reservation: [min, 0], used: [0, 0] });
}

function openAll(v: LedgerView, owner: number, pool: number, min: number, dice: Xoshiro128) {
  const memLimit = dice.uniform() < 0.5 ? -1 : LARGEST + below(dice, 8 * LARGEST);
  const id = [below(dice, 2 ** 32), below(dice, 2 ** 32), below(dice, 2 ** 32), 0] as const;
  const query = openQuery(v, { id, pool, memLimit: memLimit as -1, bufferPoolLimit: 0, scratchLimit: -1, owner });
  if (query === NONE) return null;
  const unclaimed = openUnclaimed(v, query, owner);
  const instance = unclaimed === NONE ? NONE : openInstance(v, query, 1, owner);
  const a = instance === NONE ? NONE : openClient(v, instance, 0, -1, owner);
  const b = a === NONE ? NONE : openClient(v, instance, 1, -1, owner);
  if (b === NONE || !takeMinimum(v, unclaimed, min, min)) {
    for (const t of [b, a, instance, unclaimed, query]) if (t !== NONE) closeWithAll(v, t);
    return null;
  }
  claim(v, unclaimed, a, min);
  closeWithAll(v, unclaimed);
  return { query, clients: [a, b] as const, min };
}

/** One random step on one of the thread's queries, in one section. */
function step(open: Held[], dice: Xoshiro128): void {
  const at = below(dice, open.length);
  const held = open[at]!;
  if (dice.uniform() < 0.03) {
    held.host.run(closeAll, held);
    open.splice(at, 1);
  } else held.host.run(randomStep, held, dice);
}

function randomStep(v: LedgerView, held: Held, dice: Xoshiro128): void {
  const i = below(dice, 2);
  const client = held.clients[i]!;
  compare(v, held, i);
  const bytes = below(dice, LARGEST);
  const unused = unusedOf(v, client);
  const used = held.used[i]!;
  switch (below(dice, 9)) {
    case 0:
      if (increaseReservation(v, client, bytes)) held.reservation[i]! += bytes;
      break;
    case 1:
      if (increaseReservationToFit(v, client, bytes)) held.reservation[i]! += Math.max(0, bytes - unused);
      break;
    case 2:
      decreaseReservation(v, client, Math.min(bytes, unused));
      held.reservation[i]! -= Math.min(bytes, unused);
      break;
    case 3:
      allocateFrom(v, client, Math.min(bytes, unused));
      held.used[i]! += Math.min(bytes, unused);
      break;
    case 4:
      takePages(v, client, new Int32Array(Math.min(64, missingPages(v, client))));
      break;
    case 5: {
      const less = Math.min(bytes, used);
      givePages(v, client, Math.max(0, get(v, client, F_PAGE_COUNT) - pagesFor(v, used - less)));
      releaseTo(v, client, less);
      held.used[i]! -= less;
      break;
    }
    case 6:
      move(v, held, i, Math.min(bytes, unused));
      break;
    case 7:
      if (!tryConsume(v, client, bytes, SOFT)) release(v, client, get(v, client, F_MEM_OTHER));
      break;
    default:
      takeScratch(v, held.query, bytes);
  }
  compare(v, held, i);
}

function move(v: LedgerView, held: Held, from: number, bytes: number): void {
  const to = 1 - from;
  if (!transferReservation(v, held.clients[from]!, held.clients[to]!, bytes)) return;
  held.reservation[from]! -= bytes;
  held.reservation[to]! += bytes;
}

function compare(v: LedgerView, held: Held, i: number): void {
  const client = held.clients[i]!;
  const reservation = get(v, client, F_RESERVATION);
  const used = get(v, client, F_USED);
  if (reservation !== held.reservation[i] || used !== held.used[i])
    throw new Error(
      `client ${client}: reservation ${reservation}, used ${used}; its thread left ${held.reservation[i]}, ${held.used[i]}`,
    );
}

function closeAll(v: LedgerView, held: Held): void {
  const instance = get(v, held.clients[0], F_MEM_PARENT);
  for (const t of [...held.clients, instance, held.query]) closeWithAll(v, t);
}
