/**
 * The emulator set up as a textbook queue, so that closed forms hold (insight 6.6): one controller, one pool,
 * one host far larger than needed, holds drawn, everything released in one step.
 *
 * Unit is the mean hold, one emulated second. With memory as the limit a freed place is seen at the next
 * exchange, so there the statestore is made fast.
 */
import { parseScenario } from "../../src/config/scenario-file.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../src/core/pool-config.ts";
import type { RunObserver } from "../../src/core/run-observer.ts";
import { type Bytes, GiB, type Millis } from "../../src/core/units.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";

const HOLD_MS = 1000;
const WARM_UP = 0.1;

export interface TextbookQueue {
  readonly id: string;
  readonly what: string;
  readonly places?: number;
  /** Arrivals per mean hold; left out: `clients`. */
  readonly rate?: number;
  readonly clients?: { readonly count: number; readonly think: number };
  readonly hold?: "exponential" | "fixed" | "lognormal cv 2";
  readonly waiting?: number;
  /** In mean holds. */
  readonly patience?: number;
  /** Memory 2, and the share of queries that need 1; the others need 2. */
  readonly smallShare?: number;
  readonly expected: {
    readonly pWait?: number;
    /** Among accepted (V13 to V16) or all. */
    readonly pWaitOf?: "accepted" | "all";
    readonly wait?: number;
    readonly p95?: number;
    readonly lost?: number;
    readonly throughput?: number;
  };
  /** Standard errors of mean wait and of the loss at a million queries, in percent. */
  readonly se: { readonly wait?: number; readonly lost?: number; readonly throughput?: number };
}

export interface Measured {
  readonly pWait: number;
  readonly wait: number;
  readonly p95: number;
  readonly lost: number;
  readonly throughput: number;
}

export function run(queue: TextbookQueue, queries: number, seed: number): Measured {
  const scenario = parseScenario(JSON.stringify(scenarioOf(queue, queries, seed)), "queue.json");
  const meter = new Meter(queries);
  const workload = createWorkload(scenario, {
    resolve: (pool, user) => ({ kind: "resolved", pool, user, groups: [], defaultOptions: {}, maxMtDop: -1 }),
  });
  const config = configOf(queue);
  simulate({ scenario, workload, pools: { configOf: () => config }, observer: meter });
  return meter.measured();
}

/** V23: all there at once, so that the queue is never empty; departures per mean hold. */
export function saturatedThroughput(queries: number, seed: number): number {
  const queue: TextbookQueue = { id: "V23", what: "", smallShare: 0.5, rate: 1, expected: {}, se: {} };
  const base = scenarioOf(queue, queries, seed);
  const arrivals = [{ at: "0s", count: queries, query: base.arrivals[0]!.query }];
  const scenario = parseScenario(JSON.stringify({ ...base, arrivals }), "queue.json");
  const workload = createWorkload(scenario, {
    resolve: (pool, user) => ({ kind: "resolved", pool, user, groups: [], defaultOptions: {}, maxMtDop: -1 }),
  });
  const config = configOf(queue);
  const { endedAt } = simulate({ scenario, workload, pools: { configOf: () => config } });
  return (queries / endedAt) * HOLD_MS;
}

function scenarioOf(q: TextbookQueue, queries: number, seed: number) {
  const common = { user: "ana", pool: "q", uses: { peak: "0" }, duration: holdOf(q) };
  const arrival =
    q.clients === undefined
      ? { rate: q.rate }
      : {
          clients: q.clients.count,
          think: { exponential: { mean: `${q.clients.think * HOLD_MS}ms` } },
        };
  const share = q.smallShare ?? 1;
  const mix = { query: share === 1 ? "small" : { small: share, large: 1 - share } };
  return {
    seed,
    cluster: {
      executors: [{ count: 1, memory: "1000gb", slots: 16 }],
      coordinators: [{ count: 1, on: "executor" }],
      statestore: { every: q.smallShare === undefined ? "100ms" : "1ms" },
    },
    pools: "flags",
    queries: {
      small: { ...common, estimate: "1gb" },
      ...(share === 1 ? {} : { large: { ...common, estimate: "2gb" } }),
    },
    arrivals: [{ ...arrival, ...mix }],
    limits: { queries },
  };
}

function holdOf(q: TextbookQueue) {
  if (q.hold === "fixed") return `${HOLD_MS}ms`;
  if (q.hold === "lognormal cv 2") return { lognormal: { mean: `${HOLD_MS}ms`, cv: 2 } };
  return { exponential: { mean: `${HOLD_MS}ms` } };
}

