/**
 * Small problems for `size`: one pool on ten hosts, a seeded hour of traffic.
 */
import type { Scenario } from "../../../src/config/scenario.ts";
import { parseScenario } from "../../../src/config/scenario-file.ts";
import { flagsOf } from "../../../src/config/scenario-pools.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../../src/core/pool-config.ts";
import type { Bytes, Millis } from "../../../src/core/units.ts";
import type { Outcome } from "../../../src/insight/size/outcome.ts";
import { type Evaluate, Evaluator, type Job, type SizeProblem } from "../../../src/insight/size/problem.ts";
import type { Setting } from "../../../src/insight/size/setting.ts";
import { recordRequests } from "../../../src/workload/recorded-requests.ts";
import { createWorkload } from "../../../src/workload/scenario-workload.ts";
import type { Resolver } from "../../../src/workload/workload.ts";

export const GiB = 1024 ** 3;
export const POOL = "root.tiles";

export const NOW: Setting = {
  maxMem: 150 * GiB,
  maxRunning: 20,
  maxQueued: 50,
  timeout: 30_000,
  minQueryMem: 0,
  maxQueryMem: 0,
  split: null,
};

export const RESOLVER: Resolver = {
  resolve: (pool, user) => ({ kind: "resolved", pool, user, groups: [], defaultOptions: {}, maxMtDop: -1 }),
};

export const configOf = (s: Setting): PoolConfig => ({
  ...DEFAULT_POOL_CONFIG,
  maxMemResources: s.maxMem as Bytes,
  maxRequests: s.maxRunning,
  maxQueued: s.maxQueued,
  queueTimeout: s.timeout as Millis,
  minQueryMemLimit: s.minQueryMem,
  maxQueryMemLimit: s.maxQueryMem,
});

export interface Traffic {
  readonly seed?: number;
  /** Arrivals a second of small queries (1.5 GiB a host, 4 s) and of large ones (4 GiB, 12 s). */
  readonly small?: number;
  readonly large?: number;
  readonly seconds?: number;
  readonly estimate?: number;
  readonly coordinators?: number;
}

export function scenarioOf(t: Traffic): Scenario {
  const factor = t.estimate ?? 1;
  return parseScenario(
    `
seed: ${t.seed ?? 1}
cluster:
  executors: [{ count: 10, memory: ${1000 * factor}gb }]
  coordinators: [{ count: ${t.coordinators ?? 1}, on: dedicated, memory: ${1000 * factor}gb }]
pools: flags
queries:
  small: { pool: ${POOL}, estimate: ${1.5 * factor}gb, coordinatorEstimate: ${0.5 * factor}gb, duration: { exponential: { mean: 4s } }, uses: { peak: ${factor}gb } }
  large: { pool: ${POOL}, estimate: ${4 * factor}gb, coordinatorEstimate: ${0.5 * factor}gb, duration: { exponential: { mean: 12s } }, uses: { peak: ${3 * factor}gb } }
arrivals:
  - { rate: ${t.small ?? 1.5}, query: small, from: 0s, to: ${t.seconds ?? 600}s }
${t.large === 0 ? "" : `  - { rate: ${t.large ?? 0.05}, query: large, from: 0s, to: ${t.seconds ?? 600}s }`}
`,
    "/size.yaml",
  );
}

/** One day of the scenario in one pool without limits, for settings to be tried on. */
export const evaluatorOver = (
  scenario: Scenario,
  { pool = POOL, sigma = 0.3, memoryLag = 0 }: { pool?: string; sigma?: number; memoryLag?: number } = {},
): Evaluator =>
  new Evaluator({
    scenario,
    flags: flagsOf(scenario),
    pool,
    configs: { root: DEFAULT_POOL_CONFIG, [pool]: DEFAULT_POOL_CONFIG },
    days: [recordRequests(createWorkload(scenario, RESOLVER))],
    sigma,
    memoryLag,
    observedConcurrency: null,
    remarks: [],
  });

export function problemOf(t: Traffic = {}, now: Setting = NOW, days = 1): SizeProblem {
  const scenario = scenarioOf(t);
  return {
    scenario,
    flags: flagsOf(scenario),
    pool: POOL,
    configs: { root: DEFAULT_POOL_CONFIG, [POOL]: configOf(now) },
    days: Array.from({ length: days }, (_, r) => recordRequests(createWorkload(scenario, RESOLVER, r))),
    sigma: 0.3,
    memoryLag: 50,
    observedConcurrency: null,
    remarks: [],
  };
}

/** Runs in this thread, and remembers what it ran. */
export function evaluatorFor(problem: SizeProblem): { evaluate: Evaluate; ran: Job[] } {
  const evaluator = new Evaluator(problem);
  const ran: Job[] = [];
  return {
    ran,
    evaluate: async (jobs) =>
      jobs.map((j): Outcome => {
        ran.push(j);
        return evaluator.run(j);
      }),
  };
}

/** Memory in steps of about one small query, with a few limits each. */
export function gridAround(memories: readonly number[]): Setting[] {
  const found: Setting[] = [];
  for (const gib of memories)
    for (const maxRunning of [8, 12, 20, -1])
      for (const maxQueued of [20, 50, 200])
        for (const timeout of [10_000, 30_000])
          found.push({ ...NOW, maxMem: gib * GiB, maxRunning, maxQueued, timeout });
  return found;
}
