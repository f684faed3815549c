import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { siteText } from "../../config/fixtures.ts";
import { type Outcome, testFolder, waterhole } from "./command-line.ts";

const EXAMPLES = resolve(import.meta.dirname, "../../../examples/dashboards");
const dir = testFolder();

function write(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
}

const check = (...args: string[]): Promise<Outcome> => waterhole("check", ...args);

/** A pair with something of everything. */
const FAIR = write(
  "fair-scheduler.xml",
  `<?xml version="1.0"?>
<allocations>
  <queue name="bi">
    <maxResources>1,024 mb, 0 vcores</maxResources>
    <aclSubmitApps>bi_users</aclSubmitApps>
    <maxRunningApps>10</maxRunningApps>
  </queue>
  <queue name="etl">
    <maxResource>9000 mb, 0 vcores</maxResource>
    <aclSubmitApps>loader, etl</aclSubmitApps>
    <userQueryLimit>
      <user>loader</user>
      <totalCount>4</totalCount>
    </userQueryLimit>
  </queue>
  <queuePlacementPolicy>
    <rule name="specified" create="false"/>
    <rule name="default"/>
  </queuePlacementPolicy>
</allocations>
`,
);
const SITE = write(
  "llama-site.xml",
  siteText({
    placed: "20",
    "queued.root.etl": "0",
    "timeout.root.bi": "30",
    "placed.bi": "5",
    "options.root.bi": "mem_limit = 2g",
  }),
);
const CLEAN = write(
  "clean.xml",
  `<allocations><queue name="root"><aclSubmitApps> </aclSubmitApps><queue name="a"><aclSubmitApps>ana </aclSubmitApps><maxResources>9000 mb, 0 vcores</maxResources></queue></queue><queuePlacementPolicy><rule name="specified" create="false"/><rule name="reject"/></queuePlacementPolicy></allocations>`,
);
const CLEAN_SITE = write(
  "clean-site.xml",
  siteText({ "min-mem.root.a": "1073741824", "max-mem.root.a": "8589934592" }),
);
const BROKEN = write("broken.xml", "<allocations><queue></allocations>");

describe("DESIGN 2: exit codes of waterhole check", () => {
  test.each([
    ["nothing to complain about", ["--fair-scheduler", CLEAN, "--llama-site", CLEAN_SITE, "--strict"], 0],
    ["warnings", ["--fair-scheduler", FAIR, "--llama-site", SITE], 0],
    ["warnings, strict", ["--fair-scheduler", FAIR, "--llama-site", SITE, "--strict"], 1],
    ["a file that does not load", ["--fair-scheduler", BROKEN], 2],
    ["a file that does not load, strict", ["--fair-scheduler", BROKEN, "--strict"], 2],
    [
      "a value that breaks a pool",
      ["--fair-scheduler", CLEAN, "--llama-site", write("bad.xml", siteText({ "placed.root.a": "ten" }))],
      2,
    ],
    ["the worked example", ["--scenario", join(EXAMPLES, "scenario.yaml"), "--strict"], 0],
  ])("%s", async (_, args, code) => {
    expect((await check(...args)).code).toBe(code);
  });

  test.each([
    ["no file at all", [], "Give --fair-scheduler FILE"],
    ["a file that is not there", ["--fair-scheduler", "/nowhere/f.xml"], "there is no such file"],
    ["a flag without a value", ["--fair-scheduler", CLEAN, "--flag", "mem_limit"], "Write name=value."],
    [
      "an unknown flag",
      ["--fair-scheduler", CLEAN, "--flag", "queue_wait_timeout=1"],
      "Do you mean queue_wait_timeout_ms?",
    ],
    [
      "a table of groups that is none",
      ["--fair-scheduler", CLEAN, "--groups", write("groups.yaml", "- a")],
      "Write one line for each user",
    ],
    [
      "a table of groups that is no YAML",
      ["--fair-scheduler", CLEAN, "--groups", write("bad.yaml", "a: [")],
      "not readable as YAML",
    ],
  ])("%s ends with 2 and says what to do", async (_, args, expected) => {
    const { code, stdout, stderr } = await check(...args);
    expect(code).toBe(2);
    expect(stdout).toBe("");
    expect(stderr).toContain(expected);
    expect(stderr).toContain("next: ");
  });
});

