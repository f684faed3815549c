import { describe, expect, test } from "vitest";
import { InvariantError } from "../../../../src/core/assert.ts";
import { jsonText } from "../../../../src/surfaces/cli/documents/json-text.ts";

const read = (document: unknown): unknown => JSON.parse(jsonText(document));

describe("STYLE 2: a document says what a null means", () => {
  test("an endless wait and no value at all are two things", () => {
    expect(read({ waitMs: { p50: 10, p95: Number.POSITIVE_INFINITY, max: Number.POSITIVE_INFINITY } })).toEqual({
      waitMs: { p50: 10, p95: null, max: null, endless: ["p95", "max"] },
    });
    expect(read({ waitMs: { p50: null, p95: null } })).toEqual({ waitMs: { p50: null, p95: null } });
  });

  test("also within a list", () => {
    expect(read([{ p95Ms: Number.POSITIVE_INFINITY }, { p95Ms: 1 }])).toEqual([
      { p95Ms: null, endless: ["p95Ms"] },
      { p95Ms: 1 },
    ]);
  });

  test.each([
    ["NaN", { mean: Number.NaN }],
    ["less than anything", { mean: Number.NEGATIVE_INFINITY }],
    ["an endless member of a list, which has no key", { quarters: [1, Number.POSITIVE_INFINITY] }],
    ["a Map", { hosts: new Map([["a", 1]]) }],
    ["a Set", { hosts: new Set(["a"]) }],
    ["a typed array", { runs: new Float64Array(2) }],
  ])("%s is never printed as something else", (_, document) => {
    expect(() => jsonText(document)).toThrow(InvariantError);
  });
});
