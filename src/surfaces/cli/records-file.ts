/**
 * Records on disk: written in large pieces while a run goes on, read line by line however long they are.
 */
import { createReadStream } from "node:fs";
import { ConfigError, fileMissing } from "../../config/config-error.ts";
import type { RunEvent } from "../../core/events.ts";
import { encodeEnd, encodeEvent, encodeHeader, type RecordsHeader, RecordsReader } from "../../insight/records.ts";
import { type Output, OutputFile } from "./output-file.ts";

/** Characters that are gathered before they are written. */
const PIECE = 256 * 1024;

export const recordsOutput = (path: string): Output => ({
  what: "the records",
  flag: "--records",
  noneFlag: "--no-records",
  path,
});

export class RecordsWriter {
  readonly path: string;
  readonly #file: OutputFile;
  #pending = "";
  #events = 0;
  #at = 0;
  #isClosed = false;

  /** Throws ConfigError when the file cannot be made. */
  constructor(path: string, header: Omit<RecordsHeader, "kind" | "format" | "version">) {
    this.path = path;
    this.#file = new OutputFile(recordsOutput(path), true);
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
    try {
      this.#write();
    } finally {
      this.#file.close();
    }
  }

  #write(): void {
    const pending = this.#pending;
    this.#pending = "";
    this.#file.append(pending);
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
