/** What must hold after every live run. Apart from the fixture, which also runs in child processes. */

import { existsSync, readdirSync, rmSync } from "node:fs";
import type { Worker } from "node:worker_threads";
import { afterAll, afterEach, expect, vi } from "vitest";
import type { LiveReport } from "../../src/runtime/live-run.ts";
import { firstEvent, open, SCRATCH, type Small, small, type Told } from "./live-fixture.ts";

/** Every thread that was started in this process since `leavesNothingBehind`. */
export const startedThreads: Worker[] = [];

/** A thread that has ended has no number any more. */
export const hasEnded = (thread: Worker): boolean => thread.threadId === -1;

/** After every test of the file: no directory below SCRATCH, no thread and no port more than before. */
export function leavesNothingBehind(): void {
  process.on("worker", (thread) => startedThreads.push(thread));
  const threads = (): number => process.getActiveResourcesInfo().filter((r) => /Worker|MessagePort/.test(r)).length;
  const before = threads();
  afterEach(async () => {
    expect(existsSync(SCRATCH) ? readdirSync(SCRATCH) : []).toEqual([]);
    // Node closes a port in a later turn than the call that asks for it; one that stays open fails here.
    await vi.waitFor(() => expect(threads()).toBe(before), { timeout: 30_000, interval: 1 });
    expect(startedThreads.filter((t) => !hasEnded(t))).toEqual([]);
  });
  afterAll(() => rmSync(SCRATCH, { recursive: true, force: true }));
}

/** Every book at zero, and no arena ever over its limit. */
export function expectClean(report: LiveReport): void {
  expect(report.leftBehind).toEqual([]);
  for (const h of report.hosts) expect(h.arenaPeak).toBeLessThanOrEqual(h.arenaSize);
}

/** Ctrl-C once, with queries waiting and running: the former are cancelled, the latter finish. */
export async function drainedWhileBusy(cluster: Small["cluster"], burst: number): Promise<Told> {
  const told = await open(
    small({
      ...(cluster === undefined ? {} : { cluster }),
      flags: { default_pool_max_requests: "2" },
      query: { duration: "3s" },
      arrivals: [
        { at: "0s", query: "q", count: burst },
        { every: "1s", query: "q", from: "1s", to: "10m" },
      ],
    }),
  );
  const done = told.run.run();
  await firstEvent(told, () => told.count("fragmentStarted") >= 2 && told.count("queued") >= 3);
  told.run.drain();
  const report = await done;
  expect(report.ended).toBe("drained");
  expect(told.count("cancelled")).toBe(told.count("submitted") - told.count("admitted"));
  expect(told.events.filter((e) => e.kind === "released").map((e) => e.state)).not.toContain("cancelled");
  expectClean(report);
  return told;
}

/** Ctrl-C before the first thread is there: nothing is submitted. */
export async function drainedAtOnce(cluster: Small["cluster"]): Promise<void> {
  const told = await open(small(cluster === undefined ? {} : { cluster }));
  const done = told.run.run();
  told.run.drain();
  const report = await done;
  expect(told.count("submitted")).toBe(0);
  expectClean(report);
}
