import { describe, expect, test } from "vitest";
import { maxToDequeue } from "../../../src/core/admission/dequeue-pass.ts";
import { at, Bench, backend, gib, hosts, membership, poolConfig, shape } from "../fixtures.ts";

describe("5.5 maxToDequeue", () => {
  test.each([
    { limit: 10, running: 4, local: 3, all: 9, k: 2 },
    { limit: 10, running: 5, local: 1, all: 30, k: 1 },
    { limit: 6, running: 0, local: 4, all: 4, k: 4 },
    { limit: 20, running: 13, local: 7, all: 10, k: 4 },
    { limit: 10, running: 4, local: 9, all: 9, k: 6 },
    { limit: 10, running: 10, local: 3, all: 3, k: 0 },
    { limit: 10, running: 11, local: 3, all: 3, k: 0 },
    { limit: -1, running: 99, local: 5, all: 9, k: 5 },
    { limit: 0, running: 0, local: 3, all: 3, k: 3 },
  ])("limit $limit, $running running, $local of $all queued: $k", ({ limit, running, local, all, k }) => {
    expect(maxToDequeue(limit, running, local, all)).toBe(k);
  });
});

describe("5.5 one pass", () => {
  const config = poolConfig({ maxRequests: 2 });

  test("first come first served, up to the free places", () => {
    const bench = new Bench(membership(hosts(2)));
    const running = [bench.submit(config), bench.submit(config)];
    const waiting = [1, 2, 3].map(() => bench.submit(config));
    running.forEach((q) => {
      bench.release(q);
    });
    expect(bench.pass().lines).toEqual([`admitted ${waiting[0]!.id}`, `admitted ${waiting[1]!.id}`]);
    expect(bench.stats()).toMatchObject({ totalDequeued: 2, localQueued: 1, localRunning: 2 });
  });

  test("T-14: a head that doesn't fit blocks smaller ones, whatever they are; other pools go on", () => {
    const bench = new Bench(membership(hosts(2)));
    const memory = poolConfig({ maxMemResources: gib(4) });
    bench.submit(memory);
    const big = bench.submit(memory, { shape: shape({ perHostMemEstimate: gib(2) }) });
    bench.submit(memory, { shape: shape({ coordinatorOnly: true }) });
    const running = bench.submit(config, { pool: "root.z" });
    bench.submit(config, { pool: "root.z" });
    const other = bench.submit(config, { pool: "root.z" });
    bench.release(running);
    expect(bench.pass().lines).toEqual([`admitted ${other.id}`]);
    expect(big.state).toBe("queued");
  });

  test("T-9: a rejection ends the pass for every pool", () => {
    const bench = new Bench(membership(hosts(2)));
    const one = poolConfig({ maxRequests: 1 });
    for (const pool of ["root.a", "root.b"]) bench.submit(one, { pool });
    const a = bench.submit(one, { pool: "root.a" });
    const b = bench.submit(one, { pool: "root.b" });
    bench.submit(poolConfig({ maxRequests: 0 }), { pool: "root.a" });
    for (const q of bench.controller.runningAt("h0:1")) bench.release(q);
    expect(bench.pass().lines).toEqual([`rejected ${a.id}`]);
    expect(bench.pass().lines).toEqual([`admitted ${b.id}`]);
  });

  test("T-9: so does a cancelled head that the pass meets before its waiter", () => {
    const bench = new Bench(membership(hosts(2)));
    const one = poolConfig({ maxRequests: 1 });
    const running = bench.submit(one);
    const [gone, next] = [bench.submit(one), bench.submit(one)];
    bench.controller.markCancelled(gone!);
    bench.release(running);
    expect(bench.pass().lines).toEqual([`cancelled ${gone!.id}`]);
    expect(bench.pass().lines).toEqual([`admitted ${next!.id}`]);
    expect(bench.stats().totalDequeued).toBe(2);
  });

  test("a pool at its running limit is skipped; its head's profile says so", () => {
    const bench = new Bench(membership(hosts(2)));
    const memory = poolConfig({ maxRequests: 2, maxMemResources: gib(3) });
    bench.submit(memory);
    const head = bench.submit(memory);
    bench.submit(poolConfig({ maxRequests: 1, maxMemResources: gib(3) }));
    bench.controller.collectUpdate();
    expect(bench.pass().reasons).toMatchObject([{ rule: "ADM-2", running: 1, limit: 1 }]);
    expect(head.attemptReason?.rule).toBe("ADM-4");
    expect(bench.controller.collectUpdate(), "not marked for publishing").toEqual([]);
  });

  test("a pool that was looked into is marked for publishing", () => {
    const bench = new Bench(membership(hosts(2)));
    const memory = poolConfig({ maxMemResources: gib(3) });
    bench.submit(memory);
    bench.submit(memory);
    bench.controller.collectUpdate();
    bench.pass();
    expect(bench.controller.collectUpdate()).toHaveLength(2);
  });

  test("pools go by name, not by when they were first seen (T-11)", () => {
    const bench = new Bench(membership(hosts(2)));
    const one = poolConfig({ maxRequests: 1 });
    const running = ["root.b", "root.a"].map((pool) => bench.submit(one, { pool }));
    const waiting = ["root.b", "root.a"].map((pool) => bench.submit(one, { pool }));
    running.forEach((q) => {
      bench.release(q);
    });
    expect(bench.pass().lines).toEqual([`admitted ${waiting[1]!.id}`, `admitted ${waiting[0]!.id}`]);
  });
});

