/**
 * Digests of seeds' records: `node digest.ts 3 7` prints one a line; as a worker thread it posts them. Runs on
 * its own, outside of vitest.
 */
import { createHash } from "node:crypto";
import { isMainThread, parentPort, workerData } from "node:worker_threads";
import { simulateSeed } from "./random-simulation.ts";

export function digestOf(seed: number): string {
  const hash = createHash("sha256");
  simulateSeed(seed, { emit: (e) => hash.update(`${JSON.stringify(e)}\n`) });
  return hash.digest("hex");
}

if (process.argv[1] === import.meta.filename && isMainThread)
  for (const seed of process.argv.slice(2)) console.log(digestOf(Number(seed)));
if (!isMainThread && Array.isArray(workerData?.digestSeeds))
  parentPort?.postMessage(workerData.digestSeeds.map((seed: number) => digestOf(seed)));
