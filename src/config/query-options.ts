/**
 * Query options: one piece, an option string, and which of several sources has its way (pool-configuration 2.5,
 * admission 1.2).
 *
 * From weak to strong: process defaults, the pool's default options, what the connection set, what came with the
 * statement. Two things surprise. A bad piece of an option string is dropped and the others apply. And an option
 * set to the empty text is not "empty" but "not set here", so the next weaker source shows through.
 *
 * Values are kept in the product's printed form: bytes without unit, `1` and `0`, enum names.
 */
import { parseInt32, parseInt64 } from "./java-text.ts";
import { parseMemorySpec } from "./memory-spec.ts";
import {
  BOOLEAN_OPTIONS,
  DECIMAL_OPTIONS,
  ENUM_OPTIONS,
  FORBIDDEN_VALUES,
  INT32_OPTIONS,
  INT64_OPTIONS,
  MEMORY_OPTIONS,
  POWER_OF_TWO_OPTIONS,
  REMOVED_OPTIONS,
  TEXT_OPTIONS,
} from "./query-option-table.ts";

/** Name in capitals -> printed value; only what is set. */
export type QueryOptions = ReadonlyMap<string, string>;

export type OptionChange =
  | { readonly kind: "set"; readonly name: string; readonly value: string }
  | { readonly kind: "reset"; readonly name: string }
  /** A name of old that is accepted and has no effect. */
  | { readonly kind: "removed"; readonly name: string }
  | { readonly kind: "error"; readonly message: string };

/** One option as a client or a pool writes it. Names ignore case and are not trimmed. */
export function readOption(name: string, value: string): OptionChange {
  const key = name.toUpperCase();
  const type = OPTIONS.get(key);
  if (type === undefined) return { kind: "error", message: `Invalid query option: ${name}` };
  if (value === "") return { kind: "reset", name: key };
  if (type.kind === "removed") return { kind: "removed", name: key };
  const read = readValue(key, type, value);
  return typeof read === "string" ? { kind: "set", name: key, value: read } : { kind: "error", message: read.error };
}

export const isQueryOption = (name: string): boolean => OPTIONS.has(name.toUpperCase());
/** Takes sizes. */
export const isMemoryOption = (name: string): boolean => OPTIONS.get(name.toUpperCase())?.kind === "memory";
export const queryOptionNames = (): Iterable<string> => OPTIONS.keys();

// --- option strings -------------------------------------------------------------------------------------

export interface OptionString {
  readonly options: QueryOptions;
  readonly removed: readonly string[];
  /** In order of the pieces, word for word; each has cost its own piece only. */
  readonly errors: readonly string[];
  /** Every piece with what became of it. */
  readonly pieces: readonly { readonly text: string; readonly change: OptionChange }[];
}

export function parseOptionString(text: string): OptionString {
  const options = new Map<string, string>();
  const removed: string[] = [];
  const errors: string[] = [];
  const pieces = splitPieces(text).map((piece) => ({ text: piece, change: readPiece(piece) }));
  for (const { change } of pieces) {
    if (change.kind === "set") options.set(change.name, change.value);
    else if (change.kind === "reset") options.delete(change.name);
    else if (change.kind === "removed") removed.push(change.name);
    else errors.push(change.message);
  }
  return { options, removed, errors, pieces };
}

/** At commas outside double quotes; a quote stays in the text. Blank pieces are dropped. */
function splitPieces(text: string): readonly string[] {
  const pieces: string[] = [];
  let quoted = false;
  let start = 0;
  for (let i = 0; i <= text.length; i++) {
    if (text[i] === '"') quoted = !quoted;
    if (i < text.length && (text[i] !== "," || quoted)) continue;
    pieces.push(text.slice(start, i).trim());
    start = i + 1;
  }
  return pieces.filter((piece) => piece !== "");
}

/** A run of `=` counts as one; it must leave exactly two parts. */
function readPiece(piece: string): OptionChange {
  const [name, value, more] = piece.split(/=+/);
  if (name === undefined || value === undefined || more !== undefined)
    return { kind: "error", message: `Invalid configuration option '${piece}'.` };
  return readOption(name, value);
}

// --- sources --------------------------------------------------------------------------------------------

export interface OptionSources {
  /** `--default_query_options`. */
  readonly processDefaults: string;
  /** The pool's default options. */
  readonly pool: string;
  /** In the order in which they were set, those of the opening of the connection first. */
  readonly connection: readonly (readonly [name: string, value: string])[];
  readonly statement: readonly (readonly [name: string, value: string])[];
  /** The pool's cap; negative for none. */
  readonly maxMtDop: number;
}

