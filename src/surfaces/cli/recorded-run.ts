/**
 * A records file opened: the scenario and the pools as they were when it was written.
 */
import { resolve } from "node:path";
import type { ImpalaFlags } from "../../config/impala-flags.ts";
import type { PoolDirectory } from "../../config/pool-directory.ts";
import type { Scenario } from "../../config/scenario.ts";
import { parseScenario } from "../../config/scenario-file.ts";
import { flagsOf, poolsFromTexts } from "../../config/scenario-pools.ts";
import type { RecordsHeader } from "../../insight/records.ts";

export interface RecordedRun {
  readonly scenario: Scenario;
  readonly flags: ImpalaFlags;
  readonly pools: PoolDirectory;
}

/** Throws ConfigError, which a file that this program has written never gives. */
export function recordedRun(header: RecordsHeader): RecordedRun {
  const { path, text } = header.scenario;
  const scenario = { ...parseScenario(text, resolve(path), path), seed: header.seed };
  const flags = flagsOf(scenario);
  return { scenario, flags, pools: poolsFromTexts(scenario, flags, header.pools) };
}
