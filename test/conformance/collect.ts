/**
 * Finds what can be run in a folder laid out like `shared/conformance` and hands it over in one shape.
 *
 * Known by their form, not by their names: a JSON file with `vectors` is a family, a JSON list of cases with
 * `events` holds field cases, a folder below with an `expected.json` is a real-world XML case. Everything else
 * in the folder is left alone.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Vector } from "./family.ts";

export interface Collected {
  readonly vector: Vector;
  readonly dir: string;
}

/** The folder can't be used at all; the text says what was looked for and what to do. */
export class BadFolder extends Error {
  override readonly name = "BadFolder";
}

const SCHEMA_VERSION = 1;

export function collect(dir: string): Collected[] {
  if (!existsSync(dir) || !statSync(dir).isDirectory())
    throw new BadFolder(`${dir}: no such folder. Give the folder of the vectors with --dir DIR.`);
  const found = [...jsonFiles(dir).flatMap((file) => fromJson(dir, file)), ...xmlCases(dir)];
  if (found.length === 0)
    throw new BadFolder(
      `${dir}: no vectors, field cases or XML cases in it. Expected *.json files with "vectors", a list of field cases, or folders with an expected.json.`,
    );
  const seen = new Set<string>();
  for (const { vector } of found) {
    const key = `${vector.family} ${vector.id}`;
    if (seen.has(key))
      throw new BadFolder(`${dir}: ${vector.id} occurs twice in ${vector.family}. Ids must be unique.`);
    seen.add(key);
  }
  return found;
}

const jsonFiles = (dir: string): string[] =>
  readdirSync(dir)
    .filter((name) => name.endsWith(".json") && name !== "expected.json")
    .sort();

function fromJson(dir: string, name: string): Collected[] {
  const path = join(dir, name);
  const content = readJson(path);
  if (Array.isArray(content)) return content.every(isFieldCase) ? content.map((c) => ({ vector: ofCase(c), dir })) : [];
  if (!isRecord(content) || !Array.isArray(content.vectors)) return [];
  if (content.schema_version !== SCHEMA_VERSION)
    throw new BadFolder(
      `${path}: schema_version is ${String(content.schema_version)}, this runner reads ${SCHEMA_VERSION}.`,
    );
  const family = content.family;
  if (typeof family !== "string") throw new BadFolder(`${path}: no "family" given. Expected the family's name.`);
  return content.vectors.map((v: unknown, i) => {
    if (!isRecord(v) || typeof v.id !== "string" || !("input" in v) || !("expected" in v))
      throw new BadFolder(`${path}: vector ${i + 1} lacks "id", "input" or "expected".`);
    const vector = {
      id: v.id,
      family,
      description: String(v.description ?? ""),
      input: v.input,
      expected: v.expected,
    };
    return { vector, dir };
  });
}

function xmlCases(dir: string): Collected[] {
  return readdirSync(dir, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith("expected.json"))
    .sort()
    .map((path) => {
      const file = join(dir, path);
      const expected = readJson(file);
      if (!isRecord(expected) || typeof expected.case !== "string")
        throw new BadFolder(`${file}: no "case" given. Expected the name of the case.`);
      const vector: Vector = {
        id: expected.case,
        family: "field-xml",
        description: String(expected.quirks ?? ""),
        input: {},
        expected,
      };
      return { vector, dir: dirname(file) };
    });
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new BadFolder(`${path}: not readable as JSON (${cause instanceof Error ? cause.message : String(cause)}).`);
  }
}

const isRecord = (v: unknown): v is Record<string, unknown> => typeof v === "object" && v !== null && !Array.isArray(v);

const isFieldCase = (v: unknown): v is Record<string, unknown> =>
  isRecord(v) && typeof v.id === "string" && Array.isArray(v.events) && isRecord(v.expected);

function ofCase(c: Record<string, unknown>): Vector {
  const { expected, id, title, ...input } = c;
  return { id: String(id), family: "field-cases", description: String(title ?? ""), input, expected };
}
