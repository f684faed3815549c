/**
 * Opens a log of queries in whatever form somebody exported it (insight 4.1).
 *
 * The form is recognised by what the file holds, never by its name. A row that cannot be read is left out and
 * counted, with its place: one damaged row must not cost the log. But more than one row in a hundred means
 * that this is not the file it seems to be, and then the first such row is the error.
 */
import { readFile } from "node:fs/promises";
import * as zlib from "node:zlib";
import { brotliDecompressSync, constants, gunzipSync } from "node:zlib";
import type { Compressors } from "hyparquet";
import { ConfigError, fileMissing } from "../../config/config-error.ts";
import { type Cell, type LogRow, UnreadableCell } from "./cells.ts";
import { KeptTexts } from "./kept-texts.ts";
import { delimiterOf, eachLine, headOf, isGzip, RecordJoiner, splitFields } from "./lines.ts";
import type { LoggedQuery } from "./logged-query.ts";
import {
  CONSOLE_MARKS,
  isFlatManagerList,
  managerRow,
  queryOfConsoleRow,
  queryOfManagerEntry,
} from "./manager-list.ts";
import { PROFILE_MARK, type ProfileBlock, queryOfProfile } from "./profile-text.ts";
import { queryOfTableRow, TABLE_COLUMNS, TABLE_MARKS } from "./query-log-table.ts";

/** What the file turned out to be. */
export type LogForm = "query log table" | "manager list" | "console list" | "profiles";

export interface QueryLog {
  readonly file: string;
  readonly form: LogForm;
  /** In file order. */
  readonly queries: readonly LoggedQuery[];
  /** Rows that could not be read. */
  readonly unreadable: { readonly count: number; readonly first: readonly RowProblem[] };
  /** What the exporting product said about its own export. */
  readonly warnings: readonly string[];
  /** Columns of the form that the file does not have. */
  readonly missingColumns: readonly string[];
}

export interface RowProblem {
  readonly line: number;
  readonly problem: string;
}

const HEAD_BYTES = 1 << 16;
const SHOWN_PROBLEMS = 5;
const MOST_UNREADABLE = 0.01;

const FORMS =
  "a query log table (CSV, JSON lines or Parquet with query_id, admission_result, event_completed_admission), a Cloudera Manager list (JSON with queries[]), a console list (admission_wait, cluster_memory_admitted) or profile texts";

/** Throws ConfigError when the file is none of the forms or holds no readable query. */
export async function readQueryLog(file: string): Promise<QueryLog> {
  const head = headText(file);
  const gathered = new Gathered(file);
  const form = await readAs(file, head, gathered);
  return gathered.finish(form);
}

interface Head {
  readonly bytes: Buffer;
  readonly gzip: boolean;
  readonly text: string;
}

function headText(file: string): Head {
  let bytes: Buffer;
  try {
    bytes = headOf(file, HEAD_BYTES);
  } catch (e) {
    throw fileMissing(file, "query log", e);
  }
  if (bytes.length === 0) throw new ConfigError({ file, line: null }, "the file is empty", `Give ${FORMS}.`);
  const gzip = isGzip(bytes);
  return { bytes, gzip, text: (gzip ? startOfGzip(bytes) : bytes).toString("utf8").replace(/^\uFEFF/, "") };
}

/** The first bytes of a gzip file end in the middle of its stream; what they hold is enough. */
function startOfGzip(bytes: Buffer): Buffer {
  try {
    return gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH });
  } catch {
    return Buffer.alloc(0);
  }
}

function readAs(file: string, head: Head, into: Gathered): Promise<LogForm> {
  if (head.bytes.subarray(0, 4).toString("latin1") === "PAR1") return readParquet(file, into);
  const binary = BINARIES.find(({ begins }) => head.bytes.toString("latin1", 0, begins.length) === begins);
  if (binary !== undefined) throw new ConfigError({ file, line: null }, `this is ${binary.is}`, binary.remedy);
  if (head.text.includes("\u0000"))
    throw new ConfigError(
      { file, line: 1 },
      "the file is not UTF-8 text (it holds zero bytes)",
      `Export it again as UTF-8; expected is ${FORMS}.`,
    );
  const other = otherKindOf(head);
  if (other !== null) throw new ConfigError({ file, line: null }, other.problem, other.remedy);
  const first = head.text.trimStart()[0];
  if (first === "{" || first === "[") return readJson(file, head, into);
  if (new RegExp(PROFILE_MARK.source, "m").test(head.text)) return readProfiles(file, head.gzip, into);
  return readDelimited(file, head, into);
}

