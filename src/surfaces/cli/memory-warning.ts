/**
 * How much of this machine a live run may touch, before it does: arenas are real memory, and a machine that starts to
 * swap shows waits that no cluster has.
 *
 * About an upper bound, from what is known before the run: no host touches more than its buffers, nor more than the
 * queries that its pools let run at a time. Several coordinators can let in more for a moment.
 */
import type { Arrival } from "../../config/scenario.ts";
import { backendsOf } from "../../config/scenario-cluster.ts";
import { prettyBytes } from "../../core/pretty.ts";
import { hostSpecs } from "../../runtime/host-sizes.ts";
import { draw } from "../../workload/draw.ts";
import type { ScenarioRun } from "./scenario-run.ts";

/** Of the free memory; beyond it a run is likely to take it from others. */
const GOOD_PART = 0.5;
/** A random peak counts with what one in a thousand exceeds. */
const RARE = 0.999;

/** What to say on a machine with so many bytes free; null: there is enough. */
export function memoryWarning(run: ScenarioRun, free: number): string | null {
  const { scale, queries } = run.scenario;
  const touched = memoryDemand(run);
  const allowed = Math.max(1, free * GOOD_PART);
  if (touched <= allowed) return null;
  const fits = 2 ** Math.ceil(Math.log2((touched * scale.memory) / allowed));
  const remedy = queries.some((q) => q.uses.kind === "operators")
    ? "Real operators need scale.memory 1: give the executors less memory, or take fewer of them."
    : `With  scale: { memory: ${fits} }  it fits.`;
  return `This run may touch up to ${prettyBytes(touched)} of real memory, and ${prettyBytes(free)} are free. ${remedy}`;
}

/** Real bytes in the arenas of all hosts together, at most. */
export function memoryDemand(run: ScenarioRun): number {
  const { scenario } = run;
  const onHost = neededOnHost(run);
  const executors = hostSpecs(scenario, backendsOf(scenario.cluster)).filter((h) => h.backend.isExecutor);
  return executors.reduce((sum, h) => sum + Math.min(h.memory.bufferPoolLimit, onHost), 0) / scenario.scale.memory;
}

/** Emulated bytes on one host when every pool is full of its largest queries. */
function neededOnHost(run: ScenarioRun): number {
  const { scenario } = run;
  const atOnce = scenario.arrivals.reduce((n, a) => n + atATime(a), 0);
  const submitted = Math.min(atOnce, scenario.limits.queries);
  const byPool = new Map<string, { running: number; peak: number }>();
  for (const queryClass of scenario.queries) {
    const found = run.pools.resolve(queryClass.requestedPool, queryClass.users[0] ?? "");
    if (found.kind !== "resolved") continue;
    const most = byPool.get(found.pool) ?? { running: 0, peak: 0 };
    most.running = Math.max(most.running, runningAtMost(run, found.pool, queryClass.name));
    most.peak = Math.max(most.peak, peakOf(queryClass));
    byPool.set(found.pool, most);
  }
  return [...byPool.values()].reduce(
    (sum, { running, peak }) => sum + (peak === 0 ? 0 : Math.min(submitted, running) * peak),
    0,
  );
}

/** Of one class, when the pool has no other; Infinity: the pool sets no bound. */
function runningAtMost(run: ScenarioRun, pool: string, queryClass: string): number {
  const config = run.configOf(pool);
  const charge = run.chargeOf(pool, queryClass)?.cluster ?? 0;
  if (config === null) return 0;
  const { maxRequests, maxMemResources } = config;
  const byCount = maxRequests < 0 ? Number.POSITIVE_INFINITY : maxRequests;
  const byMemory =
    maxMemResources < 0 || charge === 0 ? Number.POSITIVE_INFINITY : Math.floor(maxMemResources / charge);
  return Math.min(byCount, byMemory);
}

/** Bytes on one host; of real operators only their estimate is known. */
function peakOf({ uses, shape }: ScenarioRun["scenario"]["queries"][number]): number {
  if (uses.kind === "operators") return shape.perHostMemEstimate;
  return draw(uses.peak, RARE) * Math.max(1, ...Object.values(uses.skew));
}

/** Queries of one arrival that can be there at a time: open traffic can all pile up. */
function atATime(arrival: Arrival): number {
  switch (arrival.kind) {
    case "burst":
    case "every":
      return arrival.count;
    case "clients":
      return arrival.clients;
    case "trace":
      return arrival.rows.length;
    case "rate":
      return Number.POSITIVE_INFINITY;
  }
}
