/**
 * Are the predictions as good as they say (insight 5.4)? On held-out traffic, snapshot by snapshot.
 *
 * The pool of insight 5.3: three classes, lognormal holds with cv² 2, calm and busy in turns. Snapshots are
 * taken from a running simulation and the outcome is what that simulation then did. Seeds are fixed: the
 * bounds are those of insight 5.4, chosen beforehand, not fitted.
 */
import { describe, expect, test } from "vitest";
import type { Scenario } from "../../src/config/scenario.ts";
import { parseScenario } from "../../src/config/scenario-file.ts";
import { flagsOf } from "../../src/config/scenario-pools.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../src/core/pool-config.ts";
import { philoxFor } from "../../src/core/random.ts";
import { type Bytes, MiB, type Millis } from "../../src/core/units.ts";
import { type EtaSnapshot, snapshotOf } from "../../src/insight/eta/eta-snapshot.ts";
import { HoldBook } from "../../src/insight/eta/hold-book.ts";
import { type Prediction, predictWaits, RUNS } from "../../src/insight/eta/predict.ts";
import type { SimQuery } from "../../src/sim/sim-query.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";
import { RESOLVER } from "../insight/size/size-fixtures.ts";

const POOL = "root.a";
const CLASSES = ["small", "middle", "large"] as const;

/** Twenty-minute stretches at two rates, for so many hours. */
function scenarioOf(seed: number, hours: number): Scenario {
  const stretches: string[] = [];
  for (let minute = 0, busy = false; minute < hours * 60; minute += 20, busy = !busy)
    stretches.push(
      `  - { rate: ${busy ? 1.6 : 0.9}, query: { small: 0.8, middle: 0.18, large: 0.02 }, from: ${minute}m, to: ${minute + 20}m }`,
    );
  return parseScenario(
    `
seed: ${seed}
cluster:
  executors: [{ count: 10, memory: 1000gb }]
  coordinators: [{ count: 1, on: executor }]
pools: flags
queries:
  small: { pool: ${POOL}, estimate: 1.5gb, duration: { lognormal: { mean: 2s, cv: 1.41421356 } }, uses: { peak: 1gb } }
  middle: { pool: ${POOL}, estimate: 4gb, duration: { lognormal: { mean: 6s, cv: 1.41421356 } }, uses: { peak: 3gb } }
  large: { pool: ${POOL}, estimate: 8gb, duration: { lognormal: { mean: 30s, cv: 1.41421356 } }, uses: { peak: 6gb } }
arrivals:
${stretches.join("\n")}
`,
    "/eta.yaml",
  );
}

interface Judged {
  readonly prediction: Prediction;
  /** Milliseconds from the snapshot to the decision. */
  readonly actual: number;
  readonly timedOut: boolean;
  readonly simple: SimplePredictions;
}

interface SimplePredictions {
  readonly byPosition: number;
  readonly byMemory: number;
  readonly lastAdmitted: number;
  readonly headSoFar: number;
}

interface Taken {
  readonly snapshot: EtaSnapshot;
  readonly chosen: number;
  readonly prediction: Prediction;
  readonly simple: SimplePredictions;
}

/** Runs the traffic, looks every `every` ms at a queue that is not empty, and waits for what became of one query. */
function judged(scenario: Scenario, config: PoolConfig, every: number, warm: HoldBook): Judged[] {
  const book = warm;
  const taken = new Map<string, Taken>();
  const result: Judged[] = [];
  const decidedAt = new Map<string, number>();
  const choose = philoxFor(99, "eta-choice");
  let next = 10 * 60_000;
  let lastWait = 0;
  let looks = 0;
  const className = (i: number): string => CLASSES[i] ?? "";
  const decide = (at: number, query: string, timedOut: boolean): void => {
    decidedAt.set(query, at);
    const t = taken.get(query);
    if (t === undefined) return;
    taken.delete(query);
    result.push({ prediction: t.prediction, actual: at - t.snapshot.now, timedOut, simple: t.simple });
  };
  simulate({
    scenario,
    workload: createWorkload(scenario, RESOLVER),
    pools: { configOf: () => config },
    flags: flagsOf(scenario),
    emit: (e) => {
      if (e.kind === "admitted") {
        if (e.path === "fromQueue") lastWait = e.waited;
        decide(e.at, e.query, false);
      } else if (e.kind === "timedOut") decide(e.at, e.query, true);
      else if (e.kind === "released") {
        const begun = decidedAt.get(e.query);
        const name = classOfQuery.get(e.query);
        if (begun !== undefined && name !== undefined) book.add(POOL, name, e.at - begun);
        decidedAt.delete(e.query);
        classOfQuery.delete(e.query);
      } else if (e.kind === "submitted") classOfQuery.set(e.query, e.queryClass);
    },
    inspect: (simulation) => {
      const now = simulation.now / 1000;
      if (now < next) return;
      const controller = simulation.seats[0]!.controller;
      if ((controller.pool(POOL)?.queue.length ?? 0) < 2) return;
      next = now + every;
      const snapshot = snapshotOf([controller], now as never, (a) => className((a.owner as SimQuery).queryClass));
      choose.at(looks++, 0, 0, 0);
      const chosen = Math.floor(choose.first() * snapshot.queued.length);
      const query = snapshot.queued[chosen]!.query;
      if (taken.has(query)) return;
      const prediction = predictWaits(snapshot, book, { seed: looks })[chosen]!;
      if (prediction.interval === null) return;
      taken.set(query, {
        snapshot,
        chosen,
        prediction,
        simple: simplePredictions(snapshot, chosen, book, lastWait, config),
      });
    },
  });
  return result;
}

const classOfQuery = new Map<string, string>();

