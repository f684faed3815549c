import { describe, expect, test } from "vitest";
import type { ClusterSpec } from "../../src/config/scenario.ts";
import { backendsOf, coordinatorsOf, findHost } from "../../src/config/scenario-cluster.ts";
import { bytes, GiB, millis } from "../../src/core/units.ts";

function cluster(over: Partial<ClusterSpec> & { hosts?: number }): ClusterSpec {
  const { hosts = 10, ...rest } = over;
  return {
    executors: [
      { count: hosts, memory: bytes(100 * GiB), slots: 16, group: { name: "default", minSize: 1 }, scratch: null },
    ],
    coordinators: [{ count: 1, on: "executor", memory: bytes(GiB), slots: 1 }],
    admission: "distributed",
    statestore: { every: millis(100), publishLag: millis(0), receiveLag: millis(0), failureAfter: millis(10_000) },
    route: { kind: "round-robin" },
    ...rest,
  };
}

describe("backends of a scenario's cluster", () => {
  test("address order is counting order, also beyond nine hosts", () => {
    const names = backendsOf(cluster({ hosts: 10 })).map((b) => b.address);
    expect(names).toEqual([...names].sort());
    expect(names[0]).toBe("exec-01:27000");
    expect(names[9]).toBe("exec-10:27000");
  });

  test("a coordinator on an executor adds no backend", () => {
    const backends = backendsOf(cluster({ hosts: 4 }));
    expect(backends).toHaveLength(4);
    expect(coordinatorsOf(backends)).toEqual(["exec-1:27000"]);
  });

  test("dedicated coordinators come first and do not execute", () => {
    const coordinators = [{ count: 2, on: "dedicated" as const, memory: bytes(8 * GiB), slots: 32 }];
    const backends = backendsOf(cluster({ hosts: 3, coordinators }));
    expect(coordinatorsOf(backends)).toEqual(["coord-1:27000", "coord-2:27000"]);
    expect(backends[0]).toMatchObject({ isExecutor: false, admitMemLimit: 8 * GiB, admissionSlots: 32 });
    expect(backends[2]).toMatchObject({ isExecutor: true, isCoordinator: false });
  });

  test("a host is found with or without zeros and port", () => {
    const backends = backendsOf(cluster({ hosts: 10 }));
    for (const name of ["exec-3", "exec-03", "exec-03:27000", "EXEC-3"])
      expect(findHost(backends, name)?.address).toBe("exec-03:27000");
    expect(findHost(backends, "exec-11")).toBeNull();
  });
});
