import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { testFolder, waterhole } from "./command-line.ts";

const EXAMPLES = resolve(import.meta.dirname, "../../../examples/dashboards");
const dir = testFolder();
const RECORDS = join(dir, "dropped.jsonl");

beforeAll(async () => {
  await waterhole("simulate", join(EXAMPLES, "dropped-statistics.yaml"), "--records", RECORDS);
});

describe("waterhole compare (insight 7)", () => {
  test("a simulated run is foretold exactly: exit 0, every bar ok", async () => {
    const { code, stdout } = await waterhole("compare", RECORDS);
    expect(code).toBe(0);
    expect(stdout).toContain("60 queries of a virtual run, foretold from their arrivals and measured holds");
    expect(stdout).toMatch(/^mean wait +14\.350 s +14\.350 s/m);
    expect(stdout).toMatch(/^ok {6}mean wait +0\.00 %, bar 1\.7 %$/m);
    expect(stdout).not.toContain("missed");
    expect(stdout).toMatch(/^start-up .* in the holds/m);
  });

  test("--json is one document with the bars and the causes", async () => {
    const { stdout } = await waterhole("compare", RECORDS, "--json");
    const document = JSON.parse(stdout);
    expect(document).toMatchObject({ mode: "virtual", queries: 60, holds: true });
    expect(document.pools[0]).toMatchObject({ pool: "root.dashboards", submitted: 60, meanHold: 4000 });
    expect(document.causes.causes).toHaveLength(5);
  });

  test("a run that waited otherwise than the rules say: exit 99, and what missed", async () => {
    const path = join(dir, "late.jsonl");
    // Nobody heard of an admission until a second later, so the records say.
    const lines = readFileSync(RECORDS, "utf8")
      .split("\n")
      .map((line) => {
        if (!line.includes('"kind":"admitted"')) return line;
        const event = JSON.parse(line);
        return JSON.stringify(event.path === "fromQueue" ? { ...event, at: event.at + 1000 } : event);
      });
    writeFileSync(path, lines.join("\n"));
    const { code, stdout } = await waterhole("compare", path);
    expect(code).toBe(99);
    expect(stdout).toMatch(/^missed {2}mean wait/m);
  });

  test("records without a query of a pool: exit 2 and what to do", async () => {
    const path = join(dir, "empty.jsonl");
    writeFileSync(path, `${readFileSync(RECORDS, "utf8").split("\n")[0]}\n`);
    const { code, stderr } = await waterhole("compare", path);
    expect(code).toBe(2);
    expect(stderr).toContain("no query of this run reached a pool");
  });

  test("no such file, or none of ours: exit 2", async () => {
    expect((await waterhole("compare", join(dir, "none.jsonl"))).code).toBe(2);
    const path = join(dir, "text.jsonl");
    writeFileSync(path, "hello\n");
    expect((await waterhole("compare", path)).code).toBe(2);
  });
});
