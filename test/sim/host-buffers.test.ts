import { describe, expect, test } from "vitest";
import { parseScenario } from "../../src/config/scenario-file.ts";
import type { EventOf, RunEvent } from "../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG } from "../../src/core/pool-config.ts";
import { GiB, KiB, MiB } from "../../src/core/units.ts";
import { HostBuffers } from "../../src/sim/host-buffers.ts";
import type { Placement } from "../../src/sim/placement.ts";
import { type Holder, roomAhead } from "../../src/sim/room-ahead.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { GivenWorkload } from "./given-workload.ts";

/** R13: 85 % of 10 GiB in whole buffers. */
const LIMIT = Math.floor((0.85 * 10 * GiB) / (8 * KiB)) * 8 * KiB;

const onBoth: Pick<Placement, "hosts" | "hasFootprint"> = {
  hosts: Int32Array.of(0, 1),
  hasFootprint: Uint8Array.of(1, 1),
};

describe("R13 a host's buffers, as far as other queries move them", () => {
  test.each([
    { bytes: LIMIT - 1, fits: true },
    { bytes: LIMIT, fits: true },
    { bytes: LIMIT + 1, fits: false },
  ])("$bytes of an empty host's limit: fits = $fits", ({ bytes, fits }) => {
    const buffers = new HostBuffers([10 * GiB, 100 * GiB]);
    expect(buffers.haveRoom(onBoth as Placement, bytes)).toBe(fits);
  });

  test("what one query has, another has not; given back, it is there again", () => {
    const buffers = new HostBuffers([10 * GiB]);
    buffers.take(0, 6 * GiB);
    expect(buffers.freeOn(0)).toBe(LIMIT - 6 * GiB);
    buffers.take(0, -6 * GiB);
    expect(buffers.freeOn(0)).toBe(LIMIT);
  });

  test("what is held at most may be more than there is; then nothing is free until enough is gone", () => {
    const buffers = new HostBuffers([10 * GiB]);
    buffers.take(0, LIMIT + 5);
    expect([buffers.freeOn(0), buffers.limitOf(0)]).toEqual([0, LIMIT]);
    buffers.take(0, -6);
    expect(buffers.freeOn(0)).toBe(1);
    expect(() => buffers.take(0, -LIMIT)).toThrow("R13");
  });
});

describe("what a host leaves to a footprint over its whole course", () => {
  const ramp = (over: Partial<Holder> = {}): Holder => ({
    profile: "ramp",
    peak: 60,
    most: 60,
    asks: 60,
    since: 0,
    duration: 100,
    until: 100,
    ...over,
  });
  /** On a host of 85. */
  const roomBeside = (others: readonly Holder[], since: number, most = Number.POSITIVE_INFINITY) =>
    roomAhead(85, others, { profile: "ramp", peak: 60, most, since, duration: 100 });

  test.each([
    // 60 + 15 when the first one ends.
    { since: 75, most: 60, refused: null },
    // In step: 41.25 + 41.25, then 45 + 45 at three quarters; 25 are left beside the other's 60.
    { since: 0, most: 25, refused: { at: 0.75, holding: 41 } },
    // 48.75 + 33.75 at the ninth of sixteen steps, 52.5 + 37.5 at the tenth; 60 + 45 when the first one ends.
    { since: 25, most: 40, refused: { at: 0.625, holding: 33 } },
  ])("one that begins $since later than another of its kind", ({ since, most, refused }) => {
    expect(roomBeside([ramp()], since)).toMatchObject({ most, refused });
  });

  test("its own limit counts as well, and what others write out is not held", () => {
    expect(roomBeside([], 0, 30)).toMatchObject({ most: 30, refused: { at: 0.5625, holding: 30 } });
    expect(roomBeside([ramp({ most: 25 })], 0)).toMatchObject({ most: 60, refused: null });
  });

  test("R16 those of one instant claim before anybody of it grows", () => {
    const flat = ramp({ profile: "flat", peak: 85, most: 85, asks: 85 });
    expect(roomBeside([flat], 0).atStart).toBe(85);
    expect(roomBeside([flat], 1).atStart).toBe(0);
  });

  test("R17 a host that is asked for more than it has is full, whoever writes how much of it to scratch", () => {
    // Half way two of 60 ask for 60 of 85, three for 90, though the third was given only what the others leave.
    const three = [ramp(), ramp({ most: 25 }), ramp({ most: 0 })];
    expect([roomBeside(three.slice(0, 2), 50).atStart, roomBeside(three, 50).atStart]).toEqual([25, 0]);
  });

  test("a spike is met wherever it lies between two steps", () => {
    const spiky = ramp({
      profile: [
        [0, 0],
        [0.03, 1],
        [0.031, 0],
        [1, 0],
      ],
      peak: 50,
      most: 50,
      asks: 50,
    });
    const own = { profile: spiky.profile, peak: 50, most: Number.POSITIVE_INFINITY, since: 0, duration: 100 };
    expect(roomAhead(85, [spiky], own).refused).toMatchObject({ at: 0.03, holding: 35 });
  });
});

