/**
 * Controllers with one fault each, planted by overriding a public step. What the checkers are worth shows in
 * whether every one of them is found (`npm run mutants`, planted.test.ts). No fault stands in product code.
 */
import { AdmissionController } from "../../src/core/admission/controller.ts";
import type { ControllerOptions } from "../../src/core/admission/controller-options.ts";
import type { DequeueSink } from "../../src/core/admission/dequeue-pass.ts";
import type { AdmissionQuery } from "../../src/core/admission/query.ts";
import { type Membership, membershipOf } from "../../src/core/cluster/membership.ts";
import { NOTHING_NEW, type TopicEntry, type TopicUpdate } from "../../src/core/statestore/topic.ts";
import type { Bytes, Instant } from "../../src/core/units.ts";
import type { NewController } from "../../src/sim/seat.ts";

export interface Mutant {
  readonly name: string;
  /** The checker that should see it, and a seed with which it does. */
  readonly seenBy: string;
  readonly seed: number;
  readonly controller: NewController;
}

/** From its first release on, nobody is woken any more. */
class LostWakeUp extends AdmissionController {
  #isLost = false;

  override releaseQuery(q: AdmissionQuery, peak: number): boolean {
    this.#isLost = true;
    return super.releaseQuery(q, peak);
  }

  override get isPassDue(): boolean {
    return super.isPassDue && !this.#isLost;
  }
}

/** Gives the place in the pool back twice. */
class DoubleRelease extends AdmissionController {
  override releaseQuery(q: AdmissionQuery, peak: number): boolean {
    const done = super.releaseQuery(q, peak);
    if (done) q.pool.stats.releaseQuery(peak, q.isTrivial);
    return done;
  }
}

/** A rejected query keeps the place that it never had. */
class LeakOnReject extends AdmissionController {
  override submit(...args: Parameters<AdmissionController["submit"]>): AdmissionQuery {
    const q = super.submit(...args);
    if (q.state === "rejected") q.pool.stats.localRunning++;
    return q;
  }
}

/** A query cancelled in the queue goes on being counted as queued. */
class LeakOnCancel extends AdmissionController {
  override cancel(q: AdmissionQuery, now: Instant): void {
    super.cancel(q, now);
    if (q.state === "cancelled") q.pool.stats.localQueued++;
  }
}

/** Believes that every host has a slot more. */
class OffByOneSlot extends AdmissionController {
  override setMembership(membership: Membership): readonly AdmissionQuery[] {
    return super.setMembership(
      membershipOf({
        version: membership.version,
        backends: membership.backends.map((b) => ({ ...b, admissionSlots: b.admissionSlots + 1 })),
        removedCoordinators: membership.removedCoordinators,
      }),
    );
  }
}

/** A head that could not go once is not tried again while it is the head. */
class StaleHead extends AdmissionController {
  readonly #failed = new Set<AdmissionQuery>();

