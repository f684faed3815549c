import { describe, expect, test } from "vitest";
import { GiB, MiB } from "../../../src/core/units.ts";
import {
  burstOutcome,
  fluidStart,
  hopefulQueue,
  overloadOutcome,
  type PlaceLimits,
  placesOf,
} from "../../../src/insight/size/places.ts";

/** 200000 mb, 20 running, ten hosts of 100 GiB, 1.5 GiB on each. */
const POOL: PlaceLimits = { maxMem: 200_000 * MiB, maxRunning: 20, hostMemory: 100 * GiB, slots: -1 };
const onAll = (perHost: number, coordinator = 0) => ({ need: perHost * 10 + coordinator, perHost, slots: 1 });

describe("insight 3.3 item 1: places", () => {
  test.each([
    { name: "coordinator among the ten", need: onAll(1.5 * GiB), c: 13 },
    { name: "dedicated coordinator", need: onAll(1.5 * GiB, 100 * MiB), c: 12 },
    { name: "estimates at 8 GiB", need: onAll(8 * GiB), c: 2 },
  ])("$name: $c", ({ need, c }) => {
    expect(placesOf(POOL, need)).toBe(c);
  });

  test("C08: the coordinator's share costs a whole query from 24.6 MiB on", () => {
    expect(placesOf(POOL, onAll(1.5 * GiB, 24.6 * MiB))).toBe(13);
    expect(placesOf(POOL, onAll(1.5 * GiB, 24.7 * MiB))).toBe(12);
  });

  test.each([
    { limit: { maxMem: 15 * GiB - 1 }, c: 0 },
    { limit: { maxMem: 15 * GiB }, c: 1 },
    { limit: { maxMem: 15 * GiB + 1 }, c: 1 },
    { limit: { maxRunning: 5 }, c: 5 },
    { limit: { hostMemory: 6 * GiB }, c: 4 },
    { limit: { slots: 3 }, c: 3 },
    { limit: { maxMem: -1, hostMemory: -1 }, c: 20 },
    { limit: { maxMem: -1, maxRunning: -1, hostMemory: -1 }, c: Number.POSITIVE_INFINITY },
  ])("$limit: $c", ({ limit, c }) => {
    expect(placesOf({ ...POOL, ...limit }, onAll(1.5 * GiB))).toBe(c);
  });
});

describe("insight 3.3 item 2: the table of the worked burst", () => {
  const OF_ALL = { cap: 1.5, coordinator: 0, mem: 200_000, r: 20, q: 50, t: 30 };
  test.each([
    { name: "as configured", with: {}, rows: [13, 47, 0, 0, 16], mean: 440 / 60 },
    { name: "dedicated coordinator", with: { coordinator: 100 }, rows: [12, 48, 0, 0, 16], mean: 8 },
    { name: "statistics dropped", with: { cap: 8 }, rows: [2, 14, 8, 36, 28], mean: 14 },
    { name: "R 40", with: { r: 40 }, rows: [13, 47, 0, 0, 16] },
    { name: "400000 mb", with: { mem: 400_000 }, rows: [20, 40, 0, 0, 8] },
    { name: "400000 mb and R 40", with: { mem: 400_000, r: 40 }, rows: [26, 34, 0, 0, 8] },
    { name: "Q 40", with: { q: 40 }, rows: [13, 40, 7, 0, 16] },
    { name: "T 15 s", with: { t: 15 }, rows: [13, 39, 0, 8, 12] },
    { name: "dropped, cap 4 GiB", with: { cap: 4 }, rows: [4, 28, 6, 22, 28] },
    { name: "dropped, cap 2 GiB", with: { cap: 2 }, rows: [9, 50, 1, 0, 24] },
    { name: "dropped, cap 1.95 GiB", with: { cap: 1.95 }, rows: [10, 50, 0, 0, 20] },
    { name: "dropped, cap 1.75 GiB", with: { cap: 1.75 }, rows: [11, 49, 0, 0, 20] },
    { name: "dropped, T 120 s", with: { cap: 8, t: 120 }, rows: [2, 50, 8, 0, 100] },
    { name: "dropped, T 120 s, Q 100", with: { cap: 8, t: 120, q: 100 }, rows: [2, 58, 0, 0, 116] },
    { name: "dropped, Q 14", with: { cap: 8, q: 14 }, rows: [2, 14, 44, 0, 28] },
  ])("$name: $rows", ({ with: changed, rows, mean }) => {
    const { cap, coordinator, mem, r, q, t } = { ...OF_ALL, ...changed };
    const places = placesOf({ ...POOL, maxMem: mem * MiB, maxRunning: r }, onAll(cap * GiB, coordinator * MiB));
    const out = burstOutcome(60, 4, { places, maxQueued: q, timeout: t });
    expect([out.atOnce, out.fromQueue, out.rejected, out.timedOut, out.lastWait]).toEqual(rows);
    if (mean !== undefined) expect(out.meanWait).toBeCloseTo(mean, 10);
  });

  test("a wave at the very moment of the timeout is too late, one just before it is not", () => {
    const queue = { places: 10, maxQueued: 50 };
    expect(burstOutcome(30, 4, { ...queue, timeout: 8 }).timedOut).toBe(10);
    expect(burstOutcome(30, 4, { ...queue, timeout: 8.001 }).timedOut).toBe(0);
    expect(burstOutcome(30, 4, { ...queue, timeout: 4 }).timedOut).toBe(20);
  });

  test("fewer than places wait for nothing; the fluid start of the last one is 14.46 s", () => {
    expect(burstOutcome(13, 4, { places: 13, maxQueued: 50, timeout: 30 })).toMatchObject({
      fromQueue: 0,
      lastWait: 0,
    });
    expect(fluidStart(47, 4, 13)).toBeCloseTo(14.46, 2);
  });
});

describe("insight 3.3 item 3: sustained overload", () => {
  test("statistics dropped at 2.6/s: served, timed out and rejected as the fluid says", () => {
    const { served, timedOut, rejected, wait } = overloadOutcome(2.6, 2 / 4, 50, 30);
    expect(served / 2.6).toBeCloseTo(0.192, 3);
    expect(timedOut / 2.6).toBeCloseTo(0.449, 3);
    expect(rejected / 2.6).toBeCloseTo(0.359, 3);
    expect(wait).toBe(30);
  });

  test("up to T·c/S waiting places nobody times out, beyond it late failures replace early ones", () => {
    expect(hopefulQueue(30, 13 / 4)).toBe(97);
    expect(overloadOutcome(4, 13 / 4, 97, 30).timedOut).toBe(0);
    expect(overloadOutcome(4, 13 / 4, 98, 30).timedOut).toBeGreaterThan(0);
    const long = overloadOutcome(4, 13 / 4, 10_000, 30);
    expect(long.rejected).toBe(0);
    expect(long.served + long.timedOut).toBeCloseTo(4);
  });

  test("below the throughput nothing is lost", () => {
    expect(overloadOutcome(3.25, 3.25, 0, 30)).toEqual({ served: 3.25, rejected: 0, timedOut: 0, wait: 0 });
  });
});
