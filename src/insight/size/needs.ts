/**
 * What each kind of request is charged under a setting, by the core's own rules (admission 2, 3).
 *
 * Screening may simplify when things happen, never what they cost: amounts, limits and rejections come from
 * the same schedules and the same arithmetic as every decision.
 */

import type { ImpalaFlags } from "../../config/impala-flags.ts";
import type { Scenario } from "../../config/scenario.ts";
import { backendsOf } from "../../config/scenario-cluster.ts";
import { HostBook } from "../../core/admission/host-book.ts";
import { PlanBook } from "../../core/admission/plan-book.ts";
import { rejectForPool } from "../../core/admission/reject.ts";
import { reservationAllowedBy } from "../../core/admission/reservation-math.ts";
import { type Membership, membershipOf } from "../../core/cluster/membership.ts";
import type { PoolConfig } from "../../core/pool-config.ts";
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
  /** What its limit leaves for reservations on a host; Infinity: no limit. */
  readonly room: number;
  readonly memLimit: number;
  /** It can never run under this record. */
  readonly isRejected: boolean;
}

export class NeedBook {
  private readonly plans: PlanBook;
  private readonly requests: RecordedRequests;
  private readonly membership: Membership;

  constructor(scenario: Scenario, flags: ImpalaFlags, requests: RecordedRequests) {
    this.requests = requests;
    this.membership = membershipOf({ version: 2, backends: backendsOf(scenario.cluster) });
    const book = new HostBook();
    book.setGroups(this.membership.groups);
    this.plans = new PlanBook(this.membership, book, new Map(), {
      clampToHosts: flags.clamp_query_mem_limit_backend_mem_limit,
      dedicatedEstimates: flags.use_dedicated_coordinator_estimates,
    });
  }

  /** Smallest host that executes; what `max-mem` can use at most (C01). */
  get smallestHost(): number {
    return Math.min(...this.membership.backends.filter((b) => b.isExecutor).map((b) => b.admitMemLimit));
  }

  get allHosts(): number {
    return this.membership.backends.filter((b) => b.isExecutor).reduce((sum, b) => sum + b.admitMemLimit, 0);
  }

  get hostCount(): number {
    return this.membership.backends.filter((b) => b.isExecutor).length;
  }

  get slotsOfHost(): number {
    return Math.min(...this.membership.backends.filter((b) => b.isExecutor).map((b) => b.admissionSlots));
  }

  /** By kind; kinds of other pools are worked out too, nobody asks for them. */
  under(config: PoolConfig): KindNeed[] {
    return this.requests.kinds.map((_, kind) => this.needOf(kind, config));
  }

  private needOf(kind: number, config: PoolConfig): KindNeed {
    const k = this.requests.kinds[kind]!;
    const request = {
      queryId: "",
      coordinator: this.requests.coordinators[0]!,
      pool: k.pool,
      user: k.user,
      userGroups: k.userGroups,
      shape: k.shape,
      blacklistedExecutors: [],
      placementOffset: 0,
    };
    const plans = this.plans.plansFor(request, config.onlyCoordinators);
    const plan = typeof plans === "string" ? undefined : plans[0];
    if (plan === undefined) return NEVER_RUNS;
    plan.workOut(config);
    const { memory, schedule } = plan;
    return {
      cluster: memory.cluster,
      perHost: Math.max(memory.perHost, memory.onCoordinator),
      executors: schedule.backends.length - (schedule.coordinatorBackend.desc.isExecutor ? 0 : 1),
      slots: schedule.executorSlots,
      slotsChecked: !plan.isSlotExempt,
      room: memory.memLimit < 0 ? Number.POSITIVE_INFINITY : reservationAllowedBy(memory.memLimit),
      memLimit: memory.memLimit,
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
  memLimit: 0,
  isRejected: true,
};
