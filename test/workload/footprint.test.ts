import { describe, expect, test } from "vitest";
import type { FootprintProfile } from "../../src/config/scenario.ts";
import { progressOfPeak, shareOfPeak } from "../../src/workload/footprint.ts";

const PROFILES: readonly FootprintProfile[] = [
  "flat",
  "ramp",
  "spike",
  "triangle",
  "saw",
  [
    [0, 0.2],
    [0.3, 1],
    [1, 0.1],
  ],
];

describe("footprints", () => {
  test.each(PROFILES)("%s stays between 0 and its peak, and reaches it where it says", (profile) => {
    const shares = Array.from({ length: 101 }, (_, i) => shareOfPeak(profile, i / 100));
    for (const share of shares) {
      expect(share).toBeGreaterThanOrEqual(0);
      expect(share).toBeLessThanOrEqual(1);
    }
    expect(shareOfPeak(profile, progressOfPeak(profile))).toBe(1);
  });

  test.each([
    ["ramp", 0.25, 0.25],
    ["triangle", 0.75, 0.5],
    ["saw", 0.375, 0.5],
    ["spike", 0.44, 0.1],
    ["flat", 0, 1],
  ] as const)("%s at %d is %d", (profile, at, share) => {
    expect(shareOfPeak(profile, at)).toBeCloseTo(share, 12);
  });

  test("points are joined by straight lines; outside, the ends hold", () => {
    const points: FootprintProfile = [
      [0, 0],
      [0.5, 1],
      [1, 0.5],
    ];
    expect(shareOfPeak(points, 0.25)).toBe(0.5);
    expect(shareOfPeak(points, 0.75)).toBe(0.75);
    expect(shareOfPeak(points, 2)).toBe(0.5);
  });
});
