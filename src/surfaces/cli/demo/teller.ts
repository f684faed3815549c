/**
 * Tells a story on two streams: captions on stdout, and the moving picture on stderr where that is a terminal. Every
 * caption is also the story without a picture: in a pipe it carries the numbers.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Look } from "../look.ts";
import { paint, wrap } from "../look.ts";
import { ProgressBlock } from "../progress.ts";
import { type ColourChoice, lookFor, type Surroundings, writeLines } from "../surroundings.ts";

const RULE_WIDTH = 10;
/** A frame stays so long, unless told at once. */
const FRAME_MILLIS = 40;

/** Somebody pressed Ctrl-C: the story stops at its next frame, and what it made is taken away on the way out. */
export class StoryStopped extends Error {
  override readonly name = "StoryStopped";
}

export class Teller {
  readonly look: Look;
  readonly picture: Look;
  readonly #surroundings: Surroundings;
  readonly #block: ProgressBlock | null;
  readonly #isQuiet: boolean;
  readonly #isSlow: boolean;
  #isStopped = false;

  /** `quiet`: for `--json`, nothing is told. `fast`: nothing is waited for. */
  constructor(surroundings: Surroundings, choice: ColourChoice & { readonly quiet: boolean; readonly fast: boolean }) {
    this.#surroundings = surroundings;
    this.look = lookFor(surroundings.stdout, surroundings, choice);
    this.picture = lookFor(surroundings.stderr, surroundings, choice);
    this.#isQuiet = choice.quiet;
    this.#block = !choice.quiet && surroundings.stderr.isTTY === true ? new ProgressBlock(surroundings.stderr) : null;
    this.#isSlow = this.#block !== null && !choice.fast;
  }

  lines(...lines: readonly string[]): void {
    if (this.#isQuiet) return;
    this.#block?.end();
    writeLines(this.#surroundings.stdout, lines);
  }

  heading(text: string): void {
    this.lines("", paint(this.look, "bold", text));
  }

  /** What just happened, with the rule it follows. */
  caption(rule: string, text: string): void {
    const [first = "", ...rest] = wrap(text, this.look.columns - RULE_WIDTH - 2);
    this.lines(
      `  ${paint(this.look, "muted", rule.padEnd(RULE_WIDTH))}${first}`,
      ...rest.map((line) => " ".repeat(RULE_WIDTH + 2) + line),
    );
  }

  /** The picture as it is now; also the moment in which other things of this process get their turn. */
  async frame(lines: () => readonly string[]): Promise<void> {
    if (this.#block !== null) this.#block.draw(lines());
    await sleep(this.#isSlow ? FRAME_MILLIS : 0);
    if (this.#isStopped) throw new StoryStopped();
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Takes the picture away; also when the story is broken off. */
  end(): void {
    this.#block?.end();
  }
}
