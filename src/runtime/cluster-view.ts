/**
 * Who is in the cluster as controllers see it: the membership, and what one coordinator avoids (admission 6.1).
 *
 * A host that stops answering is avoided by its coordinators at once and leaves the membership when the statestore has
 * missed its heartbeats for long enough; a host that comes back registers anew and is in the membership at once.
 */
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

/** Version 1 is the view before anything is known. */
const FIRST_VERSION = 2;

export class ClusterView {
  readonly #all: readonly BackendDescriptor[];
  readonly #mostRemoved: number;
  readonly #gone = new Set<string>();
  readonly #quiescing = new Set<string>();
  readonly #bornAt = new Map<string, Instant>();
  #version = FIRST_VERSION;
  #shared: Membership;

  /** `mostRemoved`: `--cluster_membership_retained_removed_coords`. */
  constructor(backends: readonly BackendDescriptor[], mostRemoved: number) {
    this.#all = backends;
    this.#mostRemoved = mostRemoved;
    this.#shared = membershipOf({ version: this.#version, backends });
  }

  /** Nobody's blacklist in it. */
  get membership(): Membership {
    return this.#shared;
  }

  has(address: string): boolean {
    return this.#shared.backend(address) !== undefined;
  }

  leave(address: string): void {
    if (!this.#gone.has(address)) this.#change(() => this.#gone.add(address));
  }

  /** The same process is heard of again. */
  rejoin(address: string): void {
    if (this.#gone.has(address)) this.#change(() => this.#gone.delete(address));
  }

  /** Another process under the address: everybody hears of it, whether the old one was missed or not. */
  starts(address: string, now: Instant): void {
    this.#bornAt.set(address, now);
    this.#change(() => {
      this.#gone.delete(address);
      this.#quiescing.delete(address);
    });
  }

  /** The process that was there then is not there now. */
  hasLost(address: string, since: Instant): boolean {
    return !this.has(address) || (this.#bornAt.get(address) ?? Number.NEGATIVE_INFINITY) > since;
  }

  quiesce(address: string): void {
    if (!this.#quiescing.has(address)) this.#change(() => this.#quiescing.add(address));
  }

  /** Versions grow over all views together, so that each controller's own only grows too. */
  nextVersion(): number {
    return ++this.#version;
  }

  #change(act: () => void): void {
    act();
    const backends = this.#all
      .filter((b) => !this.#gone.has(b.address))
      .map((b) => (this.#quiescing.has(b.address) ? { ...b, isQuiescing: true } : b));
    const removedCoordinators = withRemovedCoordinators(this.#shared, backends, this.#mostRemoved);
    this.#shared = membershipOf({ version: this.nextVersion(), backends, removedCoordinators });
  }
}

/** What a process makes of the members that it hears of. */
export interface ViewSettings {
  /** `--blacklisting_enabled` */
  readonly avoidsHosts: boolean;
  readonly blacklist: BlacklistTiming;
  /** `--statestore_subscriber_recovery_grace_period_ms` */
  readonly recoveryGraceMs: number;
}

/** The membership as one coordinator has heard of it, with its own blacklist. */
export class OwnView {
  readonly #cluster: ClusterView;
  readonly #settings: ViewSettings;
  #blacklist: ExecutorBlacklist;
  #recovery: MembershipRecovery;
  /** What the statestore told it last. */
  #heard: Membership;
  #seen: Membership | null = null;
  #current: Membership | null = null;

  constructor(cluster: ClusterView, settings: ViewSettings) {
    this.#cluster = cluster;
    this.#settings = settings;
    this.#blacklist = new ExecutorBlacklist(settings.blacklist);
    this.#recovery = new MembershipRecovery(settings.recoveryGraceMs);
    this.#heard = cluster.membership;
  }

  /** A new process: it has heard of nobody, and holds nothing against anybody. */
  restart(): void {
    this.#blacklist = new ExecutorBlacklist(this.#settings.blacklist);
    this.#recovery = new MembershipRecovery(this.#settings.recoveryGraceMs);
    this.#heard = EMPTY_MEMBERSHIP;
    this.#seen = null;
    this.#current = null;
  }

  /** An exchange with the statestore: true when it brings other members. */
  hear(now: Instant): boolean {
    if (this.#recovery.holds(now) || this.#heard === this.#cluster.membership) return false;
    this.#heard = this.#cluster.membership;
    return true;
  }

  /** What was there then is there no more, as the statestore has it. */
  hasLost(address: string, since: Instant): boolean {
    return this.#cluster.hasLost(address, since);
  }

  /** Of the process's line to the statestore. */
  get recovery(): MembershipRecovery {
    return this.#recovery;
  }

  avoid(address: string, now: Instant): void {
    if (!this.#settings.avoidsHosts || this.#blacklist.addresses().has(address)) return;
    this.#blacklist.blacklist(address, now);
    this.#seen = null;
  }

  /** The host is a new process: what was held against the old one is forgotten. */
  forgive(address: string): void {
    this.#blacklist.forget(address);
    this.#seen = null;
  }

  /** As of now; the same object while nothing has changed. */
  at(now: Instant): Membership {
    const isAnyoneBack = this.#blacklist.maintain(now);
    const shared = this.#heard;
    if (this.#current !== null && this.#seen === shared && !isAnyoneBack) return this.#current;
    const blacklisted = this.#blacklist.addresses();
    const { backends, removedCoordinators } = shared;
    this.#current =
      blacklisted.size === 0 && (this.#current === null || this.#current.version < shared.version)
        ? shared
        : membershipOf({ version: this.#cluster.nextVersion(), backends, blacklisted, removedCoordinators });
    this.#seen = shared;
    return this.#current;
  }
}
