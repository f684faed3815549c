/** print-bytes: how sizes are written in reasons and profiles (admission 14.1). */
import { prettyBytes } from "../../../src/core/pretty.ts";
import type { FamilyRunner } from "../family.ts";

export const run: FamilyRunner = ({ input, expected }) => {
  const got = prettyBytes(input.bytes);
  return got === expected.text ? { kind: "pass" } : { kind: "fail", expected: expected.text, got };
};
