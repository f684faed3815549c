/**
 * The cluster of a live run: clients, coordinators, `admissiond`, statestore and what goes wrong with them, on the
 * clock and the fleet that it is given. `LiveRun` gives it real ones; tests give it a clock that stands still.
 *
 * Nothing hangs. A run is over when no request is to come and nobody waits for anything, and nothing is to come that
 * could move what nobody waits for:
 *
 *     query:  under way --its coordinator's process died, and nothing of it runs--> abandoned --> over
 *                 '-----------------------------------------------------------------------------^
 *
 * Abandoned are queries that `admissiond` still has for a process that is gone, in its queue (T-59) or let in. They
 * leave by its next membership, by a heartbeat of a new process, by reaching the head; with the statestore away for
 * good by none of these.
 */
import { controllerFlagsOf } from "../config/controller-flags.ts";
import type { ImpalaFlags } from "../config/impala-flags.ts";
import type { Scenario } from "../config/scenario.ts";
import { backendsOf } from "../config/scenario-cluster.ts";
import { serviceTimingOf } from "../config/service-timing.ts";
import {
  type ControllerFlags,
  type ControllerOptions,
  controllerOptions,
} from "../core/admission/controller-options.ts";
import type { TellHostCheck } from "../core/admission/host-looks.ts";
import { fail } from "../core/assert.ts";
import type { BackendDescriptor } from "../core/cluster/backend.ts";
import type { RunEvent } from "../core/events.ts";
import { ROOT_POOL } from "../core/pool-config.ts";
import type { Instant } from "../core/units.ts";
import type { Ending, Workload } from "../workload/workload.ts";
import { Admissiond } from "./admissiond.ts";
import { ClusterView, OwnView } from "./cluster-view.ts";
import { Coordinator, type CoordinatorSurroundings, type OpenDesk, type Standing } from "./coordinator.ts";
import type { Fleet } from "./fleet.ts";
import { LiveFaults } from "./live-faults.ts";
import type { ConfigChange, PoolsInForce } from "./live-pools.ts";
import type { LiveQuery } from "./live-query.ts";
import { LiveStatestore, type SubscriberSpec } from "./live-statestore.ts";
import { LocalDesk } from "./local-desk.ts";
import type { Progress } from "./protocol.ts";
import type { Appointment, Timers } from "./timers.ts";

/** What the cluster asks of its fleet. */
export type FleetControl = Pick<
  Fleet,
  | "nextTask"
  | "startFragments"
  | "cancel"
  | "hold"
  | "poolUsages"
  | "poolReserved"
  | "silenceHost"
  | "killThread"
  | "threadOf"
  | "revive"
  | "refuse"
>;

export interface ClusterSurroundings {
  readonly timers: Timers;
  readonly fleet: FleetControl;
  now(): Instant;
  /** Runs it in a later turn of the event loop. */
  soon(act: () => void): void;
  emit(event: RunEvent): void;
  /** One of several coordinators that decide for themselves; null: on this thread, as one that decides alone. */
  openDesk(hostId: string, flags: ControllerFlags): OpenDesk | null;
  noteStart(query: LiveQuery, at: Instant): void;
  /** Nothing more is to come. May be told again. */
  over(): void;
}

/** Submissions in one turn of the event loop: a burst must not hold up what comes from the threads. */
const MOST_IN_A_TURN = 64;
const ADMISSIOND = "admissiond:29500";

export class LiveCluster {
  readonly scenario: Scenario;
  readonly workload: Workload;
  readonly backends: readonly BackendDescriptor[];
  /** Who is in the cluster. */
  readonly members: ClusterView;
  /** Null: each coordinator decides for its own queries. */
  readonly admissiond: Admissiond | null;
  readonly coordinators: readonly Coordinator[];
  readonly statestore: LiveStatestore;
  readonly faults: LiveFaults;
  readonly around: ClusterSurroundings;
  readonly #pools: PoolsInForce;
  readonly #hostNumbers: ReadonlyMap<string, number>;
  /** Who hears of an instance. */
  readonly #routes = new Map<number, { readonly coordinator: Coordinator; readonly query: LiveQuery }>();
  readonly #underWay = new Set<LiveQuery>();
  readonly #abandoned = new Set<LiveQuery>();
  /** Not begun, as the workload says, or no request is taken any more. */
  #doors: "new" | "open" | "shut" = "new";
  #arrival: Appointment | null = null;
  #isArriving = false;
  #looksSoon = false;
  #lastEnd = 0 as Instant;

