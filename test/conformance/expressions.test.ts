/** The arithmetic of vectors, before vectors rely on it. */
import { describe, expect, test } from "vitest";
import { evaluate, holds } from "./expressions.ts";

const names = (name: string): number => {
  const known: Record<string, number> = { admitted: 7, "initial admitted": 3, "remaining queued": 4 };
  if (known[name] === undefined) throw new Error(`no ${name}`);
  return known[name];
};

describe("values", () => {
  test.each([
    [12, 12],
    ["12", 12],
    ["min(30 - admitted, 10)", 10],
    ["min(remaining queued, 5)", 4],
    ["initial admitted + 2 * (admitted - 1)", 15],
    ["10 - 3 - 2", 5],
  ])("%s", (text, value) => expect(evaluate(text, names)).toBe(value));

  test("what can't be read is an error, not a number", () => {
    expect(() => evaluate("min(1", names)).toThrow("can't read");
    expect(() => evaluate("1 2", names)).toThrow("can't read");
    expect(() => evaluate("unheard of", names)).toThrow("no unheard of");
  });
});

test("relations", () => {
  expect(holds("admitted == initial admitted + remaining queued", names)).toBe(true);
  expect(holds("admitted < initial admitted", names)).toBe(false);
  expect(holds("admitted <= 7", names)).toBe(true);
});
