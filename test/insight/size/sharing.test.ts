import { describe, expect, test } from "vitest";
import { parseScenario } from "../../../src/config/scenario-file.ts";
import type { Outcome } from "../../../src/insight/size/outcome.ts";
import { type Engine, Evaluator } from "../../../src/insight/size/problem.ts";
import { keyOf, type Setting } from "../../../src/insight/size/setting.ts";
import { isSameRun, outcomesOf } from "../../../src/insight/size/sharing.ts";
import { evaluatorOver, GiB, gridAround, NOW, POOL, problemOf, type Traffic } from "./size-fixtures.ts";

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
    onFullHosts: 0,
    spilled: 0,
    meanWait: 0,
    longestWait: 5000,
    longestQueued: 5000,
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

  test("who left the queue without an answer has waited too: he would have timed out", () => {
    const gone = outcome({ cutOff: 1, longestQueued: 7000 });
    expect(isSameRun(NOW, gone, { ...NOW, timeout: 7000 }, COUNTS)).toBe(false);
    expect(isSameRun(NOW, gone, { ...NOW, timeout: 7001 }, COUNTS)).toBe(true);
  });

  test("insight 3.4 item 8: a queue that dies with its coordinator is as long as it was", () => {
    // The second waits from 1 s until its coordinator dies at 8 s: with a timeout of 6.999 s it would not have.
    const dying = parseScenario(
      `
cluster: { executors: [{ count: 1, memory: 100gb }], coordinators: [{ count: 1, on: dedicated }] }
pools: flags
queries: { q: { pool: ${POOL}, estimate: 1gb, duration: 60s, uses: { peak: 1mb } } }
arrivals: [{ at: 0s }, { at: 1s }]
faults: [{ at: 8s, fault: coordinatorDies, host: coord-1 }]
`,
      "/dying.yaml",
    );
    const evaluator = evaluatorOver(dying);
    const setting = { ...NOW, maxRunning: 1, timeout: 60_000 };
    const run = (timeout: number): Outcome =>
      evaluator.run({ engine: "rules", day: 0, from: 0, to: 2, setting: { ...setting, timeout } });
    const o = run(60_000);
    expect(o).toMatchObject({ admitted: 1, cutOff: 2, timedOut: 0, longestWait: 0, longestQueued: 7000 });
    for (const timeout of [6999, 7001])
      expect(isSameRun(setting, o, { ...setting, timeout }, COUNTS)).toBe(run(timeout).timedOut === 0);
  });

  test("with several controllers counts are not shared, timeouts are", () => {
    expect(isSameRun(NOW, outcome({}), { ...NOW, maxRunning: 40 }, { counts: false })).toBe(false);
    expect(isSameRun(NOW, outcome({}), { ...NOW, timeout: 60_000 }, { counts: false })).toBe(true);
  });
});
