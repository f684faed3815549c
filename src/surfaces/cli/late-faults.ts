/**
 * Faults that a run ended before: whoever wrote them down believes to have seen what they do.
 */
import { faultText } from "../../config/fault-text.ts";
import type { Scenario } from "../../config/scenario.ts";
import { prettyMillis } from "../../core/pretty.ts";

/** One line each; `until`: when the run was over, emulated milliseconds. */
export function lateFaults({ faults, queries }: Pick<Scenario, "faults" | "queries">, until: number): string[] {
  return faults
    .filter((f) => f.at > until)
    .map((f) => {
      const due = f.kind === "configChanges" ? "would be noticed" : "is due";
      return `not reached: ${faultText(f, queries)} ${due} at ${prettyMillis(f.at)}, and the run was over at ${prettyMillis(until)}`;
    });
}
