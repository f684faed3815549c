import { describe, expect, test } from "vitest";
import type { RunEvent } from "../../src/core/events.ts";
import { small } from "./live-fixture.ts";
import { simulated } from "./simulated.ts";
import { stepped } from "./stepped.ts";

/** What became of each query, and when, milliseconds. */
function livesOf(events: readonly RunEvent[]): Map<string, number> {
  const moments = new Map<string, number>();
  for (const e of events)
    if (e.kind === "admitted" || e.kind === "rejected" || e.kind === "timedOut" || e.kind === "released")
      moments.set(`${e.kind} ${e.query}`, e.at);
  return moments;
}

const STORIES = [
  {
    name: "one coordinator and a pool's memory, seen through the topic",
    cluster: { coordinators: [{ count: 1, on: "executor" }] },
    flags: { default_pool_mem_limit: "9gb", default_pool_max_requests: "-1" },
  },
  {
    name: "the same with lags on the way to and from the statestore",
    cluster: {
      coordinators: [{ count: 1, on: "executor" }],
      statestore: { every: "100ms", publishLag: "15ms", receiveLag: "30ms" },
    },
    flags: { default_pool_mem_limit: "9gb", default_pool_max_requests: "-1" },
  },
  {
    name: "three coordinators that each check the number of running queries",
    cluster: { coordinators: [{ count: 3, on: "executor" }] },
    flags: { default_pool_max_requests: "3" },
  },
  {
    name: "three coordinators, a pool's memory, timeouts and a full queue",
    cluster: { coordinators: [{ count: 3, on: "executor" }] },
    flags: {
      default_pool_mem_limit: "9gb",
      default_pool_max_requests: "-1",
      default_pool_max_queued: "6",
      queue_wait_timeout_ms: "2500",
    },
  },
];

describe("insight 7.1 both drivers, with everything that threads and timers make late left out", () => {
  test.each(STORIES)("$name: every query at the same microsecond", ({ cluster, flags }) => {
    const scenario = small({
      cluster,
      flags,
      query: { options: { MEM_LIMIT: "1gb" }, duration: { exponential: { mean: "1s" } } },
      arrivals: [{ rate: 3, query: "q", from: "0s", to: "100s" }],
    });
    const live = livesOf(stepped(scenario).events);
    const virtual = livesOf(simulated(scenario));
    expect(virtual.size).toBeGreaterThan(400);
    expect([...live.keys()].sort()).toEqual([...virtual.keys()].sort());
    // Virtual time counts whole microseconds, and a query's hold is one of them longer at most.
    const apart = [...virtual].filter(([what, at]) => !(Math.abs(live.get(what)! - at) < 0.0025));
    expect(apart).toEqual([]);
  });
});

describe("1.2 hosts hear of the options in force, a query's own over the defaults", () => {
  const sort = { rows: 1000, width: 16 };

  test.each([
    { defaults: "", own: {}, limit: -1, spillable: true },
    { defaults: "scratch_limit=1gb,disable_unsafe_spills=true", own: {}, limit: 2 ** 30, spillable: false },
    { defaults: "scratch_limit=1gb", own: { SCRATCH_LIMIT: "2gb" }, limit: 2 ** 31, spillable: true },
    { defaults: "scratch_limit=0", own: { SCRATCH_LIMIT: "-1" }, limit: -1, spillable: true },
    { defaults: "disable_unsafe_spills=1", own: { DISABLE_UNSAFE_SPILLS: "false" }, limit: -1, spillable: true },
    { defaults: "disable_unsafe_spills=false", own: { DISABLE_UNSAFE_SPILLS: "true" }, limit: -1, spillable: false },
  ])(
    "defaults $defaults, own $own: scratch limit $limit, spillable $spillable",
    ({ defaults, own, limit, spillable }) => {
      const query = { sort, estimate: undefined, uses: undefined, options: own };
      const { orders } = stepped(small({ scaleMemory: 1, query, flags: { default_query_options: defaults } }));
      expect(orders).toMatchObject([{ scratchLimit: limit, spillable }]);
    },
  );
});
