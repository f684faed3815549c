/**
 * Runs random scenarios under all checkers, one seed after the other, and says how to repeat the one that
 * failed (STYLE 10).
 */
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../core/pool-config.ts";
import { IDLE_OBSERVER } from "../../core/run-observer.ts";
import { createWorkload } from "../../workload/scenario-workload.ts";
import type { Resolver } from "../../workload/workload.ts";
import { toInstant } from "../event-queue.ts";
import type { NewController } from "../seat.ts";
import type { PoolConfigs } from "../simulate.ts";
import { CALM_FAULTS, Simulation, type SimulationParts } from "../simulation.ts";
import { Checks } from "./checkers.ts";
import { type RandomRun, randomRun } from "./random-scenario.ts";
import { ToldOutcomes } from "./told-outcomes.ts";

export interface SeedFailure {
  readonly seed: number;
  readonly at: number;
  readonly event: number;
  readonly problem: string;
}

export interface SweepResult {
  readonly seeds: number;
  readonly queries: number;
  readonly steps: number;
  readonly failure: SeedFailure | null;
}

/** Events of one seed beyond which it is taken to be stuck. */
const MOST_STEPS = 200_000;

/** Seeds `first` to `first + count - 1`; stops at the first that fails. */
export function sweep(first: number, count: number, newController?: NewController): SweepResult {
  let queries = 0;
  let steps = 0;
  for (let seed = first; seed < first + count; seed++) {
    const result = runSeed(seed, newController);
    queries += result.queries;
    steps += result.steps;
    if (result.failure !== null) return { seeds: seed - first + 1, queries, steps, failure: result.failure };
  }
  return { seeds: count, queries, steps, failure: null };
}

export function runSeed(seed: number, newController?: NewController): SweepResult {
  return checkedRun(randomRun(seed), newController);
}

/** Every second plain and every second widened run is made again with everything told: that costs as much as the first. */
const isToldTwice = (seed: number): boolean => seed % 4 < 2;

export function checkedRun(run: RandomRun, newController?: NewController): SweepResult {
  const { seed, faults } = run.scenario;
  const checks = new Checks(faults.every((f) => CALM_FAULTS.has(f.kind)));
  const outcomes = newController === undefined && isToldTwice(seed) ? new ToldOutcomes() : null;
  const sim = new Simulation({
    ...partsOf(run),
    observer: outcomes === null ? checks.observer : outcomes.over(checks.observer),
    inspect: (s) => {
      mustEnd(s);
      checks.inspect(s);
    },
    ...(newController === undefined ? {} : { newController }),
  });
  checks.watch(sim);
  try {
    sim.run();
    checks.finish(sim);
    outcomes?.mustEqual(outcomesToldAll(run));
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    const failure = { seed, at: toInstant(sim.now), event: sim.steps, problem };
    return { seeds: 1, queries: sim.submitted, steps: sim.steps, failure };
  }
  return { seeds: 1, queries: sim.submitted, steps: sim.steps, failure: null };
}

function outcomesToldAll(run: RandomRun): ToldOutcomes {
  const outcomes = new ToldOutcomes();
  const sim = new Simulation({
    ...partsOf(run),
    observer: outcomes.over(IDLE_OBSERVER),
    emit: () => undefined,
    inspect: mustEnd,
  });
  sim.run();
  return outcomes;
}

function mustEnd({ steps }: Simulation): void {
  if (steps > MOST_STEPS) throw new Error("stuck: the run does not end");
}

/** What a driver is given of a run. */
export function partsOf({ scenario, configs, laterConfigs, flags }: RandomRun): SimulationParts {
  let now = configs;
  const poolsOf = (of: ReadonlyMap<string, PoolConfig>): PoolConfigs => ({
    configOf: (pool) => of.get(pool) ?? DEFAULT_POOL_CONFIG,
  });
  const resolver: Resolver = {
    resolve: (pool, user) => ({
      kind: "resolved",
      pool,
      user,
      groups: GROUPS[user] ?? null,
      defaultOptions: {},
      maxMtDop: now.get(pool)?.maxMtDop ?? -1,
    }),
  };
  return {
    scenario,
    workload: createWorkload(scenario, resolver),
    pools: poolsOf(configs),
    flags,
    changedPools: () => {
      now = laterConfigs;
      return poolsOf(now);
    },
  };
}

/** Who is in none, and who is not here at all, whose lookup fails (8.2). */
const GROUPS: Readonly<Record<string, readonly string[]>> = { ana: ["staff", "dev"], ben: [], zoe: ["dev"] };

/** Two lines: what broke, and the command that shows it again. */
export const failureText = ({ seed, at, event, problem }: SeedFailure): string =>
  `FAIL ${problem}   at ${at} ms, event ${event}\nrepeat: npm run sim -- --seed ${seed}`;
