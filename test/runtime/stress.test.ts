/** Real threads on shared ledgers, killed where they stand. How they meet differs from run to run; what holds does not. */
import { describe, expect, test } from "vitest";
import { stress } from "../../src/runtime/stress.ts";
import { stressLines } from "../../src/surfaces/cli/stress-command.ts";

describe("I1 to I6, I23, I24 under kills", () => {
  test("four threads on two ledgers, eight of them killed", async () => {
    const report = await stress({ threads: 4, hosts: 2, kills: 8, stepsBetweenKills: 5000, seed: 3 });
    expect(report.broken).toEqual([]);
    expect(report.kills).toBe(8);
    expect(report.steps).toBeGreaterThanOrEqual(45_000);
    expect(report.refused).toBeGreaterThan(0);
  });
});

describe("what is printed", () => {
  const held = {
    threads: 4,
    hosts: 2,
    seed: 3,
    kills: 8,
    killedInside: 2,
    rolledBack: 1,
    steps: 45_000,
    granted: 9000,
    refused: 100,
    snapshots: 70,
    seconds: 1.5,
    broken: [],
  };

  test("what held", () => {
    expect(stressLines(held, false)).toMatchInlineSnapshot(`
      [
        "4 threads on 2 ledgers, seed 3, 1.5 s",
        "  45000 steps (30000/s): 9000 growths granted, 100 refused",
        "  8 threads killed: 2 inside a ledger, 1 half-done step rolled back",
        "  70 whole ledgers looked at under their lock",
        "",
        "All of it held at every look: I1 to I6, I8, I9, I11, I12, I23 after every kill, I24 at the end.",
      ]
    `);
  });

  test("what did not", () => {
    expect(stressLines({ ...held, broken: ["I1 used >= 0, tracker 7"] }, false).slice(5)).toMatchInlineSnapshot(`
      [
        "NOT TRUE, 1 sentence:",
        "  I1 used >= 0, tracker 7",
        "repeat: waterhole stress --threads 4 --hosts 2 --seed 3   (threads meet differently each time)",
      ]
    `);
  });
});
