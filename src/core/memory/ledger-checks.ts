/**
 * What must hold in a ledger at every instant: I1 to I6, I11, I23, I24 (memory 9.2) and the books of the arena,
 * as functions over a snapshot taken under the lock, or over a simulated host between two events.
 *
 * Each returns the sentences that are false, with the record and its figures; an empty list is the good case.
 */

import { pagesFor } from "./arena-pages.ts";
import {
  F_CHILD,
  F_CHILDREN,
  F_EXECUTING,
  F_KIND,
  F_LIMIT,
  F_MEM_CONSUMED,
  F_MEM_LIMIT,
  F_MEM_OTHER,
  F_MEM_PARENT,
  F_MEM_PEAK,
  F_PAGE_COUNT,
  F_PAGES,
  F_PARENT,
  F_POOL,
  F_POOL_SHARE,
  F_REMAINING_CLAIMS,
  F_RESERVATION,
  F_SCRATCH,
  F_SCRATCH_LIMIT,
  F_USED,
  get,
  KIND_CLIENT,
  KIND_FREE,
  KIND_QUERY,
  KIND_SUB,
  KIND_UNCLAIMED,
  type LedgerView,
  NONE,
  PAGE_CAPACITY,
  PAGE_FREE,
  PAGE_FRESH,
  PAGES_AT,
  PAGES_IN_USE,
  POOL_COUNT,
  POOLS_AT,
  poolReservedOf,
  ROOT,
  SCRATCH_BYTES,
  TRACKER_CAPACITY,
  TRACKER_FREE,
  TRACKER_FRESH,
  TRACKERS_IN_USE,
  UNDO_COUNT,
} from "./ledger-layout.ts";

/** Every sentence that a consistent ledger makes true. */
export function checkLedger(v: LedgerView): string[] {
  const broken: string[] = [];
  const say = (holds: boolean, what: string, t: number): void => {
    if (!holds) broken.push(`${what}, ${describe(v, t)}`);
  };
  say(v.f64[UNDO_COUNT] === 0, "no step is half done", ROOT);
  const live = liveTrackers(v);
  for (const t of live) checkTracker(v, t, say);
  checkSums(v, live, say);
  checkRecordLists(v, live, say);
  checkPages(v, live, say);
  return broken;
}

/** I24: nobody is here and nothing is held. Empty when idle. */
export function checkIdle(v: LedgerView): string[] {
  const broken = checkLedger(v);
  const zero = (place: number, what: string): void => {
    if (v.f64[place] !== 0) broken.push(`I24 ${what} is ${v.f64[place]} on an idle host`);
  };
  if (v.f64[TRACKERS_IN_USE] !== 1) broken.push(`I24 ${v.f64[TRACKERS_IN_USE]! - 1} trackers are open on an idle host`);
  zero(PAGES_IN_USE, "the number of pages in use");
  zero(SCRATCH_BYTES, "scratch");
  for (let p = 0; p < v.f64[POOL_COUNT]!; p++) zero(v.f64[POOLS_AT]! + p, `pool ${p}'s reserved memory`);
  for (const [field, name] of [
    [F_RESERVATION, "root reservation"],
    [F_CHILD, "root child"],
    [F_MEM_CONSUMED, "process consumption"],
  ] as const)
    if (get(v, ROOT, field) !== 0) broken.push(`I24 ${name} is ${get(v, ROOT, field)} on an idle host`);
  return broken;
}

/** Records in use, the root first. */
export function liveTrackers(v: LedgerView): number[] {
  const live: number[] = [];
  for (let t = 0; t < v.f64[TRACKER_FRESH]!; t++) if (get(v, t, F_KIND) !== KIND_FREE) live.push(t);
  return live;
}

type Say = (holds: boolean, what: string, tracker: number) => void;

function checkTracker(v: LedgerView, t: number, say: Say): void {
  const limit = get(v, t, F_LIMIT);
  const reservation = get(v, t, F_RESERVATION);
  const used = get(v, t, F_USED);
  const child = get(v, t, F_CHILD);
  const consumed = get(v, t, F_MEM_CONSUMED);
  say(reservation >= 0, "I1 reservation >= 0", t);
  say(limit < 0 || reservation <= limit, "I1 reservation <= limit", t);
  say(used >= 0, "I1 used >= 0", t);
  say(child >= 0, "I1 child >= 0", t);
  say(used + child <= reservation, "I1 used + child <= reservation", t);
  say(consumed >= 0, "I5 consumption >= 0", t);
  say(get(v, t, F_MEM_PEAK) >= consumed, "I5 peak >= consumption", t);
  const memLimit = get(v, t, F_MEM_LIMIT);
  // Plain consumption may pass a limit by design (I14); what is reserved may not.
  say(memLimit < 0 || consumed - othersBelow(v, t) <= memLimit, "I14 reservations stay under the memory limit", t);
  switch (get(v, t, F_KIND)) {
    case KIND_QUERY:
      checkQuery(v, t, say);
      break;
    case KIND_UNCLAIMED:
      say(get(v, t, F_REMAINING_CLAIMS) >= 0, "I11 remaining claims >= 0", t);
      break;
    case KIND_CLIENT:
      say(get(v, t, F_PAGE_COUNT) <= pagesFor(v, used), "a client's pages stand for no more than it uses", t);
      break;
    default:
      say(get(v, t, F_PAGE_COUNT) === 0, "only a client has pages", t);
  }
}