const AS_PARQUET = "Export it as Parquet, CSV or JSON lines.";

/** What files of other kinds begin with. */
const BINARIES: readonly { readonly begins: string; readonly is: string; readonly remedy: string }[] = [
  { begins: "ORC", is: "an ORC file, which cannot be read here", remedy: AS_PARQUET },
  { begins: "ARROW1", is: "an Arrow file, which cannot be read here", remedy: AS_PARQUET },
  { begins: "Obj\u0001", is: "an Avro file, which cannot be read here", remedy: AS_PARQUET },
  { begins: "PK\u0003\u0004", is: "a zip file", remedy: "Unpack it, and give the file that was in it." },
];

/** Profiles in a form that is no text, and what makes one of it. */
function otherKindOf({ text }: Head): { readonly problem: string; readonly remedy: string } | null {
  if (/^\d{10,} [0-9a-f]{16}:[0-9a-f]{16} \S+/.test(text))
    return {
      problem: "this is an encoded profile log",
      remedy: "Decode it with impala-profile-tool and give the text.",
    };
  if (/^\s*[[{]/.test(text) && /"profile_name"\s*:\s*"Query \(id=/.test(text))
    return {
      problem: "this is a profile as JSON",
      remedy: "Give the profile as text: the web page of the query has it as Text Profile.",
    };
  return null;
}

// Text tables

async function readDelimited(file: string, head: Head, into: Gathered): Promise<LogForm> {
  const header = head.text.split(/\r?\n/, 1)[0] ?? "";
  const delimiter = delimiterOf(header);
  const columns = withoutTableName((splitFields(header, delimiter) ?? []).map((c) => c.trim().toLowerCase()));
  const form = formOfColumns(columns);
  if (form === null) throw notALog(file, header, columns);
  const index = new Map(columns.map((c, i) => [c, i]));
  const queryOf = READERS[form];
  into.columns(columns, form);
  const joiner = new RecordJoiner(
    delimiter,
    (fields, line) => {
      if (line === 1) return;
      if (fields.length !== columns.length) into.problem(line, `${fields.length} fields; expected ${columns.length}`);
      else into.row(line, () => queryOf(delimitedRow(index, fields, line)));
    },
    (line) => {
      throw new ConfigError(
        { file, line },
        "a quoted field opens here and never closes",
        'If the file was cut off, export it again; else write quotes inside a field twice ("").',
      );
    },
  );
  await lines(file, head.gzip, (text, line) => joiner.push(text, line));
  joiner.end();
  return form;
}

const delimitedRow = (index: ReadonlyMap<string, number>, fields: readonly string[], line: number): LogRow => ({
  line,
  cell: (column) => {
    const at = index.get(column);
    return at === undefined ? undefined : fields[at];
  },
});

/** Hive and beeline call a column `impala_query_log.query_id`. */
function withoutTableName(columns: readonly string[]): readonly string[] {
  const prefix = /^[^.]+\./.exec(columns[0] ?? "")?.[0];
  if (prefix === undefined || !columns.every((c) => c.startsWith(prefix))) return columns;
  return columns.map((c) => c.slice(prefix.length));
}

type RowForm = Exclude<LogForm, "profiles">;

const READERS: Readonly<Record<RowForm, (row: LogRow) => LoggedQuery>> = {
  "query log table": queryOfTableRow,
  "console list": queryOfConsoleRow,
  "manager list": queryOfManagerEntry,
};

function formOfColumns(columns: readonly string[]): RowForm | null {
  const has = (marks: readonly string[]): boolean => marks.every((m) => columns.includes(m));
  if (has(TABLE_MARKS)) return "query log table";
  if (isFlatManagerList(columns)) return "manager list";
  return has(CONSOLE_MARKS) ? "console list" : null;
}

/** `columns`: in lower case, where the file has such. */
function notALog(file: string, header: string, columns: readonly string[] = []): ConfigError {
  const missing = TABLE_MARKS.filter((m) => !columns.includes(m));
  if (missing.length < TABLE_MARKS.length)
    return new ConfigError(
      { file, line: 1 },
      `of a query log table there ${missing.length === 1 ? "is no column" : "are no columns"} ${missing.join(", ")}`,
      "Export all columns: select * from sys.impala_query_log.",
    );
  if (/^[^{[]*[0-9a-f]{16}:[0-9a-f]{16}/.test(header))
    return new ConfigError(
      { file, line: 1 },
      "the first line is a query already; expected are the names of the columns",
      "Export with a header: impala-shell -B --print_header.",
    );
  if (/^\+[-+]+\+\s*$/.test(header))
    return new ConfigError(
      { file, line: 1 },
      "this is impala-shell's framed table",
      "Export with: impala-shell -B --print_header --output_delimiter=, -q 'select * from sys.impala_query_log' -o log.csv",
    );
  const found = header.slice(0, 80).replace(/[^\x20-\x7e]/g, "?");
  return new ConfigError({ file, line: 1 }, `no query log begins with "${found}"`, `Expected is ${FORMS}.`);
}

async function lines(file: string, gzip: boolean, onLine: (text: string, line: number) => void): Promise<void> {
  try {
    await eachLine(file, gzip, onLine);
  } catch (e) {
    if (e instanceof Error && "code" in e && String(e.code).startsWith("Z_"))
      throw new ConfigError(
        { file, line: null },
        `the gzip data ends early or is damaged (${e.message})`,
        "Copy the file again.",
      );
    throw e;
  }
}

// JSON

/** One object a line, or one document: the Manager's, or an array of rows. */
async function readJson(file: string, head: Head, into: Gathered): Promise<LogForm> {
  const firstLine = head.text.trimStart().split(/\r?\n/, 1)[0] ?? "";
  const first = objectOf(firstLine);
  const nested = first !== null && Array.isArray(first.queries);
  if (first !== null && !nested) return readJsonLines(file, head.gzip, first, into);
  return readDocument(file, head.gzip, into);
}

function objectOf(text: string): Readonly<Record<string, unknown>> | null {
  if (!text.startsWith("{")) return null;
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return null;
  }
}

async function readJsonLines(
  file: string,
  gzip: boolean,
  first: Readonly<Record<string, unknown>>,
  into: Gathered,
): Promise<LogForm> {
  const entry = entryReader(first);
  if (entry === null) throw notALog(file, JSON.stringify(first), namesOf(first));
  into.columns(Object.keys(first), entry.form);
  await lines(file, gzip, (text, line) => {
    if (text.trim() === "") return;
    into.row(line, () => {
      const fields = objectOf(text.trim());
      if (fields === null) throw new UnreadableCell("(line)", text, "one JSON object a line");
      return entry.read(fields, line);
    });
  });
  return entry.form;
}

async function readDocument(file: string, gzip: boolean, into: Gathered): Promise<LogForm> {
  const raw = await readFile(file);
  const text = (gzip ? gunzipSync(raw) : raw).toString("utf8").replace(/^\uFEFF/, "");
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (e) {
    const line = lineOfJsonError(text, e);
    throw new ConfigError(
      { file, line },
      `broken JSON: ${e instanceof Error ? e.message : String(e)}`,
      "Export the list again.",
      {
        cause: e,
      },
    );
  }
  const isManager =
    typeof document === "object" && document !== null && "queries" in document && Array.isArray(document.queries);
  const entries: unknown = isManager ? (document as { queries: unknown[] }).queries : document;
  if (isManager) into.warn((document as { warnings?: unknown }).warnings);
  const objects = Array.isArray(entries) ? entries.filter((e) => typeof e === "object" && e !== null) : [];
  const entry = objects.length === 0 ? null : entryReader(objects[0] as Readonly<Record<string, unknown>>);
  if (entry === null) {
    if (isManager && Array.isArray(entries) && entries.length === 0)
      throw new ConfigError({ file, line: 1 }, "the list holds no queries", "Widen the time range of the export.");
    throw notALog(file, text.slice(0, 200), objects.length === 0 ? [] : namesOf(objects[0]!));
  }
  into.columns(Object.keys(objects[0] as object), entry.form);
  objects.forEach((fields, i) => {
    into.row(i + 1, () => entry.read(fields as Readonly<Record<string, unknown>>, i + 1));
  });
  into.placesAreEntries();
  return entry.form;
}

interface EntryReader {
  readonly form: LogForm;
  readonly read: (fields: Readonly<Record<string, unknown>>, line: number) => LoggedQuery;
}

const namesOf = (entry: object): string[] => Object.keys(entry).map((k) => k.toLowerCase());

/** By the fields of the first entry. */
function entryReader(first: Readonly<Record<string, unknown>>): EntryReader | null {
  const names = namesOf(first);
  if (names.includes("queryid") && names.includes("starttime") && names.includes("attributes"))
    return { form: "manager list", read: (fields, line) => queryOfManagerEntry(managerRow(fields, line)) };
  const form = formOfColumns(names);
  if (form === null) return null;
  if (form === "manager list") return { form, read: (fields, line) => queryOfManagerEntry(managerRow(fields, line)) };
  const queryOf = READERS[form];
  return { form, read: (fields, line) => queryOf(objectRow(fields, line)) };
}

function objectRow(fields: Readonly<Record<string, unknown>>, line: number): LogRow {
  return {
    line,
    cell: (column) => {
      const value = column in fields ? fields[column] : fields[column.toUpperCase()];
      return value === undefined && !(column in fields) ? byFoldedName(fields, column) : (value as Cell);
    },
  };
}

const byFoldedName = (fields: Readonly<Record<string, unknown>>, column: string): Cell =>
  Object.entries(fields).find(([name]) => name.toLowerCase() === column)?.[1] as Cell;

/** V8 names a position in some messages and a line in others, or neither. */
function lineOfJsonError(text: string, e: unknown): number | null {
  const message = e instanceof Error ? e.message : "";
  const line = /line (\d+)/.exec(message)?.[1];
  if (line !== undefined) return Number(line);
  const position = /position (\d+)/.exec(message)?.[1];
  return position === undefined ? null : text.slice(0, Number(position)).split("\n").length;
}

// Profiles

async function readProfiles(file: string, gzip: boolean, into: Gathered): Promise<LogForm> {
  let block: ProfileBlock | null = null;
  const close = (): void => {
    const done = block;
    if (done !== null) into.row(done.line, () => queryOfProfile(done));
  };
  await lines(file, gzip, (text, line) => {
    const mark = PROFILE_MARK.exec(text);
    if (mark !== null) {
      close();
      block = { line, queryId: mark[1] ?? "", lines: [] };
    } else if (block !== null) block.lines.push(text);
  });
  close();
  return "profiles";
}

// Parquet

/** What Node can decompress by itself, Zstandard from 22.15 on; hyparquet brings Snappy. */
function compressors(): Compressors {
  const zstd = "zstdDecompressSync" in zlib ? zlib.zstdDecompressSync : null;
  return {
    GZIP: (input) => gunzipSync(input),
    BROTLI: (input) => brotliDecompressSync(input),
    ...(zstd === null ? {} : { ZSTD: (input) => zstd(input) }),
  };
}

async function readParquet(file: string, into: Gathered): Promise<LogForm> {
  try {
    // Only who reads Parquet pays for loading the library.
    const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } = await import("hyparquet");
    const buffer = await asyncBufferFromFile(file);
    const metadata = await parquetMetadataAsync(buffer);
    const names = new Map(metadata.schema.slice(1).map((s) => [s.name.toLowerCase(), s.name]));
    const form = formOfColumns([...names.keys()]);
    if (form === null) throw notALog(file, [...names.keys()].join(","), [...names.keys()]);
    into.columns([...names.keys()], form);
    const wanted = form === "query log table" ? TABLE_COLUMNS : [...names.keys()];
    const columns = wanted.map((c) => names.get(c)).filter((c) => c !== undefined);
    const queryOf = READERS[form];
    let rowStart = 0;
    for (const group of metadata.row_groups) {
      const rowEnd = rowStart + Number(group.num_rows);
      const rows = await parquetReadObjects({
        file: buffer,
        metadata,
        columns,
        rowStart,
        rowEnd,
        compressors: compressors(),
        parsers: {
          // Moments as microseconds in a bigint: a Date would lose three digits.
          timestampFromMilliseconds: (ms: bigint) => ms * 1000n,
          timestampFromMicroseconds: (us: bigint) => us,
          timestampFromNanoseconds: (ns: bigint) => ns / 1000n,
        },
      });
      rows.forEach((fields, i) => {
        const line = rowStart + i + 1;
        into.row(line, () => queryOf(objectRow(fields, line)));
      });
      rowStart = rowEnd;
    }
    into.placesAreEntries();
    return form;
  } catch (e) {
    if (e instanceof ConfigError) throw e;
    const message = e instanceof Error ? e.message : String(e);
    const codec = /compression codec: (\w+)/.exec(message)?.[1];
    throw new ConfigError(
      { file, line: null },
      codec === undefined ? `broken Parquet: ${message}` : `Parquet with ${codec} compression cannot be read here`,
      codec === undefined ? "Export the file again." : remedyFor(codec),
      { cause: e },
    );
  }
}

const remedyFor = (codec: string): string =>
  `Export with Snappy, gzip or no compression${codec === "ZSTD" ? ", or run with Node 22.15 or newer" : ""}.`;

// What has been read so far

class Gathered {
  private readonly queries: LoggedQuery[] = [];
  private readonly texts = new KeptTexts();
  private readonly problems: RowProblem[] = [];
  private problemCount = 0;
  private readonly warnings: string[] = [];
  private missing: readonly string[] = [];
  private entries = false;
  private readonly file: string;
  constructor(file: string) {
    this.file = file;
  }

  row(line: number, read: () => LoggedQuery): void {
    try {
      this.queries.push(this.texts.query(read()));
    } catch (e) {
      if (!(e instanceof UnreadableCell)) throw e;
      this.problem(line, e.message);
    }
  }

  problem(line: number, problem: string): void {
    this.problemCount++;
    if (this.problems.length < SHOWN_PROBLEMS) this.problems.push({ line, problem });
  }

  columns(present: readonly string[], form: LogForm): void {
    const have = new Set(present.map((c) => c.toLowerCase()));
    this.missing = form === "query log table" ? TABLE_COLUMNS.filter((c) => !have.has(c)) : [];
  }

  warn(warnings: unknown): void {
    if (Array.isArray(warnings)) this.warnings.push(...warnings.map(String));
  }

  /** Places are numbers of rows or entries, not of lines of a text. */
  placesAreEntries(): void {
    this.entries = true;
  }

  finish(form: LogForm): QueryLog {
    const total = this.queries.length + this.problemCount;
    const first = this.problems[0];
    if (first !== undefined && (this.queries.length === 0 || this.problemCount > total * MOST_UNREADABLE)) {
      const place = this.entries ? `entry ${first.line}: ` : "";
      throw new ConfigError(
        { file: this.file, line: this.entries ? null : first.line },
        `${place}${first.problem} (${this.problemCount} of ${total} rows cannot be read)`,
        "Mend or remove these rows, or export the log again.",
      );
    }
    if (total === 0)
      throw new ConfigError(
        { file: this.file, line: null },
        "the log has a header and no rows",
        "Widen the time range of the export.",
      );
    return {
      file: this.file,
      form,
      queries: this.queries,
      unreadable: { count: this.problemCount, first: this.problems },
      warnings: this.warnings,
      missingColumns: this.missing,
    };
  }
}
