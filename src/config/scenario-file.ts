/**
 * Reads a scenario file: text, YAML (JSON is a part of it), schema, record. Every way in which a file can be
 * wrong ends in a ConfigError that names file, line, what was found, what was expected and what to do.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, extname, resolve } from "node:path";
import { LineCounter, parseDocument, type YAMLError } from "yaml";
import { ConfigError, fileMissing } from "./config-error.ts";
import type { Scenario } from "./scenario.ts";
import { buildScenario } from "./scenario-build.ts";
import { type Path, ScenarioSource, schemaError } from "./scenario-issues.ts";
import { SCENARIO_SCHEMA } from "./scenario-schema.ts";

/** A scenario is a page or two; garbage and misplaced logs are refused before anything tries to parse them. */
const MOST_BYTES = 1024 * 1024;

/** Throws ConfigError. Files that the scenario names are not read here, except that their paths are made absolute. */
export function readScenario(path: string): Scenario {
  const file = resolve(path);
  return parseScenario(readText(path, file), file, path);
}

/** `shownAs` is how messages call the file: the way the person wrote it. */
export function parseScenario(text: string, file: string, shownAs: string = file): Scenario {
  const { source, document } = sourceOf(text, shownAs);
  const data: unknown = plainValue(document, shownAs);
  if (typeof data !== "object" || data === null || Array.isArray(data))
    source.fail(
      [],
      "this is no scenario. Expected keys such as cluster, queries and arrivals",
      "See examples/dashboards/scenario.yaml.",
    );
  const checked = SCENARIO_SCHEMA.safeParse(data);
  if (!checked.success) throw schemaError(source, data, checked.error.issues);
  const scenario = buildScenario(checked.data, { source, base: dirname(file), defaultName: nameOf(file) });
  return { ...scenario, file };
}

/**
 * A mistake that shows itself only later, beside other files, with its line in the scenario. The file is read again
 * for it; a scenario that was only a text has no line.
 */
export function scenarioError(file: string, shownAs: string, path: Path, problem: string, remedy: string): ConfigError {
  const source = existsSync(file) ? sourceOf(readText(shownAs, file), shownAs).source : null;
  return source?.error(path, problem, remedy) ?? new ConfigError({ file: shownAs, line: null }, problem, remedy);
}

function sourceOf(text: string, shownAs: string) {
  const lines = new LineCounter();
  const document = parseYaml(text, lines, shownAs);
  return { document, source: new ScenarioSource(shownAs, document, lines) };
}

function readText(shownAs: string, file: string): string {
  const problem = (what: string, remedy: string) => new ConfigError({ file: shownAs, line: null }, what, remedy);
  let bytes: Buffer;
  try {
    const { size } = statSync(file);
    if (size > MOST_BYTES)
      throw problem(
        `the file has ${(size / 1024 / 1024).toFixed(1)} MB. Expected a scenario, at most 1 MB`,
        "Put recorded requests into a file of their own and name it with  trace:",
      );
    bytes = readFileSync(file);
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw fileMissing(shownAs, "scenario", cause);
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
  }
  throw problem("the file is not text. Expected YAML or JSON in UTF-8", "Check the path.");
}

/** Opened one inside the other, which the parser would follow for seconds. */
const TOO_MANY_BRACKETS = /(?:[[{]\s*){64}/;

/** What other commands write and read; to a YAML parser it is a first document with rubbish after it. */
const OURS: readonly { readonly begins: RegExp; readonly is: string; readonly remedy: string }[] = [
  {
    begins: /^\{"kind":"header","format":"waterhole-records"/,
    is: "the records of a run",
    remedy: "Give the scenario that it was a run of; records are for  waterhole explain, replay and compare",
  },
  {
    begins: /^\{"format":"waterhole-trace"/,
    is: "a trace",
    remedy: "Give a scenario that names it:  arrivals: [{ trace: FILE }]",
  },
];

function parseYaml(text: string, lineCounter: LineCounter, file: string) {
  const ours = OURS.find(({ begins }) => begins.test(text));
  if (ours !== undefined)
    throw new ConfigError({ file, line: 1 }, `this is ${ours.is}. Expected a scenario`, ours.remedy);
  if (TOO_MANY_BRACKETS.test(text))
    throw new ConfigError({ file, line: 1 }, "the file is nested too deeply to be a scenario", "Check the path.");
  try {
    const document = parseDocument(text, {
      lineCounter,
      prettyErrors: false,
      merge: true,
      uniqueKeys: true,
      stringKeys: true,
    });
    const [error] = document.errors;
    if (error !== undefined) throw yamlError(error, lineCounter, file);
    return document;
  } catch (cause) {
    // Deep nesting of another kind exhausts the parser's stack.
    if (cause instanceof RangeError)
      throw new ConfigError({ file, line: 1 }, "the file is nested too deeply to be a scenario", "Check the path.", {
        cause,
      });
    throw cause;
  }
}

function yamlError(error: YAMLError, lines: LineCounter, file: string): ConfigError {
  const { line, col } = lines.linePos(error.pos[0]);
  if (error.code === "MULTIPLE_DOCS")
    return new ConfigError(
      { file, line, column: col },
      "a second YAML document begins here. Expected one scenario in a file",
      "Take out the line  ---  or write a file for each.",
    );
  const text = error.message.split("\n")[0]?.trim() ?? error.code;
  return new ConfigError({ file, line, column: col }, `this is no YAML: ${text}`, yamlRemedy(error.code));
}

function yamlRemedy(code: string): string {
  if (code === "DUPLICATE_KEY") return "Keep one of them.";
  if (code === "TAB_AS_INDENT") return "Indent with blanks.";
  return "Check indentation, colons and quotes there.";
}

function plainValue(document: ReturnType<typeof parseYaml>, file: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch (cause) {
    const what = cause instanceof Error ? cause.message : String(cause);
    throw new ConfigError(
      { file, line: 1 },
      `the file cannot be read as plain values: ${what}`,
      "Write values out instead of using aliases.",
      { cause },
    );
  }
}

/** `scenario.yaml` is called after its folder, any other file after itself. */
function nameOf(file: string): string {
  const own = basename(file, extname(file));
  return own === "scenario" ? basename(dirname(file)) : own;
}
