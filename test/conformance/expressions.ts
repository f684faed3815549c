/**
 * Small arithmetic that vectors write as text: `min(30 - admitted, 10)`, `admitted == initial admitted + initial queued`.
 * Names may have blanks in them; whoever evaluates says what they stand for.
 */
type Names = (name: string) => number;

/** Throws for what isn't a number, a known name, `min`, `max`, `+`, `-`, `*` and brackets. */
export function evaluate(text: string | number, names: Names): number {
  if (typeof text === "number") return text;
  const tokens = text.match(/[0-9]+(?:\.[0-9]+)?|[A-Za-z][A-Za-z_-]*(?: [A-Za-z][A-Za-z_-]*)*|[-+*(),]/g) ?? [];
  let at = 0;
  const peek = (): string | undefined => tokens[at];
  const take = (expected?: string): string => {
    const token = tokens[at++];
    if (token === undefined || (expected !== undefined && token !== expected))
      throw new Error(`can't read "${text}" at ${token ?? "its end"}`);
    return token;
  };
  const primary = (): number => {
    const token = take();
    if (token === "(") {
      const inner = sum();
      take(")");
      return inner;
    }
    if (/^[0-9]/.test(token)) return Number(token);
    if ((token === "min" || token === "max") && peek() === "(") {
      take("(");
      const values = [sum()];
      while (peek() === ",") {
        take(",");
        values.push(sum());
      }
      take(")");
      return token === "min" ? Math.min(...values) : Math.max(...values);
    }
    return names(token);
  };
  const product = (): number => {
    let value = primary();
    while (peek() === "*") {
      take("*");
      value *= primary();
    }
    return value;
  };
  const sum = (): number => {
    let value = product();
    while (peek() === "+" || peek() === "-") value += take() === "+" ? product() : -product();
    return value;
  };
  const value = sum();
  if (at < tokens.length) throw new Error(`can't read "${text}" after ${tokens[at - 1]}`);
  return value;
}

/** `LEFT == RIGHT`, and the other comparisons. */
export function holds(relation: string, names: Names): boolean {
  const found = /^(.*?)(==|<=|>=|<|>)(.*)$/.exec(relation);
  if (found === null) throw new Error(`"${relation}" compares nothing`);
  const [left, right] = [evaluate(found[1]!, names), evaluate(found[3]!, names)];
  if (found[2] === "==") return left === right;
  if (found[2] === "<=") return left <= right;
  if (found[2] === ">=") return left >= right;
  return found[2] === "<" ? left < right : left > right;
}
