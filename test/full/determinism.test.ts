/**
 * The same seed gives the same records, byte for byte, on Node 20, 22 and 24 (insight 6.1): the compiled
 * program, with binaries that npm brings (packages `node`), so it needs a registry or npm's cache.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { digestOf } from "../sim/digest.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const SEEDS = Array.from({ length: 60 }, (_, i) => 1000 + i);
const dist = mkdtempSync(join(tmpdir(), "waterhole-dist-"));

let here: readonly string[] = [];

beforeAll(() => {
  here = SEEDS.map(digestOf);
  execFileSync("npx", ["tsc", "-p", "tsconfig.build.json", "--outDir", dist], { cwd: ROOT });
  // What the compiled program is imported as.
  execFileSync("cp", [join(ROOT, "package.json"), dist]);
  execFileSync("ln", ["-s", join(ROOT, "node_modules"), join(dist, "node_modules")]);
});
afterAll(() => rmSync(dist, { recursive: true }));

describe("the same bytes on every version", () => {
  test.each(["20", "22", "24"])("Node %s", (version) => {
    const script = join(import.meta.dirname, "digest.mjs");
    const run = ["-y", "-p", `node@${version}`, "node"];
    const said = execFileSync("npx", [...run, "--version"], { cwd: dist, encoding: "utf8" }).trim();
    expect(said).toMatch(new RegExp(`^v${version}\\.`));
    const printed = execFileSync("npx", [...run, script, dist, ...SEEDS.map(String)], { cwd: dist, encoding: "utf8" });
    expect(printed.trim().split("\n")).toEqual(here);
  });
});
