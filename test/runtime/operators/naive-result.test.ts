/**
 * Results against a few lines of plain JavaScript over the same rows: what "the same result" in same-result.test.ts is
 * the same as.
 */
import { describe, expect, test } from "vitest";
import type { KeySpec, OperatorSpec, RowsSpec } from "../../../src/config/scenario.ts";
import { BufferPoolClient } from "../../../src/core/memory/buffer-pool.ts";
import { LocalReservation } from "../../../src/core/memory/local-reservation.ts";
import { KiB, MiB } from "../../../src/core/units.ts";
import { type Kernels, kernelsOver } from "../../../src/runtime/operators/kernels/kernels.ts";
import {
  createArena,
  type OperatorArena,
  privateAllocator,
  WORKSPACE_BYTES,
} from "../../../src/runtime/operators/operator-arena.ts";
import { u64At, Workspace } from "../../../src/runtime/operators/operator-context.ts";
import { MAX_PARTITION_DEPTH } from "../../../src/runtime/operators/partitions.ts";
import { RowSource, shapeOf } from "../../../src/runtime/operators/row-source.ts";
import { limits, outputOf, rowsOf, TestHost } from "./operator-bench.ts";

const DENIALS = [0, 0.5, 1];

interface Row {
  readonly bytes: Uint8Array;
  readonly key: bigint;
  readonly number: bigint;
}

/** The rows that an operator with this seed gets, one object each. */
function rowsFrom(spec: RowsSpec, seed: number): Row[] {
  const { arena, kernels, workspace } = bench();
  const pool = new BufferPoolClient({
    allocator: privateAllocator(arena),
    reservation: new LocalReservation({ label: "x" }),
    store: null,
    owner: 1,
    checksum: () => 0,
  });
  const source = new RowSource(
    {
      kernels,
      workspace,
      pool,
      pageBytes: MiB,
      maxPageBytes: MiB,
      maxRowSize: MiB,
      partitionDepth: MAX_PARTITION_DEPTH,
      batchRows: 100,
      nodeId: 0,
      spillingForbidden: null,
      note: () => undefined,
    },
    spec,
    seed,
  );
  const view = new DataView(arena.memory.buffer);
  const rows: Row[] = [];
  for (let batch = source.next(); batch !== null; batch = source.next()) {
    let at = batch.address;
    for (let i = 0; i < batch.rows; i++) {
      const { stride } = source.shape;
      const length = stride === 0 ? 20 + view.getUint32(at + 16, true) : stride;
      rows.push({
        bytes: workspace.bytes.slice(at, at + length),
        key: view.getBigInt64(at, true),
        number: source.shape.hasNumber ? view.getBigUint64(at + 8, true) : 0n,
      });
      at += length;
    }
  }
  return rows;
}

function bench(): { arena: OperatorArena; kernels: Kernels; workspace: Workspace } {
  const arena = createArena({ poolBytes: 16 * MiB, minBufferBytes: 8 * KiB, threads: 1 });
  return {
    arena,
    kernels: kernelsOver(arena.memory),
    workspace: new Workspace(arena.memory, arena.workspaces, WORKSPACE_BYTES),
  };
}

const hex = (n: bigint) => n.toString(16).padStart(16, "0");

/** What the client would have counted, had these rows come to it in this order. */
function summed(rows: readonly Uint8Array[], stride: number, hasNumber: boolean) {
  const { arena, kernels, workspace } = bench();
  const total = workspace.take(40);
  const at = arena.pool.baseAddress;
  let misplaced = 0;
  for (const row of rows) {
    workspace.bytes.set(row, at);
    misplaced += kernels.addInOrder(at, 1, stride, hasNumber ? 1 : 0, total);
  }
  const { words } = workspace;
  return { rows: rows.length, sum: hex(u64At(words, total)), chain: hex(u64At(words, total + 8)), misplaced };
}

const KEYS: readonly KeySpec[] = [
  { kind: "uniform", distinct: 700 },
  { kind: "zipf", distinct: 900, exponent: 1.1 },
  { kind: "sorted" },
  { kind: "unique" },
  { kind: "hot", share: 0.4, distinct: 500 },
  { kind: "dealt" },
];
const WIDTHS = [
  [16, 16],
  [92, 92],
  [0, 300],
] as const;
const CASES = KEYS.flatMap((keys) => WIDTHS.map(([min, max]) => [keys.kind, min, max, keys] as const));

function outputs(spec: OperatorSpec, seed: number) {
  using host = new TestHost({ poolBytes: 16 * MiB });
  return DENIALS.map((denial) => outputOf(host.run(spec, { seed, denial, batchRows: 193 })));
}

