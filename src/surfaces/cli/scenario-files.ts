/**
 * The files that a scenario is read from, so that no command writes over one of them.
 */
import type { Scenario } from "../../config/scenario.ts";

/** Itself, its pool files, and those that faults put in their place. */
export function filesOf({ file, pools, faults }: Scenario): string[] {
  const changed = faults.flatMap((f) => (f.kind === "configChanges" ? [f.fairScheduler, f.llamaSite] : []));
  const own = pools.kind === "files" ? [pools.fairScheduler, pools.llamaSite] : [];
  return [file, ...[...own, ...changed].filter((f) => f !== null)];
}

export const tracesOf = ({ arrivals }: Scenario): string[] =>
  arrivals.flatMap((a) => (a.kind === "trace" ? [a.file] : []));
