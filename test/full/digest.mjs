/**
 * Digests of seeds' records by the compiled program, for any version of Node: `node digest.mjs DIST 3 7`.
 * Plain JavaScript, because older versions read nothing else.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [dist, ...seeds] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(dist, "src", path)).href);
const { DEFAULT_FLAGS } = await load("config/impala-flags.js");
const { DEFAULT_POOL_CONFIG } = await load("core/pool-config.js");
const { simulate } = await load("sim/simulate.js");
const { randomRun } = await load("sim/sweep/random-scenario.js");
const { createWorkload } = await load("workload/scenario-workload.js");

for (const seed of seeds) {
  const { scenario, configs, laterConfigs } = randomRun(Number(seed));
  const pools = (of) => ({ configOf: (pool) => of.get(pool) ?? DEFAULT_POOL_CONFIG });
  const hash = createHash("sha256");
  simulate({
    scenario,
    workload: createWorkload(scenario, {
      resolve: (pool, user) => ({ kind: "resolved", pool, user, groups: [], defaultOptions: {}, maxMtDop: -1 }),
    }),
    pools: pools(configs),
    flags: DEFAULT_FLAGS,
    changedPools: () => pools(laterConfigs),
    emit: (e) => hash.update(`${JSON.stringify(e)}\n`),
  });
  console.log(hash.digest("hex"));
}
