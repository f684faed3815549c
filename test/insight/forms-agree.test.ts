/**
 * One simulated run told twice, in plain numbers and as events, gives one summary: whether records are written
 * must not change a figure. Random small clusters with random faults; every identity of a run holds on the way.
 */
import { describe, expect, test } from "vitest";
import { parseScenario } from "../../src/config/scenario-file.ts";
import { flagsOf, openPools } from "../../src/config/scenario-pools.ts";
import { Xoshiro128 } from "../../src/core/random.ts";
import { EventObserver } from "../../src/insight/event-observer.ts";
import type { RunSummary } from "../../src/insight/summary.ts";
import { SummaryFold } from "../../src/insight/summary-fold.ts";
import { type SimulationInput, simulate } from "../../src/sim/simulate.ts";
import { poolResolver } from "../../src/workload/pool-resolver.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";

class Dice {
  readonly #generator: Xoshiro128;

  constructor(seed: number) {
    this.#generator = new Xoshiro128(seed, 77, 3, 4);
    for (let i = 0; i < 20; i++) this.#generator.next();
  }

  int(low: number, high: number): number {
    return low + Math.floor(this.#generator.uniform() * (high - low + 1));
  }

  chance(p: number): boolean {
    return this.#generator.uniform() < p;
  }

  of<T>(list: readonly T[]): T {
    return list[this.int(0, list.length - 1)]!;
  }
}

function randomScenario(seed: number): string {
  const d = new Dice(seed);
  const hosts = d.int(1, 6);
  const dedicated = d.chance(0.5);
  const coordinators = dedicated ? d.int(1, 4) : d.int(1, Math.min(4, hosts));
  const classes = Array.from({ length: d.int(1, 3) }, (_, i) => {
    const extras = [
      d.chance(0.2) ? ", mtDop: 2" : "",
      d.chance(0.2) ? ", cancelAfter: { exponential: { mean: 10s } }" : "",
      d.chance(0.2)
        ? ", retries: { attempts: 4, on: [rejected, timedOut, failed], backoff: { from: 100ms, to: 2s } }"
        : "",
    ].join("");
    const duration = d.of([`${d.int(1, 50) * 100}ms`, `{ exponential: { mean: ${d.int(1, 5)}s } }`]);
    return `  q${i}: { estimate: ${d.int(1, 20) * 100}mb, uses: { peak: ${d.int(1, 20) * 60}mb }, duration: ${duration}, hosts: ${d.of(["all", d.int(1, hosts)])}${extras} }`;
  });
  const arrivals = classes.map((_, i) =>
    d.of([
      `{ at: ${d.int(0, 3)}s, query: q${i}, count: ${d.int(1, 60)} }`,
      `{ rate: ${d.int(1, 20)}/s, to: 30s, query: q${i} }`,
      `{ clients: ${d.int(1, 15)}, think: { exponential: { mean: 1s } }, to: 30s, query: q${i} }`,
      `{ every: ${d.int(1, 20) * 50}ms, count: ${d.int(1, 60)}, query: q${i} }`,
    ]),
  );
  const executors = `{ count: ${hosts}, memory: ${d.int(2, 20)}gb, slots: ${d.int(1, 8)} }`;
  const mode = d.of(["distributed", "distributed", "admissiond"]);
  return `seed: ${seed}
cluster:
  executors: [${executors}]
  coordinators: [{ count: ${coordinators}, on: ${dedicated ? "dedicated" : "executor"} }]
  admission: ${mode}
flags:
  default_pool_max_requests: ${d.int(1, 20)}
  default_pool_mem_limit: ${d.int(1, 60)}gb
  default_pool_max_queued: ${d.int(1, 50)}
  queue_wait_timeout_ms: ${d.int(1, 30) * 500}
queries:
${classes.join("\n")}
arrivals: [${arrivals.join(", ")}]
faults: [${randomFaults(d, hosts, dedicated ? `coord-${coordinators}` : `exec-${coordinators}`, coordinators, mode)}]
limits: { time: 60s, queries: 3000 }
`;
}

function randomFaults(d: Dice, hosts: number, lastCoordinator: string, coordinators: number, mode: string): string {
  const faults: string[] = [];
  const both = (first: string, second: string): void => {
    faults.push(`{ at: ${d.int(1, 9)}s, ${first} }`, `{ at: ${d.int(10, 19)}s, ${second} }`);
  };
  if (d.chance(0.5)) {
    const host = `host: exec-${d.int(1, hosts)}`;
    both(`fault: hostDies, ${host}`, `fault: hostReturns, ${host}`);
  }
  if (d.chance(0.3)) both("fault: statestoreStops", "fault: statestoreStarts");
  if (d.chance(0.3)) both("fault: releasesLost, chance: 0.3", "fault: releasesLost, chance: 0");
  if (d.chance(0.3) && coordinators > 1)
    faults.push(`{ at: ${d.int(1, 9)}s, fault: coordinatorDies, host: ${lastCoordinator} }`);
  if (d.chance(0.3)) faults.push(`{ at: ${d.int(1, 9)}s, fault: refusals, chance: 0.5 }`);
  return faults.filter((f) => mode === "admissiond" || !f.includes("releasesLost")).join(", ");
}

function toldTwice(text: string): { readonly fast: RunSummary; readonly slow: RunSummary } {
  const scenario = parseScenario(text, "/random.yaml");
  const flags = flagsOf(scenario);
  const pools = openPools(scenario, flags);
  const settings = {
    configOf: (pool: string) => pools.configOf(pool),
    admission: scenario.cluster.admission,
    mayLeak: true,
  };
  const input = (): SimulationInput => ({
    scenario,
    flags,
    pools,
    looksAtHosts: true,
    workload: createWorkload(
      scenario,
      poolResolver(() => pools, flags, scenario.users),
    ),
  });
  const fast = new SummaryFold(settings);
  simulate({ ...input(), observer: fast });
  const slow = new SummaryFold(settings);
  const observer = new EventObserver(slow);
  const { endedAt } = simulate({ ...input(), emit: (event) => observer.add(event) });
  observer.end(endedAt);
  return { fast: fast.finish(), slow: slow.finish() };
}

/** Integrals add up their parts in another order: the last digits may differ, nothing else. */
const rounded = (summary: RunSummary): unknown =>
  JSON.parse(JSON.stringify(summary, (_, v: unknown) => (typeof v === "number" ? Number(v.toPrecision(10)) : v)));

describe("numbers and events tell the same run", () => {
  test.each(Array.from({ length: 40 }, (_, i) => i + 1))("random cluster with random faults, seed %d", (seed) => {
    const { fast, slow } = toldTwice(randomScenario(seed));
    expect([...fast.broken, ...slow.broken]).toEqual([]);
    expect(rounded(fast)).toEqual(rounded(slow));
  });
});
