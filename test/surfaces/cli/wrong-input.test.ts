/**
 * What people get wrong, each once through the command line: exit code 2, the place and what to do on stderr, and
 * nothing on stdout, where a script would take it for the one JSON document (DESIGN 2).
 */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { testFolder, waterhole } from "./command-line.ts";

const EXAMPLES = resolve(import.meta.dirname, "../../../examples/dashboards");
const folder = testFolder();
const at = (name: string): string => join(folder, name);
const file = (name: string, content: string | Uint8Array): string => {
  writeFileSync(at(name), content);
  return at(name);
};

const SOUND = `cluster:
  executors: [{ count: 2, memory: 10gb }]
pools: { fairScheduler: fair-scheduler.xml, llamaSite: llama-site.xml }
queries:
  tile:
    pool: root.dashboards
    user: ana
    estimate: 1gb
    duration: 1s
arrivals: [{ at: 0s }]
`;
const SOUND_FAIR = `<allocations>
  <queue name="root">
    <queue name="dashboards"><aclSubmitApps>ana</aclSubmitApps></queue>
    <queue name="etl"/>
    <aclSubmitApps> </aclSubmitApps>
  </queue>
  <queuePlacementPolicy><rule name="specified" create="false"/><rule name="reject"/></queuePlacementPolicy>
</allocations>
`;
const SOUND_SITE = "<configuration></configuration>\n";

/** Bytes that are no text, and text that is nothing else; the same in every run. */
const TEN_MB = 10_000_000;
const bytes = new Uint8Array(TEN_MB).map((_, i) => (i * 2_654_435_761) >>> 24);
const letters = "lorem ipsum dolor sit amet ".repeat(TEN_MB / 27);

async function refused(args: readonly string[], place: string, problem: string | RegExp, remedy: string | RegExp) {
  const { code, stdout, stderr } = await waterhole(...args);
  expect([code, stdout]).toEqual([2, ""]);
  const [first = "", ...rest] = stderr.split("\n");
  expect(first.startsWith(`${place}: `), first).toBe(true);
  expect(first).toMatch(problem);
  expect(rest.join("\n")).toMatch(/^next: .+\n$/);
  expect(rest[0]).toMatch(remedy);
}

