/**
 * What a command needs from the process it runs in, and nothing else of it: so that whole commands run in
 * tests, on texts.
 */
import { jsonText } from "./documents/json-text.ts";
import { type Look, lookOf } from "./look.ts";

export interface OutputStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}

export interface Surroundings {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Asks whoever sits at the terminal for a line; left out where nobody does. */
  readonly ask?: (question: string) => Promise<string>;
}

/** `--color`, `--no-color` of the program. */
export interface ColourChoice {
  readonly color?: boolean;
}

export const lookFor = (stream: OutputStream, { environment }: Surroundings, { color }: ColourChoice): Look =>
  lookOf({ isTerminal: stream.isTTY === true, columns: stream.columns, environment, wished: color ?? null });

export function writeLines(stream: OutputStream, lines: readonly string[]): void {
  stream.write(lines.map((line) => `${line}\n`).join(""));
}

/** The one document of `--json`. */
export function writeJson(stream: OutputStream, document: unknown): void {
  stream.write(`${jsonText(document)}\n`);
}
