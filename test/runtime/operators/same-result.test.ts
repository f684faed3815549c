/**
 * The strongest check of the operators: whatever is refused, the result is the same (I21), the planned minimum is
 * enough (I19), levels stay in bounds (I22), and nothing stays behind (I23, I24).
 */
import { describe, expect, test } from "vitest";
import type { KeySpec, OperatorSpec, RowsSpec } from "../../../src/config/scenario.ts";
import { KiB, MiB } from "../../../src/core/units.ts";
import { plannedClients } from "../../../src/runtime/operators/run-operator.ts";
import { fastestCompression } from "../../../src/runtime/scratch/scratch-page-store.ts";
import { seeded } from "../../core/memory/simulated-store.ts";
import { limits, outputOf, rowsOf, TestHost } from "./operator-bench.ts";

const SEEDS = 208;
const DENIALS = [0, 0.1, 0.5, 1];
const NOTHING = { reservation: 0, child: 0, inUse: 0, clean: 0, scratch: 0, files: 0 };

/** A random operator over a few thousand rows, with pages small enough that it has to spill when refused. */
function operatorFor(seed: number): OperatorSpec {
  const chance = seeded(seed);
  const upTo = (n: number) => Math.floor(chance() * n);
  const pick = <T>(from: readonly T[]): T => from[upTo(from.length)]!;
  const bufferSize = pick([4, 8, 16]) * KiB;
  const maxRow = pick([bufferSize, bufferSize * 2, bufferSize * 4]);
  const rows = (most: number, keys: KeySpec): RowsSpec => {
    const min = pick([0, 4, 8, 16, 24, 92, 200]);
    const max = pick([min, min, min + 40, maxRow - 64]);
    return rowsOf(200 + upTo(max > 1000 ? most / 8 : most), keys, min, max);
  };
  const keys = (): KeySpec =>
    pick<KeySpec>([
      { kind: "uniform", distinct: 1 + upTo(4000) },
      { kind: "zipf", distinct: 3000, exponent: pick([0.5, 1, 1.3]) },
      { kind: "sorted" },
      { kind: "unique" },
      { kind: "hot", share: 0.3, distinct: 2000 },
    ]);
  const common = { limits: limits(bufferSize, maxRow) };
  switch (seed % 4) {
    case 0:
      return { kind: "sort", input: rows(6000, keys()), ...common };
    case 1:
      return { kind: "aggregate", input: rows(12000, keys()), preAggregate: false, ...common };
    case 2:
      return { kind: "aggregate", input: rows(12000, keys()), preAggregate: true, ...common };
    default:
      // One key on the build side must fit alone (code 76 else), so the hot one is on the probe side only.
      return {
        kind: "join",
        build: rows(5000, pick<KeySpec>([{ kind: "unique" }, { kind: "uniform", distinct: 3000 }])),
        probe: rows(6000, keys()),
        ...common,
      };
  }
}

