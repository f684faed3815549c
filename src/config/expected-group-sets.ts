/**
 * `--expected_executor_group_sets`: prefix:size, comma between them (admission 6.4). A text that the product refuses
 * to start with is refused with the product's words.
 */

/** The pool of the set's queries is called like its prefix; its groups are `prefix-...`. */
export interface ExpectedGroupSet {
  readonly prefix: string;
  readonly expectedSize: number;
}

export type ExpectedGroupSets =
  | { readonly ok: true; readonly sets: readonly ExpectedGroupSet[] }
  | { readonly ok: false; readonly problem: string };

export function expectedGroupSets(text: string): ExpectedGroupSets {
  const sets: ExpectedGroupSet[] = [];
  for (const part of text.split(",")) {
    if (part === "") continue;
    const colon = part.indexOf(":");
    const prefix = colon < 0 ? part : part.slice(0, colon);
    const size = part.slice(colon + 1);
    const problem =
      prefix === ""
        ? `Executor group set prefix cannot be empty for input: ${part}`
        : sets.some((s) => s.prefix === prefix)
          ? `Executor group set prefix specified multiple times: ${part}`
          : colon < 0
            ? `Invalid executor group set format: ${part}`
            : /^\s*[+-]?\d+\s*$/.test(size)
              ? null
              : `Failed to parse expected executor group set size for input: ${part}`;
    if (problem !== null) return { ok: false, problem };
    sets.push({ prefix, expectedSize: Number(size) });
  }
  return { ok: true, sets };
}
