/**
 * What a simulated query costs (DESIGN 6): ours, the rivals in the same run, the ratios; exit 99 below a bar.
 *
 *   --quick      a tenth of the queries, no week
 *   --only NAME  one contender, as JSON
 *
 * Rivals do less: SimPy and simjs have 20 places and a queue, no pools, hosts, memory, slots, time-outs or
 * statestore. Their draws are their own. Each contender runs in processes of its own, in turns with the others;
 * CPU time counts, and the best round, because what else the machine does can only add to a round.
 */
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { parseScenario } from "../src/config/scenario-file.ts";
import { fail } from "../src/core/assert.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../src/core/pool-config.ts";
import { IDLE_OBSERVER, type RunObserver } from "../src/core/run-observer.ts";
import { type Bytes, type MaxBytes, MiB, type Millis } from "../src/core/units.ts";
import { SummaryFold } from "../src/insight/summary-fold.ts";
import { simulate } from "../src/sim/simulate.ts";
import { inlineMore } from "../src/surfaces/cli/engine-flags.ts";
import { createWorkload } from "../src/workload/scenario-workload.ts";

const BELOW_BAR = 99;
const { values } = parseArgs({
  options: { quick: { type: "boolean", default: false }, only: { type: "string" } },
});
const scale = values.quick ? 0.1 : 1;
const ROUNDS = values.quick ? 8 : 5;

inlineMore();
setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const cpuSeconds = (): number => process.cpuUsage().user / 1e6;

// Ours

interface Traffic {
  readonly hosts: number;
  readonly perSecond: number;
  readonly hold: unknown;
  readonly pool: Partial<PoolConfig>;
}

/** The worked pool: memory for 13, 20 running, 50 queued, per-query bounds; tiles of `hold` at nine tenths of its load. */
const worked = (hold: string, perSecond: number): Traffic => ({
  hosts: 10,
  perSecond,
  hold,
  pool: {
    maxMemResources: (200_000 * MiB) as Bytes,
    maxRequests: 20,
    maxQueued: 50,
    queueTimeout: 30_000 as Millis,
    minQueryMemLimit: 1024 * MiB,
    maxQueryMemLimit: 8192 * MiB,
  },
});

const MM20: Traffic = {
  hosts: 1,
  perSecond: 18,
  hold: { exponential: { mean: "1s" } },
  pool: { maxRequests: 20, maxQueued: 1_000_000, queueTimeout: 1e9 as Millis },
};

const WEEK: Traffic = {
  ...worked("4s", 10),
  pool: { ...worked("4s", 10).pool, maxMemResources: (900_000 * MiB) as MaxBytes, maxRequests: 60 },
};

interface Run {
  readonly queries: number;
  readonly seconds: number;
  readonly meanWaitMs: number;
}

/** `reports`: with the fold that the command's report is made of; else with nothing but the sum of waits. */
function simulated(traffic: Traffic, queries: number, seed: number, reports = true): Run {
  const scenario = parseScenario(
    JSON.stringify({
      seed,
      cluster: {
        executors: [{ count: traffic.hosts, memory: "100gb", slots: 16 }],
        coordinators: [{ count: 1, on: "executor" }],
      },
      pools: "flags",
      queries: {
        tile: { user: "ana", pool: "q", estimate: "1.5gb", uses: { peak: "1.2gb" }, duration: traffic.hold },
      },
      arrivals: [{ rate: traffic.perSecond, query: "tile" }],
      limits: { queries },
    }),
    "bench.json",
  );
  const config: PoolConfig = { ...DEFAULT_POOL_CONFIG, ...traffic.pool };
  const workload = createWorkload(scenario, {
    resolve: (pool, user) => ({ kind: "resolved", pool, user, groups: [], defaultOptions: {}, maxMtDop: -1 }),
  });
  // Adds waits up, as the rivals do.
  const waits = { sum: 0, count: 0 };
  const adder: RunObserver = {
    ...IDLE_OBSERVER,
    admitted: (_at, _q, _path, waited) => {
      waits.sum += waited;
      waits.count++;
    },
  };
  const fold = new SummaryFold({
    configOf: () => config,
    needOf: () => null,
    admission: "distributed",
    mayLeak: false,
  });
  const began = cpuSeconds();
  simulate({
    scenario,
    workload,
    pools: { configOf: () => config },
    observer: reports ? fold : adder,
    looksAtHosts: reports,
  });
  const seconds = cpuSeconds() - began;
  const mean = reports ? fold.finish().pools[0]?.waitMs.mean : waits.sum / waits.count;
  return { queries, seconds, meanWaitMs: mean ?? Number.NaN };
}

