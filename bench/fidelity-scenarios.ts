/**
 * What bench/fidelity runs live and then foretells: four small clusters under Poisson traffic at a given load, and the
 * worked example's bursts. All sizes and times are emulated.
 *
 * At 10 emulated seconds a real one a mean hold is 200 real milliseconds: a delay of 50 microseconds is a fortieth of
 * a per cent of it, and 300 mean holds are a minute.
 */
import { join } from "node:path";
import type { Scenario } from "../src/config/scenario.ts";
import { parseScenario, readScenario } from "../src/config/scenario-file.ts";
import { flagsOf, openPools } from "../src/config/scenario-pools.ts";
import { poolResolver } from "../src/workload/pool-resolver.ts";
import { createWorkload } from "../src/workload/scenario-workload.ts";
import type { Submission } from "../src/workload/workload.ts";

const HOLD_S = 2;
/** Queries of the one-class pools that run at a time. */
const PLACES = 10;

/** What binds: a count, a pool's memory, memory with queries of two sizes, or a count that three coordinators check. */
export type LevelKind = "running" | "memory" | "mixed" | "three";

export const LEVEL_KINDS: readonly LevelKind[] = ["running", "memory", "mixed", "three"];

interface Level {
  readonly kind: LevelKind;
  /** Offered over what the pool gives, by what was drawn, not only by the rates. */
  readonly load: number;
  readonly seed: number;
  /** How long requests come: at least so many mean holds and, in the mean, so many queries. */
  readonly holds: number;
  readonly queries: number;
  /** Emulated seconds a real one. */
  readonly timeScale: number;
}

interface Class {
  readonly name: string;
  readonly limitMb: number;
  readonly peakMb: number;
  readonly holdS: number;
  /** Of all queries. */
  readonly share: number;
}

/** Charged 100 MB a host, half of it used. */
const ONE_SIZE: readonly Class[] = [{ name: "q", limitMb: 100, peakMb: 64, holdS: HOLD_S, share: 1 }];

/** One in four is three times as large, holds twice as long, and writes a third of its memory to scratch. */
const TWO_SIZES: readonly Class[] = [
  { name: "small", limitMb: 100, peakMb: 64, holdS: 1.6, share: 0.75 },
  { name: "large", limitMb: 300, peakMb: 360, holdS: 3.2, share: 0.25 },
];

/** Near 1 a draw that offers a few per cent more is another level, so rates are set by what this seed really draws. */
export function levelScenario(level: Level): Scenario {
  const drawn = scenarioWith(level, 1);
  return scenarioWith(level, level.load / offeredBy(drawn, level.kind));
}

/** `stretch`: the same requests come so many times faster. */
function scenarioWith({ kind, load, seed, holds, queries, timeScale }: Level, stretch: number): Scenario {
  const classes = classesOf(kind);
  const byMemory = isByMemory(kind);
  const poolMb = poolMbOf(kind);
  // A query's demand, in places or in megabyte-seconds of one host.
  const demand = mean(classes, (c) => c.holdS * (byMemory ? c.limitMb : 1));
  const perSecond = (load * (byMemory ? poolMb : PLACES)) / demand;
  const seconds = Math.max(holds * mean(classes, (c) => c.holdS), queries / perSecond);
  const coordinators = kind === "three" ? 3 : 1;
  const hosts = Math.max(2, coordinators);
  const limit = byMemory
    ? { default_pool_mem_limit: `${poolMb * hosts}mb`, default_pool_max_requests: -1 }
    : { default_pool_max_requests: PLACES };
  const overload =
    load > 1
      ? { default_pool_max_queued: 50, queue_wait_timeout_ms: 15_000 }
      : { default_pool_max_queued: 100_000, queue_wait_timeout_ms: 3_600_000 };
  const scenario = {
    name: `fidelity-${kind}-${load}`,
    seed,
    cluster: {
      executors: [{ count: hosts, memory: "100gb", slots: 64 }],
      // On executors, so that a query is charged for as many hosts as it runs on.
      coordinators: [{ count: coordinators, on: "executor" }],
    },
    pools: "flags",
    flags: { ...limit, ...overload },
    queries: Object.fromEntries(classes.map((c) => [c.name, queryClass(c)])),
    arrivals: classes.map((c) => ({
      rate: perSecond * c.share * stretch,
      query: c.name,
      from: "0s",
      to: `${seconds / stretch}s`,
    })),
    scale: { time: timeScale, memory: 1024 },
    threads: 2,
  };
  return parseScenario(JSON.stringify(scenario), `${scenario.name}.json`);
}

/** What all requests hold, each for its drawn duration, over what the pool gives in the time in which they come. */
function offeredBy(scenario: Scenario, kind: LevelKind): number {
  const places = new Map(classesOf(kind).map((c) => [c.name, isByMemory(kind) ? c.limitMb : 1]));
  const drawn = requestsOf(scenario);
  const held = drawn.reduce((sum, s) => sum + s.duration * places.get(scenario.queries[s.queryClass]!.name)!, 0);
  return held / (drawn.at(-1)!.intended * (isByMemory(kind) ? poolMbOf(kind) : PLACES));
}

/** All that will come, in order of time. */
export function requestsOf(scenario: Scenario): readonly Submission[] {
  const flags = flagsOf(scenario);
  const pools = openPools(scenario, flags);
  const workload = createWorkload(
    scenario,
    poolResolver(() => pools, flags, scenario.users),
  );
  const drawn: Submission[] = [];
  while (workload.nextAt() < Number.POSITIVE_INFINITY) {
    const submission = workload.take();
    drawn.push(submission);
    workload.ended(submission, "finished", submission.intended);
  }
  return drawn;
}

const classesOf = (kind: LevelKind): readonly Class[] => (kind === "mixed" ? TWO_SIZES : ONE_SIZE);
const isByMemory = (kind: LevelKind): boolean => kind === "memory" || kind === "mixed";
/** Of each host. */
const poolMbOf = (kind: LevelKind): number => PLACES * 100 * (kind === "mixed" ? 3 : 1);

/** What a host reserves for a query is its limit while it runs, and the pool hears of it through the topic. */
const queryClass = ({ limitMb, peakMb, holdS }: Class) => ({
  user: "ana",
  estimate: `${limitMb}mb`,
  uses: { peak: `${peakMb}mb`, shape: "ramp" },
  options: { MEM_LIMIT: `${limitMb}mb` },
  duration: { exponential: { mean: `${holdS}s` } },
});

const mean = (classes: readonly Class[], of: (c: Class) => number): number =>
  classes.reduce((sum, c) => sum + c.share * of(c), 0);

/**
 * How long the last one waits by the rules: four waves of 4 s, each of which begins at the topic round after the
 * release that makes room for it; with dropped statistics seven waves of the same, before the others time out.
 */
export const BURSTS: readonly { readonly file: string; readonly lastWaitMs: number }[] = [
  { file: "scenario.yaml", lastWaitMs: 4 * 4100 },
  { file: "dedicated-coordinator.yaml", lastWaitMs: 4 * 4100 },
  { file: "dropped-statistics.yaml", lastWaitMs: 7 * 4100 },
];

export const burstScenario = (file: string): Scenario =>
  readScenario(join(import.meta.dirname, "../examples/dashboards", file));
