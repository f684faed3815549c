import { describe, expect, test } from "vitest";
import { queueReasonText } from "../../../src/core/admission/reasons.ts";
import type { RequestShape } from "../../../src/core/admission/request.ts";
import type { PoolConfig } from "../../../src/core/pool-config.ts";
import { type Bytes, bytes } from "../../../src/core/units.ts";
import {
  Bench,
  backend,
  coordinatorOnlyShape,
  dedicatedCoordinator,
  fragment,
  gib,
  group,
  hosts,
  membership,
  mib,
  options,
  poolConfig,
  shape,
} from "../fixtures.ts";

const rich: Partial<PoolConfig> = { maxMemResources: gib(10_000) };

/** The rule for which a query of `next` waits once `before` others run; null: it runs. */
function rule(bench: Bench, config: PoolConfig, next: RequestShape = shape()): string | null {
  return bench.submit(config, { shape: next }).initialReason?.rule ?? null;
}

describe("ADM-1 the controller's own queue comes first", () => {
  test("one that would fit waits behind one that doesn't, and a pass ignores the rule", () => {
    const bench = new Bench(membership(hosts(2)));
    const config = poolConfig({ maxMemResources: gib(3) });
    const first = bench.submit(config);
    const head = bench.submit(config);
    const small = bench.submit(config, { shape: shape({ perHostMemEstimate: mib(100) }) });
    expect([first.state, head.initialReason?.rule, small.initialReason?.rule]).toEqual(["running", "ADM-4", "ADM-1"]);
    expect(queueReasonText(small.initialReason!)).toBe(
      "queue is not empty (size 1); queued queries are executed first.",
    );
    bench.release(first);
    expect(bench.pass().lines).toEqual([`admitted ${head.id}`, `admitted ${small.id}`]);
  });

  test("T-2: another controller's queue doesn't hold it back", () => {
    const bench = new Bench(membership(hosts(2)));
    bench.controller.applyUpdate({ isDelta: true, entries: [elsewhere({ numQueued: 5 })] }, bench.now);
    expect(bench.submit(poolConfig()).state).toBe("running");
  });
});

describe("ADM-2 running queries", () => {
  test.each([
    { running: 0, limit: 1, waits: false },
    { running: 1, limit: 1, waits: true },
    { running: 2, limit: 1, waits: true },
    { running: 1, limit: 2, waits: false },
    { running: 9, limit: -1, waits: false },
  ])("$running running of $limit: waits = $waits", ({ running, limit, waits }) => {
    const bench = new Bench(membership(hosts(2)));
    bench.controller.applyUpdate({ isDelta: true, entries: [elsewhere({ numAdmittedRunning: running })] }, bench.now);
    expect(rule(bench, poolConfig({ maxRequests: limit })) === "ADM-2").toBe(waits);
  });
});

describe("ADM-3 slots", () => {
  const cluster = (name: string, slots = 16) =>
    new Bench(membership(hosts(3, { executorGroup: group(name), admissionSlots: slots })));
  const wide = (n: number) => shape({ fragments: [fragment({ instancesPerHost: n })] });

  test.each([
    { first: 8, second: 8, waits: false },
    { first: 8, second: 9, waits: true },
  ])("$first then $second of 16: waits = $waits", ({ first, second, waits }) => {
    const bench = cluster("root.p-g");
    bench.submit(poolConfig(), { shape: wide(first) });
    expect(rule(bench, poolConfig(), wide(second)) === "ADM-3").toBe(waits);
  });

  test("T-39: not in the group default", () => {
    const bench = cluster("default");
    bench.submit(poolConfig(), { shape: wide(16) });
    expect(rule(bench, poolConfig(), wide(16))).toBeNull();
  });

  test.each([
    { pool: "root.p", waits: true },
    { pool: "default-pool", waits: false },
  ])("T-39: for coordinator-only queries in $pool: waits = $waits", ({ pool, waits }) => {
    const bench = new Bench(membership(hosts(1, { admissionSlots: 1 })));
    const one = { pool, shape: coordinatorOnlyShape() };
    bench.submit(poolConfig(), one);
    expect(bench.submit(poolConfig(), one).initialReason?.rule === "ADM-3").toBe(waits);
  });

  test("the text", () => {
    const bench = cluster("root.p-g");
    bench.submit(poolConfig(), { shape: wide(15) });
    expect(queueReasonText(bench.submit(poolConfig(), { shape: wide(4) }).initialReason!)).toBe(
      "Not enough admission control slots available on host h0:1. Needed 4 slots but 15/16 are already in use.",
    );
  });

  test("other controllers' slots count", () => {
    const bench = cluster("root.p-g");
    publishHosts(bench, "h1:1", 0, 15);
    expect(bench.submit(poolConfig(), { shape: wide(2) }).initialReason).toMatchObject({ rule: "ADM-3", host: "h1:1" });
    expect(rule(cluster("root.p-g"), poolConfig(), wide(2))).toBeNull();
  });
});