// Rivals

function simPy(customers: number): Run | null {
  const script = new URL("rivals/mm20.py", import.meta.url).pathname;
  for (const python of ["/usr/bin/python3", "python3"]) {
    const { status, stdout } = spawnSync(python, [script, String(customers)], { encoding: "utf8" });
    if (status !== 0) continue;
    const { seconds, meanWait } = JSON.parse(stdout) as { seconds: number; meanWait: number };
    return { queries: customers, seconds, meanWaitMs: meanWait * 1000 };
  }
  return null;
}

interface SimJsEntity {
  time(): number;
  setTimer(after: number): { done(then: () => void): void };
  useFacility(facility: unknown, time: number): { done(then: () => void): void };
}
interface SimJs {
  readonly Sim: new () => { addEntity(kind: unknown): void; simulate(until: number): void };
  readonly Entity: new (...args: unknown[]) => SimJsEntity;
  readonly Facility: { new (name: string, discipline: unknown, servers: number): unknown; readonly FCFS: unknown };
  readonly Random: new (seed: number) => { exponential(rate: number): number };
}

/** The package is made for browsers and leaves itself on `window`. */
function loadSimJs(): SimJs {
  const global = globalThis as { window?: { Sim?: SimJs } };
  global.window = {};
  createRequire(import.meta.url)("simjs");
  const loaded = global.window.Sim;
  delete global.window;
  if (loaded === undefined) throw new Error("simjs did not load");
  return loaded;
}

const simJs = loadSimJs();

function simJsRun(customers: number): Run {
  const { Sim, Entity, Facility, Random } = simJs;
  const sim = new Sim();
  const places = new Facility("places", Facility.FCFS, 20);
  const random = new Random(1);
  let waited = 0;
  class Source extends Entity {
    #left = customers;
    start(): void {
      if (this.#left-- === 0) return;
      this.setTimer(random.exponential(18)).done(() => {
        const at = this.time();
        const hold = random.exponential(1);
        this.useFacility(places, hold).done(() => {
          waited += this.time() - at - hold;
        });
        this.start();
      });
    }
  }
  sim.addEntity(Source);
  const began = cpuSeconds();
  sim.simulate(1e12);
  return {
    queries: customers,
    seconds: cpuSeconds() - began,
    meanWaitMs: (waited / customers) * 1000,
  };
}

// Contenders, each in a process of its own

const CONTENDERS: Readonly<Record<string, (round: number) => Run>> = {
  rules: (round) => simulated(worked("200ms", 58), 600_000 * scale, round, false),
  report: (round) => simulated(worked("200ms", 58), 600_000 * scale, round),
  slow: (round) => simulated(worked("4s", 2.9), 300_000 * scale, round),
  mm20: (round) => simulated(MM20, 1_000_000 * scale, round, false),
  simJs: () => simJsRun(500_000 * scale),
  week: (round) => simulated(WEEK, 6_048_000, round),
};

const rate = (r: Run): number => r.queries / r.seconds;
const best = (runs: readonly Run[]): Run => runs.reduce((a, b) => (rate(b) > rate(a) ? b : a));

function inAnotherProcess(contender: string): Run {
  const quick = values.quick ? ["--quick"] : [];
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [new URL(import.meta.url).pathname, "--only", contender, ...quick],
    { encoding: "utf8", maxBuffer: 1e8 },
  );
  if (status !== 0) throw new Error(`${contender} failed: ${stderr}`);
  return JSON.parse(stdout) as Run;
}

