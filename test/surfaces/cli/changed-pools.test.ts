import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { testFolder, waterhole } from "./command-line.ts";

const folder = testFolder();

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const site = (places: number): string =>
  `<configuration><property><name>llama.am.throttling.maximum.placed.reservations.root.a</name>
<value>${places}</value></property></configuration>`;

file(
  "fair-scheduler.xml",
  `<allocations><queue name="root"><queue name="a"><aclSubmitApps>*</aclSubmitApps></queue></queue></allocations>`,
);
file("before.xml", site(2));
file("after.xml", site(5));

const scenario = file(
  "changes.yaml",
  `
cluster: { executors: [{ memory: 64gb }] }
pools: { fairScheduler: fair-scheduler.xml, llamaSite: before.xml }
queries: { q: { pool: root.a, user: ana, estimate: 1gb, duration: 2s } }
arrivals: [{ every: 200ms, count: 200, query: q }]
faults: [{ at: 10s, fault: configChanges, llamaSite: after.xml }]
`,
);

describe("insight 2.4 with one controller nobody is ever over a limit, whatever became of the limit", () => {
  test("2 places, then 5, all of them in use", async () => {
    const { code, stdout } = await waterhole("simulate", scenario, "--no-records", "--json");
    expect(code).toBe(0);
    const [pool] = Object.values<Record<string, unknown>>(JSON.parse(stdout).pools);
    expect(pool).toMatchObject({
      peakRunning: 5,
      limits: { maxRequests: 5 },
      overAdmission: { running: { most: 0, areaMs: 0 }, staleAdmissions: 0 },
    });
    expect(pool!.placesUtilisationShare).toBeGreaterThan(0.9);
    expect(pool!.placesUtilisationShare).toBeLessThanOrEqual(1);
  });
});
