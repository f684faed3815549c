/**
 * DuckDB's side of bench/spill.ts, in a process of its own: `node bench/spill-rival.ts load|run '{"what":...}'`.
 *
 * `load` writes the rows that our generator makes to a database file; `run` opens it with one thread, the memory limit
 * and a temporary folder on the same disk, and times the query. Rows of the sort are taken chunk by chunk and not
 * looked at; the other two end in a few sums. Prints one line of JSON.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { BIGINT, type DuckDBBigIntVector, DuckDBDataChunk, DuckDBInstance } from "@duckdb/node-api";
import type { KeySpec, RowsSpec } from "../src/config/scenario.ts";
import { BufferPoolClient } from "../src/core/memory/buffer-pool.ts";
import { LocalReservation } from "../src/core/memory/local-reservation.ts";
import { MiB } from "../src/core/units.ts";
import { kernelsOver } from "../src/runtime/operators/kernels/kernels.ts";
import { createArena, privateAllocator, WORKSPACE_BYTES } from "../src/runtime/operators/operator-arena.ts";
import { Workspace } from "../src/runtime/operators/operator-context.ts";
import { MAX_PARTITION_DEPTH } from "../src/runtime/operators/partitions.ts";
import { RowSource } from "../src/runtime/operators/row-source.ts";
import { keysOf, type SpillTask } from "./spill-task.ts";

const CHUNK = 2048;

const QUERY: Readonly<Record<SpillTask["what"], string>> = {
  sort: "SELECT k, a, b FROM input ORDER BY k",
  aggregate:
    "SELECT count(*), bit_xor(c), bit_xor(m) FROM (SELECT k, count(*) AS c, max(b) AS m FROM input GROUP BY k)",
  join:
    "SELECT count(*), bit_xor(build.a), bit_xor(build.b), bit_xor(input.a), bit_xor(input.b) " +
    "FROM input JOIN build ON input.k = build.k",
};

const [, , action, json] = process.argv;
const task = JSON.parse(json ?? "{}") as SpillTask;
const file = join(task.folder, `${task.what}-${task.rows}.duckdb`);
if (action === "load") await load();
else await measure();

async function load(): Promise<void> {
  if (existsSync(file)) return;
  const instance = await DuckDBInstance.create(file);
  await loadTable(instance, "input", task.rows, keysOf(task), task.what === "join" ? task.seed + 1 : task.seed);
  if (task.what === "join") await loadTable(instance, "build", task.buildRows, { kind: "unique" }, task.seed);
  const connection = await instance.connect();
  await connection.run("CHECKPOINT");
  connection.closeSync();
  instance.closeSync();
}

async function loadTable(
  instance: DuckDBInstance,
  name: string,
  rows: number,
  keys: KeySpec,
  seed: number,
): Promise<void> {
  const connection = await instance.connect();
  await connection.run(`CREATE TABLE ${name} (k BIGINT, a BIGINT, b BIGINT)`);
  const appender = await connection.createAppender(name);
  const types = [BIGINT, BIGINT, BIGINT];
  for (const batch of batches({ rows, keys, width: { min: 16, max: 16 } }, seed)) {
    const chunk = DuckDBDataChunk.create(types, batch.length / 3);
    for (let column = 0; column < 3; column++) {
      const vector = chunk.getColumnVector(column) as DuckDBBigIntVector;
      for (let row = 0; row < batch.length / 3; row++) vector.setItem(row, batch[3 * row + column]!);
      vector.flush();
    }
    appender.appendDataChunk(chunk);
  }
  appender.closeSync();
  connection.closeSync();
}

/** Three numbers a row, chunk by chunk. */
function* batches(spec: RowsSpec, seed: number): Generator<BigInt64Array> {
  const arena = createArena({ poolBytes: MiB, minBufferBytes: 8192, threads: 1 });
  const workspace = new Workspace(arena.memory, arena.workspaces, WORKSPACE_BYTES);
  const kernels = kernelsOver(arena.memory);
  const reservation = new LocalReservation({ label: "loader" });
  const pool = new BufferPoolClient({
    allocator: privateAllocator(arena),
    reservation,
    store: null,
    owner: 1,
    checksum: kernels.pageSum,
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
      batchRows: CHUNK,
      nodeId: 0,
      spillingForbidden: null,
      note: () => undefined,
    },
    spec,
    seed,
  );
  for (let batch = source.next(); batch !== null; batch = source.next())
    yield new BigInt64Array(arena.memory.buffer, batch.address, batch.rows * 3);
}

async function measure(): Promise<void> {
  const instance = await DuckDBInstance.create(file, {
    access_mode: "READ_ONLY",
    threads: "1",
    memory_limit: `${Math.floor(task.memory / MiB)}MiB`,
    temp_directory: join(task.folder, "duckdb-temp"),
  });
  const connection = await instance.connect();
  const seconds: number[] = [];
  let rows = 0;
  for (let run = 0; run < task.runs; run++) {
    const start = performance.now();
    const result = await connection.stream(QUERY[task.what]);
    rows = 0;
    for (let chunk = await result.fetchChunk(); chunk !== null && chunk.rowCount > 0; chunk = await result.fetchChunk())
      rows += chunk.rowCount;
    seconds.push((performance.now() - start) / 1000);
  }
  const cpu = process.cpuUsage();
  console.log(
    JSON.stringify({
      seconds,
      rows,
      cpu: (cpu.user + cpu.system) / 1e6,
      peakRss: process.resourceUsage().maxRSS * 1024,
    }),
  );
  connection.closeSync();
  instance.closeSync();
}
