/**
 * Traps of admission section 12 that no other test of the core has as its subject: where the product does something
 * else than its documentation, its comments or common sense say. test/traps.test.ts holds the whole list together.
 */
import { describe, expect, test } from "vitest";
import { admissionResult } from "../../../src/core/admission/profile-figures.ts";
import { queueReasonText } from "../../../src/core/admission/reasons.ts";
import { EMPTY_GROUP } from "../../../src/core/cluster/backend.ts";
import { DEFAULT_POOL_CONFIG } from "../../../src/core/pool-config.ts";
import {
  at,
  Bench,
  backend,
  coordinatorOnlyShape,
  dedicatedCoordinator,
  gib,
  hosts,
  membership,
  mib,
  options,
  poolConfig,
  shape,
  trivialShape,
} from "../fixtures.ts";

describe("T-1 a queue length of 0 or less rejects every query, on an idle cluster too", () => {
  test.each([
    [1, "running"],
    [0, "rejected"],
    [-1, "rejected"],
  ])("max queued %i", (maxQueued, state) => {
    expect(new Bench(membership(hosts(2))).submit(poolConfig({ maxQueued })).state).toBe(state);
  });
});

describe("T-17 the host clamp looks at the smallest executor of the group", () => {
  const cluster = membership([
    dedicatedCoordinator("h0:1"),
    backend("h1:1", { admitMemLimit: gib(40) }),
    backend("h2:1", { admitMemLimit: gib(10) }),
  ]);
  const wide = shape({ perHostMemEstimate: gib(30) });

  test("not of the schedule", () => {
    const q = new Bench(cluster).submit(poolConfig(), { shape: { ...wide, executors: 1 }, placementOffset: 0 });
    expect(q.plan!.schedule.hosts).toEqual(["h0:1", "h1:1"]);
    expect(q.memory!.perHost).toBe(gib(10));
  });

  test("also when a retried query has to avoid that executor", () => {
    const q = new Bench(cluster).submit(poolConfig(), { shape: wide, blacklistedExecutors: ["h2:1"] });
    expect(q.plan!.schedule.hosts).toEqual(["h0:1", "h1:1"]);
    expect(q.memory!.perHost).toBe(gib(10));
  });
});

describe("T-22 a pool without max memory, minimum and maximum books estimates and enforces nothing", () => {
  const over = shape({ perHostMemEstimate: gib(90) });

  test("no memory check, no limit, but the estimate is in the statistics", () => {
    const bench = new Bench(membership(hosts(1)));
    for (let i = 0; i < 3; i++) expect(bench.submit(poolConfig(), { shape: over }).memory!.memLimit).toBe(-1);
    expect(bench.stats().localMemAdmitted).toBe(3 * gib(90));
  });

  test("max memory alone makes the estimate a hard limit", () => {
    const q = new Bench(membership(hosts(2))).submit(poolConfig({ maxMemResources: gib(500) }), { shape: over });
    expect(q.memory).toMatchObject({ memLimit: gib(90), coordinatorMemLimit: gib(90) });
  });
});

describe("T-24 the limit in messages is what the host gives to queries, not the process limit", () => {
  test("out of admit_mem_limit as the host published it", () => {
    const bench = new Bench(membership([backend("h0:1", { isCoordinator: true, admitMemLimit: mib(9216) })]));
    const config = poolConfig({ maxMemResources: gib(100) });
    bench.submit(config, { shape: shape({ options: options({ memLimit: gib(5) }) }) });
    const waits = bench.submit(config, { shape: shape({ options: options({ memLimit: gib(5) }) }) });
    expect(queueReasonText(waits.initialReason!)).toBe(
      "Not enough memory available on host h0:1. Needed 5.00 GB but only 4.00 GB out of 9.00 GB was available.",
    );
  });
});

describe("T-34 views are as old as the last exchange, and nothing else brings them", () => {
  test("what another coordinator runs is known with one exchange, without any heartbeat", () => {
    const other = new Bench(membership(hosts(2)), { hostId: "h1:1" });
    const bench = new Bench(membership(hosts(2)));
    const config = poolConfig({ maxRequests: 1 });
    expect(other.submit(config).state).toBe("running");
    const update = { isDelta: true, entries: other.controller.collectUpdate() };
    bench.controller.applyUpdate(update, at(100));
    const waits = bench.submit(config);
    expect(waits.initialReason).toMatchObject({ rule: "ADM-2", running: 1, limit: 1 });
  });
});

describe("T-52 there are seven results, and only six of them are final", () => {
  const config = poolConfig({ maxRequests: 1, maxQueued: 3 });

  test("each comes out of a controller", () => {
    const bench = new Bench(membership(hosts(1)));
    const first = bench.submit(config);
    const trivial = bench.submit(config, { shape: trivialShape() });
    const [fromQueue, timedOut, cancelled] = [bench.submit(config), bench.submit(config), bench.submit(config)];
    const rejected = bench.submit(config);
    expect(admissionResult(fromQueue)).toBe("Queued");
    bench.controller.timeOut(timedOut, bench.now);
    bench.controller.cancel(cancelled, bench.now);
    bench.release(first);
    bench.release(trivial);
    bench.pass();
    const all = [first, trivial, fromQueue, timedOut, cancelled, rejected].map(admissionResult);
    expect(all).toEqual([
      "Admitted immediately",
      "Admitted as a trivial query",
      "Admitted (queued)",
      "Timed out (queued)",
      "Cancelled (queued)",
      "Rejected",
    ]);
  });
});

