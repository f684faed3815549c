import { describe, expect, test } from "vitest";
import type { Outcome } from "../../../src/insight/size/outcome.ts";
import type { Job } from "../../../src/insight/size/problem.ts";
import { SizeProgress } from "../../../src/surfaces/cli/size-progress.ts";
import { NOW } from "../../insight/size/size-fixtures.ts";

const job = (over: Partial<Job> = {}): Job => ({ engine: "model", day: 0, from: 100, to: 400, setting: NOW, ...over });

/** What is written to a terminal, without its codes; and how a search with these jobs looks there. */
async function seen(jobs: readonly Job[], isTTY: boolean): Promise<string[]> {
  let written = "";
  const write = (text: string): void => {
    written += text;
  };
  const stream = { isTTY, write };
  let now = 0;
  const progress = new SizeProgress({ stdout: stream, stderr: stream, environment: {} }, () => now);
  progress.say("drawing the days");
  const evaluate = progress.watching(async (all) => {
    for (const _ of all) {
      now += 60;
      progress.jobDone();
    }
    return all.map(() => ({}) as Outcome);
  });
  await evaluate(jobs);
  progress.end();
  expect(written.endsWith("\r\x1b[2K") || written === "").toBe(true);
  return written.split("\r\x1b[2K").filter((part) => part !== "");
}

describe("DESIGN 2 what size is doing", () => {
  test("the step and how far it is, ten times a second at most", async () => {
    expect(await seen([job(), job(), job()], true)).toEqual([
      "size: drawing the days",
      "size: screening on 300 requests: 0 of 3 runs",
      "size: screening on 300 requests: 2 of 3 runs",
    ]);
  });

  test.each([
    [{ engine: "rules", day: 2 }, "day 3, 300 requests by the rules"],
    [{ engine: "rules", binding: true }, "what binds, 300 requests by the rules"],
    [{ engine: "rules", ease: "slots" }, "what would relieve, 300 requests by the rules"],
  ] as const)("%o", async (over, text) => {
    expect((await seen([job(over)], true))[1]).toBe(`size: ${text}: 0 of 1 run`);
  });

  test("nothing where there is no terminal", async () => {
    expect(await seen([job()], false)).toEqual([]);
  });
});
