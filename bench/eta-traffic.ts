/**
 * The traffic that predictions of waits are judged on (insight 5.3): a pool of 200000 mb and 20 places, three
 * classes with lognormal holds of cv² 2, twenty minutes at 0.9 queries a second and twenty at 1.6 in turns. For
 * `bench/eta.ts` and the long test of the same bars.
 */
import type { Scenario } from "../src/config/scenario.ts";
import { parseScenario } from "../src/config/scenario-file.ts";
import { flagsOf } from "../src/config/scenario-pools.ts";
import { inverseNormal } from "../src/core/exact-math.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../src/core/pool-config.ts";
import { philoxFor } from "../src/core/random.ts";
import { type Bytes, MiB, type Millis } from "../src/core/units.ts";
import { type BeliefOf, measureAccuracy, type Trial } from "../src/insight/eta/accuracy.ts";
import type { HoldSource, HoldSources } from "../src/insight/eta/hold-book.ts";
import { createWorkload } from "../src/workload/scenario-workload.ts";

const POOL = "root.a";
const CV = Math.SQRT2;
const STRETCH_MS = 20 * 60_000;

/** Hold in seconds, memory per host, share. */
const CLASSES = {
  small: { mean: 2, estimate: "1.5gb", share: 0.8 },
  middle: { mean: 6, estimate: "4gb", share: 0.18 },
  large: { mean: 30, estimate: "8gb", share: 0.02 },
} as const;
type ClassName = keyof typeof CLASSES;

export interface Deciders {
  readonly coordinators: number;
  readonly admission: "distributed" | "admissiond";
}

export const ONE_COORDINATOR: Deciders = { coordinators: 1, admission: "distributed" };
export const THREE_COORDINATORS: Deciders = { coordinators: 3, admission: "distributed" };
export const ADMISSIOND: Deciders = { coordinators: 3, admission: "admissiond" };

export interface AccuracyRun {
  readonly deciders: Deciders;
  readonly beliefs: Readonly<Record<string, BeliefOf>>;
  readonly trials: number;
  readonly seed?: number;
  readonly timeout?: number;
  readonly every?: number;
}

/** Looks at the traffic until there are so many trials; the first hour only teaches. */
export function accuracyOf({ deciders, beliefs, trials, seed = 12, timeout = 1e9, every = 120_000 }: AccuracyRun) {
  const scenario = scenarioOf(seed, Math.ceil((trials * every) / 1_200_000) + 12, deciders);
  const config: PoolConfig = {
    ...DEFAULT_POOL_CONFIG,
    maxMemResources: (200_000 * MiB) as Bytes,
    maxRequests: 20,
    maxQueued: 1_000_000,
    queueTimeout: timeout as Millis,
  };
  const resolve = (pool: string, user: string) =>
    ({ kind: "resolved", pool, user, groups: [], defaultOptions: {}, maxMtDop: -1 }) as const;
  return measureAccuracy({
    scenario,
    workload: createWorkload(scenario, { resolve }),
    configOf: () => config,
    flags: flagsOf(scenario),
    beliefs,
    every,
    warmUp: 3 * STRETCH_MS,
    most: trials,
  });
}

function scenarioOf(seed: number, hours: number, { coordinators, admission }: Deciders): Scenario {
  const mix = Object.entries(CLASSES).map(([name, c]) => `${name}: ${c.share}`);
  const stretches = Array.from(
    { length: hours * 3 },
    (_, i) =>
      `  - { rate: ${i % 2 === 0 ? 0.9 : 1.6}, query: { ${mix.join(", ")} }, from: ${i * 20}m, to: ${i * 20 + 20}m }`,
  );
  const classes = Object.entries(CLASSES).map(
    ([name, c]) =>
      `  ${name}: { pool: ${POOL}, estimate: ${c.estimate}, duration: { lognormal: { mean: ${c.mean}s, cv: ${CV} } }, uses: { peak: 1gb } }`,
  );
  return parseScenario(
    `
seed: ${seed}
cluster:
  executors: [{ count: 10, memory: 1000gb }]
  coordinators: [{ count: ${coordinators}, on: executor }]
  admission: ${admission}
pools: flags
queries:
${classes.join("\n")}
arrivals:
${stretches.join("\n")}
`,
    "/eta.yaml",
  );
}

/** Insight 5.4: calm and saturated stretches, and what is left of a saturated one in the calm one after it. */
export function loadLevelOf(t: Trial): "calm" | "saturated" | "draining" {
  if (Math.floor(t.at / STRETCH_MS) % 2 === 1) return "saturated";
  return t.queueLength > 10 ? "draining" : "calm";
}

// What is believed about holds

/** Everything that has ended in this run so far: what the command does. */
export const watched: BeliefOf = (_look, holds) => holds;

const FINE = 20_000;
const isFew = false;

/** The distributions that the traffic is drawn from. */
export const trueHolds: BeliefOf = constant((c) => quantilesOf((u) => lognormal(c, u)));
export const exponentialHolds: BeliefOf = constant((c) => quantilesOf((u) => -CLASSES[c].mean * 1000 * Math.log(u)));

/** So many holds of each class, others for each look; resampled as the hold book does, or taken as the whole truth. */
export const learntFrom =
  (count: number, resampled: boolean): BeliefOf =>
  (look) =>
    sourcesOf((c, index) => {
      const stream = philoxFor(7, "eta-learnt");
      const holds = Float64Array.from({ length: count }, (_, i) => {
        stream.at(look, index, i, 0);
        return lognormal(c, stream.first());
      }).sort();
      return { basis: "class", holds, isFew: resampled };
    });

function constant(holdsOf: (c: ClassName) => Float64Array): BeliefOf {
  const sources = sourcesOf((c) => ({ basis: "class", holds: holdsOf(c), isFew }));
  return () => sources;
}

function sourcesOf(of: (c: ClassName, index: number) => HoldSource): HoldSources {
  const byClass = new Map(Object.keys(CLASSES).map((c, i) => [c, of(c as ClassName, i)]));
  return { sourceFor: (_pool, queryClass) => byClass.get(queryClass) ?? null };
}

function quantilesOf(at: (u: number) => number): Float64Array {
  return Float64Array.from({ length: FINE }, (_, i) => at((i + 0.5) / FINE)).sort();
}

/** cv² = 2: sigma² = ln 3. */
function lognormal(c: ClassName, u: number): number {
  const sigma2 = Math.log(1 + CV * CV);
  return CLASSES[c].mean * 1000 * Math.exp(Math.sqrt(sigma2) * inverseNormal(u) - sigma2 / 2);
}
