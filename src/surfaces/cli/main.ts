#!/usr/bin/env node
/**
 * The command line: commands registered, mistakes told, exit codes kept (DESIGN 2).
 *
 * 0 fine; 1 a fault of ours; 2 wrong input, with place and remedy; 99 a threshold does not hold.
 */
import { Command, CommanderError } from "commander";
import { ConfigError, placeText, SeveralConfigErrors } from "../../config/config-error.ts";
import { registerCheck } from "./check-command.ts";
import { registerCompare } from "./compare-command.ts";
import { registerDemo } from "./demo-command.ts";
import { registerEta } from "./eta-command.ts";
import { registerExplain } from "./explain-command.ts";
import { registerImport } from "./import-command.ts";
import { registerLab } from "./lab-command.ts";
import { programVersion } from "./program-version.ts";
import { registerReplay } from "./replay-command.ts";
import { registerRun } from "./run-command.ts";
import { registerSimulate } from "./simulate-command.ts";
import { registerSize } from "./size-command.ts";
import { registerStress } from "./stress-command.ts";
import { type Surroundings, writeLines } from "./surroundings.ts";

const WRONG_INPUT = 2;
const OUR_FAULT = 1;

export async function main(arguments_: readonly string[], surroundings: Surroundings): Promise<number> {
  let code = 0;
  const program = newProgram(surroundings, (c) => {
    code = c;
  });
  try {
    await program.parseAsync([...arguments_], { from: "user" });
    return code;
  } catch (error) {
    // Whose help is of use: the command's that was given, if there is one of that name.
    const named = arguments_.find((a) => program.commands.some((c) => c.name() === a)) ?? null;
    return tell(error, named, surroundings);
  }
}

function newProgram(surroundings: Surroundings, exit: (code: number) => void): Command {
  const program = new Command("waterhole")
    .description("Emulates the admission control of an Apache Impala cluster.")
    .version(programVersion)
    .option("--color", "colours, also where there is no terminal")
    .option("--no-color", "no colours")
    .exitOverride()
    // Narrow terminals too get lines that break between words.
    .configureHelp({ minWidthToWrap: 16 })
    .configureOutput({
      writeOut: (text) => surroundings.stdout.write(text),
      writeErr: (text) => surroundings.stderr.write(text),
    });
  // Without either flag the terminal decides.
  program.setOptionValue("color", undefined);
  registerRun(program, surroundings, exit);
  registerSimulate(program, surroundings, exit);
  registerExplain(program, surroundings, exit);
  registerReplay(program, surroundings, exit);
  registerCompare(program, surroundings, exit);
  registerImport(program, surroundings, exit);
  registerCheck(program, surroundings, exit);
  registerDemo(program, surroundings, exit);
  registerStress(program, surroundings, exit);
  registerSize(program, surroundings, exit);
  registerLab(program, surroundings, exit);
  registerEta(program, surroundings, exit);
  for (const command of program.commands) command.exitOverride().copyInheritedSettings(program);
  return program;
}

/** Says what went wrong, on stderr, and returns the exit code. */
function tell(error: unknown, command: string | null, { stderr }: Surroundings): number {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0;
    writeLines(stderr, [`next: waterhole ${command === null ? "" : `${command} `}--help`]);
    return WRONG_INPUT;
  }
  if (error instanceof ConfigError) {
    writeLines(stderr, configErrorLines(error));
    return WRONG_INPUT;
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  writeLines(stderr, [
    text,
    "This is a fault of Waterhole, not of your files.",
    "next: report it with the command you gave",
  ]);
  return OUR_FAULT;
}

function configErrorLines(error: ConfigError): string[] {
  if (!(error instanceof SeveralConfigErrors)) {
    const problem = /[.!?]$/.test(error.problem) ? error.problem : `${error.problem}.`;
    return [`${placeText(error)}: ${problem}`, `next: ${error.remedy}`];
  }
  return [...error.message.split("\n"), `next: ${error.remedy}`];
}

async function ask(question: string): Promise<string> {
  const { createInterface } = await import("node:readline/promises");
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  // Ctrl-C at a question ends the program, as it does everywhere else.
  lines.on("SIGINT", () => process.exit(130));
  const answer = await lines.question(question);
  lines.close();
  return answer;
}

/** True when Node was started with this file, whatever links lead to it. */
async function isEntry(): Promise<boolean> {
  const [, started] = process.argv;
  if (started === undefined) return false;
  const { realpathSync } = await import("node:fs");
  const { fileURLToPath } = await import("node:url");
  return realpathSync(started) === fileURLToPath(import.meta.url);
}

if (await isEntry()) {
  // A reader that closes its end (`| head`) is no mistake.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    process.exit(error.code === "EPIPE" ? 0 : OUR_FAULT);
  });
  const { stdin, stdout, stderr, env } = process;
  const canAsk = stdin.isTTY && stdout.isTTY;
  process.exitCode = await main(process.argv.slice(2), { stdout, stderr, environment: env, ...(canAsk && { ask }) });
}
