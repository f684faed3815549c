/**
 * What each kind of request is charged under a setting, by the core's own rules (admission 2, 3).
 *
 * Screening may simplify when things happen, never what they cost: amounts, limits and rejections come from
 * the same schedules and the same arithmetic as every decision.
 */

import type { ImpalaFlags } from "../../config/impala-flags.ts";
import type { FootprintProfile, QueryClass, Scenario } from "../../config/scenario.ts";
import { backendsOf } from "../../config/scenario-cluster.ts";
import { HostBook } from "../../core/admission/host-book.ts";
import type { Plan } from "../../core/admission/plan.ts";
import { PlanBook } from "../../core/admission/plan-book.ts";
import { rejectForPool } from "../../core/admission/reject.ts";
import { type Membership, membershipOf } from "../../core/cluster/membership.ts";
import { reservationLimitFor } from "../../core/memory/reservation-limit.ts";
import type { PoolConfig } from "../../core/pool-config.ts";
import { footprintHosts } from "../../sim/placement.ts";
import { skewOf, spillFactor, whenReached } from "../../sim/work.ts";
import type { RecordedRequests } from "../../workload/recorded-requests.ts";

/** Of one kind of request under one pool record. */
export interface KindNeed {
  /** MEM-10. */
  readonly cluster: number;
  /** Largest amount on one host: an executor's or the coordinator's. */
  readonly perHost: number;
  /** Executors it takes memory from; a dedicated coordinator is none. */
  readonly executors: number;
  readonly slots: number;
  readonly slotsChecked: boolean;
  /** What its limits leave for reservations on a host (R8); Infinity: no limit. */
  readonly room: number;
  /** Not null: it cannot spill, and fails when this profile crosses `room`. */
  readonly unspillable: FootprintProfile | null;
  readonly memLimit: number;
  /** It can never run under this record. */
  readonly isRejected: boolean;
}

const isOver = (need: KindNeed, peak: number): boolean => peak > need.room && !need.isRejected;

/** It goes on with less than its peak. */
export const spillsUnder = (need: KindNeed, peak: number): boolean => need.unspillable === null && isOver(need, peak);

/** It runs until it would have to spill, which it cannot. */
export const failsUnder = (need: KindNeed, peak: number): boolean => need.unspillable !== null && isOver(need, peak);

/**
 * How long it runs, as the simulator's executors have it: `duration` pays for what was `spilled` when it was recorded.
 * hot: bench/size
 */
export function holdUnder(need: KindNeed, duration: number, peak: number, spilled: number, sigma: number): number {
  if (peak <= need.room) return duration;
  return need.unspillable === null
    ? duration * spillFactor(peak - spilled, need.room, sigma)
    : duration * whenReached(need.unspillable, need.room / peak);
}

/** Needs that a book remembers, over all records. */
const MOST_KEPT = 1_000_000;

/** What of a record amounts, limits and rejections by rule depend on (admission 2, 3.1 but for the queue's length, 3.2). */
const keyOf = (c: PoolConfig): string =>
  [
    c.maxRequests === 0,
    c.maxMemResources,
    c.minQueryMemLimit,
    c.maxQueryMemLimit,
    c.clampMemLimitQueryOption,
    c.onlyCoordinators,
  ].join(" ");

export class NeedBook {
  private readonly plans: PlanBook;
  private readonly requests: RecordedRequests;
  private readonly membership: Membership;
  private readonly classes: readonly QueryClass[];
  /** Skew by class and address; null: the same everywhere. */
  private readonly skews: readonly (ReadonlyMap<string, number> | null)[];
  private readonly peaksFor = new Map<boolean, Float64Array>();
  private readonly known = new Map<string, readonly KindNeed[]>();

  constructor(scenario: Scenario, flags: ImpalaFlags, requests: RecordedRequests) {
    this.requests = requests;
    this.classes = scenario.queries;
    this.membership = membershipOf({ version: 2, backends: backendsOf(scenario.cluster) });
    const book = new HostBook();
    book.setGroups(this.membership.groups);
    this.plans = new PlanBook(this.membership, book, new Map(), {
      clampToHosts: flags.clamp_query_mem_limit_backend_mem_limit,
      dedicatedEstimates: flags.use_dedicated_coordinator_estimates,
    });
    const addresses = this.membership.backends.map((b) => b.address);
    this.skews = scenario.queries.map((c) => {
      const skew = skewOf(c, addresses);
      return skew === null ? null : new Map(addresses.map((address, i) => [address, skew[i]!]));
    });
  }

