import { describe, expect, test } from "vitest";
import { admissionSlots, admitMemLimit } from "../../../src/core/cluster/backend-limits.ts";
import { MembershipRecovery } from "../../../src/core/cluster/membership-recovery.ts";
import { at, gib, hosts, membership } from "../fixtures.ts";

describe("1.3 admit_mem_limit", () => {
  test.each([
    { limit: gib(100), heap: 0, cache: 0, offered: gib(100) },
    { limit: gib(100), heap: 0, cache: gib(1), offered: gib(99) },
    { limit: gib(5), heap: 0, cache: gib(1), offered: gib(5) - Math.floor(0.1 * gib(5)) }, // at most a tenth
    { limit: gib(100), heap: gib(20), cache: gib(1), offered: gib(79) },
  ])("T-24: $limit less heap $heap and cache $cache", ({ limit, heap, cache, offered }) => {
    expect(admitMemLimit({ processLimit: limit, jvmHeap: heap, codegenCacheCapacity: cache })).toBe(offered);
  });
});

describe("1.3 admission_slots", () => {
  const both = { admissionControlSlots: 0, maxConcurrentQueries: 0, cores: 4, isCoordinator: true, isExecutor: true };
  test.each([
    { flags: both, slots: 4 },
    { flags: { ...both, isExecutor: false }, slots: 32 },
    { flags: { ...both, isCoordinator: false }, slots: 4 },
    { flags: { ...both, maxConcurrentQueries: 9 }, slots: 9 },
    { flags: { ...both, maxConcurrentQueries: 9, admissionControlSlots: 3 }, slots: 3 },
  ])("$flags: $slots", ({ flags, slots }) => {
    expect(admissionSlots(flags)).toBe(slots);
  });
});

describe("6.1 the membership stands still after a reconnection", () => {
  test("for 30 s, then the last one heard is shown", () => {
    const recovery = new MembershipRecovery();
    const [full, one, two] = [membership(hosts(2)), membership(hosts(1)), membership(hosts(2))];
    expect(recovery.heard(full, at(0))).toBe(full);
    recovery.reconnected(at(1000));
    expect([recovery.heard(one, at(1500)), recovery.heard(two, at(2000)), recovery.due(at(30_999))]).toEqual([
      null,
      null,
      null,
    ]);
    expect(recovery.nextChange()).toBe(31_000);
    expect(recovery.due(at(31_000))).toBe(two);
    expect([recovery.due(at(31_001)), recovery.nextChange()]).toEqual([null, Number.POSITIVE_INFINITY]);
  });
});