  constructor(
    scenario: Scenario,
    workload: Workload,
    pools: PoolsInForce,
    flags: ImpalaFlags,
    around: ClusterSurroundings,
  ) {
    this.scenario = scenario;
    this.workload = workload;
    this.around = around;
    this.#pools = pools;
    this.backends = backendsOf(scenario.cluster);
    this.#hostNumbers = new Map(this.backends.map((b, i) => [b.address, i]));
    this.members = new ClusterView(this.backends, flags.cluster_membership_retained_removed_coords);
    this.faults = new LiveFaults(this);
    this.admissiond = scenario.cluster.admission === "admissiond" ? this.#openAdmissiond(flags) : null;
    this.coordinators = this.#openCoordinators(flags);
    this.statestore = new LiveStatestore(scenario.cluster.statestore, this.#subscribers(), {
      timers: around.timers,
      fleet: around.fleet,
      now: () => around.now(),
      emit: (event) => around.emit(event),
      pools: pools.names,
    });
  }

  get isOpen(): boolean {
    return this.#doors === "open";
  }

  /** When the last client had its answer. */
  get lastEnd(): Instant {
    return this.#lastEnd;
  }

  // From the first request to the last answer

  begin(): void {
    this.#doors = "open";
    this.statestore.start(this.around.now());
    this.faults.plan();
    this.#pools.follow(this.around.timers, () => this.workload.configurationChanged());
    this.#armArrivals();
  }

  /** No request is taken any more; who waits is cancelled, who runs may finish. */
  shut(): void {
    this.#doors = "shut";
    this.around.timers.cancel(this.#arrival);
    for (const c of this.coordinators) {
      for (const q of [...c.queries]) c.leaveQueue(q);
      // Nobody waits for them either.
      c.endOrphans(`The coordinator ${c.address} is gone.`);
    }
    this.lookWhetherOver();
  }

  /** After `shut`: who runs is cancelled too. */
  cancelAll(): void {
    for (const c of this.coordinators) for (const q of [...c.queries]) c.cancel(q);
    this.lookWhetherOver();
  }

  #armArrivals(): void {
    if (!this.isOpen || this.#isArriving) return;
    const at = this.workload.nextAt();
    this.around.timers.cancel(this.#arrival);
    this.#arrival = null;
    if (at === Number.POSITIVE_INFINITY) this.lookWhetherOver();
    else this.#arrival = this.around.timers.at(at, () => this.#arrive());
  }

  #arrive(): void {
    this.#isArriving = true;
    let taken = 0;
    for (; this.isOpen && taken < MOST_IN_A_TURN && this.workload.nextAt() <= this.around.now(); taken++) {
      const submission = this.workload.take();
      this.#coordinatorFor(submission.coordinator).submit(submission, this.around.now());
    }
    this.#isArriving = false;
    if (taken === MOST_IN_A_TURN) this.around.soon(() => this.#arrive());
    else this.#armArrivals();
  }

  #answered(query: LiveQuery, how: Ending, at: Instant): void {
    this.#lastEnd = at;
    this.workload.ended(query.submission, how, at);
    // An ending can bring the next request nearer; look when whoever told us is done.
    this.around.soon(() => this.#armArrivals());
  }

  // The end

  #stands(query: LiveQuery, standing: Standing): void {
    this.#underWay.delete(query);
    this.#abandoned.delete(query);
    if (standing === "underWay") this.#underWay.add(query);
    else if (standing === "abandoned") this.#abandoned.add(query);
    if (this.#underWay.size === 0) this.lookWhetherOver();
  }

  lookWhetherOver(): void {
    if (this.#abandoned.size === 0) this.#endIfOver();
    else if (!this.#looksSoon) {
      // In a later turn: whoever calls may be about to do what moves one of them.
      this.#looksSoon = true;
      this.around.soon(() => {
        this.#looksSoon = false;
        this.#endIfOver();
      });
    }
  }

  #endIfOver(): void {
    if (!this.#isOver()) return;
    this.statestore.stop();
    this.around.over();
  }

  #isOver(): boolean {
    if (this.#doors === "new" || this.#underWay.size > 0) return false;
    // Whoever has asked for the end does not wait for what nobody waits for.
    if (this.#doors === "shut") return true;
    return this.workload.nextAt() === Number.POSITIVE_INFINITY && !this.#mayAbandonedMove();
  }

  #mayAbandonedMove(): boolean {
    if (this.#abandoned.size === 0 || this.admissiond === null) return false;
    return this.faults.isMoreToCome || this.admissiond.mayMove(this.statestore.isRunning);
  }

  // The fleet tells

  progress(batch: readonly Progress[]): void {
    for (const p of batch) {
      if (p.kind === "broken") continue;
      const route = this.#routes.get(p.task);
      if (route === undefined) continue;
      if (p.kind === "finished") this.#routes.delete(p.task);
      // Told anew: a query that is released late in the batch has held its places until then.
      route.coordinator.progress(route.query, p, this.around.now());
    }
  }

  hostLost(host: number, why: string): void {
    this.faults.hostLost(this.backends[host]!.address, why);
    this.lookWhetherOver();
  }

  hostReady(host: number): void {
    this.faults.hostReady(this.backends[host]!.address);
    this.lookWhetherOver();
  }

  hostNumber(address: string): number {
    return this.#hostNumbers.get(address) ?? fail(`no host ${address}`);
  }

  changePools(fault: ConfigChange): void {
    this.#pools.change(fault);
  }

  // Coordinators

  coordinator(address: string): Coordinator | undefined {
    return this.coordinators.find((c) => c.address === address);
  }

  #coordinatorFor(address: string): Coordinator {
    return this.coordinator(address) ?? fail(`no coordinator ${address}`);
  }

  #openCoordinators(flags: ImpalaFlags): Coordinator[] {
    const around = this.#coordinatorSurroundings(flags);
    const settings = {
      avoidsHosts: flags.blacklisting_enabled,
      blacklist: {
        maxMissedHeartbeats: flags.statestore_max_missed_heartbeats,
        heartbeatMs: flags.statestore_heartbeat_frequency_ms,
      },
      recoveryGraceMs: flags.statestore_subscriber_recovery_grace_period_ms,
    };
    const addresses = this.backends.filter((b) => b.isCoordinator).map((b) => b.address);
    const deskOf = this.#deskChoice(addresses.length, controllerFlagsOf(flags));
    return addresses.map(
      (address) => new Coordinator(address, deskOf(address), new OwnView(this.members, settings), around),
    );
  }

  #deskChoice(coordinators: number, flags: ControllerFlags): (address: string) => OpenDesk {
    const { admissiond, around } = this;
    if (admissiond !== null) return (address) => (hear) => admissiond.open(address, hear);
    const isAlone = coordinators === 1;
    const here = (hostId: string): OpenDesk => this.#deskHere(controllerOptions({ hostId, flags }), isAlone);
    // One that decides alone needs no thread of its own: nobody disagrees with it, and a message costs more than it.
    return isAlone ? here : (address) => around.openDesk(address, flags) ?? here(address);
  }

  #deskHere(options: ControllerOptions, isAlone: boolean): OpenDesk {
    const { timers } = this.around;
    return (tell) =>
      new LocalDesk(options, {
        timers,
        now: () => this.around.now(),
        soon: (act) => this.around.soon(act),
        tell,
        ...(isAlone ? { hostsChecked: this.#hostsChecked } : {}),
      });
  }

  #openAdmissiond(flags: ImpalaFlags): Admissiond {
    const options = controllerOptions({ hostId: ADMISSIOND, mode: "global", flags: controllerFlagsOf(flags) });
    const { around } = this;
    return new Admissiond(options, serviceTimingOf(flags), {
      timers: around.timers,
      now: () => around.now(),
      soon: (act) => around.soon(act),
      membership: () => this.members.membership,
      recoveryGraceMs: flags.statestore_subscriber_recovery_grace_period_ms,
      hostsChecked: this.#hostsChecked,
      losesRelease: (coordinator) => this.faults.losesRelease(coordinator),
      roundEnded: () => this.#lookIfAbandoned(),
      tell: (told) => {
        const at = around.now();
        around.emit({ kind: "controllerCall", at, controller: ADMISSIOND, now: told.now, call: told.call });
      },
    });
  }

  #lookIfAbandoned(): void {
    if (this.#underWay.size === 0 && this.#abandoned.size > 0) this.lookWhetherOver();
  }

  readonly #hostsChecked: TellHostCheck = ({ id }, slots, hostMemory) =>
    this.around.emit({ kind: "hostsChecked", at: this.around.now(), query: id, slots, hostMemory });

  #subscribers(): SubscriberSpec[] {
    const { admissiond } = this;
    const ownController = (address: string): Coordinator | null =>
      admissiond === null ? (this.coordinator(address) ?? null) : null;
    const backends = this.backends.map(({ address }, host) => ({ address, host, coordinator: ownController(address) }));
    return admissiond === null ? backends : [...backends, { address: ADMISSIOND, host: -1, coordinator: admissiond }];
  }

  #coordinatorSurroundings(flags: ImpalaFlags): CoordinatorSurroundings {
    const { around } = this;
    const pools = this.#pools;
    return {
      fleet: around.fleet,
      timers: around.timers,
      classes: this.scenario.queries,
      releaseTiming: {
        delayMs: flags.release_backend_states_delay_ms,
        decayFactor: flags.batched_release_decay_factor,
      },
      now: () => around.now(),
      emit: (event) => around.emit(event),
      poolNumber: (name) => pools.numberOf(name),
      configOf: (pool) => pools.configOf(pool),
      rootConfig: () => pools.configOf(ROOT_POOL),
      hostNumber: (address) => this.hostNumber(address),
      answered: (query, how, at) => this.#answered(query, how, at),
      stands: (query, standing) => this.#stands(query, standing),
      route: (task, coordinator, query) => void this.#routes.set(task, { coordinator, query }),
      noteStart: (query, at) => around.noteStart(query, at),
    };
  }
}
