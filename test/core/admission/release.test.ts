import { describe, expect, test } from "vitest";
import type { AdmissionQuery } from "../../../src/core/admission/query.ts";
import { snapshotOf } from "../../../src/core/admission/snapshot.ts";
import {
  Bench,
  backend,
  dedicatedCoordinator,
  fragment,
  gib,
  group,
  hosts,
  membership,
  poolConfig,
  shape,
} from "../fixtures.ts";

/** Memory, count and slots of every host, as this controller booked them. */
const booked = (bench: Bench): Record<string, number[]> =>
  Object.fromEntries(
    [...snapshotOf(bench.controller, bench.now).hosts].map(([host, h]) => [
      host,
      [h.memAdmitted / gib(1), h.numAdmitted, h.slotsInUse],
    ]),
  );

const positions = (q: AdmissionQuery, ...addresses: string[]): number[] =>
  addresses.map((a) => q.plan!.schedule.hosts.indexOf(a));

describe("5.8 and 9.2: what is charged is released, backend by backend", () => {
  test("a released backend is free for others while the query still counts as running", () => {
    const bench = new Bench(membership(hosts(3)));
    const q = bench.submit(poolConfig({ maxRequests: 1 }));
    expect(bench.controller.releaseBackends(q, positions(q, "h1:1", "h2:1"))).toBe(gib(2));
    bench.check();
    expect(booked(bench)).toEqual({ "h0:1": [1, 1, 1], "h1:1": [0, 0, 0], "h2:1": [0, 0, 0] });
    expect(bench.stats()).toMatchObject({ localMemAdmitted: gib(1), localRunning: 1 });
    expect(bench.submit(poolConfig({ maxRequests: 1 })).initialReason?.rule).toBe("ADM-2");
  });

  test("a backend released twice, or after the query, is skipped", () => {
    const bench = new Bench(membership(hosts(3)));
    const q = bench.submit(poolConfig());
    bench.controller.releaseBackends(q, [1]);
    expect(bench.controller.releaseBackends(q, [1])).toBe(0);
    bench.release(q);
    expect(bench.controller.releaseBackends(q, [0])).toBe(0);
    expect(bench.controller.releaseQuery(q, -1)).toBe(false);
    bench.check();
    expect(bench.stats()).toMatchObject({ totalReleased: 1, localMemAdmitted: 0, localRunning: 0 });
  });

  test.each([
    { name: "coordinator first", order: ["h0:1", "h1:1", "h2:1"] },
    { name: "coordinator last", order: ["h2:1", "h1:1", "h0:1"] },
    { name: "coordinator in the middle", order: ["h1:1", "h0:1", "h2:1"] },
  ])("one by one, $name, ends at nothing, with a coordinator that holds more than the others", ({ order }) => {
    const bench = new Bench(membership(hosts(3)));
    const fragments = [fragment({ runsOn: "coordinator", instancesPerHost: 3 }), fragment()];
    const q = bench.submit(poolConfig(), { shape: shape({ fragments }) });
    const other = bench.submit(poolConfig());
    for (const host of order) {
      bench.controller.releaseBackends(q, positions(q, host));
      bench.check();
    }
    bench.release(q);
    expect(booked(bench)["h0:1"]).toEqual([1, 1, 1]);
    bench.release(other);
    expect(
      Object.values(booked(bench))
        .flat()
        .every((n) => n === 0),
    ).toBe(true);
  });

  test("a dedicated coordinator beside the group", () => {
    const bench = new Bench(membership([dedicatedCoordinator("c:1"), backend("h1:1"), backend("h2:1")]));
    const q = bench.submit(poolConfig(), { coordinator: "c:1" });
    bench.controller.releaseBackends(q, positions(q, "c:1"));
    bench.check();
    bench.controller.releaseBackends(q, positions(q, "h2:1"));
    bench.check();
    bench.release(q);
    expect(
      Object.values(booked(bench))
        .flat()
        .every((n) => n === 0),
    ).toBe(true);
  });

  test("a query on some of the hosts charges only those", () => {
    const bench = new Bench(membership(hosts(4)));
    const q = bench.submit(poolConfig(), { shape: shape({ executors: 2 }), placementOffset: 3 });
    expect(q.plan!.schedule.hosts).toEqual(["h0:1", "h3:1"]);
    expect(booked(bench)).toMatchObject({ "h0:1": [1, 1, 1], "h3:1": [1, 1, 1] });
    bench.release(q);
    expect(
      Object.values(booked(bench))
        .flat()
        .every((n) => n === 0),
    ).toBe(true);
  });
});