  /** Smallest host that executes; what `max-mem` can use at most (C01). */
  get smallestHost(): number {
    return Math.min(...this.membership.backends.filter((b) => b.isExecutor).map((b) => b.admitMemLimit));
  }

  get hostCount(): number {
    return this.membership.backends.filter((b) => b.isExecutor).length;
  }

  get slotsOfHost(): number {
    return Math.min(...this.membership.backends.filter((b) => b.isExecutor).map((b) => b.admissionSlots));
  }

  /**
   * By kind; kinds of other pools are worked out too, nobody asks for them. Most settings differ in what has no part in
   * it, and a log may have tens of thousands of kinds.
   */
  under(config: PoolConfig): readonly KindNeed[] {
    const key = keyOf(config);
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const needs = this.requests.kinds.map((_, kind) => this.needOf(kind, config));
    if ((this.known.size + 1) * needs.length > MOST_KEPT) this.known.clear();
    this.known.set(key, needs);
    return needs;
  }

  /** Of the first group that takes requests of the pool; null: none does. */
  groupOf(pool: string, { onlyCoordinators }: PoolConfig): string | null {
    const { kinds } = this.requests;
    for (let kind = 0; kind < kinds.length; kind++) {
      if (kinds[kind]!.pool !== pool || kinds[kind]!.shape.coordinatorOnly) continue;
      const plan = this.planOf(kind, 0, 0, onlyCoordinators);
      if (plan !== null) return plan.schedule.group;
    }
    return null;
  }

  /** Peak of each request on that of its hosts where it is largest; needs of other pools have other hosts. */
  peaksUnder({ onlyCoordinators }: PoolConfig): Float64Array {
    const { requests } = this;
    if (requests.kinds.every((k) => this.skews[k.queryClass] === null)) return requests.peak;
    let peaks = this.peaksFor.get(onlyCoordinators);
    if (peaks === undefined) {
      peaks = requests.peak.map((peak, i) => Math.round(peak * this.largestSkewOf(i, onlyCoordinators)));
      this.peaksFor.set(onlyCoordinators, peaks);
    }
    return peaks;
  }

  private largestSkewOf(i: number, onlyCoordinators: boolean): number {
    const { kind, coordinator, placementOffset } = this.requests;
    const skew = this.skews[this.requests.kinds[kind[i]!]!.queryClass] ?? null;
    if (skew === null) return 1;
    const plan = this.planOf(kind[i]!, coordinator[i]!, placementOffset[i]!, onlyCoordinators);
    return plan === null ? 1 : Math.max(...footprintHosts(plan.schedule).map((address) => skew.get(address)!));
  }

  private planOf(kind: number, coordinator: number, placementOffset: number, onlyCoordinators: boolean): Plan | null {
    const k = this.requests.kinds[kind]!;
    const request = {
      queryId: "",
      coordinator: this.requests.coordinators[coordinator]!,
      pool: k.pool,
      user: k.user,
      userGroups: k.userGroups,
      shape: k.shape,
      blacklistedExecutors: [],
      placementOffset,
    };
    const plans = this.plans.plansFor(request, onlyCoordinators);
    return typeof plans === "string" ? null : (plans[0] ?? null);
  }

  private needOf(kind: number, config: PoolConfig): KindNeed {
    const plan = this.planOf(kind, 0, 0, config.onlyCoordinators);
    if (plan === null) return NEVER_RUNS;
    plan.workOut(config);
    const { memory, schedule } = plan;
    const { queryClass, shape } = this.requests.kinds[kind]!;
    const { uses } = this.classes[queryClass]!;
    // Of those that run nowhere else, the coordinator's limit is the one that counts.
    const limit = shape.coordinatorOnly ? memory.coordinatorMemLimit : memory.memLimit;
    const room = reservationLimitFor(limit, this.smallestHost, shape.options.bufferPoolLimit);
    return {
      cluster: memory.cluster,
      perHost: Math.max(memory.perHost, memory.onCoordinator),
      executors: schedule.backends.length - (schedule.coordinatorBackend.desc.isExecutor ? 0 : 1),
      slots: schedule.executorSlots,
      slotsChecked: !plan.isSlotExempt,
      room: room < 0 ? Number.POSITIVE_INFINITY : room,
      unspillable: uses.kind === "footprint" && (!uses.spillable || room === 0) ? uses.profile : null,
      memLimit: limit,
      isRejected: rejectForPool(config) !== null || plan.rejection !== null,
    };
  }
}

const NEVER_RUNS: KindNeed = {
  cluster: 0,
  perHost: 0,
  executors: 0,
  slots: 0,
  slotsChecked: false,
  room: 0,
  unspillable: null,
  memLimit: 0,
  isRejected: true,
};
