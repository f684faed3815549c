/**
 * `npm run fuzz [-- --runs N --seed S --steps M]`: model and core on many random stories. Prints the seed, how often
 * each rule came up, and, when the two differ, the shrunk story. Exit 1 then.
 */
import { parseArgs } from "node:util";
import fc from "fast-check";
import { play } from "./play.ts";
import { stories } from "./story.ts";

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "20000" },
    seed: { type: "string", default: String(Date.now() % 2 ** 31) },
    steps: { type: "string", default: "60" },
    path: { type: "string" },
  },
});

const seen = new Map<string, number>();
const started = performance.now();
console.log(`seed ${values.seed}, ${values.runs} stories of up to ${values.steps} steps`);
const result = fc.check(
  fc.property(stories(Number(values.steps)), (story) => {
    for (const [what, n] of play(story)) seen.set(what, (seen.get(what) ?? 0) + n);
  }),
  {
    seed: Number(values.seed),
    numRuns: Number(values.runs),
    ...(values.path === undefined ? {} : { path: values.path }),
  },
);
const seconds = ((performance.now() - started) / 1000).toFixed(1);
for (const what of [...seen.keys()].sort()) console.log(`  ${what.padEnd(32)} ${seen.get(what)}`);
if (result.failed) {
  const story = JSON.stringify(result.counterexample?.[0]);
  console.log(`FAIL after ${result.numRuns} stories and ${result.numShrinks} shrinks: ${String(result.errorInstance)}`);
  console.log(`story: ${story}`);
  console.log(
    `repeat: npm run fuzz -- --seed ${result.seed} --steps ${values.steps} --path ${result.counterexamplePath}`,
  );
  process.exitCode = 1;
} else console.log(`${result.numRuns} stories agree at every step, ${seconds} s`);
