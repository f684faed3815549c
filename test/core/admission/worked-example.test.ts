/**
 * The example that the whole project is measured by, at one controller: ten executors of 100 GB, pool
 * root.dashboards with 200000 mb, 20 running, 50 queued, 30 s, 1 to 8 GB a query; 60 queries at once.
 */
import { describe, expect, test } from "vitest";
import type { AdmissionQuery } from "../../../src/core/admission/query.ts";
import { rejectionError, timeoutError } from "../../../src/core/admission/reasons.ts";
import type { BackendDescriptor } from "../../../src/core/cluster/backend.ts";
import { millis } from "../../../src/core/units.ts";
import { at, Bench, dedicatedCoordinator, gib, hosts, membership, mib, poolConfig, shape } from "../fixtures.ts";

const POOL = poolConfig({
  maxRequests: 20,
  maxQueued: 50,
  maxMemResources: mib(200_000),
  queueTimeout: millis(30_000),
  minQueryMemLimit: gib(1),
  maxQueryMemLimit: gib(8),
});

const DURATION = 4000;

interface Story {
  readonly waves: readonly (readonly [at: number, started: number])[];
  readonly states: Readonly<Record<string, number>>;
  readonly queries: readonly AdmissionQuery[];
}

/** Every wave runs 4 s, its successors start at the release, and what waits 30 s times out. */
function play(backends: readonly BackendDescriptor[], coordinator: string, estimate: number): Story {
  const bench = new Bench(membership(backends), { hostId: coordinator });
  const kind = shape({ perHostMemEstimate: mib(estimate) });
  const over = { pool: "root.dashboards", coordinator, shape: kind };
  const queries = Array.from({ length: 60 }, () => bench.submit(POOL, over));
  const states = count(queries.map((q) => q.path ?? q.state));
  const waves: [number, number][] = [[0, states.immediately ?? 0]];
  for (let time = DURATION; queries.some((q) => q.state === "running" || q.state === "queued"); time += DURATION) {
    bench.now = at(time);
    for (const q of queries) if (q.state === "queued" && q.deadline <= time) bench.controller.timeOut(q, q.deadline);
    for (const q of queries) if (q.state === "running") bench.release(q);
    bench.tick();
    const started = bench.pass().lines.filter((line) => line.startsWith("admitted")).length;
    if (started > 0) waves.push([time, started]);
  }
  return { waves, states: count(queries.map((q) => (q.state === "released" ? q.path! : q.state))), queries };
}

function count(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}

describe("the worked example", () => {
  test("coordinator on one of the ten: 13 at once, 47 from the queue, the last after 16 s", () => {
    const { waves, states, queries } = play(hosts(10), "h0:1", 1536);
    expect(states).toEqual({ immediately: 13, fromQueue: 47 });
    expect(waves).toEqual([
      [0, 13],
      [4000, 13],
      [8000, 13],
      [12_000, 13],
      [16_000, 8],
    ]);
    expect(Math.max(...queries.map((q) => q.waited))).toBe(16_000);
  });

  test("T-18: with a dedicated coordinator its own share makes it 12", () => {
    const backends = [...hosts(10).map((h) => ({ ...h, isCoordinator: false })), dedicatedCoordinator("c:1")];
    const { waves, states } = play(backends, "c:1", 1536);
    expect(states).toEqual({ immediately: 12, fromQueue: 48 });
    expect(waves.map(([, started]) => started)).toEqual([12, 12, 12, 12, 12]);
  });

  test("statistics dropped, the estimate clamped to 8 GB: 2 at once, 14 later, 36 time out, 8 find the queue full", () => {
    const { states, queries } = play(hosts(10), "h0:1", 64 * 1024);
    expect(states).toEqual({ immediately: 2, fromQueue: 14, timedOut: 36, rejected: 8 });
    const refused = queries.find((q) => q.state === "rejected")!;
    expect(rejectionError("root.dashboards", refused.rejectReason!)).toBe(
      "Rejected query from pool root.dashboards: queue full, limit=50, num_queued=50.",
    );
    const late = queries.find((q) => q.state === "timedOut")!;
    expect(timeoutError(late.timeout, "root.dashboards", late.attemptReason!, late.details)).toBe(
      "Admission for query exceeded timeout 30000ms in pool root.dashboards. Queued reason: Not enough aggregate memory available in pool root.dashboards with max mem resources 195.31 GB. Needed 80.00 GB but only 35.31 GB was available. Additional Details: ",
    );
  });

  test("T-58: a second identical request that finds no pool memory is queued, not rejected", () => {
    const bench = new Bench(membership(hosts(2)));
    const pool = poolConfig({ maxMemResources: gib(3) });
    expect([bench.submit(pool).state, bench.submit(pool).state]).toEqual(["running", "queued"]);
  });
});

test("a shape made for every query neither fills the memory nor loses a charge", () => {
  const bench = new Bench(membership(hosts(2)));
  const pool = poolConfig();
  const { controller } = bench;
  const kept = bench.submit(pool);
  for (let i = 0; i < 5000; i++) {
    const q = controller.submit({ ...kept.request, queryId: `made-${i}`, shape: shape() }, pool, bench.root, bench.now);
    controller.releaseQuery(q, -1);
  }
  bench.check();
  expect(bench.stats()).toMatchObject({ localRunning: 1, totalReleased: 5000 });
});