describe("T-58 a second query that finds no pool memory left is queued, not rejected", () => {
  test("the same request twice in a pool for one", () => {
    const bench = new Bench(membership(hosts(2)));
    const config = poolConfig({ maxMemResources: gib(3) });
    const states = [bench.submit(config).state, bench.submit(config).state];
    expect(states).toEqual(["running", "queued"]);
  });
});

describe("T-59 admissiond: queued queries of a dead coordinator stay until they reach the head", () => {
  test("they have no time-out any more, and are refused one a pass", () => {
    const cluster = [dedicatedCoordinator("c1:1"), dedicatedCoordinator("c2:1"), backend("h1:1")];
    const bench = new Bench(membership(cluster), { mode: "global", hostId: "admissiond:1" });
    const config = poolConfig({ maxMemResources: gib(2) });
    const holder = bench.submit(config, { coordinator: "c2:1" });
    const orphans = [bench.submit(config, { coordinator: "c1:1" }), bench.submit(config, { coordinator: "c1:1" })];
    bench.controller.setMembership(membership(cluster.slice(1), { removedCoordinators: new Set(["c1:1"]) }));
    bench.now = at(3_600_000);
    bench.tick();
    expect(orphans.map((q) => q.state)).toEqual(["queued", "queued"]);
    expect(bench.pass().lines).toEqual([`rejected ${orphans[0]!.id}`]);
    expect(orphans[0]!.rejectReason).toEqual({ rule: "REJ-C2", coordinator: "c1:1" });
    expect(bench.pass().lines).toEqual([`rejected ${orphans[1]!.id}`]);
    expect(holder.state).toBe("running");
  });
});

describe("T-60 the order of a queue is the order in which requests reach the controller", () => {
  test("a request that a slower worker brought later is behind, however early its client sent it", () => {
    const bench = new Bench(membership(hosts(1)), { mode: "global" });
    const config = poolConfig({ maxRequests: 1 });
    const running = bench.submit(config, { queryId: "running" });
    bench.submit(config, { queryId: "sent second, came first" });
    bench.submit(config, { queryId: "sent first, came second" });
    bench.release(running);
    expect(bench.pass().lines).toEqual(["admitted sent second, came first"]);
  });
});

describe("T-62 an unknown coordinator is like missing executors", () => {
  const config = poolConfig({ userQueryLimits: new Map([["ana", 0]]) });

  test("its query is queued, skips the quota check and blocks the head", () => {
    const bench = new Bench(membership(hosts(1)));
    const unknown = bench.submit(config, { coordinator: "stranger:1" });
    expect(unknown.initialReason).toEqual({ rule: "NO-COORDINATOR" });
    const behind = bench.submit(poolConfig(), { user: "ben" });
    expect(behind.initialReason).toMatchObject({ rule: "ADM-1", queued: 1 });
    bench.tick();
    expect(bench.pass().lines).toEqual([]);
    expect(behind.state).toBe("queued");
  });

  test("the same query of a known coordinator is refused by the quota", () => {
    expect(new Bench(membership(hosts(1))).submit(config).rejectReason).toMatchObject({ rule: "REJ-C3" });
  });
});

describe("T-63 admissiond knows no coordinator's own blacklist", () => {
  const cluster = [dedicatedCoordinator("h0:1"), backend("h1:1"), backend("h2:1")];

  test("a coordinator that decides for itself leaves the executor out", () => {
    const bench = new Bench(membership(cluster, { blacklisted: new Set(["h1:1"]) }));
    expect(bench.submit(poolConfig()).plan!.schedule.hosts).toEqual(["h0:1", "h2:1"]);
  });

  test("the service avoids only what a retried query names", () => {
    const bench = new Bench(membership(cluster), { mode: "global", hostId: "admissiond:1" });
    expect(bench.submit(poolConfig()).plan!.schedule.hosts).toEqual(["h0:1", "h1:1", "h2:1"]);
    const retried = bench.submit(poolConfig(), { blacklistedExecutors: ["h1:1"] });
    expect(retried.plan!.schedule.hosts).toEqual(["h0:1", "h2:1"]);
  });

  test("a coordinator-only query avoids nothing", () => {
    const bench = new Bench(membership(cluster));
    const q = bench.submit(DEFAULT_POOL_CONFIG, { shape: coordinatorOnlyShape(), blacklistedExecutors: ["h0:1"] });
    expect(q.plan!.schedule.group).toBe(EMPTY_GROUP);
    expect(q.plan!.schedule.hosts).toEqual(["h0:1"]);
  });
});
