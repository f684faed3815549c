import { describe, expect, test } from "vitest";
import { NO_USAGE } from "../../src/core/admission/pool-stats.ts";
import type { Bytes, Millis } from "../../src/core/units.ts";
import { LiveStatestore } from "../../src/runtime/live-statestore.ts";
import { Timers } from "../../src/runtime/timers.ts";
import { ExchangeGrid } from "../../src/sim/exchange-grid.ts";
import { SteppedClock } from "./stepped-clock.ts";

const HOSTS = ["a:1", "b:1", "c:1"];

interface Lags {
  readonly publishLag?: number;
  readonly receiveLag?: number;
}

/** When each host had an exchange: what it reserves is another amount at every look. */
function exchangesOf(until: number, latenessOf: (due: number) => number, began = 0, lags: Lags = {}) {
  const clock = new SteppedClock(latenessOf);
  const timers = new Timers(clock, undefined, clock);
  const seen = new Map<string, number[]>(HOSTS.map((h) => [h, []]));
  let looks = 0;
  const usage = () => ({ ...NO_USAGE, memReserved: ++looks as Bytes });
  const spec = {
    every: 90 as Millis,
    publishLag: (lags.publishLag ?? 0) as Millis,
    receiveLag: (lags.receiveLag ?? 0) as Millis,
    failureAfter: 1e9 as Millis,
  };
  const statestore = new LiveStatestore(
    spec,
    HOSTS.map((address, host) => ({ address, host, coordinator: null })),
    {
      timers,
      fleet: { poolUsages: () => [usage()], poolReserved: () => Float64Array.of(++looks) },
      now: () => clock.now(),
      emit: (e) => {
        if (e.kind === "topicPublished") seen.get(e.host)!.push(e.at);
      },
      pools: ["p"],
    },
  );
  clock.setTo(began);
  statestore.start(clock.now());
  clock.runUntil(until);
  return HOSTS.map((h) => seen.get(h)!);
}

/** The simulation's, in milliseconds. */
function gridOf(period: number, until: number): number[][] {
  const grid = new ExchangeGrid(period * 1000, HOSTS.length);
  return HOSTS.map((_, i) => {
    const times: number[] = [];
    for (let t = grid.atOrAfter(i, 0); t <= until * 1000; t = grid.atOrAfter(i, t + 1)) times.push(t / 1000);
    return times;
  });
}

describe("7.1 rounds of a live statestore", () => {
  test("stand where the simulation's stand, when nothing is late", () => {
    expect(exchangesOf(1000, () => 0)).toEqual(gridOf(90, 1000));
  });

  test("are counted from emulated zero, however late it is started", () => {
    const [first, second, third] = exchangesOf(200, () => 0, 12);
    expect([first, second, third]).toEqual([
      [12, 90, 180],
      [30, 120],
      [60, 150],
    ]);
  });

  test("are neither stretched nor moved by late alarms", () => {
    const late = exchangesOf(9000, (due) => (due * 7) % 11);
    const grid = gridOf(90, 9000);
    late.forEach((times, i) => {
      expect(times).toHaveLength(grid[i]!.length);
      times.forEach((at, k) => {
        expect(at - grid[i]![k]!).toBeGreaterThanOrEqual(0);
        expect(at - grid[i]![k]!).toBeLessThan(11);
      });
    });
  });

  test("that a machine was too late for are left out, and those after them are on time", () => {
    // Due at 270, and begun at 470: those of 360 and 450 would have been before it.
    const [first] = exchangesOf(700, (due) => (due === 270 ? 200 : 0));
    expect(first).toEqual([0, 90, 180, 470, 540, 630]);
  });

  test("a period is the pause and both lags", () => {
    const [first] = exchangesOf(400, () => 0, 0, { publishLag: 10, receiveLag: 20 });
    // Each begins a period after the last; what a host has reserved is looked up when the update has come to it.
    expect(first).toEqual([20, 140, 260, 380]);
  });
});
