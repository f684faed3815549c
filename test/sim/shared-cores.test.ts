/** `model.cores`: more running instances than a host has cores slow each other; a stated, simple model (DESIGN 3). */
import { describe, expect, test } from "vitest";
import { parseScenario } from "../../src/config/scenario-file.ts";
import { DEFAULT_POOL_CONFIG } from "../../src/core/pool-config.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";

/** When queries end, in ms, in the order in which they end. */
function endsOf(cores: number, arrivals: readonly unknown[]): number[] {
  const scenario = parseScenario(
    JSON.stringify({
      cluster: { executors: [{ memory: "64gb", slots: 64 }], coordinators: [{ on: "dedicated" }] },
      pools: "flags",
      model: { cores },
      queries: {
        second: { estimate: "100mb", uses: { peak: "10mb" }, duration: "1s" },
        millisecond: { estimate: "100mb", uses: { peak: "10mb" }, duration: "1ms" },
      },
      arrivals,
    }),
    "cores.json",
  );
  const ends: number[] = [];
  simulate({
    scenario,
    workload: createWorkload(scenario, {
      resolve: (pool, user) => ({ kind: "resolved", pool, user, groups: [], defaultOptions: {}, maxMtDop: -1 }),
    }),
    pools: { configOf: () => DEFAULT_POOL_CONFIG },
    emit: (e) => {
      if (e.kind === "released") ends.push(e.at);
    },
  });
  return ends;
}

describe("shared cores", () => {
  test.each([
    { cores: 2, title: "two on two cores take a second each", ends: [1000, 1000] },
    { cores: 1, title: "two on one core take two", ends: [2000, 2000] },
  ])("$title", ({ cores, ends }) => {
    expect(endsOf(cores, [{ at: "0s", query: "second", count: 2 }])).toEqual(ends);
  });

  test("who comes half a second later shares from then on: half of the first is left, at half the speed", () => {
    const halfLater = [
      { at: "0s", query: "second" },
      { at: "500ms", query: "second" },
    ];
    expect(endsOf(1, halfLater)).toEqual([1500, 2000]);
  });

  // 1 us at a third and 3,999 at a quarter: done within the last microsecond, in which ten others come.
  test("who is done in the microsecond in which others come is not slowed any more", () => {
    const crowd = [
      { at: "0s", query: "millisecond" },
      { at: "0s", query: "second", count: 2 },
      { at: "1us", query: "second" },
      { at: "4ms", query: "second", count: 10 },
    ];
    expect(endsOf(1, crowd)[0]).toBe(4);
  });
});
