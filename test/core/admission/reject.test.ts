import { describe, expect, test } from "vitest";
import { memoryToAdmit } from "../../../src/core/admission/memory-to-admit.ts";
import { rejectReasonText } from "../../../src/core/admission/reasons.ts";
import { isQueueFull, queueFull, rejectForPool, rejectForSchedule } from "../../../src/core/admission/reject.ts";
import type { AdmissionOptions, FragmentShape } from "../../../src/core/admission/request.ts";
import type { BackendDescriptor } from "../../../src/core/cluster/backend.ts";
import { scheduleFor } from "../../../src/core/cluster/schedule.ts";
import type { PoolConfig } from "../../../src/core/pool-config.ts";
import { type Bytes, bytes, MiB } from "../../../src/core/units.ts";
import { backend, fragment, gib, group, membership, mib, options, poolConfig, shape } from "../fixtures.ts";

describe("REJ-A1 to A4 what a pool rules out", () => {
  test.each<{ config: Partial<PoolConfig>; rule: string | null }>([
    { config: {}, rule: null },
    { config: { maxRequests: 0 }, rule: "REJ-A1" },
    { config: { maxRequests: 1 }, rule: null },
    { config: { maxRequests: 0, maxMemResources: bytes(0) }, rule: "REJ-A1" },
    { config: { maxMemResources: bytes(0) }, rule: "REJ-A2" },
    { config: { maxMemResources: bytes(99), minQueryMemLimit: 100 }, rule: "REJ-A3" },
    { config: { maxMemResources: bytes(100), minQueryMemLimit: 100 }, rule: null },
    { config: { maxQueryMemLimit: 99, minQueryMemLimit: 100 }, rule: "REJ-A4" },
    { config: { maxQueryMemLimit: 100, minQueryMemLimit: 100 }, rule: null },
    { config: { maxQueryMemLimit: 0, minQueryMemLimit: 100 }, rule: null },
    { config: { maxQueryMemLimit: -1, minQueryMemLimit: 100 }, rule: null },
  ])("$config: $rule", ({ config, rule }) => {
    expect(rejectForPool(poolConfig(config))?.rule ?? null).toBe(rule);
  });

  test("figures are printed as raw numbers", () => {
    const reason = rejectForPool(poolConfig({ maxMemResources: bytes(1048576), minQueryMemLimit: 2097152 }))!;
    expect(rejectReasonText(reason)).toBe(
      "Invalid pool config: the min_query_mem_limit 2097152 is greater than the max_mem_resources 1048576",
    );
  });
});

describe("REJ-A5 the queue is full", () => {
  test.each([
    { queued: 2, limit: 3, full: false },
    { queued: 3, limit: 3, full: true },
    { queued: 4, limit: 3, full: true },
    { queued: 0, limit: 0, full: true }, // T-1
    { queued: 0, limit: -1, full: true },
  ])("$queued queued of $limit: $full", ({ queued, limit, full }) => {
    expect(isQueueFull(poolConfig({ maxQueued: limit }), queued)).toBe(full);
  });

  test("text, fresh and stale", () => {
    const config = poolConfig({ maxQueued: 3 });
    expect(rejectReasonText(queueFull(config, 3, null))).toBe("queue full, limit=3, num_queued=3.");
    expect(rejectReasonText(queueFull(config, 3, 7250))).toBe(
      "queue full, limit=3, num_queued=3. Warning: admission control information from statestore is stale: 7s250ms since last update was received.",
    );
  });
});

interface Given {
  readonly hosts?: readonly BackendDescriptor[];
  readonly fragments?: readonly FragmentShape[];
  readonly opt?: Partial<AdmissionOptions>;
  readonly pool?: Partial<PoolConfig>;
  readonly clamp?: boolean;
  readonly estimate?: Bytes;
}