describe("membership changes while queries run", () => {
  test("a host leaves: the charges of the others stay, and everything is released in the end", () => {
    const bench = new Bench(membership(hosts(3)));
    const q = bench.submit(poolConfig());
    bench.controller.releaseBackends(q, [1]);
    bench.controller.setMembership(membership(hosts(2)));
    bench.check();
    const later = bench.submit(poolConfig());
    expect(booked(bench)).toEqual({ "h0:1": [2, 2, 2], "h1:1": [1, 1, 1], "h2:1": [1, 1, 1] });
    bench.release(q);
    expect(booked(bench)).toEqual({ "h0:1": [1, 1, 1], "h1:1": [1, 1, 1], "h2:1": [0, 0, 0] });
    bench.controller.setMembership(membership(hosts(3)));
    bench.check();
    bench.release(later);
    expect(
      Object.values(booked(bench))
        .flat()
        .every((n) => n === 0),
    ).toBe(true);
  });

  test("a new version with the same groups keeps deciding on the same figures", () => {
    const bench = new Bench(membership(hosts(2, { admitMemLimit: gib(2) })));
    const config = poolConfig({ maxMemResources: gib(100) });
    bench.submit(config);
    bench.controller.setMembership(membership(hosts(2, { admitMemLimit: gib(2) })));
    bench.submit(config);
    expect(bench.submit(config).initialReason?.rule).toBe("ADM-5");
  });

  test("a head is scheduled anew once the membership has changed", () => {
    const bench = new Bench(membership(hosts(2)));
    const one = poolConfig({ maxRequests: 1 });
    const running = bench.submit(one);
    const q = bench.submit(one);
    bench.controller.setMembership(membership(hosts(3)));
    bench.release(running);
    bench.pass();
    expect(q.plan!.schedule.hosts).toHaveLength(3);
  });
});

describe("9.3 ReleaseQuery", () => {
  test.each([
    { peak: -1, bin: null },
    { peak: 0, bin: 0 },
    { peak: gib(1), bin: 0 },
    { peak: gib(1) + 1, bin: 1 },
    { peak: gib(128), bin: 127 },
    { peak: gib(500), bin: 127 },
  ])("a peak of $peak falls into bin $bin", ({ peak, bin }) => {
    const bench = new Bench(membership(hosts(1)));
    bench.release(bench.submit(poolConfig()), peak);
    const found = bench.stats().peakMemHistogram.indexOf(1);
    expect(found < 0 ? null : found).toBe(bin);
  });

  test("the group's gauge, and what the profile says of it", () => {
    const bench = new Bench(membership(hosts(2, { executorGroup: group("root.p-g") })));
    const gauge = () => bench.controller.groupLoads.get("root.p-g")?.value;
    const [a, b] = [bench.submit(poolConfig()), bench.submit(poolConfig())];
    expect([a!.groupLoad, b!.groupLoad, gauge()]).toEqual([1, 2, 2]);
    bench.release(a!);
    expect(gauge()).toBe(1);
  });

  test("a group that comes back starts its gauge at its busiest host, and lingering queries lower it", () => {
    const grouped = hosts(2, { executorGroup: group("root.p-g") });
    const bench = new Bench(membership(grouped));
    const [a, b] = [bench.submit(poolConfig()), bench.submit(poolConfig())];
    bench.controller.setMembership(membership(hosts(2)));
    expect(bench.controller.groupLoads.has("root.p-g")).toBe(false);
    bench.release(a!);
    bench.controller.setMembership(membership(grouped));
    expect(bench.controller.groupLoads.get("root.p-g")?.value).toBe(1);
    bench.release(b!);
    expect(bench.controller.groupLoads.get("root.p-g")?.value).toBe(0);
  });

  test("the empty group has no gauge: a trivial query records 0", () => {
    const bench = new Bench(membership(hosts(2)));
    expect(bench.submit(poolConfig(), { shape: shape({ coordinatorOnly: true }) }).groupLoad).toBe(0);
  });
});