function runOnly(contender: string): void {
  const run = CONTENDERS[contender] ?? fail(`no contender is called ${contender}`);
  const rounds = contender === "week" ? 1 : ROUNDS;
  console.log(JSON.stringify(best(Array.from({ length: rounds }, (_, i) => run(i + 1)))));
}

// The table

const shown = (perSecond: number): string => `${(perSecond / 1e6).toFixed(2)} M/s`;
let isBelow = false;

function line(what: string, figure: string, bar: string, holds: boolean | null): void {
  if (holds === false) isBelow = true;
  const verdict = holds === null ? "" : holds ? "ok" : "BELOW";
  console.log(`${what.padEnd(58)}${figure.padStart(14)}   ${bar.padEnd(22)}${verdict}`);
}

/** Heap after a run of so many queries, in MB. */
function heapAfter(queries: number): number {
  simulated(worked("200ms", 58), queries, 1);
  collectGarbage();
  return process.memoryUsage().heapUsed / 1e6;
}

function compareAll(): void {
  const turns = values.quick ? 1 : 2;
  const runs: Record<"rules" | "report" | "slow" | "mm20" | "simJs", Run[]> = {
    rules: [],
    report: [],
    slow: [],
    mm20: [],
    simJs: [],
  };
  const python: Run[] = [];
  for (let turn = 0; turn < turns; turn++) {
    for (const name of ["rules", "report", "slow", "mm20", "simJs"] as const) runs[name].push(inAnotherProcess(name));
    const run = simPy(200_000 * scale);
    if (run !== null) python.push(run);
  }
  const [rules, report, slow] = [best(runs.rules), best(runs.report), best(runs.slow)];
  const [mm20, js] = [best(runs.mm20), best(runs.simJs)];
  line(
    "full rules, 10 hosts, tiles of 0.2 s at 0.9 of the load",
    shown(rate(rules)),
    "at least 1 M/s",
    rate(rules) >= 1e6,
  );
  line("  with the report's fold", shown(rate(report)), "", null);
  line("full rules, 10 hosts, tiles of 4 s, with the fold", shown(rate(slow)), "", null);
  line(`M/M/20 at 0.9, mean wait ${mm20.meanWaitMs.toFixed(0)} ms`, shown(rate(mm20)), "", null);
  line(`  simjs, mean wait ${js.meanWaitMs.toFixed(0)} ms`, shown(rate(js)), "", null);
  line("  ratio to simjs", `${(rate(mm20) / rate(js)).toFixed(2)}x`, "at least 1.5x", rate(mm20) >= 1.5 * rate(js));
  if (python.length === 0) line("  SimPy", "not found", "apt python3-simpy3", null);
  else {
    const py = best(python);
    line(`  SimPy, mean wait ${py.meanWaitMs.toFixed(0)} ms`, shown(rate(py)), "", null);
    line("  ratio to SimPy", `${(rate(mm20) / rate(py)).toFixed(1)}x`, "at least 8x", rate(mm20) >= 8 * rate(py));
  }
  const small = heapAfter(100_000 * scale);
  const large = heapAfter(2_000_000 * scale);
  line(
    "heap after 20 times as many queries",
    `${(large - small).toFixed(1)} MB more`,
    "at most 2 MB",
    large - small <= 2,
  );
  if (!values.quick) {
    const week = inAnotherProcess("week");
    line("a week at 10 queries/s, with the fold", `${week.seconds.toFixed(1)} s`, "at most 10 s", week.seconds <= 10);
  }
  process.exitCode = isBelow ? BELOW_BAR : 0;
}

if (values.only === undefined) compareAll();
else runOnly(values.only);
