import { describe, expect, test } from "vitest";
import {
  cappedEstimate,
  memoryToAdmit,
  type PlacementFacts,
  usesDedicatedEstimate,
} from "../../../src/core/admission/memory-to-admit.ts";
import type { AdmissionOptions, RequestShape } from "../../../src/core/admission/request.ts";
import type { PoolConfig } from "../../../src/core/pool-config.ts";
import { type Bytes, MiB } from "../../../src/core/units.ts";
import { gib, mib, options, poolConfig, shape } from "../fixtures.ts";

interface Case {
  readonly estimate?: number;
  readonly coordinatorEstimate?: number;
  readonly stmtType?: RequestShape["stmtType"];
  readonly opt?: Partial<AdmissionOptions>;
  readonly pool?: Partial<PoolConfig>;
  readonly place?: Partial<PlacementFacts>;
  readonly clamp?: boolean;
}

/** Two backends, the coordinator dedicated, hosts far away; memory in MiB. */
function work(c: Case) {
  const facts: PlacementFacts = {
    largestMinReservation: 0,
    coordMinReservation: 0,
    numBackends: 2,
    dedicated: true,
    smallestExecutorLimit: gib(1000),
    coordinatorLimit: gib(1000),
    ...c.place,
  };
  const plan = shape({
    perHostMemEstimate: mib(c.estimate ?? 512),
    dedicatedCoordMemEstimate: mib(c.coordinatorEstimate ?? 150),
    stmtType: c.stmtType ?? "QUERY",
    options: options(c.opt),
  });
  const m = memoryToAdmit(plan, facts, poolConfig(c.pool), c.clamp ?? true);
  return {
    e: m.perHost / MiB,
    c: m.onCoordinator / MiB,
    limits: [m.memLimit < 0 ? -1 : m.memLimit / MiB, m.coordinatorMemLimit < 0 ? -1 : m.coordinatorMemLimit / MiB],
    cluster: m.cluster / MiB,
    from: [m.perHostSource, m.onCoordinatorSource],
  };
}

describe("MEM-2 to MEM-10, the table of 14.4", () => {
  test.each<{ name: string; given: Case; e: number; c: number; limits: number[]; cluster: number }>([
    { name: "legacy pool", given: {}, e: 512, c: 150, limits: [-1, -1], cluster: 662 },
    {
      name: "only the coordinator",
      given: { place: { numBackends: 1 } },
      e: 0,
      c: 150,
      limits: [-1, -1],
      cluster: 150,
    },
    {
      name: "minQ 700 MiB",
      given: { pool: { minQueryMemLimit: mib(700) } },
      e: 700,
      c: 150,
      limits: [700, 150],
      cluster: 850,
    },
    {
      name: "minQ 700 MiB, 200 MiB reserved on the coordinator",
      given: { pool: { minQueryMemLimit: mib(700) }, place: { coordMinReservation: mib(200) } },
      e: 700,
      c: 250,
      limits: [700, 250],
      cluster: 950,
    },
    {
      name: "MEM_LIMIT in a legacy pool",
      given: { opt: { memLimit: mib(1024) } },
      e: 1024,
      c: 1024,
      limits: [1024, 1024],
      cluster: 2048,
    },
    {
      name: "MEM_LIMIT above maxQ",
      given: { opt: { memLimit: mib(1024) }, pool: { maxQueryMemLimit: mib(700) } },
      e: 700,
      c: 700,
      limits: [700, 700],
      cluster: 1400,
    },
    {
      name: "MEM_LIMIT outside the bounds with clamping off",
      given: {
        opt: { memLimit: mib(1) },
        pool: { minQueryMemLimit: mib(2), maxQueryMemLimit: mib(2), clampMemLimitQueryOption: false },
      },
      e: 1,
      c: 1,
      limits: [1, 1],
      cluster: 2,
    },
    {
      name: "max memory alone (T-22)",
      given: {
        estimate: 800,
        coordinatorEstimate: 300,
        pool: { maxMemResources: mib(2048) },
        place: { numBackends: 3 },
      },
      e: 800,
      c: 300,
      limits: [800, 300],
      cluster: 1900,
    },
    {
      name: "MEM_LIMIT above the hosts (T-16)",
      given: {
        opt: { memLimit: mib(1126) },
        place: { smallestExecutorLimit: mib(1024), coordinatorLimit: mib(1024) },
      },
      e: 1024,
      c: 1024,
      limits: [1024, 1024],
      cluster: 2048,
    },
  ])("$name", ({ given, e, c, limits, cluster }) => {
    expect(work(given)).toMatchObject({ e, c, limits, cluster });
  });
});

