/**
 * What is wrong with a scenario, as a person should read it: file, line, found, expected, remedy.
 *
 * The schema says in its own terms what does not fit and where; this file finds the line and the words. The
 * words come from the published JSON Schema (known keys, allowed values, units), so that the message and
 * the documentation cannot differ.
 */
import { type Document, isMap, isNode, isPair, isScalar, type LineCounter } from "yaml";
import type { z } from "zod";
import { ConfigError, SeveralConfigErrors, type SourcePlace } from "./config-error.ts";
import { nearestName } from "./nearest-name.ts";
import type { IssueParams } from "./scenario-schema.ts";
import { scenarioJsonSchema } from "./scenario-schema.ts";
import {
  RATE_EXPECTED,
  RATE_PATTERN,
  SIZE_EXPECTED,
  SIZE_PATTERN,
  shown,
  TIME_EXPECTED,
  TIME_PATTERN,
} from "./scenario-units.ts";

export type Path = readonly PropertyKey[];

/** Knows the lines of one file's text. */
export class ScenarioSource {
  readonly file: string;
  readonly #document: Document;
  readonly #lines: LineCounter;

  constructor(file: string, document: Document, lines: LineCounter) {
    this.file = file;
    this.#document = document;
    this.#lines = lines;
  }

  /** Line of the value at `path`, or of the nearest thing around it that is written in the file. */
  lineOf(path: Path): number {
    for (let depth = path.length; depth >= 0; depth--) {
      const offset = this.#offsetOf(path.slice(0, depth));
      if (offset !== null) return this.#lines.linePos(offset).line;
    }
    return 1;
  }

  fail(path: Path, problem: string, remedy: string): never {
    throw this.error(path, problem, remedy);
  }

  error(path: Path, problem: string, remedy: string): ConfigError {
    return new ConfigError(this.placeOf(path), problem, remedy);
  }

  placeOf(path: Path): SourcePlace {
    return { file: this.file, line: this.lineOf(path) };
  }

  /** A key's own place: where a value is missing or unwanted, the key is what one looks for. */
  #offsetOf(path: Path): number | null {
    if (path.length === 0) return this.#document.contents?.range?.[0] ?? null;
    const parent = path.length === 1 ? this.#document.contents : this.#document.getIn(path.slice(0, -1), true);
    const last = path[path.length - 1];
    if (isMap(parent)) {
      const pair = parent.items.find((item) => isPair(item) && isScalar(item.key) && String(item.key.value) === last);
      return isNode(pair?.key) ? (pair.key.range?.[0] ?? null) : null;
    }
    const node = this.#document.getIn(path, true);
    return isNode(node) ? (node.range?.[0] ?? null) : null;
  }
}

/** At most this many mistakes are told at once; the first ones are usually the cause of the rest. */
const MOST_TOLD = 5;

/** All of the schema's complaints as one error; the first has the place, the others follow in its message. */
export function schemaError(source: ScenarioSource, data: unknown, issues: readonly z.core.$ZodIssue[]): ConfigError {
  const schema = scenarioJsonSchema() as SchemaNode;
  const errors = issues
    .flatMap((issue) => plainIssues(issue, []))
    .map((issue) => explained(source, schema, data, issue))
    .sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
  const [first, ...rest] = errors;
  if (first === undefined) return source.error([], "it is no scenario", "See the examples.");
  const told = rest.slice(0, MOST_TOLD - 1);
  return rest.length === 0 ? first : new SeveralConfigErrors(first, told, rest.length - told.length);
}

interface PlainIssue {
  readonly code: string;
  readonly path: Path;
  /** The one that is not known. */
  readonly key: string | null;
  readonly params: IssueParams | null;
}

/** Unions are replaced by the issues of the one branch that was meant. */
function plainIssues(issue: z.core.$ZodIssue, above: Path): PlainIssue[] {
  const path = [...above, ...issue.path];
  if (issue.code !== "invalid_union") {
    const params = issue.code === "custom" ? ((issue.params ?? null) as IssueParams | null) : null;
    const keys = issue.code === "unrecognized_keys" ? issue.keys : [null];
    return keys.map((key) => ({ code: issue.code, path, key, params }));
  }
  const meant = issue.errors.find((branch) => branch.length > 0 && !branch.some(isWrongKind));
  if (meant === undefined) return [{ code: "invalid_union", path, key: null, params: null }];
  return meant.flatMap((inner) => plainIssues(inner, path));
}

/** The branch did not even look inside: the value is of another kind altogether. */
const isWrongKind = (issue: z.core.$ZodIssue): boolean =>
  issue.path.length === 0 && ["invalid_type", "invalid_value", "invalid_union"].includes(issue.code);

function explained(source: ScenarioSource, schema: SchemaNode, data: unknown, issue: PlainIssue): ConfigError {
  const { path } = issue;
  const name = nameOf(path);
  const found = valueAt(data, path);
  const node = schemaAt(schema, path);
  if (issue.params !== null) {
    const { problem, expected, remedy } = issue.params;
    return source.error(path, `${name} ${problem}. Expected ${expected}`, remedy ?? exampleFor(path, node));
  }
  const { key } = issue;
  if (key !== null) {
    return source.error([...path, key], `unknown key "${key}" in ${whereText(path)}`, keyRemedy(key, knownKeys(node)));
  }
  const expected = expectedText(node);
  if (found === undefined)
    return source.error(
      path,
      `${name} is missing in ${whereText(path.slice(0, -1))}. Expected ${expected}`,
      exampleFor(path, node),
    );
  return source.error(path, `${name} is ${shown(found)}. Expected ${expected}`, valueRemedy(path, found, node));
}

