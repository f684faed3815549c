/**
 * `waterhole lab SCENARIO`: the same requests under Impala's order, backfill and a split (issue 5 item 6).
 */
import { type Command, InvalidArgumentError, Option } from "commander";
import { parseTime } from "../../config/scenario-units.ts";
import type { Millis } from "../../core/units.ts";
import { type LabReport, type PolicyRow, policyLab } from "../../insight/lab/policy-lab.ts";
import { memoryText, percent, seconds } from "../../insight/size/size-report.ts";
import { labDocument } from "./documents/lab.ts";
import { seedOption } from "./options.ts";
import { openProblem } from "./size-problem.ts";
import { type ColourChoice, lookFor, type Surroundings, writeJson, writeLines } from "./surroundings.ts";
import { type Column, renderTable } from "./table.ts";

interface LabFlags extends ColourChoice {
  readonly json?: boolean;
  readonly seed?: number;
  readonly log?: string;
  readonly pool?: string;
  readonly patience?: number;
}

const DEFAULT_PATIENCE = 10_000;

export function registerLab(program: Command, surroundings: Surroundings, exit: (code: number) => void): void {
  program
    .command("lab")
    .description("what the strict order of the queue costs: the same requests under other policies")
    .argument("<scenario>", "scenario file")
    .option("--log <file>", "recorded traffic instead of the scenario's")
    .option("--pool <name>", "the pool to look at (default: the one with most traffic)")
    .addOption(
      new Option(
        "--patience <time>",
        "with backfill: a head that has waited so long is not passed any more (default 10s)",
      ).argParser((text) => {
        const time = parseTime(text);
        if (!time.ok) throw new InvalidArgumentError(`"${text}" is no time such as 10s.`);
        return time.value;
      }),
    )
    .addOption(seedOption())
    .option("--json", "print one JSON document")
    .action(async (scenario: string, flags: LabFlags, command: Command) => {
      exit(await labCommand(scenario, { ...flags, ...command.optsWithGlobals<ColourChoice>() }, surroundings));
    });
}

export async function labCommand(path: string, flags: LabFlags, surroundings: Surroundings): Promise<number> {
  const { flags: impala, problem, busiestDay, trafficRemarks } = await openProblem(path, { ...flags, days: 1 });
  const report = policyLab({
    scenario: problem.scenario,
    flags: impala,
    requests: problem.days[0]!,
    configs: problem.configs,
    pool: problem.pool,
    patience: (flags.patience ?? DEFAULT_PATIENCE) as Millis,
  });
  const remarks = busiestDay === null ? [] : [`only day ${busiestDay} of the log is played, its busiest`];
  remarks.push(...trafficRemarks);
  if (flags.json) writeJson(surroundings.stdout, labDocument(report, remarks));
  else writeLines(surroundings.stdout, labLines(report, remarks, surroundings, flags));
  return 0;
}

function labLines(r: LabReport, remarks: readonly string[], surroundings: Surroundings, flags: LabFlags): string[] {
  const wait = (ms: number | null): string => (ms === null ? "over 5 % lost" : seconds(ms));
  const lost = (g: PolicyRow["all"]): string => percent(g.submitted === 0 ? 0 : g.lost / g.submitted);
  // Where all are charged about the same there are no large ones to tell of.
  const bySize: Column<PolicyRow>[] = [
    { head: "small: mean", align: "right", cell: (row) => seconds(row.small.meanWait) },
    { head: "p95", align: "right", cell: (row) => wait(row.small.p95) },
    { head: "large: mean", align: "right", cell: (row) => seconds(row.large.meanWait) },
    { head: "p95", align: "right", cell: (row) => wait(row.large.p95) },
    { head: "longest", align: "right", cell: (row) => seconds(row.large.longestWait) },
    { head: "lost", align: "right", cell: (row) => lost(row.large) },
  ];
  const table = renderTable<PolicyRow>(
    [
      { head: "policy", align: "left", cell: (row) => row.policy },
      { head: "mean wait", align: "right", cell: (row) => seconds(row.all.meanWait) },
      { head: "p95", align: "right", cell: (row) => wait(row.all.p95) },
      { head: "lost", align: "right", cell: (row) => lost(row.all) },
      ...(r.threshold === null ? [] : bySize),
      {
        head: "mem used",
        align: "right",
        leaves: 2,
        cell: (row) => (row.memoryUsed === null ? "-" : percent(row.memoryUsed)),
      },
      { head: "passed", align: "right", leaves: 1, cell: (row) => String(row.overtakings) },
    ],
    r.rows,
    lookFor(surroundings.stdout, surroundings, flags),
  );
  const sizes =
    r.threshold === null
      ? "all are charged about the same"
      : `large is charged more than ${memoryText(r.threshold)}, ${percent(r.largeShare)} of the memory-time`;
  return [
    `${r.pool}: ${r.requests} requests, the same for every policy; ${sizes}`,
    "",
    ...(table ?? ["(the terminal is too narrow for the table; use --json)"]),
    "",
    ...r.rows.map((row) => `${row.policy}: ${row.what}`),
    "",
    ...r.sentences,
    ...(remarks.length === 0 ? [] : ["", `assumed: ${remarks.join("; ")}`]),
  ];
}
