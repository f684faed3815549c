/**
 * The worked spill trace of one join, number for number (memory 4.7), and the fan-in examples of the sort (O28, O29).
 */
import { describe, expect, test } from "vitest";
import type { OperatorSpec } from "../../../src/config/scenario.ts";
import { reservationLimitFor } from "../../../src/core/memory/reservation-limit.ts";
import { KiB, MiB } from "../../../src/core/units.ts";
import type { OperatorEvent } from "../../../src/runtime/operators/operator-context.ts";
import { limits, outputOf, rowsOf, TestHost } from "./operator-bench.ts";

const PAGE = 2 * MiB;
/**
 * 160 MB of 100-byte rows in whole pages: sixteen partitions of five pages of 20,971 rows. The trace's own 1,677,722 rows
 * are two or three rows more a partition, which would begin a sixth page.
 */
const ROWS = 16 * 5 * Math.floor(PAGE / 100);
const JOIN: OperatorSpec = {
  kind: "join",
  build: rowsOf(ROWS, { kind: "dealt" }, 92),
  probe: rowsOf(ROWS, { kind: "dealt" }, 92),
  limits: limits(PAGE),
};

type Spilled = Extract<OperatorEvent, { kind: "partitionSpilled" }>;

describe("memory 4.7, the worked spill trace", () => {
  const limit = reservationLimitFor(128 * MiB, -1, 0);
  const events: OperatorEvent[] = [];
  /** Pages in memory when an event happened. */
  const pinnedAt: number[] = [];
  using host = new TestHost({ poolBytes: 320 * MiB });
  const tight = host.run(JOIN, {
    limit,
    note: (event) => {
      events.push(event);
      pinnedAt.push(host.clients[0]!.used / PAGE);
    },
  });
  const free = host.run(JOIN, { limit: reservationLimitFor(320 * MiB, -1, 0) });
  const freePeak = host.peak[0]!;
  const at = (kind: OperatorEvent["kind"]) => events.findIndex((e) => e.kind === kind);
  const spilledBefore = (end: number) =>
    events
      .slice(0, end)
      .filter((e): e is Spilled => e.kind === "partitionSpilled")
      .map((e) => e.partition);

  test("MEM_LIMIT 128 MB allows 96 MB: 48 pages", () => {
    expect(limit).toBe(48 * PAGE);
  });

  test("1: the 49th page is refused with 48 pinned", () => {
    expect(events[0]).toMatchObject({ kind: "refused", bytes: PAGE });
    expect(pinnedAt[0]).toBe(48);
  });

  test("2: all are equal, so partition 0 is spilled; two of its three pages leave", () => {
    expect(events[1]).toMatchObject({ kind: "partitionSpilled", partition: 0, bytes: 3 * PAGE });
    expect(pinnedAt[1]).toBe(46);
  });

  test("3: every later refusal comes with 48 pinned again", () => {
    const refusals = events
      .slice(0, at("buildFinished"))
      .flatMap((e, i) => (e.kind === "refused" ? [pinnedAt[i]] : []));
    expect(refusals).toEqual(new Array(8).fill(48));
  });

  test("4: at the end of the build 8 partitions are spilled, 80 MB are pinned", () => {
    const end = at("buildFinished");
    expect(spilledBefore(end)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(events[end]).toMatchObject({ spilled: 8, pinned: 80 * MiB });
  });

  test("5: tables and probe buffers cost 8, 12 and 9 their places, in this order", () => {
    const told = events.slice(at("buildFinished") + 1, at("probeBuffers") + 1).map((e) => {
      if (e.kind === "tableBuilt") return `table ${e.partition} ${e.bytes / MiB} MB`;
      if (e.kind === "partitionSpilled") return `spill ${e.partition} ${e.bytes / MiB} MB`;
      if (e.kind === "probeBuffers") return `probe ${e.spilled} ${e.bytes / MiB} MB`;
      return e.kind === "refused" ? `no ${e.what}` : e.kind;
    });
    expect(told).toEqual([
      "no the hash table of partition 8",
      "spill 8 10 MB",
      "table 9 3 MB",
      "table 10 3 MB",
      "table 11 3 MB",
      "no the hash table of partition 12",
      "spill 12 10 MB",
      "table 13 3 MB",
      "table 14 3 MB",
      "table 15 3 MB",
      "no probe buffers",
      "spill 9 13 MB",
      "probe 11 22 MB",
    ]);
  });

  test("6: SpilledPartitions 11, 110 MB of build rows and the same share of the probe rows, no repartitioning", () => {
    const { operator, scratch, bufferPool } = tight.counters;
    expect(operator).toMatchObject({ spilledPartitions: 11, maxPartitionLevel: 0, numRepartitions: 0 });
    expect(operator.probeRowsPartitioned).toBe((ROWS * 11) / 16);
    expect(scratch!.scratchBytesWritten).toBe(220 * MiB);
    expect(bufferPool[0]!.peakReservation).toBe(96 * MiB);
    const restored = events.filter((e) => e.kind === "partitionRestored").length;
    expect(restored).toBe(11);
  });

  test("with 320 MB the reservation climbs to 208 MB, nothing is written, and the result is the same", () => {
    expect(free.counters.scratch!.scratchBytesWritten).toBe(0);
    expect(freePeak).toBe(208 * MiB);
    expect(outputOf(tight)).toEqual(outputOf(free));
    expect(outputOf(free).rows).toBe(ROWS);
  });
});

describe("O28, O29 fan-in", () => {
  const PAGE_BYTES = 4 * KiB;
  /** Variable rows whose data fills pages much faster than their tuples: runs end when a data page is refused. */
  const merges = (pages: number, runs: number) => {
    using host = new TestHost({ poolBytes: 4 * MiB });
    // A run of `pages` pages: one of tuples, one set aside for laying in order, the rest of data.
    const rowsPerRun = (pages - 2) * 5;
    const spec: OperatorSpec = {
      kind: "sort",
      input: rowsOf(rowsPerRun * runs, { kind: "unique" }, 700, 701),
      limits: limits(PAGE_BYTES),
    };
    const inputs: number[] = [];
    const outcome = host.run(spec, {
      limit: pages * PAGE_BYTES,
      note: (e) => {
        if (e.kind === "runsMerged") inputs.push(e.inputs);
      },
    });
    expect(outputOf(outcome).misplaced).toBe(0);
    return { inputs, counters: outcome.counters.operator };
  };

  test("7 runs with 6 pages: 2 + 2 + 2 + 2, then 3", () => {
    const { inputs, counters } = merges(6, 7);
    expect(counters).toMatchObject({ initialRunsCreated: 7, totalMergesPerformed: 5, spilledRuns: 11 });
    expect(inputs).toEqual([2, 2, 2, 2, 3]);
  });

  test("7 runs with 12 pages: 2, then 6", () => {
    const { inputs, counters } = merges(12, 7);
    expect(counters).toMatchObject({ initialRunsCreated: 7, totalMergesPerformed: 2, spilledRuns: 8 });
    expect(inputs).toEqual([2, 6]);
  });
});

describe("O27 and page-and-demos 4.2", () => {
  test("one run that fits never leaves memory", () => {
    using host = new TestHost({ poolBytes: 64 * MiB });
    const input = rowsOf(100_000, { kind: "unique" });
    const outcome = host.run({ kind: "sort", input, limits: limits(64 * KiB) });
    expect(outcome.counters.operator).toMatchObject({ initialRunsCreated: 1, spilledRuns: 0, totalMergesPerformed: 0 });
    expect(outcome.counters.scratch!.scratchWrites).toBe(0);
  });
});
