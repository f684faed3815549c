import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type FileAccess, PoolService } from "../../src/config/pool-service.ts";
import { DEFAULT_SETTINGS } from "../../src/config/pool-settings.ts";
import { allocationNoticedAt, siteNoticedAt } from "../../src/config/reload-times.ts";
import { readScenario } from "../../src/config/scenario-file.ts";
import { changedPools, flagsOf, openPools } from "../../src/config/scenario-pools.ts";
import { instant } from "../../src/core/units.ts";
import { configError, queue, siteText } from "./fixtures.ts";

const SECOND = 1000;

describe("pool-configuration 4: when a change is noticed", () => {
  test.each([
    [0, 0, 10],
    [1, 10, 10],
    [4.999, 10, 10],
    [5, 10, 20],
    [10, 10, 20],
    [14.999, 20, 20],
    [15, 20, 30],
  ])("written at %d s: the site file at %d s, the allocation file at %d s", (written, site, allocation) => {
    expect(siteNoticedAt(instant(written * SECOND))).toBe(site * SECOND);
    expect(allocationNoticedAt(instant(written * SECOND))).toBe(allocation * SECOND);
  });

  test("as the service notices it, for any moment after the start", () => {
    // Modification times below 1 would mean no file, so the service's clock starts later than the run's.
    const start = 1_000_000;
    for (let written = 250; written < 40_000; written += 250) {
      const noticed = { allocation: -1, site: -1 };
      const files = new ChangingFiles(start, start + written);
      const { flags, groups, around, physicalMemory } = DEFAULT_SETTINGS;
      const service = new PoolService(
        {
          paths: { fairScheduler: "f", llamaSite: "s" },
          files,
          log: () => undefined,
          settings: { flags, groups, around, physicalMemory },
        },
        start,
      );
      for (let now = 0; now <= 60_000; now += 10_000) {
        files.now = start + now;
        service.check(start + now);
        const found = service.lookUp("root.a");
        const config = found.kind === "found" ? found.config : null;
        if (noticed.allocation < 0 && config?.maxMemResources === 2 * 1024 * 1024) noticed.allocation = now;
        if (noticed.site < 0 && config?.maxRequests === 2) noticed.site = now;
      }
      expect(noticed).toEqual({
        allocation: allocationNoticedAt(instant(written)),
        site: siteNoticedAt(instant(written)),
      });
    }
  });
});

/** Two files whose second version is written at a given moment. */
class ChangingFiles implements FileAccess {
  now: number;
  readonly #start: number;
  readonly #written: number;

  constructor(start: number, written: number) {
    this.now = start;
    this.#start = start;
    this.#written = written;
  }

  modified(): number {
    return this.now >= this.#written ? this.#written : this.#start - 60_000;
  }

  read(path: string): Uint8Array {
    const n = this.now >= this.#written ? "2" : "1";
    const text =
      path === "s"
        ? siteText({ placed: n })
        : `<allocations>${queue(`<maxResources>${n} mb, 0 vcores</maxResources>`)}</allocations>`;
    return new TextEncoder().encode(text);
  }
}

describe("a scenario whose pool files change", () => {
  const dir = mkdtempSync(join(tmpdir(), "waterhole-reload-"));
  afterAll(() => rmSync(dir, { recursive: true }));
  const write = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text);
    return name;
  };
  const fair = (mb: number): string =>
    `<allocations>${queue(`<maxResources>${mb} mb, 0 vcores</maxResources>`)}</allocations>`;
  const scenario = (faults: string) => {
    write("fair.xml", fair(1));
    write("site.xml", siteText({ placed: "1" }));
    const text = `name: changes
cluster: { executors: [{ count: 1, memory: 1gb, slots: 4 }] }
pools: { fairScheduler: fair.xml, llamaSite: site.xml }
queries: { q: { pool: root.a, estimate: 1mb, duration: 1s } }
arrivals: [{ at: 0s, query: q, count: 1 }]
faults: [${faults}]
`;
    return readScenario(join(dir, write("scenario.yaml", text)));
  };
  const limits = (pools: ReturnType<typeof openPools>) => {
    const { maxMemResources, maxRequests } = pools.configOf("root.a");
    return [maxMemResources / 1024 / 1024, maxRequests];
  };

  test("both files written at once are noticed one after the other, and each keeps what the other brought", () => {
    write("fair2.xml", fair(2));
    write("site2.xml", siteText({ placed: "2" }));
    const s = scenario("{ at: 7s, fault: configChanges, fairScheduler: fair2.xml, llamaSite: site2.xml }");
    expect(s.faults.map((f) => f.at)).toEqual([10_000, 20_000]);
    let pools = openPools(s, flagsOf(s));
    const seen = s.faults.map((fault) => {
      if (fault.kind === "configChanges") pools = changedPools(pools, fault);
      return limits(pools);
    });
    expect(seen).toEqual([
      [1, 2],
      [2, 2],
    ]);
  });

  test("a broken allocation file changes nothing, a broken site file leaves built-in defaults", () => {
    write("broken.xml", "<allocations><configuration>");
    const s = scenario("{ at: 1s, fault: configChanges, fairScheduler: broken.xml, llamaSite: broken.xml }");
    let pools = openPools(s, flagsOf(s));
    for (const fault of s.faults) if (fault.kind === "configChanges") pools = changedPools(pools, fault);
    expect(limits(pools)).toEqual([1, -1]);
  });

  test("a missing file is told before the run", () => {
    const s = scenario("{ at: 1s, fault: configChanges, fairScheduler: none.xml }");
    expect(configError(() => openPools(s, flagsOf(s))).problem).toContain("there is no such file");
  });
});
