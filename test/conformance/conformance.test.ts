/**
 * The vectors as part of `npm test`, on any machine: the JSON files lie beside this test. What also reads XML
 * files runs where the folder with them is there, and is skipped by name where it is not.
 */
import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { type Collected, collect } from "./collect.ts";
import { judge } from "./judge.ts";

const SHARED = resolve(import.meta.dirname, "../../../shared/conformance");
const VECTORS = join(import.meta.dirname, "vectors");

/** The shared folder where it is there, else the copies, where XML files are missing. */
const found = collect(existsSync(SHARED) ? SHARED : VECTORS);

/** Other families name the files that their limits came from, and don't read them. */
const READ_CONFIG_FILES = ["pool-config", "query-options"];

function missingFile({ vector, dir }: Collected): string | null {
  const ofVector = READ_CONFIG_FILES.includes(vector.family) ? vector.input.config_files : null;
  const files = Object.values(ofVector ?? vector.input.pools?.config_files ?? {});
  return files.filter((file) => typeof file === "string").find((file) => !existsSync(join(dir, file))) ?? null;
}

for (const family of new Set(found.map((f) => f.vector.family))) {
  describe(family, () => {
    for (const one of found.filter((f) => f.vector.family === family))
      test(one.vector.id, async (context) => {
        const missing = missingFile(one);
        if (missing !== null) context.skip(`${missing} is not on this machine`);
        const verdict = await judge(one);
        if (verdict.kind === "skip") context.skip(verdict.why);
        if (verdict.kind === "fail") expect(verdict.got).toEqual(verdict.expected);
        expect(verdict.kind).toBe("pass");
      });
  });
}

test("every family there is has vectors here", () => {
  const families = readdirSync(join(import.meta.dirname, "families")).map((name) => name.replace(/\.ts$/, ""));
  const covered = new Set([...collect(VECTORS).map((f) => f.vector.family), "field-xml", "inputs"]);
  expect(families.filter((name) => !covered.has(name))).toEqual([]);
});

test.skipIf(!existsSync(SHARED))("the copies are the shared vectors", () => {
  const plain = (dir: string) =>
    collect(dir)
      .filter((f) => f.vector.family !== "field-xml")
      .map((f) => f.vector);
  expect(plain(VECTORS)).toEqual(plain(SHARED));
});
