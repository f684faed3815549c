import { describe, expect, test } from "vitest";
import { admissionSlots, admitMemLimit } from "../../../src/core/cluster/backend-limits.ts";
import { MembershipRecovery } from "../../../src/core/cluster/membership-recovery.ts";
import { at, gib } from "../fixtures.ts";

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

describe("6.1 the membership stands still", () => {
  test("for 30 s after a reconnection", () => {
    const recovery = new MembershipRecovery();
    expect(recovery.holds(at(0))).toBe(false);
    recovery.reconnected(at(1000));
    expect([1000, 30_999, 31_000].map((now) => recovery.holds(at(now)))).toEqual([true, true, false]);
  });

  test("while the statestore is away, however long; who is back before anybody missed it goes on", () => {
    const recovery = new MembershipRecovery(500);
    recovery.disconnected();
    expect(recovery.holds(at(1e9))).toBe(true);
    recovery.rejoined();
    expect(recovery.holds(at(1e9))).toBe(false);
    recovery.disconnected();
    recovery.reconnected(at(1000));
    expect([1499, 1500].map((now) => recovery.holds(at(now)))).toEqual([true, false]);
  });
});
