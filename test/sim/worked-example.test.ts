/**
 * The worked example and its variants (DESIGN 3): counts, and waits as the rules and the topic's rounds give
 * them.
 *
 * Why waves start when they do. A query that has ended is off its controller's books at once, but the pool's
 * reserved memory is the larger of what the controller admitted and what hosts published (T-26), and that
 * falls only as the hosts' exchanges come by, 10 ms apart here, the coordinator's own first in each round.
 */
import { describe, expect, test } from "vitest";
import { parseScenario } from "../../src/config/scenario-file.ts";
import { rejectReasonText } from "../../src/core/admission/reasons.ts";
import type { EventKind, EventOf, RunEvent } from "../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../src/core/pool-config.ts";
import { type Bytes, GiB, MiB, type Millis } from "../../src/core/units.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { GivenWorkload } from "./given-workload.ts";

const POOL = "root.dashboards";

const DASHBOARDS: PoolConfig = {
  ...DEFAULT_POOL_CONFIG,
  maxMemResources: (200_000 * MiB) as Bytes,
  maxRequests: 20,
  maxQueued: 50,
  queueTimeout: 30_000 as Millis,
  minQueryMemLimit: GiB,
  maxQueryMemLimit: 8 * GiB,
};

interface Variant {
  readonly estimate?: string;
  readonly coordinator?: string;
  readonly pool?: Partial<PoolConfig>;
}

/** 60 queries in one instant. */
function burst(variant: Variant): RunEvent[] {
  const scenario = parseScenario(
    `
cluster:
  executors: [{ count: 10, memory: 100gb, slots: 16 }]
  coordinators: [${variant.coordinator ?? "{ count: 1, on: executor }"}]
pools: flags
queries:
  tile: { user: ana, estimate: ${variant.estimate ?? "1.5gb"}, uses: { peak: 1.2gb }, duration: 4s, hosts: all }
arrivals: [{ at: 0s, query: tile, count: 60 }]
`,
    "worked.yaml",
  );
  const coordinator = variant.coordinator === undefined ? "exec-01:27000" : "coord-1:27000";
  const peak = 1.2 * GiB;
  const arrivals = Array.from({ length: 60 }, () => ({ at: 0, coordinator, pool: POOL, duration: 4000, peak }));
  const events: RunEvent[] = [];
  simulate({
    scenario,
    workload: new GivenWorkload(scenario, arrivals),
    pools: { configOf: () => ({ ...DASHBOARDS, ...variant.pool }) },
    emit: (e) => events.push(e),
  });
  return events;
}

const ofKind = <K extends EventKind>(events: readonly RunEvent[], kind: K): EventOf<K>[] =>
  events.filter((e): e is EventOf<K> => e.kind === kind);

/** Moment of admission -> how many. */
function waves(events: readonly RunEvent[]): Record<number, number> {
  const found: Record<number, number> = {};
  for (const { at } of ofKind(events, "admitted")) found[at] = (found[at] ?? 0) + 1;
  return found;
}

const outcome = (events: readonly RunEvent[]) => ({
  atOnce: ofKind(events, "admitted").filter((e) => e.path === "immediately").length,
  fromQueue: ofKind(events, "admitted").filter((e) => e.path === "fromQueue").length,
  rejected: ofKind(events, "rejected").length,
  timedOut: ofKind(events, "timedOut").length,
});

