/**
 * The live driver's coordinators and its statestore on a clock that stands still between two appointments, each
 * coordinator deciding for itself, with instances that reserve their limit and take their time: everything that threads
 * and real timers make late, left out.
 *
 * What is left has to be what virtual time says, to the microsecond.
 */
import { controllerFlagsOf } from "../../src/config/controller-flags.ts";
import type { Scenario } from "../../src/config/scenario.ts";
import { backendsOf } from "../../src/config/scenario-cluster.ts";
import { flagsOf, openPools } from "../../src/config/scenario-pools.ts";
import { controllerOptions } from "../../src/core/admission/controller-options.ts";
import type { RunEvent } from "../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig, ROOT_POOL } from "../../src/core/pool-config.ts";
import type { Bytes, Instant } from "../../src/core/units.ts";
import type { Alarm } from "../../src/runtime/alarm.ts";
import { ClusterView, OwnView } from "../../src/runtime/cluster-view.ts";
import { Coordinator, type CoordinatorSurroundings } from "../../src/runtime/coordinator.ts";
import type { LiveQuery } from "../../src/runtime/live-query.ts";
import { LiveStatestore } from "../../src/runtime/live-statestore.ts";
import { LocalDesk } from "../../src/runtime/local-desk.ts";
import type { FragmentOrder, Progress, QueryOrder } from "../../src/runtime/protocol.ts";
import { Timers } from "../../src/runtime/timers.ts";
import { poolResolver } from "../../src/workload/pool-resolver.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";
import type { Workload } from "../../src/workload/workload.ts";

/** Time goes from one alarm to the next, and what was put off to a later turn comes before it goes on. */
class SteppedClock implements Alarm {
  #now = 0 as Instant;
  #at: Instant | null = null;
  #later: (() => void)[] = [];
  #ring: () => void = () => undefined;

  now(): Instant {
    return this.#now;
  }

