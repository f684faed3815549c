/**
 * The live driver's coordinators and its `admissiond` on a clock that stands still between two appointments, with
 * instances that only take their time: everything that threads and real timers make late, left out.
 *
 * What is left has to be what virtual time says, to the microsecond.
 */
import { controllerFlagsOf } from "../../src/config/controller-flags.ts";
import type { Fault, Scenario } from "../../src/config/scenario.ts";
import { backendsOf } from "../../src/config/scenario-cluster.ts";
import { flagsOf, openPools } from "../../src/config/scenario-pools.ts";
import { serviceTimingOf } from "../../src/config/service-timing.ts";
import { controllerOptions } from "../../src/core/admission/controller-options.ts";
import type { RunEvent } from "../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig, ROOT_POOL } from "../../src/core/pool-config.ts";
import { NOTHING_NEW } from "../../src/core/statestore/topic.ts";
import type { Bytes, Instant, Millis } from "../../src/core/units.ts";
import { Admissiond } from "../../src/runtime/admissiond.ts";
import { ClusterView, OwnView } from "../../src/runtime/cluster-view.ts";
import { Coordinator, type CoordinatorSurroundings } from "../../src/runtime/coordinator.ts";
import type { LiveQuery } from "../../src/runtime/live-query.ts";
import { CANCELLED_CODE, type FragmentOrder, type Progress, type QueryOrder } from "../../src/runtime/protocol.ts";
import type { Appointment } from "../../src/runtime/timers.ts";
import { poolResolver } from "../../src/workload/pool-resolver.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";
import type { Workload } from "../../src/workload/workload.ts";

/** Appointments in order, and after all of one instant what was put off to a later turn. */
class SteppedTime {
  now = 0 as Instant;
  #appointments: Appointment[] = [];
  #later: (() => void)[] = [];
  #made = 0;

  at(at: Instant, act: (now: Instant) => void): Appointment {
    const appointment: Appointment = { at, order: this.#made++, act };
    this.#appointments.push(appointment);
    return appointment;
  }

  cancel(appointment: Appointment | null): void {
    if (appointment !== null) appointment.act = null;
  }

  soon(act: () => void): void {
    this.#later.push(act);
  }

  run(until: number): void {
    for (;;) {
      const [next] = this.#appointments.filter((a) => a.act !== null).sort((a, b) => a.at - b.at || a.order - b.order);
      if (this.#later.length > 0 && (next === undefined || next.at > this.now)) {
        for (const act of this.#later.splice(0)) act();
        continue;
      }
      if (next === undefined || next.at > until) return;
      this.#appointments = this.#appointments.filter((a) => a !== next && a.act !== null);
      this.now = Math.max(this.now, next.at) as Instant;
      next.act!(this.now);
    }
  }
}

/** Instances that claim nothing and end after their query's duration. */
class Instances {
  readonly #time: SteppedTime;
  readonly #routes = new Map<number, { readonly coordinator: Coordinator; readonly query: LiveQuery }>();
  #tasks = 0;

  constructor(time: SteppedTime) {
    this.#time = time;
  }

  nextTask(): number {
    return this.#tasks++;
  }

  route(task: number, coordinator: Coordinator, query: LiveQuery): void {
    this.#routes.set(task, { coordinator, query });
  }

  startFragments(query: QueryOrder, fragments: readonly Omit<FragmentOrder, "epoch">[]): void {
    const until = (query.admittedAt + query.duration) as Instant;
    for (const { task } of fragments) {
      this.#tell({ kind: "started", task, at: this.#time.now });
      this.#time.at(until, () => this.#ends(task, null));
    }
  }

  cancel(tasks: readonly number[]): void {
    this.#time.soon(() => {
      for (const task of tasks) this.#ends(task, { code: CANCELLED_CODE, text: "Cancelled" });
    });
  }

  #ends(task: number, error: Extract<Progress, { kind: "finished" }>["error"]): void {
    const none = 0 as Bytes;
    const at = this.#time.now;
    this.#tell({ kind: "finished", task, at, peak: none, peakOnHost: none, spilled: none, output: null, error });
    this.#routes.delete(task);
  }

  #tell(p: Progress): void {
    const route = this.#routes.get(p.task);
    route?.coordinator.progress(route.query, p, this.#time.now);
  }
}

const ADMISSIOND = "admissiond:29500";

export class SteppedRun {
  readonly time = new SteppedTime();
  readonly events: RunEvent[] = [];
  readonly cluster: ClusterView;
  readonly coordinators: readonly Coordinator[];
  readonly workload: Workload;
  readonly underWay = new Set<LiveQuery>();
  readonly #admissiond: Admissiond;
  #losesReleases = false;

