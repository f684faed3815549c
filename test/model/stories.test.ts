/** The slow model on the field cases and the end-to-end vectors: it has to be right before it judges the core. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { collect } from "../conformance/collect.ts";
import { makeModel } from "../conformance/controllers.ts";
import * as fieldCases from "../conformance/families/field-cases.ts";
import * as scenario from "../conformance/families/scenario.ts";

const SHARED = resolve(import.meta.dirname, "../../../shared/conformance");
const found = collect(existsSync(SHARED) ? SHARED : resolve(import.meta.dirname, "../conformance/vectors"));

describe.each(["field-cases", "scenario"])("%s", (family) => {
  for (const { vector, dir } of found.filter((f) => f.vector.family === family))
    test(vector.id, (context) => {
      const file = vector.input.pools?.config_files?.allocation_file;
      if (typeof file === "string" && !existsSync(join(dir, file))) context.skip(`${file} is not on this machine`);
      const verdict =
        family === "scenario"
          ? scenario.runOn(makeModel, vector.input, vector.expected, dir)
          : fieldCases.runOn(makeModel, vector.input, vector.expected);
      if (verdict.kind === "skip") context.skip(verdict.why);
      if (verdict.kind === "fail") expect(verdict.got).toEqual([]);
      expect(verdict.kind).toBe("pass");
    });
});
