import { describe, expect, test } from "vitest";
import { DEFAULT_BLACKLIST_TIMING, ExecutorBlacklist } from "../../../src/core/cluster/blacklist.ts";
import { candidateGroups } from "../../../src/core/cluster/candidate-groups.ts";
import { withRemovedCoordinators } from "../../../src/core/cluster/membership.ts";
import { at, backend, dedicatedCoordinator, gib, group, hosts, membership } from "../fixtures.ts";

const names = (m: ReturnType<typeof membership>) =>
  Object.fromEntries(m.groups.map((g) => [g.name, g.executors.map((e) => e.address)]));

describe("6.1 membership", () => {
  test("hosts in address order, groups in name order, whatever order they came in", () => {
    const m = membership([
      backend("b:1", { executorGroup: group("y") }),
      backend("c:1", { executorGroup: group("x") }),
      backend("a:1", { executorGroup: group("y") }),
    ]);
    expect(Object.entries(names(m))).toEqual([
      ["x", ["c:1"]],
      ["y", ["a:1", "b:1"]],
    ]);
    expect(m.backends.map((b) => b.address)).toEqual(["a:1", "b:1", "c:1"]);
  });

  test("quiescing, blacklisted and coordinating-only ones belong to no group; an emptied group is gone", () => {
    const m = membership(
      [
        dedicatedCoordinator("c:1"),
        backend("q:1", { isQuiescing: true, executorGroup: group("q") }),
        backend("x:1"),
        backend("y:1"),
      ],
      { blacklisted: new Set(["x:1"]) },
    );
    expect(names(m)).toEqual({ default: ["y:1"] });
    expect(m.blacklisted).toEqual(["x:1"]);
    expect(m.backend("q:1")?.isQuiescing, "still known").toBe(true);
  });

  test("all-coordinators leaves out the quiescing", () => {
    const m = membership([
      dedicatedCoordinator("c:1"),
      dedicatedCoordinator("d:1", { isQuiescing: true }),
      backend("e:1", { isCoordinator: true }),
      backend("f:1"),
    ]);
    expect(m.allCoordinators.executors.map((b) => b.address)).toEqual(["c:1", "e:1"]);
  });

  test.each([
    { size: 1, healthy: false },
    { size: 2, healthy: true },
    { size: 3, healthy: true },
  ])("$size of at least 2 executors: healthy = $healthy", ({ size, healthy }) => {
    const m = membership(hosts(size, { executorGroup: group("g", 2) }));
    expect(m.groups[0]!.isHealthy).toBe(healthy);
  });

  test("an executor that states another minimum size is left out", () => {
    const m = membership([
      backend("a:1", { executorGroup: group("g", 1) }),
      backend("b:1", { executorGroup: group("g", 2) }),
    ]);
    expect(names(m)).toEqual({ g: ["a:1"] });
  });

  test("the group's smallest memory", () => {
    const m = membership([backend("a:1", { admitMemLimit: gib(3) }), backend("b:1", { admitMemLimit: gib(2) })]);
    expect(m.groups[0]!.smallestMemLimit).toBe(gib(2));
  });
});

describe("9.5 removed coordinators", () => {
  test("who left is remembered, who came back is not, and the oldest are forgotten", () => {
    const all = ["a", "b", "c", "d"].map((n) => dedicatedCoordinator(`${n}:1`));
    const first = membership(all);
    const one = withRemovedCoordinators(first, all.slice(2), 2);
    expect([...one]).toEqual(["a:1", "b:1"]);
    const second = membership(all.slice(2), { removedCoordinators: one });
    expect([...withRemovedCoordinators(second, [all[0]!, all[3]!], 2)]).toEqual(["b:1", "c:1"]);
    expect([...withRemovedCoordinators(second, [], 2)]).toEqual(["c:1", "d:1"]);
  });

  test("executors that leave are not coordinators", () => {
    expect([...withRemovedCoordinators(membership([backend("e:1")]), [])]).toEqual([]);
  });
});