  constructor(scenario: Scenario) {
    const flags = flagsOf(scenario);
    const pools = openPools(scenario, flags);
    const resolver = poolResolver(() => pools, flags, scenario.users);
    this.workload = createWorkload(scenario, resolver);
    const backends = backendsOf(scenario.cluster);
    this.cluster = new ClusterView(backends, flags.cluster_membership_retained_removed_coords);
    const instances = new Instances(this.time);
    const configs = new Map<string, PoolConfig>();
    const configOf = (pool: string): PoolConfig => {
      const found = pools.lookUp(pool);
      if (!configs.has(pool)) configs.set(pool, found.kind === "found" ? found.config : DEFAULT_POOL_CONFIG);
      return configs.get(pool)!;
    };
    const { time } = this;
    const shared = { timers: time, now: () => time.now, soon: (act: () => void) => time.soon(act) };
    const options = controllerOptions({ hostId: ADMISSIOND, mode: "global", flags: controllerFlagsOf(flags) });
    this.#admissiond = new Admissiond(options, serviceTimingOf(flags), {
      ...shared,
      tell: ({ call, now }) =>
        this.events.push({ kind: "controllerCall", at: time.now, controller: ADMISSIOND, now, call }),
      membership: () => this.cluster.membership,
      recoveryGraceMs: 30_000,
      losesRelease: () => this.#losesReleases,
      hostsChecked: ({ id }, slots, hostMemory) =>
        this.events.push({ kind: "hostsChecked", at: time.now, query: id, slots, hostMemory }),
    });
    const around: CoordinatorSurroundings = {
      ...shared,
      fleet: instances,
      classes: scenario.queries,
      releaseTiming: {
        delayMs: flags.release_backend_states_delay_ms,
        decayFactor: flags.batched_release_decay_factor,
      },
      emit: (event) => this.events.push(event),
      poolNumber: () => 0,
      configOf,
      rootConfig: () => configOf(ROOT_POOL),
      hostNumber: (address) => backends.findIndex((b) => b.address === address),
      answered: (q, how, at) => this.workload.ended(q.submission, how, at),
      setUnderWay: (q, is) => (is ? this.underWay.add(q) : this.underWay.delete(q)),
      route: (task, coordinator, query) => instances.route(task, coordinator, query),
      noteStart: () => undefined,
    };
    const settings = { blacklist: { maxMissedHeartbeats: 10, heartbeatMs: 1000 }, recoveryGraceMs: 30_000 };
    this.coordinators = backends
      .filter((b) => b.isCoordinator)
      .map(
        ({ address }) =>
          new Coordinator(
            address,
            (hear) => this.#admissiond.open(address, hear),
            new OwnView(this.cluster, settings),
            around,
          ),
      );
    this.#exchange(0 as Instant);
    // On the grid of virtual time: the last of all subscribers.
    const { every } = scenario.cluster.statestore;
    this.#exchangeEvery(
      every,
      (Math.floor((every * 1000 * backends.length) / (backends.length + 1)) / 1000) as Instant,
    );
    this.#arrivals();
    for (const fault of scenario.faults)
      this.time.at(fault.at, (now) =>
        this.#happens(fault, (now + scenario.cluster.statestore.failureAfter) as Instant),
      );
  }

  /** As `LiveFaults` has it. */
  #happens(fault: Fault, failed: Instant): void {
    if (fault.kind === "releasesLost") this.#losesReleases = fault.chance === 1;
    else if (fault.kind === "coordinatorDies") {
      const coordinator = this.coordinator(fault.host);
      this.workload.coordinatorGone(fault.host);
      coordinator.die(this.time.now, "gone");
      this.time.at(failed, () => void (coordinator.isAlive || this.cluster.leave(fault.host)));
    } else if (fault.kind === "coordinatorReturns") {
      this.coordinator(fault.host).restart();
      this.workload.coordinatorBack(fault.host);
    } else throw new Error(`no such fault here: ${fault.kind}`);
  }

  #exchange(now: Instant): void {
    this.#admissiond.exchange([], NOTHING_NEW, now, () => undefined);
  }

  #exchangeEvery(period: Millis, at: Instant): void {
    this.time.at(at, (now) => {
      this.#exchange(now);
      this.#exchangeEvery(period, (now + period) as Instant);
    });
  }

  #arrivals(): void {
    const at = this.workload.nextAt();
    if (at === Number.POSITIVE_INFINITY) return;
    this.time.at(at, (now) => {
      while (this.workload.nextAt() <= now) {
        const submission = this.workload.take();
        this.coordinator(submission.coordinator).submit(submission, now);
      }
      this.#arrivals();
    });
  }

  coordinator(address: string): Coordinator {
    return this.coordinators.find((c) => c.address === address)!;
  }

  run(until: number): readonly RunEvent[] {
    this.time.run(until);
    return this.events;
  }
}
