import { readFileSync, rmSync, writeFileSync } from "node:fs";
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
    expect(document.pools[0]).toMatchObject({ pool: "root.dashboards", submitted: 60, meanHoldMs: 4000 });
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

  describe("pools that changed on the way", () => {
    const path = join(dir, "changed.jsonl");
    const later = join(dir, "later.xml");
    const allocations = (memory: string): string =>
      `<allocations><queue name="root"><queue name="a"><maxResources>${memory}, 0 vcores</maxResources></queue></queue></allocations>`;

    beforeAll(async () => {
      writeFileSync(join(dir, "first.xml"), allocations("8000 mb"));
      writeFileSync(later, allocations("2500 mb"));
      const scenario = {
        cluster: {
          executors: [{ count: 2, memory: "100gb", slots: 16 }],
          coordinators: [{ on: "dedicated", count: 1 }],
        },
        pools: { fairScheduler: "first.xml" },
        queries: { q: { pool: "root.a", estimate: "1gb", uses: { peak: "1mb" }, duration: "900ms" } },
        arrivals: [{ every: "500ms", query: "q", count: 120 }],
        faults: [{ fault: "configChanges", at: "10s", fairScheduler: "later.xml" }],
      };
      writeFileSync(join(dir, "changed.json"), JSON.stringify(scenario));
      await waterhole("simulate", join(dir, "changed.json"), "--records", path);
    });

    test("by plan: the run's own limits count, whatever has become of the files since", async () => {
      rmSync(later);
      const { code, stdout } = await waterhole("compare", path);
      expect(stdout).toMatch(/^ok {6}mean wait +0\.00 %/m);
      // Noticed at 20 s: 41 came while there was room for three, 79 with room for one: 0.9 s (41/3 + 79) in 59.5 s.
      expect(stdout).toContain("load 1.40");
      expect(code).toBe(0);
    });

    test("by somebody who edited them: no fault tells of it, the calls do", async () => {
      const [header, ...events] = readFileSync(path, "utf8").split("\n");
      const { scenario, ...rest } = JSON.parse(header!);
      const { faults: _, ...told } = JSON.parse(scenario.text);
      const edited = join(dir, "edited.jsonl");
      const line = JSON.stringify({ ...rest, scenario: { ...scenario, text: JSON.stringify(told) } });
      writeFileSync(edited, [line, ...events].join("\n"));
      const { code, stdout } = await waterhole("compare", edited);
      expect(stdout).toMatch(/^ok {6}mean wait +0\.00 %/m);
      expect(stdout).toMatch(/^waited +[1-9]/m);
      expect(code).toBe(0);
    });
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
