/**
 * Holds are replayed as recorded (insight 4.3 item 7): whatever a log says of a query's memory, under the limit it ran
 * with it holds its place as long as it did, and spills what it spilled.
 */
import { describe, expect, test } from "vitest";
import { parseScenario } from "../../src/config/scenario-file.ts";
import { DEFAULT_POOL_CONFIG } from "../../src/core/pool-config.ts";
import type { QueryFacts } from "../../src/core/run-observer.ts";
import { type Bytes, bytes } from "../../src/core/units.ts";
import { SilentObserver } from "../../src/insight/silent-observer.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";
import { withTraces } from "../../src/workload/traces.ts";
import { csvOf, fileWith, GiB, MiB, TABLE_ROW, type TableRow } from "../workload/query-log/log-fixtures.ts";

class Holds extends SilentObserver {
  readonly holds: number[] = [];
  spilledBytes = 0;
  override spilled(_at: number, _q: QueryFacts, bytes: number): void {
    this.spilledBytes += bytes;
  }
  override released(_at: number, _q: QueryFacts, _state: string, hold: number): void {
    this.holds.push(hold);
  }
}

/** 4 s on ten executors with 1 GiB each and a coordinator with 100 MiB. */
const ROW: TableRow = { ...TABLE_ROW, backends_count: 11, cluster_memory_admitted: 10 * GiB + 100 * MiB };

/** What a cluster wrote in its last minutes is not whole, and so not replayed: one such row stands after the others. */
const logOf = (row: TableRow): string =>
  fileWith(csvOf(row.cluster_id === "waterhole" ? [row] : [row, { ...ROW, start_time_utc: "2026-08-22 11:00:00" }]));

async function replay(row: TableRow, maxQueryMem = 0 as Bytes, more = "", model = ""): Promise<Holds> {
  const scenario = await withTraces(
    parseScenario(
      `
cluster:
  executors: [{ count: 10, memory: 100gb }]
  coordinators: [{ count: 1, on: dedicated }]
pools: flags
model: { scratchBandwidth: 100mb${model} }
${more === "" ? "" : "queries: { drawn: { estimate: 1gb, duration: 4s, uses: { peak: 1mb } } }"}
arrivals: [{ trace: ${logOf(row)} }${more}]
`,
      "/s.yaml",
    ),
  );
  const observer = new Holds();
  const resolver = {
    resolve: (pool: string, user: string) => ({
      kind: "resolved" as const,
      pool,
      user,
      groups: [],
      defaultOptions: {},
      maxMtDop: -1,
    }),
  };
  simulate({
    scenario,
    workload: createWorkload(scenario, resolver),
    pools: {
      configOf: () => ({ ...DEFAULT_POOL_CONFIG, maxMemResources: bytes(1000 * GiB), maxQueryMemLimit: maxQueryMem }),
    },
    observer,
  });
  return observer;
}

describe("insight 4.3 item 7 recorded holds", () => {
  test.each([
    ["a peak at its limit", { pernode_peak_mem_max: GiB }],
    ["a peak above it, of a release that did not enforce it", { pernode_peak_mem_max: 3 * GiB }],
    ["no peak", { pernode_peak_mem_max: "" }],
    ["an export of our own with all it may reserve", { cluster_id: "waterhole", pernode_peak_mem_max: 0.8 * GiB }],
    ["a trivial query that used nothing", { cluster_id: "waterhole", pernode_peak_mem_max: 0, backends_count: 1 }],
  ])("%s: 4 s, nothing spilled", async (_name, fields) => {
    const { holds, spilledBytes } = await replay({ ...ROW, compressed_bytes_spilled: 0, ...fields });
    expect({ holds, spilledBytes }).toEqual({ holds: [4000], spilledBytes: 0 });
  });

  test("what was spilled is spilled again, in the time that was recorded", async () => {
    const row = { ...ROW, pernode_peak_mem_max: GiB, compressed_bytes_spilled: 500 * MiB };
    const { holds, spilledBytes } = await replay(row);
    expect(holds).toEqual([4000]);
    // 0.8 of a limit is not a whole number of bytes.
    expect(Math.abs(spilledBytes - 500 * MiB)).toBeLessThanOrEqual(10);
  });

  test.each([
    { limit: 1100 * MiB, more: 0 },
    { limit: GiB, more: 0 },
    { limit: 924 * MiB, more: 80 * MiB },
  ])(
    "under a limit of $limit bytes it writes $more more on each host, and that takes longer",
    async ({ limit, more }) => {
      const row = {
        ...ROW,
        per_host_mem_estimate: 2 * GiB,
        pernode_peak_mem_max: GiB,
        compressed_bytes_spilled: 500 * MiB,
      };
      const { holds } = await replay(row, bytes(limit));
      expect(holds[0]).toBeCloseTo(4000 + (more / (100 * MiB)) * 1000, 0);
    },
  );

  test("cores that are shared slow what is drawn beside them, not what was recorded", async () => {
    // One core a host, both run from 0 s on, the recorded one with two instances: a third of it for 4 s, then all.
    const { holds } = await replay(
      { ...ROW, compressed_bytes_spilled: 0 },
      undefined,
      ", { at: 0s, query: drawn }",
      ", cores: 1",
    );
    expect(holds).toEqual([4000, 4000 + (2 / 3) * 4000].map((ms) => Math.round(ms * 1000) / 1000));
  });
});
