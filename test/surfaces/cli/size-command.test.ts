import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { parseShard } from "../../../src/surfaces/cli/size-shards.ts";
import { testFolder, waterhole } from "./command-line.ts";

const EXAMPLES = resolve(import.meta.dirname, "../../../examples/dashboards");
const dir = testFolder();

function file(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
}

const HEAD = `cluster:
  executors: [{ count: 10, memory: 100gb, slots: 16 }]
  coordinators: [{ count: 1, on: executor }]
pools: { fairScheduler: ${join(EXAMPLES, "fair-scheduler.xml")}, llamaSite: ${join(EXAMPLES, "llama-site.xml")} }
queries:
  tile: { pool: root.dashboards, user: ana, estimate: 1.5gb, duration: { exponential: { mean: 4s } }, uses: { peak: 1.1gb } }
`;
const SCENARIO = file("scenario.yaml", `${HEAD}arrivals: [{ rate: 3, query: tile, from: 0s, to: 200s }]\n`);
const ASKED = [
  "--days",
  "2",
  "--memory",
  "170gb,190gb,200gb,215gb,230gb",
  "--running",
  "12,20,-1",
  "--queued",
  "30,50,97",
  "--p95",
  "6s",
  "--loss",
  "0.01",
];

describe("waterhole size", () => {
  test("the table, the two sentences, relief and the patch", async () => {
    const { code, stdout, stderr } = await waterhole("size", SCENARIO, ...ASKED, "--threads", "1");
    expect(stderr).toBe("");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^root\.dashboards: \d+ requests a day, 2 days; goal p95 6\.00 s/);
    expect(stdout).toMatch(/\nnow +195\.3 GiB +20 +50 +30\.0 s/);
    expect(stdout).toMatch(/\nGive root\.dashboards |\nLeave root\.dashboards /);
    expect(stdout).toMatch(/\nnow with one more running: no difference/);
    expect(stdout).toMatch(/\ntried \d+ settings: /);
    expect(stdout).toMatch(/\n-.*200000 mb.*\n\+.*<maxResources>\d+ mb, 0 vcores/);
  });

  test("insight 3.2: other pools' limits count, and what they leave no room for is not tried", async () => {
    // Ten hosts of 100 GiB; root.etl, which has no traffic here, is promised 600000 mb: 1000 - 585.94 = 414.06 GiB.
    const asked = ["--memory", "414gb,415gb", "--running", "20", "--queued", "50", "--days", "1", "--threads", "1"];
    const { stdout } = await waterhole("size", SCENARIO, ...asked, "--p95", "1s");
    expect(stdout).toMatch(
      /\nroot\.dashboards may have at most 414\.1 GiB of its hosts' 1000\.0 GiB, beside the 585\.9 GiB of other pools' limits \(more: --oversubscribe\); so 415\.0 GiB not tried\n/,
    );
    const both = JSON.parse(
      (await waterhole("size", SCENARIO, ...asked, "--p95", "1s", "--oversubscribe", "1.5", "--json")).stdout,
    );
    expect(both.room).toMatchObject({ mostBytes: 1500 * 2 ** 30 - 600_000 * 2 ** 20, notTriedBytes: [] });
    const one = JSON.parse((await waterhole("size", SCENARIO, ...asked, "--p95", "1s", "--json")).stdout);
    expect(both.effort.candidates).toBeGreaterThan(one.effort.candidates);
  });

  test("insight 3.2: files that promise too much already", async () => {
    const pools = file(
      "promised.xml",
      `<allocations>
  <queue name="root">
    <queue name="dashboards"><maxResources>200000 mb, 0 vcores</maxResources></queue>
    <queue name="etl"><maxResources>900000 mb, 0 vcores</maxResources></queue>
    <queue name="adhoc"/>
  </queue>
  <queuePlacementPolicy><rule name="specified" create="false"/><rule name="reject"/></queuePlacementPolicy>
</allocations>
`,
    );
    const promised = file(
      "promised.yaml",
      `${HEAD.replace(/pools: .*/, `pools: { fairScheduler: ${pools} }`)}arrivals: [{ rate: 3, query: tile, from: 0s, to: 60s }]\n`,
    );
    const { stdout } = await waterhole("size", promised, "--days", "1", "--threads", "1", "--candidates", "20");
    expect(stdout).toMatch(
      /\nroot\.dashboards is given no more than it has: with the 878\.9 GiB of other pools' limits that is more than its hosts' 1000\.0 GiB \(more: --oversubscribe\); not counted, for want of a limit: root\.adhoc\n/,
    );
  });

  test("insight 3.2: who is let onto full hosts is told", async () => {
    // Three coordinators give 8 GiB each (max-mem) of the host's 12 at once: the second and the third one too much.
    const head = HEAD.replace("{ count: 10, memory: 100gb, slots: 16 }", "{ count: 1, memory: 12gb }")
      .replace("{ count: 1, on: executor }", "{ count: 3, on: dedicated }")
      .replace("estimate: 1.5gb", "estimate: 8gb");
    const full = file("full.yaml", `${head}arrivals: [{ at: 0s, query: tile, count: 3 }]\n`);
    const { stdout } = await waterhole("size", full, "--days", "1", "--threads", "1", "--candidates", "1");
    expect(stdout).toMatch(/\nnow lets 2 queries a day onto hosts that are full: /);
  });

  test("one thread or two, shards merged or not: the same document", async () => {
    const whole = await waterhole("size", SCENARIO, ...ASKED, "--threads", "1", "--json");
    const two = await waterhole("size", SCENARIO, ...ASKED, "--threads", "2", "--json");
    expect(two.stdout).toBe(whole.stdout);
    const parts = [0, 1, 2].map((i) => join(dir, `part-${i}.json`));
    for (const [i, out] of parts.entries()) {
      const shard = await waterhole(
        "size",
        SCENARIO,
        ...ASKED,
        "--threads",
        "1",
        "--shard",
        `${i}/3`,
        "--out",
        out,
        "--json",
      );
      expect(JSON.parse(shard.stdout)).toMatchObject({ shard: `${i}/3`, out });
    }
    const merged = await waterhole("size", SCENARIO, ...ASKED, "--threads", "1", "--json", "--merge", ...parts);
    expect(merged.stdout).toBe(whole.stdout);
  });

  test("a shard of another problem is refused, and so is a file that is none", async () => {
    const out = join(dir, "other.json");
    await waterhole("size", SCENARIO, ...ASKED, "--shard", "0/9", "--out", out, "--threads", "1");
    const other = await waterhole("size", SCENARIO, ...ASKED, "--seed", "7", "--threads", "1", "--merge", out);
    expect(other.code).toBe(2);
    expect(other.stderr).toMatch(
      /other\.json: the shard was made from another scenario.*\nnext: Run all shards and the merge with the same command/,
    );
    const none = await waterhole("size", SCENARIO, ...ASKED, "--threads", "1", "--merge", SCENARIO);
    expect(none.stderr).toMatch(/scenario\.yaml: this is no shard of {2}waterhole size/);
    const missing = await waterhole("size", SCENARIO, "--threads", "1", "--merge", join(dir, "not-there.json"));
    expect(missing).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/not-there\.json: the shard cannot be read\.\nnext: /),
    });
    const earlier = file(
      "earlier.json",
      JSON.stringify({ ...JSON.parse(readFileSync(out, "utf8")), program: "0.0.1" }),
    );
    const mixed = await waterhole("size", SCENARIO, ...ASKED, "--threads", "1", "--merge", earlier);
    expect(mixed.stderr).toMatch(
      /written by waterhole 0\.0\.1, and this is .*\nnext: Run all shards and the merge with/,
    );
  });

  test("a shard that was forgotten is named; the result is the same", async () => {
    const asked = [...ASKED, "--threads", "1"];
    const parts = [0, 2].map((i) => join(dir, `some-${i}.json`));
    for (const [i, out] of parts.entries())
      await waterhole("size", SCENARIO, ...asked, "--shard", `${2 * i}/3`, "--out", out);
    const merged = await waterhole("size", SCENARIO, ...asked, "--merge", ...parts);
    expect(merged.stderr).toMatch(/^shard 1\/3 was not given: \d+ runs made here instead, with the same result\n$/);
    expect(merged.stdout).toBe((await waterhole("size", SCENARIO, ...asked)).stdout);
  });

  test("a recorded day: exact for it, no confidence, the cluster from the scenario", async () => {
    const log = join(dir, "day.csv");
    await waterhole("simulate", SCENARIO, "--no-records", "--query-log", log);
    const { stdout, stderr } = await waterhole(
      "size",
      SCENARIO,
      "--log",
      log,
      "--memory",
      "190gb,215gb",
      "--running",
      "20",
      "--queued",
      "50",
      "--p95",
      "6s",
      "--loss",
      "0.01",
      "--threads",
      "1",
      "--json",
    );
    expect(stderr).toBe("");
    const report = JSON.parse(stdout);
    expect(report.days).toBe(1);
    expect(report.rows[0].p95IntervalMs).toBeNull();
    expect(report.assumptions.join()).toContain("one day");
    expect(report.requestsADay).toBe(readFileSync(log, "utf8").trimEnd().split("\n").length - 1);
  });

  test("a log with many refused queries: both other guesses are shown, and what nobody has seen is marked", async () => {
    const busy = file("busy.yaml", `${HEAD}arrivals: [{ rate: 5, query: tile, from: 0s, to: 150s }]\n`);
    const log = join(dir, "busy.csv");
    await waterhole("simulate", busy, "--no-records", "--query-log", log);
    const asked = ["--memory", "300gb,400gb", "--running", "-1", "--queued", "50", "--p95", "6s", "--threads", "1"];
    const { stdout, stderr } = await waterhole("size", busy, "--log", log, ...asked);
    expect(stderr).toBe("");
    expect(stdout).toMatch(/\n[A-E] is extrapolated: \d+ would run at once, more than was ever seen/);
    expect(stdout).toMatch(
      /\nif the refused queries had been small ones \(25 % of memory-time\): p95 now .*; the cheapest is/,
    );
    expect(stdout).toMatch(/\nif the refused queries had been large ones \(90 %\): p95 now/);
    expect(stdout).toMatch(
      /assumed: .*holds as recorded, contention included; [\d.]+ % of the memory-time stands in for refused queries/,
    );
  });

  test("what rests on the price of spilling is shown for half and double", async () => {
    // A peak of 2 GiB does not fit under what 2 GiB leave for reservations.
    const spilling = file(
      "spilling.yaml",
      `${HEAD.replace("estimate: 1.5gb", "estimate: 2gb").replace("peak: 1.1gb", "peak: 2gb")}arrivals: [{ rate: 2, query: tile, from: 0s, to: 120s }]\n`,
    );
    const { stdout } = await waterhole(
      "size",
      spilling,
      "--days",
      "1",
      "--memory",
      "220gb",
      "--running",
      "20",
      "--queued",
      "50",
      "--threads",
      "1",
    );
    expect(stdout).toMatch(
      /\nnow rests on what spilling costs: on the first day p95 [\d.]+ s if it costs half as much, 5.41 s as assumed, [\d.]+ s if twice/,
    );
  });

  test("what check finds in the changed files is told by the names that they have", async () => {
    copyFileSync(join(EXAMPLES, "fair-scheduler.xml"), join(dir, "pools.xml"));
    copyFileSync(join(EXAMPLES, "llama-site.xml"), join(dir, "limits.xml"));
    const head = HEAD.replace(/pools: .*/, "pools: { fairScheduler: pools.xml, llamaSite: limits.xml }");
    const burst = head.replace("{ exponential: { mean: 4s } }", "4s");
    const named = file("named.yaml", `${burst}arrivals: [{ at: 0s, query: tile, count: 100 }]\n`);
    // 13 at once: of 500 places in the queue those beyond 30 s / 4 s x 13 = 97 are hopeless (W01).
    const asked = ["--memory", "196gb", "--running", "20", "--queued", "500", "--timeout", "30s", "--p95", "30s"];
    const { stdout } = await waterhole("size", named, ...asked, "--days", "1", "--threads", "1");
    expect(stdout).toMatch(/\n--- .*pools\.xml/);
    expect(stdout).toMatch(/\ncheck: W01 hopeless-queue, limits\.xml:\d+ /);
  });

  test("statistics dropped on the way: today's setting waits and loses as in simulate", async () => {
    const dropped = file(
      "dropped.yaml",
      `${HEAD}arrivals: [{ rate: 1, query: tile, from: 0s, to: 200s }]\nfaults: [{ at: 100s, fault: statisticsDropped, query: tile, factor: 40 }]\n`,
    );
    const sized = await waterhole("size", dropped, "--days", "1", "--memory", "190gb", "--threads", "1", "--json");
    expect([sized.code, sized.stderr]).toEqual([0, ""]);
    const simulated = await waterhole("simulate", dropped, "--no-records", "--json");
    const [now] = JSON.parse(sized.stdout).rows;
    const pool = JSON.parse(simulated.stdout).pools["root.dashboards"];
    expect(now.lossShare).toBeGreaterThan(0.1);
    expect(now.lossShare).toBe(pool.lossShare);
    expect(now.peakRunning).toBe(pool.peakRunning);
  });

  test.each([
    [
      "closed loops",
      `${HEAD}arrivals: [{ clients: 3, think: 1s, query: tile, to: 60s }]\n`,
      [],
      /requests depend on answers.*\nnext: Describe the demand as rate/,
    ],
    [
      "a pool nobody uses",
      `${HEAD}arrivals: [{ rate: 3, query: tile, to: 10s }]\n`,
      ["--pool", "root.etl"],
      /no request of this traffic goes to root\.etl\.\nnext: Give one of: root\.dashboards/,
    ],
    [
      "a shard that would be lost",
      `${HEAD}arrivals: [{ rate: 3, query: tile, to: 10s }]\n`,
      ["--shard", "0/2"],
      /a shard without --out would be lost/,
    ],
    [
      "a file for outcomes that nobody keeps",
      `${HEAD}arrivals: [{ rate: 3, query: tile, to: 10s }]\n`,
      ["--out", join(dir, "x.json")],
      /only a shard writes its outcomes/,
    ],
    [
      "a shard that would take others' outcomes",
      `${HEAD}arrivals: [{ rate: 3, query: tile, to: 10s }]\n`,
      ["--shard", "0/2", "--out", join(dir, "x.json"), "--merge", join(dir, "y.json")],
      /a shard takes no outcomes from others/,
    ],
  ])("%s: code 2, found and remedy", async (_name, text, more, message) => {
    const { code, stderr } = await waterhole("size", file("wrong.yaml", text), "--threads", "1", ...more);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
  });

  test.each([
    ["0/4", { index: 0, of: 4 }],
    ["3/4", { index: 3, of: 4 }],
    ["4/4", null],
    ["1", null],
    ["-1/4", null],
    ["0/0", null],
  ])("shard %s", (text, shard) => {
    expect(parseShard(text)).toEqual(shard);
  });
});
