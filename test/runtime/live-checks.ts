/** What must hold after every live run. Apart from the fixture, which also runs in child processes. */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { afterAll, afterEach, expect } from "vitest";
import type { LiveReport } from "../../src/runtime/live-run.ts";
import { SCRATCH } from "./live-fixture.ts";

/** After every test of the file: no directory below SCRATCH, no thread and no port more than before. */
export function leavesNothingBehind(): void {
  const threads = (): number => process.getActiveResourcesInfo().filter((r) => /Worker|MessagePort/.test(r)).length;
  const before = threads();
  afterEach(() => {
    expect(existsSync(SCRATCH) ? readdirSync(SCRATCH) : []).toEqual([]);
    expect(threads()).toBe(before);
  });
  afterAll(() => rmSync(SCRATCH, { recursive: true, force: true }));
}

/** Every book at zero, and no arena ever over its limit. */
export function expectClean(report: LiveReport): void {
  expect(report.leftBehind).toEqual([]);
  for (const h of report.hosts) expect(h.arenaPeak).toBeLessThanOrEqual(h.arenaSize);
}
