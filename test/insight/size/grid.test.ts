import { describe, expect, test } from "vitest";
import { MiB } from "../../../src/core/units.ts";
import { candidatesOf, demandOfTraffic, type GridInput } from "../../../src/insight/size/grid.ts";
import { Evaluator } from "../../../src/insight/size/problem.ts";
import { configUnder, keyOf, type Setting } from "../../../src/insight/size/setting.ts";
import { configOf, GiB, NOW, POOL, problemOf, type Traffic } from "./size-fixtures.ts";

/** Queries of 15.5 GiB on the pool of the fixtures, which has 150 GiB: nine at once. */
function inputOf(over: Partial<GridInput> = {}, traffic: Traffic = {}): GridInput {
  const problem = problemOf({ small: 3, large: 0, seconds: 120, ...traffic });
  const book = new Evaluator(problem).needs(0);
  const needsUnder = (s: Setting) =>
    book
      .under(configUnder(configOf(NOW), s))
      .map((need, kind) => (problem.days[0]!.kinds[kind]!.pool === POOL ? need : null));
  const now = over.now ?? NOW;
  return {
    requests: problem.days[0]!,
    needs: needsUnder(now),
    needsUnder,
    peaks: problem.days[0]!.peak,
    now,
    smallestHost: book.smallestHost,
    mostMemory: 10_000 * 1024 * MiB,
    asked: {},
    most: 1000,
    ...over,
  };
}

const levels = (input: GridInput): Set<number> => new Set(candidatesOf(input).map((s) => s.maxMem));

describe("insight 3.2 candidates", () => {
  test("a cut keeps some of each level of memory, today's other limits first", () => {
    const all = candidatesOf(inputOf());
    expect(all.length).toBeGreaterThan(100);
    const cut = candidatesOf(inputOf({ most: 60 }));
    expect(cut).toHaveLength(60);
    expect(new Set(cut.map((s) => s.maxMem))).toEqual(levels(inputOf()));
    const [first] = cut.filter((s) => s.maxMem > NOW.maxMem && s.maxQueryMem === NOW.maxQueryMem);
    expect(first).toMatchObject({ maxRunning: NOW.maxRunning, maxQueued: NOW.maxQueued, timeout: NOW.timeout });
    expect(candidatesOf(inputOf({ most: all.length }))).toEqual(all);
  });

  test.each([1, 2, 5, 11])("a cut to %d, fewer than there are levels, takes them from all over", (most) => {
    const asked = { memory: Array.from({ length: 20 }, (_, i) => (100 + i) * 1024 * MiB), maxQueryMem: [] };
    const cut = candidatesOf(inputOf({ asked, most }));
    const taken = cut.map((s) => s.maxMem / (1024 * MiB) - 100);
    // Steps as even as whole numbers allow, from the least to the most.
    expect(taken).toHaveLength(most);
    expect(taken[0]).toBe(0);
    if (most > 1) expect(taken.at(-1)).toBe(19);
    const steps = taken.slice(1).map((t, i) => t - taken[i]!);
    const even = 19 / Math.max(1, most - 1);
    for (const step of steps) expect([Math.floor(even), Math.ceil(even)]).toContain(step);
  });

  test("today's setting, which is run anyway, takes no place of another", () => {
    expect(candidatesOf(inputOf()).map(keyOf)).not.toContain(keyOf(NOW));
  });

  const memory = Array.from({ length: 20 }, (_, i) => (100 + i) * GiB);
  const running = [20, 8, 12, -1];
  test.each([
    { most: 4, eachRunning: 1 },
    { most: 8, eachRunning: 2 },
    { most: 19, eachRunning: 4 },
  ])("a cut to $most of 20 levels tries all 4 limits of running as well", ({ most, eachRunning }) => {
    const cut = candidatesOf(inputOf({ asked: { memory, running, maxQueryMem: [] }, most }));
    expect(cut).toHaveLength(most);
    expect(new Set(cut.map((s) => s.maxMem)).size).toBe(most);
    for (const r of running)
      expect(cut.filter((s) => s.maxRunning === r).length, `${r} running`).toBeGreaterThanOrEqual(eachRunning);
  });

  test("a cut to a few more than there are levels: today's limit everywhere, the others here and there", () => {
    const cut = candidatesOf(inputOf({ asked: { memory, running, maxQueryMem: [] }, most: 26 }));
    expect(cut.filter((s) => s.maxRunning === NOW.maxRunning).map((s) => s.maxMem)).toEqual(memory);
    expect(new Set(cut.map((s) => s.maxRunning))).toEqual(new Set(running));
    for (const s of cut) expect(s).toMatchObject({ maxQueued: NOW.maxQueued, timeout: NOW.timeout });
  });

  test("query limits and splits take no more than half of a cut that has no place for all", () => {
    const cut = candidatesOf(inputOf({ asked: { memory, running, maxQueryMem: [2 * GiB, 3 * GiB] }, most: 9 }));
    expect(cut.filter((s) => s.maxQueryMem === NOW.maxQueryMem)).toHaveLength(5);
    expect(new Set(cut.map((s) => s.maxQueryMem))).toEqual(new Set([NOW.maxQueryMem, 2 * GiB, 3 * GiB]));
  });

  test("no candidate gives more than the room there is, asked for or found", () => {
    const input = inputOf();
    const wanted = Math.max(...levels(input));
    const least = Math.min(...[...levels(input)].filter((m) => m > NOW.maxMem));
    expect(wanted).toBeGreaterThan(least);
    expect(Math.max(...levels({ ...input, mostMemory: least }))).toBe(least);
    expect(Math.max(...levels({ ...input, mostMemory: NOW.maxMem }))).toBe(NOW.maxMem);
    const asked = { memory: [least - 1, least, least + 1] };
    expect(levels({ ...input, asked, mostMemory: least })).toEqual(new Set([least - 1, least]));
  });

  test("a burst that does not fit: as much as lets it in at once, in two waves, in three, ...", () => {
    const input = inputOf();
    const burst = { ...input.requests, count: 60, at: input.requests.at.slice(0, 60).fill(0) };
    const found = levels({ ...input, requests: burst });
    const need = input.needs.find((n) => n !== null)!.cluster;
    for (const k of [60, 30, 20, 15, 12, 10])
      expect(found, `${k} at once`).toContain(Math.ceil((k * need) / MiB) * MiB);
    expect(Math.max(...found)).toBeLessThanOrEqual(input.mostMemory);
  });
});

