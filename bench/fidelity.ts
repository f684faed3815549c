/**
 * How well the simulation foretells the live fleet (insight 7.4): a small pool at rising load, each level run live and
 * then simulated from its own arrivals and measured holds. Prints the curve, and exits 99 when a level up to 0.9 misses
 * 1.7 % on the mean wait or the bar of insight 7.4 on the p95 (3 %); whether p95 keeps 1.7 % too is printed beside it.
 *
 *     npm run bench:fidelity [-- --quick] [-- --limit memory] [-- --load 0.9] [-- --seed 2]
 *
 * `--limit running`: places are counted, a release wakes whoever waits at once. `--limit memory`: the pool's memory
 * binds, and what hosts reserve is seen one exchange with the statestore later. Writes no files but scratch.
 * Real timers are up to a millisecond late, which is 10 emulated ones here; a machine with other work adds to it.
 */
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import type { Scenario } from "../src/config/scenario.ts";
import { parseScenario } from "../src/config/scenario-file.ts";
import { flagsOf, openPools } from "../src/config/scenario-pools.ts";
import { DEFAULT_POOL_CONFIG } from "../src/core/pool-config.ts";
import { type Fidelity, FidelityFold } from "../src/insight/fidelity/fidelity.ts";
import { SummaryFold } from "../src/insight/summary-fold.ts";
import { openLiveRun } from "../src/runtime/live-run.ts";
import { newRunBus } from "../src/runtime/run-bus.ts";

const { values: flags } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    limit: { type: "string", default: "running" },
    load: { type: "string" },
    seed: { type: "string", default: "1" },
  },
});

const BELOW_A_BAR = 99;
const PLACES = 5;
const TIME_SCALE = 10;
/** Emulated; 200 ms of real time, so that a timer's millisecond is little beside it. */
const HOLD_S = 2;
const REAL_S = flags.quick ? 5 : 40;
const MOST_QUERIES = 2000;
const LOADS = flags.load === undefined ? [0.3, 0.6, 0.8, 0.9, 0.95, 1.1] : [Number(flags.load)];
/** The highest level whose bars decide. */
const DECIDES = 0.9;
const BAR = 1.7;
const BAR_P95 = 3;
/** Up to here a difference of a timer's lateness counts as none (insight 7.4). */
const LOW = 0.7;
const FLOOR_MS = 30;
const FLOOR_P95_MS = 60;

/** Two hosts on two threads; each query is charged 200 MB and has a peak of 64 MB on both executors. */
function scenarioAt(load: number, realSeconds: number): Scenario {
  const perSecond = (load * PLACES) / HOLD_S;
  const seconds = Math.min(realSeconds * TIME_SCALE, MOST_QUERIES / perSecond);
  const limit =
    flags.limit === "memory"
      ? { default_pool_mem_limit: `${PLACES * 2 * 100}mb`, default_pool_max_requests: -1 }
      : { default_pool_max_requests: PLACES };
  const overload =
    load > 1
      ? { default_pool_max_queued: 50, queue_wait_timeout_ms: 15_000 }
      : { default_pool_max_queued: 100_000, queue_wait_timeout_ms: 3_600_000 };
  return parseScenario(
    JSON.stringify({
      name: `fidelity-${load}`,
      seed: Number(flags.seed),
      cluster: {
        executors: [{ count: 2, memory: "100gb", slots: 64 }],
        // On an executor, so that a query is charged for two hosts and no third.
        coordinators: [{ count: 1, on: "executor" }],
      },
      pools: "flags",
      flags: { ...limit, ...overload },
      queries: {
        q: {
          user: "ana",
          estimate: "100mb",
          uses: { peak: "64mb", shape: "ramp" },
          // What a host reserves for a query is its limit while it runs, and the pool hears of it through the topic.
          ...(flags.limit === "memory" ? { options: { MEM_LIMIT: "100mb" } } : {}),
          duration: { exponential: { mean: `${HOLD_S}s` } },
        },
      },
      arrivals: [{ rate: perSecond, query: "q", from: "0s", to: `${seconds}s` }],
      scale: { time: TIME_SCALE, memory: 1024 },
      threads: 2,
    }),
    "fidelity.json",
  );
}

async function measure(load: number, realSeconds = REAL_S): Promise<Fidelity> {
  const scenario = scenarioAt(load, realSeconds);
  const impalaFlags = flagsOf(scenario);
  const directory = openPools(scenario, impalaFlags);
  const configOf = (pool: string) => {
    const found = directory.lookUp(pool);
    return found.kind === "found" ? found.config : null;
  };
  const fold = new FidelityFold({
    scenario,
    flags: impalaFlags,
    pools: { configOf: (pool) => configOf(pool) ?? DEFAULT_POOL_CONFIG },
    configOf,
    newFold: () => new SummaryFold({ configOf, admission: scenario.cluster.admission }),
  });
  const bus = newRunBus();
  bus.on("event", (event) => fold.add(event));
  await (await openLiveRun(scenario, bus)).run();
  return fold.finish(true);
}

