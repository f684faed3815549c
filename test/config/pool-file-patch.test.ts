import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type PoolChange, type PoolFileTexts, patchPool, unifiedDiff } from "../../src/config/pool-file-patch.ts";
import { GiB, MiB } from "../../src/core/units.ts";

const FAIR = `<?xml version="1.0"?>
<allocations>
  <queue name="root">
    <aclSubmitApps> </aclSubmitApps>
    <!-- the dashboards -->
    <queue name="dashboards">
      <aclSubmitApps>* </aclSubmitApps>
      <maxResources>200000 mb, 0 vcores</maxResources>
    </queue>
    <queue name="etl"/>
  </queue>
</allocations>
`;
const SITE = `<?xml version="1.0"?>
<configuration>
  <property>
    <name>llama.am.throttling.maximum.placed.reservations.root.dashboards</name>
    <value>20</value> <!-- since March -->
  </property>
</configuration>
`;
const FILES: PoolFileTexts = { fairScheduler: FAIR, llamaSite: SITE };
const NOW: PoolChange = {
  maxMem: 200_000 * MiB,
  maxRunning: 20,
  maxQueued: 200,
  timeout: 60_000,
  minQueryMem: 0,
  maxQueryMem: 0,
};

function patched(change: Partial<PoolChange>, pool = "root.dashboards", before: PoolChange = NOW): PoolFileTexts {
  const result = patchPool(FILES, pool, before, { ...before, ...change });
  if (result.kind !== "patched") throw new Error(result.why);
  return result.files;
}

describe("insight 3.6 the files as a patch", () => {
  test("memory in its place, whole MiB upwards, all else to the letter", () => {
    const { fairScheduler, llamaSite } = patched({ maxMem: 210 * GiB - 1 });
    expect(fairScheduler).toBe(FAIR.replace("200000 mb", "215040 mb"));
    expect(llamaSite).toBe(SITE);
  });

  test("a property in its place, others before the end", () => {
    const { fairScheduler, llamaSite } = patched({ maxRunning: 40, maxQueued: 97, maxQueryMem: 2 * GiB });
    expect(fairScheduler).toBe(FAIR);
    expect(llamaSite).toContain("<value>40</value> <!-- since March -->");
    expect(llamaSite).toContain(
      "  <property>\n    <name>llama.am.throttling.maximum.queued.reservations.root.dashboards</name>\n    <value>97</value>\n  </property>\n",
    );
    expect(llamaSite?.trimEnd().endsWith("</configuration>")).toBe(true);
  });

  test("a pool without maxResources gets one, also where the queue has no content", () => {
    const before = { ...NOW, maxMem: -1, maxRunning: -1 };
    const { fairScheduler } = patched({ maxMem: 10 * GiB }, "root.etl", before);
    expect(fairScheduler).toContain(
      '    <queue name="etl">\n      <maxResources>10240 mb, 0 vcores</maxResources>\n    </queue>\n',
    );
  });

  test("no limit takes the line out", () => {
    expect(patched({ maxMem: -1 }).fairScheduler).toBe(FAIR.replace(/ *<maxResources>.*\n/, ""));
  });

  test("no site file yet: one is made", () => {
    const result = patchPool(
      { fairScheduler: FAIR, llamaSite: null },
      "root.dashboards",
      { ...NOW, maxRunning: -1 },
      NOW,
    );
    expect(result.kind === "patched" && result.files.llamaSite).toMatch(
      /<configuration>\n {2}<property>\n {4}<name>llama.*<\/name>\n {4}<value>20/,
    );
  });

  test("what cannot be patched is said, never guessed: an undeclared pool, or another setting that decides", () => {
    expect(patchPool(FILES, "root.none", NOW, { ...NOW, maxMem: GiB })).toMatchObject({
      kind: "byHand",
      why: /not declared/,
    });
    const odd = FAIR.replace("200000 mb", "200000<!-- x --> mb");
    expect(patchPool({ ...FILES, fairScheduler: odd }, "root.dashboards", NOW, { ...NOW, maxMem: GiB }).kind).toBe(
      "patched",
    );
    const final = SITE.replace("<value>20</value>", "<value>20</value><final>true</final>");
    const twice = final.replace(
      "</configuration>",
      `${/<property>[\s\S]*<\/property>/.exec(SITE)![0].replace("20", "30")}\n</configuration>`,
    );
    expect(patchPool({ ...FILES, llamaSite: twice }, "root.dashboards", NOW, { ...NOW, maxRunning: 40 }).kind).toBe(
      "patched",
    );
  });

  test.skipIf(spawnSync("patch", ["--version"]).status !== 0)("the diff is one that `patch` applies", () => {
    const { fairScheduler, llamaSite } = patched({ maxMem: 210 * GiB, maxRunning: 40, timeout: 30_000 });
    const dir = mkdtempSync(join(tmpdir(), "waterhole-patch-"));
    for (const [name, before, after] of [
      ["fair-scheduler.xml", FAIR, fairScheduler],
      ["llama-site.xml", SITE, llamaSite ?? ""],
    ] as const) {
      writeFileSync(join(dir, name), before);
      execFileSync("patch", [join(dir, name)], { input: `${unifiedDiff(name, before, after).join("\n")}\n` });
      expect(readFileSync(join(dir, name), "utf8")).toBe(after);
    }
    rmSync(dir, { recursive: true });
    expect(unifiedDiff("x", FAIR, FAIR)).toEqual([]);
  });
});
