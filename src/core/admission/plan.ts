/**
 * A schedule as one controller works with it: host numbers instead of names, and what does not change from
 * query to query worked out once: memory to admit and the schedule-level rejection for the pool's current
 * configuration (DESIGN 6).
 *
 * Shared by all queries of one shape, coordinator, pool, group, placement and membership.
 */
import type { ExecutorGroup } from "../cluster/executor-group.ts";
import type { Schedule } from "../cluster/schedule.ts";
import type { PoolConfig } from "../pool-config.ts";
import { isSlotExempt } from "./can-admit.ts";
import type { GroupLedger, HostBook, HostId } from "./host-book.ts";
import { type MemoryToAdmit, memoryToAdmit, type PlacementFacts, usesDedicatedEstimate } from "./memory-to-admit.ts";
import type { RejectReason } from "./reasons.ts";
import { rejectForSchedule } from "./reject.ts";
import { PlanRoom } from "./room.ts";
import type { HostsView } from "./views.ts";

/** How many queries of this controller run in the group; one object per metric (admission 10.4). */
export interface GroupGauge {
  value: number;
  /** False once the group has gone; a group of the same name that comes later has a gauge of its own. */
  isLive: boolean;
}

export interface PlanFlags {
  readonly clampToHosts: boolean;
  readonly dedicatedEstimates: boolean;
}

export class Plan {
  readonly schedule: Schedule;
  readonly pool: string;
  readonly isSlotExempt: boolean;
  /** By position in the schedule. */
  readonly hosts: Int32Array;
  readonly coordinatorIndex: number;
  readonly coordinatorHost: HostId;
  /** The group's ledger when the whole group is charged alike, else null: host by host. */
  readonly ledger: GroupLedger | null;
  /** Position of the coordinator in that ledger, -1 when it isn't an executor of the group. */
  readonly coordinatorLeaf: number;
  readonly gauge: GroupGauge | null;
  readonly room: HostsView;
  readonly #placement: PlacementFacts;
  readonly #flags: PlanFlags;

  /** The configuration that the next two were worked out for. */
  config: PoolConfig | null = null;
  #memory: MemoryToAdmit | null = null;
  rejection: RejectReason | null = null;

  constructor(
    schedule: Schedule,
    whole: ExecutorGroup,
    pool: string,
    book: HostBook,
    gauge: GroupGauge | null,
    flags: PlanFlags,
  ) {
    this.schedule = schedule;
    this.pool = pool;
    this.isSlotExempt = isSlotExempt(schedule.group, pool);
    this.hosts = Int32Array.from(schedule.hosts, (address) => book.host(address));
    this.coordinatorIndex = schedule.backends.findIndex((b) => b.isCoordBackend);
    this.coordinatorHost = this.hosts[this.coordinatorIndex]!;
    const ledger = book.ledgerOfGroup(schedule.group);
    // A filtered copy of the group (blacklist) is full width of the copy only.
    const chargesGroup = schedule.isFullWidth && ledger !== null && ledger.hosts.length === whole.executors.length;
    this.ledger = chargesGroup && sameSize(schedule, ledger, book, this.coordinatorHost) ? ledger : null;
    this.coordinatorLeaf = this.ledger === null ? -1 : book.leafIn(this.ledger, this.coordinatorHost);
    this.gauge = gauge;
    this.room = new PlanRoom(this, book);
    this.#flags = flags;
    const { coordinatorBackend: coordinator } = schedule;
    this.#placement = {
      largestMinReservation: schedule.largestMinReservation,
      coordMinReservation: schedule.coordMinReservation,
      numBackends: schedule.backends.length,
      dedicated: usesDedicatedEstimate(
        flags.dedicatedEstimates,
        { isExecutor: coordinator.desc.isExecutor, numInstances: coordinator.numInstances },
        schedule.shape.stmtType,
      ),
      smallestExecutorLimit: whole.smallestMemLimit,
      coordinatorLimit: coordinator.desc.admitMemLimit,
    };
  }

  get memory(): MemoryToAdmit {
    return this.#memory!;
  }

  /** Section 2 and 3.2 for the pool's configuration of this attempt. */
  workOut(config: PoolConfig): void {
    const { schedule, pool } = this;
    const { clampToHosts } = this.#flags;
    const memory = memoryToAdmit(schedule.shape, this.#placement, config, clampToHosts);
    this.config = config;
    this.#memory = memory;
    this.rejection = rejectForSchedule({
      pool,
      schedule,
      memory,
      config,
      options: schedule.shape.options,
      clampToHosts,
    });
  }
}

/** The schedule is the ledger's members and, at most, a coordinator beside them. */
function sameSize(schedule: Schedule, ledger: GroupLedger, book: HostBook, coordinator: HostId): boolean {
  const outside = book.leafIn(ledger, coordinator) < 0 ? 1 : 0;
  return schedule.backends.length === ledger.hosts.length + outside;
}
