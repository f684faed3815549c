import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { testFolder, waterhole } from "./command-line.ts";

const EXAMPLES = resolve(import.meta.dirname, "../../../examples/dashboards");
const dir = testFolder();
const RECORDS = join(dir, "dropped.jsonl");

/** The records with every line that has `from` changed. */
function changed(name: string, from: string | RegExp, to: string): string {
  const path = join(dir, name);
  writeFileSync(path, readFileSync(RECORDS, "utf8").replaceAll(from, to));
  return path;
}

beforeAll(async () => {
  await waterhole("simulate", join(EXAMPLES, "dropped-statistics.yaml"), "--records", RECORDS);
});

describe("waterhole replay", () => {
  test("the same decisions: exit 0 and their number", async () => {
    const { code, stdout } = await waterhole("replay", RECORDS);
    expect(code).toBe(0);
    // 60 submissions and 14 that passes let in.
    expect(stdout).toMatch(/^Same: 74 decisions in \d+ calls to 1 controller of a virtual run\.\n$/);
  });

  test("--json is one document", async () => {
    const { stdout } = await waterhole("replay", RECORDS, "--json");
    expect(JSON.parse(stdout)).toMatchObject({ same: true, decisions: 74, controllers: 1, difference: null });
  });

  test("a difference: exit 1, both answers, and the state", async () => {
    const { code, stdout } = await waterhole("replay", changed("lie.jsonl", '"maxQueued":50', '"maxQueued":49'));
    expect(code).toBe(1);
    expect(stdout).toContain("Different after 52 decisions");
    expect(stdout).toContain('"state":"queued"');
    expect(stdout).toContain('"rule":"REJ-A5"');
    expect(stdout).toContain("root.dashboards: running 2 here");
  });

  test("a difference as JSON: the state has its pools and hosts", async () => {
    const { stdout } = await waterhole("replay", changed("told.jsonl", '"maxQueued":50', '"maxQueued":49'), "--json");
    const { same, difference } = JSON.parse(stdout);
    expect(same).toBe(false);
    expect(difference).toMatchObject({ recorded: { state: "queued" }, replayed: { rejectReason: { rule: "REJ-A5" } } });
    expect(difference.state.pools).toContainEqual(expect.objectContaining({ pool: "root.dashboards", running: 2 }));
    // Statistics dropped: 8 GB on each of the ten hosts for each of the two that run.
    expect(difference.state.hosts).toHaveLength(10);
    for (const host of difference.state.hosts) expect(host.memAdmittedBytes).toBe(2 * 8 * 1024 ** 3);
  });

  test("records without controller calls: exit 2 and what to do", async () => {
    const { code, stderr } = await waterhole("replay", changed("old.jsonl", "controllerCall", "somethingElse"));
    expect(code).toBe(2);
    expect(stderr).toContain("Record the run again");
  });

  test("records without an end: what is there is gone through, and the note is on standard error", async () => {
    const lines = readFileSync(RECORDS, "utf8").split("\n");
    const path = join(dir, "stopped.jsonl");
    writeFileSync(path, `${lines.slice(0, 200).join("\n")}\n${lines[200]!.slice(0, 20)}`);
    const { code, stdout, stderr } = await waterhole("replay", path, "--json");
    expect(code).toBe(0);
    expect(stderr).toMatch(/^note: .*stopped\.jsonl has no end: the run was stopped, or the file was cut off\./);
    expect(JSON.parse(stdout)).toMatchObject({ same: true, isComplete: false });
    expect((await waterhole("compare", path)).stderr).toMatch(/^note: .*stopped\.jsonl has no end/);
    expect((await waterhole("replay", RECORDS)).stderr).toBe("");
  });

  test("no such file: exit 2", async () => {
    expect((await waterhole("replay", join(dir, "none.jsonl"))).code).toBe(2);
  });
});
