import { describe, expect, test } from "vitest";
import { countText, shareText, timeText } from "../../../src/surfaces/cli/figures.ts";
import { cutEnd, cutMiddle, lookOf, type TerminalFacts, wrap } from "../../../src/surfaces/cli/look.ts";

const facts = (over: Partial<TerminalFacts>): TerminalFacts => ({
  isTerminal: true,
  columns: 120,
  environment: { LANG: "en_US.UTF-8" },
  wished: null,
  ...over,
});
const colour = (environment: Record<string, string>, over: Partial<TerminalFacts> = {}): boolean =>
  lookOf(facts({ environment, ...over })).colour;

describe("colour (page-and-demos 3.1)", () => {
  test.each([
    ["a terminal", {}, {}, true],
    ["no terminal", {}, { isTerminal: false }, false],
    ["a dumb terminal", { TERM: "dumb" }, {}, false],
    ["NO_COLOR", { NO_COLOR: "1" }, {}, false],
    ["an empty NO_COLOR is not set", { NO_COLOR: "" }, {}, true],
    ["NO_COLOR beats FORCE_COLOR", { NO_COLOR: "1", FORCE_COLOR: "1" }, {}, false],
    ["FORCE_COLOR in a pipe", { FORCE_COLOR: "1" }, { isTerminal: false }, true],
    ["FORCE_COLOR=0", { FORCE_COLOR: "0" }, {}, false],
    ["--color beats NO_COLOR", { NO_COLOR: "1" }, { wished: true }, true],
    ["--no-color beats FORCE_COLOR", { FORCE_COLOR: "1" }, { wished: false }, false],
  ] as const)("%s", (_, environment, over, expected) => {
    expect(colour(environment, over)).toBe(expected);
  });
});

describe("glyphs and width", () => {
  test.each([
    [{ LANG: "de_DE.UTF-8" }, true],
    [{ LANG: "de_DE.ISO-8859-1" }, false],
    [{ LC_ALL: "en_US.utf8", LANG: "x" }, true],
    [{ TERM: "linux", LANG: "en_US.UTF-8" }, false],
    [{}, true],
  ])("%j: unicode = %s", (environment, expected) => {
    expect(lookOf(facts({ environment: environment as Record<string, string> })).unicode).toBe(expected);
  });

  test("a terminal has its width, anything else 100 for texts and no limit for tables", () => {
    expect(lookOf(facts({}))).toMatchObject({ columns: 120, tableColumns: 120 });
    expect(lookOf(facts({ isTerminal: false }))).toMatchObject({
      columns: 100,
      tableColumns: Number.POSITIVE_INFINITY,
    });
    expect(lookOf(facts({ columns: 0 }))).toMatchObject({ columns: 100 });
  });

  test("names are cut in the middle, texts at the end", () => {
    const l = lookOf(facts({}));
    expect(cutMiddle("root.marketing.dashboards", 12, l)).toBe("root.m…oards");
    expect(cutEnd("Not enough memory", 10, l)).toBe("Not enoug…");
    expect(cutMiddle("short", 12, l)).toBe("short");
  });

  test("words are wrapped, long ones stand alone", () => {
    expect(wrap("a bb ccc dddddddddd e", 6)).toEqual(["a bb", "ccc", "dddddddddd", "e"]);
    expect(wrap("", 6)).toEqual([]);
    expect(wrap("then 21 % more", 7), "a number keeps its %").toEqual(["then", "21 %", "more"]);
    expect(wrap("all 12\u202f345 of", 7), "and its groups").toEqual(["all", "12\u202f345", "of"]);
  });
});

describe("figures", () => {
  test.each([
    [0, "0s"],
    [2.5, "2.5ms"],
    [300.4, "300ms"],
    [999.4, "999ms"],
    [999.6, "1.0s"],
    [8000, "8.0s"],
    [59_940, "59.9s"],
    [59_960, "1m00s"],
    [64_000, "1m04s"],
    [3_599_400, "59m59s"],
    [7_380_000, "2h03m"],
    [604_800_000, "7d00h"],
    [Number.POSITIVE_INFINITY, "never"],
  ])("%d ms is %s", (ms, text) => {
    expect(timeText(ms)).toBe(text);
  });

  test("counts are grouped from 10,000 on", () => {
    expect([9999, 10_000, 6_048_000].map((n) => countText(n, true))).toEqual([
      "9999",
      "10\u202f000",
      "6\u202f048\u202f000",
    ]);
    expect(countText(6_048_000, false)).toBe("6048000");
  });

  test.each([
    [0, "0 %"],
    [0.0004, "< 0.1 %"],
    [0.053, "5.3 %"],
    [0.98, "98 %"],
  ])("a share of %d is %s", (share, text) => {
    expect(shareText(share)).toBe(text);
  });
});
