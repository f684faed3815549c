/** The runner itself: what it prints, and the exit codes that scripts rely on. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "conformance-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

function write(name: string, content: unknown): void {
  const path = join(dir, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
}

const vector = (id: string, bytes: number, text: string) => ({
  id,
  family: "print-bytes",
  description: "d",
  input: { bytes },
  expected: { text },
});
const family = (vectors: readonly unknown[], name = "print-bytes") => ({ family: name, schema_version: 1, vectors });

function run(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(import.meta.dirname, "run.ts"), ...args], {
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

describe("a folder of vectors", () => {
  test("files are known by their form, whatever they and the vectors are called", () => {
    write("some-numbers.json", family([vector("any name", 1024, "1.00 KB"), vector("another", 0, "0")]));
    write("notes.json", { hello: "not vectors" });
    const { status, stdout } = run("--dir", dir);
    expect(stdout).toContain("print-bytes        2 passed, 0 failed, 0 skipped\n");
    expect(stdout).toContain("total: 2 passed, 0 failed, 0 skipped\n");
    expect(status).toBe(0);
  });

  test("a failure is told with id, expected and got, and makes the exit code 1", () => {
    write("a.json", family([vector("right", 1024, "1.00 KB"), vector("wrong", 1024, "1 KB")]));
    const { status, stdout } = run("--dir", dir);
    expect(stdout).toMatch(/FAIL wrong: d\n {4}expected 1 KB\n {4}got {6}1\.00 KB\n/);
    expect(stdout).toContain("total: 1 passed, 1 failed, 0 skipped");
    expect(status).toBe(1);
  });

  test("a family that nobody can run is a failure, not a silence", () => {
    write("a.json", family([vector("x", 1, "1.00 B")], "tea-leaves"));
    const { status, stdout } = run("--dir", dir);
    expect(stdout).toContain("no runner in test/conformance/families for tea-leaves");
    expect(status).toBe(1);
  });
});

describe("a folder that can't be used", () => {
  test.each([
    ["a folder that isn't there", () => undefined, "none", /no such folder/],
    ["nothing to run in it", () => write("readme.md", "x"), "", /no vectors, field cases or XML cases/],
    ["a file that isn't JSON", () => write("a.json", "{"), "", /a\.json: not readable as JSON/],
    ["another schema", () => write("a.json", { ...family([]), schema_version: 2 }), "", /schema_version is 2/],
    ["a vector without input", () => write("a.json", family([{ id: "x", expected: {} }])), "", /vector 1 lacks/],
    [
      "the same id twice",
      () => write("a.json", family([vector("x", 0, "0"), vector("x", 0, "0")])),
      "",
      /x occurs twice/,
    ],
  ])("%s: exit code 2 and what is wrong", (_, prepare, below, message) => {
    prepare();
    const { status, stderr } = run("--dir", join(dir, below));
    expect(stderr).toMatch(message);
    expect(stderr).toContain("Usage: npm run conformance");
    expect(status).toBe(2);
  });

  test("a flag it doesn't know", () => expect(run("--folder", dir).status).toBe(2));
});