describe("what it prints", () => {
  test("the text form", async () => {
    const groups = write("table.yaml", "ana: [analysts]\nloader: etl\n");
    const { stdout } = await check(
      "--fair-scheduler",
      FAIR,
      "--llama-site",
      SITE,
      "--groups",
      groups,
      "--flag",
      "default_pool_max_queued=3",
    );
    await expect(stdout.replaceAll(`${dir}/`, "")).toMatchFileSnapshot("../../golden/check.txt");
  });

  test("--json is one document with every finding", async () => {
    const { stdout } = await check("--fair-scheduler", FAIR, "--llama-site", SITE, "--json", "--user", "ana");
    const document = JSON.parse(stdout);
    expect(document.counts.warnings).toBe(
      document.findings.filter((f: { severity: string }) => f.severity === "warning").length,
    );
    expect(Object.keys(document.findings[0]).sort()).toEqual(
      ["id", "name", "severity", "stops", "file", "line", "column", "pool", "found", "effect", "rule", "remedy"].sort(),
    );
    expect(document.pools.map((row: { pool: string }) => row.pool)).toEqual(["root", "root.bi", "root.etl"]);
    expect(document.answer).toMatchObject({ user: "ana", pool: "root.default", hasAccess: true });
  });

  test("--user, --groups and --pool answer first", async () => {
    const { stdout } = await check("--fair-scheduler", CLEAN, "--user", "ben@R", "--groups", "x,y", "--pool", "a");
    expect(stdout.split("\n").slice(0, 4)).toEqual([
      "ben@R asking for pool a is refused",
      '  Rule specified with create="false" (line 1) says root.a.',
      "  No access list from root.a up to root lets the user in.",
      "  The client reads: Request from user 'ben@R' with requested pool 'a' denied access to assigned pool 'root.a'",
    ]);
  });

  test("more than five of one id in one file are counted", async () => {
    const many = write(
      "many.xml",
      `<allocations>${Array.from({ length: 8 }, (_, i) => `<queue name="q${i}"/>`).join("")}</allocations>`,
    );
    const { stdout } = await check("--fair-scheduler", many);
    expect(stdout.match(/R06 memory-unlimited/g)).toHaveLength(5);
    expect(stdout).toContain(`R06: 3 more in ${many}; --json has them all`);
  });

  test("a scenario gives cluster and traffic", async () => {
    const { stdout } = await check("--scenario", join(EXAMPLES, "dedicated-coordinator.yaml"));
    expect(stdout).toContain("hint C08 coordinator-share, root.dashboards");
    expect(stdout).toContain("13 would fit");
  });
});

describe("C04 with a scenario's hosts and --flag mem_limit", () => {
  const hosts = write(
    "hosts.json",
    JSON.stringify({
      name: "hosts",
      cluster: {
        executors: [{ count: 10, memory: "90gb", slots: 16 }],
        coordinators: [{ count: 1, on: "executor" }],
      },
      pools: "flags",
      queries: { q: { user: "ana", pool: "root.a", estimate: "1gb", duration: "1s" } },
      arrivals: [{ at: "0s", query: "q", count: 1 }],
    }),
  );
  const pool = (gigabytes: number): string =>
    write(
      `of-${gigabytes}.xml`,
      `<allocations><queue name="root"><queue name="a"><maxResources>${gigabytes * 1024} mb, 0 vcores</maxResources></queue></queue></allocations>`,
    );
  const finds = async (file: string, ...flags: string[]): Promise<boolean> => {
    const { stdout } = await check("--fair-scheduler", file, "--scenario", hosts, ...flags, "--json");
    return (JSON.parse(stdout) as { findings: { id: string }[] }).findings.some((f) => f.id === "C04");
  };

  test.each([
    [1000, ["--flag", "mem_limit=100gb"], true],
    [900, ["--flag", "mem_limit=100gb"], false],
    [1000, ["--flag", "mem_limit=90gb"], false],
    [1000, ["--flag", "mem_limit=80%"], false],
    [1000, [], false],
  ])("a pool of %i GB, ten hosts that give 90 GB, %j: %s", async (gigabytes, flags, is) => {
    expect(await finds(pool(gigabytes), ...flags)).toBe(is);
  });
});
