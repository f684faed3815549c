import { describe, expect, test } from "vitest";
import { parseScenario } from "../../../src/config/scenario-file.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../../src/core/pool-config.ts";
import type { MaxBytes } from "../../../src/core/units.ts";
import { roomOf } from "../../../src/insight/size/pool-room.ts";
import { GiB } from "./size-fixtures.ts";

/** In GiB; -1: no limit. */
const pool = (maxMem: number, more: Partial<PoolConfig> = {}): PoolConfig => ({
  ...DEFAULT_POOL_CONFIG,
  maxMemResources: (maxMem < 0 ? -1 : maxMem * GiB) as MaxBytes,
  ...more,
});

const clusterOf = (executors: string) =>
  parseScenario(
    `cluster: { executors: [${executors}], coordinators: [{ count: 1, on: dedicated, memory: 50gb }] }
pools: flags
queries: { q: { estimate: 1gb, duration: 1s } }
arrivals: [{ at: 0s }]
`,
    "/room.yaml",
  ).cluster;

/** 1000 GiB. */
const TEN = clusterOf("{ count: 10, memory: 100gb }");

describe("insight 3.2: the limits of all pools fit on the hosts", () => {
  test.each([
    { name: "alone: all of it", others: {}, today: 100, most: 1000, isOver: false },
    { name: "what others have left", others: { "root.b": 300, "root.c": 200 }, today: 100, most: 500, isOver: false },
    { name: "others have left just what it has", others: { "root.b": 900 }, today: 100, most: 100, isOver: false },
    { name: "less than it has: it keeps that", others: { "root.b": 901 }, today: 100, most: 100, isOver: true },
    { name: "nothing: it keeps what it has", others: { "root.b": 2000 }, today: 100, most: 100, isOver: true },
    { name: "a pool that is shut takes nothing", others: { "root.b": 0 }, today: 100, most: 1000, isOver: false },
    { name: "no limit today: what is left", others: { "root.b": 300 }, today: -1, most: 700, isOver: false },
    { name: "no limit today and nothing left", others: { "root.b": 1001 }, today: -1, most: 0, isOver: false },
    { name: "root has no queries of its own", others: { root: 900 }, today: 100, most: 1000, isOver: false },
  ])("$name", ({ others, today, most, isOver }) => {
    const configs = Object.fromEntries(Object.entries(others).map(([name, gib]) => [name, pool(gib)]));
    const room = roomOf("root.a", { "root.a": pool(today), ...configs }, TEN, 1);
    expect(room).toMatchObject({ hosts: 1000 * GiB, most: most * GiB, isOvercommitted: isOver });
  });

  test("a pool without a limit is named, not counted", () => {
    const configs = { "root.a": pool(100), "root.c": pool(-1), "root.b": pool(-1), "root.d": pool(1) };
    expect(roomOf("root.a", configs, TEN, 1)).toMatchObject({
      others: GiB,
      unlimited: ["root.b", "root.c"],
      most: 999 * GiB,
    });
  });

  test("--oversubscribe raises what may be promised in all", () => {
    const configs = { "root.a": pool(100), "root.b": pool(900) };
    expect(roomOf("root.a", configs, TEN, 1.5)).toMatchObject({ most: 600 * GiB, isOvercommitted: false });
    expect(roomOf("root.a", configs, TEN, 0.99)).toMatchObject({ most: 100 * GiB, isOvercommitted: true });
  });

  test("hosts that the pool doesn't run on promise it nothing, nor do pools that run elsewhere", () => {
    const grouped = clusterOf(
      "{ count: 3, memory: 100gb, executorGroup: root.a-1 }, { count: 2, memory: 100gb, executorGroup: root.b-1 }",
    );
    const configs = { "root.a": pool(100), "root.b": pool(150), "root.c": pool(150, { onlyCoordinators: true }) };
    expect(roomOf("root.a", configs, grouped, 1)).toMatchObject({ hosts: 300 * GiB, others: 0, most: 300 * GiB });
    expect(roomOf("root.c", configs, grouped, 1)).toMatchObject({ hosts: 50 * GiB, isOvercommitted: true });
  });
});
