/**
 * What `lab --json` prints.
 */
import type { GroupFigures } from "../../../insight/lab/group-observer.ts";
import type { LabReport, PolicyRow } from "../../../insight/lab/policy-lab.ts";
import { endlessIfNull } from "./json-text.ts";

export const labDocument = (r: LabReport, remarks: readonly string[]): object => ({
  pool: r.pool,
  requests: r.requests,
  largeAboveBytes: r.threshold,
  largeMemoryTimeShare: r.threshold === null ? null : r.largeShare,
  rows: r.rows.map(rowDocument),
  sentences: r.sentences,
  remarks,
});

const rowDocument = (row: PolicyRow): object => ({
  policy: row.policy,
  what: row.what,
  all: groupDocument(row.all),
  small: groupDocument(row.small),
  large: groupDocument(row.large),
  memoryUsedShare: row.memoryUsed,
  overtakings: row.overtakings,
});

function groupDocument(g: GroupFigures): object {
  const overAdmitted = (ms: number): number | null => (g.admitted === 0 ? null : ms);
  return {
    submitted: g.submitted,
    admitted: g.admitted,
    lost: g.lost,
    lostShare: g.submitted === 0 ? null : g.lost / g.submitted,
    meanWaitMs: overAdmitted(g.meanWait),
    longestWaitMs: overAdmitted(g.longestWait),
    p95WaitMs: g.submitted === 0 ? null : endlessIfNull(g.p95),
  };
}