export interface EffectiveOptions {
  readonly options: QueryOptions;
  /** Bad pieces of the pool's string, which are only logged. */
  readonly poolErrors: readonly string[];
  /** Errors of what the client set: those fail its statement. */
  readonly clientErrors: readonly string[];
  /** MT_DOP before the pool's cap lowered it, null when it did not (2.5). */
  readonly overriddenMtDop: number | null;
}

export function effectiveOptions(sources: OptionSources): EffectiveOptions {
  const clientErrors: string[] = [];
  const pool = parseOptionString(sources.pool);
  const options = new Map([
    ...parseOptionString(sources.processDefaults).options,
    ...pool.options,
    // The opening and later SETs fill one set: emptying an option forgets both.
    ...setByClient(sources.connection, clientErrors),
    ...setByClient(sources.statement, clientErrors),
  ]);
  const overriddenMtDop = capMtDop(options, sources.maxMtDop);
  return { options, poolErrors: [...pool.errors, ...spoolingErrors(pool.options)], clientErrors, overriddenMtDop };
}

function setByClient(written: OptionSources["connection"], errors: string[]): QueryOptions {
  const options = new Map<string, string>();
  for (const [name, value] of written) {
    const change = readOption(name, value);
    if (change.kind === "set") options.set(change.name, change.value);
    else if (change.kind === "reset") options.delete(change.name);
    else if (change.kind === "error") errors.push(change.message);
  }
  return options;
}

/** An unset MT_DOP is left alone. */
function capMtDop(options: Map<string, string>, cap: number): number | null {
  const written = options.get("MT_DOP");
  if (cap < 0 || written === undefined || Number(written) <= cap) return null;
  options.set("MT_DOP", String(cap));
  return Number(written);
}

const DEFAULT_SPOOLING_MEM = 100 * 1024 * 1024;
const DEFAULT_SPILLED_SPOOLING_MEM = 1024 * 1024 * 1024;

/** The one consistency check of the product; it looks at the pool's options alone. */
function spoolingErrors(options: QueryOptions): readonly string[] {
  const memory = Number(options.get("MAX_RESULT_SPOOLING_MEM") ?? DEFAULT_SPOOLING_MEM);
  const spilled = Number(options.get("MAX_SPILLED_RESULT_SPOOLING_MEM") ?? DEFAULT_SPILLED_SPOOLING_MEM);
  if (memory === 0 && spilled !== 0)
    return [
      "If max_result_spooling_mem is set to 0 (unbounded) max_spilled_result_spooling_mem must be set to 0 (unbounded) as well.",
    ];
  return spilled !== 0 && spilled < memory
    ? [`max_spilled_result_spooling_mem '${spilled}' must be greater than max_result_spooling_mem '${memory}'`]
    : [];
}

// --- values ---------------------------------------------------------------------------------------------

interface Range {
  readonly low: number;
  readonly high: number;
  readonly lowAllowed: boolean;
  readonly highAllowed: boolean;
}

type OptionType =
  | { readonly kind: "boolean" | "text" | "removed" }
  | { readonly kind: "int32" | "int64" | "decimal" | "memory"; readonly range: Range | null }
  | { readonly kind: "enum"; readonly what: string; readonly values: readonly (readonly [number, string])[] };

const OPTIONS: ReadonlyMap<string, OptionType> = new Map<string, OptionType>([
  ...BOOLEAN_OPTIONS.map((name) => [name, { kind: "boolean" }] as const),
  ...TEXT_OPTIONS.map((name) => [name, { kind: "text" }] as const),
  ...REMOVED_OPTIONS.map((name) => [name, { kind: "removed" }] as const),
  ...INT32_OPTIONS.map((entry) => ranged("int32", entry)),
  ...INT64_OPTIONS.map((entry) => ranged("int64", entry)),
  ...DECIMAL_OPTIONS.map((entry) => ranged("decimal", entry)),
  ...MEMORY_OPTIONS.map((entry) => ranged("memory", entry)),
  ...ENUM_OPTIONS.map(({ name, what, values }) => [name, { kind: "enum", what, values: numbered(values) }] as const),
]);