describe.each([
  ["simulate", ["--json", "--no-records"]],
  ["run", ["--json", "--no-records"]],
])("waterhole %s", (command, flags) => {
  const scenario = at("scenario.yaml");
  const begin = (path: string) => [command, path, ...flags];

  beforeAll(() => {
    file("fair-scheduler.xml", SOUND_FAIR);
    file("llama-site.xml", SOUND_SITE);
  });

  test("a file that is not there", () =>
    refused(begin(at("none.yaml")), at("none.yaml"), "there is no such file", "Check the path"));

  test.each([
    [
      "hosts: none at all",
      "[{ count: 2, memory: 10gb }]",
      "[]",
      2,
      "is an empty list. Expected a list of at least 1",
      "",
    ],
    [
      "more hosts than a run can hold",
      "count: 2,",
      "count: 100001,",
      1,
      "has 100001 hosts. Expected at most 100000",
      "Lower",
    ],
    ["hosts: a count of 0", "count: 2", "count: 0", 2, "count is 0. Expected a whole number from 1", "Write"],
    ["a negative size", "10gb", "-10gb", 2, "-10gb", "Write {2}memory: 1.5gb"],
    ["a negative size with a blank", "estimate: 1gb", "estimate: -1 gb", 8, "-1 gb", "Write {2}estimate: 1.5gb"],
    ["a negative time", "duration: 1s", "duration: -1s", 9, "-1s", "Write {2}duration: 30s"],
    ["a key that nobody knows", "duration:", "durration:", 9, 'unknown key "durration"', 'Did you mean "duration"'],
    ["a flag that nobody knows", SOUND, `${SOUND}flags: { queue_wait_timeout: 1 }\n`, 11, "unknown flag", "_ms"],
  ])("%s", (_, right, wrong, line, problem, remedy) =>
    refused(
      begin(file("scenario.yaml", SOUND.replace(right, wrong))),
      `${scenario}:${line}`,
      new RegExp(problem),
      new RegExp(remedy),
    ),
  );

  test.each([
    ["root.dashbords", 'Did you mean "root.dashboards"'],
    ["dashbords", 'Did you mean "root.dashboards"'],
    ["root.reports", "use one of root.dashboards, root.etl"],
  ])("a pool that is not declared, %s, and no rule that takes it elsewhere", (pool, remedy) =>
    refused(
      begin(file("scenario.yaml", SOUND.replace("root.dashboards", pool))),
      `${scenario}:6`,
      `pool "${pool}" of query class "tile" is not declared in ${at("fair-scheduler.xml")}`,
      remedy,
    ),
  );

  test.each([
    ["pool.root.dashbords.wait.p95 < 1s", "root.dashbords", 'Did you mean "root.dashboards"'],
    ["pool.root.nobody-knows-it.rejected == 0", "root.nobody-knows-it", "Ask about a pool of this scenario"],
  ])("a threshold on a pool that there is not: %s", (threshold, pool, remedy) =>
    refused(
      begin(file("scenario.yaml", `${SOUND}thresholds:\n  - rejected == 0\n  - ${threshold}\n`)),
      `${scenario}:13`,
      `threshold "${threshold}" asks about the pool "${pool}", which is not declared and which no class gets into`,
      remedy,
    ),
  );

  test.each([
    [
      "records",
      '{"kind":"header","format":"waterhole-records","version":1}',
      "the records of a run",
      "waterhole explain",
    ],
    ["trace", '{"format":"waterhole-trace","version":2}', "a trace", "arrivals: \\[\\{ trace: FILE \\}\\]"],
  ])("%s for a scenario", (_, header, is, remedy) =>
    refused(
      begin(file("ours.jsonl", `${header}\n${header}\n`)),
      `${at("ours.jsonl")}:1`,
      `this is ${is}. Expected a scenario`,
      new RegExp(remedy),
    ),
  );

  test.each([
    ["fair-scheduler.xml", "<allocations>\n<queue name='root'>\n</allocations>\n", ":3:1", "queue", "Close <queue>"],
    ["fair-scheduler.xml", bytes, ":1:1", "UTF-8", "Save the file as UTF-8"],
    ["fair-scheduler.xml", letters, ":1:1", "not allowed in prolog", "root element"],
    ["llama-site.xml", "<configuration>\n<property>\n</configuration>\n", ":3:1", "close tag", "Close <property>"],
    ["llama-site.xml", bytes, ":1", "UTF-8", "Save the file as UTF-8"],
    ["llama-site.xml", letters, ":1:1", "prolog", "root element"],
  ])("%s that is broken (%#)", async (name, content, place, problem, remedy) => {
    file("scenario.yaml", SOUND);
    await refused(begin(scenario), `${file(name, content)}${place}`, problem, remedy);
    file("fair-scheduler.xml", SOUND_FAIR);
    file("llama-site.xml", SOUND_SITE);
  });

  test.each(["fair-scheduler.xml", "llama-site.xml"])("%s that is not there", (name) =>
    refused(
      begin(file("scenario.yaml", SOUND.replace(name, "none.xml"))),
      at("none.xml"),
      "there is no such file",
      "Check the path",
    ),
  );

  test.each([
    ["bytes", bytes],
    ["text", letters],
  ])("10 MB of %s for a scenario", (_, content) =>
    refused(begin(file("garbage.yaml", content)), at("garbage.yaml"), /the file has 9.5 MB/, "trace:"),
  );

  test.each([
    ["bytes", bytes, "", "not text", "Check the path"],
    ["text", letters, ":1", "this is no scenario", "examples"],
  ])("1 MB of %s for a scenario", (_, content, line, problem, remedy) =>
    refused(begin(file("garbage.yaml", content.slice(0, 1_000_000))), `${at("garbage.yaml")}${line}`, problem, remedy),
  );
});

describe("thresholds on pools that somebody gets into", () => {
  const simulated = (text: string) => waterhole("simulate", "--no-records", "--json", file("scenario.yaml", text));

  test.each([
    ["one that is declared and stays empty", SOUND, "root.etl", 99],
    ["default-pool of the flags", SOUND.replace(/^pools:.*\n/m, ""), "default-pool", 0],
  ])("%s", async (_, text, pool, code) => {
    file("fair-scheduler.xml", SOUND_FAIR);
    file("llama-site.xml", SOUND_SITE);
    const outcome = await simulated(`${text}thresholds: ["pool.${pool}.wait.max < 1s"]\n`);
    expect(outcome.code, outcome.stderr).toBe(code);
  });

  test("one that a rule makes when a request names it", async () => {
    file("fair-scheduler.xml", SOUND_FAIR.replace('create="false"', 'create="true"').replace("> <", ">*<"));
    const text = SOUND.replace("root.dashboards", "root.made");
    const { code, stderr } = await simulated(`${text}thresholds: [pool.root.made.rejected == 0]\n`);
    expect(code, stderr).toBe(0);
    file("fair-scheduler.xml", SOUND_FAIR);
  });
});

