/**
 * The whole way round: a run written as a query log, the log replayed as a trace, its run written again.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { DEFAULT_DEMAND, type Demand, demandOf } from "../../../src/workload/query-log/demand.ts";
import { readQueryLog } from "../../../src/workload/query-log/read-query-log.ts";
import { testFolder, waterhole } from "./command-line.ts";

const EXAMPLES = resolve(import.meta.dirname, "../../../examples/dashboards");
const dir = testFolder();

const POOLS = `pools: { fairScheduler: ${join(EXAMPLES, "fair-scheduler.xml")}, llamaSite: ${join(EXAMPLES, "llama-site.xml")} }`;
const CLUSTER = `cluster:
  executors: [{ count: 10, memory: 100gb, slots: 16 }]
  coordinators: [{ count: 1, on: executor }]`;

const MIXED = `${CLUSTER}
${POOLS}
queries:
  tile: { pool: root.dashboards, user: ana, estimate: 1.5gb, duration: { exponential: { mean: 4s } }, uses: { peak: 1.2gb } }
  large: { pool: root.dashboards, user: ana, estimate: 3gb, duration: 9s, uses: { peak: 1gb }, options: { mem_limit: 2gb } }
arrivals:
  # The trace counts from its first arrival; at 0 the topic's rounds fall on the same moments in the replay.
  - { at: 0s, query: tile, count: 1 }
  - { rate: 4, query: { tile: 0.8, large: 0.2 }, from: 0s, to: 120s }
  - { at: 30s, query: tile, count: 90 }
`;

const REPLAY = (log: string): string => `${CLUSTER}
${POOLS}
queries:
  unused: { pool: root.dashboards, estimate: 1gb, duration: 1s }
arrivals:
  - { trace: ${log} }
`;

function file(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
}

const demandIn = async (log: string): Promise<Demand> => demandOf(await readQueryLog(log), DEFAULT_DEMAND);

describe("surfaces 10 item 14: export, import, replay, export again", () => {
  test.each([
    ["first.csv", "distributed"],
    ["first.jsonl", "distributed"],
    // Here a coordinator hears of an admission later, and its timeline tells when it heard (7.7, 10.3).
    ["heard.csv", "admissiond"],
  ])("the same requests, waits, holds and amounts through %s, %s", async (name, admission) => {
    const under = (text: string): string => text.replace("cluster:\n", `cluster:\n  admission: ${admission}\n`);
    const first = join(dir, name);
    const second = join(dir, `second-${name}`);
    const run = await waterhole("simulate", file("mixed.yaml", under(MIXED)), "--no-records", "--query-log", first);
    expect(run.stderr).toBe("");
    const one = await demandIn(first);
    expect(one.requests.length).toBeGreaterThan(400);
    expect(new Set(one.requests.map((r) => r.recorded.outcome))).toEqual(
      new Set(["immediately", "fromQueue", "rejected"]),
    );
    const replay = await waterhole(
      "simulate",
      file("replay.yaml", under(REPLAY(first))),
      "--no-records",
      "--query-log",
      second,
    );
    expect(replay.stderr).toBe("");
    const two = await demandIn(second);
    // Refused queries have no hold in any log; a finished one stands in, and which one is a matter of rows.
    const comparable = (d: Demand): object[] =>
      d.requests.map((r) => ({
        ...r,
        queryId: "",
        queryClass: "",
        hold: r.guessed.includes("hold") ? "guessed" : r.hold,
      }));
    expect(comparable(two)).toEqual(comparable(one));
  });

  test("with and without the export a run has the same numbers", async () => {
    const path = file("mixed.yaml", MIXED);
    const plain = await waterhole("simulate", path, "--no-records", "--json");
    const logged = await waterhole("simulate", path, "--no-records", "--json", "--query-log", join(dir, "x.csv"));
    expect(plain.code).toBe(0);
    expect(logged.stdout).toBe(plain.stdout);
  });

  test("import reads it, prints the table, and says what comes next", async () => {
    const log = join(dir, "again.csv");
    await waterhole("simulate", file("mixed.yaml", MIXED), "--no-records", "--query-log", log);
    const { code, stdout } = await waterhole(
      "import",
      log,
      "--fair-scheduler",
      join(EXAMPLES, "fair-scheduler.xml"),
      "--llama-site",
      join(EXAMPLES, "llama-site.xml"),
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/^.*again\.csv: query log table, \d+ statements/);
    expect(stdout).toMatch(/the amounts admitted agree with the pool files in all \d+ rows/);
    expect(stdout).toMatch(/next: write {2}arrivals: \[\{ trace: .*again\.csv \}\]/);
    const json = await waterhole("import", log, "--json");
    expect(JSON.parse(json.stdout).pools[0]).toMatchObject({ pool: "root.dashboards" });
  });

  test("a log explains its own waits on its own pools, and not on others (insight 4.6)", async () => {
    const log = join(dir, "own.csv");
    const scenario = file("mixed.yaml", MIXED);
    await waterhole("simulate", scenario, "--no-records", "--query-log", log);
    const own = await waterhole("import", log, "--scenario", scenario);
    expect(own.stdout).toContain("replayed on the scenario it waits as it did");
    const wider = file("wider.yaml", MIXED.replace("count: 10, memory: 100gb", "count: 10, memory: 10gb"));
    const other = await waterhole("import", log, "--scenario", wider);
    expect(other.stdout).toMatch(
      /^THIS LOG DOES NOT EXPLAIN ITS OWN WAITS.*hour 0 of root\.dashboards: \d+ % waited, replayed \d+ %/,
    );
    const json = JSON.parse((await waterhole("import", log, "--scenario", scenario, "--json")).stdout);
    expect(json.acceptance.failed).toEqual([]);
    expect(json.acceptance.hours[0].requests).toBeGreaterThanOrEqual(200);
  });

  test("a wrong file ends with code 2, its place and a remedy", async () => {
    const { code, stderr } = await waterhole("import", file("no.csv", "a,b\n1,2\n"));
    expect(code).toBe(2);
    expect(stderr).toMatch(/no\.csv:1: no query log begins with "a,b"\.\nnext: Expected is a query log table/);
    const unwritable = await waterhole(
      "simulate",
      file("mixed.yaml", MIXED),
      "--no-records",
      "--query-log",
      "/nowhere/x.csv",
    );
    expect(unwritable.code).toBe(2);
    expect(unwritable.stderr).toMatch(/the query log cannot be written/);
  });

  test("the text is the product's: a rejected query's row", async () => {
    const log = join(dir, "texts.csv");
    await waterhole("simulate", file("mixed.yaml", MIXED), "--no-records", "--query-log", log);
    expect(readFileSync(log, "utf8")).toContain(
      '"Rejected query from pool root.dashboards: queue full, limit=50, num_queued=50."',
    );
  });
});
