import { describe, expect, test } from "vitest";
import { parseScenario } from "../../src/config/scenario-file.ts";
import type { EventOf, RunEvent } from "../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG } from "../../src/core/pool-config.ts";
import { GiB, KiB, MiB } from "../../src/core/units.ts";
import { HostBuffers } from "../../src/sim/host-buffers.ts";
import type { Placement } from "../../src/sim/placement.ts";
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

  test("R16 what was taken in this instant is claimable for minimums, what was taken before is not", () => {
    const buffers = new HostBuffers([10 * GiB]);
    buffers.start(0, GiB, 5);
    buffers.start(0, 2 * GiB, 5);
    expect(buffers.claimableOn(0, 5)).toBe(LIMIT);
    expect(buffers.claimableOn(0, 6)).toBe(LIMIT - 3 * GiB);
    buffers.start(0, 4 * GiB, 6);
    expect(buffers.claimableOn(0, 6)).toBe(LIMIT - 3 * GiB);
  });

  test("what ran before may hold too much; then nothing is free until it is gone", () => {
    const buffers = new HostBuffers([10 * GiB]);
    buffers.adopt(0, LIMIT + 5);
    expect(buffers.freeOn(0)).toBe(0);
    buffers.take(0, -6);
    expect(buffers.freeOn(0)).toBe(1);
  });

  test("over the limit, or below nothing, is a bug of ours", () => {
    const buffers = new HostBuffers([10 * GiB]);
    expect(() => buffers.take(0, LIMIT + 1)).toThrow("R13");
    expect(() => buffers.take(0, -1)).toThrow("R13");
  });
});

/** `count` queries of 6 GiB a host in one instant, on hosts of 10 GiB. */
const burst = (count: number, spillable: boolean, maxMemResources: number): RunEvent[] =>
  starting(new Array<number>(count).fill(0), spillable, maxMemResources);

/** One query for each moment. */
function starting(moments: readonly number[], spillable: boolean, maxMemResources: number): RunEvent[] {
  const scenario = parseScenario(
    JSON.stringify({
      cluster: {
        executors: [{ count: 2, memory: "10gb", slots: 4 }],
        coordinators: [{ count: 1, on: "executor" }],
      },
      pools: "flags",
      queries: { q: { user: "ana", estimate: "1gb", uses: { peak: "6gb", spillable }, duration: "4s" } },
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

  test("R17 a third that comes later finds nothing, not even its minimum, and fails", () => {
    const ends = released(starting([0, 0, 1], true, -1));
    expect(ends.map((e) => e.state).sort()).toEqual(["failed", "finished", "finished"]);
  });

  test("one that cannot spill fails", () => {
    const states = released(burst(2, false, -1)).map((e) => e.state);
    expect(states.sort()).toEqual(["failed", "finished"]);
  });
});
