import { describe, expect, test } from "vitest";
import { parseAllocationFile } from "../../src/config/allocation-file.ts";
import { DEFAULT_SETTINGS, PoolDirectory } from "../../src/config/pool-directory.ts";
import { parseSiteFile } from "../../src/config/site-file.ts";

const dashboards = `<?xml version="1.0"?>
<allocations>
  <queue name="root">
    <queue name="dashboards">
      <maxResources>200000 mb, 0 vcores</maxResources>
      <aclSubmitApps>*</aclSubmitApps>
    </queue>
  </queue>
</allocations>`;

const site = (keys: Record<string, string>): string =>
  `<configuration>${Object.entries(keys)
    .map(([k, v]) => `<property><name>${k}</name><value>${v}</value></property>`)
    .join("\n")}</configuration>`;

describe("admission 11.3: the record of a pool", () => {
  test("the worked example: limits of both files in one record, each with its place", () => {
    const directory = new PoolDirectory({
      ...DEFAULT_SETTINGS,
      allocation: parseAllocationFile(dashboards, "fair-scheduler.xml"),
      site: parseSiteFile(
        site({
          "llama.am.throttling.maximum.placed.reservations.root.dashboards": "20",
          "llama.am.throttling.maximum.queued.reservations.root.dashboards": "50",
          "impala.admission-control.pool-queue-timeout-ms.root.dashboards": "30000",
          "impala.admission-control.min-query-mem-limit.root.dashboards": "1073741824",
          "impala.admission-control.max-query-mem-limit.root.dashboards": "8589934592",
        }),
        "llama-site.xml",
      ),
    });
    expect(directory.configOf("root.dashboards")).toMatchObject({
      maxMemResources: 200_000 * 1024 * 1024,
      maxRequests: 20,
      maxQueued: 50,
      queueTimeout: 30_000,
      minQueryMemLimit: 1024 ** 3,
      maxQueryMemLimit: 8 * 1024 ** 3,
    });
    expect(directory.lookUp("root.dashboards")).toMatchObject({
      origins: { maxMemResources: { from: "own", at: { file: "fair-scheduler.xml", line: 5, column: 7 } } },
    });
    expect(directory.resolve("dashboards", "ana")).toMatchObject({ kind: "resolved", pool: "root.dashboards" });
  });
});
