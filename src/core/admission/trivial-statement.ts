/**
 * Whether the planner would mark a statement as trivial (admission 5.3), seen from its text.
 *
 * The product decides on the plan: one node that is an empty set, or a union of at most one constant row.
 * From the text alone that is a SELECT without tables, one cut off by LIMIT 0, a view over such a one, or a
 * union of them with at most one row, and nowhere a call of `sleep`. What isn't plainly one of these is not
 * trivial, which is the safe side.
 */

/** What a query yields: nothing, one constant row, or something that needs work. */
type Yield = "empty" | "row" | "work";

export function isTrivialStatement(sql: string, isEnabled = true): boolean {
  if (!isEnabled) return false;
  const tokens = tokensOf(sql);
  if (tokens.at(-1) === ";") tokens.pop();
  if (tokens.some((t, i) => t === "sleep" && tokens[i + 1] === "(")) return false;
  return yieldOf(tokens) !== "work";
}

/** Lower case; strings, numbers, names and single marks; comments left out. */
function tokensOf(sql: string): string[] {
  const bare = sql.replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, " ");
  const found = bare.match(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|[a-z_][a-z0-9_]*|\d+(?:\.\d+)?|\S/gi) ?? [];
  return found.map((t) => t.toLowerCase());
}

function yieldOf(tokens: readonly string[]): Yield {
  const branches = unionBranches(tokens);
  if (branches.length === 1) return yieldOfSelect(tokens);
  // A LIMIT after the last branch is the whole union's.
  if (endsInLimitZero(tokens)) return "empty";
  const yields = branches.map(yieldOf);
  if (yields.includes("work")) return "work";
  const rows = yields.filter((y) => y === "row").length;
  return rows > 1 ? "work" : rows === 1 ? "row" : "empty";
}

function yieldOfSelect(tokens: readonly string[]): Yield {
  const inner = withoutParentheses(tokens);
  if (inner !== null) return yieldOf(inner);
  if (tokens[0] !== "select") return "work";
  if (endsInLimitZero(tokens)) return "empty";
  const from = topLevelIndex(tokens, "from");
  if (from < 0) return tokens.length > 1 ? "row" : "work";
  return yieldOfView(tokens.slice(1, from), tokens.slice(from + 1));
}

/** `SELECT names FROM (query) alias`: as much as the query in it. */
function yieldOfView(list: readonly string[], source: readonly string[]): Yield {
  const close = source[0] === "(" ? closingOf(source, 0) : -1;
  const alias = source.slice(close + 1).filter((t) => t !== "as");
  const isPlainList = list.every((t) => /^[a-z_`][a-z0-9_`]*$|^[,.*]$/.test(t));
  return close > 0 && alias.length === 1 && isPlainList ? yieldOf(source.slice(1, close)) : "work";
}

function endsInLimitZero(tokens: readonly string[]): boolean {
  return tokens.at(-2) === "limit" && tokens.at(-1) === "0";
}

function unionBranches(tokens: readonly string[]): (readonly string[])[] {
  const at = topLevelIndex(tokens, "union");
  if (at < 0) return [tokens];
  const next = ["all", "distinct"].includes(tokens[at + 1] ?? "") ? at + 2 : at + 1;
  return [tokens.slice(0, at), ...unionBranches(tokens.slice(next))];
}

function withoutParentheses(tokens: readonly string[]): readonly string[] | null {
  return tokens[0] === "(" && closingOf(tokens, 0) === tokens.length - 1 ? tokens.slice(1, -1) : null;
}

/** First occurrence outside parentheses, -1: none. */
function topLevelIndex(tokens: readonly string[], word: string): number {
  let depth = 0;
  return tokens.findIndex((t) => {
    if (t === "(") depth++;
    if (t === ")") depth--;
    return depth === 0 && t === word;
  });
}

function closingOf(tokens: readonly string[], open: number): number {
  let depth = 0;
  return tokens.findIndex((t, i) => {
    if (i < open) return false;
    if (t === "(") depth++;
    if (t === ")") depth--;
    return depth === 0;
  });
}
