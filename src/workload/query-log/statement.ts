/**
 * What kind of statement a text is: the fingerprint under which its executions form a class (insight 4.5).
 *
 * Two executions of one report differ in dates, ids and the length of an IN list, and nothing else; so those
 * become one mark, comments and layout go, case is folded. Names stay: a query on another table is another
 * class. The text itself never leaves this file, only its hash does.
 */
import { createHash } from "node:crypto";

/** 12 hex digits; null for an empty text. */
export function fingerprintOf(sql: string): string | null {
  const normal = normalStatement(sql);
  return normal === "" ? null : createHash("sha256").update(normal).digest("hex").slice(0, 12);
}

/** Exported for its tests only: what is hashed. */
export function normalStatement(sql: string): string {
  const marked = tokens(sql).join(" ");
  // Lists of one mark or many are the same list; rows of VALUES too.
  return marked
    .replace(/\(\s*\?(?:\s*,\s*\?)*\s*\)/g, "(?)")
    .replace(/\(\?\)(?:\s*,\s*\(\?\))+/g, "(?)")
    .replace(/\s*;\s*$/, "");
}

const WORD_START = /[A-Za-z_\u0080-\uffff]/;
const WORD = /[A-Za-z0-9_$\u0080-\uffff]/;

function tokens(sql: string): string[] {
  const out: string[] = [];
  let i = 0;
  while (i < sql.length) {
    const c = sql[i]!;
    const next = sql[i + 1];
    if (c === "-" && next === "-") i = endOf(sql, "\n", i + 2);
    else if (c === "/" && next === "*") i = endOf(sql, "*/", i + 2);
    else if (/\s/.test(c)) i++;
    else if (c === "'" || c === '"') {
      i = endOfQuoted(sql, c, i + 1);
      out.push("?");
    } else if (c === "`") {
      const end = endOf(sql, "`", i + 1);
      out.push(sql.slice(i + 1, end - 1).toLowerCase());
      i = end;
    } else if (/\d/.test(c) || (c === "." && next !== undefined && /\d/.test(next) && !endsInName(out))) {
      i = endOfNumber(sql, i);
      out.push("?");
    } else if (WORD_START.test(c)) {
      let end = i + 1;
      while (end < sql.length && WORD.test(sql[end]!)) end++;
      out.push(sql.slice(i, end).toLowerCase());
      i = end;
    } else {
      out.push(c);
      i++;
    }
  }
  return out;
}

/** `a.1` cannot be, but `t . 5` after a name is a qualified name in the making, not a number. */
const endsInName = (out: readonly string[]): boolean => WORD.test(out.at(-1)?.at(-1) ?? " ") && out.at(-1) !== "?";

function endOf(sql: string, mark: string, from: number): number {
  const at = sql.indexOf(mark, from);
  return at < 0 ? sql.length : at + mark.length;
}

function endOfQuoted(sql: string, quote: string, from: number): number {
  let i = from;
  while (i < sql.length) {
    if (sql[i] === "\\") i += 2;
    else if (sql[i] === quote && sql[i + 1] === quote) i += 2;
    else if (sql[i] === quote) return i + 1;
    else i++;
  }
  return sql.length;
}

function endOfNumber(sql: string, from: number): number {
  const m = /^(?:0x[0-9a-f]+|\d*\.?\d*(?:e[+-]?\d+)?)/i.exec(sql.slice(from, from + 64));
  let end = from + Math.max(m?.[0].length ?? 1, 1);
  // Impala allows names that begin with digits (`2024_sales`): a mark, like the number they begin with.
  while (end < sql.length && WORD.test(sql[end]!)) end++;
  return end;
}

/** `db.t1, db.t2` -> sorted names without duplicates. */
export function tablesOf(list: string | null): readonly string[] {
  if (list === null) return NO_TABLES;
  const names = list
    .split(",")
    .map((t) => t.trim().toLowerCase())
    .filter((t) => t !== "");
  return [...new Set(names)].sort();
}

const NO_TABLES: readonly string[] = [];

/** In these `from` names no table: `extract(year from sold)`. */
const FUNCTIONS_WITH_FROM = new Set(["extract", "trim", "substring", "overlay"]);

/**
 * Tables after FROM and JOIN, for logs that have no list of them: good enough for advice, which people read. Names
 * that the statement makes itself (WITH) are none; names without a database are those of `database`.
 */
export function tablesRead(sql: string | null, database: string | null): readonly string[] {
  if (sql === null) return NO_TABLES;
  const words = tokens(sql);
  const made = new Set(words.filter((_, i) => words[i + 1] === "as" && words[i + 2] === "("));
  const found = new Set<string>();
  const opened: string[] = [];
  words.forEach((word, i) => {
    if (word === "(") opened.push(words[i - 1] ?? "");
    else if (word === ")") opened.pop();
    if (word !== "join" && (word !== "from" || FUNCTIONS_WITH_FROM.has(opened.at(-1) ?? ""))) return;
    const name = qualifiedName(words, i + 1);
    if (name === null || made.has(name)) return;
    found.add(name.includes(".") || database === null ? name : `${database.toLowerCase()}.${name}`);
  });
  return [...found].sort();
}

/** `db . table`; null where a subquery or a value stands. */
function qualifiedName(words: readonly string[], at: number): string | null {
  const parts: string[] = [];
  for (let i = at; WORD.test(words[i]?.[0] ?? " "); i += 2) {
    parts.push(words[i]!);
    if (words[i + 1] !== ".") break;
  }
  return parts.length === 0 ? null : parts.join(".");
}

/** Names under the plan's warning of missing or corrupt statistics; null when the plan isn't there to ask. */
export function tablesWithoutStats(plan: string | null): readonly string[] | null {
  if (plan === null) return null;
  const found: string[] = [];
  const warning =
    /WARNING: The following tables (?:are missing relevant table and\/or column statistics|have potentially corrupt table statistics)[^\n]*\n([^\n]+)/g;
  for (const [, names] of plan.matchAll(warning)) found.push(...tablesOf(names ?? null));
  return [...new Set(found)].sort();
}

/** `Max Per-Host Resource Reservation: Memory=15.94MB` -> its size text; null when the plan has no such line. */
export function reservationText(plan: string | null): string | null {
  return plan === null
    ? null
    : (/Max Per-Host Resource Reservation: Memory=([\d.]+\s*[KMGT]?B)/.exec(plan)?.[1] ?? null);
}
