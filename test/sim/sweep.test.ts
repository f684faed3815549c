/**
 * A small part of `npm run sim` and `npm run mutants`: that the checkers pass what is right and see what is
 * wrong.
 */
import { describe, expect, test } from "vitest";
import type { RunEvent } from "../../src/core/events.ts";
import { IDLE_OBSERVER } from "../../src/core/run-observer.ts";
import { SummaryFold } from "../../src/insight/summary-fold.ts";
import { randomRun } from "../../src/sim/sweep/random-scenario.ts";
import { checkedRun, failureText, runSeed, sweep } from "../../src/sim/sweep/sweep.ts";
import { ToldOutcomes } from "../../src/sim/sweep/told-outcomes.ts";
import { MUTANTS } from "../mutants/planted.ts";
import { simulateSeed } from "./random-simulation.ts";
import { SEEDS_THAT_FOUND_SOMETHING } from "./seeds.ts";

describe("the sweep", () => {
  test("random clusters with random faults keep all promises", () => {
    expect(sweep(1, 120)).toMatchObject({ seeds: 120, failure: null });
  });

  test.each(SEEDS_THAT_FOUND_SOMETHING)("seed $seed: $what", ({ seed }) => {
    expect(checkedRun(randomRun(seed, false)).failure).toBeNull();
  });

  test.each(MUTANTS)("a planted fault is found: $name", ({ seed, seenBy, controller }) => {
    const { failure } = runSeed(seed, controller);
    expect(failure?.problem).toContain(seenBy);
  });

  test("a failure says how to repeat it", () => {
    const mutant = MUTANTS[0]!;
    const { failure } = sweep(1, 5, mutant.controller);
    expect(failureText(failure!)).toContain(`repeat: npm run sim -- --seed ${failure!.seed}`);
  });
});

/** Every event of a seed's run, as text. */
function traceOf(seed: number): { all: string[]; endings: string[] } {
  const all: string[] = [];
  simulateSeed(seed, { emit: (e) => all.push(JSON.stringify(e)) });
  return { all, endings: all.filter((line) => /^{"kind":"(admitted|rejected|timedOut|cancelled)"/.test(line)) };
}

/** The same told in numbers: no event objects, and exchanges left out that could not change anything. */
function quietTraceOf(seed: number): string[] {
  const told: string[] = [];
  simulateSeed(seed, {
    observer: {
      ...IDLE_OBSERVER,
      admitted: (at, q, path) => told.push(`${at} admitted ${q.queryId} ${path}`),
      rejected: (at, q, reason) => told.push(`${at} rejected ${q.queryId} ${reason.rule}`),
      timedOut: (at, q) => told.push(`${at} timedOut ${q.queryId}`),
      cancelled: (at, q) => told.push(`${at} cancelled ${q.queryId}`),
    },
  });
  return told;
}

function asTold(line: string): string {
  const e = JSON.parse(line) as RunEvent;
  if (e.kind === "admitted") return `${e.at} admitted ${e.query} ${e.path}`;
  if (e.kind === "rejected") return `${e.at} rejected ${e.query} ${e.reason.rule}`;
  if (e.kind === "timedOut" || e.kind === "cancelled") return `${e.at} ${e.kind} ${e.query}`;
  return "";
}

/** What is summed up of a seed's run, with everything told or without. */
function summaryOf(seed: number, tellsAll: boolean): unknown {
  const { configs, scenario } = randomRun(seed);
  const fold = new SummaryFold({
    configOf: (pool) => configs.get(pool) ?? null,
    admission: scenario.cluster.admission,
  });
  simulateSeed(seed, { observer: fold, looksAtHosts: true, ...(tellsAll ? { emit: () => undefined } : {}) });
  return fold.finish();
}

describe("two runs of one seed", () => {
  test.each([2, 7, 17, 119])("seed %i: the same events, byte for byte", (seed) => {
    const { all } = traceOf(seed);
    expect(all.length).toBeGreaterThan(20);
    expect(traceOf(seed).all).toEqual(all);
  });

  test.each([2, 4, 38, 52, 63, 72, 1091, 1113, 1251, ...Array.from({ length: 40 }, (_, i) => 300 + i)])(
    "seed %i: told as events or as numbers, with or without idle exchanges, the decisions are the same",
    (seed) => {
      expect(quietTraceOf(seed)).toEqual(traceOf(seed).endings.map(asTold));
    },
  );

  test.each(Array.from({ length: 40 }, (_, i) => 300 + i))("seed %i: the same summary, whatever is told", (seed) => {
    expect(summaryOf(seed, true)).toEqual(summaryOf(seed, false));
  });

  test("the sweep sees where outcomes differ", () => {
    const [one, other] = [300, 301].map((seed) => {
      const told = new ToldOutcomes();
      simulateSeed(seed, { observer: told.over(IDLE_OBSERVER) });
      return told;
    });
    expect(() => one!.mustEqual(other!)).toThrow(/^told: /);
    expect(() => one!.mustEqual(one!)).not.toThrow();
  });
});
