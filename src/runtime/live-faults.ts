/**
 * What goes wrong in a live run, by plan or by itself, and what follows from it for the cluster.
 *
 * A process that dies by plan is silent from then on, as in virtual time: what runs on it or for it hangs until the
 * statestore has missed it and whom it concerns has heard (admission 6.1, 9.5). A thread that dies by itself, or is
 * killed, fails what it carried at once: nobody planned that anything waits for it.
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
import { REPORTS_GIVEN_UP, REPORTS_MISSED } from "../core/cluster/status-reports.ts";
import { type Philox, philoxFor } from "../core/random.ts";
import type { Instant } from "../core/units.ts";
import type { Coordinator } from "./coordinator.ts";
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
  /** When it died last. */
  readonly #silentSince = new Map<string, Instant>();
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
      case "coordinatorDies":
        this.#processDies(fault.host, now);
        break;
      case "hostReturns":
      case "coordinatorReturns":
        this.#processReturns(fault.host);
        break;
      case "hostQuiesces":
        this.#cluster.members.quiesce(fault.host);
        break;
      case "workerKilled": {
        const { fleet } = this.#cluster.around;
        void fleet.killThread(fleet.threadOf(this.#cluster.hostNumber(fault.host)), "its thread was killed");
        break;
      }
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

  /** Executor, coordinator or both: it dies as a whole. */
  #processDies(address: string, now: Instant): void {
    this.#down.add(address);
    if (this.#lost.has(address)) return;
    void this.#cluster.around.fleet.silenceHost(this.#cluster.hostNumber(address), WHY);
    this.#loses(address, WHY, now);
  }

  #processReturns(address: string): void {
    this.#down.delete(address);
    this.#joinIfReady(address);
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
    if (this.#lost.has(address)) return;
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
    const { statestore, members, coordinators, admissiond } = this.#cluster;
    if (!this.#isSilent(address) || !members.has(address)) return;
    if (!statestore.isRunning) {
      this.#missed.add(address);
      return;
    }
    members.leave(address);
    statestore.failed(address);
    this.#cluster.coordinator(address)?.endRunning(leftText(address));
    if (admissiond !== null) this.#allHear();
    for (const c of coordinators) if (this.#hearsNothing(c)) c.failUnreported(address);
  }

  /** Coordinators of `admissiond` have no view of their own that would come later. */
  #allHear(): void {
    for (const c of this.#cluster.coordinators) c.failOnLostHosts();
  }

  #isSilent(address: string): boolean {
    return this.#lost.has(address) || this.#cut.has(address);
  }

  #rejoins(address: string, now: Instant): void {
    const { statestore, members } = this.#cluster;
    if (this.#lost.has(address) || !this.#cut.delete(address)) return;
    statestore.cutOff(address, false);
    if (members.has(address)) return;
    members.rejoin(address);
    statestore.joined(address, now);
    if (statestore.isRunning) this.#cluster.coordinator(address)?.reconnected(now);
  }

  /** The fleet has lost a host, and its memory is back. Where that was not planned its instances have ended. */
  hostLost(address: string, why: string): void {
    this.#ready.delete(address);
    if (!this.#lost.has(address)) this.#loses(address, why, this.#cluster.around.now());
  }

  #loses(address: string, why: string, now: Instant): void {
    this.#cluster.around.emit({ kind: "hostLost", at: now, host: address, why });
    this.#lost.add(address);
    for (const c of this.#cluster.coordinators) c.hostDied(address);
    this.#coordinatorDies(address, now);
    this.#isGone(address, now);
  }

  /** Who notices, and when. It may come back before that, and die again. */
  #isGone(address: string, now: Instant): void {
    const { members, statestore, coordinators, around } = this.#cluster;
    const executorsHear = (): void => this.#cluster.coordinator(address)?.endOrphans(leftText(address));
    this.#silentSince.set(address, now);
    if (members.has(address)) this.#missLater(address, now);
    else executorsHear();
    const isStillSo = (): boolean => this.#silentSince.get(address) === now;
    around.timers.at((now + REPORTS_GIVEN_UP) as Instant, () => {
      if (isStillSo() && this.#isSilent(address)) executorsHear();
    });
    // A new process there does not report for what the old one ran.
    around.timers.at((now + REPORTS_MISSED) as Instant, () => {
      if (!isStillSo()) return;
      for (const c of coordinators) if (!statestore.isRunning || this.#hearsNothing(c)) c.failUnreported(address);
    });
  }

  /** It decides by a view of its own, which stands still. */
  #hearsNothing({ address }: Coordinator): boolean {
    return this.#cluster.admissiond === null && this.#cut.has(address);
  }

  hostReady(address: string): void {
    if (!this.#lost.has(address)) return;
    this.#ready.add(address);
    this.#joinIfReady(address);
  }

  #joinIfReady(address: string): void {
    if (this.#down.has(address) || !this.#ready.has(address)) return;
    const now = this.#cluster.around.now();
    this.#miss(address);
    this.#ready.delete(address);
    this.#lost.delete(address);
    this.#cluster.around.fleet.revive(this.#cluster.hostNumber(address));
    for (const c of this.#cluster.coordinators) c.view.forgive(address);
    this.#starts(address, now);
    this.#cluster.around.emit({ kind: "hostJoined", at: now, host: address });
  }

  #coordinatorDies(address: string, now: Instant): void {
    const coordinator = this.#cluster.coordinator(address);
    if (coordinator === undefined) return;
    this.#cluster.workload.coordinatorGone(address);
    coordinator.die(now, `The coordinator ${address} is gone.`);
  }

  /** A new process under the old name: the statestore has seen at once that the old one is gone. */
  #starts(address: string, now: Instant): void {
    const { members, statestore, workload, admissiond } = this.#cluster;
    const coordinator = this.#cluster.coordinator(address);
    members.starts(address, now);
    if (coordinator !== undefined) {
      coordinator.endOrphans(leftText(address));
      this.#cut.delete(address);
      coordinator.restart();
      workload.coordinatorBack(address);
    }
    statestore.joined(address, now);
    if (admissiond !== null) this.#allHear();
  }
}

const WHY = "the process died";

const leftText = (address: string): string => `The coordinator ${address} left the cluster`;
