/**
 * What must hold for a whole controller at every moment (STYLE 7): each figure is the sum over what running
 * and queued queries hold. Over plain data, so that the simulator, tests and the runtime can all ask.
 *
 * Not required, because it is not so in the product: that aggregates equal the truth (7.5), and that user
 * loads equal queued + running (T-28, unless the controller is repaired).
 */
import { fail } from "../assert.ts";
import type { ControllerSnapshot, HoldingSnapshot, PoolSnapshot } from "./snapshot.ts";

/** Throws InvariantError with the figures of the first thing that doesn't add up. */
export function checkSnapshot(s: ControllerSnapshot, repaired = false): void {
  for (const pool of s.pools) checkPool(pool, s, repaired);
  checkHosts(s);
}

function checkPool(pool: PoolSnapshot, s: ControllerSnapshot, repaired: boolean): void {
  const running = s.running.filter((q) => q.pool === pool.name);
  same(pool.localRunning, running.length, `running queries of ${pool.name}`);
  same(pool.localQueued, pool.queue.length, `queued queries of ${pool.name}`);
  same(pool.localMemAdmitted, sum(running, heldBy), `memory admitted in ${pool.name}`);
  same(
    pool.localTrivialRunning,
    sum(running, (q) => (q.isTrivial ? 1 : 0)),
    `trivial queries of ${pool.name}`,
  );
  const left = pool.totalQueued - pool.totalDequeued - pool.totalTimedOut;
  // Counters can be reset while queries wait.
  if (left >= 0 && pool.totalQueued > 0) atMost(left, pool.localQueued, `queued and not left ${pool.name}`);
  checkLoads(pool, running, s, repaired);
}

function checkLoads(
  pool: PoolSnapshot,
  running: readonly HoldingSnapshot[],
  s: ControllerSnapshot,
  repaired: boolean,
): void {
  const counted = new Map<string, number>();
  const count = (user: string) => counted.set(user, (counted.get(user) ?? 0) + 1);
  for (const q of running) if (q.tracksUser) count(q.user);
  for (const q of s.queuedUsers) if (q.pool === pool.name) count(q.user);
  for (const [user, load] of counted) {
    const known = pool.localLoads[user] ?? 0;
    if (repaired) same(known, load, `load of ${user} in ${pool.name}`);
    else atMost(load, known, `load of ${user} in ${pool.name}`);
  }
}

function checkHosts(s: ControllerSnapshot): void {
  const held = new Map<string, { mem: number; num: number; slots: number }>();
  for (const q of s.running)
    for (const { host, mem, slots } of q.hosts) {
      const h = held.get(host) ?? { mem: 0, num: 0, slots: 0 };
      held.set(host, { mem: h.mem + mem, num: h.num + 1, slots: h.slots + slots });
    }
  for (const [host, figures] of s.hosts) {
    const h = held.get(host) ?? { mem: 0, num: 0, slots: 0 };
    same(figures.memAdmitted, h.mem, `memory admitted on ${host}`);
    same(figures.numAdmitted, h.num, `queries admitted on ${host}`);
    same(figures.slotsInUse, h.slots, `slots in use on ${host}`);
  }
}

const heldBy = (q: HoldingSnapshot): number => sum(q.hosts, (h) => h.mem);

function sum<T>(items: readonly T[], figure: (item: T) => number): number {
  let total = 0;
  for (const item of items) total += figure(item);
  return total;
}

function same(known: number, counted: number, what: string): void {
  if (known !== counted) fail(`${what}: the controller says ${known}, its queries add up to ${counted}`);
}

function atMost(less: number, more: number, what: string): void {
  if (less > more) fail(`${what}: ${less} is more than ${more}`);
}
