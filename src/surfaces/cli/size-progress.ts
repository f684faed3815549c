/**
 * What `size` is doing, on a terminal: one line, gone before the report (DESIGN 2). Where there is no terminal there
 * is none.
 *
 * What step it is follows from the jobs that are asked for, so the search itself knows nothing of this.
 */
import type { Evaluate, Job } from "../../insight/size/problem.ts";
import { plural } from "./figures.ts";
import { ProgressBlock } from "./progress.ts";
import type { Surroundings } from "./surroundings.ts";

const MIN_MS_BETWEEN_FRAMES = 100;

export class SizeProgress {
  readonly #block: ProgressBlock | null;
  readonly #now: () => number;
  #step = "";
  #done = 0;
  #wanted = 0;
  #drawnAt = Number.NEGATIVE_INFINITY;

  constructor({ stderr }: Surroundings, now: () => number = () => performance.now()) {
    this.#block = stderr.isTTY === true ? new ProgressBlock(stderr) : null;
    this.#now = now;
  }

  /** Something that takes a while and has no parts. */
  say(text: string): void {
    this.#block?.draw([`size: ${text}`]);
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
    if (this.#block === null || job === undefined) return;
    this.#step = stepOf(job);
    this.#done = 0;
    this.#wanted = jobs.length;
    this.#draw();
  }

  /** One of them is done. */
  readonly jobDone = (): void => {
    this.#done++;
    if (this.#now() - this.#drawnAt >= MIN_MS_BETWEEN_FRAMES) this.#draw();
  };

  #draw(): void {
    if (this.#block === null) return;
    this.#drawnAt = this.#now();
    this.#block.draw([`size: ${this.#step}: ${this.#done} of ${this.#wanted} ${plural(this.#wanted, "run")}`]);
  }

  end(): void {
    this.#block?.end();
  }
}

function stepOf({ engine, day, from, to, binding, ease }: Job): string {
  const requests = `${to - from} requests`;
  if (binding === true) return `what binds, ${requests} by the rules`;
  if (ease !== undefined) return `what would relieve, ${requests} by the rules`;
  return engine === "model" ? `screening on ${requests}` : `day ${day + 1}, ${requests} by the rules`;
}
