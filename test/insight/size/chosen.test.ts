/**
 * Which setting is advised, from outcomes that are made up: goal, days, and one notion of the chosen one.
 */
import { describe, expect, test } from "vitest";
import type { Outcome } from "../../../src/insight/size/outcome.ts";
import type { Evaluate, Job, SizeProblem } from "../../../src/insight/size/problem.ts";
import { keyOf, type Setting } from "../../../src/insight/size/setting.ts";
import { DEFAULT_SIZE_OPTIONS, type SizeOptions, sizePool } from "../../../src/insight/size/size-pool.ts";
import type { SizeReport } from "../../../src/insight/size/size-report.ts";
import { GiB, NOW, problemOf } from "./size-fixtures.ts";

/** By day; one value for all of them. Shares of a thousand. */
interface Made {
  readonly setting: Setting;
  readonly p95: number | readonly number[];
  readonly lost?: number | readonly number[];
  readonly spilled?: number | readonly number[];
  readonly onFullHosts?: number | readonly number[];
}

const onDay = (values: number | readonly number[] | undefined, day: number): number =>
  typeof values === "number" ? values : (values?.[day] ?? 0);

function outcomeOf({ p95, lost, spilled, onFullHosts }: Made, { day }: Job): Outcome {
  const rejected = onDay(lost, day);
  return {
    submitted: 1000,
    admitted: 1000 - rejected,
    rejected,
    timedOut: 0,
    failed: 0,
    cutOff: 0,
    onFullHosts: onDay(onFullHosts, day),
    spilled: onDay(spilled, day),
    meanWait: 0,
    longestWait: onDay(p95, day),
    longestQueued: onDay(p95, day),
    p95: onDay(p95, day),
    p95ByClass: {},
    peakRunning: 20,
    peakQueued: 50,
    memoryTime: 1,
    span: 1,
    peakMemory: 1,
  };
}

/** Limits eased for the relief table are unknown settings: as the one that they ease, by its memory. */
const evaluatorOf =
  (made: readonly Made[]): Evaluate =>
  async (jobs) =>
    jobs.map((job) => {
      const own = made.find((m) => keyOf(m.setting) === keyOf(job.setting));
      return outcomeOf(own ?? made.find((m) => m.setting.maxMem === job.setting.maxMem) ?? made[0]!, job);
    });

const PROBLEM: SizeProblem = problemOf({ seconds: 20 }, NOW, 2);

async function reportOf(made: readonly Made[], options: Partial<SizeOptions> = {}): Promise<SizeReport> {
  const [, ...candidates] = made.map((m) => m.setting);
  return sizePool(PROBLEM, { ...DEFAULT_SIZE_OPTIONS, candidates, ...options }, evaluatorOf(made));
}

const chosenOf = (r: SizeReport): Setting | null => r.rows.find((row) => row.label === r.cheapest)?.setting ?? null;

const LESS: Setting = { ...NOW, maxMem: NOW.maxMem - 10 * GiB };
const MORE: Setting = { ...NOW, maxMem: NOW.maxMem + 10 * GiB };
const MOST: Setting = { ...NOW, maxMem: NOW.maxMem + 40 * GiB };

