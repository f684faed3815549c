/**
 * The random clusters of the sweep on the live driver, on a clock without threads: each run ends, each query ends once
 * or is left with `admissiond` by a coordinator that died, and every decision is the same again.
 */
import { describe, expect, test } from "vitest";
import type { Fault } from "../../src/config/scenario.ts";
import type { RunEvent } from "../../src/core/events.ts";
import { type RandomRun, randomRun } from "../../src/sim/sweep/random-scenario.ts";
import { partsOf } from "../../src/sim/sweep/sweep.ts";
import { expectSameAgain } from "./live-fixture.ts";
import { type Stepped, steppedRun } from "./stepped.ts";

/** Those with faults of so many seeds; others end by themselves. */
const FIRST = Number(process.env.FROM ?? 1);
const COUNT = Number(process.env.SEEDS ?? 60);
const hasFaults = (seed: number): boolean => randomRun(seed).scenario.faults.length > 0;

const SEEDS = [
  3245, // found: let in, and missed before its coordinator heard
  ...Array.from({ length: COUNT }, (_, i) => FIRST + i).filter(hasFaults),
];

function played(run: RandomRun): Stepped {
  const { scenario, flags, workload, pools, changedPools } = partsOf(run);
  let now = pools;
  const current = {
    lookUp: (pool: string) => ({ kind: "found", config: now.configOf(pool) }) as const,
  };
  const change = (fault: Fault): void => {
    now = changedPools!(fault);
    workload.configurationChanged();
  };
  return steppedRun({ scenario, flags, workload, pools: { current: () => current, change } });
}

/** Queries that never ended, by coordinator; none ends twice. */
function leftAt(events: readonly RunEvent[]): Set<string> {
  const open = new Map<string, string>();
  for (const e of events)
    if (e.kind === "submitted") open.set(e.query, e.coordinator);
    else if (["rejected", "timedOut", "cancelled", "unresolved", "released"].includes(e.kind) && "query" in e)
      expect(open.delete(e.query)).toBe(true);
  return new Set(open.values());
}

/** With a worker its host is gone, and a coordinator there. */
const DEATHS = ["hostDies", "coordinatorDies", "workerKilled"];

const diesIn = ({ scenario }: RandomRun, host: string): boolean =>
  scenario.faults.some((f) => DEATHS.includes(f.kind) && "host" in f && f.host === host);

describe("random runs of the live driver end, and each of their queries", () => {
  test.each(SEEDS)("seed %i", (seed) => {
    const run = randomRun(seed);
    const { events, endedAt } = played(run);
    expect(endedAt).not.toBeNull();
    for (const coordinator of leftAt(events)) {
      expect(run.scenario.cluster.admission).toBe("admissiond");
      expect(diesIn(run, coordinator)).toBe(true);
    }
    expectSameAgain(events.filter((e) => e.kind === "controllerCall"));
  });
});
