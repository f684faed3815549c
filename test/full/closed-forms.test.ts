/** Every closed form of insight 6.6 with two million queries each: minutes, so not part of `npm test`. */
import { describe, expect, test } from "vitest";
import { expectClosedForm } from "../sim/closed-forms.ts";
import { saturatedThroughput, TEXTBOOK_QUEUES } from "../sim/queueing.ts";

describe("closed forms (insight 6.6), two million queries each", () => {
  test.each(TEXTBOOK_QUEUES)("$id: $what", (queue) => {
    expectClosedForm(queue, 2_000_000);
  });

  test("V23: two sizes, never empty, leave at 8/7 a unit", () => {
    expect(Math.abs(saturatedThroughput(500_000, 123) / (8 / 7) - 1)).toBeLessThan((4.5 * 0.0012) / Math.sqrt(0.5));
  });
});
