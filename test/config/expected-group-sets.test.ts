import { describe, expect, test } from "vitest";
import { expectedGroupSets } from "../../src/config/expected-group-sets.ts";

describe("--expected_executor_group_sets", () => {
  test.each([
    { text: "", sets: [] },
    { text: "root.a:2", sets: [["root.a", 2]] },
    {
      text: "root.a:2,root.b:10",
      sets: [
        ["root.a", 2],
        ["root.b", 10],
      ],
    },
    { text: ",root.a: 2 ,", sets: [["root.a", 2]] },
  ])("$text", ({ text, sets }) => {
    const parsed = expectedGroupSets(text);
    expect(parsed.ok && parsed.sets.map((s) => [s.prefix, s.expectedSize])).toEqual(sets);
  });

  test.each([
    { text: ":1", problem: "Executor group set prefix cannot be empty for input: :1" },
    { text: "a:1,a:2", problem: "Executor group set prefix specified multiple times: a:2" },
    { text: "a", problem: "Invalid executor group set format: a" },
    { text: "a:x", problem: "Failed to parse expected executor group set size for input: a:x" },
    { text: "a:1:2", problem: "Failed to parse expected executor group set size for input: a:1:2" },
    { text: "a:", problem: "Failed to parse expected executor group set size for input: a:" },
  ])("$text is refused in the product's words", ({ text, problem }) => {
    expect(expectedGroupSets(text)).toEqual({ ok: false, problem });
  });
});
