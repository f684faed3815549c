/**
 * What a host tells the statestore of a query (admission 7.2): its limit if it has one, else what it holds there. Hosts
 * that hold more than others, or less because the rest was spilled, say so.
 */
import { describe, expect, test } from "vitest";
import { parseScenario } from "../../src/config/scenario-file.ts";
import { flagsOf } from "../../src/config/scenario-pools.ts";
import type { RunEvent } from "../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG } from "../../src/core/pool-config.ts";
import { GiB, MiB } from "../../src/core/units.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";

interface Case {
  readonly perHost?: Readonly<Record<string, number>>;
  readonly peak: string;
  readonly options?: Readonly<Record<string, string>>;
}

/** By host, the most that two coordinators ever told of it: no limit on memory, so that each host's own is what counts. */
function toldBy({ perHost, peak, options }: Case): Record<string, number> {
  const scenario = parseScenario(
    JSON.stringify({
      cluster: {
        executors: [{ count: 2, memory: "10gb", slots: 16 }],
        coordinators: [{ count: 2, on: "dedicated", memory: "4gb" }],
        statestore: { every: "100ms" },
      },
      pools: "flags",
      queries: {
        q: {
          user: "ana",
          pool: "root.a",
          estimate: "1gb",
          uses: { peak, ...(perHost && { perHost }) },
          duration: "1s",
          ...(options && { options }),
        },
      },
      arrivals: [{ at: "0s", query: "q", count: 1 }],
    }),
    "reserved.json",
  );
  const events: RunEvent[] = [];
  simulate({
    scenario,
    workload: createWorkload(scenario, {
      resolve: (pool, user) => ({ kind: "resolved", pool, user, groups: [], defaultOptions: {}, maxMtDop: -1 }),
    }),
    pools: { configOf: () => DEFAULT_POOL_CONFIG },
    flags: flagsOf(scenario),
    emit: (e) => events.push(e),
  });
  return mostReserved(events);
}

function mostReserved(events: readonly RunEvent[]): Record<string, number> {
  const most: Record<string, number> = {};
  for (const e of events) {
    if (e.kind !== "controllerCall" || e.call.op !== "apply") continue;
    for (const entry of e.call.entries) {
      if (entry.kind !== "pool" || !("stats" in entry) || entry.stats === null) continue;
      const host = entry.host.split(":")[0]!;
      most[host] = Math.max(most[host] ?? 0, entry.stats.backendMemReserved);
    }
  }
  return most;
}

describe("7.2 what a host tells of a query", () => {
  test("with a limit: the limit, whatever it holds", () => {
    const told = toldBy({ peak: "512mb", perHost: { "exec-2": 2 }, options: { MEM_LIMIT: "2gb" } });
    expect(told).toMatchObject({ "exec-1": 2 * GiB, "exec-2": 2 * GiB });
  });

  test("without one: what it holds, the same on each host", () => {
    expect(toldBy({ peak: "512mb" })).toMatchObject({ "exec-1": 512 * MiB, "exec-2": 512 * MiB });
  });

  test("without one, and twice as much on one host: twice as much there", () => {
    expect(toldBy({ peak: "512mb", perHost: { "exec-2": 2 } })).toMatchObject({
      "exec-1": 512 * MiB,
      "exec-2": GiB,
    });
  });

  test("without one, and more than the host has: what it could have, the rest was spilled", () => {
    const told = toldBy({ peak: "4gb", perHost: { "exec-2": 4 } });
    expect(told["exec-1"]).toBe(4 * GiB);
    // R8 of the 10 GiB that queries may have of the host: what they may reserve.
    expect(told["exec-2"]).toBe(8 * GiB);
  });
});