describe("8.3 user loads", () => {
  const quota = poolConfig({ maxRequests: 1, userQueryLimits: new Map([["*", 9]]) });
  const load = (bench: Bench) => bench.stats().aggLoads.get("ana");

  test("counted once from queueing to release, and only where a quota exists", () => {
    const bench = new Bench(membership(hosts(2)));
    const running = bench.submit(quota);
    const q = bench.submit(quota);
    expect(load(bench)).toBe(2);
    bench.release(running);
    bench.pass();
    expect(load(bench)).toBe(1);
    bench.release(q);
    expect(load(bench)).toBe(0);
    const plain = new Bench(membership(hosts(2)));
    plain.submit(poolConfig());
    expect(load(plain)).toBe(0);
  });

  test("a trivially admitted query is counted but not checked (T-30)", () => {
    const bench = new Bench(membership(hosts(2)));
    const none = poolConfig({ userQueryLimits: new Map([["ana", 0]]) });
    const trivial = shape({ coordinatorOnly: true, isTrivial: true });
    expect(bench.submit(none, { shape: trivial }).path).toBe("trivially");
    expect(load(bench)).toBe(1);
    expect(bench.submit(none).rejectReason?.rule).toBe("REJ-C3");
  });

  test("T-31: a quota lowered later doesn't reach the queue", () => {
    const bench = new Bench(membership(hosts(2)));
    const running = bench.submit(quota);
    const q = bench.submit(quota);
    bench.submit(poolConfig({ maxRequests: 1, userQueryLimits: new Map([["ana", 0]]) }));
    bench.release(running);
    expect(bench.pass().lines).toEqual([`admitted ${q.id}`]);
  });

  test.each([
    { repaired: false, left: 3 },
    { repaired: true, left: 0 },
  ])("T-28: waiting in vain gives the load back only when repaired ($repaired)", ({ repaired, left }) => {
    const bench = new Bench(membership(hosts(2)), { repaired });
    const running = bench.submit(quota);
    const [a, b, c] = [bench.submit(quota), bench.submit(quota), bench.submit(quota)];
    bench.controller.timeOut(a!, bench.now);
    bench.controller.cancel(b!, bench.now);
    bench.submit(poolConfig({ maxRequests: 0, userQueryLimits: new Map([["*", 9]]) }));
    bench.release(running);
    bench.pass();
    expect([a!.state, b!.state, c!.state]).toEqual(["timedOut", "cancelled", "rejected"]);
    expect(load(bench)).toBe(left);
  });

  test("T-29: a burst passes a root limit until the next update", () => {
    const bench = new Bench(membership(hosts(2)));
    bench.root = poolConfig({ userQueryLimits: new Map([["ana", 1]]) });
    const states = [1, 2, 3].map(() => bench.submit(poolConfig()).state);
    bench.tick();
    expect([...states, bench.submit(poolConfig()).rejectReason]).toMatchObject([
      "running",
      "running",
      "running",
      { rule: "REJ-C3", pool: "root", load: 3 },
    ]);
  });
});

describe("10.4 wait time", () => {
  test("T-56: immediate admissions feed zeros, a stored zero is replaced, later ones weigh a fifth", () => {
    const bench = new Bench(membership(hosts(1)));
    bench.submit(poolConfig());
    const { stats } = bench.controller.pool("root.p")!;
    expect(stats.waitTimeMsEma).toBe(0);
    stats.countWait(100);
    expect(stats.waitTimeMsEma).toBe(100);
    bench.submit(poolConfig());
    expect(stats.waitTimeMsEma).toBe(80);
  });
});
