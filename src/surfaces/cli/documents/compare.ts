/**
 * What `compare --json` prints. Figures over nobody are null, where the table has a 0.
 */
import type { Cause } from "../../../insight/fidelity/causes.ts";
import type { PoolComparison, WaitFigures } from "../../../insight/fidelity/comparison.ts";
import type { Fidelity } from "../../../insight/fidelity/fidelity.ts";

export const compareDocument = (
  { queries, pools, poolsWithDelays, causes }: Fidelity,
  mode: "live" | "virtual",
): object => ({
  mode,
  queries,
  holds: pools.every((p) => p.bars.every((b) => b.holds)),
  pools: pools.map(poolDocument),
  poolsWithDelays: poolsWithDelays.map(poolDocument),
  causes: {
    measuredMeanWaitMs: isAnyAdmitted(pools, "measured") ? causes.measuredMeanWait : null,
    predictedMeanWaitMs: isAnyAdmitted(pools, "predicted") ? causes.predictedMeanWait : null,
    causes: causes.causes.map(causeDocument),
    together: causeDocument(causes.together),
  },
});

const isAnyAdmitted = (pools: readonly PoolComparison[], run: "measured" | "predicted"): boolean =>
  pools.some((p) => p[run].admitted > 0);

function poolDocument(p: PoolComparison): object {
  const { compared, median, p99, most } = p.perQuery;
  const apart = (ms: number): number | null => (compared === 0 ? null : ms);
  return {
    pool: p.pool,
    submitted: p.submitted,
    measured: figuresDocument(p.measured),
    predicted: figuresDocument(p.predicted),
    meanHoldMs: p.held === 0 ? null : p.meanHold,
    longestWaitMs: {
      measured: overAdmitted(p.measured, p.lastWait.measured),
      predicted: overAdmitted(p.predicted, p.lastWait.predicted),
    },
    load: p.load,
    perQuery: { compared, medianMs: apart(median), p99Ms: apart(p99), mostMs: apart(most) },
    overAdmission: p.overAdmission,
    bars: p.bars,
  };
}

const figuresDocument = (f: WaitFigures): object => ({
  admitted: f.admitted,
  meanWaitMs: overAdmitted(f, f.meanWait),
  p95WaitMs: overAdmitted(f, f.p95Wait),
  waitedShare: f.waited,
  rejectedShare: f.rejected,
  timedOutShare: f.timedOut,
  lostShare: f.lost,
});

const overAdmitted = ({ admitted }: WaitFigures, ms: number): number | null => (admitted === 0 ? null : ms);

const causeDocument = (c: Cause): object => ({
  name: c.name,
  recordedMs: c.recorded,
  meanWaitMs: c.meanWait,
  explainsShare: c.explains,
});
