/**
 * The closed forms of insight 6.6 whose standard error is small enough for a short run; the rest, and all of
 * them with millions of queries, are in test/full.
 */
import { describe, expect, test } from "vitest";
import { expectClosedForm } from "./closed-forms.ts";
import { saturatedThroughput, TEXTBOOK_QUEUES } from "./queueing.ts";

const SHORT = ["V1", "V8", "V13", "V14", "V15", "V16", "V17", "V19", "V20", "V25"];

describe("closed forms (insight 6.6)", () => {
  test.each(TEXTBOOK_QUEUES.filter((q) => SHORT.includes(q.id)))("$id: $what", (queue) => {
    expectClosedForm(queue, 40_000);
  });

  test("V23: two sizes, never empty, leave at 8/7 a unit", () => {
    // 0.12 % at a million, so 1.2 % here; 4.5 of them.
    expect(Math.abs(saturatedThroughput(10_000, 123) / (8 / 7) - 1)).toBeLessThan(4.5 * 0.012);
  });
});
