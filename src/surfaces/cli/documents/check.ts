/**
 * What `check --json` prints: everything but the directory, which is for further questions.
 */
import type { PoolCheck } from "../../../insight/pool-check/pool-check.ts";
import type { PoolRow } from "../../../insight/pool-check/pool-table.ts";
import type { LandingAnswer } from "../../../insight/pool-check/where-a-request-lands.ts";

export const checkDocument = (
  { findings, counts, pools, placement, users, logWarnings }: PoolCheck,
  answer: LandingAnswer | null,
): object => ({
  findings,
  counts,
  pools: pools.map(poolDocument),
  placement,
  users,
  logWarnings,
  answer,
});

/** The record's fields that are amounts or times; the others are counts, names and switches. */
const WITH_UNIT: Readonly<Record<string, string>> = {
  maxMemResources: "maxMemResourcesBytes",
  queueTimeout: "queueTimeoutMs",
  minQueryMemLimit: "minQueryMemLimitBytes",
  maxQueryMemLimit: "maxQueryMemLimitBytes",
};

const poolDocument = ({ fields, ...row }: PoolRow): object => ({
  ...row,
  fields:
    fields === null
      ? null
      : Object.fromEntries(Object.entries(fields).map(([name, cell]) => [WITH_UNIT[name] ?? name, cell])),
});