describe("ADM-4 the pool's memory", () => {
  test.each([
    { max: 3.999, waits: true },
    { max: 4, waits: false }, // equality admits
    { max: 4.001, waits: false },
  ])("2 GiB after 2 GiB in $max GiB: waits = $waits", ({ max, waits }) => {
    const bench = new Bench(membership(hosts(2)));
    const config = poolConfig({ maxMemResources: Math.trunc(max * gib(1)) as Bytes });
    bench.submit(config);
    expect(rule(bench, config) === "ADM-4").toBe(waits);
  });

  test("T-26: reserved and admitted are not added, the larger counts", () => {
    const bench = new Bench(membership(hosts(2)));
    const config = poolConfig({ maxMemResources: gib(4) });
    bench.submit(config);
    bench.controller.applyUpdate({ isDelta: true, entries: [elsewhere({ backendMemReserved: gib(2) })] }, bench.now);
    expect(rule(bench, config)).toBeNull();
  });

  test("an over-committed pool offers 0", () => {
    const bench = new Bench(membership(hosts(2)));
    bench.controller.applyUpdate({ isDelta: true, entries: [elsewhere({ backendMemReserved: gib(9) })] }, bench.now);
    expect(queueReasonText(bench.submit(poolConfig({ maxMemResources: gib(4) })).initialReason!)).toBe(
      "Not enough aggregate memory available in pool root.p with max mem resources 4.00 GB. Needed 2.00 GB but only 0 was available.",
    );
  });
});

describe("ADM-5 a host's memory", () => {
  const cluster = () => new Bench(membership(hosts(3, { admitMemLimit: gib(2) })));

  test.each([
    { used: bytes(gib(1) - 1), waits: false },
    { used: gib(1), waits: false },
    { used: bytes(gib(1) + 1), waits: true },
  ])("1 GiB beside $used of 2 GiB: waits = $waits", ({ used, waits }) => {
    const bench = cluster();
    publishHosts(bench, "h2:1", used, 0);
    expect(rule(bench, poolConfig(rich)) === "ADM-5").toBe(waits);
  });

  test("reserved memory counts like admitted memory, whichever is more", () => {
    const bench = cluster();
    const reserved = elsewhere({ backendMemReserved: bytes(gib(1) + 1) }, "h2:1");
    bench.controller.applyUpdate({ isDelta: true, entries: [reserved] }, bench.now);
    expect(queueReasonText(bench.submit(poolConfig(rich)).initialReason!)).toBe(
      "Not enough memory available on host h2:1. Needed 1.00 GB but only 1024.00 MB out of 2.00 GB was available.",
    );
  });

  test("T-15: skipped in a pool without max memory", () => {
    const bench = cluster();
    publishHosts(bench, "h2:1", gib(50), 0);
    expect(rule(bench, poolConfig())).toBeNull();
  });

  test("on the coordinator's host the coordinator's amount is asked", () => {
    const bench = new Bench(
      membership([
        ...hosts(2).map((h) => ({ ...h, isCoordinator: false })),
        dedicatedCoordinator("c:1", { admitMemLimit: mib(150) }),
      ]),
      { hostId: "c:1" },
    );
    expect(bench.submit(poolConfig(rich), { coordinator: "c:1" }).state).toBe("running");
    const reason = bench.submit(poolConfig(rich), { coordinator: "c:1" }).initialReason;
    expect(reason).toMatchObject({ rule: "ADM-5", host: "c:1", needed: mib(100), available: mib(50) });
  });

  test("a coordinator in the group that is shorter than the others but has enough for its own share", () => {
    const bench = new Bench(
      membership([backend("h0:1", { isCoordinator: true, admitMemLimit: gib(1) }), backend("h1:1")]),
    );
    const opt = options({ memLimitExecutors: gib(3), memLimitCoordinators: mib(512) });
    // The clamp would lower the executors' amount to the smaller host.
    const flags = { ...bench.controller.options.flags, clampQueryMemLimitBackendMemLimit: false };
    const free = new Bench(bench.controller.membership, { flags });
    const config = poolConfig({ maxMemResources: gib(100) });
    const twice = [1, 2].map(() => rule(free, config, shape({ options: opt })));
    expect(twice).toEqual([null, null]);
    expect(free.submit(config, { shape: shape({ options: opt }) }).initialReason).toMatchObject({
      rule: "ADM-5",
      host: "h0:1",
      needed: mib(512),
      available: 0,
    });
  });
});

function elsewhere(figures: Partial<Parameters<typeof poolEntry>[0]>, host = "elsewhere:1") {
  return poolEntry({ numAdmittedRunning: 0, numQueued: 0, backendMemReserved: bytes(0), ...figures }, host);
}

function poolEntry(
  figures: { numAdmittedRunning: number; numQueued: number; backendMemReserved: Bytes },
  host: string,
) {
  const none = bytes(0);
  return {
    kind: "pool",
    pool: "root.p",
    host,
    stats: {
      userLoads: new Map<string, number>(),
      heavyQueries: [],
      minMemConsumed: none,
      maxMemConsumed: none,
      totalMemConsumed: none,
      numRunning: 0,
      ...figures,
    },
  } as const;
}

/** Another controller says that it admitted so much on a host. */
function publishHosts(bench: Bench, host: string, mem: number, slots: number): void {
  const column = (n: number) => [n];
  const stats = {
    hosts: [host],
    memReserved: column(0),
    memAdmitted: column(mem),
    numAdmitted: column(1),
    slotsInUse: column(slots),
  };
  bench.controller.applyUpdate({ isDelta: true, entries: [{ kind: "hosts", host: "elsewhere:1", stats }] }, bench.now);
}
