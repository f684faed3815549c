import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { readRecords } from "../../../src/surfaces/cli/records-file.ts";
import { type Outcome, testFolder, waterhole } from "./command-line.ts";

const EXAMPLES = resolve(import.meta.dirname, "../../../examples/dashboards");
const dir = testFolder();

const example = (name: string): string => join(EXAMPLES, name);
const scratch = (name: string): string => join(dir, name);

describe("waterhole simulate: the worked example and its variants (DESIGN 3)", () => {
  test.each([
    [
      "scenario.yaml",
      { admittedImmediately: 13, admittedFromQueue: 47, rejected: 0, timedOut: 0, peakRunning: 13, peakQueued: 47 },
    ],
    [
      "dedicated-coordinator.yaml",
      { admittedImmediately: 12, admittedFromQueue: 48, rejected: 0, timedOut: 0, peakRunning: 12, peakQueued: 48 },
    ],
    [
      "dropped-statistics.yaml",
      { admittedImmediately: 2, admittedFromQueue: 14, rejected: 8, timedOut: 36, peakRunning: 2, peakQueued: 50 },
    ],
  ])("%s", async (name, counts) => {
    const { code, stdout } = await waterhole("simulate", example(name), "--json", "--no-records");
    const json = JSON.parse(stdout);
    expect(json.pools["root.dashboards"]).toMatchObject(counts);
    expect(json.broken).toEqual([]);
    expect(code).toBe(0);
  });

  test("with records or without, the numbers are the same; the file repeats itself to the byte", async () => {
    const first = scratch("first.jsonl");
    const second = scratch("second.jsonl");
    const strip = (outcome: Outcome): unknown => ({ ...JSON.parse(outcome.stdout), records: null });
    const with1 = await waterhole("simulate", example("dropped-statistics.yaml"), "--json", "--records", first);
    await waterhole("simulate", example("dropped-statistics.yaml"), "--json", "--records", second);
    const without = await waterhole("simulate", example("dropped-statistics.yaml"), "--json", "--no-records");
    expect(strip(with1)).toEqual(strip(without));
    expect(readFileSync(first, "utf8")).toBe(readFileSync(second, "utf8"));
    const kinds = new Set<string>();
    const reader = await readRecords(first, (event) => kinds.add(event.kind));
    expect(reader.isComplete).toBe(true);
    expect(reader.header.pools.llamaSite?.text).toContain("llama.am");
    expect([...kinds]).toEqual(
      expect.arrayContaining(["submitted", "queued", "admitted", "rejected", "timedOut", "released"]),
    );
  });

  test("the seed of the command line goes before the file's", async () => {
    const { stdout } = await waterhole("simulate", example("scenario.yaml"), "--json", "--no-records", "--seed", "42");
    expect(JSON.parse(stdout).seed).toBe(42);
  });
});

describe("exit codes and streams", () => {
  const written = (name: string, text: string): string => {
    writeFileSync(scratch(name), text);
    return scratch(name);
  };
  const SMALL =
    "cluster: { executors: [{ memory: 10gb }] }\nqueries: { q: { estimate: 1gb, duration: 1s } }\narrivals: [{ at: 0s }]\n";

  test("a threshold that fails: 99, and the report says so", async () => {
    const file = written("fails.yaml", `${SMALL}thresholds: ["submitted == 2"]\n`);
    const { code, stdout, stderr } = await waterhole("simulate", file, "--no-records");
    expect(code).toBe(99);
    expect(stdout).toMatch(/FAIL {2}submitted == 2 {5}1 {2}1 under\n/);
    expect(stderr).toBe("");
  });

  test("a wrong scenario: 2, nothing on stdout, place and remedy on stderr, no stack", async () => {
    const file = written("wrong.yaml", `${SMALL}seeed: 3\n`);
    for (const flags of [[], ["--json"]]) {
      const { code, stdout, stderr } = await waterhole("simulate", file, ...flags);
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toBe(`${file}:4: unknown key "seeed" in the scenario.\nnext: Did you mean "seed"?\n`);
    }
  });

  test("several mistakes, each with its remedy", async () => {
    const file = written("several.yaml", `${SMALL}seeed: 3\nnane: x\n`);
    const { stderr } = await waterhole("simulate", file);
    expect(stderr).toBe(
      `${file}:4: unknown key "seeed" in the scenario. Did you mean "seed"?\n${file}:5: unknown key "nane" in the scenario. Did you mean "name"?\nnext: Did you mean "seed"?\n`,
    );
  });

  test.each([
    ["pool files that are missing", `${SMALL}pools: { fairScheduler: nothing.xml }\n`, "nothing.xml"],
    ["pool files that are broken", `${SMALL}pools: { fairScheduler: wrong.yaml }\n`, "wrong.yaml"],
    ["a flag of the wrong type", `${SMALL}flags: { queue_wait_timeout_ms: soon }\n`, "queue_wait_timeout_ms"],
  ])("%s: 2", async (_, text, told) => {
    written("wrong.yaml", "x");
    const { code, stderr } = await waterhole("simulate", written("files.yaml", text));
    expect(code).toBe(2);
    expect(stderr).toContain(told);
    expect(stderr).toMatch(/\nnext: .+\n$/);
    expect(stderr).not.toMatch(/\n {4}at /);
  });

  test("an unknown command or option: 2 with the nearest name", async () => {
    expect(await waterhole("simulat")).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining("Did you mean simulate?"),
    });
    expect(await waterhole("simulate", example("scenario.yaml"), "--sed", "3")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Did you mean --seed?"),
    });
    expect(await waterhole("simulate", example("scenario.yaml"), "--seed", "x")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Expected a whole number"),
    });
  });

  test("help and version: 0, on stdout", async () => {
    expect(await waterhole("--version")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
      stderr: "",
    });
    expect(await waterhole("--help")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("simulate"),
      stderr: "",
    });
  });

  test("a pipe gets no escape codes, --color gives them", async () => {
    const plain = await waterhole("simulate", example("scenario.yaml"), "--no-records");
    expect(plain.stdout).not.toContain("\x1b");
    const coloured = await waterhole("--color", "simulate", example("scenario.yaml"), "--no-records");
    expect(coloured.stdout).toContain("\x1b[1m");
  });

  test("a scenario whose user has no right to the pool ends without a rejection", async () => {
    const text = `${SMALL}pools: { fairScheduler: ${example("fair-scheduler.xml")}, llamaSite: ${example("llama-site.xml")} }\n`;
    const { code, stdout } = await waterhole("simulate", written("denied.yaml", text), "--json", "--no-records");
    expect(JSON.parse(stdout)).toMatchObject({ submitted: 1, unresolved: 1, pools: {} });
    expect(code).toBe(0);
  });
});

describe("what to look at after a wrong command", () => {
  test.each([
    [["eta", "x.yaml"], "waterhole eta --help"],
    [["--color", "import"], "waterhole import --help"],
    [["simulate", "x.yaml", "--jsn"], "waterhole simulate --help"],
    [["demo", "run", "--bogus"], "waterhole demo --help"],
    [["simulat"], "waterhole --help"],
  ])("%j: %s", async (args, next) => {
    const { code, stderr } = await waterhole(...args);
    expect(code).toBe(2);
    expect(stderr.endsWith(`next: ${next}\n`), stderr).toBe(true);
  });
});
