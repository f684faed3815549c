import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { DEFAULT_FLAGS } from "../../src/config/impala-flags.ts";
import { parseScenario, readScenario } from "../../src/config/scenario-file.ts";
import { flagsOf, openPools } from "../../src/config/scenario-pools.ts";
import { poolResolver } from "../../src/workload/pool-resolver.ts";
import type { Resolution } from "../../src/workload/workload.ts";
import { allocation, directory, queue, site } from "../config/fixtures.ts";

const EXAMPLE = resolve(import.meta.dirname, "../../examples/dashboards/scenario.yaml");

function resolutionIn(
  users: Readonly<Record<string, readonly string[] | null>>,
  pool: string,
  user: string,
): Resolution {
  const scenario = { ...readScenario(EXAMPLE), users };
  const flags = flagsOf(scenario);
  const pools = openPools(scenario, flags);
  return poolResolver(() => pools, flags, users).resolve(pool, user, () => 0);
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
    expect(poolResolver(() => pools, flags, {}).resolve("root.anything", "bob", () => 0)).toMatchObject({
      kind: "resolved",
      pool: "default-pool",
      defaultOptions: { MEM_LIMIT: "2147483648" },
    });
  });
});

describe("pool-configuration 3.5: resolved at submission and again at admission", () => {
  const resolved = (keys: Readonly<Record<string, string>>, requested: string, defaults = "") => {
    const pools = directory({ allocation: allocation(queue("", "a") + queue("", "b")), site: site(keys) });
    const flags = { ...DEFAULT_FLAGS, default_query_options: defaults };
    return poolResolver(() => pools, flags, {}).resolve(requested, "ana", () => 0);
  };

  test("REQUEST_POOL among a pool's default options sends the query elsewhere, with the first pool's options", () => {
    const keys = { "options.root.ana": "request_pool=b,mem_limit=1g", "options.root.b": "mem_limit=2g" };
    expect(resolved(keys, "")).toMatchObject({ pool: "root.b", defaultOptions: { MEM_LIMIT: "1073741824" } });
  });

  test("but not when the client has asked for a pool", () => {
    const keys = { "options.root.a": "request_pool=b" };
    expect(resolved(keys, "a")).toMatchObject({ pool: "root.a" });
  });

  test("process defaults may ask for a pool too", () => {
    expect(resolved({}, "", "request_pool=b")).toMatchObject({ pool: "root.b" });
    expect(resolved({}, "a", "request_pool=b")).toMatchObject({ pool: "root.a" });
  });

  test("pieces of the option string that are bad are dropped, the others apply", () => {
    const keys = { "options.root.a": "mem_limit=5%,mt_dop=4,nonsense=1" };
    expect(resolved(keys, "a")).toMatchObject({ defaultOptions: { MT_DOP: "4" } });
    expect(resolved(keys, "a")).not.toMatchObject({ defaultOptions: { MEM_LIMIT: expect.anything() } });
  });

  test("a bad number of root fails every query, one of another pool does not", () => {
    const error = 'NumberFormatException: For input string: "x"';
    expect(resolved({ "placed.root": "x" }, "a")).toEqual({ kind: "unresolved", error });
    expect(resolved({ "placed.root.a": "x" }, "a")).toEqual({ kind: "unresolved", error });
    expect(resolved({ "placed.root.b": "x" }, "a")).toMatchObject({ kind: "resolved", pool: "root.a" });
  });
});

describe("6.4 the planner's choice among executor group sets", () => {
  const MIB = 2 ** 20;
  const limited = site({
    "impala.admission-control.max-query-mem-limit.root.small": String(1024 * MIB),
    "impala.admission-control.max-query-mem-limit.root.large": String(8192 * MIB),
  });
  const queues = ["small", "large", "other"].map((name) => queue("", name)).join("");
  const pools = directory({ allocation: allocation(queues), site: limited });
  const chosen = (over: { asked?: string; estimate?: number; sets?: string; checksLast?: boolean } = {}): string => {
    const flags = {
      ...DEFAULT_FLAGS,
      expected_executor_group_sets: over.sets ?? "root.large:10,root.small:2",
      skip_resource_checking_on_last_executor_group_set: over.checksLast !== true,
    };
    const estimate = (over.estimate ?? 1) * MIB;
    const found = poolResolver(() => pools, flags, {}).resolve(over.asked ?? "", "ana", () => estimate);
    return found.kind === "resolved" ? found.pool : found.error;
  };

  test.each([
    { estimate: 1024, pool: "root.small" },
    { estimate: 1025, pool: "root.large" },
    { estimate: 8193, pool: "root.large" },
  ])("$estimate mb a host: $pool", ({ estimate, pool }) => {
    expect(chosen({ estimate })).toBe(pool);
  });

  test("the last set may be checked too", () => {
    expect(chosen({ estimate: 8192, checksLast: true })).toBe("root.large");
    expect(chosen({ estimate: 8193, checksLast: true })).toContain("does not fit largest executor group sets");
  });

  test("a pool that is asked for picks its set, whatever the estimate; one without a set is an error", () => {
    expect(chosen({ asked: "small", estimate: 9000 })).toBe("root.small");
    expect(chosen({ asked: "root.large" })).toBe("root.large");
    expect(chosen({ asked: "root.other" })).toBe(
      "Request pool: root.other does not map to any known executor group set.",
    );
  });

  test("without the flag nobody is sent anywhere", () => {
    expect(chosen({ sets: "", asked: "root.other", estimate: 9000 })).toBe("root.other");
  });
});
