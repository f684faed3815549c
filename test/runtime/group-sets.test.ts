/** 6.4 which executor group set a query is planned for: the flag's effect in a run, live and in virtual time. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseScenario } from "../../src/config/scenario-file.ts";
import type { RunEvent } from "../../src/core/events.ts";
import { expectClean, leavesNothingBehind } from "./live-checks.ts";
import { runOf } from "./live-fixture.ts";
import { simulated } from "./simulated.ts";

leavesNothingBehind();

let dir = "";
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "waterhole-test-"));
  const queues = ["small", "large"].map((name) => `<queue name="${name}"><aclSubmitApps>*</aclSubmitApps></queue>`);
  writeFileSync(
    join(dir, "fair-scheduler.xml"),
    `<allocations><queue name="root">${queues.join("")}</queue></allocations>`,
  );
  const limit = (pool: string, gb: number): string =>
    `<property><name>impala.admission-control.max-query-mem-limit.${pool}</name><value>${gb * 2 ** 30}</value></property>`;
  writeFileSync(
    join(dir, "llama-site.xml"),
    `<configuration>${limit("root.small", 2)}${limit("root.large", 8)}</configuration>`,
  );
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function scenario(flags: Record<string, unknown>) {
  const query = (estimate: string) => ({ user: "ana", estimate, uses: { peak: "100mb" }, duration: "1s" });
  return parseScenario(
    JSON.stringify({
      cluster: {
        executors: [
          { count: 1, memory: "10gb", executorGroup: "root.small-1" },
          { count: 2, memory: "10gb", executorGroup: "root.large-1" },
        ],
        coordinators: [{ count: 1, on: "dedicated", memory: "10gb" }],
      },
      pools: { fairScheduler: "fair-scheduler.xml", llamaSite: "llama-site.xml" },
      flags,
      queries: { light: query("2gb"), heavy: query("3gb"), tooHeavy: query("9gb") },
      arrivals: ["light", "heavy", "tooHeavy"].map((name) => ({ at: "0s", query: name, count: 1 })),
      scale: { time: 20, memory: 1024 },
      threads: 2,
    }),
    join(dir, "scenario.json"),
  );
}

/** Where each class ran, or why it did not. */
function places(events: readonly RunEvent[]): Record<string, string> {
  const classes = new Map(events.flatMap((e) => (e.kind === "submitted" ? [[e.query, e.queryClass]] : [])));
  return Object.fromEntries(
    events.flatMap((e) => {
      if (e.kind === "admitted") return [[classes.get(e.query)!, e.group]];
      return e.kind === "unresolved" ? [[classes.get(e.query)!, e.error]] : [];
    }),
  );
}

describe("6.4 --expected_executor_group_sets", () => {
  const expected_executor_group_sets = "root.small:1,root.large:2";

  test("queries go to the smallest set whose limit their estimate fits under, the largest ones to the last", async () => {
    const said = scenario({ expected_executor_group_sets });
    const live = await runOf(said);
    expect(places(live.events)).toEqual({ light: "root.small-1", heavy: "root.large-1", tooHeavy: "root.large-1" });
    expect(places(simulated(said))).toEqual(places(live.events));
    expectClean(live.report);
  });

  test("with the last set checked they are not planned at all", async () => {
    const said = scenario({
      expected_executor_group_sets,
      skip_resource_checking_on_last_executor_group_set: false,
    });
    const live = await runOf(said);
    expect(places(live.events)).toMatchObject({
      heavy: "root.large-1",
      tooHeavy: expect.stringContaining("does not fit largest executor group sets"),
    });
    expect(places(simulated(said))).toEqual(places(live.events));
    expectClean(live.report);
  });
});
