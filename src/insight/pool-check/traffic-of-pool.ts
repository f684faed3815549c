/**
 * Which classes of the traffic run in which pool, by the placement rules and not by what was asked for.
 */
import { DEFAULT_POOL } from "../../core/pool-config.ts";
import type { CheckContext } from "./check-context.ts";
import type { TrafficClass } from "./check-input.ts";

/** Where a class lands; null when it is refused. */
export function landingOf(c: TrafficClass, { directory }: CheckContext): string | null {
  if (c.landedPool !== null) return c.landedPool;
  if (directory === null) return DEFAULT_POOL;
  const found = directory.resolve(c.requestedPool, c.user);
  return found.kind === "resolved" ? found.pool : null;
}

export const classesIn = (pool: string, context: CheckContext): readonly TrafficClass[] =>
  (context.input.traffic?.classes ?? []).filter((c) => landingOf(c, context) === pool);
