/**
 * Which queries of a log are executions of one thing: the classes of a trace (insight 4.5).
 *
 * A class is a statement fingerprint within a pool. Rare statements say little each, so they are put together
 * by what they read and how large they were thought to be. Names are made from tables, because that is what
 * the people know who will read them; statement text is never kept.
 */
import type { LoggedQuery } from "./logged-query.ts";

/** Statements with fewer executions share a class with others of the same tables and size. */
export const FEWEST_EXECUTIONS = 5;

/** Class name of each query, in the order given. Exports of our own runs name their classes themselves. */
export function classNamesOf(queries: readonly LoggedQuery[], own: boolean): string[] {
  if (own) return queries.map((q) => q.tables[0] ?? "query");
  const executions = countBy(queries, statementKey);
  const keys = queries.map((q) =>
    (executions.get(statementKey(q)) ?? 0) >= FEWEST_EXECUTIONS ? statementKey(q) : cellKey(q),
  );
  return namesOf(keys, queries.map(labelOf));
}

const statementKey = (q: LoggedQuery): string =>
  `${q.pool}\n${q.outcome === "trivially" ? "trivial" : (q.fingerprint ?? cellKey(q))}`;
const cellKey = (q: LoggedQuery): string => `${q.pool}\n${q.tables.join(",")}\n~${log2Bucket(q.estimate)}`;

/** Whole power of two at or below the value; -1: unknown or 0. */
export const log2Bucket = (n: number | null): number => (n === null || n < 1 ? -1 : Math.floor(Math.log2(n)));

function labelOf(q: LoggedQuery): string {
  if (q.outcome === "trivially") return "trivial";
  const tables = q.tables.map((t) => t.split(".").at(-1) ?? t);
  if (tables.length === 0) return (q.statementType || "query").toLowerCase();
  return tables.length <= 2 ? tables.join("+") : `${tables[0]}+${tables.length - 1}`;
}

/** The plain label where one class alone has it, else with six digits that depend on the class only. */
function namesOf(keys: readonly string[], labels: readonly string[]): string[] {
  const owner = new Map<string, string | null>();
  keys.forEach((key, i) => {
    const label = labels[i]!;
    const known = owner.get(label);
    owner.set(label, known === undefined || known === key ? key : null);
  });
  const labelOfKey = new Map<string, string>();
  keys.forEach((key, i) => {
    if (!labelOfKey.has(key)) labelOfKey.set(key, labels[i]!);
  });
  return keys.map((key) => {
    const label = labelOfKey.get(key)!;
    return owner.get(label) === key ? label : `${label}-${shortHash(key)}`;
  });
}

/** FNV-1a, 24 bits of it. */
function shortHash(text: string): string {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return ((h ^ (h >>> 24)) & 0xffffff).toString(16).padStart(6, "0");
}

function countBy<T>(items: readonly T[], key: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(key(item), (counts.get(key(item)) ?? 0) + 1);
  return counts;
}
