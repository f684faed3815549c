/**
 * The live driver's cluster on a clock that stands still between two appointments, with instances that reserve their
 * limit and take their time: everything that threads and real timers make late, left out.
 *
 * What is left has to be what virtual time says, to the microsecond.
 */

import type { ImpalaFlags } from "../../src/config/impala-flags.ts";
import type { Scenario } from "../../src/config/scenario.ts";
import { backendsOf } from "../../src/config/scenario-cluster.ts";
import { changedPools, flagsOf, openPools } from "../../src/config/scenario-pools.ts";
import type { RunEvent } from "../../src/core/events.ts";
import type { Bytes, Instant } from "../../src/core/units.ts";
import { execFailedText, unreachableText } from "../../src/runtime/fleet.ts";
import { type FleetControl, LiveCluster } from "../../src/runtime/live-cluster.ts";
import { type ConfigChange, type LivePools, PoolsInForce } from "../../src/runtime/live-pools.ts";
import {
  CANCELLED_CODE,
  type FragmentError,
  type FragmentOrder,
  HOST_LOST_CODE,
  type Progress,
  type QueryOrder,
} from "../../src/runtime/protocol.ts";
import { Timers } from "../../src/runtime/timers.ts";
import { poolResolver } from "../../src/workload/pool-resolver.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";
import type { Workload } from "../../src/workload/workload.ts";
import { SteppedClock } from "./stepped-clock.ts";

/** Emulated milliseconds in which every run of a test is over. */
const A_LONG_TIME = 10_000_000;

export interface Stepped {
  readonly events: readonly RunEvent[];
  /** What hosts were told of each query that began. */
  readonly orders: readonly QueryOrder[];
  /** Null: not within a long time. */
  readonly endedAt: Instant | null;
}

/** Everything that a run of the scenario tells, until it is over; `drainAt`: Ctrl-C then. */
export function stepped(scenario: Scenario, { drainAt }: { readonly drainAt?: number } = {}): Stepped {
  const flags = flagsOf(scenario);
  let pools = openPools(scenario, flags);
  const workload = createWorkload(
    scenario,
    poolResolver(() => pools, flags, scenario.users),
  );
  const live = {
    current: () => pools,
    change: (fault: ConfigChange) => {
      pools = changedPools(pools, fault);
      workload.configurationChanged();
    },
  };
  return steppedRun({ scenario, flags, workload, pools: live }, drainAt);
}

export interface SteppedParts {
  readonly scenario: Scenario;
  readonly flags: ImpalaFlags;
  readonly workload: Workload;
  readonly pools: LivePools;
}

export function steppedRun({ scenario, flags, workload, pools }: SteppedParts, drainAt?: number): Stepped {
  const events: RunEvent[] = [];
  const inForce = new PoolsInForce(pools);
  const clock = new SteppedClock();
  const timers = new Timers(clock, undefined, clock);
  let endedAt: Instant | null = null;
  const addresses = backendsOf(scenario.cluster).map((b) => b.address);
  const fleet = new SteppedFleet(addresses, timers, clock, {
    progress: (batch) => cluster.progress(batch),
    hostLost: (host, why) => cluster.hostLost(host, why),
    hostReady: (host) => cluster.hostReady(host),
  });
  const cluster: LiveCluster = new LiveCluster(scenario, workload, inForce, flags, {
    timers,
    fleet,
    now: () => clock.now(),
    soon: (act) => clock.soon(act),
    emit: (event) => events.push(event),
    openDesk: () => null,
    noteStart: () => undefined,
    over: () => {
      endedAt ??= clock.now();
    },
  });
  cluster.begin();
  if (drainAt !== undefined) timers.at(drainAt as Instant, () => cluster.shut());
  clock.runUntil(A_LONG_TIME, () => endedAt !== null);
  return { events, orders: fleet.orders, endedAt };
}

