/**
 * A person's mistake in a file or a flag, said so that the person can mend it: where, what was found, what
 * was expected, what to do (STYLE 6).
 *
 * Surfaces print the message without a stack and end with exit code 2. Texts of the product stay exactly the
 * product's in `problem`; our own advice is `remedy`. The fields are kept apart for those who print findings.
 */

/** `line` and `column` count from 1; null when the mistake is not in a line (a missing file, a flag). */
export interface SourcePlace {
  readonly file: string;
  readonly line: number | null;
  readonly column?: number | null;
}

export class ConfigError extends Error {
  override readonly name: string = "ConfigError";
  readonly file: string;
  readonly line: number | null;
  readonly column: number | null;
  readonly problem: string;
  readonly remedy: string;

  constructor(at: SourcePlace, problem: string, remedy: string, options?: ErrorOptions) {
    super(`${placeText(at)}: ${sentence(problem)} ${remedy}`, options);
    this.file = at.file;
    this.line = at.line;
    this.column = at.column ?? null;
    this.problem = problem;
    this.remedy = remedy;
  }
}

/** Several mistakes of one file, told together: the first is this error, the rest follow in its message. */
export class SeveralConfigErrors extends ConfigError {
  readonly others: readonly ConfigError[];
  /** How many more there are that are not told. */
  readonly untold: number;

  constructor(first: ConfigError, others: readonly ConfigError[], untold: number) {
    super(first, first.problem, first.remedy);
    this.others = others;
    this.untold = untold;
    const more = untold > 0 ? [`And ${untold} more.`] : [];
    this.message = [first.message, ...others.map((e) => e.message), ...more].join("\n");
  }
}

export function placeText(at: SourcePlace): string {
  const file = at.file === "" ? '""' : at.file;
  if (at.line === null) return file;
  return at.column ? `${file}:${at.line}:${at.column}` : `${file}:${at.line}`;
}

const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);

export const fileMissing = (file: string, what: string, cause: unknown): ConfigError =>
  new ConfigError({ file, line: null }, `the ${what} cannot be read: ${reasonOf(cause)}`, "Check the path.", { cause });

function reasonOf(cause: unknown): string {
  const code = cause instanceof Error && "code" in cause ? cause.code : null;
  if (code === "ENOENT") return "there is no such file";
  if (code === "EISDIR") return "it is a folder";
  if (code === "EACCES") return "no permission";
  return cause instanceof Error ? cause.message : String(cause);
}

const NOT_WRITTEN: Readonly<Record<string, string>> = {
  ENOENT: "there is no such folder",
  ENOTDIR: "a part of its path is no folder",
  EEXIST: "a part of its path is no folder",
  EISDIR: "it is a folder",
  EACCES: "no permission",
  EPERM: "no permission",
  EROFS: "the file system is read-only",
  ENOSPC: "no space is left there",
  EDQUOT: "the quota there is used up",
  EFBIG: "it would become larger than files may be there",
};

/** Why the system would not write a file or make a folder, in words. */
export function whyNotWritten(cause: unknown): string {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  return NOT_WRITTEN[code] ?? (cause instanceof Error ? cause.message : String(cause));
}
