/**
 * `npm run mutants`: every planted fault must be found by some seed of the sweep. Prints the first seed that
 * finds it and the checker's words; exit 1 when one survives.
 *
 *   --seeds N   how many are tried for each (default 500)
 */
import { parseArgs } from "node:util";
import { sweep } from "../../src/sim/sweep/sweep.ts";
import { MUTANTS } from "./planted.ts";

const { values } = parseArgs({ options: { seeds: { type: "string", default: "500" } } });
let survivors = 0;
for (const { name, seenBy, controller } of MUTANTS) {
  const { failure, seeds } = sweep(1, Number(values.seeds), controller);
  if (failure === null) survivors++;
  const said = failure === null ? `SURVIVES ${seeds} seeds` : `seed ${failure.seed}: ${failure.problem}`;
  console.log(
    `${name.padEnd(26)}${said}${failure?.problem.includes(seenBy) === false ? `   (expected: ${seenBy})` : ""}`,
  );
}
process.exitCode = survivors === 0 ? 0 : 1;