function checkQuery(v: LedgerView, t: number, say: Say): void {
  const limit = get(v, t, F_MEM_LIMIT);
  const share = get(v, t, F_EXECUTING) === 1 && limit > 0 ? limit : get(v, t, F_MEM_CONSUMED);
  say(get(v, t, F_POOL_SHARE) === share, "7.2 the pool counts the query's limit or consumption", t);
  const scratchLimit = get(v, t, F_SCRATCH_LIMIT);
  const scratch = get(v, t, F_SCRATCH);
  say(scratch >= 0 && (scratchLimit < 0 || scratch <= scratchLimit), "I12 scratch is within its limit", t);
}

/** I2, I3, I5, I6 and the sums over pools and scratch: exact equality. */
function checkSums(v: LedgerView, live: readonly number[], say: Say): void {
  const child = new Map<number, number>();
  const consumed = new Map<number, number>();
  const children = new Map<number, number>();
  const pools = new Map<number, number>();
  const plus = (m: Map<number, number>, key: number, n: number): void => void m.set(key, (m.get(key) ?? 0) + n);
  let scratch = 0;
  for (const t of live) {
    const parent = get(v, t, F_PARENT);
    const memParent = get(v, t, F_MEM_PARENT);
    if (parent !== NONE) plus(child, parent, get(v, t, F_RESERVATION));
    if (parent !== NONE) plus(children, parent, 1);
    if (memParent !== parent) plus(children, memParent, 1);
    if (memParent !== NONE) plus(consumed, memParent, get(v, t, F_MEM_CONSUMED));
    if (get(v, t, F_KIND) !== KIND_QUERY) continue;
    plus(pools, get(v, t, F_POOL), get(v, t, F_POOL_SHARE));
    scratch += get(v, t, F_SCRATCH);
  }
  for (const t of live) {
    say(get(v, t, F_CHILD) === (child.get(t) ?? 0), "I2 child = sum of the children's reservations", t);
    say(get(v, t, F_CHILDREN) === (children.get(t) ?? 0), "the number of children is right", t);
    // What a tracker holds itself: reservation that no child has, and other memory (I5, I6).
    const own = t === ROOT || get(v, t, F_KIND) === KIND_SUB ? 0 : get(v, t, F_RESERVATION) - get(v, t, F_CHILD);
    const subs = live.filter((c) => get(v, c, F_KIND) === KIND_SUB && get(v, c, F_PARENT) === t);
    const inSubs = subs.reduce((n, c) => n + get(v, c, F_RESERVATION), 0);
    const sum = own + inSubs + get(v, t, F_MEM_OTHER) + (consumed.get(t) ?? 0);
    say(get(v, t, F_MEM_CONSUMED) === sum, `I5 consumption = own bytes + sum of children (${sum})`, t);
  }
  for (let p = 0; p < v.f64[POOL_COUNT]!; p++)
    if (poolReservedOf(v, p) !== (pools.get(p) ?? 0)) say(false, `7.2 pool ${p} counts its queries' shares`, ROOT);
  say(v.f64[SCRATCH_BYTES] === scratch, "I12 the host's scratch = sum over its queries", ROOT);
}

function checkRecordLists(v: LedgerView, live: readonly number[], say: Say): void {
  const fresh = v.f64[TRACKER_FRESH]!;
  let free = 0;
  for (let t = v.f64[TRACKER_FREE]!; t !== NONE && free <= fresh; t = get(v, t, F_PARENT)) {
    say(get(v, t, F_KIND) === KIND_FREE, "the free list holds free records only", t);
    free++;
  }
  say(fresh <= v.f64[TRACKER_CAPACITY]!, "no record beyond the ledger", ROOT);
  say(live.length === v.f64[TRACKERS_IN_USE], "the number of records in use is right", ROOT);
  say(free + live.length === fresh, "every record is in use or in the free list", ROOT);
}

/** I8, I9 for the arena: every page in exactly one list, and all lists together are what was ever given out. */
function checkPages(v: LedgerView, live: readonly number[], say: Say): void {
  const links = v.f64[PAGES_AT]!;
  const fresh = v.f64[PAGE_FRESH]!;
  const seen = new Set<number>();
  const walk = (head: number, owner: number): number => {
    let n = 0;
    for (let p = head; p !== NONE && n <= fresh; p = v.f64[links + p]!) {
      if (p < 0 || p >= fresh || seen.has(p)) say(false, `I9 page ${p} is in exactly one place`, owner);
      seen.add(p);
      n++;
    }
    return n;
  };
  let inUse = 0;
  for (const t of live) {
    const n = walk(t === ROOT ? NONE : get(v, t, F_PAGES), t);
    say(n === get(v, t, F_PAGE_COUNT), "a client's list is as long as it says", t);
    inUse += n;
  }
  const free = walk(v.f64[PAGE_FREE]!, ROOT);
  say(inUse === v.f64[PAGES_IN_USE], "I8 pages in use are counted right", ROOT);
  say(inUse + free === fresh, "I8 in use + free = ever given out", ROOT);
  say(fresh <= v.f64[PAGE_CAPACITY]!, "I8 the arena is never over its limit", ROOT);
}

/** Memory outside reservations in the subtree of MemTrackers below t, t included. */
function othersBelow(v: LedgerView, t: number): number {
  let sum = 0;
  for (const i of liveTrackers(v))
    for (let up = i; up !== NONE; up = get(v, up, F_MEM_PARENT))
      if (up === t) {
        sum += get(v, i, F_MEM_OTHER);
        break;
      }
  return sum;
}

const describe = (v: LedgerView, t: number): string =>
  `tracker ${t} (kind ${get(v, t, F_KIND)}): limit=${get(v, t, F_LIMIT)} reservation=${get(v, t, F_RESERVATION)} used=${get(v, t, F_USED)} child=${get(v, t, F_CHILD)} consumed=${get(v, t, F_MEM_CONSUMED)}`;
