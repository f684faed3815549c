/**
 * `waterhole simulate SCENARIO`: the scenario in virtual time.
 *
 * Two ways through the same run: told as events, when records are wanted, or in plain numbers, ten times as fast.
 * Both give the same report. Records are written unless they would fill a disk; `--records FILE` writes them all the
 * same.
 */
import type { Command } from "commander";
import type { RunEvent } from "../../core/events.ts";
import { DEFAULT_POOL_CONFIG } from "../../core/pool-config.ts";
import { MiB } from "../../core/units.ts";
import { EventObserver } from "../../insight/event-observer.ts";
import type { HostOverAdmissionFold } from "../../insight/host-over-admission.ts";
import type { RunSummary } from "../../insight/summary.ts";
import { type PoolConfigs, type SimulationInput, simulate } from "../../sim/simulate.ts";
import { inlineMore } from "./engine-flags.ts";
import { lateFaults } from "./late-faults.ts";
import { seedOption } from "./options.ts";
import type { Output } from "./output-file.ts";
import { QueryLogFile, queryLogOutput } from "./query-log-file.ts";
import { RecordsWriter, recordsOutput } from "./records-file.ts";
import { renderReport } from "./report.ts";
import { exitCodeOf, type RunReport, reportJson } from "./run-report.ts";
import { expectedRecordsBytes, expectedSubmissions, ScenarioRun } from "./scenario-run.ts";
import { SimulateProgress } from "./simulate-progress.ts";
import { type ColourChoice, lookFor, type Surroundings, writeJson, writeLines } from "./surroundings.ts";

export interface SimulateOptions extends ColourChoice {
  readonly json?: boolean;
  readonly seed?: number;
  /** A path, true or absent: the usual place; false: none. */
  readonly records?: string | boolean;
  /** Where to write the run as a query log with Impala's columns. */
  readonly queryLog?: string;
}

/** Records that would be larger are written only when they are asked for. */
const MOST_RECORDS_BYTES = 256 * MiB;
/** Above so many submissions, and without records, what happens on each host is not looked at. */
const MOST_TOLD = 200_000;

export function registerSimulate(program: Command, surroundings: Surroundings, exit: (code: number) => void): void {
  program
    .command("simulate")
    .description("run a scenario in virtual time")
    .argument("<scenario>", "scenario file (YAML or JSON)")
    .addOption(seedOption())
    .option("--records <file>", "where to write what happened (default: runs/NAME-SEED.jsonl)")
    .option("--no-records", "write no records")
    .option("--query-log <file>", "write the run as Impala's query log: CSV, or JSON lines by any other name")
    .option("--json", "print one JSON document")
    .action(async (scenario: string, options: SimulateOptions, command: Command) => {
      const all = { ...options, ...command.optsWithGlobals<ColourChoice>() };
      exit(await simulateCommand(scenario, all, surroundings));
    });
}

export async function simulateCommand(
  path: string,
  options: SimulateOptions,
  surroundings: Surroundings,
): Promise<number> {
  const look = lookFor(surroundings.stdout, surroundings, options);
  const report = await simulateScenario(path, options, ({ scenario }) => {
    return new SimulateProgress(surroundings, scenario, look.unicode);
  });
  if (options.json) writeJson(surroundings.stdout, reportJson(report));
  else {
    writeLines(surroundings.stdout, renderReport(report, look));
    writeLines(surroundings.stderr, report.warnings);
  }
  return exitCodeOf(report);
}

async function simulateScenario(
  path: string,
  options: SimulateOptions,
  progressOf: (run: ScenarioRun) => SimulateProgress,
): Promise<RunReport> {
  inlineMore();
  const run = await ScenarioRun.open(path, { seed: options.seed ?? null });
  const file = recordsPath(run, options.records);
  run.keepApart(outputsOf(file, options.queryLog));
  const log = options.queryLog === undefined ? null : new QueryLogFile(options.queryLog, run.scenario);
  const hosts = expectedSubmissions(run.scenario) > MOST_TOLD && file === null ? null : run.newHostFold();
  const progress = progressOf(run);
  const input = inputOf(run, progress);
  const isPlain = file === null && log === null;
  const { summary, endedAt } = isPlain
    ? simulateFast(run, input, hosts)
    : simulateTold(run, input, { file, log, hosts });
  progress.end();
  return run.report(summary, {
    mode: "virtual",
    overAdmittedHosts: hosts?.finish(endedAt) ?? null,
    records: file,
    fleet: null,
    poolFiles: [],
    warnings: lateFaults(run.scenario, endedAt),
    interrupted: false,
  });
}

interface Simulated {
  readonly summary: RunSummary;
  readonly endedAt: number;
}

function simulateFast(run: ScenarioRun, input: SimulationInput, hosts: HostOverAdmissionFold | null): Simulated {
  const fold = run.newFold();
  const emit = hosts === null ? {} : { emit: (event: RunEvent) => hosts.add(event), onlyOutcomes: true };
  const { endedAt } = simulate({ ...input, observer: fold, ...emit });
  return { summary: fold.finish(), endedAt };
}

/** Who wants to hear of single events. */
interface Listeners {
  readonly file: string | null;
  readonly log: QueryLogFile | null;
  readonly hosts: HostOverAdmissionFold | null;
}

function simulateTold(run: ScenarioRun, input: SimulationInput, { file, log, hosts }: Listeners): Simulated {
  const fold = run.newFold();
  const observer = new EventObserver(fold);
  const records = file === null ? null : new RecordsWriter(file, run.recordsHeader("virtual", null));
  const { endedAt } = simulate({
    ...input,
    workload: log === null ? input.workload : log.watching(input.workload),
    emit: (event) => {
      observer.add(event);
      hosts?.add(event);
      records?.add(event);
      log?.add(event);
    },
  });
  observer.end(endedAt);
  records?.close(endedAt);
  log?.close();
  return { summary: fold.finish(), endedAt };
}

function inputOf(run: ScenarioRun, { inspect }: SimulateProgress): SimulationInput {
  const { scenario, workload, flags } = run;
  // A pool without a record never gets here: the workload has told its queries so.
  const configs: PoolConfigs = { configOf: (pool) => run.configOf(pool) ?? DEFAULT_POOL_CONFIG };
  return {
    scenario,
    workload,
    flags,
    pools: configs,
    looksAtHosts: true,
    ...(inspect === undefined ? {} : { inspect }),
    changedPools: (fault) => {
      if (fault.kind === "configChanges") run.changePools(fault);
      return configs;
    },
  };
}

export const outputsOf = (records: string | null, queryLog: string | undefined): Output[] => [
  ...(records === null ? [] : [recordsOutput(records)]),
  ...(queryLog === undefined ? [] : [queryLogOutput(queryLog)]),
];

function recordsPath(run: ScenarioRun, wished: SimulateOptions["records"]): string | null {
  if (typeof wished === "string") return wished;
  if (wished === false || expectedRecordsBytes(run.scenario) > MOST_RECORDS_BYTES) return null;
  return usualRecordsPath(run);
}

/** `runs/NAME-SEED.jsonl` in the folder where the command was given. */
export const usualRecordsPath = ({ scenario }: Pick<ScenarioRun, "scenario">): string =>
  `runs/${scenario.name.replace(/[^\w.-]+/g, "-")}-${scenario.seed}.jsonl`;
