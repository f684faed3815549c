/** The ways in which an operator ends badly (memory 8), each with its code, and nothing left behind (I23, I24). */
import { describe, expect, test } from "vitest";
import type { OperatorSpec } from "../../../src/config/scenario.ts";
import { NO_SCRATCH_LIMIT, SPILLING_DISABLED } from "../../../src/core/memory/refusal-text.ts";
import { KiB, MiB } from "../../../src/core/units.ts";
import type { OperatorEvent } from "../../../src/runtime/operators/operator-context.ts";
import { MAX_PARTITION_DEPTH } from "../../../src/runtime/operators/partitions.ts";
import { NODE_FILES, type ScratchFiles } from "../../../src/runtime/scratch/file-group.ts";
import { limits, type RunOptions, rowsOf, TestHost, type TestHostOptions } from "./operator-bench.ts";

const NOTHING = { reservation: 0, child: 0, inUse: 0, clean: 0, scratch: 0, files: 0 };
const PAGE = 8 * KiB;
const uniform = { kind: "uniform", distinct: 20_000 } as const;
const SPECS: Readonly<Record<OperatorSpec["kind"], OperatorSpec>> = {
  sort: { kind: "sort", input: rowsOf(30_000, uniform), limits: limits(PAGE) },
  aggregate: { kind: "aggregate", input: rowsOf(60_000, uniform), preAggregate: false, limits: limits(PAGE) },
  join: { kind: "join", build: rowsOf(20_000, uniform), probe: rowsOf(20_000, uniform), limits: limits(PAGE) },
};
const KINDS = ["sort", "aggregate", "join"] as const;

function failureOf(spec: OperatorSpec, o: RunOptions = {}, host: Partial<TestHostOptions> = {}) {
  using h = new TestHost({ poolBytes: 16 * MiB, ...host });
  const outcome = h.run(spec, { denial: 1, ...o });
  expect(h.leftBehind()).toEqual(NOTHING);
  return outcome.kind === "failed" ? outcome.failure : null;
}

describe("O2 spilling is not allowed, code 7", () => {
  test.each(KINDS.flatMap((kind) => [NO_SCRATCH_LIMIT, SPILLING_DISABLED].map((text) => [kind, text] as const)))(
    "%s: %s",
    (kind, text) => {
      const spillingForbidden = { code: 7, text };
      expect(failureOf(SPECS[kind], { spillingForbidden })).toEqual(spillingForbidden);
    },
  );

  test.each(KINDS)("%s with enough memory never asks", (kind) => {
    const o = { denial: 0, noScratch: true, spillingForbidden: { code: 7, text: NO_SCRATCH_LIMIT } };
    expect(failureOf(SPECS[kind], o)).toBeNull();
  });

  test("a streaming aggregation does not spill, so it does not ask; the one behind it does", () => {
    const spec: OperatorSpec = {
      ...(SPECS.aggregate as Extract<OperatorSpec, { kind: "aggregate" }>),
      preAggregate: true,
    };
    expect(failureOf(spec, { spillingForbidden: { code: 7, text: NO_SCRATCH_LIMIT } })?.code).toBe(7);
  });
});

describe("scratch: 90, 101, 102, 118", () => {
  test.each(KINDS)("90: %s over SCRATCH_LIMIT", (kind) => {
    expect(failureOf(SPECS[kind], { scratchLimit: 20 * PAGE })?.code).toBe(90);
  });

  test.each(KINDS)("101: %s on directories at their limits", (kind) => {
    const directories = [{ limit: 4 * PAGE }, { limit: 3 * PAGE }];
    expect(failureOf(SPECS[kind], {}, { directories })?.code).toBe(101);
  });

  const broken = (after: number, what: "write" | "read" | "flip"): ScratchFiles => {
    let calls = 0;
    const isDue = () => ++calls > after;
    return {
      ...NODE_FILES,
      write(fd, from, offset) {
        if (what === "write" && isDue()) throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
        return NODE_FILES.write(fd, from, offset);
      },
      read(fd, into, offset) {
        const isBroken = what !== "write" && isDue();
        if (isBroken && what === "read") return 0;
        const got = NODE_FILES.read(fd, into, offset);
        if (isBroken) into[7]! ^= 1;
        return got;
      },
    };
  };

  test.each(KINDS.flatMap((kind) => [0, 1, 13].map((after) => [kind, after] as const)))(
    "101: %s when the disk is full after %i writes",
    (kind, after) => {
      const failure = failureOf(SPECS[kind], {}, { files: broken(after, "write") });
      expect(failure?.code).toBe(101);
      expect(failure?.text).toContain("no space left");
    },
  );

  test.each(KINDS.flatMap((kind) => [0, 9].map((after) => [kind, after] as const)))(
    "102 and 118: %s when a page can't be read back after %i good ones",
    (kind, after) => {
      expect(failureOf(SPECS[kind], {}, { cleanBytes: 0, files: broken(after, "read") })?.code).toBe(102);
      const flipped = failureOf(SPECS[kind], {}, { cleanBytes: 0, files: broken(after, "flip") });
      expect(flipped?.code).toBe(118);
      expect(flipped?.text).toMatch(
        /^Error reading 8192 bytes from scratch file '\/.+' on backend exec-1:27000 at offset \d+: verification of read data failed\.$/,
      );
    },
  );

  test("a full directory beside one with room: the query goes on", () => {
    const directories = [{ limit: 4 * PAGE }, {}];
    expect(failureOf(SPECS.sort, {}, { directories })).toBeNull();
  });
});

