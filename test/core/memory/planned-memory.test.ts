/** What the planner says (memory 6.3), against the worked examples (memory 6.6), and R8, R9 (memory 2.3). */
import { describe, expect, test } from "vitest";
import {
  DEFAULT_SPILL_OPTIONS,
  groupsOfInstance,
  type JoinBuild,
  partitionedMinimum,
  plannedAggregation,
  plannedJoin,
  plannedSort,
  spillableBuffer,
} from "../../../src/core/memory/planned-memory.ts";
import { memLimitFor, reservationLimitFor } from "../../../src/core/memory/reservation-limit.ts";
import { KiB, MiB } from "../../../src/core/units.ts";

const O = DEFAULT_SPILL_OPTIONS;
const inMb = (bytes: number) => Number((bytes / MiB).toFixed(2));
const build = (b: Partial<JoinBuild>): JoinBuild => ({
  rows: null,
  rowBytes: 100,
  ndv: null,
  instances: 1,
  nullAware: false,
  probeThreads: 1,
  ...b,
});

describe("memory 2.3: R8 and R9", () => {
  test.each([
    [10, 0],
    [32, 0],
    [100, 68],
    [128, 96],
    [160, 128],
    [200, 160],
    [1024, 819.2],
    [2048, 1638.4],
  ])("MEM_LIMIT %f MB allows %f MB of reservations", (limit, allowed) => {
    expect(reservationLimitFor(limit * MiB, -1, 0)).toBe(Math.floor(allowed * MiB));
  });

  test("at 160 MB both rules meet; one byte on either side the smaller one counts", () => {
    const at = (bytes: number) => reservationLimitFor(bytes, -1, 0);
    expect(at(160 * MiB - 1)).toBe(128 * MiB - 1);
    expect(at(160 * MiB + 5)).toBe(128 * MiB + 4);
  });

  test.each([
    [46, 78],
    [128, 160],
    [200, 250],
  ])("%f MB of reservations need a MEM_LIMIT of %f MB", (reservation, limit) => {
    expect(memLimitFor(reservation * MiB)).toBe(limit * MiB);
  });

  test("BUFFER_POOL_LIMIT stands alone, whatever MEM_LIMIT allows", () => {
    expect(reservationLimitFor(10 * MiB, -1, 500 * MiB)).toBe(500 * MiB);
    expect(reservationLimitFor(-1, -1, 0)).toBe(-1);
  });
});

describe("P8 spillable buffer", () => {
  test.each([
    [null, 2 * MiB],
    [0, 64 * KiB],
    [64 * KiB * 16, 64 * KiB],
    [64 * KiB * 16 + 16, 128 * KiB],
    [2 * MiB * 16, 2 * MiB],
    [1e12, 2 * MiB],
  ])("%s bytes of data: %i", (data, buffer) => {
    expect(spillableBuffer(data, O)).toBe(buffer);
  });
});

describe("P9 join builds, memory 6.6", () => {
  test("25 rows of 109 bytes, broadcast", () => {
    const p = plannedJoin(build({ rows: 25, rowBytes: 109 }), O);
    expect(p).toMatchObject({ buffer: 64 * KiB, maxRowBuffer: 512 * KiB });
    expect(inMb(p.minReservation)).toBe(1.94);
    expect(p.estimate).toBe(p.minReservation);
  });

  test("1.5 M rows of 171 bytes, broadcast; mt_dop 2; null-aware", () => {
    const rows = { rows: 1_500_000, rowBytes: 171 };
    const p = plannedJoin(build(rows), O);
    expect([inMb(p.estimate), p.buffer, inMb(p.minReservation)]).toEqual([292.62, 2 * MiB, 34]);
    expect(inMb(plannedJoin(build({ ...rows, probeThreads: 2 }), O).minReservation)).toBe(68);
    expect(inMb(plannedJoin(build({ ...rows, nullAware: true }), O).minReservation)).toBe(36);
  });

  test("150 K rows of 218 bytes, shuffled to two instances: lifted to its minimum", () => {
    const p = plannedJoin(build({ rows: 150_000, rowBytes: 218, instances: 2 }), O);
    expect([p.buffer, inMb(p.estimate), inMb(p.minReservation)]).toEqual([2 * MiB, 34, 34]);
  });

  test("unknown: 2 GB, 34 MB", () => {
    const p = plannedJoin(build({}), O);
    expect([p.estimate, inMb(p.minReservation)]).toEqual([2048 * MiB, 34]);
  });

  test("duplicates cost 16 bytes each, when 1 < ndv < rows", () => {
    const with_ = (ndv: number | null) => plannedJoin(build({ rows: 1_000_000, ndv }), O).estimate;
    expect(with_(400_000) - with_(null)).toBe(600_000 * 16);
    expect(with_(1)).toBe(with_(null));
    expect(with_(1_000_000)).toBe(with_(null));
  });
});

describe("P11 aggregations, memory 6.6", () => {
  const grouping = (groups: number | null, rowBytes: number, streaming: boolean) =>
    plannedAggregation({ groups, rowBytes, streaming, serializes: false }, O);

  test("25 groups: 64 KB buffers, 10 MB, 1.94 and 2 MB", () => {
    const merge = grouping(25, 10, false);
    expect([merge.buffer, merge.estimate, inMb(merge.minReservation)]).toEqual([64 * KiB, 10 * MiB, 1.94]);
    expect(grouping(25, 10, true).minReservation).toBe(2 * MiB);
  });

  test("DISTINCT over 6,001,215 rows of 231 bytes on 3 instances", () => {
    const merge = groupsOfInstance(6_001_215, 3, false);
    const streaming = groupsOfInstance(6_001_215, 3, true);
    expect([merge, streaming]).toEqual([2_000_405, 1_500_304]);
    expect(Number((grouping(merge, 230.8, false).estimate / MiB).toFixed(1))).toBe(463.2);
    expect(Number((grouping(streaming, 230.8, true).estimate / MiB).toFixed(1))).toBe(347.4);
    expect(inMb(grouping(merge, 230.8, false).minReservation)).toBe(34);
    expect(inMb(grouping(streaming, 230.8, true).minReservation)).toBe(34);
  });

  test("unknown: 128 MB, 34 MB; state outside the tuple needs one buffer more", () => {
    const p = grouping(null, 100, false);
    expect([p.estimate, inMb(p.minReservation)]).toEqual([128 * MiB, 34]);
    expect(partitionedMinimum(2 * MiB, 2 * MiB, 1)).toBe(36 * MiB);
  });
});

describe("P12 sorts, memory 6.6", () => {
  test.each([
    [false, false, 6],
    [true, false, 12],
    [false, true, 2],
    [true, true, 4],
  ])("variable %s, partial %s: %i MB", (variable, partial, megabytes) => {
    expect(plannedSort({ bytes: 1, variable, partial }, O).minReservation).toBe(megabytes * MiB);
  });

  test("unknown input: 128 MB", () => {
    expect(plannedSort({ bytes: null, variable: false }, O).estimate).toBe(128 * MiB);
  });
});
