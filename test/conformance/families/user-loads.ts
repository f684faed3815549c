/** Family user-loads: the counter per user (admission 8.3). */
import { loadsText, UserLoads } from "../../../src/core/admission/user-loads.ts";
import type { FamilyRunner } from "../family.ts";
import type { Json } from "./inputs.ts";

export const run: FamilyRunner = ({ input }) => {
  const loads = new UserLoads();
  for (const op of input.ops) {
    const expected = op.returns ?? op.returns_in_release_builds;
    const got = apply(loads, op);
    if (expected !== undefined && expected !== got) return { kind: "fail", expected: op, got };
  }
  return { kind: "pass" };
};

function apply(loads: UserLoads, op: Json): unknown {
  switch (op.op) {
    case "size":
      return loads.size;
    case "get":
      return loads.get(op.user);
    case "increment":
      return loads.increment(op.user);
    case "decrement":
      return loads.decrement(op.user);
    case "add-loads":
      return loads.add(new Map(Object.entries<number>(op.loads)));
    case "debug-string":
      return loadsText(loads.entries());
    default:
      throw new Error(`unknown op ${op.op}`);
  }
}
