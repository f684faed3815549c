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
