/**
 * How far `simulate` is, on a terminal: one line, gone before the report (DESIGN 2). A short run shows none.
 *
 * The simulation never gives the event loop a turn, so it is looked at between two of its steps.
 */
import type { Scenario } from "../../config/scenario.ts";
import { toInstant } from "../../sim/event-queue.ts";
import type { SimulationInput } from "../../sim/simulate.ts";
import { countText, timeText } from "./figures.ts";
import { ProgressLine } from "./progress.ts";
import { expectedSubmissions } from "./scenario-run.ts";
import type { Surroundings } from "./surroundings.ts";

const MIN_MS_BETWEEN_FRAMES = 250;
/** A look at the clock costs as much as a step. */
const STEPS_BETWEEN_LOOKS = 4096;

export class SimulateProgress {
  readonly #line: ProgressLine | null;
  readonly #expected: string;
  readonly #unicode: boolean;
  #steps = 0;

  constructor({ stderr }: Surroundings, scenario: Scenario, unicode: boolean, now = () => performance.now()) {
    this.#line = stderr.isTTY === true ? new ProgressLine(stderr, MIN_MS_BETWEEN_FRAMES, now) : null;
    this.#unicode = unicode;
    const expected = Math.round(expectedSubmissions(scenario));
    this.#expected = Number.isFinite(expected) ? ` of about ${countText(expected, unicode)}` : "";
  }

  /** What the simulation calls after each of its steps; undefined where nobody would see it. */
  get inspect(): SimulationInput["inspect"] {
    const line = this.#line;
    if (line === null) return undefined;
    return ({ submitted, now }) => {
      if (++this.#steps % STEPS_BETWEEN_LOOKS !== 0) return;
      line.draw(() => `simulate: ${this.#queries(submitted)} queries, ${timeText(toInstant(now))}`);
    };
  }

  #queries(submitted: number): string {
    return `${countText(submitted, this.#unicode)}${this.#expected}`;
  }

  end(): void {
    this.#line?.end();
  }
}