describe("numbers on the command line", () => {
  const option = (flag: string, value: string, expected: string) =>
    `error: option '${flag}' argument '${value}' is invalid. Expected ${expected}.\n`;

  test.each([
    ["simulate", "--seed", "--seed <number>", "", "a whole number from 0 to 4294967295"],
    ["size", "--loss", "--loss <share>", " ", "a number from 0 to 1"],
    ["size", "--loss", "--loss <share>", "1.01", "a number from 0 to 1"],
    ["size", "--days", "--days <number>", "", "a whole number from 1 on"],
    ["size", "--threads", "--threads <number>", "257", "a whole number from 1 to 256"],
  ])("%s %s: what is none, or none that can be, is refused", async (command, name, flag, value, expected) => {
    const { code, stdout, stderr } = await waterhole(command, at("scenario.yaml"), name, value);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toBe(`${option(flag, value, expected)}next: waterhole ${command} --help\n`);
  });
});

describe("waterhole explain and replay", () => {
  const records = at("records.jsonl");
  beforeAll(async () => {
    await waterhole("simulate", join(EXAMPLES, "scenario.yaml"), "--records", records);
  });

  describe.each([
    ["explain", ["zzz", "--json"]],
    ["replay", ["--json"]],
  ])("%s", (command, rest) => {
    test.each([
      ["a file that is not there", () => at("none.jsonl"), "", "there is no such file", "Check the path"],
      ["a scenario", () => join(EXAMPLES, "scenario.yaml"), ":1", "this is no records file", "waterhole run"],
      ["10 MB of bytes", () => file("garbage.jsonl", bytes), ":1", "this is no records file", "waterhole run"],
      ["10 MB of text", () => file("garbage.jsonl", letters), ":1", "this is no records file", "waterhole run"],
    ])("%s", (_, path, line, problem, remedy) =>
      refused([command, path(), ...rest], `${path()}${line}`, problem, remedy),
    );
  });

  test("a query that is not there", () =>
    refused(
      ["explain", records, "zzz", "--json"],
      records,
      'no query "zzz"',
      /Queries of this run are, for instance, [0-9a-f]{16}:[0-9a-f]{16}, /,
    ));
});

describe("users without the right to their pool are part of the run", () => {
  test("the report says what their clients read, how often, and how to find out why", async () => {
    file("fair-scheduler.xml", SOUND_FAIR);
    file("llama-site.xml", SOUND_SITE);
    const text = SOUND.replace("user: ana", "user: [zoe, ana, ben]").replace("at: 0s", "at: 0s, count: 9");
    const path = file("scenario.yaml", text);
    const { code, stdout, stderr } = await waterhole("simulate", path, "--no-records");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("3 finished, 6 refused before admission");
    for (const user of ["zoe", "ben"]) {
      const told = `3  tile, before admission: Request from user '${user}' with requested pool 'root.dashboards' denied access to assigned pool 'root.dashboards'`;
      expect(stdout.replaceAll(/\n {6}(?!next)/g, " ")).toContain(told);
      expect(stdout).toContain(
        `      next: waterhole check --scenario ${path} --user ${user} --pool root.dashboards\n`,
      );
    }
  });

  test("--json has them by class", async () => {
    const path = file("scenario.yaml", SOUND.replace("user: ana", "user: zoe"));
    const { stdout } = await waterhole("simulate", path, "--json", "--no-records");
    expect(JSON.parse(stdout)).toMatchObject({
      unresolved: 1,
      earlyRefusals: [{ queryClass: "tile", count: 1, user: "zoe", pool: "", firstAtMs: 0 }],
    });
  });

  test("very many users: the first five texts, the rest as a number", async () => {
    const users = Array.from({ length: 120 }, (_, i) => `u${i}`).join(", ");
    const text = SOUND.replace("user: ana", `user: [${users}]`).replace("at: 0s", "at: 0s, count: 240");
    const { stdout } = await waterhole("simulate", file("scenario.yaml", text), "--no-records");
    expect(stdout.match(/tile, before admission/g)).toHaveLength(5);
    expect(stdout).toMatch(/^ 230 {2}more before admission, with other errors$/m);
  });

  test("a pool that is declared later in the run is no mistake", async () => {
    file("later.xml", SOUND_FAIR.replace('name="etl"', 'name="reports"'));
    const path = file(
      "scenario.yaml",
      `${SOUND.replace("root.dashboards", "root.reports").replace("at: 0s", "at: 0s, count: 2, within: 100s")}faults: [{ at: 10s, fault: configChanges, fairScheduler: later.xml }]\n`,
    );
    const { code, stdout } = await waterhole("simulate", path, "--no-records");
    expect([code, stdout]).toEqual([0, expect.stringContaining("2 queries in")]);
  });
});
