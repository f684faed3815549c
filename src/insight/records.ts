/**
 * A run as a file: one JSON object a line, a header first, then every event in order, then an end.
 *
 * The header carries the scenario and the pool files as they were, whole, so that a records file explains and
 * repeats itself on any machine. In virtual time it holds nothing of the machine: the same seed gives the same
 * bytes. Only text here; who has files reads and writes them.
 */
import { ConfigError } from "../config/config-error.ts";
import type { EventKind, RunEvent } from "../core/events.ts";

export const RECORDS_FORMAT = "waterhole-records";
export const RECORDS_VERSION = 1;

export interface RecordsHeader {
  readonly kind: "header";
  readonly format: typeof RECORDS_FORMAT;
  readonly version: number;
  /** Version of the program that wrote it. */
  readonly program: string;
  readonly mode: "live" | "virtual";
  readonly seed: number;
  readonly scenario: TextFile;
  readonly pools: { readonly fairScheduler: TextFile | null; readonly llamaSite: TextFile | null };
  /** Null in virtual time. */
  readonly machine: { readonly node: string; readonly cores: number; readonly memoryBytes: number } | null;
}

/** `path` as it was written by whoever named it. */
export interface TextFile {
  readonly path: string;
  readonly text: string;
}

interface RecordsEnd {
  readonly kind: "end";
  readonly at: number;
  readonly events: number;
}

export const encodeHeader = (header: Omit<RecordsHeader, "kind" | "format" | "version">): string =>
  `${JSON.stringify({ kind: "header", format: RECORDS_FORMAT, version: RECORDS_VERSION, ...header })}\n`;

export const encodeEvent = (event: RunEvent): string => `${JSON.stringify(event)}\n`;

export const encodeEnd = (at: number, events: number): string =>
  `${JSON.stringify({ kind: "end", at, events } satisfies RecordsEnd)}\n`;

/** Takes a records file line by line; every line that is wrong is a ConfigError with its number. */
export class RecordsReader {
  readonly #file: string;
  #line = 0;
  #header: RecordsHeader | null = null;
  #end: RecordsEnd | null = null;
  #events = 0;
  #lastAt = 0;

  constructor(file: string) {
    this.#file = file;
  }

  get header(): RecordsHeader {
    return (
      this.#header ?? this.#fail("the file is empty", "Expected the records of a run: try  waterhole run SCENARIO")
    );
  }

  /** Events read so far. */
  get events(): number {
    return this.#events;
  }

  /** Emulated time of the end, or of the last event when the file was cut off. */
  get until(): number {
    return this.#end?.at ?? this.#lastAt;
  }

  /** Whether the end has been read; a run that was killed leaves a file without. */
  get isComplete(): boolean {
    return this.#end !== null;
  }

  /** The event of this line; null for header, end, and kinds that a newer program writes. */
  read(line: string): RunEvent | null {
    this.#line++;
    const value = this.#parse(line);
    if (this.#header === null) {
      this.#header = this.#checkedHeader(value);
      return null;
    }
    if (value.kind === "end") {
      this.#end = this.#checkedEnd(value);
      return null;
    }
    return this.#checkedEvent(value);
  }