interface Listener {
  progress(batch: readonly Progress[]): void;
  hostLost(host: number, why: string): void;
  hostReady(host: number): void;
}

interface Instance {
  readonly host: number;
  readonly pool: number;
  readonly reserves: number;
  /** Its host is gone, and nobody knows; or it stands still. */
  isSilent: boolean;
  isHeld: boolean;
}

/** Hosts that have room for everything. */
class SteppedFleet implements FleetControl {
  readonly #addresses: readonly string[];
  readonly #timers: Timers;
  readonly #clock: SteppedClock;
  readonly #tell: Listener;
  readonly #open = new Map<number, Instance>();
  readonly #lost = new Set<number>();
  readonly orders: QueryOrder[] = [];
  #tasks = 0;

  constructor(addresses: readonly string[], timers: Timers, clock: SteppedClock, tell: Listener) {
    this.#addresses = addresses;
    this.#timers = timers;
    this.#clock = clock;
    this.#tell = tell;
  }

  nextTask(): number {
    return this.#tasks++;
  }

  startFragments(query: QueryOrder, fragments: readonly Omit<FragmentOrder, "epoch">[]): void {
    this.orders.push(query);
    const until = (query.admittedAt + query.duration) as Instant;
    for (const { task, host, memLimit, siblings, peak } of fragments) {
      const reserves = memLimit > 0 ? Math.floor(memLimit / siblings) : peak;
      this.#open.set(task, { host, pool: query.pool, reserves, isSilent: false, isHeld: false });
      if (this.#lost.has(host)) this.#clock.soon(() => this.#ends(task, lost(execFailedText(this.#addresses[host]!))));
      else {
        this.#tell.progress([{ kind: "started", task, at: this.#clock.now() }]);
        this.#timers.at(until, () => this.#isDone(task));
      }
    }
  }

  #isDone(task: number): void {
    const instance = this.#open.get(task);
    if (instance !== undefined && !instance.isSilent && !instance.isHeld) this.#ends(task, null);
  }

  hold(tasks: readonly number[]): void {
    for (const task of tasks) {
      const instance = this.#open.get(task);
      if (instance !== undefined) instance.isHeld = true;
    }
  }

  cancel(tasks: readonly number[]): void {
    this.#clock.soon(() => {
      for (const task of tasks) this.#ends(task, { code: CANCELLED_CODE, text: "Cancelled" });
    });
  }

  #ends(task: number, error: FragmentError | null): void {
    if (!this.#open.delete(task)) return;
    const none = 0 as Bytes;
    const at = this.#clock.now();
    const end = { peak: none, peakOnHost: none, spilled: none, output: null, error };
    this.#tell.progress([{ kind: "finished", task, at, ...end }]);
  }

  poolUsages(): null {
    return null;
  }

  poolReserved(host: number, pools: number): Float64Array {
    const reserved = new Float64Array(pools);
    for (const i of this.#open.values())
      if (i.host === host && !i.isSilent && i.pool < pools) reserved[i.pool]! += i.reserves;
    return reserved;
  }

  async silenceHost(host: number, why: string): Promise<void> {
    for (const i of this.#open.values()) if (i.host === host) i.isSilent = true;
    await this.killThread(host, why);
  }

  /** Each host has a thread of its own. */
  async killThread(host: number, why: string): Promise<void> {
    this.#lost.add(host);
    this.#clock.soon(() => {
      for (const [task, i] of [...this.#open])
        if (i.host === host && !i.isSilent) this.#ends(task, lost(unreachableText(this.#addresses[host]!)));
      this.#tell.hostLost(host, why);
      this.#tell.hostReady(host);
    });
  }

  threadOf(host: number): number {
    return host;
  }

  revive(host: number): void {
    this.#lost.delete(host);
  }

  refuse(): void {
    // There is room for everything.
  }
}

const lost = (text: string): FragmentError => ({ code: HOST_LOST_CODE, text });