/** Group `g` of two executors, `h0` the coordinator among them; everything fits unless said. */
function judge(given: Given) {
  const hosts = given.hosts ?? ["h0:1", "h1:1"].map((a) => backend(a, { executorGroup: group("g") }));
  const m = membership(hosts);
  const plan = shape({
    fragments: given.fragments ?? [fragment()],
    options: options(given.opt),
    perHostMemEstimate: given.estimate ?? mib(100),
  });
  const schedule = scheduleFor({
    shape: plan,
    coordinator: m.backend("h0:1")!,
    group: m.groups[0]!,
    allCoordinators: m.allCoordinators,
    placementOffset: 0,
  });
  const config = poolConfig(given.pool);
  const memory = memoryToAdmit(
    plan,
    {
      largestMinReservation: schedule.largestMinReservation,
      coordMinReservation: schedule.coordMinReservation,
      numBackends: schedule.backends.length,
      dedicated: false,
      smallestExecutorLimit: m.groups[0]!.smallestMemLimit,
      coordinatorLimit: m.backend("h0:1")!.admitMemLimit,
    },
    config,
    given.clamp ?? true,
  );
  return rejectForSchedule({
    pool: "root.p",
    schedule,
    memory,
    config,
    options: plan.options,
    clampToHosts: given.clamp ?? true,
  });
}

describe("REJ-B1 slots", () => {
  const wide = [fragment({ instancesPerHost: 16 })];
  test.each([
    { slots: 15, name: "g", rule: "REJ-B1" },
    { slots: 16, name: "g", rule: null },
    { slots: 15, name: "default", rule: null }, // T-39
  ])("16 instances on $slots slots of group $name: $rule", ({ slots, name, rule }) => {
    const hosts = ["h0:1", "h1:1"].map((a) => backend(a, { admissionSlots: slots, executorGroup: group(name) }));
    expect(judge({ hosts, fragments: wide })?.rule ?? null).toBe(rule);
  });

  test("the first host in address order is named", () => {
    const hosts = [
      backend("h2:1", { admissionSlots: 1, executorGroup: group("g") }),
      backend("h1:1", { admissionSlots: 2, executorGroup: group("g") }),
      backend("h0:1", { executorGroup: group("g") }),
    ];
    expect(judge({ hosts, fragments: [fragment({ instancesPerHost: 3 })] })).toEqual({
      rule: "REJ-B1",
      host: "h1:1",
      needed: 3,
      slots: 2,
    });
  });
});

describe("REJ-B2 reservations against the limit", () => {
  const reserving = (n: number) => [fragment({ minReservationPerInstance: mib(n) })];

  test.each([
    { limit: 99, rule: "REJ-B2a" },
    { limit: 100, rule: null },
  ])("B2a: 100 MiB under BUFFER_POOL_LIMIT $limit MiB: $rule", ({ limit, rule }) => {
    expect(judge({ fragments: reserving(100), opt: { bufferPoolLimit: limit * MiB } })?.rule ?? null).toBe(rule);
  });

  test("B2a replaces B2b: with a buffer pool limit the memory limit isn't asked", () => {
    const opt = { bufferPoolLimit: mib(200), memLimit: mib(1) };
    expect(judge({ fragments: reserving(100), opt })).toBeNull();
  });

  test.each([
    { limit: 131, rule: "REJ-B2b" },
    { limit: 132, rule: null },
  ])("B2b: 100 MiB under MEM_LIMIT $limit MiB: $rule", ({ limit, rule }) => {
    expect(judge({ fragments: reserving(100), opt: { memLimit: limit * MiB } })?.rule ?? null).toBe(rule);
  });

  test("a query without a limit passes whatever it reserves", () => {
    expect(judge({ fragments: reserving(9000) })).toBeNull();
  });

  test("the coordinator's side is asked after the executors'", () => {
    const fragments = [fragment({ runsOn: "coordinator", minReservationPerInstance: mib(500) })];
    const reason = judge({ fragments, opt: { memLimit: mib(200) } });
    expect(reason).toMatchObject({ rule: "REJ-B2b", needed: mib(500), limitNeeded: mib(625) });
    expect(rejectReasonText(reason!)).toContain("Adjust the MEM_LIMIT option for the query");
  });

  test("the remedy names the pool's setting when that is what pushed the limit down", () => {
    const reason = judge({ fragments: reserving(100), pool: { maxQueryMemLimit: mib(120) } });
    expect(rejectReasonText(reason!)).toContain(
      "Adjust the impala.admission-control.max-query-mem-limit of request pool 'root.p' for the query to allow the query memory limit to be at least 132.00 MB.",
    );
  });
});

