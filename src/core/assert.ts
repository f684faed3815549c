/**
 * Broken promises of our own code, and nothing else (STYLE 6, 7).
 *
 * A refusal is a value and a person's mistake is a ConfigError; what ends up here is a bug. Nothing in
 * core catches it: the run stops with its seed.
 */

export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

export function fail(what: string): never {
  throw new InvariantError(what);
}

/** Constant text only: a template is formatted on every call, even when all is well. */
export function invariant(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new InvariantError(rule);
}

export function unreachable(value: never): never {
  return fail(`unhandled case: ${JSON.stringify(value)}`);
}
