/**
 * A table of users and their groups, primary group first: YAML or JSON, `ana: [analysts, staff]` or `ana: analysts,staff`.
 */
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { ConfigError, fileMissing } from "./config-error.ts";

const SHAPE = "Write one line for each user: ana: [analysts, staff]";

/** Throws ConfigError. */
export function readGroupsFile(path: string): Readonly<Record<string, readonly string[]>> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw fileMissing(path, "table of groups", cause);
  }
  return parseGroups(text, path);
}

export function parseGroups(text: string, file: string): Readonly<Record<string, readonly string[]>> {
  let table: unknown;
  try {
    table = parse(text);
  } catch (cause) {
    const line = cause instanceof Error && "linePos" in cause ? firstLine(cause.linePos) : null;
    throw new ConfigError({ file, line }, "the table of groups is not readable as YAML", SHAPE, { cause });
  }
  if (typeof table !== "object" || table === null || Array.isArray(table))
    throw new ConfigError({ file, line: 1 }, "the table of groups is no table", SHAPE);
  return Object.fromEntries(Object.entries(table).map(([user, groups]) => [user, groupsIn(groups, user, file)]));
}

const firstLine = (positions: unknown): number | null =>
  Array.isArray(positions) && typeof positions[0]?.line === "number" ? positions[0].line : null;

function groupsIn(groups: unknown, user: string, file: string): readonly string[] {
  const list = typeof groups === "string" ? splitNames(groups) : groups === null ? [] : groups;
  if (Array.isArray(list) && list.every((group) => typeof group === "string")) return list;
  throw new ConfigError({ file, line: null }, `the groups of ${user} are no list of names`, SHAPE);
}

export const splitNames = (text: string): readonly string[] =>
  text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
