/**
 * Do slots or host memory stop those who wait, in the state of the cluster as it is (insight 2.3)?
 *
 * A controller's reason names the first check that fails in its own view; what else would have stopped the head, and
 * whether anybody behind it could go, shows only against the exact state. Asking costs a walk over hosts, so it is
 * not asked at every moment: when a head is told of a host that was not known to stop it, and otherwise twice a
 * second, in a long run less often, between five hundred and a thousand times for every doubling of its length. The
 * driver says when an instant is over; only what differs from the last answer is told.
 */
import type { Instant } from "../units.ts";
import type { AdmissionController, GroupChecks } from "./controller.ts";
import { ExactState } from "./exact-state.ts";
import type { Pool } from "./pool.ts";
import type { AdmissionQuery } from "./query.ts";
import type { QueueReason } from "./reasons.ts";
import type { RequestShape } from "./request.ts";

/** For a queued query, and for all of its kind in its queue. */
export type TellHostCheck = (q: AdmissionQuery, slots: boolean, hostMemory: boolean, at: Instant) => void;

const FIRST_INTERVAL_MS = 500;
const FIRST_STRETCH_MS = 1000 * FIRST_INTERVAL_MS;
/** Kinds that first stand further back in a queue are not asked for, nor more of them than so many. */
const FURTHEST = 64;
const MOST_KINDS = 16;
/** Every request of a log can be a kind of its own: what was told of those long gone is forgotten with all else. */
const MOST_TOLD = 256;

const SLOTS = 1;
const HOST_MEMORY = 2;

/** Only what was let in counts: what hosts reserve beyond it is known nowhere (insight 2.4). */
const NO_RESERVATIONS = { ofPool: () => 0, onHost: () => 0 };

export class HostLooks {
  readonly #controllers: () => readonly AdmissionController[];
  readonly #tell: TellHostCheck;
  /** Last told, by queue and kind. */
  readonly #told = new WeakMap<Pool, Map<RequestShape, number>>();
  /** Asked for at the end of this instant. */
  #isAsked = false;
  #isAnyQueued = false;
  #lastLook = -1;
  /** No regular look is due before. */
  #notBefore = 0;
  /** hot: bench/simulate. Nothing is to do when an instant is over after which something happens until then. */
  idleUntil = Number.POSITIVE_INFINITY;

  /** `controllers`: all that decide, and are alive. */
  constructor(controllers: () => readonly AdmissionController[], tell: TellHostCheck) {
    this.#controllers = controllers;
    this.#tell = tell;
  }

  /** Somebody waits from now on. What was told of his queue before counts until the next look. */
  queueBegan(): void {
    this.#isAnyQueued = true;
    this.idleUntil = Math.min(this.idleUntil, this.#notBefore);
  }

  /** Its controller says that a host stops it: if that is not what was last told, it is looked at now. */
  headWaits(q: AdmissionQuery): void {
    const named = stopOf(q.latestReason!.rule);
    if (named === 0 || ((this.#told.get(q.pool)?.get(q.request.shape) ?? 0) & named) !== 0) return;
    this.#isAsked = true;
    this.idleUntil = Number.NEGATIVE_INFINITY;
  }

  /**
   * The instant is over, and nothing happens before `next`. The regular looks lie on multiples of their interval,
   * whatever else happens when; of several in one gap the first says it all.
   */
  instantOver(now: number, next: number): void {
    if (this.#isAsked) this.#look(now as Instant);
    if (this.#isAnyQueued && next > this.#notBefore) this.#lookRegularly(now, next);
    this.idleUntil = this.#isAnyQueued ? this.#notBefore : Number.POSITIVE_INFINITY;
  }

  /** Where nobody knows when the next thing happens, as in real time: what is due by now is looked at now. */
  lookNow(now: number): void {
    this.instantOver(now, now + intervalAt(now));
  }

  #lookRegularly(now: number, next: number): void {
    const interval = intervalAt(now);
    const regular = Math.ceil(now / interval) * interval;
    this.#notBefore = regular;
    if (regular >= next) return;
    if (regular > this.#lastLook) this.#look(regular as Instant);
    this.#notBefore = regular + interval;
  }

  #look(now: Instant): void {
    this.#isAsked = false;
    this.#isAnyQueued = false;
    this.#lastLook = now;
    const controllers = this.#controllers();
    const exact = new ExactState(controllers, NO_RESERVATIONS);
    for (const controller of controllers)
      for (const pool of controller.pools) {
        if (pool.queue.length === 0) continue;
        this.#isAnyQueued = true;
        this.#lookAt(pool, controller, exact, now);
      }
  }

  #lookAt(pool: Pool, controller: AdmissionController, exact: ExactState, now: Instant): void {
    let told = this.#told.get(pool);
    if (told === undefined || told.size > MOST_TOLD) {
      told = new Map();
      this.#told.set(pool, told);
    }
    const view = exact.viewOf(pool.name);
    const seen = new Set<RequestShape>();
    let left = FURTHEST;
    for (const q of pool.queue) {
      if (left-- === 0 || seen.size === MOST_KINDS) break;
      const { shape } = q.request;
      if (seen.has(shape)) continue;
      seen.add(shape);
      const checks = controller.checksFor(q, now, view);
      const stops = checks.kind === "groups" ? stopsOf(checks.groups) : 0;
      if (told.get(shape) === stops) continue;
      told.set(shape, stops);
      this.#tell(q, (stops & SLOTS) !== 0, (stops & HOST_MEMORY) !== 0, now);
    }
  }
}

/** Half a second, twice as long with every doubling of the run's length after its first eight minutes. */
function intervalAt(now: number): number {
  let interval = FIRST_INTERVAL_MS;
  for (let stretch = FIRST_STRETCH_MS; now >= stretch; stretch *= 2) interval *= 2;
  return interval;
}

/** In the group that it is nearest to being let into. */
function stopsOf(groups: readonly GroupChecks[]): number {
  let nearest = groups[0];
  for (const g of groups) if (nearest === undefined || g.failing.length < nearest.failing.length) nearest = g;
  let stops = 0;
  for (const { rule } of nearest?.failing ?? []) stops |= stopOf(rule);
  return stops;
}

const stopOf = (rule: QueueReason["rule"]): number => (rule === "ADM-3" ? SLOTS : rule === "ADM-5" ? HOST_MEMORY : 0);

/**
 * Whether a query that was just let in has more than some host can give: its controller did not know what others
 * had let in there. Hosts are asked only where its pool's rules ask them (ADM-3, ADM-5).
 */
export function isOverOnAHost(q: AdmissionQuery, controllers: readonly AdmissionController[]): boolean {
  const { schedule, isSlotExempt } = q.plan!;
  const countsMemory = q.config.maxMemResources >= 0;
  return schedule.backends.some(({ desc }) => {
    let memory = 0;
    let slots = 0;
    for (const { hosts } of controllers) {
      if (!hosts.knows(desc.address)) continue;
      const h = hosts.host(desc.address);
      memory += hosts.admittedBySelf(h);
      slots += hosts.slotsBySelf(h);
    }
    return (countsMemory && memory > desc.admitMemLimit) || (!isSlotExempt && slots > desc.admissionSlots);
  });
}
