/**
 * What goes wrong in a live run, by plan or by itself, and what follows from it for the cluster.
 *
 *   host:  in the cluster --lost--> silent --(failureAfter)--> out of the membership
 *             ^                       |                             |
 *             '--- joins, when its thread and ledger are ready and nobody wants it down ---'
 *
 * A host whose process died is a new process when it joins: nothing is held against it, and its topic view is empty.
 */
import { faultText } from "../config/fault-text.ts";
import type { Fault } from "../config/scenario.ts";
import { unreachable } from "../core/assert.ts";
import { type Philox, philoxFor } from "../core/random.ts";
import type { Instant } from "../core/units.ts";
import type { LiveRun } from "./live-run.ts";

export class LiveFaults {
  readonly #run: LiveRun;
  /** Hosts that a fault wants down. */
  readonly #down = new Set<string>();
  /** Lost hosts whose thread is there again. */
  readonly #ready = new Set<string>();
  readonly #lost = new Set<string>();
  /** Coordinators that the statestore doesn't reach. */
  readonly #cut = new Set<string>();
  readonly #dice: Philox;
  #rolls = 0;
  readonly #lossChance = new Map<string | null, number>();

  constructor(run: LiveRun) {
    this.#run = run;
    this.#dice = philoxFor(run.scenario.seed, "lost releases");
  }

  /** Every fault of the scenario at its moment. */
  plan(): void {
    for (const fault of this.#run.scenario.faults) this.#run.timers.at(fault.at, (now) => this.happen(fault, now));
  }

  happen(fault: Fault, now: Instant): void {
    this.#run.emit({ kind: "fault", at: now, what: faultText(fault, this.#run.scenario.queries) });
    switch (fault.kind) {
      case "hostDies":
        this.#down.add(fault.host);
        void this.#run.fleet.loseHost(this.#run.hostNumber(fault.host), "the host died");
        break;
      case "hostReturns":
        this.#down.delete(fault.host);
        this.#joinIfReady(fault.host);
        break;
      case "hostQuiesces":
        this.#run.cluster.quiesce(fault.host);
        break;
      case "workerKilled": {
        const { fleet } = this.#run;
        void fleet.killThread(fleet.threadOf(this.#run.hostNumber(fault.host)), "its thread was killed");
        break;
      }
      case "coordinatorDies":
        this.#coordinatorDies(fault.host, now);
        break;
      case "coordinatorReturns":
        this.#coordinatorReturns(fault.host, now);
        break;
      case "coordinatorCutOff":
        this.#cutOff(fault.host, now);
        break;
      case "coordinatorRejoins":
        this.#rejoins(fault.host, now);
        break;
      case "statestoreStops":
        this.#run.statestore.stop();
        break;
      case "statestoreStarts":
        this.#run.statestore.restart(now);
        break;
      case "releasesLost":
        this.#lossChance.set(fault.host, fault.chance);
        break;
      case "refusals": {
        const { chance, queryClass } = fault;
        const host = fault.host === null ? null : this.#run.hostNumber(fault.host);
        this.#run.fleet.refuse({ chance, host, queryClass, seed: this.#run.scenario.seed });
        break;
      }
      case "configChanges":
        this.#run.changePools(fault);
        break;
      case "statisticsDropped":
        this.#run.workload.scaleEstimate(fault.queryClass, fault.factor);
        break;
      default:
        unreachable(fault);
    }
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
    const { statestore, cluster, coordinators, timers, scenario } = this.#run;
    this.#cut.add(address);
    statestore.cutOff(address, true);
    timers.at((now + scenario.cluster.statestore.failureAfter) as Instant, () => {
      if (!this.#cut.has(address) || !cluster.has(address)) return;
      cluster.leave(address);
      statestore.failed(address);
      for (const c of coordinators)
        if (c.address === address) c.endRunning(`The coordinator ${address} left the cluster`);
        else c.hostLeft(address);
    });
  }

  #rejoins(address: string, now: Instant): void {
    const { statestore, cluster, coordinators } = this.#run;
    if (!this.#cut.delete(address)) return;
    statestore.cutOff(address, false);
    if (cluster.has(address)) return;
    cluster.join(address);
    statestore.joined(address, now);
    coordinators.find((c) => c.address === address)?.reconnected(now);
  }

  /** The fleet has lost a host; its instances have ended and its memory is back. */
  hostLost(address: string, why: string): void {
    const now = this.#run.now();
    this.#run.emit({ kind: "hostLost", at: now, host: address, why });
    this.#lost.add(address);
    this.#ready.delete(address);
    // Whoever had work there learns of it from the failed calls and avoids it; the others from the statestore.
    const { failureAfter } = this.#run.scenario.cluster.statestore;
    this.#run.timers.at((now + failureAfter) as Instant, () => this.#declareFailed(address));
    this.#coordinatorDies(address, now);
  }

  #declareFailed(address: string): void {
    if (!this.#lost.has(address)) return;
    this.#run.cluster.leave(address);
    this.#run.statestore.failed(address);
  }

  hostReady(address: string): void {
    this.#ready.add(address);
    this.#joinIfReady(address);
  }

  #joinIfReady(address: string): void {
    if (this.#down.has(address) || !this.#ready.has(address)) return;
    const now = this.#run.now();
    this.#ready.delete(address);
    this.#lost.delete(address);
    this.#run.fleet.revive(this.#run.hostNumber(address));
    this.#run.cluster.join(address);
    for (const c of this.#run.coordinators) c.view.forgive(address);
    this.#coordinatorReturns(address, now);
    this.#run.statestore.joined(address, now);
    this.#run.emit({ kind: "hostJoined", at: now, host: address });
  }

  #coordinatorDies(address: string, now: Instant): void {
    const coordinator = this.#run.coordinators.find((c) => c.address === address);
    if (coordinator === undefined || !coordinator.isAlive) return;
    this.#run.workload.coordinatorGone(address);
    coordinator.die(now, `The coordinator ${address} is gone.`);
    const { failureAfter } = this.#run.scenario.cluster.statestore;
    this.#run.timers.at((now + failureAfter) as Instant, () => {
      if (coordinator.isAlive) return;
      this.#run.cluster.leave(address);
      this.#run.statestore.failed(address);
    });
  }

  #coordinatorReturns(address: string, now: Instant): void {
    const coordinator = this.#run.coordinators.find((c) => c.address === address);
    if (coordinator === undefined || coordinator.isAlive || this.#lost.has(address)) return;
    this.#cut.delete(address);
    coordinator.restart();
    this.#run.cluster.join(address);
    this.#run.statestore.joined(address, now);
    this.#run.workload.coordinatorBack(address);
  }
}
