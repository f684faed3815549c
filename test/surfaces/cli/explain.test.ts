import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { readRecords } from "../../../src/surfaces/cli/records-file.ts";
import { testFolder, waterhole } from "./command-line.ts";

const EXAMPLES = resolve(import.meta.dirname, "../../../examples/dashboards");
const dir = testFolder();

const RECORDS = join(dir, "dropped.jsonl");
/** Ids by how the query ended, in order. */
const ids: Record<string, string[]> = {};

beforeAll(async () => {
  await waterhole("simulate", join(EXAMPLES, "dropped-statistics.yaml"), "--records", RECORDS);
  await readRecords(RECORDS, (event) => {
    if ("query" in event) ids[event.kind] = [...(ids[event.kind] ?? []), event.query];
  });
});

const golden = (name: string): string => `../../golden/${name}.txt`;

describe("waterhole explain: the product's lines, and why", () => {
  test("a query that was admitted from the queue", async () => {
    const { code, stdout } = await waterhole("explain", RECORDS, ids.admitted?.at(-1) ?? "");
    expect(code).toBe(0);
    await expect(stdout).toMatchFileSnapshot(golden("explain-from-queue"));
  });

  test("a query that timed out behind the head", async () => {
    const { stdout } = await waterhole("explain", RECORDS, ids.timedOut?.at(-1) ?? "");
    await expect(stdout).toMatchFileSnapshot(golden("explain-timed-out"));
  });

  test("a query that was rejected", async () => {
    const { stdout } = await waterhole("explain", RECORDS, ids.rejected?.[0] ?? "");
    await expect(stdout).toMatchFileSnapshot(golden("explain-rejected"));
  });

  test("the whole profile, as Impala prints it", async () => {
    const { stdout } = await waterhole("explain", RECORDS, ids.admitted?.[0] ?? "", "--profile");
    await expect(stdout).toMatchFileSnapshot(golden("profile-admitted"));
  });

  test("a query whose user has no right to the pool", async () => {
    const scenario = join(dir, "denied.yaml");
    writeFileSync(
      scenario,
      readFileSync(join(EXAMPLES, "scenario.yaml"), "utf8")
        .replace("user: ana", "user: zoe")
        .replaceAll(/(fair-scheduler|llama-site)\.xml/g, `${EXAMPLES}/$1.xml`),
    );
    const records = join(dir, "denied.jsonl");
    await waterhole("simulate", scenario, "--records", records);
    const text = readFileSync(records, "utf8");
    const query = /"query":"([0-9a-f:]+)"/.exec(text)?.[1] ?? "";
    const { stdout } = await waterhole("explain", records, query);
    expect(stdout).toContain(
      "Request from user 'zoe' with requested pool 'root.dashboards' denied access to assigned pool 'root.dashboards'",
    );
    expect(stdout).not.toContain("Admission result");
  });

  test("--json is one document with the profile in it", async () => {
    const { stdout } = await waterhole("explain", RECORDS, ids.admitted?.[0] ?? "", "--json");
    const json = JSON.parse(stdout);
    expect(json).toMatchObject({
      query: ids.admitted?.[0],
      decision: { kind: "admitted" },
      charge: { perHostSource: "POOL_CONFIG_MAX_QUERY_MEM_LIMIT" },
    });
    expect(json.profile).toContain("Admission result: Admitted immediately");
  });
});

describe("what cannot be explained", () => {
  test("a query that is not there: 2, with some that are", async () => {
    const { code, stdout, stderr } = await waterhole("explain", RECORDS, "zzz");
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(
      /there is no query "zzz" in this run\.\nnext: Queries of this run are, for instance, [0-9a-f:]+, /,
    );
  });

  test("the beginning of several ids", async () => {
    const { code, stderr } = await waterhole("explain", RECORDS, "");
    expect(code).toBe(2);
    expect(stderr).toContain("Give more of the id");
  });

  test.each([
    ["no such file", "none.jsonl", "there is no such file"],
    ["another file", "other.yaml", "this is no records file"],
  ])("%s", async (_, name, problem) => {
    writeFileSync(join(dir, "other.yaml"), "name: x\n");
    const { code, stderr } = await waterhole("explain", join(dir, name), "a");
    expect(code).toBe(2);
    expect(stderr).toContain(problem);
  });
});

describe("waterhole explain: a query that memory failed", () => {
  test("no host is said to have used nothing where nobody told", async () => {
    const scenario = join(dir, "failing.yaml");
    writeFileSync(
      scenario,
      `cluster: { executors: [{ count: 2, memory: 10gb }] }
queries: { a: { estimate: 1gb, duration: 4s, uses: { peak: 2gb, spillable: false } } }
flags: { default_pool_mem_limit: 80gb } # without it no limit is enforced (MEM-9)
arrivals: [{ at: 0s }]
`,
    );
    const records = join(dir, "failing.jsonl");
    await waterhole("simulate", scenario, "--records", records);
    let query = "";
    await readRecords(records, (event) => {
      if (event.kind === "released") query = event.query;
    });
    const { stdout } = await waterhole("explain", records, query);
    // Of 1 GB reservations have 0.8 (R8).
    expect(stdout).toContain("used at most                819.20 MB  on one host");
    expect(stdout).toMatch(/HOST .* STARTED {2}ENDED {2}PEAK {2}SPILLED\n {2}exec-1 .* 0s {6}- {5}- {8}-\n/);
    const profile = await waterhole("explain", records, query, "--profile");
    expect(profile.stdout).toContain("Per Node Profiles:");
    expect(profile.stdout).not.toMatch(/Per Node Peak|PeakMemoryUsage|ScratchBytesWritten/);
  });
});
