/**
 * `waterhole size SCENARIO`: which settings this traffic needs (insight 3).
 *
 * Opens the scenario, draws its days once, hands the jobs to threads (or takes outcomes from shards), and
 * prints the table, the two sentences and the pool files as a patch. With `--log` the traffic is a recorded
 * one and the scenario says only what it runs on.
 */
import { createHash } from "node:crypto";
import { availableParallelism } from "node:os";
import { type Command, InvalidArgumentError, Option } from "commander";
import { ConfigError } from "../../config/config-error.ts";
import { parseSize, parseTime } from "../../config/scenario-units.ts";
import { DEFAULT_SIZE_OPTIONS, type SizeOptions, sizePool } from "../../insight/size/size-pool.ts";
import { countText, memoryText, waitText } from "../../insight/size/size-report.ts";
import { type OtherGuess, sizeDocument } from "./documents/size.ts";
import { numberIn, seedOption } from "./options.ts";
import { keepApart } from "./output-file.ts";
import { filesOf, tracesOf } from "./scenario-files.ts";
import { patchLines, patchOf } from "./size-patch.ts";
import { DEFAULT_DAYS, DEFAULT_SIGMA, type Opened, openProblem, type ProblemFlags } from "./size-problem.ts";
import { SizeProgress } from "./size-progress.ts";
import { missingShards, OutcomeBook, ofShard, parseShard, readShard, type Shard, shardOutput } from "./size-shards.ts";
import { reportLines } from "./size-text.ts";
import { SizeThreads } from "./size-threads.ts";
import { type ColourChoice, lookFor, type Surroundings, writeJson, writeLines } from "./surroundings.ts";

export interface SizeFlags extends ColourChoice, ProblemFlags {
  readonly json?: boolean;
  readonly p95?: number;
  readonly loss?: number;
  readonly candidates?: number;
  readonly finalists?: number;
  readonly memory?: number[];
  readonly running?: number[];
  readonly queued?: number[];
  readonly timeout?: number[];
  readonly oversubscribe?: number;
  readonly threads?: number;
  readonly shard?: Shard;
  readonly out?: string;
  readonly merge?: string[];
}

export function registerSize(program: Command, surroundings: Surroundings, exit: (code: number) => void): void {
  program
    .command("size")
    .description("which pool settings this traffic needs, and which limit binds")
    .argument("<scenario>", "scenario file; with --log only its cluster and pools count")
    .option("--log <file>", "recorded traffic instead of the scenario's: a query log or a trace")
    .option("--pool <name>", "the pool to size (default: the one with most traffic)")
    .addOption(timeOption("--p95 <time>", "the p95 wait over all submitted to aim at (default: today's, at least 1s)"))
    .addOption(numberOption("--loss <share>", "share of queries that may be lost (default 0.001)", 1))
    .addOption(wholeOption("--days <number>", `simulated days for the finalists (default ${DEFAULT_DAYS})`, 1))
    .addOption(wholeOption("--candidates <number>", "settings to try at most (default 1000)", 1))
    .addOption(wholeOption("--finalists <number>", "settings to know well (default 5)", 1))
    .addOption(listOption("--memory <sizes>", "try these amounts of pool memory, such as 180gb,200gb", sizeOf))
    .addOption(listOption("--running <counts>", "try these limits of running queries", countOf))
    .addOption(listOption("--queued <counts>", "try these queue lengths", countOf))
    .addOption(listOption("--timeout <times>", "try these queue timeouts, such as 30s,2m", timeOf))
    .addOption(
      numberOption(
        "--oversubscribe <factor>",
        "of what the hosts have, all pools together may be given so much (default 1)",
      ),
    )
    .addOption(
      numberOption(
        "--sigma <number>",
        `a query with half the memory it wants takes 1 + sigma times as long (default ${DEFAULT_SIGMA})`,
      ),
    )
    .addOption(wholeOption("--threads <number>", "threads to run on (default: one for each core)", 1, MOST_THREADS))
    .addOption(
      new Option("--shard <i/n>", "run every n-th candidate from the i-th on; needs --out").argParser((text) => {
        const shard = parseShard(text);
        if (shard === null) throw new InvalidArgumentError("Expected i/n with 0 <= i < n, such as 0/4.");
        return shard;
      }),
    )
    .option("--out <file>", "where a shard writes its outcomes")
    .option("--merge <files...>", "shards to take outcomes from")
    .addOption(seedOption())
    .option("--json", "print one JSON document")
    .action(async (scenario: string, flags: SizeFlags, command: Command) => {
      exit(await sizeCommand(scenario, { ...flags, ...command.optsWithGlobals<ColourChoice>() }, surroundings));
    });
}

