/** Small scenarios for the live fleet, and everything a run has told, kept. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { parseScenario } from "../../src/config/scenario-file.ts";
import type { RunEvent } from "../../src/core/events.ts";
import { type LiveReport, type LiveRun, openLiveRun } from "../../src/runtime/live-run.ts";
import { newRunBus } from "../../src/runtime/run-bus.ts";
import { Replay } from "../../src/sim/replay.ts";

export interface Small {
  readonly executors?: number;
  readonly memory?: string;
  readonly threads?: number;
  readonly flags?: Readonly<Record<string, string>>;
  /** Lines of the query class, after `user`. */
  readonly query?: Readonly<Record<string, unknown>>;
  readonly arrivals?: readonly unknown[];
  readonly faults?: readonly unknown[];
  readonly cluster?: Readonly<Record<string, unknown>>;
  readonly time?: number;
  readonly scaleMemory?: number;
}

/** A child of a test shares its parent's. */
export const SCRATCH = process.env.WATERHOLE_TEST_SCRATCH ?? join(tmpdir(), `waterhole-live-test-${process.pid}`);

/** Three hosts of 10 GB on threads of their own; queries of 1 GB on all of them for a second. */
export function small(o: Small = {}) {
  const scenario = {
    name: "small",
    cluster: {
      executors: [{ count: o.executors ?? 3, memory: o.memory ?? "10gb", slots: 64 }],
      coordinators: [{ count: 1, on: "dedicated", memory: "10gb" }],
      ...o.cluster,
    },
    pools: "flags",
    flags: o.flags ?? {},
    queries: {
      q: { user: "ana", estimate: "1gb", uses: { peak: "512mb", shape: "ramp" }, duration: "1s", ...o.query },
    },
    arrivals: o.arrivals ?? [{ at: "0s", query: "q", count: 1 }],
    faults: o.faults ?? [],
    scale: { time: o.time ?? 20, memory: o.scaleMemory ?? 1024 },
    threads: o.threads ?? 4,
  };
  return parseScenario(JSON.stringify(scenario), "small.json");
}

export interface Told {
  readonly run: LiveRun;
  readonly events: RunEvent[];
  /** What the controllers were asked and answered, apart from the rest. */
  readonly calls: RunEvent[];
  count(kind: RunEvent["kind"]): number;
}

export async function open(scenario: ReturnType<typeof small>): Promise<Told> {
  const bus = newRunBus();
  const events: RunEvent[] = [];
  const calls: RunEvent[] = [];
  bus.on("event", (e) => (e.kind === "controllerCall" ? calls : events).push(e));
  const run = await openLiveRun(scenario, bus, { scratchBase: SCRATCH, check: true });
  return { run, events, calls, count: (kind) => events.filter((e) => e.kind === kind).length };
}

/** Opens, runs to the end, and gives everything back. */
export async function runOf(scenario: ReturnType<typeof small>): Promise<Told & { readonly report: LiveReport }> {
  const told = await open(scenario);
  const report = await told.run.run();
  expectSameAgain(told.calls);
  return { ...told, report };
}

/** Parity (insight 7.1): the run's decisions gone through again in virtual time, as a records file would hold them. */
export function expectSameAgain(calls: readonly RunEvent[]): void {
  const replay = new Replay();
  for (const call of calls) expect(replay.take(JSON.parse(JSON.stringify(call)) as RunEvent)).toBeNull();
  expect(replay.counts.calls).toBe(calls.length);
}

/** Resolves with the first event that is wanted; no waiting by the clock. */
export const firstEvent = (told: Told, wanted: (e: RunEvent) => boolean): Promise<RunEvent> =>
  new Promise((resolve) => {
    const seen = told.events.find(wanted);
    if (seen !== undefined) return resolve(seen);
    told.run.bus.on("event", function heard(e) {
      if (!wanted(e)) return;
      told.run.bus.off("event", heard);
      resolve(e);
    });
  });