describe("insight 3.2: no worse than now, on the same days", () => {
  // Days differ: on average now waits for 10 s.
  const now: Made = { setting: NOW, p95: [5000, 15_000], spilled: [20, 60], lost: 2 };
  test.each([
    { name: "as now", p95: [5000, 15_000], spilled: [20, 60], meets: true },
    { name: "1 ms more", p95: [5000, 15_002], spilled: [20, 60], meets: false },
    { name: "1 ms less", p95: [5000, 14_998], spilled: [20, 60], meets: true },
    { name: "one more spills", p95: [5000, 15_000], spilled: [20, 61], meets: false },
    { name: "one less spills", p95: [5000, 15_000], spilled: [20, 59], meets: true },
  ])("$name: meets the goal = $meets", async ({ p95, spilled, meets }) => {
    const r = await reportOf([now, { setting: LESS, p95, spilled }]);
    expect(r.goal).toMatchObject({ p95: 10_000, spill: 0.04 });
    expect(r.rows[1]).toMatchObject({ setting: LESS, meetsGoal: meets });
    expect(chosenOf(r)).toEqual(meets ? LESS : null);
  });

  test.each([
    { name: "as many onto full hosts as now", onFullHosts: [3, 5], meets: true },
    { name: "fewer on one day, as many more on the other", onFullHosts: [1, 7], meets: true },
    { name: "one more onto a full host", onFullHosts: [3, 6], meets: false },
    { name: "one less onto a full host", onFullHosts: [3, 4], meets: true },
  ])("$name: meets the goal = $meets", async ({ onFullHosts, meets }) => {
    const today: Made = { ...now, onFullHosts: [3, 5] };
    const r = await reportOf([today, { setting: LESS, p95: 5000, onFullHosts }]);
    expect(r.goal.onFullHosts).toBe(4);
    expect(chosenOf(r)).toEqual(meets ? LESS : null);
    expect(r.dropped["fills hosts too much"]).toBe(meets ? undefined : 1);
  });

  test("onto full hosts where today nobody is: not even one", async () => {
    const more: Made = { setting: MORE, p95: 100, onFullHosts: 1 };
    const r = await reportOf([{ ...now, lost: 50 }, more, { setting: MOST, p95: 1000 }]);
    expect(chosenOf(r)).toEqual(MOST);
  });

  test("today's setting is no worse than itself: only what it loses can be too much", async () => {
    expect((await reportOf([now])).rows[0]?.meetsGoal).toBe(false);
    expect((await reportOf([{ ...now, lost: 1 }])).rows[0]?.meetsGoal).toBe(true);
  });

  test("a wait of a second and a spilling thousandth are good enough", async () => {
    const idle: Made = { setting: NOW, p95: 0 };
    expect(chosenOf(await reportOf([idle, { setting: LESS, p95: 1000, spilled: 1 }]))).toEqual(LESS);
    expect(chosenOf(await reportOf([idle, { setting: LESS, p95: 1001, spilled: 1 }]))).toEqual(NOW);
    expect(chosenOf(await reportOf([idle, { setting: LESS, p95: 1000, spilled: 2 }]))).toEqual(NOW);
  });
});

describe("insight 3.6: one setting is chosen", () => {
  test("enough on the first day and too little on average: the next one is advised, and relieved", async () => {
    const r = await reportOf(
      [
        { setting: NOW, p95: 9000, lost: 50 },
        { setting: MORE, p95: [5000, 8000], lost: 0 },
        { setting: MOST, p95: [1000, 2000], lost: 0 },
      ],
      { p95: 6000 },
    );
    expect(chosenOf(r)).toEqual(MOST);
    expect(r.sentences[0]).toMatch(/^Give root\.tiles 190\.0 GiB instead of 150\.0 GiB/);
    const relieved = r.relief.filter((x) => x.of === "chosen");
    expect(relieved.length).toBeGreaterThan(0);
    expect(relieved.map((x) => x.p95Before)).toEqual(relieved.map(() => 1000));
  });

  test("the cheapest that is enough on average, not the next that is much better", async () => {
    const barely: Setting = { ...NOW, maxMem: NOW.maxMem + 20 * GiB };
    const r = await reportOf(
      [
        { setting: NOW, p95: 9000, lost: 50 },
        { setting: MORE, p95: [5000, 8000] },
        { setting: barely, p95: [4800, 7000] },
        { setting: MOST, p95: [1000, 2000] },
      ],
      { p95: 6000 },
    );
    expect(chosenOf(r)).toEqual(barely);
    expect(r.rows.map((row) => row.setting)).toEqual([NOW, barely, MOST]);
    expect(r.dropped["waits too long"]).toBe(1);
  });

  test("a setting is run once for each day", async () => {
    const made: Made[] = [
      { setting: NOW, p95: 9000, lost: 50 },
      { setting: MORE, p95: [5000, 8000] },
      { setting: MOST, p95: [1000, 2000] },
    ];
    const { effort } = await reportOf(made, { p95: 6000 });
    expect(effort.rulesRuns).toBe(made.length * PROBLEM.days.length);
  });

  test("nothing meets the goal on average: nothing is advised, and nothing relieved", async () => {
    const r = await reportOf(
      [
        { setting: NOW, p95: 9000 },
        { setting: MORE, p95: [5000, 8000] },
      ],
      { p95: 6000 },
    );
    expect(chosenOf(r)).toBeNull();
    expect(r.sentences[0]).toMatch(/^No setting that was tried meets the goal/);
    expect(r.relief.some((x) => x.of === "chosen")).toBe(false);
  });
});

