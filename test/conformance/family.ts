/**
 * What a family of conformance vectors needs to be run: one function from a vector to a verdict.
 *
 * The runner finds the files, loads `families/<family>.ts`, calls its `run` for each vector and prints; nothing
 * in a family may look at a vector's id. Field cases and real-world XML cases take the same road: the case's
 * name becomes the id, what it says must happen becomes `expected`, the rest `input`.
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
  /** `note`: what a reader of the result should know, printed with it. */
  | { readonly kind: "pass"; readonly note?: string }
  | { readonly kind: "fail"; readonly expected: unknown; readonly got: unknown }
  | { readonly kind: "skip"; readonly why: string };

/**
 * `dir` is the folder of the family's file; XML paths of vectors are relative to it. For the family `field-xml`
 * it is the case's own folder, and `input` is empty: the file names are in `expected.files`.
 */
export type FamilyRunner = (vector: Vector, dir: string) => Verdict | Promise<Verdict>;

/** What a file in `families/` exports. */
export interface FamilyModule {
  readonly run: FamilyRunner;
}