describe("the worked example in virtual time", () => {
  test("13 at once, 47 from the queue, waves of 13 every 4 s", () => {
    const events = burst({});
    expect(outcome(events)).toEqual({ atOnce: 13, fromQueue: 47, rejected: 0, timedOut: 0 });
    // 195 GiB of 195.31 are in use. Once the coordinator's own 19.5 are off, 175.5 + 15 fit again, and then
    // the maximum lets as many in as fit beside each other: the wave starts in the coordinator's own exchange.
    expect(waves(events)).toEqual({ 0: 13, 4000: 13, 8000: 13, 12000: 13, 16000: 8 });
  });

  test("a dedicated coordinator's 120 MiB make it 12", () => {
    const events = burst({ coordinator: "{ count: 1, on: dedicated, memory: 20gb, slots: 64 }" });
    expect(outcome(events)).toEqual({ atOnce: 12, fromQueue: 48, rejected: 0, timedOut: 0 });
    const [first] = ofKind(events, "admitted");
    expect(first?.cluster).toBe(10 * 1.5 * GiB + (first?.onCoordinator ?? 0));
    expect(waves(events)).toEqual({ 0: 12, 4000: 12, 8000: 12, 12000: 12, 16000: 12 });
  });

  test("statistics dropped: 2 at once, 50 queue, 8 refused, 14 run in time, 36 time out", () => {
    const events = burst({ estimate: "64gb" });
    expect(outcome(events)).toEqual({ atOnce: 2, fromQueue: 14, rejected: 8, timedOut: 36 });
    for (const { reason } of ofKind(events, "rejected"))
      expect(rejectReasonText(reason)).toBe("queue full, limit=50, num_queued=50.");
    // 160 GiB in use; the next 80 need at most 115 published: three hosts must have said so, and in the
    // coordinator's exchange at the very end only its own has. So each wave waits one round more.
    expect(waves(events)).toEqual({ 0: 2, 4100: 2, 8200: 2, 12300: 2, 16400: 2, 20500: 2, 24600: 2, 28700: 2 });
    for (const { waited, at } of ofKind(events, "timedOut")) expect([waited, at]).toEqual([30_000, 30_000]);
  });

  test.each<{ what: string; variant: Variant; expected: ReturnType<typeof outcome>; last: number }>([
    {
      what: "40 running changes nothing",
      variant: { pool: { maxRequests: 40 } },
      expected: { atOnce: 13, fromQueue: 47, rejected: 0, timedOut: 0 },
      last: 16_000,
    },
    {
      what: "twice the memory runs into 20 running",
      variant: { pool: { maxMemResources: (400_000 * MiB) as Bytes } },
      expected: { atOnce: 20, fromQueue: 40, rejected: 0, timedOut: 0 },
      last: 8000,
    },
    {
      what: "twice the memory and 40 running",
      variant: { pool: { maxMemResources: (400_000 * MiB) as Bytes, maxRequests: 40 } },
      expected: { atOnce: 26, fromQueue: 34, rejected: 0, timedOut: 0 },
      last: 8000,
    },
    {
      what: "40 queued refuses 7",
      variant: { pool: { maxQueued: 40 } },
      expected: { atOnce: 13, fromQueue: 40, rejected: 7, timedOut: 0 },
      last: 16_000,
    },
    {
      what: "15 s of patience lose 8",
      variant: { pool: { queueTimeout: 15_000 as Millis } },
      expected: { atOnce: 13, fromQueue: 39, rejected: 0, timedOut: 8 },
      last: 12_000,
    },
    {
      what: "dropped, capped at 4 GiB",
      variant: { estimate: "64gb", pool: { maxQueryMemLimit: 4 * GiB } },
      expected: { atOnce: 4, fromQueue: 28, rejected: 6, timedOut: 22 },
      last: 28_000,
    },
    {
      what: "dropped, 14 queued: the same 16 served, 36 spared the wait",
      variant: { estimate: "64gb", pool: { maxQueued: 14 } },
      expected: { atOnce: 2, fromQueue: 14, rejected: 44, timedOut: 0 },
      last: 28_700,
    },
  ])("insight 3.3: $what", ({ variant, expected, last }) => {
    const events = burst(variant);
    expect(outcome(events)).toEqual(expected);
    const starts = ofKind(events, "admitted").map((e) => e.at);
    // The table gives whole waves; each of them may start up to one exchange later.
    expect(Math.max(...starts)).toBeGreaterThanOrEqual(last);
    expect(Math.max(...starts)).toBeLessThanOrEqual(last + 700);
  });

  test("everything comes back in one or two batches a query, and only once", () => {
    const events = burst({});
    const released = new Map<string, string[]>();
    for (const { query, hosts } of ofKind(events, "backendsReleased"))
      released.set(query, [...(released.get(query) ?? []), ...hosts]);
    expect(released.size).toBe(60);
    for (const hosts of released.values()) expect(new Set(hosts).size).toBe(10);
    for (const hosts of released.values()) expect(hosts.length).toBe(10);
  });
});
