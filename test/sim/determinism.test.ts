/**
 * The same seed gives the same records, byte for byte: in another process, and on one thread or on two at once
 * (insight 6.1). Other versions of Node are in test/full.
 */
import { execFileSync } from "node:child_process";
import { Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import { digestOf } from "./digest.ts";

const SEEDS = [3, 7, 17, 119, 500, 501];
const SCRIPT = new URL("digest.ts", import.meta.url);

const onThread = (seeds: readonly number[]): Promise<string[]> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(SCRIPT, { workerData: { digestSeeds: seeds } });
    worker.once("message", resolve);
    worker.once("error", reject);
  });

describe("the same bytes everywhere", () => {
  const here = SEEDS.map(digestOf);

  test("seeds differ from each other", () => {
    expect(new Set(here).size).toBe(SEEDS.length);
  });

  test("in another process", () => {
    const printed = execFileSync(process.execPath, [SCRIPT.pathname, ...SEEDS.map(String)], { encoding: "utf8" });
    expect(printed.trim().split("\n")).toEqual(here);
  });

  test("on one worker thread", async () => {
    expect(await onThread(SEEDS)).toEqual(here);
  });

  test("on two worker threads at once", async () => {
    const halves = await Promise.all([onThread(SEEDS.slice(0, 3)), onThread(SEEDS.slice(3))]);
    expect(halves.flat()).toEqual(here);
  });
});
