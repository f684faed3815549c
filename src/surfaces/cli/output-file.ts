/**
 * Files that commands write. It must stay true that none of them takes the place of a file that the command reads or
 * of another one that it writes, that everything given is written, and that a full disk is told as what it is.
 */
import { closeSync, mkdirSync, openSync, realpathSync, statSync, writeSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { ConfigError, whyNotWritten } from "../../config/config-error.ts";

export interface Output {
  /** As it is called in messages: `the records`. */
  readonly what: string;
  /** The flag that names it, such as `--records`. */
  readonly flag: string;
  /** The flag that writes none, where it is written without being asked for. */
  readonly noneFlag?: string;
  readonly path: string;
}

/** Throws ConfigError when one of them is also read, or written twice. Ask before anything is opened. */
export function keepApart(outputs: readonly Output[], inputs: readonly string[]): void {
  const read = new Set(inputs.map(identityOf));
  const written = new Map<string, Output>();
  for (const output of outputs) {
    const { what, flag, path } = output;
    const refuse = (why: string) =>
      new ConfigError({ file: path, line: null }, why, `Name another file with  ${flag} FILE`);
    if (path === "") throw new ConfigError({ file: flag, line: null }, "the name of the file is empty", "Give a name.");
    const identity = identityOf(path);
    if (identity === null) continue;
    if (read.has(identity)) throw refuse(`${what} would take the place of a file that is read`);
    const other = written.get(identity);
    if (other !== undefined) throw refuse(`${what} and ${other.what} cannot be one file`);
    written.set(identity, output);
  }
}

/** Equal for two names of one file; null for what is none and may be named as often as one likes (`/dev/null`). */
function identityOf(path: string): string | null {
  try {
    const found = statSync(path);
    return found.isFile() ? `${found.dev}:${found.ino}` : null;
  } catch {
    return placeOf(path);
  }
}

/** Of a file that is not there yet, or that may not be looked at. */
function placeOf(path: string): string {
  const full = resolve(path);
  try {
    return resolve(realpathSync(dirname(full)), basename(full));
  } catch {
    // Its folder is not there either: then the name is all there is.
    return full;
  }
}

/** Written piece by piece. */
export class OutputFile {
  readonly #output: Output;
  readonly #fd: number;

  /** Throws ConfigError when it cannot be opened. `makesFolder`: also the folder, if there is none. */
  constructor(output: Output, makesFolder: boolean) {
    this.#output = output;
    try {
      if (makesFolder) mkdirSync(dirname(output.path), { recursive: true });
      this.#fd = openSync(output.path, "w");
    } catch (cause) {
      throw notWritten(output, "be written", cause);
    }
  }

  /** All of it, however little the system takes at a time. */
  append(text: string): void {
    let bytes = Buffer.from(text, "utf8");
    try {
      while (bytes.length > 0) bytes = bytes.subarray(writeSync(this.#fd, bytes));
    } catch (cause) {
      throw notWritten(this.#output, "be written in full", cause);
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** Written in one piece. */
export function writeOutput(output: Output, text: string): void {
  const file = new OutputFile(output, false);
  try {
    file.append(text);
  } finally {
    file.close();
  }
}

function notWritten({ what, flag, noneFlag, path }: Output, goal: string, cause: unknown): ConfigError {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  const room = code === "ENOSPC" || code === "EDQUOT" ? "Make room, or name" : "Name";
  const none = noneFlag === undefined ? "" : `, or write none with  ${noneFlag}`;
  return new ConfigError(
    { file: path, line: null },
    `${what} cannot ${goal}: ${whyNotWritten(cause)}`,
    `${room} another file with  ${flag} FILE${none}`,
    { cause },
  );
}
