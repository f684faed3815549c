import { describe, expect, test } from "vitest";
import { prettyNanos } from "../../src/core/pretty.ts";

describe("time from nanoseconds (surfaces 0.3)", () => {
  test.each([
    [0, "0.000ns"],
    [999, "999.000ns"],
    [1000, "1.000us"],
    [571_170, "571.170us"],
    [999_999, "999.999us"],
    [118_402_999, "118.402ms"],
    [1_204_000_000, "1s204ms"],
    [12_340_000_000, "12s340ms"],
    [240_000_000_000, "4m"],
    [247_000_000_000, "4m7s"],
    [3_720_000_000_000, "1h2m"],
  ])("%d is %s", (ns, text) => {
    expect(prettyNanos(ns)).toBe(text);
  });
});
