/** Scratch directories, ranges, limits and bad disks (memory 5, I12). */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { NO_LOCK } from "../../../src/core/memory/buffer-allocator.ts";
import type { DiskRange, Failure } from "../../../src/core/memory/page-store.ts";
import { KiB, MiB } from "../../../src/core/units.ts";
import { FileGroup, NODE_FILES, type ScratchFiles } from "../../../src/runtime/scratch/file-group.ts";
import { brokenScratchRules } from "../../../src/runtime/scratch/scratch-checks.ts";
import {
  parseScratchDirectories,
  ScratchBooks,
  type ScratchDirectory,
  scratchBookWords,
} from "../../../src/runtime/scratch/scratch-directories.ts";
import { fastestCompression, ScratchPageStore } from "../../../src/runtime/scratch/scratch-page-store.ts";

const NO_LIMIT = Number.POSITIVE_INFINITY;
const folder = mkdtempSync(join(tmpdir(), "waterhole-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const error = (code: string) => Object.assign(new Error(`${code}: said the disk`), { code });

/** Real files whose writes to the directories in `bad` fail with these codes. */
const failing = (bad: Readonly<Record<string, string>>): ScratchFiles => {
  const directoryOf = new Map<number, string>();
  return {
    ...NODE_FILES,
    open(path) {
      const fd = NODE_FILES.open(path);
      directoryOf.set(fd, path.slice(0, path.lastIndexOf("/")));
      return fd;
    },
    write(fd, from, offset) {
      const code = bad[directoryOf.get(fd)!];
      if (code !== undefined) throw error(code);
      return NODE_FILES.write(fd, from, offset);
    },
  };
};

function group(
  o: {
    directories?: readonly Partial<ScratchDirectory>[];
    scratchLimit?: number;
    files?: ScratchFiles;
    books?: ScratchBooks;
    slot?: number;
  } = {},
) {
  const directories = (o.directories ?? [{}]).map((d) => ({ path: folder, limit: NO_LIMIT, priority: 0, ...d }));
  const books =
    o.books ?? new ScratchBooks(directories, new Float64Array(scratchBookWords(directories.length, 2)), NO_LOCK);
  const made = new FileGroup({
    books,
    slot: o.slot ?? 0,
    queryId: "1:2",
    backend: "exec-1:27000",
    scratchLimit: o.scratchLimit ?? -1,
    chance: () => 0,
    ...(o.files === undefined ? {} : { files: o.files }),
  });
  return { group: made, books };
}

const page = (bytes: number, value = 1) => new Uint8Array(bytes).fill(value);
const rangeOf = (r: DiskRange | Failure): DiskRange => {
  if ("code" in r) throw new Error(r.text);
  return r;
};
const codeOf = (r: DiskRange | Failure) => ("code" in r ? r.code : 0);

describe("S1 --scratch_dirs", () => {
  test("path, limit, priority; empty, 0 and -1 are no limit", () => {
    expect(parseScratchDirectories("/a, /b:200mb ,/c:0:3,/d:-1,/e::1")).toEqual([
      { path: "/a", limit: NO_LIMIT, priority: Number.MAX_SAFE_INTEGER },
      { path: "/b", limit: 200 * MiB, priority: Number.MAX_SAFE_INTEGER },
      { path: "/c", limit: NO_LIMIT, priority: 3 },
      { path: "/d", limit: NO_LIMIT, priority: Number.MAX_SAFE_INTEGER },
      { path: "/e", limit: NO_LIMIT, priority: 1 },
    ]);
  });

  test.each(["/a:lots", "/a:1mb:first", "/a:1mb:1:2", ":1mb"])("%s is refused with the entry's name", (text) => {
    expect(() => parseScratchDirectories(text)).toThrow(`scratch directory "${text}"`);
  });
});

describe("S4, S5, S6 ranges", () => {
  test.each([
    [1, 4096],
    [4096, 4096],
    [4097, 8192],
    [65_536, 65_536],
    [65_537, 131_072],
  ])("%i bytes take a range of %i", (bytes, length) => {
    using g = new Closing(group().group);
    expect(rangeOf(g.group.write(page(bytes), bytes))).toMatchObject({ length, stored: bytes });
  });

  test("a freed range serves the next write of its size, last freed first, and only that size", () => {
    const { group: g, books } = group();
    const [a, b] = [1, 2].map((v) => rangeOf(g.write(page(8192, v), 8192)));
    g.free(a!);
    g.free(b!);
    expect(rangeOf(g.write(page(4096), 4096)).offset).toBe(16_384);
    expect(rangeOf(g.write(page(8192), 8192)).offset).toBe(b!.offset);
    expect(rangeOf(g.write(page(8192), 8192)).offset).toBe(a!.offset);
    expect(g.snapshot()).toEqual({ charged: 20_480, fileBytes: 20_480, recycled: 0 });
    g.close();
    expect([books.hostBytes(), books.queryBytes(0), books.directoryBytes(0)]).toEqual([0, 0, 0]);
  });

  test("what was written comes back, and nothing is ever visible in the directory (S12)", () => {
    using g = new Closing(group().group);
    const range = rangeOf(g.group.write(page(5000, 7), 5000));
    const into = new Uint8Array(5000);
    expect(g.group.read(range, into)).toBeNull();
    expect(into).toEqual(page(5000, 7));
    expect(readdirSync(folder)).toEqual([]);
  });

  test("by priority, equal ones in turns", () => {
    const directories = [{ priority: 2 }, { priority: 1 }, { priority: 1 }, { priority: 2 }];
    using g = new Closing(group({ directories: directories.map((d) => ({ ...d, limit: 8192 })) }).group);
    const order = Array.from({ length: 8 }, () => rangeOf(g.group.write(page(4096), 4096)).file);
    expect(order).toEqual([1, 2, 1, 2, 0, 3, 0, 3]);
  });
});

describe("S7 SCRATCH_LIMIT, code 90", () => {
  test.each([
    [8191, 1, 90],
    [8192, 2, 90],
    [8193, 2, 90],
    [0, 0, 90],
    [-1, 5, 0],
  ])("limit %i lets %i ranges of 4 KB through, then %i", (scratchLimit, fit, code) => {
    using g = new Closing(group({ scratchLimit }).group);
    for (let i = 0; i < fit; i++) expect(codeOf(g.group.write(page(4096), 4096))).toBe(0);
    expect(codeOf(g.group.write(page(4096), 4096))).toBe(code);
  });

  test("a recycled range needs no limit", () => {
    using g = new Closing(group({ scratchLimit: 4096 }).group);
    g.group.free(rangeOf(g.group.write(page(4096), 4096)));
    expect(codeOf(g.group.write(page(4096), 4096))).toBe(0);
  });

  test("the text is the product's", () => {
    using g = new Closing(group({ scratchLimit: 0 }).group);
    expect(g.group.write(page(1), 1)).toEqual({
      code: 90,
      text: "Scratch space limit of 0 bytes exceeded for query while spilling data to disk on backend exec-1:27000.",
    });
  });
});

describe("S5 (5), S9, S10: full and failing disks", () => {
  test("directories at their limit, shared by two queries: 101 names them", () => {
    const { group: first, books } = group({ directories: [{ limit: 8192 }] });
    const { group: second } = group({ directories: [{ limit: 8192 }], books, slot: 1 });
    rangeOf(first.write(page(4096), 4096));
    rangeOf(second.write(page(4096), 4096));
    const refused = second.write(page(4096), 4096);
    expect(refused).toMatchObject({ code: 101 });
    const { text } = refused as Failure;
    expect(text).toBe(
      `Could not create files in any configured scratch directories (--scratch_dirs=${folder}) on backend 'exec-1:27000'. 8.00 KB of scratch is currently in use by this Impala Daemon (4.00 KB by this query). See logs for previous errors that may have prevented creating or writing scratch files. The following directories were at capacity: ${folder}`,
    );
    first.close();
    expect(codeOf(second.write(page(4096), 4096))).toBe(0);
    second.close();
    expect(books.hostBytes()).toBe(0);
  });

  const two = () => [mkdtempSync(join(folder, "a-")), mkdtempSync(join(folder, "b-"))] as const;

  test.each(["ENOSPC", "EIO"])(
    "%s on one of two directories: the other one takes the write, and all later ones",
    (code) => {
      const [a, b] = two();
      using g = new Closing(group({ directories: [{ path: a }, { path: b }], files: failing({ [a]: code }) }).group);
      expect([1, 2, 3].map(() => rangeOf(g.group.write(page(4096), 4096)).file)).toEqual([1, 1, 1]);
      expect(g.group.activeDirectories).toBe(1);
      expect(g.group.diskIsFaulty).toBe(false);
    },
  );

  test.each([
    ["EIO", "EACCES", true],
    ["EIO", "ENOSPC", false],
    ["ENOSPC", "ENOSPC", false],
  ])("%s and %s on both: 101 with both errors; the disk is faulty = %s (S10)", (first, second, isFaulty) => {
    const [a, b] = two();
    const files = failing({ [a]: first, [b]: second });
    using g = new Closing(group({ directories: [{ path: a }, { path: b }], files }).group);
    const refused = g.group.write(page(4096), 4096) as Failure;
    expect(refused.code).toBe(101);
    expect(refused.text).toContain(`${first}: said the disk`);
    expect(refused.text).toContain(`${second}: said the disk`);
    expect(g.group.diskIsFaulty).toBe(isFaulty);
  });

  test("another query may still try the directory (S9)", () => {
    const [a] = two();
    const bad = failing({ [a]: "EIO" });
    const { group: first, books } = group({ directories: [{ path: a }], files: bad });
    expect(codeOf(first.write(page(1), 1))).toBe(101);
    const { group: second } = group({ directories: [{ path: a }], books, slot: 1 });
    expect(codeOf(second.write(page(1), 1))).toBe(0);
    first.close();
    second.close();
  });

  test("a directory that is not there", () => {
    using g = new Closing(group({ directories: [{ path: join(folder, "gone") }] }).group);
    expect(codeOf(g.group.write(page(1), 1))).toBe(101);
    expect(g.group.diskIsFaulty).toBe(true);
  });
});

describe("S11 reading back", () => {
  test("102: the file ends before the range does", () => {
    const short: ScratchFiles = {
      ...NODE_FILES,
      read: (fd, into, offset) => (offset < 100 ? NODE_FILES.read(fd, into.subarray(0, 100), offset) : 0),
    };
    using g = new Closing(group({ files: short }).group);
    const range = rangeOf(g.group.write(page(4096), 4096));
    const failure = g.group.read(range, new Uint8Array(4096));
    expect(failure?.code).toBe(102);
    expect(failure?.text).toMatch(
      /^Error reading 4096 bytes from scratch file '\/.+' on backend exec-1:27000 at offset 0: could only read 100 bytes$/,
    );
  });
});

describe.each(["brotli", fastestCompression()] as const)("S8 compression, %s", (compression) => {
  const memory = () => new Uint8Array(new SharedArrayBuffer(256 * KiB));
  const roundTrip = (fill: (m: Uint8Array) => void) => {
    const m = memory();
    fill(m);
    const { group: g } = group();
    const store = new ScratchPageStore(g, m, compression, "eager");
    store.startWrite(1, 0, 64 * KiB);
    const done = store.takeWritten()!;
    const before = m.slice(0, 64 * KiB);
    m.fill(0);
    store.startRead(1, done.range!, 128 * KiB, 64 * KiB);
    const failure = store.finishRead(1);
    const same = Buffer.compare(m.slice(128 * KiB, 192 * KiB), before) === 0;
    const { counters } = g;
    g.close();
    return { failure, same, stored: done.range!.stored, counters };
  };

  test("a page that packs well is written packed and comes back", () => {
    const r = roundTrip((m) => m.fill(3));
    expect(r).toMatchObject({ failure: null, same: true });
    expect(r.stored).toBeLessThan(4096);
    expect(r.counters).toMatchObject({ uncompressedScratchBytesWritten: 64 * KiB, scratchBytesWritten: r.stored });
  });

  test("one that does not is written as it is", () => {
    const r = roundTrip((m) => {
      let x = 1;
      for (let i = 0; i < 64 * KiB; i++) {
        x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
        m[i] = x >>> 24;
      }
    });
    expect(r).toMatchObject({ failure: null, same: true, stored: 64 * KiB });
  });
});

describe("I12 is seen when broken", () => {
  test.each([
    [[{ offset: 0 }, { offset: 4096 }], -1, ""],
    [[{ offset: 0 }, { offset: 4095 }], -1, "ranges overlap at 4095"],
    [[{ offset: 0 }, { offset: 4096 }, { offset: 8192 }], -1, "live"],
    [[{ offset: 0, stored: 4097 }], -1, "4097 bytes in a range of 4096"],
    [[], 8191, "over SCRATCH_LIMIT"],
    [[], 8192, ""],
  ])("%o within %i: %s", (live, limit, complaint) => {
    using g = new Closing(group().group);
    for (let i = 0; i < 2; i++) g.group.write(page(4096), 4096);
    const ranges = live.map((r) => ({ file: 0, length: 4096, stored: 4096, ...r }));
    const found = brokenScratchRules(g.group, ranges, limit).join("\n");
    expect(found === "" ? complaint === "" : complaint !== "" && found.includes(complaint)).toBe(true);
  });
});

describe("I23 the books of a query that is gone", () => {
  test("give back what it had, per directory, and nobody else's", () => {
    const directories = [0, 1].map((priority) => ({ path: "/x", limit: 100, priority }));
    const books = new ScratchBooks(directories, new Float64Array(scratchBookWords(2, 2)), NO_LOCK);
    for (const [query, directory, bytes] of [
      [0, 0, 40],
      [1, 0, 60],
      [1, 1, 7],
    ] as const)
      expect(books.tryCharge(query, directory, bytes)).toBe(true);
    expect(books.tryCharge(0, 0, 1)).toBe(false);
    expect(books.refundAll(1)).toBe(67);
    expect([books.directoryBytes(0), books.directoryBytes(1), books.queryBytes(0), books.hostBytes()]).toEqual([
      40, 0, 40, 40,
    ]);
  });
});

class Closing implements Disposable {
  readonly group: FileGroup;
  constructor(made: FileGroup) {
    this.group = made;
  }
  [Symbol.dispose](): void {
    this.group.close();
  }
}