/** `count` queries of 6 GiB a host in one instant, on hosts of 10 GiB. */
const burst = (count: number, spillable: boolean, maxMemResources: number): RunEvent[] =>
  starting(new Array<number>(count).fill(0), spillable, maxMemResources);

/** One query for each moment. */
function starting(
  moments: readonly number[],
  spillable: boolean,
  maxMemResources: number,
  shape: "ramp" | "flat" = "ramp",
): RunEvent[] {
  const scenario = parseScenario(
    JSON.stringify({
      cluster: {
        executors: [{ count: 2, memory: "10gb", slots: 4 }],
        coordinators: [{ count: 1, on: "executor" }],
      },
      pools: "flags",
      queries: { q: { user: "ana", estimate: "1gb", uses: { peak: "6gb", spillable, shape }, duration: "4s" } },
      arrivals: [{ at: "0s", query: "q", count: 1 }],
      model: { scratchBandwidth: "1gb" },
    }),
    "overcommitted.json",
  );
  const arrivals = moments.map((at) => ({
    at,
    coordinator: "exec-1:27000",
    pool: "q",
    duration: 4000,
    peak: 6 * GiB,
  }));
  const events: RunEvent[] = [];
  const config = { ...DEFAULT_POOL_CONFIG, maxMemResources: maxMemResources as -1 };
  simulate({
    scenario,
    workload: new GivenWorkload(scenario, arrivals),
    pools: { configOf: () => config },
    emit: (e) => events.push(e),
  });
  return events;
}

const released = (events: readonly RunEvent[]): EventOf<"released">[] =>
  events.filter((e): e is EventOf<"released"> => e.kind === "released");

describe("T-15 a pool without a maximum lets in more than its hosts have", () => {
  test("one query has all it wants", () => {
    expect(released(burst(1, true, -1))).toMatchObject([{ at: 4000, state: "finished", peak: 6 * GiB }]);
  });

  test("the second has what is left, writes the rest to scratch and takes longer by it", () => {
    const left = LIMIT - 6 * GiB;
    const spilled = 6 * GiB - left;
    const ends = released(burst(2, true, -1));
    expect(ends.map((e) => e.peak)).toEqual([6 * GiB, left]);
    // A bandwidth of 1 GiB a second on each host.
    expect(ends[1]?.at).toBeCloseTo(4000 + (spilled / GiB) * 1000, 2);
  });

  test("R16 the third of the same instant has claimed its minimum before the others grew, and spills the rest", () => {
    const ends = released(burst(3, true, -1));
    expect(ends.map((e) => e.state)).toEqual(["finished", "finished", "finished"]);
    expect(Math.min(...ends.map((e) => e.peak))).toBe(6 * MiB);
  });

  test("R17 a third that comes later finds nothing where the others are at their peak, not even its minimum", () => {
    const ends = released(starting([0, 0, 1], true, -1, "flat"));
    expect(ends.map((e) => e.state).sort()).toEqual(["failed", "finished", "finished"]);
  });

  test("while they still grow it has its minimum, and spills the rest", () => {
    const ends = released(starting([0, 0, 1], true, -1));
    expect(ends.map((e) => e.state)).toEqual(["finished", "finished", "finished"]);
  });

  test("one that comes when the other is nearly done has all it wants", () => {
    const ends = released(starting([0, 3000], false, -1));
    expect(ends).toMatchObject([
      { at: 4000, state: "finished", peak: 6 * GiB },
      { at: 7000, state: "finished", peak: 6 * GiB },
    ]);
  });

  test("one that cannot spill fails", () => {
    const states = released(burst(2, false, -1)).map((e) => e.state);
    expect(states.sort()).toEqual(["failed", "finished"]);
  });
});
