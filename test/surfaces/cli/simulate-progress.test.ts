import { describe, expect, test } from "vitest";
import { parseScenario } from "../../../src/config/scenario-file.ts";
import type { Simulation } from "../../../src/sim/simulation.ts";
import { SimulateProgress } from "../../../src/surfaces/cli/simulate-progress.ts";

const scenario = (arrivals: unknown) =>
  parseScenario(
    JSON.stringify({
      cluster: { executors: [{ count: 1, memory: "1gb", slots: 1 }], coordinators: [{ count: 1, on: "executor" }] },
      pools: "flags",
      queries: { q: { estimate: "1mb", duration: "1s" } },
      arrivals: [arrivals],
    }),
    "progress.json",
  );

/** What stands on the line, one after the other, in a run of so many steps of 20 real microseconds. */
function seen(arrivals: unknown, steps: number, isTTY = true): string[] {
  let written = "";
  const stream = {
    isTTY,
    columns: 60,
    write: (text: string): void => {
      written += text;
    },
  };
  let now = 0;
  const progress = new SimulateProgress(
    { stdout: stream, stderr: stream, environment: {} },
    scenario(arrivals),
    false,
    () => now,
  );
  const { inspect } = progress;
  for (let i = 1; i <= steps; i++) {
    now += 0.02;
    inspect?.({ submitted: i, now: i * 1e6 } as Simulation);
  }
  progress.end();
  return written.split("\r\x1b[2K");
}

describe("DESIGN 2 how far simulate is", () => {
  test("four times a second at most, and gone at the end", () => {
    expect(seen({ at: "0s", query: "q", count: 40_000 }, 40_000)).toEqual([
      "",
      "simulate: 16384 of about 40000 queries, 4h33m",
      "simulate: 32768 of about 40000 queries, 9h06m",
      "",
    ]);
  });

  test("a short run shows nothing, and needs no clearing", () => {
    expect(seen({ at: "0s", query: "q", count: 5000 }, 5000)).toEqual([""]);
  });

  test("nothing where there is no terminal, and no step is looked at", () => {
    expect(seen({ at: "0s", query: "q", count: 40_000 }, 40_000, false)).toEqual([""]);
  });
});
