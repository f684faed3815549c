/**
 * What a family of conformance vectors needs to be run: one function from a vector to a verdict.
 *
 * The runner finds the files, calls the family's function for each vector and prints; nothing in a family
 * may look at a vector's id.
 */

export interface Vector {
  readonly id: string;
  readonly family: string;
  readonly description: string;
  // biome-ignore lint/suspicious/noExplicitAny: the schema differs by family; each runner reads its own fields.
  readonly input: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly expected: any;
}

export type Verdict =
  | { readonly kind: "pass" }
  | { readonly kind: "fail"; readonly expected: unknown; readonly got: unknown }
  | { readonly kind: "skip"; readonly why: string };

/** `dir` is the folder of the family's file; XML paths of vectors are relative to it. */
export type FamilyRunner = (vector: Vector, dir: string) => Verdict | Promise<Verdict>;
