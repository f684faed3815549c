import { beforeAll, describe, expect, test } from "vitest";
import { accuracyOf, ONE_COORDINATOR, watched } from "../../bench/eta-traffic.ts";
import type { Trial } from "../../src/insight/eta/accuracy.ts";

describe("insight 5.4 chances to time out", () => {
  let trials: readonly Trial[] = [];
  beforeAll(() => {
    trials = accuracyOf({
      deciders: ONE_COORDINATOR,
      beliefs: { watched },
      trials: 1500,
      seed: 13,
      timeout: 45_000,
      every: 90_000,
    });
  });

  test.each([0, 1, 2, 3, 4])("come true: bin %d of five within 0.1 or the 99 %% binomial interval", (bin) => {
    const chances = trials.map((t) => ({ predicted: t.byBelief.watched!.timeoutChance, came: t.timedOut }));
    const of = chances.filter((c) => Math.min(4, Math.floor(c.predicted * 5)) === bin);
    expect(of.length).toBeGreaterThan(0);
    const predicted = of.reduce((s, c) => s + c.predicted, 0) / of.length;
    const observed = of.filter((c) => c.came).length / of.length;
    const allowed = Math.max(0.1, 2.576 * Math.sqrt((predicted * (1 - predicted)) / of.length));
    expect(Math.abs(observed - predicted), `${of.length} of them`).toBeLessThanOrEqual(allowed);
  });
});
