/** One instance's life on a thread that is a test: its clock moves when the test says so. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { checkIdle } from "../../src/core/memory/ledger-checks.ts";
import {
  F_RESERVATION,
  get,
  PAGES_IN_USE,
  PAGES_PEAK,
  poolReservedOf,
  ROOT,
  SCRATCH_BYTES,
} from "../../src/core/memory/ledger-layout.ts";
import { type Bytes, MiB } from "../../src/core/units.ts";
import { giveBackOf } from "../../src/runtime/host-ledger.ts";
import { hostDirectory, ScratchFile } from "../../src/runtime/scratch-space.ts";
import { FootprintThread, PAGE } from "./footprint-thread.ts";

let scratch = "";
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "waterhole-test-"));
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

const newThread = (pool: number, scale?: number, scratchCapacity?: number): FootprintThread =>
  new FootprintThread(scratch, pool, scale, scratchCapacity);

describe("an instance with room enough", () => {
  test("claims its minimum, follows its profile, and gives everything back", () => {
    const t = newThread(16 * MiB);
    t.run();
    expect(t.told.map((p) => p.kind).slice(0, 2)).toEqual(["started", "reserved"]);
    expect(get(t.view, ROOT, F_RESERVATION)).toBe(MiB);
    t.moveTo(400);
    expect(t.view.f64[PAGES_IN_USE]).toBe((4 * MiB) / PAGE);
    t.moveTo(800);
    expect(t.end()).toMatchObject({ peak: 8 * MiB, spilled: 0, error: null });
    expect(checkIdle(t.view)).toEqual([]);
    expect(t.view.f64[PAGES_PEAK]).toBe((8 * MiB) / PAGE);
  });

  test("memory scaled down: accounts in emulated bytes, pages for a thousandth", () => {
    const t = newThread(16 * 1024 * MiB, 1024);
    t.run({ peak: (8 * 1024 * MiB) as Bytes });
    t.moveTo(800);
    expect(t.end()).toMatchObject({ peak: 8 * 1024 * MiB, error: null });
    expect(t.view.f64[PAGES_PEAK]! * PAGE).toBe(8 * MiB);
  });

  test("its pool counts its limit while it runs (admission 7.2)", () => {
    const t = newThread(64 * MiB);
    t.run({ memLimit: (64 * MiB) as Bytes });
    expect(poolReservedOf(t.view, 1)).toBe(64 * MiB);
    t.moveTo(800);
    expect(poolReservedOf(t.view, 1)).toBe(0);
  });

  test("a saw lets go of memory in between", () => {
    const t = newThread(16 * MiB);
    t.run({}, { profile: "saw" });
    t.moveTo(100);
    const high = t.view.f64[PAGES_IN_USE]!;
    t.moveTo(200);
    expect(t.view.f64[PAGES_IN_USE]).toBeLessThan(high);
    expect(get(t.view, ROOT, F_RESERVATION)).toBe(MiB);
    t.moveTo(800);
    expect(t.end()).toMatchObject({ peak: 8 * MiB, error: null });
  });
});

describe("O3 a refused reservation is the trigger to spill", () => {
  test.each([
    { pool: 8 * MiB + 1, spills: false },
    { pool: 8 * MiB, spills: false },
    { pool: 8 * MiB - 1, spills: true },
  ])("peak 8 MB in a pool of $pool: spills = $spills", ({ pool, spills }) => {
    const t = newThread(pool);
    t.run();
    t.moveTo(800);
    expect(t.spilled() > 0).toBe(spills);
    expect(t.end()).toMatchObject({ error: null, spilled: t.spilled() });
    expect(checkIdle(t.view)).toEqual([]);
  });

  test("whole pages go to one file, come back, are checked, and the file is gone", () => {
    const t = newThread(3 * MiB);
    t.run();
    t.moveTo(799);
    expect(t.files()).toHaveLength(1);
    expect(t.view.f64[SCRATCH_BYTES]).toBe(t.spilled());
    expect(t.spilled()).toBeGreaterThanOrEqual(4 * MiB);
    t.moveTo(800);
    expect(t.end()).toMatchObject({ error: null });
    expect(t.files()).toEqual([]);
    expect(checkIdle(t.view)).toEqual([]);
  });

  test("I19 the minimum suffices: with every growth refused it still finishes", () => {
    const t = newThread(16 * MiB);
    t.denied = () => true;
    t.run();
    t.moveTo(800);
    expect(t.end()).toMatchObject({ error: null, peak: MiB });
    expect(t.spilled()).toBeGreaterThanOrEqual(7 * MiB);
    expect(checkIdle(t.view)).toEqual([]);
  });

  test("S11 a byte that has changed on disk ends the query with code 118", () => {
    const t = newThread(3 * MiB);
    t.run();
    t.moveTo(799);
    const file = join(scratch, t.files()[0]!);
    const content = readFileSync(file);
    content[5000]! ^= 1;
    writeFileSync(file, content);
    t.moveTo(800);
    expect(t.end()?.error?.code).toBe(118);
    expect(t.end()?.error?.text).toBe(
      `Error reading 4096 bytes from scratch file '${file}' on backend exec-1:27000 at offset 4096: verification of read data failed.`,
    );
    expect(checkIdle(t.view)).toEqual([]);
  });
});

test("S11 a read that comes to the file's end too soon ends the query with code 102", () => {
  const t = newThread(3 * MiB);
  t.run();
  t.moveTo(799);
  const read = vi.spyOn(ScratchFile.prototype, "read").mockReturnValueOnce(100);
  t.moveTo(800);
  read.mockRestore();
  expect(t.end()?.error?.code).toBe(102);
  expect(t.end()?.error?.text).toMatch(
    /^Error reading \d+ bytes from scratch file '.+\.scratch' on backend exec-1:27000 at offset \d+: could only read 100 bytes$/,
  );
  expect(checkIdle(t.view)).toEqual([]);
});

describe("what can't go on fails with the product's text", () => {
  test("R17 code 106 when the minimum is not there", () => {
    const t = newThread(MiB);
    t.run({ minReservation: (MiB + 1) as Bytes });
    expect(t.end()?.error?.code).toBe(106);
    expect(t.end()?.error?.text).toMatch(
      /^Failed to get minimum memory reservation of 1\.00 MB on daemon exec-1:27000 for query .* due to following error: Failed to increase reservation by 1\.00 MB .*Memory is likely oversubscribed\. Reducing query concurrency or configuring admission control may help avoid this error\.$/s,
    );
    expect(checkIdle(t.view)).toEqual([]);
  });

  test("code 7 when it can't spill", () => {
    const t = newThread(3 * MiB);
    t.run({}, { spillable: false });
    t.moveTo(800);
    expect(t.end()?.error).toMatchObject({ code: 7 });
    expect(t.end()?.error?.text).toContain("Memory limit exceeded: Could not allocate memory");
    expect(checkIdle(t.view)).toEqual([]);
  });

  test("S7 SCRATCH_LIMIT = 0 says so", () => {
    const t = newThread(3 * MiB);
    t.run({}, { scratchLimit: 0 });
    t.moveTo(800);
    expect(t.end()?.error?.text).toContain("Could not free memory by spilling to disk: scratch_limit is 0");
  });

  test("S5 code 90 when the scratch limit is reached", () => {
    const t = newThread(3 * MiB);
    t.run({}, { scratchLimit: MiB });
    t.moveTo(800);
    expect(t.end()?.error).toEqual({
      code: 90,
      text: "Scratch space limit of 1048576 bytes exceeded for query while spilling data to disk on backend exec-1:27000.",
    });
    expect(t.files()).toEqual([]);
    expect(checkIdle(t.view)).toEqual([]);
  });
});

describe("S5 the host's scratch space is full", () => {
  test("code 101 with the product's text", () => {
    const t = newThread(3 * MiB, 1, 2 * MiB);
    t.run();
    t.moveTo(800);
    expect(t.end()?.error).toMatchObject({ code: 101 });
    const directory = hostDirectory(scratch, "exec-1:27000");
    expect(t.end()?.error?.text).toBe(
      `Could not create files in any configured scratch directories (--scratch_dirs=${directory}) on backend 'exec-1:27000'. 1.88 MB of scratch is currently in use by this Impala Daemon (1.88 MB by this query). See logs for previous errors that may have prevented creating or writing scratch files. The following directories were at capacity: ${directory}`,
    );
    expect(checkIdle(t.view)).toEqual([]);
  });
});

describe("ends that come from outside", () => {
  test("cancelled while it spills: nothing is left", () => {
    const t = newThread(3 * MiB);
    const run = t.run();
    t.moveTo(700);
    run.cancel();
    expect(t.end()).toMatchObject({ error: { text: "Cancelled" } });
    expect(t.files()).toEqual([]);
    expect(checkIdle(t.view)).toEqual([]);
    const before = t.told.length;
    t.moveTo(5000);
    expect(t.told).toHaveLength(before);
  });

  test("held: it stands still past its end, with all that it has, until it is cancelled", () => {
    const t = newThread(16 * MiB);
    const run = t.run();
    t.moveTo(400);
    run.hold();
    const [told, pages] = [t.told.length, t.view.f64[PAGES_IN_USE]];
    t.moveTo(5000);
    expect(t.told).toHaveLength(told);
    expect(t.view.f64[PAGES_IN_USE]).toBe(pages);
    run.cancel();
    expect(t.end()).toMatchObject({ error: { text: "Cancelled" } });
    expect(checkIdle(t.view)).toEqual([]);
  });

  test("held before its first step: it has its minimum, and no more", () => {
    const t = newThread(16 * MiB);
    const run = t.run();
    run.hold();
    t.moveTo(5000);
    expect(get(t.view, ROOT, F_RESERVATION)).toBe(MiB);
    run.cancel();
    expect(checkIdle(t.view)).toEqual([]);
  });

  test("I23 abandoned: it gives nothing back itself, and the supervisor finds it all", () => {
    const t = newThread(3 * MiB);
    t.run({ peak: MiB as Bytes, minReservation: 0 as Bytes });
    const run = t.run();
    t.moveTo(700);
    run.abandon();
    t.moveTo(5000);
    expect(checkIdle(t.view)).not.toEqual([]);
    t.ledger.run(giveBackOf, t.lockId);
    expect(checkIdle(t.view)).toEqual([]);
  });

  test("an instance that was sent to an earlier life of its host does not start", () => {
    const t = newThread(3 * MiB);
    t.ledger.nextEpoch();
    t.run();
    expect([t.told, t.numEnded]).toEqual([[], 1]);
    expect(checkIdle(t.view)).toEqual([]);
  });

  test("a ledger without a free record refuses with a remedy", () => {
    const t = newThread(64 * MiB);
    for (let i = 0; i < 6; i++) t.run({ peak: MiB as Bytes });
    expect(t.end()?.error?.text).toContain("has no room for another query");
    t.moveTo(800);
    expect(checkIdle(t.view)).toEqual([]);
  });
});
