/**
 * A grid over several machines: `size --shard i/n --out FILE`, then `size --merge FILES` (insight 3.4, 2.7).
 *
 * A shard runs the whole procedure for every n-th candidate and writes down every outcome it computed. The
 * merge runs the procedure for all candidates, taking outcomes from the files and running only what no shard
 * has run: so its report is the report of a run without shards, number for number.
 */
import { readFileSync } from "node:fs";
import { ConfigError } from "../../config/config-error.ts";
import type { Outcome } from "../../insight/size/outcome.ts";
import { type Evaluate, type Job, jobKey } from "../../insight/size/problem.ts";
import { plural } from "./figures.ts";
import { type Output, writeOutput } from "./output-file.ts";
import { programVersion } from "./program-version.ts";

export interface Shard {
  readonly index: number;
  readonly of: number;
}

const FORMAT = "waterhole-size-shard";
const VERSION = 4;

export interface ShardFile {
  readonly format: typeof FORMAT;
  readonly version: typeof VERSION;
  /** Of the program that ran it: another one's rules and draws may differ. */
  readonly program: string;
  readonly shard: Shard;
  /** Of everything that decides outcomes: scenario, files, seed, options. */
  readonly problem: string;
  readonly outcomes: readonly (readonly [key: string, outcome: Outcome])[];
}

export const shardOutput = (path: string): Output => ({ what: "the shard", flag: "--out", path });

/** `0/4`: the first of four; also what an indexed job's environment gives. */
export function parseShard(text: string): Shard | null {
  const m = /^(\d+)\/(\d+)$/.exec(text);
  if (m === null) return null;
  const [index, of] = [Number(m[1]), Number(m[2])];
  return of >= 1 && index < of ? { index, of } : null;
}

export const ofShard = <T>(items: readonly T[], shard: Shard | null): T[] =>
  shard === null ? [...items] : items.filter((_, i) => i % shard.of === shard.index);

/** Takes outcomes that are known, keeps those that are not yet. */
export class OutcomeBook {
  readonly #outcomes = new Map<string, Outcome>();
  readonly #evaluate: Evaluate;
  /** Jobs that had to be run. */
  ran = 0;

  constructor(evaluate: Evaluate) {
    this.#evaluate = evaluate;
  }

  readonly evaluate: Evaluate = async (jobs) => {
    const missing = jobs.filter((j) => !this.#outcomes.has(jobKey(j)));
    const unique = [...new Map(missing.map((j): [string, Job] => [jobKey(j), j])).values()];
    if (unique.length > 0) {
      const done = await this.#evaluate(unique);
      this.ran += unique.length;
      unique.forEach((j, i) => {
        this.#outcomes.set(jobKey(j), done[i]!);
      });
    }
    return jobs.map((j) => this.#outcomes.get(jobKey(j))!);
  };

  write(path: string, problem: string, shard: Shard): void {
    const file: ShardFile = {
      format: FORMAT,
      version: VERSION,
      program: programVersion,
      shard,
      problem,
      outcomes: [...this.#outcomes],
    };
    writeOutput(shardOutput(path), JSON.stringify(file, endless));
  }

  take({ outcomes }: ShardFile): void {
    for (const [key, outcome] of outcomes) this.#outcomes.set(key, outcome);
  }
}

/** Throws ConfigError, also for a file of another problem or program: its outcomes would be taken for this one's. */
export function readShard(path: string, problem: string): ShardFile {
  const wrong = (found: string, remedy: string, cause?: unknown): ConfigError =>
    new ConfigError({ file: path, line: null }, found, remedy, { cause });
  const file = parsedShard(path, wrong);
  if (file.format !== FORMAT) throw wrong("this is no shard of  waterhole size", "Give the files that --out wrote.");
  if (file.version !== VERSION || file.program !== programVersion)
    throw wrong(
      `the shard was written by waterhole ${file.program ?? "of an earlier version"}, and this is ${programVersion}`,
      "Run all shards and the merge with the same version.",
    );
  if (file.problem !== problem)
    throw wrong(
      "the shard was made from another scenario, other pool files or other options",
      "Run all shards and the merge with the same command but for --shard, --out and --merge.",
    );
  return file;
}

function parsedShard(path: string, wrong: (found: string, remedy: string, cause: unknown) => ConfigError): ShardFile {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw wrong("the shard cannot be read", "Check the name and the rights.", cause);
  }
  try {
    const file: unknown = JSON.parse(text, revived);
    if (typeof file === "object" && file !== null) return file as ShardFile;
  } catch (cause) {
    throw wrong("this is no shard of  waterhole size, or a part of one", "Give the files that --out wrote.", cause);
  }
  throw wrong("this is no shard of  waterhole size", "Give the files that --out wrote.", undefined);
}

/** The report is the same without them, and takes longer: nobody should wait for what a forgotten file has. */
export function missingShards(given: readonly ShardFile[], ran: number): string[] {
  const [first] = given;
  if (first === undefined) return [];
  const { of } = first.shard;
  const there = new Set(given.filter((f) => f.shard.of === of).map((f) => f.shard.index));
  const missing = Array.from({ length: of }, (_, i) => i).filter((i) => !there.has(i));
  if (missing.length === 0) return [];
  const names = missing.map((i) => `${i}/${of}`).join(", ");
  return [
    `${plural(missing.length, "shard")} ${names} ${missing.length === 1 ? "was" : "were"} not given: ${ran} ${plural(ran, "run")} made here instead, with the same result`,
  ];
}

/** JSON has no Infinity, and a p95 beyond the lost ones is one. */
const endless = (_key: string, value: unknown): unknown => (value === Number.POSITIVE_INFINITY ? "endless" : value);
const revived = (_key: string, value: unknown): unknown => (value === "endless" ? Number.POSITIVE_INFINITY : value);
