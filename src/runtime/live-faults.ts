/**
 * What goes wrong in a live run, by plan or by itself, and what follows from it for the cluster.
 *
 *   host:  in the cluster --lost--> silent --(failureAfter)--> out of the membership
 *             ^                       |                             |
 *             '--- joins, when its thread and ledger are ready and nobody wants it down ---'
 *
 * A host whose process died is a new process when it joins: nothing is held against it, and its topic view is empty.
 * A statestore that is away misses nobody; once it is back it waits as long again.
 */
import { faultText } from "../config/fault-text.ts";
import type { Fault } from "../config/scenario.ts";
import { unreachable } from "../core/assert.ts";
import { type Philox, philoxFor } from "../core/random.ts";
import type { Instant } from "../core/units.ts";
import type { LiveCluster } from "./live-cluster.ts";

export class LiveFaults {
  readonly #cluster: LiveCluster;
  /** Hosts that a fault wants down. */
  readonly #down = new Set<string>();
  /** Lost hosts whose thread is there again. */
  readonly #ready = new Set<string>();
  readonly #lost = new Set<string>();
  /** Coordinators that the statestore doesn't reach. */
  readonly #cut = new Set<string>();
  /** Whom a statestore would have declared failed if it had not been away. */
  readonly #missed = new Set<string>();
  /** Faults to come, and ends of the time after which somebody silent is missed. */
  #pending = 0;
  readonly #dice: Philox;
  #rolls = 0;
  readonly #lossChance = new Map<string | null, number>();

  constructor(cluster: LiveCluster) {
    this.#cluster = cluster;
    this.#dice = philoxFor(cluster.scenario.seed, "lost releases");
  }