  override dequeuePass(now: Instant, sink: DequeueSink): void {
    const heads = this.pools.map((p) => p.queue.head).filter((q) => q !== null);
    if (heads.length > 0 && heads.every((q) => this.#failed.has(q))) return;
    super.dequeuePass(now, sink);
    for (const { queue } of this.pools) if (queue.head !== null) this.#failed.add(queue.head);
  }
}

/** Believes in hosts without end: the clamp of MEM-7 has nothing to clamp to. */
class UnclampedLimit extends AdmissionController {
  override setMembership(membership: Membership): readonly AdmissionQuery[] {
    return super.setMembership(
      membershipOf({
        version: membership.version,
        backends: membership.backends.map((b) => ({ ...b, admitMemLimit: (b.admitMemLimit * 1000) as Bytes })),
        removedCoordinators: membership.removedCoordinators,
      }),
    );
  }
}

class TimeOutCountedTwice extends AdmissionController {
  override timeOut(q: AdmissionQuery, now: Instant): void {
    super.timeOut(q, now);
    if (q.state === "timedOut") q.pool.stats.totalTimedOut++;
  }
}

/** Exchanges take place, but what came in is dropped. */
class ViewNeverRefreshed extends AdmissionController {
  override applyUpdate(_update: TopicUpdate, now: Instant): void {
    super.applyUpdate(NOTHING_NEW, now);
  }
}

/** ADM-5 finds room everywhere. */
class HostMemoryNotLookedAt extends AdmissionController {
  constructor(options: ControllerOptions) {
    super(options);
    this.hosts.ledgerOfGroup = () => null;
    this.hosts.effectiveReserved = () => 0;
  }
}

/** Hosts are charged nothing, so that all of them seem free. */
class HostsNotCharged extends AdmissionController {
  constructor(options: ControllerOptions) {
    super(options);
    this.hosts.ledgerOfGroup = () => null;
    this.hosts.add = () => undefined;
  }
}

/** What others hold on hosts is published, and read by nobody. */
class OthersHostsIgnored extends AdmissionController {
  constructor(options: ControllerOptions) {
    super(options);
    this.hosts.mergeRemote = () => undefined;
  }
}

/** ADM-4 takes what was admitted here for all there is. */
class ReservedMemoryIgnored extends AdmissionController {
  override submit(...args: Parameters<AdmissionController["submit"]>): AdmissionQuery {
    const q = super.submit(...args);
    const { stats } = q.pool;
    Object.defineProperty(stats, "effectiveMemReserved", {
      configurable: true,
      get: () => stats.localMemAdmitted,
    });
    return q;
  }
}

/** What its own host reserves never reaches its sums. */
class OwnReservationsNotTold extends AdmissionController {
  override setBackendUsage(): void {
    // Nobody hears.
  }
}

/** Has its say at every fifth exchange only. */
class PublishesRarely extends AdmissionController {
  #exchanges = 0;

  override collectUpdate(): TopicEntry[] {
    return this.#exchanges++ % 5 === 0 ? super.collectUpdate() : [];
  }
}

/** Takes from the tail: nobody's turn is kept. */
class LastInFirstOut extends AdmissionController {
  override dequeuePass(now: Instant, sink: DequeueSink): void {
    for (const { queue } of this.pools) {
      const { head } = queue;
      if (head === null || head.next === null) continue;
      queue.remove(head);
      queue.push(head);
    }
    super.dequeuePass(now, sink);
  }
}

const planted = (
  name: string,
  seenBy: string,
  seed: number,
  make: new (options: ControllerOptions) => AdmissionController,
): Mutant => ({ name, seenBy, seed, controller: (options) => new make(options) });

export const MUTANTS: readonly Mutant[] = [
  planted("lost wake-up", "wake-up", 1, LostWakeUp),
  planted("double release", "running queries", 5, DoubleRelease),
  planted("leak on reject", "running queries", 1, LeakOnReject),
  planted("leak on cancel in queue", "counters", 11, LeakOnCancel),
  planted("off-by-one slot", "own view", 3, OffByOneSlot),
  planted("stale head", "wake-up", 5, StaleHead),
  planted("unclamped limit", "clamp", 92, UnclampedLimit),
  planted("time-out counted twice", "counters", 1, TimeOutCountedTwice),
  planted("view never refreshed", "view", 6, ViewNeverRefreshed),
  planted("last in, first out", "fifo", 1, LastInFirstOut),
  planted("host memory not looked at", "own view", 5, HostMemoryNotLookedAt),
  planted("hosts not charged", "limits", 45, HostsNotCharged),
  planted("others' hosts ignored", "view", 1, OthersHostsIgnored),
  planted("reserved memory ignored", "own view", 5, ReservedMemoryIgnored),
  planted("own reservations not told", "view", 6, OwnReservationsNotTold),
  planted("publishes rarely", "overshoot", 1, PublishesRarely),
];