export async function sizeCommand(path: string, flags: SizeFlags, surroundings: Surroundings): Promise<number> {
  checkShardFlags(flags);
  const progress = new SizeProgress(surroundings);
  try {
    return await sized(path, flags, surroundings, progress);
  } finally {
    progress.end();
  }
}

function checkShardFlags({ shard, out, merge }: SizeFlags): void {
  if (shard !== undefined && out === undefined)
    throw new ConfigError({ file: "--shard", line: null }, "a shard without --out would be lost", "Add  --out FILE");
  if (shard === undefined && out !== undefined)
    throw new ConfigError(
      { file: "--out", line: null },
      "only a shard writes its outcomes",
      "Add  --shard i/n  or print the report to a file with  --json > FILE",
    );
  if (shard !== undefined && merge !== undefined)
    throw new ConfigError(
      { file: "--merge", line: null },
      "a shard takes no outcomes from others",
      "Run the shards first; when all are done, merge them without --shard and --out.",
    );
}

async function sized(
  path: string,
  flags: SizeFlags,
  surroundings: Surroundings,
  progress: SizeProgress,
): Promise<number> {
  progress.say("drawing the days");
  const opened = await openProblem(path, flags);
  const { scenario } = opened;
  keepApart(flags.out === undefined ? [] : [shardOutput(flags.out)], [...filesOf(scenario), ...tracesOf(scenario)]);
  const options = optionsOf(flags);
  const fingerprint = fingerprintOf(opened, flags);
  const shards = (flags.merge ?? []).map((file) => readShard(file, fingerprint));
  const threads = new SizeThreads(opened.problem, flags.threads ?? availableParallelism(), progress.jobDone);
  try {
    const book = new OutcomeBook(progress.watching(threads.evaluate));
    for (const shard of shards) book.take(shard);
    const report = await sizePool(opened.problem, options, book.evaluate, (all) => ofShard(all, flags.shard ?? null));
    if (flags.shard !== undefined) {
      progress.end();
      return writeShard(book, fingerprint, flags, surroundings);
    }
    const patch = patchOf(opened, report);
    const guesses = opened.imputedShare > MUCH_GUESSED ? await otherGuesses(path, flags, options, progress) : [];
    progress.end();
    writeLines(surroundings.stderr, missingShards(shards, book.ran));
    if (flags.json) writeJson(surroundings.stdout, sizeDocument(report, patch, guesses));
    else
      writeLines(surroundings.stdout, [
        ...reportLines(report, lookFor(surroundings.stdout, surroundings, flags)),
        ...guesses.map(guessText),
        "",
        ...patchLines(patch),
      ]);
    return 0;
  } finally {
    await threads.close();
  }
}

/** Above it a log's answer rests on who stands in for its refused queries (insight 4.3 item 1). */
const MUCH_GUESSED = 0.1;

/** The same question with the class's quartile of memory-time, and with its 90 % quantile. */
async function otherGuesses(
  path: string,
  flags: SizeFlags,
  options: SizeOptions,
  progress: SizeProgress,
): Promise<OtherGuess[]> {
  const guesses: OtherGuess[] = [];
  for (const donor of ["low", "high"] as const) {
    const { problem } = await openProblem(path, { ...flags, donor });
    const threads = new SizeThreads(problem, flags.threads ?? availableParallelism(), progress.jobDone);
    try {
      const { rows, cheapest } = await sizePool(problem, options, progress.watching(threads.evaluate));
      guesses.push({
        donor,
        p95NowMs: rows[0]?.p95Ms ?? null,
        cheapest: rows.find((r) => r.label === cheapest) ?? null,
      });
    } finally {
      await threads.close();
    }
  }
  return guesses;
}