function configOf(q: TextbookQueue): PoolConfig {
  return {
    ...DEFAULT_POOL_CONFIG,
    maxRequests: q.smallShare === undefined ? (q.places ?? 1) : -1,
    maxMemResources: q.smallShare === undefined ? -1 : ((2 * GiB) as Bytes),
    maxQueued: q.waiting ?? 1_000_000,
    queueTimeout: (q.patience === undefined ? 1e9 : q.patience * HOLD_MS) as Millis,
  };
}

/** Counts what was submitted after the first tenth. */
class Meter implements RunObserver {
  readonly #from: number;
  #submitted = 0;
  #counted = 0;
  #lost = 0;
  #waited = 0;
  #waitedToNoEnd = 0;
  readonly #waits: number[] = [];
  #firstAt = -1;
  #lastAt = 0;
  /** Intended moments of the counted ones that are not decided: what was submitted before is left out. */
  #countFrom = Number.POSITIVE_INFINITY;

  constructor(queries: number) {
    this.#from = Math.floor(queries * WARM_UP);
  }

  submitted(at: number): void {
    if (++this.#submitted === this.#from) {
      this.#countFrom = at;
      this.#firstAt = at;
    }
    if (this.#submitted > this.#from) this.#counted++;
    this.#lastAt = at;
  }

  admitted(_: number, q: { readonly intended: number }, path: string, waited: number): void {
    if (q.intended <= this.#countFrom) return;
    this.#waits.push(waited);
    if (path === "fromQueue") this.#waited++;
  }

  rejected(_: number, q: { readonly intended: number }): void {
    if (q.intended > this.#countFrom) this.#lost++;
  }

  timedOut(_: number, q: { readonly intended: number }): void {
    if (q.intended <= this.#countFrom) return;
    this.#lost++;
    this.#waitedToNoEnd++;
  }

  measured(): Measured {
    const waits = this.#waits.sort((a, b) => a - b);
    const inQueue = this.#waited + this.#waitedToNoEnd;
    return {
      pWait: inQueue / (waits.length + this.#waitedToNoEnd),
      wait: waits.reduce((n, w) => n + w, 0) / waits.length / HOLD_MS,
      p95: waits[Math.ceil(waits.length * 0.95) - 1]! / HOLD_MS,
      lost: this.#lost / this.#counted,
      throughput: ((this.#counted - this.#lost) / (this.#lastAt - this.#firstAt)) * HOLD_MS,
    };
  }

  named(): void {
    // Nothing is told by name here.
  }
  unresolved(): void {
    // Everybody has a pool.
  }
  queued(): void {
    // Counted when it ends.
  }
  headWaits(): void {
    // Waits are counted when they end.
  }
  hostsChecked(): void {
    // Not asked for.
  }
  viewUsed(): void {
    // As above.
  }
  cancelled(): void {
    // Nobody cancels.
  }
  spilled(): void {
    // Nothing spills.
  }
  memoryReleased(): void {
    // Not looked at.
  }
  released(): void {
    // Not looked at.
  }
  ended(): void {
    // Everything was counted.
  }
}

/** Insight 6.6; values exact to the digits shown, p95 of V8 to V11 to about 1 %. */
export const TEXTBOOK_QUEUES: readonly TextbookQueue[] = [
  {
    id: "V1",
    what: "M/M/1, 0.5",
    places: 1,
    rate: 0.5,
    expected: { pWait: 0.5, wait: 1, p95: 4.60517 },
    se: { wait: 0.6 },
  },
  {
    id: "V2",
    what: "M/M/2, 0.8",
    places: 2,
    rate: 1.6,
    expected: { pWait: 0.711111, wait: 1.777778, p95: 6.637014 },
    se: { wait: 0.9 },
  },
  {
    id: "V3",
    what: "M/M/5, 0.8",
    places: 5,
    rate: 4,
    expected: { pWait: 0.554113, wait: 0.554113, p95: 2.405345 },
    se: { wait: 1.2 },
  },
  {
    id: "V4",
    what: "M/M/13, 0.8",
    places: 13,
    rate: 10.4,
    expected: { pWait: 0.35103, wait: 0.135012, p95: 0.749557 },
    se: { wait: 2.2 },
  },
  {
    id: "V5",
    what: "M/M/13, 0.9",
    places: 13,
    rate: 11.7,
    expected: { pWait: 0.626912, wait: 0.48224, p95: 1.945218 },
    se: { wait: 2.8 },
  },
  {
    id: "V6",
    what: "M/M/20, 0.9",
    places: 20,
    rate: 18,
    expected: { pWait: 0.550769, wait: 0.275385, p95: 1.199646 },
    se: { wait: 2.9 },
  },
  {
    id: "V7",
    what: "M/M/20, 0.95",
    places: 20,
    rate: 19,
    expected: { pWait: 0.755401, wait: 0.755401, p95: 2.715226 },
    se: { wait: 4.4 },
  },
  {
    id: "V8",
    what: "M/D/1, 0.8",
    places: 1,
    rate: 0.8,
    hold: "fixed",
    expected: { pWait: 0.8, wait: 2, p95: 6.61 },
    se: { wait: 0.8 },
  },
  {
    id: "V9",
    what: "M/D/5, 0.8",
    places: 5,
    rate: 4,
    hold: "fixed",
    expected: { pWait: 0.533615, wait: 0.28906, p95: 1.189 },
    se: { wait: 1.1 },
  },
  {
    id: "V10",
    what: "M/D/13, 0.9",
    places: 13,
    rate: 11.7,
    hold: "fixed",
    expected: { pWait: 0.602603, wait: 0.249875, p95: 0.973 },
    se: { wait: 1.9 },
  },
  {
    id: "V11",
    what: "M/D/20, 0.9",
    places: 20,
    rate: 18,
    hold: "fixed",
    expected: { pWait: 0.523265, wait: 0.144286, p95: 0.608 },
    se: { wait: 2.1 },
  },
  {
    id: "V12",
    what: "M/G/1, 0.8, lognormal cv 2",
    places: 1,
    rate: 0.8,
    hold: "lognormal cv 2",
    expected: { pWait: 0.8, wait: 10 },
    se: { wait: 3.7 },
  },
  {
    id: "V13",
    what: "M/M/5/10, 0.9",
    places: 5,
    rate: 4.5,
    waiting: 5,
    expected: { pWait: 0.567977, wait: 0.316964, lost: 0.075699 },
    se: { wait: 0.4, lost: 0.7 },
  },
  {
    id: "V14",
    what: "M/M/20/20, 0.9 (Erlang B)",
    places: 20,
    rate: 18,
    patience: 0.001,
    expected: { lost: 0.109213 },
    se: { lost: 0.4 },
  },
  {
    id: "V15",
    what: "M/M/13/63, 1.2",
    places: 13,
    rate: 15.6,
    waiting: 50,
    expected: { pWait: 0.999944, wait: 3.461769, lost: 0.166674 },
    se: { wait: 0.2, lost: 0.7 },
  },
  {
    id: "V16",
    what: "M/M/2/52, 5.2",
    places: 2,
    rate: 10.4,
    waiting: 50,
    expected: { pWait: 1, wait: 24.880952, lost: 0.807692 },
    se: { wait: 0.2, lost: 0.05 },
  },
  {
    id: "V17",
    what: "M/M/13 + patience 7.5, 1.1",
    places: 13,
    rate: 14.3,
    patience: 7.5,
    expected: { pWait: 0.999983, wait: 6.731081, lost: 0.090912 },
    se: { wait: 0.35, lost: 1.3 },
  },
  {
    id: "V18",
    what: "M/M/20 + patience 0.5, 0.9",
    places: 20,
    rate: 18,
    patience: 0.5,
    expected: { pWait: 0.450579, wait: 0.091258, lost: 0.024781 },
    se: { wait: 0.8, lost: 1.4 },
  },
  {
    id: "V19",
    what: "M/M/20 + patience 1, 1.0",
    places: 20,
    rate: 20,
    patience: 1,
    expected: { pWait: 0.798674, wait: 0.395357, lost: 0.038032 },
    se: { wait: 0.9, lost: 1.4 },
  },
  {
    id: "V20",
    what: "two sizes, half need 1, 0.8",
    smallShare: 0.5,
    rate: 0.8,
    expected: { wait: 2.153377 },
    se: { wait: 0.9 },
  },
  {
    id: "V21",
    what: "two sizes, half need 1, 1.0",
    smallShare: 0.5,
    rate: 1,
    expected: { wait: 6.5575 },
    se: { wait: 1.8 },
  },
  {
    id: "V22",
    what: "two sizes, nine tenths need 1, 1.2",
    smallShare: 0.9,
    rate: 1.2,
    expected: { wait: 1.547242 },
    se: { wait: 1.2 },
  },
  {
    id: "V24",
    what: "40 clients, think 2.5, 13 places",
    places: 13,
    clients: { count: 40, think: 2.5 },
    expected: { wait: 0.090888, throughput: 11.139306 },
    se: { wait: 1.2, throughput: 0.15 },
  },
  {
    id: "V25",
    what: "10 clients, think 5, 2 places",
    places: 2,
    clients: { count: 10, think: 5 },
    expected: { wait: 0.58217, throughput: 1.519256 },
    se: { wait: 0.4, throughput: 0.15 },
  },
];
