/**
 * `waterhole stress`: hammers the ledger from many threads, with kills, and prints what held.
 *
 * Exit code 1 when anything did not: that is a fault of ours, whatever the options were.
 */
import { type Command, InvalidArgumentError, Option } from "commander";
import { DEFAULT_STRESS, type StressReport, stress } from "../../runtime/stress.ts";
import { countText, plural } from "./figures.ts";
import { numberIn, seedOption } from "./options.ts";
import { type ColourChoice, lookFor, type Surroundings, writeJson, writeLines } from "./surroundings.ts";

interface StressCommandOptions extends ColourChoice {
  readonly threads: number;
  readonly hosts: number;
  readonly kills: number;
  readonly steps: number;
  readonly seed?: number;
  readonly json?: boolean;
}

const DOES_NOT_HOLD = 1;
const MOST_THREADS = 64;
const MOST_HOSTS = 1000;
const MOST = 1_000_000_000;

export function registerStress(program: Command, surroundings: Surroundings, exit: (code: number) => void): void {
  program
    .command("stress")
    .description("hammer the ledger from many threads, with kills; prints what held")
    .addOption(countOption("--threads <number>", "threads at a time", DEFAULT_STRESS.threads, 1, MOST_THREADS))
    .addOption(countOption("--hosts <number>", "hosts whose ledgers they share", DEFAULT_STRESS.hosts, 1, MOST_HOSTS))
    .addOption(countOption("--kills <number>", "threads killed, one after the other", DEFAULT_STRESS.kills, 0, MOST))
    .addOption(countOption("--steps <number>", "steps between two kills", DEFAULT_STRESS.stepsBetweenKills, 1, MOST))
    .addOption(seedOption())
    .option("--json", "print one JSON document")
    .action(async (options: StressCommandOptions, command: Command) => {
      const all = { ...options, ...command.optsWithGlobals<ColourChoice>() };
      exit(await stressCommand(all, surroundings));
    });
}

function countOption(flags: string, text: string, standard: number, least: number, most: number): Option {
  return new Option(flags, text).default(standard).argParser((value) => {
    const n = numberIn(value);
    if (!Number.isInteger(n) || n < least || n > most)
      throw new InvalidArgumentError(`Expected a whole number from ${least} to ${most}.`);
    return n;
  });
}

async function stressCommand(options: StressCommandOptions, surroundings: Surroundings): Promise<number> {
  const { threads, hosts, kills, steps, seed } = options;
  const { stdout, stderr } = surroundings;
  const report = await stress({
    threads,
    hosts,
    kills,
    stepsBetweenKills: steps,
    seed: seed ?? DEFAULT_STRESS.seed,
    ...(stderr.isTTY === true && {
      progress: (done) => stderr.write(`\r${done.kills} of ${kills} kills, ${done.steps} steps `),
    }),
  });
  if (stderr.isTTY === true) stderr.write("\r\x1b[K");
  if (options.json) writeJson(stdout, documentOf(report));
  else writeLines(stdout, stressLines(report, lookFor(stdout, surroundings, options).unicode));
  return report.broken.length === 0 ? 0 : DOES_NOT_HOLD;
}

function documentOf({ seconds, ...report }: StressReport): object {
  return { ...report, realMs: seconds * 1000 };
}

export function stressLines(r: StressReport, unicode: boolean): string[] {
  const n = (value: number): string => countText(value, unicode);
  const perSecond = n(Math.round(r.steps / r.seconds));
  return [
    `${r.threads} ${plural(r.threads, "thread")} on ${r.hosts} ${plural(r.hosts, "ledger")}, seed ${r.seed}, ${r.seconds.toFixed(1)} s`,
    `  ${n(r.steps)} steps (${perSecond}/s): ${n(r.granted)} growths granted, ${n(r.refused)} refused`,
    `  ${n(r.kills)} threads killed: ${n(r.killedInside)} inside a ledger, ${n(r.rolledBack)} half-done ${plural(r.rolledBack, "step")} rolled back`,
    `  ${n(r.snapshots)} whole ledgers looked at under their lock`,
    "",
    ...verdict(r),
  ];
}

function verdict(r: StressReport): string[] {
  if (r.broken.length === 0)
    return ["All of it held at every look: I1 to I6, I8, I9, I11, I12, I23 after every kill, I24 at the end."];
  return [
    `NOT TRUE, ${r.broken.length} ${plural(r.broken.length, "sentence")}:`,
    ...r.broken.map((sentence) => `  ${sentence}`),
    `repeat: waterhole stress --threads ${r.threads} --hosts ${r.hosts} --seed ${r.seed}   (threads meet differently each time)`,
  ];
}