describe("MEM-1 the planner's cap", () => {
  test.each([
    { cap: 0, estimate: 512 },
    { cap: 511, estimate: 511 },
    { cap: 512, estimate: 512 },
    { cap: 513, estimate: 512 },
  ])("cap $cap MiB of 512 MiB gives $estimate MiB", ({ cap, estimate }) => {
    expect(cappedEstimate(mib(512), options({ maxMemEstimateForAdmission: cap * MiB })) / MiB).toBe(estimate);
  });

  test("T-23: it lowers both estimates in any pool, and a pool with bounds raises them again", () => {
    const opt = { maxMemEstimateForAdmission: mib(20) };
    expect(work({ opt })).toMatchObject({ e: 20, c: 20 });
    expect(work({ opt, pool: { maxMemResources: gib(10) } })).toMatchObject({ e: 32, c: 32 });
  });
});

describe("MEM-3 raised to what reservations need", () => {
  test("not in a legacy pool, not for MEM_LIMIT", () => {
    const place = { largestMinReservation: mib(600), coordMinReservation: mib(600) };
    expect(work({ place })).toMatchObject({ e: 512, c: 150 });
    expect(work({ place, pool: { maxMemResources: gib(10) } })).toMatchObject({
      e: 750,
      c: 750,
      from: ["ADJUSTED_PER_HOST_MEM_ESTIMATE", "ADJUSTED_DEDICATED_COORDINATOR_MEM_ESTIMATE"],
    });
    expect(work({ place, pool: { maxMemResources: gib(10) }, opt: { memLimit: mib(100) } })).toMatchObject({ e: 100 });
  });

  test("an equal value keeps its source", () => {
    const place = { largestMinReservation: mib(480), coordMinReservation: mib(118) };
    const adjusted = work({ estimate: 600, place, pool: { maxMemResources: gib(10) } });
    expect(adjusted).toMatchObject({
      e: 600,
      c: 150,
      from: ["QUERY_PLAN_PER_HOST_MEM_ESTIMATE", "QUERY_PLAN_DEDICATED_COORDINATOR_MEM_ESTIMATE"],
    });
  });

  test("the coordinator's name for it is the same when it isn't dedicated", () => {
    const place = { dedicated: false, coordMinReservation: mib(600) };
    expect(work({ place, pool: { maxMemResources: gib(10) } }).from[1]).toBe(
      "ADJUSTED_DEDICATED_COORDINATOR_MEM_ESTIMATE",
    );
  });
});

describe("MEM-4 the pool's bounds", () => {
  test.each([
    { min: 511, e: 512, from: "QUERY_PLAN_PER_HOST_MEM_ESTIMATE" },
    { min: 512, e: 512, from: "QUERY_PLAN_PER_HOST_MEM_ESTIMATE" },
    { min: 513, e: 513, from: "POOL_CONFIG_MIN_QUERY_MEM_LIMIT" },
  ])("minQ $min MiB", ({ min, e, from }) => {
    const got = work({ pool: { minQueryMemLimit: mib(min) } });
    expect([got.e, got.from[0]]).toEqual([e, from]);
  });

  test.each([
    { max: 511, e: 511, from: "POOL_CONFIG_MAX_QUERY_MEM_LIMIT" },
    { max: 512, e: 512, from: "QUERY_PLAN_PER_HOST_MEM_ESTIMATE" },
    { max: 513, e: 512, from: "QUERY_PLAN_PER_HOST_MEM_ESTIMATE" },
    { max: -1, e: 512, from: "QUERY_PLAN_PER_HOST_MEM_ESTIMATE" },
  ])("maxQ $max MiB", ({ max, e, from }) => {
    const got = work({ pool: { maxQueryMemLimit: max * MiB } });
    expect([got.e, got.from[0]]).toEqual([e, from]);
  });

  test("a negative maxQ is not applied but makes the pool enforce limits", () => {
    expect(work({ pool: { maxQueryMemLimit: -1 } }).limits).toEqual([512, 150]);
  });

  test("T-20: minQ lifts a dedicated coordinator only with MEM_LIMIT, and any other always", () => {
    const pool = { minQueryMemLimit: mib(700) };
    expect(work({ pool }).c).toBe(150);
    expect(work({ pool, opt: { memLimit: mib(100) } }).c).toBe(700);
    expect(work({ pool, place: { dedicated: false } }).c).toBe(700);
  });

  test("T-21: clamping off exempts MEM_LIMIT only; estimates are always bounded, the other two options never", () => {
    const pool = { maxQueryMemLimit: mib(200), clampMemLimitQueryOption: false };
    expect(work({ pool, opt: { memLimit: mib(900) } })).toMatchObject({ e: 900, c: 900 });
    expect(work({ pool })).toMatchObject({ e: 200, c: 150 });
    expect(work({ pool, opt: { memLimitExecutors: mib(900), memLimitCoordinators: mib(800) } })).toMatchObject({
      e: 900,
      c: 800,
      from: ["QUERY_OPTION_MEM_LIMIT_EXECUTORS", "QUERY_OPTION_MEM_LIMIT_COORDINATORS"],
    });
  });
});