  realUntil(at: Instant): number {
    return Math.max(0, at - this.#now);
  }

  listen(ring: () => void): void {
    this.#ring = ring;
  }

  set(at: Instant): void {
    this.#at = at;
  }

  clear(): void {
    this.#at = null;
  }

  soon(act: () => void): void {
    this.#later.push(act);
  }

  runUntil(isOver: () => boolean): void {
    while (!isOver()) {
      if (this.#at !== null && this.#at <= this.#now) {
        this.#at = null;
        this.#ring();
      } else if (this.#later.length > 0) for (const act of this.#later.splice(0)) act();
      else if (this.#at === null) return;
      else this.#now = this.#at;
    }
  }
}

/** The one pool's reservations by host, and who hears of an instance. */
class Instances {
  readonly #timers: Timers;
  readonly #clock: SteppedClock;
  readonly #routes = new Map<number, { readonly coordinator: Coordinator; readonly query: LiveQuery }>();
  readonly #reserved: number[];
  #tasks = 0;

  constructor(timers: Timers, clock: SteppedClock, hosts: number) {
    this.#timers = timers;
    this.#clock = clock;
    this.#reserved = Array.from({ length: hosts }, () => 0);
  }

  nextTask(): number {
    return this.#tasks++;
  }

  route(task: number, coordinator: Coordinator, query: LiveQuery): void {
    this.#routes.set(task, { coordinator, query });
  }

  startFragments(query: QueryOrder, fragments: readonly Omit<FragmentOrder, "epoch">[]): void {
    const until = (query.admittedAt + query.duration) as Instant;
    for (const f of fragments) {
      this.#reserve(f.host, f.memLimit);
      this.#tell({ kind: "started", task: f.task, at: this.#clock.now() });
      this.#timers.at(until, (at) => {
        this.#reserve(f.host, -f.memLimit);
        const none = 0 as Bytes;
        const end = { peak: none, peakOnHost: none, spilled: none, output: null, error: null };
        this.#tell({ kind: "finished", task: f.task, at, ...end });
      });
    }
  }

  cancel(): void {
    throw new Error("nobody cancels here");
  }

  poolUsages(): null {
    return null;
  }

  poolReserved(host: number): Float64Array {
    return Float64Array.of(this.#reserved[host]!);
  }

  #reserve(host: number, bytes: number): void {
    this.#reserved[host]! += bytes;
  }

  #tell(p: Progress): void {
    const route = this.#routes.get(p.task);
    route?.coordinator.progress(route.query, p, this.#clock.now());
  }
}

/** Nobody is blacklisted here, and no statestore comes back. */
const VIEW_SETTINGS = { blacklist: { maxMissedHeartbeats: 10, heartbeatMs: 1000 }, recoveryGraceMs: 30_000 };

/** Everything that a run of the scenario tells, until the last of its queries has ended. */
export function steppedCluster(scenario: Scenario): readonly RunEvent[] {
  const events: RunEvent[] = [];
  const flags = flagsOf(scenario);
  const pools = openPools(scenario, flags);
  const workload = createWorkload(
    scenario,
    poolResolver(() => pools, flags, scenario.users),
  );
  const configs = new Map<string, PoolConfig>();
  const configOf = (pool: string): PoolConfig => {
    const found = pools.lookUp(pool);
    if (!configs.has(pool)) configs.set(pool, found.kind === "found" ? found.config : DEFAULT_POOL_CONFIG);
    return configs.get(pool)!;
  };
  const backends = backendsOf(scenario.cluster);
  const clock = new SteppedClock();
  const timers = new Timers(clock, undefined, clock);
  const instances = new Instances(timers, clock, backends.length);
  const cluster = new ClusterView(backends, flags.cluster_membership_retained_removed_coords);
  const underWay = new Set<LiveQuery>();
  const shared = { timers, now: () => clock.now(), soon: (act: () => void) => clock.soon(act) };
  const emit = (event: RunEvent): void => void events.push(event);
  const around: CoordinatorSurroundings = {
    ...shared,
    fleet: instances,
    classes: scenario.queries,
    releaseTiming: {
      delayMs: flags.release_backend_states_delay_ms,
      decayFactor: flags.batched_release_decay_factor,
    },
    emit,
    poolNumber: () => 0,
    configOf,
    rootConfig: () => configOf(ROOT_POOL),
    hostNumber: (address) => backends.findIndex((b) => b.address === address),
    answered: (q, how, at) => workload.ended(q.submission, how, at),
    setUnderWay: (q, is) => (is ? underWay.add(q) : underWay.delete(q)),
    route: (task, coordinator, query) => instances.route(task, coordinator, query),
    noteStart: () => undefined,
  };
  const coordinators = backends
    .filter((b) => b.isCoordinator)
    .map(({ address: hostId }) => {
      const options = controllerOptions({ hostId, mode: "distributed", flags: controllerFlagsOf(flags) });
      const view = new OwnView(cluster, VIEW_SETTINGS);
      return new Coordinator(hostId, (tell) => new LocalDesk(options, { ...shared, tell }), view, around);
    });
  const statestore = new LiveStatestore(
    scenario.cluster.statestore,
    backends.map(({ address }, host) => ({ address, host, coordinator: named(coordinators, address) ?? null })),
    { timers, fleet: instances, now: () => clock.now(), emit, pools: ["default-pool"] },
  );
  statestore.start(clock.now());
  arrivals(workload, timers, coordinators);
  clock.runUntil(() => underWay.size === 0 && workload.nextAt() === Number.POSITIVE_INFINITY);
  return events;
}

const named = (coordinators: readonly Coordinator[], address: string): Coordinator | undefined =>
  coordinators.find((c) => c.address === address);

function arrivals(workload: Workload, timers: Timers, coordinators: readonly Coordinator[]): void {
  const at = workload.nextAt();
  if (at === Number.POSITIVE_INFINITY) return;
  timers.at(at, (now) => {
    while (workload.nextAt() <= now) {
      const submission = workload.take();
      named(coordinators, submission.coordinator)!.submit(submission, now);
    }
    arrivals(workload, timers, coordinators);
  });
}