  /**
   * The last line when the file does not end with a line break: the writer was stopped in the middle of it.
   * What can be read counts, the rest does not, and nothing is an error.
   */
  readCutOff(line: string): RunEvent | null {
    if (line === "" || (this.#header !== null && !isJson(line))) return null;
    return this.read(line);
  }

  #parse(line: string): Readonly<Record<string, unknown>> {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (cause) {
      this.#fail(
        this.#line === 1 ? "this is no records file" : "this line is no JSON",
        this.#line === 1 ? NOT_RECORDS : "The file is damaged here; what stands above can be read by cutting it off.",
        cause,
      );
    }
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
    return this.#fail(this.#line === 1 ? "this is no records file" : "this line is no event", NOT_RECORDS);
  }

  #checkedHeader(value: Readonly<Record<string, unknown>>): RecordsHeader {
    if (value.kind !== "header" || value.format !== RECORDS_FORMAT)
      return this.#fail("this is no records file", NOT_RECORDS);
    if (value.version !== RECORDS_VERSION)
      return this.#fail(
        `the records have version ${String(value.version)}. Expected ${RECORDS_VERSION}`,
        "Read them with the program that wrote them, or run the scenario again.",
      );
    const missing = ["program", "mode", "seed", "scenario", "pools"].find((key) => value[key] === undefined);
    if (missing !== undefined) return this.#fail(`the header has no ${missing}`, NOT_RECORDS);
    const checked: unknown = value;
    return checked as RecordsHeader;
  }

  #checkedEnd(value: Readonly<Record<string, unknown>>): RecordsEnd {
    if (value.events !== this.#events)
      this.#fail(
        `the end counts ${String(value.events)} events, but ${this.#events} were read`,
        "The file is damaged.",
      );
    return { kind: "end", at: Number(value.at), events: this.#events };
  }

  #checkedEvent(value: Readonly<Record<string, unknown>>): RunEvent | null {
    if (this.#end !== null) this.#fail("there is a line after the end", "Two files were joined; take them apart.");
    if (typeof value.kind !== "string" || typeof value.at !== "number")
      return this.#fail("this line is no event: kind or at is missing", "The file is damaged.");
    this.#events++;
    this.#lastAt = value.at;
    if (!Object.hasOwn(FIELDS, value.kind)) return null;
    const wrong = FIELDS[value.kind as EventKind].find(([name, type]) => !hasType(value[name], type));
    if (wrong !== undefined)
      this.#fail(`the event "${value.kind}" has no ${wrong[0]} of type ${wrong[1]}`, "The file is damaged.");
    const checked: unknown = value;
    return checked as RunEvent;
  }

  #fail(problem: string, remedy: string, cause?: unknown): never {
    throw new ConfigError({ file: this.#file, line: Math.max(1, this.#line) }, problem, remedy, { cause });
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const NOT_RECORDS = "Expected a file that  waterhole run  or  simulate  has written.";

type FieldType = "text" | "number" | "flag" | "list" | "block" | "textOrNull" | "numberOrNull";

function hasType(value: unknown, type: FieldType): boolean {
  switch (type) {
    case "text":
      return typeof value === "string";
    case "number":
      return typeof value === "number";
    case "flag":
      return typeof value === "boolean";
    case "list":
      return Array.isArray(value);
    case "block":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    case "textOrNull":
      return value === null || typeof value === "string";
    case "numberOrNull":
      return value === null || typeof value === "number";
  }
}

type Fields = readonly (readonly [name: string, type: FieldType])[];
const QUERY = ["query", "text"] as const;

/** What each kind must have beside `kind` and `at`; further fields pass. */
const FIELDS: Readonly<Record<EventKind, Fields>> = {
  submitted: [
    QUERY,
    ["queryClass", "text"],
    ["pool", "text"],
    ["user", "text"],
    ["coordinator", "text"],
    ["intended", "number"],
    ["firstIntended", "number"],
    ["attempt", "number"],
    ["request", "text"],
  ],
  unresolved: [QUERY, ["error", "text"]],
  queued: [QUERY, ["reason", "block"], ["timeout", "number"]],
  stillQueued: [QUERY, ["reason", "block"], ["attempts", "number"]],
  admitted: [
    QUERY,
    ["path", "text"],
    ["waited", "number"],
    ["group", "text"],
    ["perHost", "number"],
    ["onCoordinator", "number"],
    ["cluster", "number"],
    ["memLimit", "number"],
    ["coordinatorMemLimit", "number"],
    ["hosts", "list"],
    ["stale", "numberOrNull"],
  ],
  rejected: [QUERY, ["reason", "block"], ["waited", "number"], ["fromQueue", "flag"]],
  timedOut: [QUERY, ["waited", "number"], ["timeout", "number"], ["reason", "block"], ["details", "text"]],
  cancelled: [QUERY, ["waited", "number"], ["wasQueued", "flag"]],
  fragmentStarted: [QUERY, ["host", "text"], ["instance", "number"]],
  reserved: [QUERY, ["host", "text"], ["instance", "number"], ["reservation", "number"], ["used", "number"]],
  spilled: [QUERY, ["host", "text"], ["instance", "number"], ["bytes", "number"]],
  fragmentFinished: [
    QUERY,
    ["host", "text"],
    ["instance", "number"],
    ["peak", "number"],
    ["spilled", "number"],
    ["error", "textOrNull"],
  ],
  backendsReleased: [QUERY, ["hosts", "list"]],
  releaseLost: [QUERY, ["hosts", "list"], ["state", "textOrNull"]],
  released: [QUERY, ["state", "text"], ["peak", "number"], ["error", "textOrNull"]],
  hostLost: [
    ["host", "text"],
    ["why", "text"],
  ],
  hostJoined: [["host", "text"]],
  topicApplied: [
    ["coordinator", "text"],
    ["sequence", "number"],
  ],
  topicPublished: [["host", "text"]],
  fault: [["what", "text"]],
  poolFiles: [
    ["level", "text"],
    ["text", "text"],
  ],
  hostsChecked: [QUERY, ["slots", "flag"], ["hostMemory", "flag"]],
  viewUsed: [QUERY, ["ageMs", "number"]],
  controllerCall: [
    ["controller", "text"],
    ["call", "block"],
  ],
};
