/**
 * `waterhole check`: pool files as Impala would see them, and every surprise in them (insight 1.1).
 *
 * Exit codes: 0 without errors; 2 when a file would not load or a value breaks a pool; 1 with `--strict` when there
 * are warnings.
 */
import { existsSync, readFileSync } from "node:fs";
import type { Command } from "commander";
import { ConfigError, fileMissing } from "../../config/config-error.ts";
import { readGroupsFile, splitNames } from "../../config/groups-file.ts";
import type { Scenario } from "../../config/scenario.ts";
import { readScenario } from "../../config/scenario-file.ts";
import type { CheckInput, FileText, TrafficFacts } from "../../insight/pool-check/check-input.ts";
import { logFacts } from "../../insight/pool-check/log-facts.ts";
import { checkPools, type PoolCheck } from "../../insight/pool-check/pool-check.ts";
import { clusterFacts, trafficFacts } from "../../insight/pool-check/scenario-facts.ts";
import { type LandingAnswer, whereARequestLands } from "../../insight/pool-check/where-a-request-lands.ts";
import { DEFAULT_DEMAND, demandOf } from "../../workload/query-log/demand.ts";
import { readQueryLog } from "../../workload/query-log/read-query-log.ts";
import { withTraces } from "../../workload/traces.ts";
import { renderCheck } from "./check-report.ts";
import { checkDocument } from "./documents/check.ts";
import { type ColourChoice, lookFor, type Surroundings, writeJson, writeLines } from "./surroundings.ts";

export interface CheckOptions extends ColourChoice {
  readonly fairScheduler?: string;
  readonly llamaSite?: string;
  /** With `--user` a list of names, else a file. */
  readonly groups?: string;
  readonly scenario?: string;
  readonly log?: string;
  readonly flag?: readonly string[];
  readonly user?: string;
  readonly pool?: string;
  readonly strict?: boolean;
  readonly json?: boolean;
}

export function registerCheck(program: Command, surroundings: Surroundings, exit: (code: number) => void): void {
  program
    .command("check")
    .description("read the pool files as Impala does and tell every surprise in them")
    .option("--fair-scheduler <file>", "allocation file (--fair_scheduler_allocation_path)")
    .option("--llama-site <file>", "site file (--llama_site_path)")
    .option("--scenario <file>", "scenario: its cluster, flags and traffic, and its pool files unless given")
    .option("--log <file>", "recorded queries, instead of the scenario's traffic")
    .option("--flag <name=value...>", "a flag of Impala")
    .option("--groups <file or names>", "table of users and groups; with --user: that user's groups, a,b")
    .option("--user <name>", "where a request of this user lands, and why")
    .option("--pool <name>", "the pool that the user asks for (REQUEST_POOL)")
    .option("--strict", "exit with 1 when there are warnings")
    .option("--json", "print one JSON document")
    .action(async (options: CheckOptions, command: Command) => {
      exit(await checkCommand({ ...options, ...command.optsWithGlobals<ColourChoice>() }, surroundings));
    });
}

export async function checkCommand(options: CheckOptions, surroundings: Surroundings): Promise<number> {
  const input = await inputFrom(options, surroundings);
  const check = checkPools(input);
  const answer = answerTo(options, check);
  if (options.json) writeJson(surroundings.stdout, checkDocument(check, answer));
  else writeLines(surroundings.stdout, renderCheck(check, answer, lookFor(surroundings.stdout, surroundings, options)));
  if (check.counts.errors > 0) return 2;
  return options.strict && check.counts.warnings > 0 ? 1 : 0;
}

async function inputFrom(options: CheckOptions, surroundings: Surroundings): Promise<CheckInput> {
  const scenario = options.scenario === undefined ? null : await withTraces(readScenario(options.scenario));
  const files = scenario?.pools.kind === "files" ? scenario.pools : null;
  const allocation = options.fairScheduler ?? files?.fairScheduler;
  const site = options.llamaSite ?? files?.llamaSite ?? undefined;
  if (allocation === undefined && site === undefined && scenario === null)
    throw new ConfigError(
      { file: "waterhole check", line: null },
      "no file to check is given",
      "Give --fair-scheduler FILE, and --llama-site FILE if there is one.",
    );
  const flags: Readonly<Record<string, string>> = { ...scenario?.flags, ...flagsFrom(options.flag ?? []) };
  return {
    allocation: allocation === undefined ? null : fileText(allocation, "allocation file"),
    site: site === undefined ? null : fileText(site, "site file"),
    flags,
    flagsFile: scenario?.file ?? "flags",
    groups: groupsFrom(options, scenario),
    cluster: scenario === null ? null : clusterFacts(scenario, flags.mem_limit),
    traffic: await trafficFrom(options, scenario),
    around: { environment: surroundings.environment, systemProperties: {} },
  };
}

function fileText(file: string, what: string): FileText {
  try {
    return { file, bytes: readFileSync(file) };
  } catch (cause) {
    throw fileMissing(file, what, cause);
  }
}

function flagsFrom(written: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    written.map((text) => {
      const [, name = "", value] = /^-{0,2}([^=]+)=(.*)$/s.exec(text) ?? [];
      if (value === undefined)
        throw new ConfigError({ file: "--flag", line: null }, `"${text}" is no flag with a value`, "Write name=value.");
      return [name, value];
    }),
  );
}

/** The user's own groups win over the table. */
function groupsFrom({ groups, user }: CheckOptions, scenario: Scenario | null): CheckInput["groups"] {
  const table = scenario === null || Object.keys(scenario.users).length === 0 ? null : knownGroups(scenario);
  if (groups === undefined) return table;
  if (user === undefined || existsSync(groups)) return readGroupsFile(groups);
  const short = user.split(/[/@]/)[0] ?? user;
  return { ...table, [short]: splitNames(groups) };
}

const knownGroups = ({ users }: Scenario): Record<string, readonly string[]> =>
  Object.fromEntries(Object.entries(users).flatMap(([user, groups]) => (groups === null ? [] : [[user, groups]])));

async function trafficFrom({ log }: CheckOptions, scenario: Scenario | null): Promise<TrafficFacts | null> {
  if (log !== undefined) return logFacts(demandOf(await readQueryLog(log), DEFAULT_DEMAND).requests);
  return scenario === null ? null : trafficFacts(scenario);
}

function answerTo({ user, pool }: CheckOptions, { directory }: PoolCheck): LandingAnswer | null {
  if (user === undefined && pool === undefined) return null;
  if (directory === null) return null;
  return whereARequestLands(directory, pool ?? "", user ?? "");
}
