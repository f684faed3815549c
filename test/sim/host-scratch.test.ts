import { describe, expect, test } from "vitest";
import { parseScenario } from "../../src/config/scenario-file.ts";
import { flagsOf, openPools } from "../../src/config/scenario-pools.ts";
import type { RunEvent } from "../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG } from "../../src/core/pool-config.ts";
import { MiB } from "../../src/core/units.ts";
import { HostScratch } from "../../src/sim/host-scratch.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { hostWorkWithScratch } from "../../src/sim/work.ts";
import { poolResolver } from "../../src/workload/pool-resolver.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";

describe("S9 scratch of one host", () => {
  test("what one query has, another has not; given back, it is there again", () => {
    const scratch = new HostScratch([100, Number.POSITIVE_INFINITY]);
    scratch.take(0, 60);
    expect([scratch.freeOn(0), scratch.freeOn(1)]).toEqual([40, Number.POSITIVE_INFINITY]);
    scratch.take(0, 40);
    scratch.take(0, -60);
    expect([scratch.freeOn(0), scratch.inUseOn(0)]).toEqual([60, 40]);
    expect(() => scratch.take(0, 61)).toThrow("S9");
    expect(() => scratch.take(0, -41)).toThrow("S9");
  });
});

/** One query of 4 s on one host, whose memory limit leaves so much that it writes `spilled` mb; one after the other. */
function ended(said: { scratch?: string; limit?: string; shape?: string; starts: readonly string[] }): RunEvent[] {
  const scenario = parseScenario(
    JSON.stringify({
      cluster: {
        executors: [{ count: 1, memory: "100gb", slots: 4, ...(said.scratch && { scratch: said.scratch }) }],
        coordinators: [{ count: 1, on: "dedicated" }],
      },
      pools: "flags",
      queries: {
        q: {
          user: "ana",
          estimate: "1gb",
          uses: { peak: "2000mb", shape: said.shape ?? "ramp" },
          duration: "4s",
          options: { MEM_LIMIT: "1250mb", ...(said.limit && { SCRATCH_LIMIT: said.limit }) },
        },
      },
      arrivals: said.starts.map((at) => ({ at, query: "q", count: 1 })),
      model: { scratchBandwidth: "1000mb" },
    }),
    "scratch.json",
  );
  const flags = flagsOf(scenario);
  const pools = openPools(scenario, flags);
  const events: RunEvent[] = [];
  simulate({
    scenario,
    workload: createWorkload(
      scenario,
      poolResolver(() => pools, flags, scenario.users),
    ),
    pools: { configOf: () => DEFAULT_POOL_CONFIG },
    emit: (e) => events.push(e),
  });
  return events;
}

const ends = (events: readonly RunEvent[]): (readonly [number, string])[] =>
  events.flatMap((e) => (e.kind === "released" ? [[e.at, e.state] as const] : []));

describe("S7, S9 when a query has written what it may", () => {
  // 1250 mb leave 1000 for reservations: of the 2000, 1000 mb are written, which takes a second.
  test.each([
    { limit: "1000mb", ends: [[5000, "finished"]] },
    { limit: "999mb", ends: [[4999, "failed"]] },
    // Half of the peak is reached at 2 s, three quarters at 3 s; 500 mb take half a second to write.
    { limit: "500mb", ends: [[3504, "failed"]] },
    { limit: "0", ends: [[2004, "failed"]] },
  ])("SCRATCH_LIMIT=$limit", ({ limit, ends: expected }) => {
    expect(ends(ended({ limit, starts: ["0s"] }))).toEqual(expected);
  });

  test("a flat one fails at once", () => {
    expect(ends(ended({ limit: "0", shape: "flat", starts: ["0s"] }))).toEqual([[0, "failed"]]);
  });

  test("what one has written another has not, until the first is over", () => {
    expect(ends(ended({ scratch: "1500mb", starts: ["0s", "1s", "5001ms"] }))).toEqual([
      [4504, "failed"],
      [5000, "finished"],
      [10_001, "finished"],
    ]);
  });

  test("the smaller of the two says why", () => {
    const work = { takes: 0, peak: 10, spilled: 90, wants: null };
    const queryClass = { uses: { kind: "footprint", profile: "ramp", spillable: true } } as never;
    const model = { scratchBandwidth: MiB, cores: null };
    const wants = (limit: number, free: number) =>
      hostWorkWithScratch(work, queryClass, model, { peak: 100, duration: 1000, spilled: 0 }, limit, free).wants;
    expect([wants(-1, 90), wants(90, 90), wants(89, 90), wants(90, 89), wants(50, 60), wants(60, 50)]).toEqual([
      null,
      null,
      "scratchLimit",
      "scratchSpace",
      "scratchLimit",
      "scratchSpace",
    ]);
  });
});
