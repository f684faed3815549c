import { describe, expect, test } from "vitest";
import { AdmissionController } from "../../../src/core/admission/controller.ts";
import { controllerOptions } from "../../../src/core/admission/controller-options.ts";
import { type BackendUsage, NO_USAGE } from "../../../src/core/admission/pool-stats.ts";
import type { AdmissionQuery } from "../../../src/core/admission/query.ts";
import { queueReasonText } from "../../../src/core/admission/reasons.ts";
import type { Membership } from "../../../src/core/cluster/membership.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../../src/core/pool-config.ts";
import { NOTHING_NEW } from "../../../src/core/statestore/topic.ts";
import { TopicStore } from "../../../src/core/statestore/topic-store.ts";
import { bytes } from "../../../src/core/units.ts";
import { at, Bench, gib, group, hosts, membership, poolConfig, request } from "../fixtures.ts";

const usage = (memReserved: number, over: Partial<BackendUsage> = {}): BackendUsage => ({
  ...NO_USAGE,
  memReserved: bytes(memReserved),
  ...over,
});

/** Several coordinators `h0`, `h1`, ... on one statestore; `exchange` runs one round of one of them. */
class Cluster {
  readonly store = new TopicStore();
  readonly controllers: AdmissionController[];
  now = at(0);

  constructor(m: Membership, count: number) {
    this.controllers = Array.from({ length: count }, (_, i) => {
      const c = new AdmissionController(controllerOptions({ hostId: `h${i}:1` }));
      c.setMembership(m);
      this.store.subscribe(c.options.hostId);
      return c;
    });
    this.rounds(1);
  }

  exchange(c: AdmissionController): void {
    const id = c.options.hostId;
    const update = this.store.updateFor(id);
    const outgoing = c.collectUpdate();
    c.applyUpdate(update, this.now);
    this.store.publish(id, outgoing);
  }

  rounds(n: number): void {
    for (let i = 0; i < n; i++) for (const c of this.controllers) this.exchange(c);
  }

  submit(i: number, config: PoolConfig): AdmissionQuery {
    const c = this.controllers[i]!;
    return c.submit(request({ coordinator: c.options.hostId }), config, DEFAULT_POOL_CONFIG, this.now);
  }

  stats(i: number) {
    return this.controllers[i]!.pool("root.p")!.stats;
  }
}

describe("7.3 what is published when", () => {
  test("nothing without a marked pool; marked pools and the whole host map with one", () => {
    const bench = new Bench(membership(hosts(2)));
    expect(bench.controller.collectUpdate()).toEqual([]);
    bench.submit(poolConfig());
    bench.submit(poolConfig({ maxRequests: 1 }), { pool: "root.q" });
    const entries = bench.controller.collectUpdate();
    expect(entries.map((e) => [e.kind, e.kind === "pool" ? e.pool : ""])).toEqual([
      ["pool", "root.p"],
      ["pool", "root.q"],
      ["hosts", ""],
    ]);
    expect(entries[2]!.stats).toMatchObject({ hosts: ["h0:1", "h1:1"], memAdmitted: [gib(2), gib(2)] });
    expect(bench.controller.collectUpdate()).toEqual([]);
  });

  test("each thing that marks, and what doesn't (T-35)", () => {
    const bench = new Bench(membership(hosts(2)));
    const one = poolConfig({ maxRequests: 1 });
    const { controller } = bench;
    const marks = (step: () => void): boolean => {
      controller.collectUpdate();
      step();
      return controller.collectUpdate().length > 0;
    };
    let q = bench.submit(one);
    expect(
      marks(() => bench.submit(one)),
      "enqueueing",
    ).toBe(false);
    expect(
      marks(() => bench.submit(poolConfig({ maxRequests: 0 }))),
      "rejecting",
    ).toBe(false);
    bench.submit(one);
    expect(
      marks(() => controller.releaseBackends(q, [1])),
      "release of backends",
    ).toBe(true);
    expect(
      marks(() => bench.release(q)),
      "release of the query",
    ).toBe(true);
    expect(
      marks(() => bench.pass()),
      "admission by a pass",
    ).toBe(true);
    q = controller.pool("root.p")!.queue.head!;
    expect(
      marks(() => controller.timeOut(q, at(99_999))),
      "the end of a wait",
    ).toBe(true);
    expect(
      marks(() => controller.setBackendUsage("root.p", usage(5))),
      "reserved memory",
    ).toBe(true);
    expect(
      marks(() => controller.setBackendUsage("root.p", usage(5))),
      "the same again",
    ).toBe(false);
  });

  test("a publisher's own figures, not the cluster's", () => {
    const cluster = new Cluster(membership(hosts(2)), 2);
    cluster.submit(0, poolConfig());
    cluster.rounds(2);
    cluster.submit(1, poolConfig());
    const [entry] = cluster.controllers[1]!.collectUpdate();
    expect(entry!.stats).toMatchObject({ numAdmittedRunning: 1, numQueued: 0 });
  });
});

