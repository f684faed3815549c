/**
 * Digests of seeds' records by the compiled program, for any version of Node: `node digest.mjs DIST 3 7`.
 * Plain JavaScript, because older versions read nothing else.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [dist, ...seeds] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(dist, "src", path)).href);
const { simulate } = await load("sim/simulate.js");
const { randomRun } = await load("sim/sweep/random-scenario.js");
const { partsOf } = await load("sim/sweep/sweep.js");

for (const seed of seeds) {
  const hash = createHash("sha256");
  simulate({ ...partsOf(randomRun(Number(seed))), emit: (e) => hash.update(`${JSON.stringify(e)}\n`) });
  console.log(hash.digest("hex"));
}