describe("R19 a spillable buffer below --min_buffer_size", () => {
  test.each([
    [PAGE / 2, null],
    [PAGE, null],
    [PAGE * 2, 2],
  ])("pages of 8 KB on a pool whose smallest buffer has %i bytes", (minBufferBytes, code) => {
    const failure = failureOf(SPECS.sort, { denial: 0 }, { minBufferBytes });
    expect(failure?.code ?? null).toBe(code);
    if (code !== null)
      expect(failure?.text).toBe(
        "Spillable buffer size for node 1 of 8192 bytes is less than the minimum buffer pool buffer size of 16384 bytes",
      );
  });
});

describe("104 a row no page can hold", () => {
  const row = (bytes: number) => rowsOf(50, { kind: "unique" }, bytes);
  test.each([
    ["join", 4 * PAGE, null],
    ["join", 4 * PAGE + 1, 104],
    ["sort", 4 * PAGE, null],
    ["sort", 4 * PAGE + 1, 104],
  ] as const)("%s, a row of %i bytes, MAX_ROW_SIZE 32 KB: %s", (kind, bytes, code) => {
    const l = limits(PAGE, 4 * PAGE);
    const input = row(bytes - 8);
    const spec: OperatorSpec =
      kind === "sort"
        ? { kind, input, limits: l }
        : { kind, build: input, probe: rowsOf(50, { kind: "unique" }), limits: l };
    const failure = failureOf(spec, { denial: 0.5 });
    expect(failure?.code ?? null).toBe(code);
    if (code !== null)
      expect(failure?.text).toBe(
        `Row of size 32.00 KB could not be materialized by ${kind === "sort" ? "SORT_NODE" : "HASH_JOIN_NODE"} (id=1). Increase the max_row_size query option (currently 32.00 KB) to process larger rows.`,
      );
  });

  test("the text has MAX_ROW_SIZE as it was set, not the page that it became, and a sort's variable part alone", () => {
    const input = rowsOf(50, { kind: "unique" }, 6 * PAGE, 6 * PAGE + 64);
    const failure = failureOf({ kind: "sort", input, limits: limits(PAGE, 3 * PAGE) });
    expect(failure?.code).toBe(104);
    expect(failure?.text).toMatch(
      /^Row of size 48\.\d\d KB could not be materialized by SORT_NODE \(id=1\)\. Increase the max_row_size query option \(currently 24\.00 KB\) to process larger rows\.$/,
    );
  });
});

describe("O22 skew: disk does not help against one key", () => {
  const join = (share: number): OperatorSpec => ({
    kind: "join",
    build: rowsOf(20_000, { kind: "hot", share, distinct: 20_000 }),
    probe: rowsOf(2000, { kind: "uniform", distinct: 20_000 }),
    limits: limits(PAGE),
  });

  test("76: repartitioning left all rows of one key together", () => {
    const events: OperatorEvent[] = [];
    const failure = failureOf(join(1), { note: (e) => events.push(e) });
    expect(failure?.code).toBe(76);
    const lines = failure?.text.split("\n") ?? [];
    expect(lines.slice(0, 2)).toEqual([
      "Cannot perform hash join at node with id 1. Repartitioning did not reduce the size of a spilled partition. Repartitioning level 1. Number of rows 20000:",
      " Hash partitions: 16:",
    ]);
    expect(lines.filter((line) => line === "    Build Rows: 20000")).toHaveLength(1);
    expect(lines.filter((line) => line === "    Build Rows: 0")).toHaveLength(15);
    expect(lines.at(-1)).toMatch(
      /^<BufferPool::Client> name: HASH_JOIN_NODE \(id=1\) buffers allocated 0 num_pages: \d+ /,
    );
    expect(events.at(-1)).toMatchObject({ kind: "repartitioned", level: 1, rows: 20_000, largest: 20_000 });
  });

  test("a hot key with others goes down until it is alone, then 76; each level shrinks the largest (I22)", () => {
    const largest: { rows: number; largest: number; level: number }[] = [];
    const failure = failureOf(join(0.5), {
      note: (e) => {
        if (e.kind === "repartitioned") largest.push(e);
      },
    });
    expect(failure?.code).toBe(76);
    expect(largest.length).toBeGreaterThan(1);
    for (const r of largest.slice(0, -1)) expect(r.largest).toBeLessThan(r.rows);
    expect(largest.at(-1)!.largest).toBe(largest.at(-1)!.rows);
  });

  test("with room for it there is nothing wrong with the same key", () => {
    expect(failureOf(join(0.5), { denial: 0 })).toBeNull();
  });

  test("grouping has no such trouble: a hot key is one group", () => {
    const spec: OperatorSpec = {
      kind: "aggregate",
      input: rowsOf(40_000, { kind: "hot", share: 0.9, distinct: 20_000 }),
      preAggregate: false,
      limits: limits(PAGE),
    };
    expect(failureOf(spec)).toBeNull();
  });
});

