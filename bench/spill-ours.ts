/**
 * One measurement of bench/spill.ts in a process of its own: `node bench/spill-ours.ts '{"what":"sort",...}'`.
 *
 * A process of its own, so that peak memory is that of this run and neither side inherits the other's pages. Prints one
 * line of JSON.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { KeySpec, OperatorSpec, RowsSpec } from "../src/config/scenario.ts";
import { NO_LOCK } from "../src/core/memory/buffer-allocator.ts";
import { LocalReservation } from "../src/core/memory/local-reservation.ts";
import { type Bytes, KiB, MiB } from "../src/core/units.ts";
import { createArena, privateAllocator, WORKSPACE_BYTES } from "../src/runtime/operators/operator-arena.ts";
import { plannedClients, runOperator } from "../src/runtime/operators/run-operator.ts";
import { FileGroup } from "../src/runtime/scratch/file-group.ts";
import { ScratchBooks, scratchBookWords } from "../src/runtime/scratch/scratch-directories.ts";
import { keysOf, type SpillTask } from "./spill-task.ts";

const LIMITS = { bufferSize: (2 * MiB) as Bytes, maxRowSize: (512 * KiB) as Bytes };

function specOf(t: SpillTask): OperatorSpec {
  const rows = (n: number, keys: KeySpec): RowsSpec => ({ rows: n, keys, width: { min: 16, max: 16 } });
  switch (t.what) {
    case "sort":
      return { kind: "sort", input: rows(t.rows, keysOf(t)), limits: LIMITS };
    case "aggregate":
      return { kind: "aggregate", input: rows(t.rows, keysOf(t)), preAggregate: false, limits: LIMITS };
    case "join":
      return {
        kind: "join",
        build: rows(t.buildRows, { kind: "unique" }),
        probe: rows(t.rows, keysOf(t)),
        limits: LIMITS,
      };
  }
}

const task = JSON.parse(process.argv[2] ?? "{}") as SpillTask;
const scratch = mkdtempSync(join(task.folder, "ours-"));
// The rival's limit covers all it allocates; so does ours: work space is taken from it.
const poolBytes = Math.floor((task.memory - WORKSPACE_BYTES) / MiB) * MiB;
const arena = createArena({ poolBytes, minBufferBytes: 8 * KiB, threads: 1 });
const allocator = privateAllocator(arena);
const before = process.memoryUsage().rss;
const seconds: number[] = [];
let last = null;
for (let run = 0; run < task.runs; run++) {
  const root = new LocalReservation({ label: "Process", limit: poolBytes });
  const spec = specOf(task);
  const clients = plannedClients(spec).map(({ label, minReservation }) => {
    const client = new LocalReservation({ label, parent: root });
    if (!client.tryIncrease(minReservation)) throw new Error(client.refusal);
    return client;
  });
  const directories = [{ path: scratch, limit: Number.POSITIVE_INFINITY, priority: 0 }];
  const books = new ScratchBooks(directories, new Float64Array(scratchBookWords(1, 1)), NO_LOCK);
  const files = new FileGroup({
    books,
    slot: 0,
    queryId: "bench",
    backend: "bench",
    scratchLimit: -1,
    chance: () => 0,
  });
  const start = performance.now();
  const outcome = runOperator({
    spec,
    clients,
    arena,
    allocator,
    thread: 0,
    owner: 1,
    scratch: files,
    compression: task.compression ?? "none",
    writeBack: task.writeBack ?? "whenNeeded",
    seed: task.seed,
    nodeId: 1,
    spillingForbidden: null,
  });
  for (const client of clients) client.close();
  files.close();
  seconds.push((performance.now() - start) / 1000);
  if (outcome.kind !== "done") throw new Error(JSON.stringify(outcome));
  if (outcome.output.misplaced > 0) throw new Error("rows out of order");
  last = outcome;
}
rmSync(scratch, { recursive: true });
const cpu = process.cpuUsage();
console.log(
  JSON.stringify({
    seconds,
    cpu: (cpu.user + cpu.system) / 1e6,
    rows: last?.output.rows,
    sum: last?.output.sum,
    written: last?.counters.scratch?.scratchBytesWritten,
    operator: last?.counters.operator,
    peakRss: process.resourceUsage().maxRSS * 1024,
    rssBefore: before,
    limit: poolBytes,
  }),
);
