import { describe, expect, test } from "vitest";
import { hashOf, Philox, philoxFor, uniformOf, Xoshiro128, xoshiroFor } from "../../src/core/random.ts";

const philox = (counter: readonly [number, number, number, number], key: readonly [number, number]): number[] => {
  const generator = new Philox(...key);
  generator.at(...counter);
  return [generator.w0, generator.w1, generator.w2, generator.w3];
};

describe("known answers (insight 6.1)", () => {
  const ones = 0xffffffff;
  test.each([
    { counter: [0, 0, 0, 0] as const, key: [0, 0] as const, words: [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8] },
    {
      counter: [ones, ones, ones, ones] as const,
      key: [ones, ones] as const,
      words: [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
    },
    {
      counter: [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344] as const,
      key: [0xa4093822, 0x299f31d0] as const,
      words: [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
    },
  ])("Philox4x32-10 of $counter", ({ counter, key, words }) => {
    expect(philox(counter, key)).toEqual(words);
  });

  test("xoshiro128** from state 1, 2, 3, 4", () => {
    const generator = new Xoshiro128(1, 2, 3, 4);
    const words = Array.from({ length: 8 }, () => generator.next());
    expect(words).toEqual([11520, 0, 5927040, 70819200, 2031721883, 1637235492, 1287239034, 3734860849]);
  });

  test("and after one jump", () => {
    const generator = new Xoshiro128(1, 2, 3, 4);
    generator.jump();
    expect(Array.from({ length: 4 }, () => generator.next())).toEqual([1194304935, 745561276, 25819468, 3320478005]);
  });
});

describe("uniforms", () => {
  test("never 0, never 1", () => {
    expect(uniformOf(0, 0)).toBeGreaterThan(0);
    expect(uniformOf(0xffffffff, 0xffffffff)).toBeLessThan(1);
  });

  test("neighbouring words give neighbouring numbers, all 53 bits count", () => {
    expect(uniformOf(0, 64)).toBeGreaterThan(uniformOf(0, 0));
    expect(uniformOf(32, 0)).toBeGreaterThan(uniformOf(0, 0xffffffff));
  });
});

describe("streams by purpose", () => {
  test("a name, a seed or a replication more is another stream", () => {
    const first = (seed: number, replication: number, purpose: string) => xoshiroFor(seed, replication, purpose).next();
    const all = [first(1, 0, "hold/a"), first(2, 0, "hold/a"), first(1, 1, "hold/a"), first(1, 0, "hold/b")];
    expect(new Set(all).size).toBe(4);
  });

  test("the same question has the same answer, whatever was asked before", () => {
    const stream = philoxFor(7, "hold/tile");
    stream.at(17, 0, 0, 0);
    const answer = stream.first();
    stream.at(99, 1, 2, 3);
    stream.at(17, 0, 0, 0);
    expect(stream.first()).toBe(answer);
  });

  test("hashes of a hundred similar names differ", () => {
    expect(new Set(Array.from({ length: 100 }, (_, i) => hashOf(`hold/q${i}`))).size).toBe(100);
  });
});