describe("sort: by key, then row number", () => {
  test.each(CASES)("%s keys, %i to %i bytes", (_, min, max, keys) => {
    const input = rowsOf(3000, keys, min, max);
    const shape = shapeOf(input);
    const order = (a: Row, b: Row) =>
      a.key !== b.key ? (a.key < b.key ? -1 : 1) : a.number < b.number ? -1 : a.number > b.number ? 1 : 0;
    const rows = rowsFrom(input, 5).sort(order);
    const expected = summed(
      rows.map((r) => r.bytes),
      shape.stride,
      shape.hasNumber,
    );
    for (const output of outputs({ kind: "sort", input, limits: limits(8 * KiB) }, 5)) expect(output).toEqual(expected);
  });

  test("negative keys come before positive ones", () => {
    const { arena, kernels, workspace } = bench();
    const view = new DataView(arena.memory.buffer);
    const table = workspace.take(8);
    const run = workspace.take(28);
    const lists = workspace.take(3 * 65536);
    const at = arena.pool.baseAddress;
    const keys = [5n, -1n, 0n, -(2n ** 63n), 2n ** 63n - 1n, -7n];
    for (const [i, key] of keys.entries()) view.setBigInt64(at + 8 * i, key, true);
    workspace.words[table >>> 2] = at;
    workspace.words.set([table, keys.length, 8, 0, lists, 1024, lists + 2 * 65536], run >>> 2);
    kernels.sortRun(run, keys.length);
    const sorted = keys.map((_, i) => view.getBigInt64(at + 8 * i, true));
    expect(sorted).toEqual([...keys].sort((a, b) => (a < b ? -1 : 1)));
  });
});

describe("aggregate: count, sum of word 1, greatest of the others", () => {
  test.each(CASES.flatMap((c) => [false, true].map((pre) => [...c, pre] as const)))(
    "%s keys, %i to %i bytes, %o, pre-aggregated: %s",
    (_, min, max, keys, preAggregate) => {
      const input = rowsOf(3000, keys, min, max);
      const isVariable = min !== max;
      const words = isVariable ? 3 : Math.max(1, Math.floor(min / 8));
      const groups = new Map<bigint, bigint[]>();
      for (const row of rowsFrom(input, 6)) {
        const view = new DataView(row.bytes.buffer);
        const values = isVariable
          ? [1n, row.number, BigInt(view.getUint32(16, true))]
          : Array.from({ length: words }, (__, w) => (w === 0 ? 1n : view.getBigInt64(8 + 8 * w, true)));
        const group = groups.get(row.key);
        if (group === undefined) groups.set(row.key, values);
        else
          for (const [w, value] of values.entries()) {
            if (isVariable || w < 2) group[w] = BigInt.asIntN(64, group[w]! + value);
            else if (value > group[w]!) group[w] = value;
          }
      }
      const bytes = [...groups].map(([key, values]) => {
        const row = new DataView(new ArrayBuffer(8 + 8 * words));
        for (const [w, value] of [key, ...values].entries()) row.setBigInt64(8 * w, value, true);
        return new Uint8Array(row.buffer);
      });
      const expected = summed(bytes, 8 + 8 * words, false);
      const spec: OperatorSpec = { kind: "aggregate", input, preAggregate, limits: limits(8 * KiB) };
      for (const output of outputs(spec, 6)) expect([output.rows, output.sum]).toEqual([expected.rows, expected.sum]);
    },
  );
});

/** Number of pairs and their sum, one probe row after the other. */
function naiveJoin(build: RowsSpec, probe: RowsSpec, seed: number): [pairs: number, sum: string] {
  const byKey = Map.groupBy(rowsFrom(build, seed), (r) => r.key);
  const { arena, kernels, workspace } = bench();
  const total = workspace.take(8);
  const pair = workspace.take(8);
  const at = arena.pool.baseAddress;
  const [probeStride, buildStride] = [shapeOf(probe).stride, shapeOf(build).stride];
  let pairs = 0;
  for (const p of rowsFrom(probe, seed + 1))
    for (const b of byKey.get(p.key) ?? []) {
      workspace.bytes.set(p.bytes, at);
      workspace.bytes.set(b.bytes, at + 1024);
      workspace.words.set([at, at + 1024], pair >>> 2);
      kernels.addPairSums(pair, 1, probeStride, buildStride, total);
      pairs++;
    }
  return [pairs, hex(u64At(workspace.words, total))];
}

describe("join: every pair of equal keys", () => {
  test.each(CASES)("%s keys, %i to %i bytes, against uniform ones with duplicates", (_, min, max, keys) => {
    const build = rowsOf(900, { kind: "uniform", distinct: 400 }, min, max);
    const probe = rowsOf(1500, keys, 16);
    const expected = naiveJoin(build, probe, 7);
    expect(expected[0]).toBeGreaterThan(0);
    const spec: OperatorSpec = { kind: "join", build, probe, limits: limits(8 * KiB) };
    for (const output of outputs(spec, 7)) expect([output.rows, output.sum]).toEqual(expected);
  });

  // Tables so large that rows are put in the order of their buckets, and probe rows wait until there are many.
  test.each([
    [16, 16, 16, 16],
    [0, 60, 16, 16],
    [16, 16, 0, 60],
  ])("large tables: build %i to %i bytes, probe %i to %i", (buildMin, buildMax, probeMin, probeMax) => {
    const build = rowsOf(100_000, { kind: "uniform", distinct: 70_000 }, buildMin, buildMax);
    const probe = rowsOf(40_000, { kind: "uniform", distinct: 90_000 }, probeMin, probeMax);
    const expected = naiveJoin(build, probe, 9);
    using host = new TestHost({ poolBytes: 64 * MiB });
    const spec: OperatorSpec = { kind: "join", build, probe, limits: limits(64 * KiB) };
    for (const denial of [0, 0.3, 1]) {
      const output = outputOf(host.run(spec, { seed: 9, denial }));
      expect([output.rows, output.sum]).toEqual(expected);
    }
  });
});
