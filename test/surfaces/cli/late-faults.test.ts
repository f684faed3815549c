import { describe, expect, test } from "vitest";
import { faultText } from "../../../src/config/fault-text.ts";
import { parseScenario } from "../../../src/config/scenario-file.ts";
import { lateFaults } from "../../../src/surfaces/cli/late-faults.ts";

const scenarioWith = (faults: string) =>
  parseScenario(
    `
cluster: { executors: [{ count: 2, memory: 10gb }] }
queries: { tile: { estimate: 1gb, duration: 1s }, report: { estimate: 1gb, duration: 1s } }
arrivals: [{ at: 0s, query: tile }]
faults: [${faults}]
`,
    "/dir/faults.yaml",
  );

describe("faults that a run ended before", () => {
  const dies = scenarioWith("{ at: 2s, fault: hostDies, host: exec-1 }");
  test.each([
    {
      until: 1999,
      lines: ["not reached: host dies, host exec-1:27000 is due at 2s000ms, and the run was over at 1s999ms"],
    },
    { until: 2000, lines: [] },
    { until: 2001, lines: [] },
  ])("one of 2 s, over at $until ms", ({ until, lines }) => {
    expect(lateFaults(dies, until)).toEqual(lines);
  });

  test("files count when they are noticed, at the first look after they were written", () => {
    const changed = scenarioWith("{ at: 500ms, fault: configChanges, llamaSite: new.xml }");
    expect(lateFaults(changed, 2000)).toEqual([
      "not reached: config changes, llamaSite /dir/new.xml would be noticed at 10s000ms, and the run was over at 2s000ms",
    ]);
    expect(lateFaults(changed, 10_000)).toEqual([]);
  });
});

describe("a fault in one line", () => {
  test("classes have names", () => {
    const { faults, queries } = scenarioWith(
      "{ at: 1s, fault: statisticsDropped, query: report, factor: 4 }, { at: 2s, fault: refusals, chance: 0.5, query: tile }",
    );
    expect(faults.map((f) => faultText(f, queries))).toEqual([
      "statistics dropped, class report, factor 4",
      "refusals, chance 0.5, class tile",
    ]);
  });
});
