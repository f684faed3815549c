/**
 * The compiled kernels of one thread over one arena (`assembly/`), as plain functions on addresses.
 *
 * Addresses are byte offsets in the arena's memory. WebAssembly answers with signed 32-bit numbers; those that are
 * addresses are turned here, so that nobody else has to think of it. Layouts stand in the assembly files.
 */
import { readFileSync } from "node:fs";

interface RawKernels {
  addInOrder(batch: number, n: number, stride: number, hasNumber: number, total: number): number;
  addSums(batch: number, n: number, stride: number, total: number): void;
  addPairSums(out: number, pairs: number, probeStride: number, buildStride: number, total: number): void;
  copyBytes(to: number, from: number, bytes: number): void;
  pageSum(at: number, bytes: number): number;
  prepare(batch: number, n: number, stride: number, seedAt: number, keep: number, rows: number, hashes: number): number;
  zero(at: number, bytes: number): void;
  generate(batch: number, n: number, firstRowAt: number, spec: number): number;
  insertRows(
    at: number,
    end: number,
    stride: number,
    seedAt: number,
    keep: number,
    part: number,
    work: number,
    stats: number,
  ): number;
  rehash(from: number, fromMask: number, to: number, toMask: number): void;
  route(rows: number, hashes: number, start: number, n: number, stride: number, partitions: number): number;
  scatter(rows: number, hashes: number, start: number, n: number, stride: number, partitions: number): number;
  probe(
    rows: number,
    hashes: number,
    start: number,
    n: number,
    stride: number,
    partitions: number,
    slots: number,
    out: number,
    capacity: number,
    control: number,
  ): number;
  aggregate(
    rows: number,
    hashes: number,
    start: number,
    n: number,
    kind: number,
    stride: number,
    groupBytes: number,
    partitions: number,
    slots: number,
    passOn: number,
    control: number,
  ): number;
  sortRun(run: number, rows: number): void;
  clusterRun(run: number, rows: number, seedAt: number, shift: number): void;
  orderByBucket(
    rows: number,
    hashes: number,
    n: number,
    shift: number,
    rowsOut: number,
    hashesOut: number,
    counts: number,
  ): void;
  flatten(at: number, end: number, pages: number, outAt: number, outEnd: number): number;
  layInOrder(at: number, end: number, pages: number, dataOut: number): number;
  loadKey(sources: number, s: number): void;
  mergeRows(
    sources: number,
    k: number,
    tree: number,
    stride: number,
    hasNumber: number,
    out: number,
    outEnd: number,
    status: number,
  ): number;
  mergeTuples(
    sources: number,
    k: number,
    tree: number,
    dataOut: number,
    out: number,
    outEnd: number,
    status: number,
  ): number;
  playTree(sources: number, k: number, tree: number, hasNumber: number): void;
  resume(sources: number, k: number, tree: number, s: number, hasNumber: number): void;
  toTuples(rows: number, start: number, n: number, outAt: number, outEnd: number, dataOut: number): number;
}

export type Kernels = Readonly<RawKernels>;

let compiled: WebAssembly.Module | null = null;

/** Compiled once a thread (a millisecond), instantiated once an arena. */
export function kernelsOver(memory: WebAssembly.Memory): Kernels {
  compiled ??= new WebAssembly.Module(readFileSync(wasmFile()));
  const { exports } = new WebAssembly.Instance(compiled, { env: { memory } });
  const k = exports as RawKernels;
  return {
    ...k,
    prepare: (batch, n, stride, seedAt, keep, rows, hashes) =>
      k.prepare(batch, n, stride, seedAt, keep, rows, hashes) >>> 0,
    generate: (batch, n, firstRowAt, spec) => k.generate(batch, n, firstRowAt, spec) >>> 0,
    insertRows: (at, end, stride, seedAt, keep, part, work, stats) =>
      k.insertRows(at, end, stride, seedAt, keep, part, work, stats) >>> 0,
    flatten: (at, end, pages, outAt, outEnd) => k.flatten(at, end, pages, outAt, outEnd) >>> 0,
    layInOrder: (at, end, pages, dataOut) => k.layInOrder(at, end, pages, dataOut) >>> 0,
    mergeRows: (sources, n, tree, stride, hasNumber, out, outEnd, status) =>
      k.mergeRows(sources, n, tree, stride, hasNumber, out, outEnd, status) >>> 0,
    mergeTuples: (sources, n, tree, dataOut, out, outEnd, status) =>
      k.mergeTuples(sources, n, tree, dataOut, out, outEnd, status) >>> 0,
  };
}

/** Sources run from src/, the package from dist/; the compiled kernels lie in dist/ either way. */
function wasmFile(): URL {
  const fromSource = import.meta.url.endsWith(".ts");
  return new URL(
    fromSource ? "../../../../dist/src/runtime/operators/kernels/operators.wasm" : "operators.wasm",
    import.meta.url,
  );
}
