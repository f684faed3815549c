import { describe, expect, test } from "vitest";
import { NO_DETAILS } from "../../../src/core/admission/query.ts";
import { timeoutError } from "../../../src/core/admission/reasons.ts";
import { millis } from "../../../src/core/units.ts";
import {
  at,
  Bench,
  backend,
  dedicatedCoordinator,
  gib,
  group,
  hosts,
  membership,
  mib,
  poolConfig,
  request,
  shape,
  trivialShape,
} from "../fixtures.ts";

const oneAtATime = poolConfig({ maxRequests: 1 });

describe("5.1 enqueueing", () => {
  test("counts, keeps its initial reason, and neither wakes the pass nor marks the pool (T-35)", () => {
    const bench = new Bench(membership(hosts(2)));
    bench.submit(oneAtATime);
    bench.controller.collectUpdate();
    bench.pass();
    const q = bench.submit(oneAtATime);
    expect(q).toMatchObject({ state: "queued", initialReason: { rule: "ADM-2", running: 1, limit: 1 } });
    expect(bench.stats()).toMatchObject({ localQueued: 1, aggQueued: 1, totalQueued: 1 });
    expect(bench.controller.isPassDue).toBe(false);
    expect(bench.controller.collectUpdate()).toEqual([]);
  });

  test("REJ-A5 refuses before anything is tried (T-2)", () => {
    const bench = new Bench(membership(hosts(2)));
    const running = bench.submit(poolConfig({ maxRequests: 1, maxQueued: 1 }));
    bench.submit(poolConfig({ maxRequests: 1, maxQueued: 1 }));
    bench.release(running);
    const would = bench.submit(poolConfig({ maxRequests: 1, maxQueued: 1 }), { shape: trivialShape() });
    expect(would).toMatchObject({ state: "rejected", rejectReason: { rule: "REJ-A5", limit: 1, queued: 1 } });
    expect(bench.stats().totalRejected).toBe(1);
  });

  test("the same id twice is an error, not a rejection", () => {
    const bench = new Bench(membership(hosts(2)));
    const q = bench.submit(poolConfig());
    expect(() => bench.submit(poolConfig(), { queryId: q.id })).toThrow(
      "Cannot submit the same query for admission multiple times.",
    );
    expect(bench.stats().totalRejected).toBe(0);
    bench.release(q);
    expect(bench.submit(poolConfig(), { queryId: q.id }).state).toBe("running");
  });
});

describe("5.3 trivial queries", () => {
  const busy = poolConfig({ maxRequests: 1, maxMemResources: gib(3) });

  test("three a pool skip every check but the pool's own (T-3), and count like others (T-4)", () => {
    const bench = new Bench(membership(hosts(2)));
    bench.submit(busy);
    bench.submit(busy);
    const trivial = [1, 2, 3, 4].map(() => bench.submit(busy, { shape: trivialShape() }));
    expect(trivial.map((q) => q.path ?? q.state)).toEqual(["trivially", "trivially", "trivially", "queued"]);
    expect(bench.stats()).toMatchObject({ localRunning: 4, localTrivialRunning: 3, localQueued: 2 });
    expect(bench.submit(poolConfig({ maxRequests: 0 }), { shape: trivialShape() }).rejectReason?.rule).toBe("REJ-A1");
  });

  test("a queued one uses the rule only at the head, within the pass's budget, and counts as from the queue", () => {
    const bench = new Bench(membership(hosts(2)));
    const config = poolConfig({ maxRequests: 4 });
    const first = [1, 2, 3].map(() => bench.submit(config, { shape: trivialShape() }));
    bench.submit(config);
    const waiting = bench.submit(config, { shape: trivialShape() });
    expect(waiting.initialReason?.rule).toBe("ADM-2");
    bench.release(first[0]!);
    expect(bench.pass().lines).toEqual([`admitted ${waiting.id}`]);
    expect(waiting).toMatchObject({ path: "fromQueue", isTrivial: true });
    expect(bench.stats().localTrivialRunning).toBe(3);
  });

  test("the option switches it off", () => {
    const bench = new Bench(membership(hosts(2)));
    bench.submit(busy);
    const off = trivialShape();
    const plain = { ...off, options: { ...off.options, enableTrivialQueryForAdmission: false } };
    expect(bench.submit(busy, { shape: plain }).state).toBe("queued");
  });
});

