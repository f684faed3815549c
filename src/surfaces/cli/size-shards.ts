/**
 * A grid over several machines: `size --shard i/n --out FILE`, then `size --merge FILES` (insight 3.4, 2.7).
 *
 * A shard runs the whole procedure for every n-th candidate and writes down every outcome it computed. The
 * merge runs the procedure for all candidates, taking outcomes from the files and running only what no shard
 * has run: so its report is the report of a run without shards, number for number.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { ConfigError } from "../../config/config-error.ts";
import type { Outcome } from "../../insight/size/outcome.ts";
import { type Evaluate, type Job, jobKey } from "../../insight/size/problem.ts";

export interface Shard {
  readonly index: number;
  readonly of: number;
}

const FORMAT = "waterhole-size-shard";

interface ShardFile {
  readonly format: typeof FORMAT;
  readonly version: 1;
  /** Of everything that decides outcomes: scenario, files, seed, options. */
  readonly problem: string;
  readonly outcomes: readonly (readonly [key: string, outcome: Outcome])[];
}

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

  write(path: string, problem: string): void {
    const file: ShardFile = { format: FORMAT, version: 1, problem, outcomes: [...this.#outcomes] };
    try {
      writeFileSync(path, JSON.stringify(file, endless));
    } catch (cause) {
      throw new ConfigError({ file: path, line: null }, "the shard cannot be written", "Check folder and rights.", {
        cause,
      });
    }
  }

  /** Throws ConfigError for a file of another problem: its outcomes would be taken for this one's. */
  read(path: string, problem: string): void {
    let file: ShardFile;
    try {
      file = JSON.parse(readFileSync(path, "utf8"), revived) as ShardFile;
    } catch (cause) {
      throw new ConfigError(
        { file: path, line: null },
        "this is no shard of  waterhole size",
        "Give the files that --out wrote.",
        {
          cause,
        },
      );
    }
    if (file.format !== FORMAT || file.version !== 1)
      throw new ConfigError(
        { file: path, line: null },
        "this is no shard of  waterhole size",
        "Give the files that --out wrote.",
      );
    if (file.problem !== problem)
      throw new ConfigError(
        { file: path, line: null },
        "the shard was made from another scenario, other pool files or other options",
        "Run all shards and the merge with the same command but for --shard, --out and --merge.",
      );
    for (const [key, outcome] of file.outcomes) this.#outcomes.set(key, outcome);
  }
}

/** JSON has no Infinity, and a p95 beyond the lost ones is one. */
const endless = (_key: string, value: unknown): unknown => (value === Number.POSITIVE_INFINITY ? "endless" : value);
const revived = (_key: string, value: unknown): unknown => (value === "endless" ? Number.POSITIVE_INFINITY : value);
