/**
 * Are the predictions as good as they say (insight 5.4)? On held-out traffic, snapshot by snapshot.
 *
 * The pool of insight 5.3, calm and busy in turns; the outcome is what the simulation then did. Seeds are fixed:
 * the bounds are those of insight 5.4, chosen beforehand, not fitted. The table of 5.3 is `npm run bench:eta`. A file
 * for each kind of cluster, so that they run beside each other.
 */
import { beforeAll, describe, expect, test } from "vitest";
import { accuracyOf, type Deciders, trueHolds, watched } from "../../bench/eta-traffic.ts";
import {
  coverage,
  errorsOf,
  fifty,
  medianBy,
  ninety,
  rankShares,
  SIMPLE_PREDICTORS,
  type Trial,
} from "../../src/insight/eta/accuracy.ts";

export function expectCalibrated(who: string, deciders: Deciders, snapshots: number): void {
  describe(`insight 5.4 calibration of predicted waits, ${who}`, () => {
    let trials: readonly Trial[] = [];
    beforeAll(() => {
      trials = accuracyOf({ deciders, beliefs: { watched, trueHolds }, trials: snapshots });
    });

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
}