describe("I22 partitions of partitions, 27 and 28", () => {
  const advice = "This could mean there is significant skew in the data or the memory limit is set too low.";
  const textOf = { join: "join at hash join", aggregate: "aggregation at hash aggregation" } as const;
  const codeOf = { join: 27, aggregate: 28 } as const;
  /** A sixteenth of it is more than the minimum. */
  const wide = rowsOf(20_000, { kind: "unique" }, 240);
  const specs: Readonly<Record<"join" | "aggregate", OperatorSpec>> = {
    join: { kind: "join", build: wide, probe: rowsOf(500, { kind: "unique" }), limits: limits(PAGE) },
    aggregate: { kind: "aggregate", input: wide, preAggregate: false, limits: limits(PAGE) },
  };

  test("sixteen levels, as Impala has", () => {
    expect(MAX_PARTITION_DEPTH).toBe(16);
  });

  test.each(["join", "aggregate"] as const)("%s: one level less than it needs is too few", (kind) => {
    const levels: number[] = [];
    const note = (e: OperatorEvent) => void (e.kind === "repartitioned" && levels.push(e.level));
    expect(failureOf(specs[kind], { note })).toBeNull();
    const needed = Math.max(0, ...levels) + 1;
    expect(needed).toBeGreaterThan(1);
    for (const partitionDepth of [needed + 1, needed]) expect(failureOf(specs[kind], { partitionDepth })).toBeNull();
    expect(failureOf(specs[kind], { partitionDepth: needed - 1 })).toEqual({
      code: codeOf[kind],
      text: `Cannot perform ${textOf[kind]} node with id 1. The input data was partitioned the maximum number of ${needed - 1} times. ${advice}`,
    });
  });
});

describe("page-and-demos 4.2: two sorts compete for one host", () => {
  test("the first keeps everything; the second is refused by the root, not by its own limit, and spills", () => {
    const pool = 256;
    using host = new TestHost({ poolBytes: pool * PAGE });
    // 150 pages each; a query may reserve 160.
    const rows = 150 * Math.floor(PAGE / 24);
    const spec: OperatorSpec = { kind: "sort", input: rowsOf(rows, { kind: "unique" }), limits: limits(PAGE) };
    const told: OperatorEvent[][] = [[], []];
    const queries = [0, 1].map((slot) =>
      host.start(spec, { slot, limit: 160 * PAGE, batchRows: 100, note: (e) => told[slot]!.push(e) }),
    );
    const clients: { peak: () => number }[] = [];
    const [a, b] = queries as [(typeof queries)[0], (typeof queries)[0]];
    // A sorts everything in memory and is in the middle of its output while B runs from begin to end.
    for (;;) {
      a.next("go on");
      if (told[0]!.some((e) => e.kind === "runSorted")) break;
    }
    for (let i = 0; i < 10; i++) a.next("go on");
    const outcomes = [b, a].map((query) => {
      for (;;) {
        const step = query.next("go on");
        if (step.done) {
          clients.push({ peak: () => host.peak[0]! });
          return step.value;
        }
      }
    });
    const [second, first] = outcomes;
    expect(first!.counters.scratch!.scratchBytesWritten).toBe(0);
    expect(second!.counters.operator).toMatchObject({ spilledRuns: 2, initialRunsCreated: 2, totalMergesPerformed: 1 });
    expect(second!.counters.scratch!.scratchBytesWritten).toBe(150 * PAGE);
    const refusal = told[1]!.find((e) => e.kind === "refused");
    expect(refusal).toMatchObject({ text: expect.stringContaining('limit for the "Process" ReservationTracker') });
    expect(second!.counters.bufferPool[0]!.peakReservation).toBeLessThan(160 * PAGE);
    expect(second!.kind === "done" && first!.kind === "done" && second!.output).toEqual(
      first!.kind === "done" ? { ...first!.output } : null,
    );
    expect(host.leftBehind()).toEqual(NOTHING);
  });
});