describe("7.4 what is applied", () => {
  test("aggregates are others' plus own; reserved memory moves only with an update", () => {
    const cluster = new Cluster(membership(hosts(2)), 2);
    cluster.controllers[0]!.setBackendUsage("root.p", usage(gib(3)));
    cluster.submit(0, poolConfig());
    cluster.submit(1, poolConfig());
    expect(cluster.stats(1)).toMatchObject({ aggRunning: 1, aggMemReserved: 0 });
    cluster.rounds(1);
    expect(cluster.stats(1)).toMatchObject({ aggRunning: 2, aggMemReserved: gib(3) });
    cluster.submit(1, poolConfig());
    expect(cluster.stats(1).aggRunning).toBe(3);
    const book = cluster.controllers[1]!.hosts;
    expect(book.memReserved[book.host("h0:1")]).toBe(gib(3));
  });

  test("own entries that come back are ignored", () => {
    const cluster = new Cluster(membership(hosts(2)), 1);
    const q = cluster.submit(0, poolConfig());
    cluster.rounds(1);
    cluster.controllers[0]!.releaseQuery(q, -1);
    const { store, controllers } = cluster;
    controllers[0]!.applyUpdate(store.updateFor("h0:1"), at(1));
    expect(cluster.stats(0).aggRunning).toBe(0);
    expect(controllers[0]!.hosts.memReservedOn("h1:1")).toBe(0);
  });

  test("hosts that a new map leaves out keep their old figures (T-38)", () => {
    const bench = new Bench(membership(hosts(3)));
    const map = (...on: string[]) => ({
      kind: "hosts" as const,
      host: "x:1",
      stats: {
        hosts: on,
        memReserved: on.map(() => 0),
        memAdmitted: on.map(() => 7),
        numAdmitted: on.map(() => 0),
        slotsInUse: on.map(() => 2),
      },
    });
    const { controller } = bench;
    controller.applyUpdate({ isDelta: true, entries: [map("h1:1", "h2:1")] }, at(1));
    controller.applyUpdate({ isDelta: true, entries: [map("h2:1")] }, at(2));
    expect([controller.hosts.memReservedOn("h1:1"), controller.hosts.slotsInUseOn("h2:1")]).toEqual([7, 2]);
    controller.applyUpdate({ isDelta: false, entries: [] }, at(3));
    expect(controller.hosts.memReservedOn("h1:1"), "a full update doesn't clear it").toBe(7);
    controller.applyUpdate({ isDelta: true, entries: [{ kind: "hosts", host: "x:1", stats: null }] }, at(4));
    expect([controller.hosts.memReservedOn("h1:1"), controller.hosts.slotsInUseOn("h2:1")]).toEqual([0, 0]);
  });

  test("mem_reserved of a host: deleted entries set 0, entries that merely vanish keep the last value", () => {
    const cluster = new Cluster(membership(hosts(3)), 2);
    const [a, b] = cluster.controllers;
    a!.setBackendUsage("root.p", usage(gib(1)));
    cluster.rounds(2);
    expect(b!.hosts.memReservedOn("h0:1")).toBe(gib(1));
    b!.applyUpdate({ isDelta: false, entries: [] }, at(5));
    expect(b!.hosts.memReservedOn("h0:1"), "wiped by a full update").toBe(gib(1));
    b!.applyUpdate({ isDelta: true, entries: [{ kind: "pool", pool: "root.p", host: "h0:1", stats: null }] }, at(6));
    expect(b!.hosts.memReservedOn("h0:1")).toBe(0);
  });

  test("an entry of a pool that was never submitted to creates the pool, and no pass looks at it", () => {
    const cluster = new Cluster(membership(hosts(2)), 2);
    cluster.submit(0, poolConfig());
    cluster.rounds(1);
    expect(cluster.controllers[1]!.pool("root.p")).toMatchObject({ config: null });
    expect(cluster.stats(1)).toMatchObject({ aggRunning: 1, localRunning: 0 });
  });
});