describe("5.6 time-outs", () => {
  test.each([
    { pool: 500, flag: 60_000, timeout: 500 },
    { pool: null, flag: 60_000, timeout: 60_000 }, // T-5
    { pool: null, flag: 0, timeout: 0 },
    { pool: null, flag: -5, timeout: 0 },
  ])("pool $pool, flag $flag: $timeout ms", ({ pool, flag, timeout }) => {
    const bench = new Bench(membership(hosts(2)));
    const flags = { ...bench.controller.options.flags, queueWaitTimeout: flag };
    const other = new Bench(bench.controller.membership, { flags });
    const config = poolConfig({ maxRequests: 1, queueTimeout: pool === null ? null : millis(pool) });
    other.submit(config);
    expect(other.submit(config)).toMatchObject({ timeout, deadline: timeout });
  });

  test("T-6: the timeout in force is the one at submission", () => {
    const bench = new Bench(membership(hosts(2)));
    const config = (ms: number) => poolConfig({ maxRequests: 1, queueTimeout: millis(ms) });
    bench.submit(config(1000));
    const q = bench.submit(config(1000));
    bench.submit(config(9000));
    expect(q.timeout).toBe(1000);
  });

  test("counts, marks the pool and says the last real reason", () => {
    const bench = new Bench(membership(hosts(2)));
    bench.submit(oneAtATime);
    const q = bench.submit(oneAtATime);
    bench.controller.collectUpdate();
    bench.now = at(60_000);
    bench.controller.timeOut(q, bench.now);
    bench.check();
    expect(q).toMatchObject({ state: "timedOut", waited: 60_000, details: NO_DETAILS });
    expect(bench.stats()).toMatchObject({ localQueued: 0, totalTimedOut: 1, totalDequeued: 0, timeInQueueMs: 60_000 });
    expect(bench.controller.collectUpdate()).toHaveLength(2);
    expect(timeoutError(q.timeout, q.request.pool, q.attemptReason!, q.details)).toBe(
      "Admission for query exceeded timeout 60000ms in pool root.p. Queued reason: number of running queries 1 is at or over limit 1. Additional Details: Not Applicable",
    );
  });

  test("T-7: the reason of a query that never reached the head is its first one, also when a full pool was logged", () => {
    const bench = new Bench(membership(hosts(2)));
    bench.submit(oneAtATime);
    bench.submit(oneAtATime);
    const follower = bench.submit(oneAtATime);
    bench.tick();
    bench.pass();
    expect(follower.attemptReason).toMatchObject({ rule: "ADM-1", queued: 1 });
    const head = bench.controller.pool("root.p")!.queue.head!;
    expect(head.latestReason).toMatchObject({ rule: "ADM-2" });
  });

  test("T-8: what the pass decided first stands, even after the deadline", () => {
    const bench = new Bench(membership(hosts(2)));
    const running = bench.submit(oneAtATime);
    const q = bench.submit(oneAtATime);
    bench.now = at(60_001);
    bench.release(running);
    bench.pass();
    bench.controller.timeOut(q, bench.now);
    expect(q).toMatchObject({ state: "running", path: "fromQueue", waited: 60_001 });
    expect(bench.stats()).toMatchObject({ totalTimedOut: 0, timeInQueueMs: 60_001 });
  });
});

describe("9.4 cancelling", () => {
  test("while queued: out of the queue, counted as dequeued, the pass isn't woken", () => {
    const bench = new Bench(membership(hosts(2)));
    bench.submit(oneAtATime);
    const q = bench.submit(oneAtATime);
    bench.pass();
    bench.now = at(700);
    bench.controller.cancel(q, bench.now);
    bench.check();
    expect(q).toMatchObject({ state: "cancelled", waited: 700 });
    expect(bench.stats()).toMatchObject({ localQueued: 0, totalDequeued: 1 });
    expect(bench.controller.isPassDue).toBe(false);
  });

  test("too late: a running query stays running", () => {
    const bench = new Bench(membership(hosts(2)));
    const q = bench.submit(poolConfig());
    bench.controller.cancel(q, bench.now);
    expect(q.state).toBe("running");
  });

  test.each([
    { name: "would be admitted", config: poolConfig() },
    { name: "would be rejected", config: poolConfig({ maxRequests: 0 }) },
    { name: "would be queued", config: poolConfig({ maxRequests: 1 }) },
  ])("before the decision is published, one that $name is charged nothing", ({ config }) => {
    const bench = new Bench(membership(hosts(2)));
    if (config.maxRequests === 1) bench.submit(config);
    const before = bench.controller.pool("root.p")?.stats.localRunning ?? 0;
    const q = bench.controller.submitCancelled(request(), config, bench.root, bench.now);
    bench.check();
    expect(q.state).toBe("cancelled");
    expect(bench.stats()).toMatchObject({ localRunning: before, localQueued: 0, totalRejected: 0 });
  });
});

