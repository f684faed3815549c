/**
 * Recorded traffic is sized as it is replayed: under the limit it ran with, holds are the recorded ones (insight 4.3
 * item 7), and a limit above or below is judged from there.
 */
import { describe, expect, test } from "vitest";
import { parseScenario } from "../../../src/config/scenario-file.ts";
import { MiB } from "../../../src/core/units.ts";
import { type Outcome, spillShareOf } from "../../../src/insight/size/outcome.ts";
import type { Evaluator } from "../../../src/insight/size/problem.ts";
import { withTraces } from "../../../src/workload/traces.ts";
import { csvOf, fileWith, TABLE_ROW, type TableRow } from "../../workload/query-log/log-fixtures.ts";
import { evaluatorOver, GiB, NOW, POOL } from "./size-fixtures.ts";

/** A query a minute, of 4 s, with 1 GiB on ten executors and a coordinator with 100 MiB; a later row is cut off. */
async function evaluatorOf(fields: TableRow): Promise<Evaluator> {
  const at = (minute: number): TableRow => ({
    ...TABLE_ROW,
    resource_pool: POOL,
    start_time_utc: `2026-08-22 10:${String(minute).padStart(2, "0")}:00`,
    per_host_mem_estimate: 2 * GiB,
    backends_count: 11,
    cluster_memory_admitted: 10 * GiB + 100 * MiB,
    pernode_peak_mem_max: GiB,
    ...fields,
    query_id: `${minute}:0`,
  });
  const log = fileWith(csvOf([at(0), at(1), at(2), at(40)]));
  const scenario = await withTraces(
    parseScenario(
      `
cluster:
  executors: [{ count: 10, memory: 100gb }]
  coordinators: [{ count: 1, on: dedicated }]
pools: flags
arrivals: [{ trace: ${log} }]
`,
      "/recorded.yaml",
    ),
  );
  return evaluatorOver(scenario);
}

const ENGINES = ["model", "rules"] as const;

const outcomeOf = (evaluator: Evaluator, engine: (typeof ENGINES)[number], maxQueryMem: number): Outcome =>
  evaluator.run({ engine, day: 0, from: 0, to: 3, setting: { ...NOW, maxMem: 900 * GiB, maxQueryMem } });

/** Nothing overlaps, so this is the length of one. */
const holdOf = (o: Outcome): number => o.memoryTime / (o.peakMemory * o.submitted);
/** Memory is given back a round of the topic after the end at most. */
const ROUND_MS = 110;

describe.each(ENGINES)("insight 4.3 item 7, 3.2 recorded traffic by the %s", (engine) => {
  test.each([
    { limit: GiB + MiB, spilled: 0, hold: 4000 },
    { limit: GiB, spilled: 0, hold: 4000 },
    // 0.8 of it is half of what was reserved: 1 + 0.3 x 1.
    { limit: GiB / 2, spilled: 1, hold: 5200 },
  ])("a peak of 1 GiB under $limit bytes holds $hold ms", async ({ limit, spilled, hold }) => {
    const o = outcomeOf(await evaluatorOf({}), engine, limit);
    expect(spillShareOf(o)).toBe(spilled);
    expect(holdOf(o)).toBeGreaterThanOrEqual(hold - 1);
    expect(holdOf(o)).toBeLessThanOrEqual(hold + ROUND_MS);
  });

  test.each([
    { limit: GiB, spilled: 1, hold: 4000 },
    // What was spilled, 512 MiB a host, is not paid for again.
    { limit: GiB / 2, spilled: 1, hold: 5200 },
    // All that it wanted, 0.8 GiB and 512 MiB, is 0.8 of 1,664 MiB.
    { limit: 1663 * MiB, spilled: 1, hold: 4000 },
    { limit: 1664 * MiB, spilled: 0, hold: 4000 },
  ])("one that spilled, under $limit bytes, holds $hold ms", async ({ limit, spilled, hold }) => {
    const o = outcomeOf(await evaluatorOf({ compressed_bytes_spilled: 5 * GiB }), engine, limit);
    expect(spillShareOf(o)).toBe(spilled);
    expect(holdOf(o)).toBeGreaterThanOrEqual(hold - 1);
    expect(holdOf(o)).toBeLessThanOrEqual(hold + ROUND_MS);
  });

  test("one that ran on its coordinator alone has the coordinator's limit", async () => {
    const alone = { backends_count: 1, cluster_memory_admitted: GiB, dedicated_coord_mem_estimate: GiB };
    expect(outcomeOf(await evaluatorOf(alone), engine, 0)).toMatchObject({ spilled: 0, failed: 0 });
  });
});
