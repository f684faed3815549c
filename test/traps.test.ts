/**
 * Every trap of admission section 12 is the subject of a test: its id stands in the title of one. A trap without
 * a test is a rule that somebody will "correct" one day.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const LAST_TRAP = 63;

/** Titles of `describe` and `test`, those behind a table included. */
const TITLE = /\b(?:describe|test)(?:\.\w+)*(?:\((?:[^()]|\([^()]*\))*\))?\(\s*(["'`])((?:(?!\1).)*)\1/gs;

const titles = readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".test.ts"))
  .flatMap((file) => [...readFileSync(join(import.meta.dirname, file), "utf8").matchAll(TITLE)].map((m) => m[2] ?? ""));

describe("traps of admission section 12", () => {
  const traps = Array.from({ length: LAST_TRAP }, (_, i) => `T-${i + 1}`);

  test.each(traps)("%s is in the title of a test", (trap) => {
    const own = new RegExp(`\\b${trap}\\b`);
    expect(titles.filter((title) => own.test(title))).not.toEqual([]);
  });
});