describe("MEM-5 and MEM-6 the two separate options", () => {
  test("MEM_LIMIT overrides both", () => {
    const opt = { memLimit: mib(100), memLimitExecutors: mib(900), memLimitCoordinators: mib(800) };
    expect(work({ opt })).toMatchObject({ e: 100, c: 100 });
  });

  test("MEM-9: one of them in a legacy pool also puts the estimate as a limit on the other side", () => {
    expect(work({ opt: { memLimitExecutors: mib(900) } }).limits).toEqual([900, 150]);
  });
});

describe("MEM-7 the host clamp", () => {
  test.each([
    { host: 511, e: 511, from: "HOST_MEM_TRACKER_LIMIT" },
    { host: 512, e: 512, from: "QUERY_PLAN_PER_HOST_MEM_ESTIMATE" },
  ])("a host of $host MiB", ({ host, e, from }) => {
    const got = work({ place: { smallestExecutorLimit: mib(host) } });
    expect([got.e, got.from[0]]).toEqual([e, from]);
  });

  test("off: nothing is lowered", () => {
    expect(work({ place: { smallestExecutorLimit: mib(1), coordinatorLimit: mib(1) }, clamp: false })).toMatchObject({
      e: 512,
      c: 150,
    });
  });
});

describe("MEM-8 a query with only the coordinator", () => {
  test("a SELECT charges nothing per executor, a DML keeps its estimate but has nobody to charge it on", () => {
    const place = { numBackends: 1 };
    expect(work({ place })).toMatchObject({
      e: 0,
      cluster: 150,
      from: ["COORDINATOR_ONLY_OPTIMIZATION", "QUERY_PLAN_DEDICATED_COORDINATOR_MEM_ESTIMATE"],
    });
    expect(work({ place, stmtType: "DML" })).toMatchObject({ e: 512, cluster: 150 });
  });
});

describe("the dedicated coordinator's estimate", () => {
  test.each([
    { flag: true, isExecutor: false, numInstances: 0, stmt: "DML", dedicated: true },
    { flag: true, isExecutor: false, numInstances: 1, stmt: "QUERY", dedicated: true },
    { flag: true, isExecutor: false, numInstances: 1, stmt: "DML", dedicated: false },
    { flag: true, isExecutor: false, numInstances: 2, stmt: "QUERY", dedicated: false },
    { flag: true, isExecutor: true, numInstances: 0, stmt: "QUERY", dedicated: false },
    { flag: false, isExecutor: false, numInstances: 0, stmt: "QUERY", dedicated: false },
  ] as const)("flag $flag, executor $isExecutor, $numInstances instances, $stmt: $dedicated", (c) => {
    expect(usesDedicatedEstimate(c.flag, c, c.stmt)).toBe(c.dedicated);
  });

  test("T-18, T-19: the coordinator has an amount of its own, unless MEM_LIMIT is set", () => {
    expect(work({ place: { numBackends: 11 } }).cluster).toBe(10 * 512 + 150);
    expect(work({ place: { numBackends: 11 }, opt: { memLimit: mib(512) } }).cluster).toBe(11 * 512);
  });
});

test("no rounding to pages or megabytes anywhere", () => {
  const m = memoryToAdmit(
    shape({ perHostMemEstimate: 1_234_567_891 as Bytes }),
    {
      largestMinReservation: 0,
      coordMinReservation: 0,
      numBackends: 4,
      dedicated: false,
      smallestExecutorLimit: gib(1000),
      coordinatorLimit: gib(1000),
    },
    poolConfig(),
    true,
  );
  expect(m.cluster).toBe(4 * 1_234_567_891);
});
