/**
 * Who comes later to another queue can take a place away here, so the rate at which others come matters too, and it is
 * known from the past ten minutes only (insight 5.1).
 */
import { beforeAll, describe, expect, test } from "vitest";
import { accuracyOf, THREE_COORDINATORS, watched } from "../../bench/eta-traffic.ts";
import {
  coverage,
  errorsOf,
  fifty,
  medianBy,
  ninety,
  SIMPLE_PREDICTORS,
  type Trial,
} from "../../src/insight/eta/accuracy.ts";

describe("insight 5.4 calibration of predicted waits, three coordinators", () => {
  let trials: readonly Trial[] = [];
  beforeAll(() => {
    trials = accuracyOf({ deciders: THREE_COORDINATORS, beliefs: { watched }, trials: 200 });
  });

  test("the 90 % interval covers 85 to 95 %, the 50 % interval 43 to 57 %", () => {
    expect(trials).toHaveLength(200);
    expect(coverage(trials, "watched", ninety)).toBeGreaterThanOrEqual(0.85);
    expect(coverage(trials, "watched", ninety)).toBeLessThanOrEqual(0.95);
    expect(coverage(trials, "watched", fifty)).toBeGreaterThanOrEqual(0.43);
    expect(coverage(trials, "watched", fifty)).toBeLessThanOrEqual(0.57);
  });

  test("mean absolute error below each of the simple predictors", () => {
    const own = errorsOf(trials, medianBy("watched")).meanAbsolute;
    for (const name of SIMPLE_PREDICTORS)
      expect(own, name).toBeLessThan(errorsOf(trials, (t) => t.simple[name]).meanAbsolute);
  });
});
