/**
 * The sharp test of the simulator (insight 6.5 item 3): the same traffic through an independent slow model
 * gives the same outcome at the same microsecond, query by query.
 */
import { describe, expect, test } from "vitest";
import { parseScenario } from "../../src/config/scenario-file.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../src/core/pool-config.ts";
import { xoshiroFor } from "../../src/core/random.ts";
import { IDLE_OBSERVER } from "../../src/core/run-observer.ts";
import { type Bytes, GiB, type MaxBytes, type Millis } from "../../src/core/units.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { GivenWorkload } from "./given-workload.ts";
import { runSlowly, type SlowOutcome, type SlowQuery, type SlowSetting } from "./slow-pool.ts";

const QUERIES = 500;
const SETTINGS = 200;

interface Setting {
  readonly setting: SlowSetting;
  readonly queries: readonly SlowQuery[];
}

function randomSetting(seed: number): Setting {
  const random = xoshiroFor(seed, 0, "exactness");
  const below = (n: number): number => Math.floor(random.uniform() * n);
  const oneOf = <T>(items: readonly T[]): T => items[below(items.length)]!;
  const hosts = 1 + below(4);
  const hasMemory = random.uniform() < 0.75;
  const maxRunning = !hasMemory || random.uniform() < 0.5 ? 1 + below(8) : -1;
  const setting: SlowSetting = {
    hosts,
    period: oneOf([20_000, 100_000, 370_000]),
    hostMemory: (2 + below(10)) * GiB,
    maxMemory: hasMemory ? hosts * (2 + below(8)) * GiB : -1,
    maxRunning,
    maxQueued: oneOf([1, 5, 50]),
    timeout: oneOf([150_001, 1_000_003, 60_000_007]),
  };
  const gap = oneOf([40_000, 120_000, 400_000]);
  let at = 0;
  const queries = Array.from({ length: QUERIES }, () => {
    at += 1 + below(2 * gap);
    return { at, hold: 1 + below(900_000), perHost: oneOf([0.25, 0.5, 1, 2]) * GiB };
  });
  return { setting, queries };
}

/** With one host the coordinator's share is the whole charge; with more it is one of equal shares. */
function simulated({ setting, queries }: Setting): SlowOutcome[] {
  const sizes = [0.25, 0.5, 1, 2].map((size) => size * GiB);
  const scenario = parseScenario(
    JSON.stringify({
      cluster: {
        executors: [{ count: setting.hosts, memory: `${setting.hostMemory / GiB}gb`, slots: 4 }],
        coordinators: [{ count: 1, on: "executor" }],
        statestore: { every: `${setting.period / 1000}ms` },
      },
      pools: "flags",
      queries: Object.fromEntries(
        sizes.map((bytes) => [
          `q${bytes}`,
          { user: "ana", estimate: `${bytes / GiB}gb`, uses: { peak: "0" }, duration: "1s" },
        ]),
      ),
      arrivals: [{ at: "0s", query: `q${sizes[0]}`, count: 1 }],
    }),
    "exactness.json",
  );
  const config: PoolConfig = {
    ...DEFAULT_POOL_CONFIG,
    maxRequests: setting.maxRunning,
    maxQueued: setting.maxQueued,
    maxMemResources: setting.maxMemory as MaxBytes,
    queueTimeout: (setting.timeout / 1000) as Millis,
    // Not legacy without memory either, so that limits are published alike.
    maxQueryMemLimit: (64 * GiB) as Bytes,
  };
  const arrivals = queries.map((q) => ({
    at: q.at / 1000,
    coordinator: "exec-1:27000",
    pool: "q",
    queryClass: sizes.indexOf(q.perHost),
    duration: q.hold / 1000,
  }));
  const workload = new GivenWorkload(scenario, arrivals);
  const outcomes: SlowOutcome[] = [];
  const numberOf = (q: { readonly queryId: string }): number => Number.parseInt(q.queryId.slice(0, 16), 16) - 1;
  const note = (how: SlowOutcome["how"], at: number, q: { readonly queryId: string }): void => {
    outcomes[numberOf(q)] = { how, at: Math.round(at * 1000) };
  };
  simulate({
    scenario,
    workload,
    pools: { configOf: () => config },
    observer: {
      ...IDLE_OBSERVER,
      admitted: (at, q, path) => note(path === "fromQueue" ? "fromQueue" : "atOnce", at, q),
      rejected: (at, q) => note("rejected", at, q),
      timedOut: (at, q) => note("timedOut", at, q),
    },
  });
  return outcomes;
}

describe("the simulator and a slow model that shares no code", () => {
  test(`${QUERIES * SETTINGS} queries in ${SETTINGS} random settings: same outcomes, same microseconds`, () => {
    const seen = new Map<SlowOutcome["how"], number>();
    let compared = 0;
    // Settings in which an exchange meets something else are passed over; the seeds are fixed, so it is known how many.
    for (let seed = 1; compared < SETTINGS; seed++) {
      const setting = randomSetting(seed);
      const expected = runSlowly(setting.setting, setting.queries);
      if (expected === null) continue;
      compared++;
      expect(simulated(setting), `seed ${seed}`).toEqual(expected);
      for (const { how } of expected) seen.set(how, (seen.get(how) ?? 0) + 1);
    }
    for (const how of ["atOnce", "fromQueue", "rejected", "timedOut"] as const)
      expect(seen.get(how) ?? 0, how).toBeGreaterThan(1000);
  });
});