describe("5.4 when a pass is due", () => {
  test("at the start, after an update, after releases; not after submissions, cancellations, time-outs", () => {
    const bench = new Bench(membership(hosts(2)));
    const { controller } = bench;
    const one = poolConfig({ maxRequests: 1 });
    const due = (step: () => void): boolean => {
      bench.pass();
      step();
      return controller.isPassDue;
    };
    expect(new Bench(membership(hosts(1))).controller.isPassDue).toBe(true);
    const q = bench.submit(one);
    expect(due(() => bench.submit(one))).toBe(false);
    expect(due(() => controller.cancel(bench.submit(one), at(1)))).toBe(false);
    expect(due(() => controller.timeOut(bench.submit(one), at(99_999)))).toBe(false);
    expect(due(() => controller.setMembership(membership(hosts(3))))).toBe(false);
    expect(due(() => bench.tick())).toBe(true);
    expect(due(() => controller.releaseBackends(q, [1]))).toBe(true);
    expect(due(() => bench.release(q))).toBe(true);
  });
});

describe("what is told of a head that can't go", () => {
  test("equal failures are counted and told with the next that differs", () => {
    const bench = new Bench(membership(hosts(2)));
    const memory = poolConfig({ maxMemResources: gib(5) });
    const [a, b] = [bench.submit(memory), bench.submit(memory)];
    const q = bench.submit(memory, { shape: shape({ perHostMemEstimate: gib(2) }) });
    const told: number[] = [];
    const pass = () =>
      bench.controller.dequeuePass(bench.now, {
        admitted: () => undefined,
        rejected: () => undefined,
        cancelled: () => undefined,
        stillQueued: (head) => told.push(head.failures),
      });
    for (let i = 0; i < 3; i++) {
      bench.tick();
      pass();
    }
    expect(told, "the reason is still the initial one").toEqual([]);
    bench.release(a!);
    pass();
    expect(told).toEqual([4]);
    expect(q.latestReason).toMatchObject({ rule: "ADM-4", available: gib(3) });
    bench.release(b!);
    pass();
    expect(q.state).toBe("running");
  });

  test("T-55: a shortage on any host that coordinates is counted, at every attempt", () => {
    const bench = new Bench(membership([backend("h0:1", { isCoordinator: true, admitMemLimit: gib(1) })]));
    const memory = poolConfig({ maxMemResources: gib(100) });
    bench.submit(memory);
    bench.submit(memory);
    bench.pass();
    bench.pass();
    expect(bench.controller.totalDequeueFailedCoordinatorLimited).toBe(2);
  });

  test("T-53: dequeued counts those that were then rejected or cancelled", () => {
    const bench = new Bench(membership(hosts(2)));
    const one = poolConfig({ maxRequests: 1 });
    const running = bench.submit(one);
    const [a, b, c] = [bench.submit(one), bench.submit(one), bench.submit(one)];
    bench.controller.cancel(a!, at(1));
    bench.release(running);
    bench.pass();
    bench.controller.timeOut(c!, at(99_999));
    expect(b!.state).toBe("running");
    expect(bench.stats()).toMatchObject({ totalAdmitted: 2, totalQueued: 3, totalDequeued: 2, totalTimedOut: 1 });
  });
});
