/**
 * One admission controller in virtual time, with what its driver must remember: when it next talks to the
 * statestore, what it has seen of topic and membership, whether a dequeue pass is on its way.
 *
 * In distributed mode every coordinator has one; with `admissiond` there is one for all, and it is a
 * subscriber of its own.
 */
import { AdmissionService } from "../core/admission/admission-service.ts";
import type { AdmissionController } from "../core/admission/controller.ts";
import type { ControllerOptions } from "../core/admission/controller-options.ts";
import type { BackendDescriptor } from "../core/cluster/backend.ts";
import { type BlacklistTiming, ExecutorBlacklist } from "../core/cluster/blacklist.ts";
import {
  EMPTY_MEMBERSHIP,
  type Membership,
  membershipOf,
  withRemovedCoordinators,
} from "../core/cluster/membership.ts";
import { MembershipRecovery } from "../core/cluster/membership-recovery.ts";
import type { Instant } from "../core/units.ts";
import { type EventHandle, type Micros, NO_EVENT } from "./event-queue.ts";
import type { TopicReader } from "./request-queue-topic.ts";

/** What a process makes of the members that it hears of. */
export interface MemberSettings {
  readonly blacklist: BlacklistTiming;
  /** `--cluster_membership_retained_removed_coords` */
  readonly mostRemoved: number;
  /** `--statestore_subscriber_recovery_grace_period_ms` */
  readonly recoveryGraceMs: number;
}

/** Makes the controller of a process that starts. */
export type NewController = (options: ControllerOptions) => AdmissionController;

export class Seat implements TopicReader {
  readonly index: number;
  /** Address under which it publishes. */
  readonly address: string;
  /** Its number among the statestore's subscribers: its host's number, or beyond them all with `admissiond`. */
  readonly subscriber: number;
  readonly #options: ControllerOptions;
  readonly #settings: MemberSettings;
  readonly #newController: NewController;
  controller: AdmissionController;
  /** `admissiond`'s: what coordinators say to it goes through here. */
  readonly service: AdmissionService | null;

  isAlive = true;
  /** The statestore and it don't reach each other; it goes on deciding. */
  isCutOff = false;
  exchange: EventHandle = NO_EVENT;
  /** Woken, and not yet looked (admission 5.4). */
  isPassDue = false;
  /** Not woken, but somebody joined a queue, which a discipline other than Impala's looks at. */
  isJoined = false;
  /** Its last pass moved nothing and nothing it depends on has changed since. */
  isSettled = false;
  /** The configuration has changed during its life: any submission may move its queues. */
  hasNewLimits = false;
  /** Exchanges were left out that would have brought something. */
  isBehind = false;
  /** Start of its last exchange, so that the next one is a later one. */
  lastExchange: Micros = -1;
  /** No exchange started before: it registered then. A cluster was up for a while when its run begins. */
  connectedSince: Micros = Number.NEGATIVE_INFINITY;
  /** When the controller last heard that its view is current. */
  heardAt: Micros = -1;
  /** Exchanges so far, for the records. */
  sequence = 0;
  seen = 0;
  needsFull = true;
  /** Queries in its queues. */
  queued = 0;
  /** What its own host reserved by pool, as the controller was told last. */
  readonly told: number[] = [];
  /** Version of the cluster that its membership was made from. */
  clusterVersion = -1;
  blacklist: ExecutorBlacklist;
  recovery: MembershipRecovery;
  blacklistTimer: EventHandle = NO_EVENT;
  #members: readonly BackendDescriptor[] = [];

  constructor(
    index: number,
    subscriber: number,
    options: ControllerOptions,
    settings: MemberSettings,
    newController: NewController,
  ) {
    this.index = index;
    this.subscriber = subscriber;
    this.address = options.hostId;
    this.#options = options;
    this.#settings = settings;
    this.#newController = newController;
    this.controller = newController(options);
    this.service = options.mode === "global" ? new AdmissionService(this.controller) : null;
    this.blacklist = new ExecutorBlacklist(settings.blacklist);
    this.recovery = new MembershipRecovery(settings.recoveryGraceMs);
  }

  get isGlobal(): boolean {
    return this.service !== null;
  }

  get canExchange(): boolean {
    return this.isAlive && !this.isCutOff;
  }

  /** A new process in the place of one that died: it knows nothing and has published nothing. */
  restart(): void {
    this.controller = this.#newController(this.#options);
    this.blacklist = new ExecutorBlacklist(this.#settings.blacklist);
    this.recovery = new MembershipRecovery(this.#settings.recoveryGraceMs);
    this.isAlive = true;
    this.isCutOff = false;
    this.isSettled = false;
    this.isBehind = false;
    this.queued = 0;
    this.heardAt = -1;
    this.told.length = 0;
    this.clusterVersion = -1;
    this.#members = [];
  }

  /** The statestore's membership; hosts that left are no longer blacklisted. */
  takeMembers(members: readonly BackendDescriptor[], clusterVersion: number, now: Instant): Membership {
    for (const before of this.#members)
      if (!members.some((m) => m.address === before.address)) this.blacklist.forget(before.address);
    this.#members = members;
    this.clusterVersion = clusterVersion;
    this.blacklist.maintain(now);
    return this.#membership();
  }

  /** The same members, after the blacklist changed. */
  withBlacklist(): Membership {
    return this.#membership();
  }

  #membership(): Membership {
    const before = this.controller.membership;
    return membershipOf({
      version: before.version + 1,
      backends: this.#members,
      blacklisted: this.blacklist.addresses(),
      removedCoordinators:
        this.isGlobal && before !== EMPTY_MEMBERSHIP
          ? withRemovedCoordinators(before, this.#members, this.#settings.mostRemoved)
          : before.removedCoordinators,
    });
  }
}
