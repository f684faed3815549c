/**
 * Records on disk: written in large pieces while a run goes on, read line by line however long they are.
 */
import { closeSync, createReadStream, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigError, fileMissing } from "../../config/config-error.ts";
import type { RunEvent } from "../../core/events.ts";
import { encodeEnd, encodeEvent, encodeHeader, type RecordsHeader, RecordsReader } from "../../insight/records.ts";

/** Characters that are gathered before they are written. */
const PIECE = 256 * 1024;

export class RecordsWriter {
  readonly path: string;
  readonly #file: number;
  #pending = "";
  #events = 0;
  #at = 0;
  #isClosed = false;

  /** Throws ConfigError when the file cannot be made. */
  constructor(path: string, header: Omit<RecordsHeader, "kind" | "format" | "version">) {
    this.path = path;
    try {
      mkdirSync(dirname(path), { recursive: true });
      this.#file = openSync(path, "w");
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new ConfigError(
        { file: path, line: null },
        `the records cannot be written: ${why}`,
        "Name another file with  --records FILE",
        { cause },
      );
    }
    this.#pending = encodeHeader(header);
  }

  get events(): number {
    return this.#events;
  }

  add(event: RunEvent): void {
    this.#events++;
    this.#at = event.at;
    this.#pending += encodeEvent(event);
    if (this.#pending.length >= PIECE) this.#write();
  }

  /** `at`: when the run was over. A second call does nothing. */
  close(at: number = this.#at): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#pending += encodeEnd(at, this.#events);
    this.#write();
    closeSync(this.#file);
  }

  #write(): void {
    let bytes = Buffer.from(this.#pending, "utf8");
    this.#pending = "";
    while (bytes.length > 0) bytes = bytes.subarray(writeSync(this.#file, bytes));
  }
}

/** Hands over every event in order; throws ConfigError for a file that is none or damaged. */
export async function readRecords(path: string, take: (event: RunEvent) => void): Promise<RecordsReader> {
  const reader = new RecordsReader(path);
  let rest = "";
  try {
    for await (const piece of createReadStream(path, { encoding: "utf8", highWaterMark: PIECE })) {
      const lines = (rest + String(piece)).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) takeIfAny(reader.read(line), take);
    }
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw fileMissing(path, "records file", cause);
  }
  takeIfAny(reader.readCutOff(rest), take);
  // Says so when the file was empty.
  void reader.header;
  return reader;
}

/** For standard error; nothing where the end was read. */
export const cutOffNote = (path: string, { isComplete }: RecordsReader): string[] =>
  isComplete ? [] : [`note: ${path} has no end: the run was stopped, or the file was cut off. What is there was read.`];

function takeIfAny(event: RunEvent | null, take: (event: RunEvent) => void): void {
  if (event !== null) take(event);
}
