/** Where buffers come from (memory 3.4) and the pool's sums (B11, B13, I8, I9). */
import { describe, expect, test } from "vitest";
import {
  allocatorStateBytes,
  BufferAllocator,
  type BufferAllocatorOptions,
  NO_LOCK,
} from "../../../src/core/memory/buffer-allocator.ts";
import { brokenPoolRules } from "../../../src/core/memory/buffer-pool-checks.ts";

const BASE = 1024;

function pool(o: Partial<BufferAllocatorOptions> = {}): BufferAllocator {
  const options = {
    minBufferBytes: 8,
    limitBytes: 64,
    cleanLimitBytes: 16,
    baseAddress: BASE,
    addressBytes: 128,
    ...o,
  };
  const words = new Int32Array(allocatorStateBytes(options) / 4);
  BufferAllocator.format(words, options);
  return new BufferAllocator(words, options, NO_LOCK);
}

const sums = (p: BufferAllocator) => {
  const s = p.snapshot();
  return [s.inUse, s.free, s.clean, s.systemRemaining];
};

describe("memory 3.4: where an allocation finds memory", () => {
  test("fresh memory from the lowest address up, then the free list, lowest address first", () => {
    const p = pool();
    const [a, b, c] = [p.allocate(8, 1), p.allocate(8, 1), p.allocate(8, 1)];
    expect([a, b, c]).toEqual([BASE, BASE + 8, BASE + 16]);
    p.free(c);
    p.free(a);
    expect(p.allocate(8, 1)).toBe(a);
    expect(p.lastSource).toBe("freeList");
    expect(p.allocate(8, 1)).toBe(c);
    expect(p.allocate(8, 1)).toBe(BASE + 24);
    expect(p.lastSource).toBe("fresh");
  });

  test("a clean page of the same size, the oldest first, when nothing is left of the limit", () => {
    const p = pool({ cleanLimitBytes: 64 });
    const buffers = Array.from({ length: 8 }, () => p.allocate(8, 1));
    const older = p.addClean(buffers[5]!);
    const newer = p.addClean(buffers[2]!);
    expect(p.allocate(8, 2)).toBe(buffers[5]);
    expect(p.lastSource).toBe("cleanPage");
    expect(p.reclaim(buffers[5]!, older)).toBe(false);
    expect(p.reclaim(buffers[2]!, newer)).toBe(true);
  });

  test("other sizes give way: free buffers before clean pages", () => {
    const p = pool({ cleanLimitBytes: 64 });
    const buffers = Array.from({ length: 8 }, () => p.allocate(8, 1));
    const ticket = p.addClean(buffers[0]!);
    for (const b of buffers.slice(4)) p.free(b);
    expect(p.allocate(32, 1)).toBe(BASE + 32);
    expect(p.lastSource).toBe("scavenged");
    expect(p.reclaim(buffers[0]!, ticket)).toBe(true);
  });

  test("holes that don't fit are stepped over into the room above the limit, the limit itself holds", () => {
    const p = pool();
    const buffers = Array.from({ length: 8 }, () => p.allocate(8, 1));
    for (const at of [0, 2]) p.free(buffers[at]!);
    expect(p.allocate(16, 1)).toBe(BASE + 64);
    expect(sums(p)).toEqual([64, 0, 0, 0]);
    expect(p.snapshot().touched).toBe(80);
  });

  test("B13: more than the limit is a broken account", () => {
    const p = pool();
    p.allocate(64, 1);
    expect(() => p.allocate(8, 1)).toThrow("B13");
  });

  test.each([4, 12, 0])("B2: a buffer of %i bytes is a bug", (bytes) => {
    expect(() => pool().allocate(bytes, 1)).toThrow("B2");
  });
});

describe("B11 clean pages", () => {
  test("over the limit the oldest of the same size goes", () => {
    const p = pool();
    const buffers = [p.allocate(8, 1), p.allocate(8, 1), p.allocate(8, 1)];
    const tickets = buffers.map((b) => p.addClean(b));
    expect(buffers.map((b, i) => p.holdsClean(b, tickets[i]!))).toEqual([false, true, true]);
    expect(sums(p)).toEqual([0, 8, 16, 40]);
  });

  test("with none of its size there, the page itself goes", () => {
    const p = pool();
    const small = [p.allocate(8, 1), p.allocate(8, 1)];
    const tickets = small.map((b) => p.addClean(b));
    const large = p.allocate(16, 1);
    expect(p.holdsClean(large, p.addClean(large))).toBe(false);
    expect(small.map((b, i) => p.holdsClean(b, tickets[i]!))).toEqual([true, true]);
  });

  test("a destroyed page's buffer is free, once", () => {
    const p = pool();
    const b = p.allocate(8, 1);
    const ticket = p.addClean(b);
    expect(p.dropClean(b, ticket)).toBe(true);
    expect(p.dropClean(b, ticket)).toBe(false);
    expect(sums(p)).toEqual([0, 8, 0, 56]);
  });
});

describe("I23 an owner that is gone", () => {
  test("gives everything back, in use and clean, and nobody else loses anything", () => {
    const p = pool();
    const mine = p.allocate(8, 1);
    p.allocate(16, 2);
    p.addClean(p.allocate(8, 2));
    expect(p.releaseAllOf(2)).toBe(24);
    expect(sums(p)).toEqual([8, 24, 0, 32]);
    expect(p.snapshot().buffers.filter((b) => b.place === "inUse")).toMatchObject([{ address: mine, owner: 1 }]);
  });
});

describe("I8, I9 are seen when broken", () => {
  const good = pool().snapshot();
  test.each([
    [{ free: 8 }, "I8"],
    [{ clean: 24, systemRemaining: 40 }, "I8 clean 24 is over its limit"],
    [
      { inUse: 8, systemRemaining: 56, buffers: [{ address: 0, bytes: 12, place: "inUse", owner: 1, ticket: 0 }] },
      "I9",
    ],
  ])("%o", (change, complaint) => {
    expect(brokenPoolRules(good, [], 8)).toEqual([]);
    expect(brokenPoolRules({ ...good, ...(change as object) }, [], 8).join("\n")).toContain(complaint);
  });
});