describe("I19, I21, I22, I23: refusals change the work, not the result", () => {
  test.each(Array.from({ length: SEEDS }, (_, seed) => [seed]))("seed %i", (seed) => {
    using host = new TestHost({ poolBytes: 32 * MiB, cleanBytes: seed % 3 === 0 ? 64 * KiB : 0 });
    const spec = operatorFor(seed);
    const minimum = plannedClients(spec).map((c) => c.minReservation);
    const outputs = DENIALS.map((denial) => {
      const outcome = host.run(spec, { seed, denial, batchRows: 1 + (seed % 257) });
      expect(host.leftBehind(), `after denial ${denial}`).toEqual(NOTHING);
      if (denial === 1) expect(host.peak).toEqual(minimum);
      expect(outcome.counters.operator.maxPartitionLevel ?? 0).toBeLessThanOrEqual(15);
      return outputOf(outcome);
    });
    const [calm] = outputs;
    expect(calm!.misplaced).toBe(0);
    expect(calm!.rows).toBeGreaterThan(0);
    for (const output of outputs) expect(output).toEqual(calm);
  });

  test.each(Array.from({ length: 48 }, (_, i) => [i * 5]))(
    "I1, I7 to I10 and I12 after every step, seed %i",
    (seed) => {
      using host = new TestHost({ poolBytes: 32 * MiB, cleanBytes: seed % 2 === 0 ? 0 : 32 * KiB });
      const outcome = host.run(operatorFor(seed), { seed, denial: 0.5, batchRows: 200, checks: true });
      expect(outcome.kind).toBe("done");
    },
  );

  test("the sweep does spill: every kind of operator writes under refusal, and reads back", () => {
    using host = new TestHost({ poolBytes: 32 * MiB, cleanBytes: 0 });
    const written = new Map<string, number>();
    const read = new Map<string, number>();
    for (let seed = 0; seed < 40; seed++) {
      const spec = operatorFor(seed);
      const { scratch } = host.run(spec, { seed, denial: 1 }).counters;
      written.set(spec.kind, (written.get(spec.kind) ?? 0) + scratch!.scratchBytesWritten);
      read.set(spec.kind, (read.get(spec.kind) ?? 0) + scratch!.scratchBytesRead);
    }
    for (const kind of ["sort", "aggregate", "join"]) {
      expect(written.get(kind), kind).toBeGreaterThan(MiB);
      expect(read.get(kind), kind).toBeGreaterThan(MiB);
    }
  });
});

describe("the same under a limit instead of dice", () => {
  const keys: KeySpec = { kind: "uniform", distinct: 20_000 };
  const specs: OperatorSpec[] = [
    { kind: "sort", input: rowsOf(30_000, keys), limits: limits(16 * KiB) },
    { kind: "aggregate", input: rowsOf(60_000, keys), preAggregate: false, limits: limits(16 * KiB) },
    { kind: "join", build: rowsOf(20_000, keys), probe: rowsOf(40_000, keys), limits: limits(16 * KiB) },
  ];
  test.each(specs)("$kind within 400 KiB", (spec) => {
    using host = new TestHost({ poolBytes: 32 * MiB });
    const free = host.run(spec);
    const tight = host.run(spec, { limit: 400 * KiB });
    expect(outputOf(tight)).toEqual(outputOf(free));
    expect(free.counters.scratch!.scratchBytesWritten).toBe(0);
    expect(tight.counters.scratch!.scratchBytesWritten).toBeGreaterThan(0);
    expect(tight.counters.bufferPool[0]!.peakReservation).toBeLessThanOrEqual(400 * KiB);
  });

  test.each(specs)("$kind, compressed on disk", (spec) => {
    using host = new TestHost({ poolBytes: 32 * MiB });
    const plain = host.run(spec, { limit: 400 * KiB });
    const packed = host.run(spec, { limit: 400 * KiB, compression: fastestCompression() });
    expect(outputOf(packed)).toEqual(outputOf(plain));
    const { scratchBytesWritten, uncompressedScratchBytesWritten } = packed.counters.scratch!;
    expect(scratchBytesWritten).toBeLessThan(uncompressedScratchBytesWritten);
  });
});

describe("I23 cancelled in the middle", () => {
  test.each([0, 1, 5, 30, 60, 100])("after %i batches", (cancelAfter) => {
    using host = new TestHost({ poolBytes: 32 * MiB });
    const keys: KeySpec = { kind: "uniform", distinct: 20_000 };
    const cancelled = [
      { kind: "sort" as const, input: rowsOf(60_000, keys, 16, 60), limits: limits(16 * KiB) },
      { kind: "aggregate" as const, input: rowsOf(90_000, keys), preAggregate: true, limits: limits(16 * KiB) },
      { kind: "join" as const, build: rowsOf(20_000, keys), probe: rowsOf(60_000, keys), limits: limits(16 * KiB) },
    ].map((spec) => host.run(spec, { denial: 0.7, cancelAfter }).kind);
    expect(cancelled).toEqual(["cancelled", "cancelled", "cancelled"]);
    expect(host.leftBehind()).toEqual(NOTHING);
  });
});
