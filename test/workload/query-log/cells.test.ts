import { describe, expect, test } from "vitest";
import {
  type Cell,
  durationMicros,
  durationResolution,
  type LogRow,
  microsOf,
  momentOf,
  numberOf,
  sizeBytes,
  textOf,
  timestampMicros,
  UnreadableCell,
  wholeOf,
} from "../../../src/workload/query-log/cells.ts";

const row = (value: Cell): LogRow => ({ line: 1, cell: () => value });

describe("insight 4.1 cells of a log", () => {
  test.each([
    { text: "2026-08-22 10:15:02", micros: Date.UTC(2026, 7, 22, 10, 15, 2) * 1000 },
    { text: "2026-08-22T10:15:02Z", micros: Date.UTC(2026, 7, 22, 10, 15, 2) * 1000 },
    { text: "2026-08-22 10:15:02.1", micros: Date.UTC(2026, 7, 22, 10, 15, 2, 100) * 1000 },
    { text: "2026-08-22 10:15:02.118044", micros: Date.UTC(2026, 7, 22, 10, 15, 2, 118) * 1000 + 44 },
    { text: "2026-08-22 10:15:02.118044999", micros: Date.UTC(2026, 7, 22, 10, 15, 2, 118) * 1000 + 44 },
    { text: "2026-08-22T12:15:02+02:00", micros: Date.UTC(2026, 7, 22, 10, 15, 2) * 1000 },
  ])("timestamp $text", ({ text, micros }) => {
    expect(timestampMicros(text)).toBe(micros);
  });

  test.each(["2026-02-31 10:00:00", "22.08.2026 10:15", "10:15:02", "yesterday", ""])("no timestamp: %j", (text) => {
    expect(timestampMicros(text)).toBeNull();
  });

  test("moments are read from text, epoch numbers of any unit, and Parquet's microseconds", () => {
    const moment = Date.UTC(2026, 7, 22, 10, 15, 2, 118) * 1000;
    for (const value of ["2026-08-22 10:15:02.118", moment / 1000, moment, moment * 1000, BigInt(moment)])
      expect(momentOf(row(value), "start_time_utc")).toBe(moment);
    expect(momentOf(row(Math.trunc(moment / 1e6)), "start_time_utc")).toBe(Math.trunc(moment / 1e6) * 1e6);
  });

  test.each(["", "NULL", "\\N", null, undefined])("nothing stays unknown and is not 0: %j", (cell) => {
    expect(textOf(row(cell), "c")).toBeNull();
    expect(wholeOf(row(cell), "c")).toBeNull();
    expect(microsOf(row(cell), "c")).toBeNull();
    expect(momentOf(row(cell), "c")).toBeNull();
  });

  test("numbers come as text, with point and exponent, and as bigint", () => {
    expect(numberOf(row("3.1E7"), "c")).toBe(31_000_000);
    expect(wholeOf(row("1520435.2"), "c")).toBe(1_520_435);
    expect(wholeOf(row(9_007_199_254_740_991n), "c")).toBe(Number.MAX_SAFE_INTEGER);
    expect(microsOf(row("38742.013"), "c")).toBe(38_742_013);
  });

  test.each([
    ["16,106,127,360", 16_106_127_360],
    ["1'610'612'736", 1_610_612_736],
    ["1\u202f610\u00a0612 736", 1_610_612_736],
    ["1,024.5", 1024],
    ["1,024", 1024],
  ])("amounts as spreadsheets group them: %s", (cell, bytes) => {
    expect(wholeOf(row(cell), "c")).toBe(bytes);
  });

  test("where decimals can be, one comma may be theirs: that is not guessed", () => {
    expect(numberOf(row("1,520,435.2"), "c")).toBe(1_520_435.2);
    expect(() => microsOf(row("1,001"), "event_last_row_fetched")).toThrow(/is "1,001"; expected a number/);
    for (const cell of ["1,02", "1,0245", "12,34,567", ",024", "1,024,"])
      expect(() => wholeOf(row(cell), "c"), cell).toThrow(UnreadableCell);
  });

  test.each([["twelve"], ["-1"], ["9007199254740993"]])("no whole number: %s", (cell) => {
    expect(() => wholeOf(row(cell), "backends_count")).toThrow(UnreadableCell);
    expect(() => wholeOf(row(cell), "backends_count")).toThrow(/backends_count is ".*"; expected/);
  });

  test.each([
    ["4.20 GB", Math.round(4.2 * 1024 ** 3)],
    ["512.00 B", 512],
    ["200MB", 200 * 1024 ** 2],
    ["0", 0],
    ["1.18 MB (1237818)", 1_237_818],
  ])("size %s", (text, bytes) => {
    expect(sizeBytes(text)).toBe(bytes);
  });

  test.each([
    ["52s418ms", 52_418_000, 1000],
    ["571.170us", 571, 1],
    ["119.006ms", 119_006, 1],
    ["1m5s", 65_000_000, 1e6],
    ["4m", 240_000_000, 1e6],
    ["1h2m", 3_720_000_000, 60e6],
    ["0.000ns", 0, 1],
    ["0", 0, 1],
  ])("time %s", (text, micros, resolution) => {
    expect(durationMicros(text)).toBe(micros);
    expect(durationResolution(text)).toBe(resolution);
  });

  test("other texts are no times", () => {
    expect(durationMicros("12 apples")).toBeNull();
    expect(durationMicros("")).toBeNull();
  });
});
