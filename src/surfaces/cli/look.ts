/**
 * How text may look on one stream: colour, glyphs, width. Decided once from facts, so that everything below
 * is a function of them and can be tested without a terminal (page-and-demos 3.1).
 */
import stringWidth from "string-width";

export interface Look {
  readonly colour: boolean;
  /** Blocks and marks, or `#` and words. */
  readonly unicode: boolean;
  /** For texts, which are wrapped. */
  readonly columns: number;
  /** For tables, which lose columns; a file or a pipe has room for all of them. */
  readonly tableColumns: number;
}

export interface TerminalFacts {
  readonly isTerminal: boolean;
  readonly columns: number | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** `--color` or `--no-color`; null: neither. */
  readonly wished: boolean | null;
}

const COLUMNS_UNKNOWN = 100;

/** Ours to decide: Node lets FORCE_COLOR beat NO_COLOR and takes an empty NO_COLOR as set. */
export function lookOf(facts: TerminalFacts): Look {
  const { environment } = facts;
  const known = facts.isTerminal && facts.columns !== undefined && facts.columns > 0 ? facts.columns : null;
  return {
    colour: wantsColour(facts),
    unicode: isUtf8(environment) && environment.TERM !== "linux",
    columns: known ?? COLUMNS_UNKNOWN,
    tableColumns: known ?? Number.POSITIVE_INFINITY,
  };
}

function wantsColour({ isTerminal, environment, wished }: TerminalFacts): boolean {
  if (wished !== null) return wished;
  const { NO_COLOR, FORCE_COLOR, TERM } = environment;
  if (NO_COLOR !== undefined && NO_COLOR !== "") return false;
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== "0" && FORCE_COLOR !== "false";
  return isTerminal && TERM !== "dumb";
}

function isUtf8(environment: TerminalFacts["environment"]): boolean {
  const locale = environment.LC_ALL || environment.LC_CTYPE || environment.LANG;
  // Without a locale Node writes UTF-8 all the same; only an explicit other one is taken at its word.
  return locale === undefined || locale === "" || /utf-?8/i.test(locale) || locale === "C" || locale === "POSIX";
}

/** The 16 basic colours only: the reader's theme decides what they look like. */
export type Paint = "running" | "queued" | "refused" | "bold" | "muted" | "good";

const CODES: Readonly<Record<Paint, readonly [on: number, off: number]>> = {
  running: [34, 39],
  queued: [33, 39],
  refused: [31, 39],
  good: [32, 39],
  bold: [1, 22],
  muted: [2, 22],
};

/** Colour is never the only sign: without codes the text is the same. */
export function paint(look: Look, how: Paint, text: string): string {
  if (!look.colour || text === "") return text;
  const [on, off] = CODES[how];
  return `\x1b[${on}m${text}\x1b[${off}m`;
}

export const widthOf = (text: string): number => stringWidth(text);

export const padEnd = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - widthOf(text)));
export const padStart = (text: string, width: number): string => " ".repeat(Math.max(0, width - widthOf(text))) + text;

/** Names are cut in the middle, where they differ least. */
export function cutMiddle(text: string, width: number, look: Look): string {
  if (widthOf(text) <= width) return text;
  const mark = look.unicode ? "…" : "..";
  const room = Math.max(2, width - mark.length);
  const head = Math.ceil(room / 2);
  return `${text.slice(0, head)}${mark}${text.slice(text.length - (room - head))}`;
}

/** Texts of a moving block are cut at their end. */
export function cutEnd(text: string, width: number, look: Look): string {
  if (widthOf(text) <= width) return text;
  const mark = look.unicode ? "…" : "..";
  return text.slice(0, Math.max(0, width - mark.length)) + mark;
}

/** Between a number and its % stands a blank that is no place to break; nor is the narrow one inside a number. */
const BREAKS = /[ \t\n]+(?!%)/;

/** As it is, or at its blanks in several lines where a terminal has not the width. */
export const fitting = (line: string, { tableColumns }: Look): string[] =>
  widthOf(line) <= tableColumns ? [line] : wrap(line, tableColumns);

/** At blanks; a word longer than the line stands alone. The first line may be shorter by `used`. */
export function wrap(text: string, width: number, used = 0): string[] {
  const lines: string[] = [];
  let line = "";
  let room = width - used;
  for (const word of text.split(BREAKS).filter((w) => w !== "")) {
    if (line !== "" && widthOf(line) + 1 + widthOf(word) > room) {
      lines.push(line);
      line = word;
      room = width;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return line === "" ? lines : [...lines, line];
}
