/**
 * What `size` is doing, on a terminal: one line, gone before the report (DESIGN 2). Where there is no terminal there
 * is none.
 *
 * What step it is follows from the jobs that are asked for, so the search itself knows nothing of this.
 */
import type { Evaluate, Job } from "../../insight/size/problem.ts";
import { plural } from "./figures.ts";
import { ProgressLine } from "./progress.ts";
import type { Surroundings } from "./surroundings.ts";

const MIN_MS_BETWEEN_FRAMES = 100;

export class SizeProgress {
  readonly #line: ProgressLine | null;
  #step = "";
  #done = 0;
  #wanted = 0;

  constructor({ stderr }: Surroundings, now: () => number = () => performance.now()) {
    this.#line = stderr.isTTY === true ? new ProgressLine(stderr, MIN_MS_BETWEEN_FRAMES, now) : null;
  }

  /** Something that takes a while and has no parts. */
  say(text: string): void {
    this.#line?.drawNow(`size: ${text}`);
  }

  /** The same jobs, announced before they are run. */
  watching(evaluate: Evaluate): Evaluate {
    return async (jobs) => {
      this.#begin(jobs);
      return evaluate(jobs);
    };
  }

  #begin(jobs: readonly Job[]): void {
    const [job] = jobs;
    if (job === undefined) return;
    this.#step = stepOf(job);
    this.#done = 0;
    this.#wanted = jobs.length;
    this.#line?.drawNow(this.#text());
  }

  /** One of them is done. */
  readonly jobDone = (): void => {
    this.#done++;
    this.#line?.draw(() => this.#text());
  };

  #text(): string {
    return `size: ${this.#step}: ${this.#done} of ${this.#wanted} ${plural(this.#wanted, "run")}`;
  }

  end(): void {
    this.#line?.end();
  }
}

function stepOf({ engine, day, from, to, binding, ease }: Job): string {
  const requests = `${to - from} requests`;
  if (binding === true) return `what binds, ${requests} by the rules`;
  if (ease !== undefined) return `what would relieve, ${requests} by the rules`;
  return engine === "model" ? `screening on ${requests}` : `day ${day + 1}, ${requests} by the rules`;
}
