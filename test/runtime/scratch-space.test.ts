import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfigError } from "../../src/config/config-error.ts";
import { DEFAULT_SCRATCH_BASE, ScratchFile, ScratchSpace } from "../../src/runtime/scratch-space.ts";

let base = "";
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "waterhole-test-"));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const bytesOf = (n: number, value: number): Uint8Array => new Uint8Array(n).fill(value);

describe("a run's scratch directory", () => {
  test("is its own, and gone when removed", () => {
    const a = new ScratchSpace(base);
    const b = new ScratchSpace(base);
    expect(a.directory).not.toBe(b.directory);
    new ScratchFile(a.directory, "exec-1:27000", "1:2").write([bytesOf(10, 1)]);
    a.remove();
    expect(readdirSync(base)).toHaveLength(1);
    b.remove();
    expect(readdirSync(base)).toEqual([]);
  });

  test("is by default in a folder of this user's own: what one user made another cannot write into", () => {
    const own = process.getuid === undefined ? "waterhole-scratch" : `waterhole-scratch-${process.getuid()}`;
    expect(DEFAULT_SCRATCH_BASE).toBe(join(tmpdir(), own));
  });

  test("cannot be where a file is, and that is told as a mistake with its remedy", () => {
    const file = join(base, "file");
    writeFileSync(file, "");
    for (const place of [file, join(file, "below")])
      expect(() => new ScratchSpace(place)).toThrow(
        new ConfigError(
          { file: place, line: null },
          "the scratch folder cannot be used: a part of its path is no folder",
          "Name another folder with  --scratch FOLDER",
        ),
      );
  });

  test("a host's files go without touching another's", () => {
    const space = new ScratchSpace(base);
    for (const host of ["exec-1:27000", "exec-2:27000"])
      new ScratchFile(space.directory, host, "1:2").write([bytesOf(10, 1)]);
    space.removeHost("exec-1:27000");
    expect(space.files()).toEqual([join("exec-2_27000", "1-2.scratch")]);
  });

  test("what a killed process has left is removed by the next start, and told", async () => {
    const script = `
      import { ScratchFile, ScratchSpace } from ${JSON.stringify(join(import.meta.dirname, "../../src/runtime/scratch-space.ts"))};
      const space = new ScratchSpace(${JSON.stringify(base)});
      new ScratchFile(space.directory, "exec-1:27000", "1:2").write([new Uint8Array(4096)]);
      process.stdout.write(space.directory + "\\n");
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = await once(child.stdout, "data");
    const directory = String(line).trim();

    const whileAlive = new ScratchSpace(base);
    expect(whileAlive.removed).toEqual([]);
    expect(existsSync(directory)).toBe(true);

    child.kill("SIGKILL");
    await once(child, "exit");
    const next = new ScratchSpace(base);
    expect(next.removed.map((name) => join(base, name))).toEqual([directory]);
    expect(existsSync(directory)).toBe(false);
    expect(existsSync(whileAlive.directory)).toBe(true);
  });

  test("a reused process id is another process; other machines and other names are left alone", () => {
    const machine = hostname().replace(/[^A-Za-z0-9.]/g, "_");
    const dead = `run-${machine}-${process.pid}-12345-1`;
    const foreign = [`run-other.${machine}-1-12345-1`, "run-somebody-else", "photos"];
    for (const name of [dead, ...foreign]) mkdirSync(join(base, name));
    writeFileSync(join(base, "run.txt"), "");
    const space = new ScratchSpace(base);
    expect(space.removed).toEqual([dead]);
    space.remove();
    expect(readdirSync(base).sort()).toEqual([...foreign, "run.txt"].sort());
  });
});

describe("one query's file on one host", () => {
  test("holds what was written, in several views and blocks", () => {
    const file = new ScratchFile(base, "exec-1:27000", "1:2");
    expect(file.write([bytesOf(100, 1), bytesOf(50, 2)])).toBe(0);
    expect(file.write([bytesOf(70, 3)])).toBe(150);
    const back = [new Uint8Array(120), new Uint8Array(100)];
    expect(file.read(back, 0)).toBe(220);
    expect([...back[0]!, ...back[1]!]).toEqual([...bytesOf(100, 1), ...bytesOf(50, 2), ...bytesOf(70, 3)]);
    file.remove();
    expect(existsSync(file.path)).toBe(false);
  });

  test("S11 a file that has become shorter is noticed", () => {
    const file = new ScratchFile(base, "exec-1:27000", "1:2");
    file.write([bytesOf(100, 1)]);
    truncateSync(file.path, 60);
    expect(file.read([new Uint8Array(100)], 0)).toBe(60);
    file.remove();
  });

  test("nothing is made before something is written", () => {
    const file = new ScratchFile(base, "exec-1:27000", "1:2");
    file.remove();
    expect(readdirSync(base)).toEqual([]);
  });
});