function ranged(kind: "int32" | "int64" | "decimal" | "memory", entry: string): readonly [string, OptionType] {
  const [name = "", text] = entry.split(":");
  const [, above, low = "", below, high = ""] = /^(>?)(-?[0-9.]+?)\.\.(<?)([0-9]*)$/.exec(text ?? "") ?? [];
  if (above === undefined) return [name, { kind, range: null }];
  return [
    name,
    {
      kind,
      range: {
        low: Number(low),
        high: high === "" ? Number.POSITIVE_INFINITY : Number(high),
        lowAllowed: above === "",
        highAllowed: below === "",
      },
    },
  ];
}

function numbered(values: readonly string[]): readonly (readonly [number, string])[] {
  return values.map((value, i) => {
    const [name = "", number] = value.split(":");
    return [number === undefined ? i : Number(number), name] as const;
  });
}

type ReadValue = string | { readonly error: string };

function readValue(name: string, type: Exclude<OptionType, { kind: "removed" }>, text: string): ReadValue {
  switch (type.kind) {
    case "boolean":
      return /^(true|1)$/i.test(text) ? "1" : "0";
    case "enum":
      return readEnum(type.what, type.values, text);
    case "int32":
    case "int64":
      return inRange(name, type, text, readInteger(type.kind, text));
    case "decimal":
      return inRange(name, type, text, readDecimal(text));
    case "memory":
      return readMemory(name, type, text);
    default:
      return text;
  }
}

/** Name or number. */
function readEnum(what: string, values: readonly (readonly [number, string])[], text: string): ReadValue {
  const found = values.find(([number, name]) => text === String(number) || text.toUpperCase() === name.toUpperCase());
  if (found !== undefined) return found[1];
  const valid = values.map(([number, name]) => `${name}(${number})`).join(", ");
  return { error: `Invalid ${what}: '${text}'. Valid values are ${valid}.` };
}

/** Blanks around a number are harmless. */
function readInteger(kind: "int32" | "int64", text: string): number | null {
  const trimmed = text.trim();
  if (!/^[\x20-\x7e]*$/.test(trimmed)) return null;
  const value = kind === "int32" ? parseInt32(trimmed) : parseInt64(trimmed);
  return value === null ? null : Number(value);
}

function readDecimal(text: string): number | null {
  const trimmed = text.trim();
  return /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/i.test(trimmed) ? Number(trimmed) : null;
}

function readMemory(name: string, type: { readonly range: Range | null }, text: string): ReadValue {
  if (name === "SCRATCH_LIMIT" && text === "-1") return "-1";
  const spec = parseMemorySpec(text);
  const bytes = spec?.kind === "bytes" ? spec.bytes : null;
  if (bytes !== null && POWER_OF_TWO_OPTIONS.includes(name) && !isPowerOfTwo(bytes))
    return { error: `Invalid value for query option ${name}: Value must be a power of two: ${bytes}` };
  return inRange(name, type, text, bytes);
}

const isPowerOfTwo = (n: number): boolean => Number.isInteger(Math.log2(n)) || n === 0;

function inRange(
  name: string,
  { range }: { readonly range: Range | null },
  text: string,
  value: number | null,
): ReadValue {
  if (value === null) return { error: `Failed to parse query option '${name}': ${text}` };
  const complaint = (range === null ? null : rangeComplaint(range, value)) ?? forbidden(name, value);
  return complaint === null ? printed(name, value) : { error: `Invalid value for query option ${name}: ${complaint}` };
}

function rangeComplaint({ low, high, lowAllowed, highAllowed }: Range, value: number): string | null {
  const tooLow = value < low || (value === low && !lowAllowed);
  const tooHigh = value > high || (value === high && !highAllowed);
  if (high !== Number.POSITIVE_INFINITY && (tooLow || tooHigh))
    return `${value} is not in range ${lowAllowed ? "[" : "("}${low}, ${high}${highAllowed ? "]" : ")"}`;
  if (!tooLow) return null;
  if (low === 0 && lowAllowed) return `Value must be non-negative: ${value}`;
  return `Value must be greater than ${lowAllowed ? "or equal to " : ""}${low}, actual value: ${value}`;
}

const forbidden = (name: string, value: number): string | null =>
  FORBIDDEN_VALUES[name] === value ? `Value can't be ${value}, actual value: ${value}` : null;

const DECIMALS = new Set(DECIMAL_OPTIONS.map((entry) => entry.split(":")[0]));

const printed = (name: string, value: number): string => (DECIMALS.has(name) ? value.toFixed(6) : String(value));
