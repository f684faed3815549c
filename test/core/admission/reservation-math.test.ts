import { describe, expect, test } from "vitest";
import { limitNeededFor, reservationAllowedBy } from "../../../src/core/admission/reservation-math.ts";
import { GiB, MiB } from "../../../src/core/units.ts";

describe("2.1 the two reservation functions", () => {
  test.each([
    { r: -1, needed: 33_554_432 },
    { r: 0, needed: 33_554_432 },
    { r: 38 * MiB, needed: 73_400_320 },
    { r: 128 * MiB - 1, needed: 167_772_159 },
    { r: 128 * MiB, needed: 167_772_160 }, // both branches
    { r: 128 * MiB + 4, needed: 167_772_165 },
    { r: 200 * MiB, needed: 262_144_000 },
    { r: GiB, needed: 1_342_177_280 },
  ])("needed($r) = $needed", ({ r, needed }) => {
    expect(limitNeededFor(r)).toBe(needed);
  });

  test.each([
    { m: 15 * MiB, allowed: 0 },
    { m: 32 * MiB, allowed: 0 },
    { m: 32 * MiB + 1, allowed: 1 },
    { m: 40 * MiB, allowed: 8_388_608 },
    { m: 160 * MiB, allowed: 134_217_728 },
    { m: GiB, allowed: 858_993_459 },
    { m: 1024 * GiB, allowed: 879_609_302_220 },
  ])("allowed($m) = $allowed", ({ m, allowed }) => {
    expect(reservationAllowedBy(m)).toBe(allowed);
  });

  test("T-25: raised exactly to what is needed, an odd reservation is still one byte too large", () => {
    const odd = 128 * MiB + 2;
    expect(reservationAllowedBy(limitNeededFor(odd))).toBe(odd - 1);
    expect(reservationAllowedBy(limitNeededFor(128 * MiB + 4))).toBe(128 * MiB + 4);
  });
});
