/** Family trivial-query: which statements the planner marks as trivial (admission 5.3). */
import { isTrivialStatement } from "../../../src/core/admission/trivial-statement.ts";
import type { FamilyRunner } from "../family.ts";
import { compare } from "./inputs.ts";

export const run: FamilyRunner = ({ input, expected }) =>
  compare(expected, {
    trivial: isTrivialStatement(input.sql, input.options?.enable_trivial_query_for_admission ?? true),
  });