describe("7.5 why more is admitted than the limits allow", () => {
  test("counts of others lag by the exchanges, so each controller fills the same places", () => {
    const cluster = new Cluster(membership(hosts(3)), 3);
    const one = poolConfig({ maxRequests: 1 });
    expect([0, 1, 2].map((i) => cluster.submit(i, one).state)).toEqual(["running", "running", "running"]);
    cluster.rounds(2);
    expect(cluster.submit(0, one).initialReason).toMatchObject({ rule: "ADM-2", running: 3, limit: 1 });
  });

  test("T-12: the floor of one lets every controller fill one free place", () => {
    const cluster = new Cluster(membership(hosts(2)), 2);
    const one = poolConfig({ maxRequests: 1 });
    const running = cluster.submit(0, one);
    cluster.rounds(2);
    const waiting = [cluster.submit(0, one), cluster.submit(1, one)];
    cluster.controllers[0]!.releaseQuery(running, -1);
    cluster.rounds(2);
    for (const c of cluster.controllers)
      c.dequeuePass(cluster.now, {
        admitted: () => undefined,
        rejected: () => undefined,
        cancelled: () => undefined,
        stillQueued: () => undefined,
      });
    expect(waiting.map((q) => q.state)).toEqual(["running", "running"]);
  });

  test("pool memory sees others' reservations only; host memory and slots see what they admitted", () => {
    const cluster = new Cluster(membership(hosts(2, { executorGroup: group("root.p-g"), admissionSlots: 1 })), 2);
    const config = poolConfig({ maxMemResources: gib(2) });
    cluster.submit(0, config);
    cluster.rounds(2);
    expect(cluster.submit(1, config).initialReason?.rule).toBe("ADM-3");
    const roomy = new Cluster(membership(hosts(2)), 2);
    roomy.submit(0, config);
    roomy.rounds(2);
    expect(roomy.submit(1, config).state).toBe("running");
  });
});

describe("7.6 staleness", () => {
  const waiting = (bench: Bench) => {
    bench.submit(poolConfig({ maxRequests: 1 }));
    return queueReasonText(bench.submit(poolConfig({ maxRequests: 1 })).initialReason!);
  };

  test.each([
    { age: 4999, text: "" },
    {
      age: 5000,
      text: " Warning: admission control information from statestore is stale: 5s000ms since last update was received.",
    },
    {
      age: 65_000,
      text: " Warning: admission control information from statestore is stale: 1m5s since last update was received.",
    },
  ])("an update $age ms ago", ({ age, text }) => {
    const bench = new Bench(membership(hosts(2)));
    bench.now = at(age);
    expect(waiting(bench)).toBe(`number of running queries 1 is at or over limit 1.${text}`);
  });

  test("T-36: no update ever, and decisions go on", () => {
    const controller = new AdmissionController(controllerOptions({ hostId: "h0:1" }));
    controller.setMembership(membership(hosts(2)));
    const q = controller.submit(request(), poolConfig(), DEFAULT_POOL_CONFIG, at(10));
    expect(q).toMatchObject({ state: "running", staleAge: -1 });
  });

  test("T-37: a statestore restart erases what was known of the others until they publish again", () => {
    const cluster = new Cluster(membership(hosts(2)), 2);
    const one = poolConfig({ maxRequests: 1 });
    cluster.submit(0, one);
    cluster.rounds(2);
    cluster.store.restart();
    for (const c of cluster.controllers) cluster.store.subscribe(c.options.hostId);
    cluster.rounds(2);
    expect(cluster.stats(1).aggRunning).toBe(0);
    expect(cluster.submit(1, one).state, "over the limit").toBe("running");
    expect(cluster.controllers[1]!.hosts.memReservedOn("h0:1"), "host figures stay").toBe(gib(2));
  });

  test("9.5: a failed coordinator's entries go, and the others' aggregates fall", () => {
    const cluster = new Cluster(membership(hosts(2)), 2);
    const one = poolConfig({ maxRequests: 1 });
    cluster.submit(0, one);
    cluster.rounds(2);
    const q = cluster.submit(1, one);
    cluster.store.fail("h0:1");
    cluster.exchange(cluster.controllers[1]!);
    expect(cluster.stats(1).aggRunning).toBe(0);
    cluster.controllers[1]!.dequeuePass(at(1), {
      admitted: () => undefined,
      rejected: () => undefined,
      cancelled: () => undefined,
      stillQueued: () => undefined,
    });
    expect(q.state).toBe("running");
  });
});

test("an update that brings nothing still refreshes the view and wakes the pass", () => {
  const bench = new Bench(membership(hosts(2)));
  bench.pass();
  bench.controller.applyUpdate(NOTHING_NEW, at(9000));
  expect([bench.controller.isPassDue, bench.controller.staleAge(at(9001))]).toEqual([true, null]);
});
