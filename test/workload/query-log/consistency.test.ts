import { describe, expect, test } from "vitest";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../../src/core/pool-config.ts";
import type { Bytes } from "../../../src/core/units.ts";
import { consistencyOf } from "../../../src/workload/query-log/consistency.ts";
import type { LoggedQuery } from "../../../src/workload/query-log/logged-query.ts";
import { GiB, logged, MiB } from "./log-fixtures.ts";

const POOL: PoolConfig = {
  ...DEFAULT_POOL_CONFIG,
  maxMemResources: (200 * GiB) as Bytes,
  minQueryMemLimit: GiB,
  maxQueryMemLimit: 8 * GiB,
};
const check = (rows: readonly Partial<LoggedQuery>[], config: PoolConfig | null = POOL) =>
  consistencyOf(
    rows.map((r, i) => logged({ line: i + 2, ...r })),
    () => config,
  );

describe("insight 4.1 do the recorded amounts follow from estimates and pool files?", () => {
  test.each([
    { name: "clamped up to the minimum", estimate: 100 * MiB, backends: 10, recorded: 10 * GiB },
    { name: "clamped down to the maximum", estimate: 50 * GiB, backends: 10, recorded: 80 * GiB },
    { name: "a dedicated coordinator's own estimate", estimate: 2 * GiB, backends: 11, recorded: 20 * GiB + 100 * MiB },
    { name: "a coordinator on an executor", estimate: 2 * GiB, backends: 11, recorded: 22 * GiB },
    { name: "two printed decimals", estimate: 2 * GiB, backends: 11, recorded: Math.round(22.004 * GiB) },
  ])("$name agrees", ({ estimate, backends, recorded }) => {
    const { checked, mismatches } = check([{ estimate, backends, clusterAdmitted: recorded }]);
    expect([checked, mismatches]).toEqual([1, 0]);
  });

  test("MEM_LIMIT counts instead of the estimate, within the bounds", () => {
    const options = { memLimit: 20 * GiB, memLimitExecutors: 0, memLimitCoordinators: 0, requestPool: null };
    expect(check([{ options, clusterAdmitted: 80 * GiB }]).mismatches).toBe(0);
    expect(check([{ options, clusterAdmitted: 200 * GiB }]).mismatches).toBe(1);
  });

  test("one in twenty may disagree, more means that the files changed", () => {
    const good = Array.from({ length: 19 }, () => ({ estimate: 2 * GiB, clusterAdmitted: 20 * GiB }));
    const bad = { estimate: 2 * GiB, clusterAdmitted: 40 * GiB };
    const one = check([...good, bad]);
    expect(one).toMatchObject({ checked: 20, mismatches: 1, share: 0.05, isBroken: false });
    expect(one.examples).toEqual([{ line: 21, pool: "root.etl", recorded: 40 * GiB, expected: 18 * GiB + 100 * MiB }]);
    expect(check([...good, bad, bad]).isBroken).toBe(true);
  });

  test("rows without an amount, of no known pool or never admitted are not checked", () => {
    expect(check([{ clusterAdmitted: null }, { estimate: null }, { outcome: "rejected" }]).checked).toBe(0);
    expect(check([{}], null).checked).toBe(0);
  });
});
