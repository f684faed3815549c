/**
 * Everything that is known at the end of a run, before it becomes text or JSON.
 */
import type { MemoryToAdmit } from "../../core/admission/memory-to-admit.ts";
import type { EventOf } from "../../core/events.ts";
import type { HostOverAdmission } from "../../insight/host-over-admission.ts";
import type { PoolSummary, RunSummary } from "../../insight/summary.ts";
import type { ThresholdResult } from "../../insight/thresholds.ts";

export interface RunReport {
  readonly name: string;
  readonly mode: "live" | "virtual";
  readonly seed: number;
  readonly scenario: string;
  readonly summary: RunSummary;
  readonly thresholds: readonly ThresholdResult[];
  /** Hosts that several controllers together gave more than they have; null: one decides, or it was not looked at. */
  readonly overAdmittedHosts: readonly HostOverAdmission[] | null;
  /** Where the records went; null: they were not written. */
  readonly records: string | null;
  /** Live runs: what the fleet says about itself. */
  readonly fleet: FleetReport | null;
  /** What the daemons log about pool files that changed while it ran. */
  readonly poolFiles: readonly EventOf<"poolFiles">[];
  /** What the machine may not be able to give, and faults that the run ended before. */
  readonly warnings: readonly string[];
  /** Stopped by a person before it was over. */
  readonly interrupted: boolean;
  /** What the class asks for, empty: nothing. */
  readonly requestedPoolOf: (queryClass: string) => string;
  /** What one query of a class is charged in a pool, and where that comes from; null: not to be known. */
  readonly chargeOf: (pool: string, queryClass: string) => MemoryToAdmit | null;
}

export interface FleetReport {
  readonly hosts: number;
  readonly threads: number;
  readonly realMs: number;
  /** Largest number of real bytes touched in one host's arena, and the size of that arena. */
  readonly peakArenaBytes: number;
  readonly arenaBytes: number;
  /** In emulated bytes, of the host with most. */
  readonly peakScratchBytes: number;
  /** What was left behind when all had ended: empty unless something is broken. */
  readonly left: readonly string[];
}

/** The one document of `--json`. */
export function reportJson(report: RunReport): unknown {
  const { summary } = report;
  return {
    name: report.name,
    mode: report.mode,
    seed: report.seed,
    scenario: report.scenario,
    interrupted: report.interrupted,
    emulatedMs: summary.untilMs,
    submitted: summary.submitted,
    unresolved: summary.unresolved,
    earlyRefusals: summary.earlyRefusals,
    pools: Object.fromEntries(summary.pools.map((pool) => [pool.pool, poolJson(pool)])),
    overAdmittedHosts: report.overAdmittedHosts,
    thresholds: report.thresholds.map(({ expr, holds, value, unit }) => ({
      expr,
      holds,
      value,
      unit: unit === "time" ? "ms" : unit,
    })),
    records: report.records,
    fleet: report.fleet,
    warnings: report.warnings,
    poolFiles: report.poolFiles.map(({ at, level, text }) => ({ atMs: at, level, text })),
    broken: summary.broken,
  };
}

const poolJson = (pool: PoolSummary): object => ({
  ...pool,
  longestWaiter: pool.longestWaiter === "" ? null : pool.longestWaiter,
  classes: pool.classes.map((c) => ({ ...c, needBytes: known(c.needBytes), peakBytes: known(c.peakBytes) })),
});

const known = (bytes: number): number | null => (bytes < 0 ? null : bytes);

/** 1: a promise of ours is broken; 99: a threshold does not hold; else 0. */
export function exitCodeOf(report: RunReport): number {
  if (report.summary.broken.length > 0 || (report.fleet?.left.length ?? 0) > 0) return 1;
  return report.thresholds.some((t) => !t.holds) ? 99 : 0;
}
