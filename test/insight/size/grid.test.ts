import { describe, expect, test } from "vitest";
import { MiB } from "../../../src/core/units.ts";
import { candidatesOf, type GridInput } from "../../../src/insight/size/grid.ts";
import { Evaluator } from "../../../src/insight/size/problem.ts";
import { configUnder } from "../../../src/insight/size/setting.ts";
import { configOf, NOW, POOL, problemOf } from "./size-fixtures.ts";

/** Queries of 15.5 GiB on the pool of the fixtures, which has 150 GiB: nine at once. */
function inputOf(over: Partial<GridInput> = {}): GridInput {
  const problem = problemOf({ small: 3, large: 0, seconds: 120 });
  const book = new Evaluator(problem).needs(0);
  return {
    requests: problem.days[0]!,
    needs: book
      .under(configUnder(configOf(NOW), NOW))
      .map((need, kind) => (problem.days[0]!.kinds[kind]!.pool === POOL ? need : null)),
    peaks: problem.days[0]!.peak,
    now: NOW,
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
