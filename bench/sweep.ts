/**
 * `npm run sim`: random small clusters with random faults under all checkers, on as many threads as asked for.
 *
 *   --seeds N    how many (default 2000)      --from S   the first one (default 1)
 *   --seed S     only this one                --threads T  (default 2)
 *
 * Exit 1 and one line that repeats it when a seed fails; the smallest failing one, whatever thread found it.
 */
import { parseArgs } from "node:util";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { failureText, type SeedFailure, type SweepResult, sweep } from "../src/sim/sweep/sweep.ts";

interface Share {
  readonly from: number;
  readonly count: number;
}

/** Seeds are handed out in pieces, so that a thread with hard ones does not make the others wait. */
const PIECE = 100;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seeds: { type: "string", default: "2000" },
      from: { type: "string", default: "1" },
      seed: { type: "string" },
      threads: { type: "string", default: "2" },
    },
  });
  const only = values.seed;
  const from = Number(only ?? values.from);
  const count = only === undefined ? Number(values.seeds) : 1;
  const began = performance.now();
  const results = await onThreads({ from, count }, Math.min(Number(values.threads), Math.ceil(count / PIECE)));
  const seconds = (performance.now() - began) / 1000;
  const sum = (figure: (r: SweepResult) => number) => results.reduce((n, r) => n + figure(r), 0);
  const seeds = sum((r) => r.seeds);
  console.log(
    `${seeds} seeds, ${sum((r) => r.queries)} queries, ${sum((r) => r.steps)} events in ${seconds.toFixed(1)} s: ${Math.round((seeds / seconds) * 60)} seeds a minute`,
  );
  const failures = results.map((r) => r.failure).filter((f): f is SeedFailure => f !== null);
  const first = failures.sort((a, b) => a.seed - b.seed)[0];
  if (first !== undefined) console.error(failureText(first));
  return first === undefined ? 0 : 1;
}

async function onThreads(all: Share, threads: number): Promise<SweepResult[]> {
  const results: SweepResult[] = [];
  let next = all.from;
  const end = all.from + all.count;
  const take = (): Share | null => {
    if (next >= end || results.some((r) => r.failure !== null)) return null;
    const share = { from: next, count: Math.min(PIECE, end - next) };
    next += share.count;
    return share;
  };
  await Promise.all(Array.from({ length: Math.max(1, threads) }, () => onThread(take, results)));
  return results;
}

function onThread(take: () => Share | null, results: SweepResult[]): Promise<void> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { sweeps: true } });
  return new Promise((resolve, reject) => {
    const more = (): void => {
      const share = take();
      if (share !== null) worker.postMessage(share);
      else worker.terminate().then(() => resolve(), reject);
    };
    worker.on("error", reject);
    worker.on("message", (result: SweepResult) => {
      results.push(result);
      more();
    });
    more();
  });
}

if (isMainThread) process.exitCode = await main();
else if (workerData?.sweeps === true)
  parentPort?.on("message", ({ from, count }: Share) => parentPort?.postMessage(sweep(from, count)));