describe("insight 3.2: the current setting is always a candidate", () => {
  const now: Made = { setting: NOW, p95: 2300 };
  const leave = "Leave root.tiles as it is: it meets the goal, and nothing cheaper that was tried does.";

  test.each<{ name: string; setting: Setting }>([
    { name: "fewer running", setting: { ...NOW, maxRunning: 14 } },
    { name: "a shorter queue", setting: { ...NOW, maxQueued: 10 } },
    { name: "another limit of a query", setting: { ...NOW, maxQueryMem: 4 * GiB } },
    { name: "more memory", setting: MORE },
  ])("$name, no better: it stays as it is", async ({ setting }) => {
    const r = await reportOf([now, { setting, p95: 2300 }]);
    expect(r.cheapest).toBe("now");
    expect(r.sentences[0]).toBe(leave);
    expect(r.relief.some((x) => x.of === "chosen")).toBe(false);
  });

  test("what more memory would buy is shown all the same", async () => {
    const r = await reportOf([now, { setting: MORE, p95: 100 }]);
    expect(r.cheapest).toBe("now");
    expect(r.rows.map((row) => row.setting)).toEqual([NOW, MORE]);
  });

  test("enough with less memory: that is advised", async () => {
    const r = await reportOf([now, { setting: LESS, p95: 2300 }]);
    expect(chosenOf(r)).toEqual(LESS);
    expect(r.sentences[0]).toMatch(/which frees 10\.0 GiB for other pools\.$/);
  });
});

describe("insight 2.3, 3.7: what easing one limit does to waits and losses", () => {
  const now: Made = { setting: NOW, p95: 8000, lost: 40 };
  const longer: Setting = { ...NOW, maxQueued: 2 * NOW.maxQueued };
  const more: Setting = { ...NOW, maxRunning: NOW.maxRunning + 1 };

  test.each<{ name: string; made: Made; effect: string; told: RegExp }>([
    {
      name: "fewer losses, longer waits",
      made: { setting: longer, p95: 14_000, lost: 20 },
      effect: "trades",
      told: /a queue twice as long would trade losses for longer waits \(p95 14\.0 s, lost 2\.00 %\)/,
    },
    {
      name: "shorter waits, more losses",
      made: { setting: longer, p95: 4000, lost: 60 },
      effect: "trades",
      told: /a queue twice as long would trade waits for more losses \(p95 4\.00 s, lost 6\.00 %\)/,
    },
    {
      name: "longer waits, as many losses",
      made: { setting: longer, p95: 9000, lost: 40 },
      effect: "worsens",
      told: /a queue twice as long makes it worse\.$/,
    },
    {
      name: "both within a twentieth",
      made: { setting: longer, p95: 8400, lost: 42 },
      effect: "none",
      told: /a queue twice as long.* alone changes nothing\.$/,
    },
    {
      name: "both better",
      made: { setting: more, p95: 7000, lost: 20 },
      effect: "helps",
      told: /, while one more running helps\.$/,
    },
  ])("$name: $effect", async ({ made, effect, told }) => {
    const r = await reportOf([now, made], { candidates: [] });
    const of = made.setting === longer ? "queue" : "running";
    expect(r.relief.find((x) => x.of === "now" && x.limit === of)?.effect).toBe(effect);
    expect(r.sentences[1]).toMatch(told);
  });
});
