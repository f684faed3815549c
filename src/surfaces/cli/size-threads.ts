/**
 * Runs jobs of `size` on threads. The days lie in shared memory, so a thread costs no copy of them; what a job
 * gives does not depend on the thread that ran it, so one or many give the same report.
 */
import { Piscina } from "piscina";
import type { Outcome } from "../../insight/size/outcome.ts";
import { type Evaluate, Evaluator, type Job, type SizeProblem } from "../../insight/size/problem.ts";

export class SizeThreads {
  readonly #pool: Piscina<Job, Outcome> | null;
  readonly #here: Evaluator | null;
  readonly #onDone: (done: number) => void;
  #done = 0;

  /** With one thread everything runs in this one. */
  constructor(problem: SizeProblem, threads: number, onDone: (done: number) => void = () => undefined) {
    this.#onDone = onDone;
    this.#here = threads <= 1 ? new Evaluator(problem) : null;
    this.#pool =
      threads <= 1
        ? null
        : new Piscina({
            filename: entryFile("size"),
            minThreads: threads,
            maxThreads: threads,
            workerData: problem,
          });
  }

  readonly evaluate: Evaluate = async (jobs) => {
    // The longest first, so that no thread begins a long one when the others are done.
    const order = jobs.map((_, i) => i).sort((a, b) => weightOf(jobs[b]!) - weightOf(jobs[a]!) || a - b);
    const outcomes = new Array<Outcome>(jobs.length);
    await Promise.all(
      order.map(async (i) => {
        outcomes[i] = await this.#run(jobs[i]!);
        this.#onDone(++this.#done);
      }),
    );
    return outcomes;
  };

  async #run(job: Job): Promise<Outcome> {
    return this.#here === null ? await this.#pool!.run(job) : this.#here.run(job);
  }

  async close(): Promise<void> {
    await this.#pool?.destroy();
  }
}

/** The rules take several times as long as the model. */
const weightOf = (j: Job): number => (j.to - j.from) * (j.engine === "rules" ? 10 : 1);

function entryFile(name: string): string {
  const extension = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
  return new URL(`../../../workers/${name}${extension}`, import.meta.url).href;
}
