/**
 * One run for many settings: limits that a run never touched (insight 3.4 item 8).
 *
 * If no more than 40 ever ran, a limit of 60 and one of 80 give the same run, event for event. So every
 * memory level is run with its loosest setting first, and whatever differs from it only in limits that stayed
 * untouched, there and here, has the same outcome without a run. Nothing is approximated.
 */
import type { Outcome } from "./outcome.ts";
import { keyOf, type Setting } from "./setting.ts";

/** What may be shared: with several controllers, whose views lag, running and queued counts may not. */
export interface SharingRules {
  readonly counts: boolean;
}

const asLimit = (n: number): number => (n < 0 ? Number.POSITIVE_INFINITY : n);

/** Whether the run of `done` is the run of `wanted` too. */
export function isSameRun(done: Setting, outcome: Outcome, wanted: Setting, rules: SharingRules): boolean {
  if (levelOf(done) !== levelOf(wanted)) return false;
  const running = Math.min(asLimit(done.maxRunning), asLimit(wanted.maxRunning));
  const queued = Math.min(done.maxQueued, wanted.maxQueued);
  const timeout = Math.min(done.timeout, wanted.timeout);
  return (
    (done.maxRunning === wanted.maxRunning || (rules.counts && outcome.peakRunning < running)) &&
    (done.maxQueued === wanted.maxQueued || (rules.counts && outcome.peakQueued < queued)) &&
    (done.timeout === wanted.timeout || (outcome.timedOut === 0 && outcome.longestQueued < timeout))
  );
}

/** Everything but the three limits that can be untouched. */
export const levelOf = (s: Setting): string => keyOf({ ...s, maxRunning: 0, maxQueued: 0, timeout: 0 });

/** Loosest first. */
export const byLooseness = (a: Setting, b: Setting): number =>
  order(asLimit(b.maxRunning), asLimit(a.maxRunning)) || b.maxQueued - a.maxQueued || b.timeout - a.timeout;

const order = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0);

/**
 * Outcomes of all settings from as few runs as sharing allows. `run` is called with batches: the loosest
 * setting of each level that no earlier run covers.
 */
export async function outcomesOf(
  settings: readonly Setting[],
  rules: SharingRules,
  run: (batch: readonly Setting[]) => Promise<readonly Outcome[]>,
): Promise<Map<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  const levels = new Map<string, Setting[]>();
  for (const s of settings) {
    const level = levels.get(levelOf(s));
    if (level === undefined) levels.set(levelOf(s), [s]);
    else level.push(s);
  }
  for (const level of levels.values()) level.sort(byLooseness);
  for (;;) {
    const batch = [...levels.values()].map((level) => level[0]).filter((s) => s !== undefined);
    if (batch.length === 0) return outcomes;
    const done = await run(batch);
    batch.forEach((s, i) => {
      const level = levels.get(levelOf(s))!;
      const outcome = done[i]!;
      const left = level.filter((other) => {
        const same = other === s || keyOf(other) === keyOf(s) || isSameRun(s, outcome, other, rules);
        if (same) outcomes.set(keyOf(other), outcome);
        return !same;
      });
      levels.set(levelOf(s), left);
    });
  }
}
