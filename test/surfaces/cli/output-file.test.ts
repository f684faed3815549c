/**
 * What commands write (DESIGN 2, STYLE 6): never over what they read, never two things into one file, and a disk that
 * is full is said to be.
 */
import { existsSync, linkSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { testFolder, waterhole } from "./command-line.ts";

const EXAMPLES = resolve(import.meta.dirname, "../../../examples/dashboards");
const folder = testFolder();
const at = (name: string): string => join(folder, name);

const INPUTS = ["scenario.yaml", "fair-scheduler.xml", "llama-site.xml"] as const;
const textOf = (name: string): string => readFileSync(join(EXAMPLES, name), "utf8");
const scenario = at("scenario.yaml");
/** A file that takes nothing, whoever writes. */
const FULL = "/dev/full";

beforeEach(() => {
  for (const name of INPUTS) writeFileSync(at(name), textOf(name));
});

async function refused(args: readonly string[], place: string, problem: string, remedy: string) {
  expect(await waterhole(...args)).toEqual({
    code: 2,
    stdout: "",
    stderr: `${place}: ${problem}.\nnext: ${remedy}\n`,
  });
}

describe.each(["simulate", "run"])("%s writes over nothing that it reads", (command) => {
  test.each(INPUTS)("records that would be %s", async (input) => {
    await refused(
      [command, scenario, "--records", at(input)],
      at(input),
      "the records would take the place of a file that is read",
      "Name another file with  --records FILE",
    );
    expect(readFileSync(at(input), "utf8")).toBe(textOf(input));
  });

  test("a query log under another name of the scenario", async () => {
    for (const [name, make] of [
      ["link.csv", symlinkSync],
      ["hard.csv", linkSync],
    ] as const) {
      if (!existsSync(at(name))) make(scenario, at(name));
      await refused(
        [command, scenario, "--no-records", "--query-log", at(name)],
        at(name),
        "the query log would take the place of a file that is read",
        "Name another file with  --query-log FILE",
      );
    }
  });

  test("records and query log in one file, which is not there yet", async () => {
    mkdirSync(at("out"), { recursive: true });
    await refused(
      [command, scenario, "--records", at("out/one"), "--query-log", join(folder, "out/../out/one")],
      at("out/one"),
      "the query log and the records cannot be one file",
      "Name another file with  --query-log FILE",
    );
    expect(existsSync(at("out/one"))).toBe(false);
  });

  test("a name that is empty, as from a variable that is not set", () =>
    refused([command, scenario, "--records", ""], "--records", "the name of the file is empty", "Give a name."));

  test("a folder that is none", () =>
    refused(
      [command, scenario, "--query-log", at("none/log.csv")],
      at("none/log.csv"),
      "the query log cannot be written: there is no such folder",
      "Name another file with  --query-log FILE",
    ));
});

describe("what cannot be written is told with its reason, not as a fault of ours", () => {
  test("a folder in the place of the file", () =>
    refused(
      ["simulate", scenario, "--records", folder],
      folder,
      "the records cannot be written: it is a folder",
      "Name another file with  --records FILE, or write none with  --no-records",
    ));

  test.skipIf(!existsSync(FULL)).each([
    ["--records", "the records", ", or write none with  --no-records"],
    ["--query-log", "the query log", ""],
  ])("%s on a disk that is full", (flag, what, none) =>
    refused(
      ["simulate", scenario, "--no-records", flag, FULL],
      FULL,
      `${what} cannot be written in full: no space is left there`,
      `Make room, or name another file with  ${flag} FILE${none}`,
    ),
  );
});

describe("import and size write over nothing that they read", () => {
  const log = at("log.csv");
  beforeEach(async () => {
    await waterhole("simulate", scenario, "--no-records", "--query-log", log);
  });

  test.each([
    ["--trace", "log.csv", "the trace"],
    ["--classes", "log.csv", "the scenario"],
    ["--trace", "fair-scheduler.xml", "the trace"],
    ["--trace", "scenario.yaml", "the trace"],
  ])("import %s %s", async (flag, name, what) => {
    const before = readFileSync(at(name), "utf8");
    await refused(
      ["import", log, "--scenario", scenario, flag, at(name)],
      at(name),
      `${what} would take the place of a file that is read`,
      `Name another file with  ${flag} FILE`,
    );
    expect(readFileSync(at(name), "utf8")).toBe(before);
  });

  test("a trace may take the place of the one that the scenario would have played: the log is played", async () => {
    writeFileSync(at("old.jsonl"), "");
    writeFileSync(at("traced.yaml"), textOf("scenario.yaml").replace(/- \{ at: 0s.*/, "- { trace: old.jsonl }"));
    const { code } = await waterhole("import", log, "--scenario", at("traced.yaml"), "--trace", at("old.jsonl"));
    expect(code).toBe(0);
    expect(readFileSync(at("old.jsonl"), "utf8")).toMatch(/^\{"format":"waterhole-trace"/);
  });

  test("size --out", () =>
    refused(
      ["size", scenario, "--shard", "0/2", "--out", scenario],
      scenario,
      "the shard would take the place of a file that is read",
      "Name another file with  --out FILE",
    ));
});
