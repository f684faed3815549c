/**
 * `waterhole import FILE`: the command around `import.ts`.
 */
import { type Command, Option } from "commander";
import { ConfigError } from "../../config/config-error.ts";
import { importDocument } from "./documents/import.ts";
import { type ImportOptions, importLog, importText } from "./import.ts";
import { fitting } from "./look.ts";
import { seedOption } from "./options.ts";
import { type ColourChoice, lookFor, type Surroundings, writeJson, writeLines } from "./surroundings.ts";

interface ImportFlags extends ColourChoice, Omit<ImportOptions, "anonymise" | "renamePools"> {
  readonly json?: boolean;
  readonly anonymise?: boolean;
  readonly renamePools?: boolean;
}

export function registerImport(program: Command, surroundings: Surroundings, exit: (code: number) => void): void {
  program
    .command("import")
    .description("read a query log: what it says per pool and class, and a trace to replay")
    .argument("<file>", "query log (CSV, JSON lines, Parquet), Cloudera Manager list, or profile texts")
    .option("--fair-scheduler <file>", "today's allocation file, to hold the log against")
    .option("--llama-site <file>", "and its site file")
    .addOption(
      new Option("--hold <rule>", "when a query gave its place back")
        .choices(["lastRow", "unregister"])
        .default("lastRow"),
    )
    .option("--scenario <file>", "its cluster and pools: replay the log there and see whether it waits as it did")
    .option("--trace <file>", "write the requests as a trace; a scenario names it with  trace:")
    .option("--classes <file>", "write a scenario of classes with rates for each hour of the day")
    .option("--anonymise", "write the trace without names, ids and statements")
    .option("--rename-pools", "and with other pool names")
    .addOption(seedOption())
    .option("--json", "print one JSON document")
    .action(async (file: string, ownFlags: ImportFlags, command: Command) => {
      const flags = { ...ownFlags, ...command.optsWithGlobals<ColourChoice>() };
      const look = lookFor(surroundings.stdout, surroundings, flags);
      checkFlags(flags);
      const { report, acceptance, remarks } = await importLog(file, flags);
      if (flags.json) writeJson(surroundings.stdout, importDocument(report, acceptance, remarks));
      else {
        writeLines(surroundings.stdout, importText(report, acceptance, look).split("\n"));
        writeLines(
          surroundings.stdout,
          remarks.flatMap((line) => fitting(line, look)),
        );
        writeLines(surroundings.stdout, ["", ...fitting(nextStep(file, flags), look)]);
      }
      exit(0);
    });
}

/** Who asks for something that would not be done hears so: with names left out most of all. */
function checkFlags({ anonymise, renamePools, trace, classes, llamaSite, fairScheduler }: ImportFlags): void {
  const refuse = (flag: string, problem: string, remedy: string): never => {
    throw new ConfigError({ file: flag, line: null }, problem, remedy);
  };
  if (anonymise && classes !== undefined)
    refuse("--anonymise", "a scenario of classes keeps the names of pools, users and tables", "Leave out --classes.");
  if (anonymise && trace === undefined)
    refuse("--anonymise", "it is the trace that is written without names", "Add  --trace FILE");
  if (renamePools && !anonymise)
    refuse("--rename-pools", "pools are renamed in an anonymised trace only", "Add  --anonymise --trace FILE");
  if (llamaSite !== undefined && fairScheduler === undefined)
    refuse("--llama-site", "a site file says nothing without its allocation file", "Add  --fair-scheduler FILE");
}

const nextStep = (file: string, { trace, classes }: ImportFlags): string =>
  classes !== undefined && trace === undefined
    ? `next: put the memory of your hosts into ${classes}, then  waterhole simulate ${classes}`
    : `next: write  arrivals: [{ trace: ${trace ?? file} }]  into a scenario, then  waterhole size SCENARIO`;