describe("5.7 which configuration a waiting query sees", () => {
  test("limits of the latest submission to the pool, which may refuse it, one per pass", () => {
    const bench = new Bench(membership(hosts(2)));
    bench.submit(oneAtATime);
    const [a, b] = [bench.submit(oneAtATime), bench.submit(oneAtATime)];
    bench.submit(poolConfig({ maxRequests: 0 }));
    const log = [bench, bench].map(() => bench.pass().lines);
    expect(log).toEqual([[`rejected ${a!.id}`], [`rejected ${b!.id}`]]);
    expect(bench.stats()).toMatchObject({ totalRejected: 3, totalDequeued: 2, localQueued: 0 });
  });

  test("another pool's submissions change nothing", () => {
    const bench = new Bench(membership(hosts(2)));
    const running = bench.submit(oneAtATime);
    const q = bench.submit(oneAtATime);
    bench.submit(poolConfig({ maxRequests: 0 }), { pool: "root.other" });
    bench.release(running);
    expect(bench.pass().lines).toEqual([`admitted ${q.id}`]);
  });
});

describe("6.5 no usable group", () => {
  test("T-43: missing executors queue, and skip the quota (T-30)", () => {
    const bench = new Bench(membership([backend("h0:1", { isCoordinator: true, isExecutor: false })]));
    const barred = poolConfig({ userQueryLimits: new Map([["ana", 0]]) });
    expect(bench.submit(barred).initialReason).toEqual({ rule: "NO-EXECUTORS" });
    expect(bench.submit(barred, { coordinator: "nobody:1" }).initialReason).toEqual({ rule: "NO-COORDINATOR" });
  });

  test("T-10: without any executor group nothing is dequeued, though it would be admitted at once", () => {
    const alone = membership([backend("h0:1", { isCoordinator: true, isExecutor: false })]);
    const bench = new Bench(alone);
    const one = { shape: { ...shape(), coordinatorOnly: true } };
    const running = bench.submit(oneAtATime, one);
    const q = bench.submit(oneAtATime, one);
    bench.release(running);
    expect(bench.pass().lines).toEqual([]);
    expect([running.path, q.state]).toEqual(["immediately", "queued"]);
  });

  test("T-13: executors that join wake nobody; the next tick does", () => {
    const bench = new Bench(membership([backend("h0:1", { isCoordinator: true, isExecutor: false })]));
    const q = bench.submit(poolConfig());
    bench.pass();
    bench.controller.setMembership(membership([...hosts(2)]));
    expect(bench.controller.isPassDue).toBe(false);
    bench.tick();
    expect(bench.pass().lines).toEqual([`admitted ${q.id}`]);
  });
});

describe("T-42 several groups", () => {
  const two = membership([
    dedicatedCoordinator("h0:1"),
    backend("h1:1", { executorGroup: group("root.p-a"), admitMemLimit: mib(512) }),
    backend("h2:1", { executorGroup: group("root.p-b"), admitMemLimit: mib(900) }),
  ]);

  test("the first group that admits wins, by name", () => {
    const bench = new Bench(two);
    expect(bench.submit(poolConfig()).plan?.schedule.group).toBe("root.p-a");
  });

  test("a group without room passes the query on, and the last group's reason stays", () => {
    const bench = new Bench(two);
    const config = poolConfig({ maxMemResources: gib(100) });
    const need = (n: number) => shape({ perHostMemEstimate: mib(n) });
    const queries = [400, 400, 400, 400].map((n) => bench.submit(config, { shape: need(n) }));
    const groups = queries.map((q) => q.plan?.schedule.group ?? null);
    expect(groups).toEqual(["root.p-a", "root.p-b", "root.p-b", null]);
    expect(queries[3]!.initialReason).toMatchObject({ rule: "ADM-5", host: "h2:1" });
  });

  test("a rejection by one group ends the query although another would take it; an earlier fit hides it", () => {
    const config = poolConfig({ maxMemResources: gib(200) });
    const small = backend("h1:1", { executorGroup: group("root.p-a"), admissionSlots: 1 });
    const large = backend("h2:1", { executorGroup: group("root.p-b") });
    const coordinator = backend("h0:1", { isCoordinator: true, isExecutor: false });
    const wide = shape({ fragments: [{ ...shape().fragments[1]!, instancesPerHost: 2 }] });
    const refused = new Bench(membership([coordinator, small, large])).submit(config, { shape: wide });
    expect(refused.rejectReason?.rule).toBe("REJ-B1");
    const swapped = [
      { ...small, executorGroup: group("root.p-b") },
      { ...large, executorGroup: group("root.p-a") },
    ];
    expect(new Bench(membership([coordinator, ...swapped])).submit(config, { shape: wide }).state).toBe("running");
  });
});