  /** Every fault of the scenario at its moment. */
  plan(): void {
    for (const fault of this.#cluster.scenario.faults) this.#at(fault.at, (now) => this.happen(fault, now));
  }

  /** Something is planned, somebody is about to be missed, or a host is about to come back by itself. */
  get isMoreToCome(): boolean {
    return this.#pending > 0 || [...this.#lost].some((host) => !this.#down.has(host));
  }

  #at(at: Instant, act: (now: Instant) => void): void {
    this.#pending++;
    this.#cluster.around.timers.at(at, (now) => {
      this.#pending--;
      act(now);
      this.#cluster.lookWhetherOver();
    });
  }

  happen(fault: Fault, now: Instant): void {
    this.#cluster.around.emit({ kind: "fault", at: now, what: faultText(fault, this.#cluster.scenario.queries) });
    switch (fault.kind) {
      case "hostDies":
        this.#hostDies(fault.host);
        break;
      case "hostReturns":
        this.#hostReturns(fault.host);
        break;
      case "hostQuiesces":
        this.#cluster.members.quiesce(fault.host);
        break;
      case "workerKilled": {
        const { fleet } = this.#cluster.around;
        void fleet.killThread(fleet.threadOf(this.#cluster.hostNumber(fault.host)), "its thread was killed");
        break;
      }
      case "coordinatorDies":
        if (this.#isExecutor(fault.host)) this.#hostDies(fault.host);
        else this.#coordinatorDies(fault.host, now);
        break;
      case "coordinatorReturns":
        if (this.#isExecutor(fault.host)) this.#hostReturns(fault.host);
        else this.#coordinatorReturns(fault.host, now);
        break;
      case "coordinatorCutOff":
        this.#cutOff(fault.host, now);
        break;
      case "coordinatorRejoins":
        this.#rejoins(fault.host, now);
        break;
      case "statestoreStops":
        this.#cluster.statestore.stop();
        break;
      case "statestoreStarts":
        this.#cluster.statestore.restart(now);
        for (const host of this.#missed) this.#missLater(host, now);
        this.#missed.clear();
        break;
      case "releasesLost":
        this.#lossChance.set(fault.host, fault.chance);
        break;
      case "refusals": {
        const { chance, queryClass } = fault;
        const host = fault.host === null ? null : this.#cluster.hostNumber(fault.host);
        this.#cluster.around.fleet.refuse({ chance, host, queryClass, seed: this.#cluster.scenario.seed });
        break;
      }
      case "configChanges":
        this.#cluster.changePools(fault);
        break;
      case "statisticsDropped":
        this.#cluster.workload.scaleEstimate(fault.queryClass, fault.factor);
        break;
      default:
        unreachable(fault);
    }
  }

  #hostDies(address: string): void {
    this.#down.add(address);
    void this.#cluster.around.fleet.loseHost(this.#cluster.hostNumber(address), "the host died");
  }

  #hostReturns(address: string): void {
    this.#down.delete(address);
    this.#joinIfReady(address);
  }

  /** One process does both: it dies as a whole. */
  #isExecutor(address: string): boolean {
    return this.#cluster.backends[this.#cluster.hostNumber(address)]!.isExecutor;
  }

  /** A release message of this coordinator does not arrive. */
  losesRelease(coordinator: string): boolean {
    const chance = this.#lossChance.get(coordinator) ?? this.#lossChance.get(null) ?? 0;
    if (chance === 0) return false;
    this.#dice.at(this.#rolls++, 0, 0, 0);
    return this.#dice.first() < chance;
  }

  /** It goes on deciding. Missed for long enough, it leaves the membership, and executors end what it has running. */
  #cutOff(address: string, now: Instant): void {
    this.#cut.add(address);
    this.#cluster.statestore.cutOff(address, true);
    this.#missLater(address, now);
  }

  #missLater(address: string, now: Instant): void {
    const { failureAfter } = this.#cluster.scenario.cluster.statestore;
    this.#at((now + failureAfter) as Instant, () => this.#miss(address));
  }

  /** It may be back, or missed already. */
  #miss(address: string): void {
    const { statestore, members, coordinators } = this.#cluster;
    if (!this.#isSilent(address) || !members.has(address)) return;
    if (!statestore.isRunning) {
      this.#missed.add(address);
      return;
    }
    members.leave(address);
    statestore.failed(address);
    for (const c of coordinators)
      if (c.address === address) c.endRunning(`The coordinator ${address} left the cluster`);
      else c.hostLeft(address);
  }

  #isSilent(address: string): boolean {
    const isCoordinatorDead = this.#cluster.coordinator(address)?.isAlive === false;
    return isCoordinatorDead || this.#lost.has(address) || this.#cut.has(address);
  }

  #rejoins(address: string, now: Instant): void {
    const { statestore, members } = this.#cluster;
    if (!this.#cut.delete(address)) return;
    statestore.cutOff(address, false);
    if (members.has(address)) return;
    members.join(address);
    statestore.joined(address, now);
    if (statestore.isRunning) this.#cluster.coordinator(address)?.reconnected(now);
  }

  /** The fleet has lost a host; its instances have ended and its memory is back. */
  hostLost(address: string, why: string): void {
    const now = this.#cluster.around.now();
    this.#cluster.around.emit({ kind: "hostLost", at: now, host: address, why });
    this.#lost.add(address);
    this.#ready.delete(address);
    // Whoever had work there learns of it from the failed calls and avoids it; the others from the statestore.
    this.#missLater(address, now);
    this.#coordinatorDies(address, now);
  }

  hostReady(address: string): void {
    this.#ready.add(address);
    this.#joinIfReady(address);
  }

  #joinIfReady(address: string): void {
    if (this.#down.has(address) || !this.#ready.has(address)) return;
    const now = this.#cluster.around.now();
    this.#ready.delete(address);
    this.#lost.delete(address);
    this.#cluster.around.fleet.revive(this.#cluster.hostNumber(address));
    this.#cluster.members.join(address);
    for (const c of this.#cluster.coordinators) c.view.forgive(address);
    this.#coordinatorReturns(address, now);
    this.#cluster.statestore.joined(address, now);
    this.#cluster.around.emit({ kind: "hostJoined", at: now, host: address });
  }

  #coordinatorDies(address: string, now: Instant): void {
    const coordinator = this.#cluster.coordinator(address);
    if (coordinator === undefined || !coordinator.isAlive) return;
    this.#cluster.workload.coordinatorGone(address);
    coordinator.die(now, `The coordinator ${address} is gone.`);
    this.#missLater(address, now);
  }

  #coordinatorReturns(address: string, now: Instant): void {
    const coordinator = this.#cluster.coordinator(address);
    if (coordinator === undefined || coordinator.isAlive || this.#lost.has(address)) return;
    this.#cut.delete(address);
    coordinator.restart();
    this.#cluster.members.join(address);
    this.#cluster.statestore.joined(address, now);
    this.#cluster.workload.coordinatorBack(address);
  }
}
