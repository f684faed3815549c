/**
 * `waterhole import FILE`: the command around `import.ts`.
 */
import { type Command, Option } from "commander";
import { type ImportOptions, importLog, importText } from "./import.ts";
import { seedOption } from "./options.ts";
import { type Surroundings, writeJson, writeLines } from "./surroundings.ts";

interface ImportFlags extends Omit<ImportOptions, "anonymise" | "renamePools"> {
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
    .action(async (file: string, flags: ImportFlags) => {
      const { report, acceptance, remarks } = await importLog(file, flags);
      if (flags.json) writeJson(surroundings.stdout, { ...report, acceptance, remarks });
      else {
        writeLines(surroundings.stdout, importText(report, acceptance).split("\n"));
        writeLines(surroundings.stdout, remarks);
        writeLines(surroundings.stdout, ["", nextStep(file, flags.trace)]);
      }
      exit(0);
    });
}

const nextStep = (file: string, trace: string | undefined): string =>
  `next: write  arrivals: [{ trace: ${trace ?? file} }]  into a scenario, then  waterhole size SCENARIO`;