/** The four that people would use instead (insight 5.3). */
function simplePredictions(
  s: EtaSnapshot,
  chosen: number,
  book: HoldBook,
  lastWait: number,
  config: PoolConfig,
): SimplePredictions {
  const meanOf = (queryClass: string): number => {
    const { holds } = book.sourceFor(POOL, queryClass)!;
    return holds.reduce((a, b) => a + b, 0) / holds.length;
  };
  const need = (q: { readonly shape: { readonly perHostMemEstimate: number } }): number =>
    q.shape.perHostMemEstimate * 10;
  const ahead = s.queued.slice(0, chosen);
  const everybody = [...s.running, ...ahead];
  const meanHold = everybody.reduce((sum, q) => sum + meanOf(q.queryClass), 0) / everybody.length;
  const memoryTime = everybody.reduce((sum, q) => sum + need(q) * meanOf(q.queryClass), 0);
  return {
    byPosition: ((chosen + 1) * meanHold) / Math.max(1, s.running.length),
    byMemory: memoryTime / config.maxMemResources,
    lastAdmitted: Math.max(0, lastWait - (s.now - s.queued[chosen]!.enqueuedAt)),
    headSoFar: Math.max(0, s.now - s.queued[0]!.enqueuedAt - (s.now - s.queued[chosen]!.enqueuedAt)),
  };
}

const meanError = (rows: readonly Judged[], predicted: (j: Judged) => number): number =>
  rows.reduce((sum, j) => sum + Math.abs(predicted(j) - j.actual), 0) / rows.length;

const POOL_CONFIG: PoolConfig = {
  ...DEFAULT_POOL_CONFIG,
  maxMemResources: (200_000 * MiB) as Bytes,
  maxRequests: 20,
  maxQueued: 1_000_000,
  queueTimeout: 1e9 as Millis,
};

describe("insight 5.4 calibration of predicted waits", () => {
  // Two days of other traffic teach the holds; the third is judged.
  const book = new HoldBook();
  judged(scenarioOf(11, 6), POOL_CONFIG, Number.POSITIVE_INFINITY, book);
  const rows = judged(scenarioOf(12, 60), POOL_CONFIG, 120_000, book);

  test("at least 500 snapshots, of queues worth predicting", () => {
    expect(rows.length).toBeGreaterThanOrEqual(500);
    console.log(
      `${rows.length} predictions, mean remaining wait ${(rows.reduce((s, r) => s + r.actual, 0) / rows.length / 1000).toFixed(1)} s`,
    );
  });

  test("the 90 % interval covers 85 to 95 %, the 50 % interval 43 to 57 %", () => {
    const within = (low: (j: Judged) => number, high: (j: Judged) => number): number =>
      rows.filter((j) => j.actual >= low(j) && j.actual <= high(j)).length / rows.length;
    const ninety = within(
      (j) => j.prediction.interval!.low,
      (j) => j.prediction.interval!.high,
    );
    const fifty = within(
      (j) => j.prediction.interval!.quarters[0],
      (j) => j.prediction.interval!.quarters[1],
    );
    console.log(`coverage ${(ninety * 100).toFixed(1)} % and ${(fifty * 100).toFixed(1)} %`);
    expect(ninety).toBeGreaterThanOrEqual(0.85);
    expect(ninety).toBeLessThanOrEqual(0.95);
    expect(fifty).toBeGreaterThanOrEqual(0.43);
    expect(fifty).toBeLessThanOrEqual(0.57);
  });

  test("ranks of the outcome among the runs: none of ten bins below 0.06 or above 0.15", () => {
    const bins = new Array<number>(10).fill(0);
    for (const j of rows) {
      const rank = j.prediction.interval!.runs.filter((w) => w < j.actual).length;
      bins[Math.min(9, Math.floor((rank / (RUNS + 1)) * 10))]! += 1 / rows.length;
    }
    console.log(`ranks ${bins.map((b) => b.toFixed(3)).join(" ")}`);
    for (const share of bins) {
      expect(share).toBeGreaterThanOrEqual(0.06);
      expect(share).toBeLessThanOrEqual(0.15);
    }
  });

  test("mean absolute error below each of the simple predictors", () => {
    const own = meanError(rows, (j) => j.prediction.interval!.median);
    const simple = (["byPosition", "byMemory", "lastAdmitted", "headSoFar"] as const).map(
      (name) => [name, meanError(rows, (j) => j.simple[name])] as const,
    );
    console.log(
      `mean absolute error ${(own / 1000).toFixed(1)} s; ${simple.map(([n, e]) => `${n} ${(e / 1000).toFixed(1)} s`).join(", ")}`,
    );
    for (const [name, error] of simple) expect(own, name).toBeLessThan(error);
  });

  test("chances to time out come true: in five bins within 0.1 or the 99 % binomial interval", () => {
    const config = { ...POOL_CONFIG, queueTimeout: 45_000 as Millis };
    const chances = judged(scenarioOf(13, 60), config, 90_000, book);
    expect(chances.length).toBeGreaterThanOrEqual(500);
    for (let bin = 0; bin < 5; bin++) {
      const of = chances.filter((j) => Math.min(4, Math.floor(j.prediction.timeoutChance! * 5)) === bin);
      if (of.length === 0) continue;
      const predicted = of.reduce((s, j) => s + j.prediction.timeoutChance!, 0) / of.length;
      const observed = of.filter((j) => j.timedOut).length / of.length;
      const allowed = Math.max(0.1, 2.576 * Math.sqrt((predicted * (1 - predicted)) / of.length));
      console.log(`bin ${bin}: ${of.length}, predicted ${predicted.toFixed(2)}, observed ${observed.toFixed(2)}`);
      expect(Math.abs(observed - predicted)).toBeLessThanOrEqual(allowed);
    }
  });
});