describe("REJ-B3 and B4 threads", () => {
  const threads = [fragment({ instancesPerHost: 2, threadReservationPerInstance: 5 })];
  test.each([
    { limit: 9, rule: "REJ-B3" },
    { limit: 10, rule: null },
    { limit: 0, rule: null },
  ])("B3: 10 threads a host, limit $limit: $rule", ({ limit, rule }) => {
    expect(judge({ fragments: threads, opt: { threadReservationLimit: limit } })?.rule ?? null).toBe(rule);
  });

  test.each([
    { limit: 19, rule: "REJ-B4" },
    { limit: 20, rule: null },
    { limit: 0, rule: null },
  ])("B4: 20 threads in all, limit $limit: $rule", ({ limit, rule }) => {
    expect(judge({ fragments: threads, opt: { threadReservationAggregateLimit: limit } })?.rule ?? null).toBe(rule);
  });
});

describe("REJ-B6 and B7 the pool's size", () => {
  test.each([
    { max: 199, rule: "REJ-B6" },
    { max: 200, rule: "REJ-B7" }, // the limit needed for the reservation no longer fits
  ])("B6: 2 x 100 MiB reserved in $max MiB: $rule", ({ max, rule }) => {
    const fragments = [fragment({ minReservationPerInstance: mib(100) })];
    expect(judge({ fragments, pool: { maxMemResources: mib(max) } })?.rule ?? null).toBe(rule);
  });

  test.each([
    { max: 199, rule: "REJ-B7" },
    { max: 200, rule: null },
    { max: -1, rule: null },
  ])("B7: 2 x 100 MiB in $max MiB: $rule", ({ max, rule }) => {
    const pool = { maxMemResources: max < 0 ? (-1 as const) : mib(max) };
    expect(judge({ pool })?.rule ?? null).toBe(rule);
  });
});

describe("REJ-B8 and B9 hosts too small, only without the clamp (T-16)", () => {
  const hosts = [
    backend("h0:1", { executorGroup: group("g"), admitMemLimit: gib(2) }),
    backend("h1:1", { executorGroup: group("g"), admitMemLimit: gib(1) }),
  ];
  const pool = { maxMemResources: gib(100) };
  test.each([
    { estimate: gib(1), rule: null },
    { estimate: bytes(gib(1) + 1), rule: "REJ-B8" },
  ])("B8: $estimate on a host of 1 GiB: $rule", ({ estimate, rule }) => {
    expect(judge({ hosts, pool, estimate, clamp: false })?.rule ?? null).toBe(rule);
  });

  test("B9: the coordinator's own host", () => {
    const opt = { memLimitCoordinators: bytes(gib(2) + 1) };
    expect(judge({ hosts, pool, opt, clamp: false })).toMatchObject({ rule: "REJ-B9", host: "h0:1" });
    expect(judge({ hosts, pool, opt: { memLimitCoordinators: gib(2) }, clamp: false })).toBeNull();
  });

  test("with the clamp nothing is refused for its hosts", () => {
    expect(judge({ hosts, pool, estimate: gib(50) })).toBeNull();
  });
});

test("3.2 the order: slots, reservation, threads, pool", () => {
  const fragments = [
    fragment({ instancesPerHost: 20, minReservationPerInstance: gib(1), threadReservationPerInstance: 200 }),
  ];
  const opt = { memLimit: mib(1) };
  const pool = { maxMemResources: mib(1) };
  expect(judge({ fragments, opt, pool })?.rule).toBe("REJ-B1");
  const slots = ["h0:1", "h1:1"].map((a) => backend(a, { executorGroup: group("g"), admissionSlots: 20 }));
  expect(judge({ hosts: slots, fragments, opt, pool })?.rule).toBe("REJ-B2b");
  expect(judge({ hosts: slots, fragments, opt: { bufferPoolLimit: gib(99) }, pool })?.rule).toBe("REJ-B3");
  expect(
    judge({ hosts: slots, fragments, opt: { bufferPoolLimit: gib(99), threadReservationLimit: 0 }, pool })?.rule,
  ).toBe("REJ-B6");
});