const tried = (
  pool: string,
  m: ReturnType<typeof membership>,
  over: Partial<Parameters<typeof candidateGroups>[0]> = {},
) => {
  const found = candidateGroups(
    { coordinator: "h0:1", pool, onlyCoordinators: false, coordinatorOnly: false, blacklistedExecutors: [], ...over },
    m,
  );
  return found.kind === "groups" ? found.groups.map((g) => [g.usable.name, g.usable.executors.length]) : found.kind;
};

describe("6.2 candidate groups", () => {
  const coordinator = dedicatedCoordinator("h0:1");
  const executor = (address: string, name: string, minSize = 1) =>
    backend(address, { executorGroup: group(name, minSize) });

  test("T-41: by prefix with a dash, in name order; T-40: unhealthy ones block the fallback", () => {
    const m = membership([
      coordinator,
      executor("1", "root.a-2"),
      executor("2", "root.a-1"),
      executor("3", "root.a-b-1"),
      executor("4", "root.ab-1"),
      executor("5", "root.bad-1", 2),
      executor("6", "default"),
    ]);
    expect(tried("root.a", m)).toEqual([
      ["root.a-1", 1],
      ["root.a-2", 1],
      ["root.a-b-1", 1],
    ]);
    expect(tried("root.a-b", m)).toEqual([["root.a-b-1", 1]]);
    expect(tried("root.bad", m)).toBe("noExecutors");
    expect(tried("root.other", m)).toEqual([["default", 1]]);
  });

  test("an unhealthy default group is no group", () => {
    expect(tried("root.a", membership([coordinator, executor("1", "default", 2)]))).toBe("noExecutors");
  });

  test("the coordinator must be known; one that left is told apart", () => {
    const m = membership([executor("1", "default")], { removedCoordinators: new Set(["gone:1"]) });
    expect(tried("root.a", m)).toBe("noCoordinator");
    expect(tried("root.a", m, { coordinator: "gone:1" })).toBe("coordinatorRemoved");
  });

  test("only-coordinators pools run on coordinators whatever the query; coordinator-only queries need nobody", () => {
    const m = membership([coordinator]);
    const only = { onlyCoordinators: true };
    expect(tried("root.a", m, only)).toEqual([["all-coordinators", 1]]);
    expect(tried("root.a", m, { ...only, coordinatorOnly: true })).toEqual([["all-coordinators", 1]]);
    expect(tried("root.a", m, { coordinatorOnly: true })).toEqual([["empty group (using coordinator only)", 0]]);
  });

  test("a retried query avoids hosts; a group left empty is skipped; the reserved group isn't filtered", () => {
    const m = membership([
      coordinator,
      executor("1", "root.a-1"),
      executor("2", "root.a-2"),
      executor("3", "root.a-2"),
    ]);
    expect(tried("root.a", m, { blacklistedExecutors: ["1", "2"] })).toEqual([["root.a-2", 1]]);
    expect(tried("root.a", m, { blacklistedExecutors: ["1", "2", "3"] })).toBe("noExecutors");
    const alone = { blacklistedExecutors: ["h0:1"], coordinatorOnly: true };
    expect(tried("root.a", m, alone)).toEqual([["empty group (using coordinator only)", 0]]);
  });
});

describe("6.1 the local blacklist", () => {
  test("12 s, then probation; listed again on probation it lasts twice as long", () => {
    const list = new ExecutorBlacklist(DEFAULT_BLACKLIST_TIMING);
    list.blacklist("e:1", at(0));
    list.blacklist("e:1", at(5000));
    expect([list.maintain(at(12_000)), list.addresses().size]).toEqual([false, 1]);
    expect([list.maintain(at(12_001)), list.addresses().size]).toEqual([true, 0]);
    list.blacklist("e:1", at(20_000));
    expect(list.nextChange()).toBe(44_000);
    expect([list.maintain(at(44_000)), list.maintain(at(44_001))]).toEqual([false, true]);
  });

  test("served probation is forgotten, noticed or not", () => {
    const list = new ExecutorBlacklist();
    list.blacklist("e:1", at(0));
    list.maintain(at(12_001));
    list.blacklist("e:1", at(60_001));
    expect(list.nextChange(), "the first again").toBe(72_001);
    list.maintain(at(72_002));
    list.maintain(at(120_002));
    list.forget("e:1");
    expect(list.addresses().size).toBe(0);
  });
});
