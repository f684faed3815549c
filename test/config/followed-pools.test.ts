/** A run's clock set against the files': the looks and the rest are the run's, whatever its scale. */
import { describe, expect, test } from "vitest";
import { FollowedPools } from "../../src/config/followed-pools.ts";
import { DEFAULT_FLAGS } from "../../src/config/impala-flags.ts";
import type { FileAccess } from "../../src/config/pool-service.ts";
import { parseScenario } from "../../src/config/scenario-file.ts";
import type { Instant } from "../../src/core/units.ts";
import { queue } from "./fixtures.ts";

const OPENED = 1_000_000;
const BEGUN = 1_002_000;
const memory = (mb: number): string =>
  `<allocations>${queue(`<maxResources>${mb} mb, 0 vcores</maxResources>`)}</allocations>`;

/** 20 emulated seconds a real one, begun two real seconds after the opening. */
function start() {
  const file = { text: memory(1), modified: OPENED - 1000 };
  const files: FileAccess = {
    modified: () => file.modified,
    read: () => new TextEncoder().encode(file.text),
  };
  const scenario = parseScenario(
    "cluster: { executors: [{ memory: 1gb }] }\npools: { fairScheduler: f.xml }\nqueries: { q: { estimate: 1mb, duration: 1s } }\narrivals: [{ at: 0s }]\nscale: { time: 20 }\n",
    "/conf/scenario.yaml",
  );
  const pools = new FollowedPools(scenario, DEFAULT_FLAGS, files, OPENED);
  pools.begin(BEGUN);
  const write = (mb: number, realAt: number): void => {
    file.text = memory(mb);
    file.modified = realAt;
  };
  const mb = (): number => {
    const found = pools.lookUp("root.a");
    return found.kind === "found" ? found.config.maxMemResources / 1024 / 1024 : -1;
  };
  return { pools, write, mb, look: (at: number) => pools.check(at as Instant) };
}

describe("4.1 on a clock of 20 emulated seconds a real one", () => {
  test("the first look is at 10 s, and nothing has changed that was written before the opening", () => {
    const { pools, look, mb } = start();
    expect(pools.nextCheck).toBe(10_000);
    expect(look(10_000)).toBe(false);
    expect(pools.nextCheck).toBe(20_000);
    expect(mb()).toBe(1);
  });

  test.each([
    // 250 real milliseconds after the beginning are 5 emulated seconds.
    { writtenAt: 249, noticedAt: 10_000 },
    { writtenAt: 250, noticedAt: 20_000 },
    { writtenAt: 251, noticedAt: 20_000 },
  ])("written $writtenAt real ms after the beginning: in force at $noticedAt", ({ writtenAt, noticedAt }) => {
    const { write, look, mb } = start();
    write(2, BEGUN + writtenAt);
    expect(look(10_000)).toBe(noticedAt === 10_000);
    expect(look(20_000)).toBe(noticedAt === 20_000);
    expect(mb()).toBe(2);
  });

  test("written while the fleet was starting: as if right after the beginning", () => {
    const { write, look, mb } = start();
    write(2, OPENED + 1);
    expect(look(10_000)).toBe(true);
    expect(mb()).toBe(2);
  });
});
