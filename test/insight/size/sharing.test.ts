import { describe, expect, test } from "vitest";
import type { Outcome } from "../../../src/insight/size/outcome.ts";
import { type Engine, Evaluator } from "../../../src/insight/size/problem.ts";
import { keyOf, type Setting } from "../../../src/insight/size/setting.ts";
import { isSameRun, outcomesOf } from "../../../src/insight/size/sharing.ts";
import { GiB, gridAround, NOW, problemOf, type Traffic } from "./size-fixtures.ts";

const COUNTS = { counts: true };

describe("insight 3.4 item 8: untouched limits", () => {
  test.each<{ engine: Engine; traffic: Traffic }>([
    { engine: "model", traffic: { small: 2.4, large: 0.1 } },
    { engine: "model", traffic: { small: 4, large: 0.1 } },
    { engine: "rules", traffic: { small: 2.4, large: 0.1, seconds: 200 } },
    { engine: "rules", traffic: { small: 4, large: 0.05, seconds: 200 } },
  ])("$engine, $traffic: every shared outcome is that of its own run, to the bit", async ({ engine, traffic }) => {
    const problem = problemOf(traffic);
    const evaluator = new Evaluator(problem);
    const to = problem.days[0]!.count;
    const run = (setting: Setting): Outcome => evaluator.run({ engine, day: 0, from: 0, to, setting });
    const settings = gridAround([100, 160, 240]);
    let runs = 0;
    const shared = await outcomesOf(settings, COUNTS, async (batch) => {
      runs += batch.length;
      return batch.map(run);
    });
    expect(runs).toBeLessThan(settings.length);
    expect(shared.size).toBe(settings.length);
    for (const s of settings) expect(shared.get(keyOf(s)), keyOf(s)).toEqual(run(s));
  });

  const outcome = (fields: Partial<Outcome>): Outcome => ({
    submitted: 100,
    admitted: 100,
    rejected: 0,
    timedOut: 0,
    failed: 0,
    cutOff: 0,
    spilled: 0,
    meanWait: 0,
    longestWait: 5000,
    p95: 0,
    p95ByClass: {},
    peakRunning: 12,
    peakQueued: 30,
    memoryTime: 0,
    span: 1,
    peakMemory: 0,
    ...fields,
  });

  test.each([
    { name: "a looser untouched running limit", change: { maxRunning: 40 }, same: true },
    { name: "no running limit", change: { maxRunning: -1 }, same: true },
    { name: "a tighter one that stays untouched", change: { maxRunning: 13 }, same: true },
    { name: "one that would have been touched", change: { maxRunning: 12 }, same: false },
    { name: "a queue above the peak", change: { maxQueued: 31 }, same: true },
    { name: "a queue at the peak", change: { maxQueued: 30 }, same: false },
    { name: "a timeout above the longest wait", change: { timeout: 5001 }, same: true },
    { name: "a timeout at the longest wait", change: { timeout: 5000 }, same: false },
    { name: "other memory", change: { maxMem: 151 * GiB }, same: false },
    { name: "another query limit", change: { maxQueryMem: GiB }, same: false },
  ])("$name: same run = $same", ({ change, same }) => {
    expect(isSameRun(NOW, outcome({}), { ...NOW, ...change }, COUNTS)).toBe(same);
  });

  test("limits that the run did touch are shared with nobody", () => {
    expect(isSameRun(NOW, outcome({ peakRunning: 20 }), { ...NOW, maxRunning: 21 }, COUNTS)).toBe(false);
    expect(isSameRun(NOW, outcome({ timedOut: 1 }), { ...NOW, timeout: 60_000 }, COUNTS)).toBe(false);
    expect(isSameRun(NOW, outcome({ peakQueued: 50 }), { ...NOW, maxQueued: 60 }, COUNTS)).toBe(false);
  });

  test("with several controllers counts are not shared, timeouts are", () => {
    expect(isSameRun(NOW, outcome({}), { ...NOW, maxRunning: 40 }, { counts: false })).toBe(false);
    expect(isSameRun(NOW, outcome({}), { ...NOW, timeout: 60_000 }, { counts: false })).toBe(true);
  });
});