const HEADS = [
  "load",
  "queries",
  "hold",
  "mean live",
  "foretold",
  "apart",
  "p95 live",
  "foretold",
  "apart",
  "waited",
  "lost",
  "measured",
  "delays in",
  "apart",
];

interface Level {
  readonly holds: boolean;
  /** The p95 wait keeps the closer bar too. */
  readonly isClose: boolean;
}

async function level(load: number): Promise<Level> {
  const { pools, poolsWithDelays, causes } = await measure(load);
  const pool = pools[0];
  const late = poolsWithDelays[0];
  if (pool === undefined || late === undefined) throw new Error("a level without queries");
  const { measured: m, predicted: p } = pool;
  const mean = apart(m.meanWait, p.meanWait);
  const p95 = apart(m.p95Wait, p.p95Wait);
  const isLow = load < LOW;
  const meanHolds = mean <= BAR || (isLow && Math.abs(m.meanWait - p.meanWait) <= FLOOR_MS);
  const p95Holds = p95 <= BAR_P95 || (isLow && Math.abs(m.p95Wait - p.p95Wait) <= FLOOR_P95_MS);
  const cells = [
    load.toFixed(2),
    String(pool.submitted),
    ms(pool.meanHold),
    ms(m.meanWait),
    ms(p.meanWait),
    percent(mean, meanHolds),
    ms(m.p95Wait),
    ms(p.p95Wait),
    percent(p95, p95Holds && (p95 <= BAR || isLow)),
    points(m.waited, p.waited),
    points(m.lost, p.lost),
    pool.load === null ? "-" : pool.load.toFixed(2),
    ms(late.predicted.meanWait),
    `${apart(m.meanWait, late.predicted.meanWait).toFixed(2)} %`,
  ];
  print(cells);
  for (const c of causes.causes)
    if (c.recorded !== null)
      console.log(
        `      ${c.name.padEnd(16)} mean ${ms(c.recorded.mean)}, p50 ${ms(c.recorded.median)}, p99 ${ms(c.recorded.p99)} ms; ${c.meanWait === null ? "in the holds" : `mean wait with it ${ms(c.meanWait)}, explains ${c.explains === null ? "-" : `${Math.round(c.explains * 100)} %`}`}`,
      );
  return { holds: load > DECIDES || (meanHolds && p95Holds), isClose: p95Holds && (p95 <= BAR || isLow) };
}

const apart = (measured: number, predicted: number): number =>
  measured === predicted ? 0 : (Math.abs(predicted - measured) / measured) * 100;
const ms = (value: number): string => value.toFixed(1);
const percent = (value: number, holds: boolean): string => `${value.toFixed(2)} %${holds ? " " : "!"}`;
const points = (a: number, b: number): string => `${(Math.abs(a - b) * 100).toFixed(1)} pt`;
const print = (cells: readonly string[]): void => console.log(cells.map((c) => c.padStart(10)).join(""));

const loadOfMachine = (): string =>
  loadavg()
    .map((l) => l.toFixed(1))
    .join(" ");

async function main(): Promise<void> {
  console.log(
    `${PLACES} places by ${flags.limit}, seed ${flags.seed}, ${TIME_SCALE} emulated seconds a real one; waits and holds in emulated ms; ! over 1.7 %; machine load ${loadOfMachine()}`,
  );
  print(HEADS);
  // The first moments of a process are slow in a way of their own.
  await measure(DECIDES, 1);
  const levels: Level[] = [];
  for (const load of LOADS) levels.push(await level(load));
  const missed = LOADS.filter((_, i) => !levels[i]!.holds);
  console.log(`machine load at the end ${loadOfMachine()}`);
  console.log(
    missed.length === 0
      ? `ok    every level up to ${DECIDES}: mean within ${BAR} %, p95 within ${BAR_P95} %`
      : `FAIL  ${missed.join(", ")}: mean over ${BAR} % or p95 over ${BAR_P95} %`,
  );
  const wide = LOADS.filter((load, i) => load <= DECIDES && !levels[i]!.isClose);
  console.log(`      p95 within ${BAR} % too: ${wide.length === 0 ? "yes" : `not at ${wide.join(", ")}`}`);
  if (missed.length > 0) process.exitCode = BELOW_A_BAR;
}

await main();
