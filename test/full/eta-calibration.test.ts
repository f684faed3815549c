/**
 * Are the predictions as good as they say (insight 5.4)? On held-out traffic, snapshot by snapshot.
 *
 * The pool of insight 5.3, calm and busy in turns; the outcome is what the simulation then did. Seeds are fixed:
 * the bounds are those of insight 5.4, chosen beforehand, not fitted. The table of 5.3 is `npm run bench:eta`.
 */
import { describe, expect, test } from "vitest";
import {
  ADMISSIOND,
  accuracyOf,
  type Deciders,
  ONE_COORDINATOR,
  THREE_COORDINATORS,
  trueHolds,
  watched,
} from "../../bench/eta-traffic.ts";
import {
  coverage,
  errorsOf,
  fifty,
  medianBy,
  ninety,
  rankShares,
  SIMPLE_PREDICTORS,
} from "../../src/insight/eta/accuracy.ts";

describe.each<{ readonly who: string; readonly deciders: Deciders; readonly snapshots: number }>([
  { who: "one coordinator", deciders: ONE_COORDINATOR, snapshots: 500 },
  { who: "admissiond", deciders: ADMISSIOND, snapshots: 300 },
])("insight 5.4 calibration of predicted waits, $who", ({ deciders, snapshots }) => {
  const trials = accuracyOf({ deciders, beliefs: { watched, trueHolds }, trials: snapshots });

  test(`${snapshots} snapshots`, () => {
    expect(trials).toHaveLength(snapshots);
  });

  test("the 90 % interval covers 85 to 95 %, the 50 % interval 43 to 57 %", () => {
    expect(coverage(trials, "watched", ninety)).toBeGreaterThanOrEqual(0.85);
    expect(coverage(trials, "watched", ninety)).toBeLessThanOrEqual(0.95);
    expect(coverage(trials, "watched", fifty)).toBeGreaterThanOrEqual(0.43);
    expect(coverage(trials, "watched", fifty)).toBeLessThanOrEqual(0.57);
  });

  test("ranks of the outcome among the runs: none of ten bins below 0.06 or above 0.15", () => {
    for (const share of rankShares(trials, "watched")) {
      expect(share).toBeGreaterThanOrEqual(0.06);
      expect(share).toBeLessThanOrEqual(0.15);
    }
  });

  test("mean absolute error below each of the simple predictors, at most 1.15 times that with true holds", () => {
    const own = errorsOf(trials, medianBy("watched")).meanAbsolute;
    for (const name of SIMPLE_PREDICTORS)
      expect(own, name).toBeLessThan(errorsOf(trials, (t) => t.simple[name]).meanAbsolute);
    expect(own).toBeLessThanOrEqual(1.15 * errorsOf(trials, medianBy("trueHolds")).meanAbsolute);
  });
});

/**
 * Who comes later to another queue can take a place away, so the rate at which others come matters, and it is known
 * from the past ten minutes only: where calm and busy change every twenty, intervals are a little too narrow. Insight
 * has no bar for it; 84 % of 200 were covered when this was written. Fewer looks: one takes seconds.
 */
describe("insight 5.1 three coordinators", () => {
  const trials = accuracyOf({ deciders: THREE_COORDINATORS, beliefs: { watched }, trials: 100 });

  test("the 90 % interval covers at least three quarters", () => {
    expect(coverage(trials, "watched", ninety)).toBeGreaterThanOrEqual(0.75);
  });

  test("mean absolute error below each of the simple predictors", () => {
    const own = errorsOf(trials, medianBy("watched")).meanAbsolute;
    for (const name of SIMPLE_PREDICTORS)
      expect(own, name).toBeLessThan(errorsOf(trials, (t) => t.simple[name]).meanAbsolute);
  });
});

describe("insight 5.4 chances to time out", () => {
  test("come true: in five bins within 0.1 or the 99 % binomial interval", () => {
    const trials = accuracyOf({
      deciders: ONE_COORDINATOR,
      beliefs: { watched },
      trials: 1500,
      seed: 13,
      timeout: 45_000,
      every: 90_000,
    });
    for (let bin = 0; bin < 5; bin++) {
      const chances = trials.map((t) => ({ predicted: t.byBelief.watched!.timeoutChance, came: t.timedOut }));
      const of = chances.filter((c) => Math.min(4, Math.floor(c.predicted * 5)) === bin);
      if (of.length === 0) continue;
      const predicted = of.reduce((s, c) => s + c.predicted, 0) / of.length;
      const observed = of.filter((c) => c.came).length / of.length;
      const allowed = Math.max(0.1, 2.576 * Math.sqrt((predicted * (1 - predicted)) / of.length));
      expect(Math.abs(observed - predicted), `bin ${bin}, ${of.length} of them`).toBeLessThanOrEqual(allowed);
    }
  });
});