const keyRemedy = (key: string, known: readonly string[]): string => {
  const near = nearestName(key, known);
  return near === null ? `Known keys: ${known.join(", ")}.` : `Did you mean "${near}"?`;
};

function valueRemedy(path: Path, found: unknown, node: SchemaNode | null): string {
  const allowed = allowedWords(node);
  const near = typeof found === "string" ? nearestName(found, allowed) : null;
  return near === null ? exampleFor(path, node) : `Did you mean "${near}"?`;
}

const EXAMPLES: readonly (readonly [pattern: string, example: string])[] = [
  [SIZE_PATTERN, "1.5gb"],
  [TIME_PATTERN, "30s"],
  [RATE_PATTERN, "10/s"],
];

function exampleFor(path: Path, node: SchemaNode | null): string {
  const key = lastKey(path);
  const pattern = variantsOf(node).find((v) => v.pattern !== undefined)?.pattern;
  const example = EXAMPLES.find(([p]) => p === pattern)?.[1] ?? allowedWords(node)[0] ?? numberExample(node);
  return example === undefined
    ? "See the examples and schema/scenario.schema.json for its form."
    : `Write  ${key}: ${example}`;
}

function numberExample(node: SchemaNode | null): string | undefined {
  const number = variantsOf(node).find((v) => v.type === "integer" || v.type === "number");
  if (number === undefined) return undefined;
  return String(number.default ?? Math.max(1, number.minimum ?? 1));
}

// Walking the published schema

interface SchemaNode {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly additionalProperties?: SchemaNode | boolean;
  readonly items?: SchemaNode;
  readonly prefixItems?: readonly SchemaNode[];
  readonly anyOf?: readonly SchemaNode[];
  readonly oneOf?: readonly SchemaNode[];
}

/** All alternatives of a node, unions opened. */
function variantsOf(node: SchemaNode | null): SchemaNode[] {
  if (node === null) return [];
  const inner = node.anyOf ?? node.oneOf;
  return inner === undefined ? [node] : inner.flatMap(variantsOf);
}

function schemaAt(root: SchemaNode, path: Path): SchemaNode | null {
  let nodes: SchemaNode[] = variantsOf(root);
  for (const step of path) {
    nodes = nodes.flatMap((node) => childrenAt(node, step)).flatMap(variantsOf);
  }
  return nodes.length === 0 ? null : nodes.length === 1 ? (nodes[0] ?? null) : { anyOf: nodes };
}

function childrenAt(node: SchemaNode, step: PropertyKey): SchemaNode[] {
  if (typeof step === "number") return [node.prefixItems?.[step] ?? node.items].filter((n) => n !== undefined);
  const named = node.properties?.[String(step)];
  if (named !== undefined) return [named];
  return typeof node.additionalProperties === "object" ? [node.additionalProperties] : [];
}

const knownKeys = (node: SchemaNode | null): string[] => [
  ...new Set(variantsOf(node).flatMap((v) => Object.keys(v.properties ?? {}))),
];

const allowedWords = (node: SchemaNode | null): string[] => [
  ...new Set(
    variantsOf(node)
      .flatMap((v) => v.enum ?? (v.const === undefined ? [] : [v.const]))
      .map(String),
  ),
];

function expectedText(node: SchemaNode | null): string {
  const words = allowedWords(node);
  const others = variantsOf(node).filter((v) => v.enum === undefined && v.const === undefined);
  const texts = [
    ...(words.length > 0 ? [words.length === 1 ? `${words[0]}` : `one of ${words.join(", ")}`] : []),
    ...others.map(formText),
  ];
  return [...new Set(texts)].join(", or ") || "nothing there";
}

function formText(node: SchemaNode): string {
  if (node.pattern === SIZE_PATTERN) return SIZE_EXPECTED;
  if (node.pattern === TIME_PATTERN) return TIME_EXPECTED;
  if (node.pattern === RATE_PATTERN) return RATE_EXPECTED;
  switch (node.type) {
    case "integer":
      return `a whole number${rangeText(node)}`;
    case "number":
      return `a number${rangeText(node)}`;
    case "string":
      return "a text";
    case "boolean":
      return "true or false";
    case "array":
      return node.minItems === undefined ? "a list" : `a list of at least ${node.minItems}`;
    case "object": {
      const keys = Object.keys(node.properties ?? {});
      return keys.length === 0 ? "a block of names" : `a block with ${keys.join(", ")}`;
    }
    default:
      return "something else";
  }
}

function rangeText(node: SchemaNode): string {
  const least =
    node.exclusiveMinimum !== undefined
      ? ` above ${node.exclusiveMinimum}`
      : node.minimum !== undefined
        ? ` from ${node.minimum}`
        : "";
  const most = node.maximum !== undefined && node.maximum < Number.MAX_SAFE_INTEGER ? ` up to ${node.maximum}` : "";
  return `${least}${most}`;
}

// Names of places

/** `queries.tile.estimate`, `executors[0].count`: enough of the path to be found, with the line beside it. */
export function whereText(path: Path): string {
  if (path.length === 0) return "the scenario";
  return path
    .map((step, i) => (typeof step === "number" ? `[${step}]` : i === 0 ? String(step) : `.${String(step)}`))
    .join("");
}

function nameOf(path: Path): string {
  const last = path[path.length - 1];
  if (last === undefined) return "the scenario";
  return typeof last === "number" ? whereText(path) : String(last);
}

const lastKey = (path: Path): string => String(path.findLast((step) => typeof step !== "number") ?? "");

function valueAt(data: unknown, path: Path): unknown {
  let value: unknown = data;
  for (const step of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<PropertyKey, unknown>)[step];
  }
  return value;
}
