/**
 * What `import --json` prints.
 */
import type { Acceptance, HourCheck } from "../../../insight/log/acceptance.ts";
import { type Advice, adviceText } from "../../../insight/log/advice.ts";
import type { ClassRow } from "../../../insight/log/class-table.ts";
import type { LogReport } from "../../../insight/log/log-report.ts";
import type { Consistency } from "../../../workload/query-log/consistency.ts";

export const importDocument = (
  report: LogReport,
  acceptance: Acceptance | null,
  remarks: readonly string[],
): object => ({
  ...report,
  consistency: report.consistency === null ? null : consistencyDocument(report.consistency),
  classes: report.classes.map(classDocument),
  advice: report.advice.map(adviceDocument),
  acceptance:
    acceptance === null
      ? null
      : { hours: acceptance.hours.map(hourDocument), failed: acceptance.failed.map(hourDocument) },
  remarks,
});

const consistencyDocument = (c: Consistency): object => ({
  checked: c.checked,
  mismatches: c.mismatches,
  mismatchShare: c.share,
  isBroken: c.isBroken,
  examples: c.examples.map(({ line, pool, recorded, expected }) => ({
    line,
    pool,
    recordedBytes: recorded,
    expectedBytes: expected,
  })),
});

const classDocument = (c: ClassRow): object => ({
  queryClass: c.queryClass,
  pool: c.pool,
  queries: c.n,
  estimateP50Bytes: c.estimateP50,
  admittedP50Bytes: c.admittedP50,
  peakBytes: c.peak,
  inflationP50: c.inflationP50,
  hostsP50: c.hostsP50,
  holdMs: c.holdMs,
  waitedP95Ms: c.waitedMsP95,
  spilledShare: c.spilledShare,
  failedForMemory: c.failedForMemory,
  failedAtLimit: c.failedAtLimit,
  tightShare: c.tightShare,
  limitThatBitBytes: c.limitThatBit,
  neverUsedGiBHours: c.neverUsedGiBHours,
  memoryTimeShare: c.memoryTimeShare,
  largestReservationBytes: c.largestReservation,
  tables: c.tables,
  missingStats: c.missingStats,
  statsMissing: c.statsMissing,
});

export function adviceDocument(a: Advice): object {
  return { ...figuresOf(a), text: adviceText(a) };
}

function figuresOf(a: Advice): object {
  switch (a.id) {
    case "K1": {
      const { gains, ...rest } = a;
      return {
        ...rest,
        gains: gains.map((g) => ({ queryClass: g.queryClass, estimateBytes: g.estimate, wouldBeBytes: g.wouldBe })),
      };
    }
    case "K4": {
      const { maxMem, ...rest } = a;
      return { ...rest, maxMemBytes: maxMem };
    }
    case "K5": {
      const { memLimit, cutAt, ...rest } = a;
      return { ...rest, memLimitBytes: memLimit, cutAtBytes: cutAt };
    }
    default:
      return a;
  }
}

const hourDocument = (h: HourCheck): object => ({
  pool: h.pool,
  hour: h.hour,
  requests: h.requests,
  waitedShare: h.waited,
  p95WaitMs: h.p95,
  isMet: h.isMet,
});