function guessText({ donor, p95NowMs, cheapest }: OtherGuess): string {
  const what = donor === "low" ? "had been small ones (25 % of memory-time)" : "had been large ones (90 %)";
  const need =
    cheapest === null
      ? "no setting that was tried meets the goal"
      : `the cheapest is ${memoryText(cheapest.setting.maxMem)}, run ${countText(cheapest.setting.maxRunning)}, queue ${cheapest.setting.maxQueued}`;
  return `if the refused queries ${what}: p95 now ${waitText(p95NowMs)}; ${need}`;
}

function writeShard(book: OutcomeBook, fingerprint: string, flags: SizeFlags, { stdout }: Surroundings): number {
  const { index, of } = flags.shard!;
  book.write(flags.out!, fingerprint, flags.shard!);
  if (flags.json) writeJson(stdout, { shard: `${index}/${of}`, out: flags.out, runs: book.ran });
  else
    writeLines(stdout, [
      `shard ${index} of ${of}: ${book.ran} runs written to ${flags.out}`,
      "next: when all shards are done, the same command with  --merge FILES  in place of  --shard  and  --out",
    ]);
  return 0;
}

function optionsOf(flags: SizeFlags): SizeOptions {
  return {
    ...DEFAULT_SIZE_OPTIONS,
    p95: flags.p95 ?? null,
    loss: flags.loss ?? DEFAULT_SIZE_OPTIONS.loss,
    most: flags.candidates ?? DEFAULT_SIZE_OPTIONS.most,
    oversubscribe: flags.oversubscribe ?? 1,
    asked: {
      ...(flags.memory === undefined ? {} : { memory: flags.memory }),
      ...(flags.running === undefined ? {} : { running: flags.running }),
      ...(flags.queued === undefined ? {} : { queued: flags.queued }),
      ...(flags.timeout === undefined ? {} : { timeout: flags.timeout }),
    },
    elimination: { ...(flags.finalists === undefined ? {} : { finalists: flags.finalists }) },
  };
}

/** Everything that decides an outcome. */
function fingerprintOf({ scenario, problem }: Opened, flags: SizeFlags): string {
  const { shard: _shard, out: _out, merge: _merge, threads: _threads, json: _json, color: _color, ...deciding } = flags;
  const { file: _file, ...described } = scenario;
  const arrivals = described.arrivals.map((a) => (a.kind === "trace" ? { ...a, file: "" } : a));
  const text = JSON.stringify([{ ...described, arrivals, pools: null }, problem.configs, problem.pool, deciding]);
  return createHash("sha256").update(text).digest("hex");
}

// Flags

/** Of one machine; a scenario's own count has the same bound. */
const MOST_THREADS = 256;

const wholeOption = (flags: string, text: string, least: number, most = Number.MAX_SAFE_INTEGER): Option =>
  new Option(flags, text).argParser((value) => {
    const n = numberIn(value);
    if (!Number.isSafeInteger(n) || n < least || n > most)
      throw new InvalidArgumentError(`Expected a whole number from ${least} ${upTo(most)}.`);
    return n;
  });

const numberOption = (flags: string, text: string, most = Number.MAX_SAFE_INTEGER): Option =>
  new Option(flags, text).argParser((value) => {
    const n = numberIn(value);
    if (!Number.isFinite(n) || n < 0 || n > most)
      throw new InvalidArgumentError(`Expected a number from 0 ${upTo(most)}.`);
    return n;
  });

const upTo = (most: number): string => (most === Number.MAX_SAFE_INTEGER ? "on" : `to ${most}`);

const timeOption = (flags: string, text: string): Option => new Option(flags, text).argParser(timeOf);

function listOption(flags: string, text: string, parse: (item: string) => number): Option {
  return new Option(flags, text).argParser((value) => value.split(",").map((item) => parse(item.trim())));
}

function sizeOf(text: string): number {
  const size = parseSize(text);
  if (!size.ok) throw new InvalidArgumentError(`"${text}" is no size such as 200gb.`);
  return size.value;
}

function timeOf(text: string): number {
  const time = parseTime(text);
  if (!time.ok) throw new InvalidArgumentError(`"${text}" is no time such as 30s.`);
  return time.value;
}

function countOf(text: string): number {
  const n = numberIn(text);
  if (!Number.isSafeInteger(n) || n < -1) throw new InvalidArgumentError(`"${text}" is no count; -1 is no limit.`);
  return n;
}
