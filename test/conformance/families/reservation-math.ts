/** Family reservation-math: the two functions of admission 2.1. */
import { limitNeededFor, reservationAllowedBy } from "../../../src/core/admission/reservation-math.ts";
import { prettyBytes } from "../../../src/core/pretty.ts";
import type { FamilyRunner } from "../family.ts";
import { compare } from "./inputs.ts";

export const run: FamilyRunner = ({ input, expected }) => {
  const bytes =
    input.op === "min-mem-limit-for-reservation" ? limitNeededFor(input.bytes) : reservationAllowedBy(input.bytes);
  return compare(expected, { bytes, text: prettyBytes(bytes) });
};
