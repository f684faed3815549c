import { describe, expect, test } from "vitest";
import { chooseGroupSet, type GroupSet, type GroupSetQuery } from "../../../src/core/cluster/group-sets.ts";
import { gib, group, hosts, membership } from "../fixtures.ts";

const set = (prefix: string, over: Partial<GroupSet> = {}): GroupSet => ({
  prefix,
  expectedSize: 10,
  maxQueryMemLimit: 0,
  maxQueryCpuCorePerNodeLimit: 0,
  ...over,
});

const query = (over: Partial<GroupSetQuery> = {}): GroupSetQuery => ({
  requestPool: "",
  perHostMemEstimate: gib(1),
  cpuAsk: null,
  isFixed: false,
  ...over,
});

const choose = (sets: readonly GroupSet[], q: GroupSetQuery, skip = true) => {
  const found = chooseGroupSet(sets, [], q, skip);
  return found.kind === "chosen" ? found.set.prefix : found.error;
};

describe("6.4 which group set the planner sends a query to", () => {
  const small = set("root.small", { maxQueryMemLimit: gib(2) });
  const large = set("root.large", { maxQueryMemLimit: gib(8) });

  test.each([
    { estimate: gib(2), to: "root.small" },
    { estimate: gib(2) + 1, to: "root.large" },
    { estimate: gib(99), to: "root.large" }, // the last one is taken unchecked
  ])("$estimate bytes a host goes to $to", ({ estimate, to }) => {
    expect(choose([large, small], query({ perHostMemEstimate: estimate }))).toBe(to);
  });

  test("with the last one checked, planning fails", () => {
    expect(choose([small, large], query({ perHostMemEstimate: gib(9) }), false)).toBe(
      `The query does not fit largest executor group sets. Reason: not enough per-host memory (require=${gib(9)}, max=${gib(8)}).`,
    );
  });

  test("cores: width times cores per node, the width of the largest healthy group or the expected one", () => {
    const narrow = set("root.a", { expectedSize: 2, maxQueryCpuCorePerNodeLimit: 8 });
    const wide = set("root.b", { expectedSize: 4, maxQueryCpuCorePerNodeLimit: 8 });
    expect([16, 17].map((cpuAsk) => choose([narrow, wide], query({ cpuAsk })))).toEqual(["root.a", "root.b"]);
    const grown = membership(hosts(3, { executorGroup: group("root.a-1") })).groups;
    const found = chooseGroupSet([narrow, wide], grown, query({ cpuAsk: 24 }));
    expect(found).toMatchObject({ kind: "chosen", width: 3, set: { prefix: "root.a" } });
  });

  test("REQUEST_POOL picks by the end of the name, unchecked", () => {
    expect(choose([small, large], query({ requestPool: "large" }))).toBe("root.large");
    expect(choose([small, large], query({ requestPool: "small", perHostMemEstimate: gib(9) }))).toBe("root.small");
    expect(choose([small, large], query({ requestPool: "other" }))).toBe(
      "Request pool: other does not map to any known executor group set.",
    );
  });

  test("a plan that can't change takes the first, ties by name", () => {
    const sets = [set("root.z"), set("root.y")];
    expect(choose(sets, query({ isFixed: true, perHostMemEstimate: gib(99) }))).toBe("root.y");
  });
});