describe("insight 3.2 min-mem: none, and what the median of small queries needs", () => {
  /** Small queries: an estimate of 1.5 GiB and a peak of 1, which fits under 1.25; large ones: 4 and 3 under 3.75. */
  const floors = (input: GridInput): number[] =>
    [...new Set(candidatesOf(input).map((s) => s.minQueryMem))]
      .filter((m) => m !== input.now.minQueryMem)
      .sort((a, b) => a - b);
  const under = (gib: number, more: Partial<Setting> = {}): Setting => ({ ...NOW, minQueryMem: gib * GiB, ...more });

  test.each([
    { name: "it is below every estimate: nothing would change", now: under(0), found: [] },
    { name: "at the least estimate", now: under(1.5), found: [] },
    { name: "in the way by a MiB", now: under(1.5 + 1 / 1024), found: [0, 1.25] },
    { name: "in the way", now: under(2), found: [0, 1.25] },
    { name: "what the median needs is today's", now: under(1.25), found: [] },
    { name: "max-mem is as much", now: under(2, { maxQueryMem: 2 * GiB }), found: [0, 1.25] },
  ])("$name", ({ now, found }) => {
    expect(floors(inputOf({ now, asked: { maxQueryMem: [] } }))).toEqual(found.map((gib) => gib * GiB));
  });

  test("more than is estimated, where peaks are higher; not more than max-mem", () => {
    const input = inputOf();
    const peaks = new Float64Array(input.requests.count).fill(2 * GiB);
    expect(floors({ ...input, peaks })).toEqual([2.5 * GiB]);
    const capped = (max: number): number[] => floors(inputOf({ peaks, now: under(0, { maxQueryMem: max }) }));
    expect(capped(2.5 * GiB)).toContain(2.5 * GiB);
    expect(capped(2.5 * GiB - MiB)).not.toContain(2.5 * GiB);
  });

  test.each([
    { name: "the small class among more large ones", small: 1, large: 4, found: 1.25 },
    { name: "one that hardly ever comes sets no floor", small: 0.05, large: 4, found: 3.75 },
  ])("$name", ({ small, large, found }) => {
    const input = inputOf({ now: under(5), asked: { maxQueryMem: [] } }, { small, large });
    expect(floors(input)).toEqual([0, found * GiB]);
  });

  test("each step of memory that such queries make, with as many running as today, as ever want to, and any number", () => {
    const input = inputOf({ now: under(3), asked: { maxQueryMem: [] } }, { small: 2 });
    const lower = candidatesOf(input).filter((s) => s.minQueryMem === 0);
    const need = input.needsUnder(under(0)).find((n) => n !== null)!.cluster;
    const steps = [...new Set(lower.map((s) => s.maxMem))].filter((m) => m !== NOW.maxMem);
    expect(steps.length).toBeGreaterThan(0);
    for (const m of steps) expect(m).toBe(Math.ceil((Math.round(m / need) * need) / MiB) * MiB);
    const wanted = demandOfTraffic(input.requests, input.needs).running.at(-1);
    expect([...new Set(lower.map((s) => s.maxRunning))]).toEqual([NOW.maxRunning, wanted, -1]);
    expect(lower).toHaveLength(3 * (steps.length + 1));
    for (const s of lower) expect(s).toMatchObject({ maxQueued: NOW.maxQueued, timeout: NOW.timeout });
  });
});
