import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { parseScenario, readScenario } from "../../src/config/scenario-file.ts";
import { flagsOf, openPools } from "../../src/config/scenario-pools.ts";
import { poolResolver } from "../../src/workload/pool-resolver.ts";
import type { Resolution } from "../../src/workload/workload.ts";

const EXAMPLE = resolve(import.meta.dirname, "../../examples/dashboards/scenario.yaml");

function resolutionIn(
  users: Readonly<Record<string, readonly string[] | null>>,
  pool: string,
  user: string,
): Resolution {
  const scenario = { ...readScenario(EXAMPLE), users };
  const flags = flagsOf(scenario);
  const pools = openPools(scenario, flags);
  return poolResolver(() => pools, flags, users).resolve(pool, user);
}

describe("the example's pools", () => {
  test("ana may use the dashboards, by name", () => {
    expect(resolutionIn({}, "root.dashboards", "ana")).toMatchObject({
      kind: "resolved",
      pool: "root.dashboards",
      user: "ana",
      groups: [],
    });
  });

  test("an analyst may too, by group", () => {
    expect(resolutionIn({ eve: ["analysts"] }, "dashboards", "eve")).toMatchObject({
      kind: "resolved",
      pool: "root.dashboards",
      groups: ["analysts"],
    });
  });

  test("others are refused in the product's words", () => {
    expect(resolutionIn({}, "root.dashboards", "zoe")).toEqual({
      kind: "unresolved",
      error:
        "Request from user 'zoe' with requested pool 'root.dashboards' denied access to assigned pool 'root.dashboards'",
    });
  });

  test("a pool that nobody declared is refused", () => {
    expect(resolutionIn({}, "root.dashbords", "ana")).toMatchObject({ kind: "unresolved" });
  });

  test("a user whose groups cannot be looked up has none to be consulted", () => {
    expect(resolutionIn({ ana: null }, "root.dashboards", "ana")).toMatchObject({ kind: "resolved", groups: null });
  });
});

describe("flags instead of files", () => {
  const text =
    "{ cluster: { executors: [{ memory: 10gb }] }, queries: { q: { estimate: 1gb, duration: 1s } }, arrivals: [{ at: 0s }], flags: { default_pool_max_requests: 3, default_query_options: 'mem_limit=2g,nonsense' } }";

  test("one pool for everybody, process defaults reach the query", () => {
    const scenario = parseScenario(text, "/x.yaml");
    const flags = flagsOf(scenario);
    const pools = openPools(scenario, flags);
    expect(pools.configOf("default-pool").maxRequests).toBe(3);
    expect(poolResolver(() => pools, flags, {}).resolve("root.anything", "bob")).toMatchObject({
      kind: "resolved",
      pool: "default-pool",
      defaultOptions: { MEM_LIMIT: "2g" },
    });
  });
});
