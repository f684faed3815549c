/**
 * Small runs of every command with `--json`, which together print every key that docs/json.md knows.
 */
import { readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { QueueReason, RejectReason } from "../../../../src/core/admission/reasons.ts";
import type { Bytes } from "../../../../src/core/units.ts";
import type { Advice } from "../../../../src/insight/log/advice.ts";
import type { Setting } from "../../../../src/insight/size/setting.ts";
import { siteText } from "../../../config/fixtures.ts";
import { csvOf, GiB, TABLE_ROW } from "../../../workload/query-log/log-fixtures.ts";
import { waterhole } from "../command-line.ts";

const EXAMPLES = resolve(import.meta.dirname, "../../../../examples");
const dashboards = (name: string): string => join(EXAMPLES, "dashboards", name);
const POOLS = `pools: { fairScheduler: ${dashboards("fair-scheduler.xml")}, llamaSite: ${dashboards("llama-site.xml")} }`;

/** Table of the page -> documents that it has to describe. */
export type Examples = Map<string, unknown[]>;

class Runner {
  readonly found: Examples = new Map();
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  file(name: string, text = ""): string {
    const path = join(this.#dir, name);
    if (text !== "") writeFileSync(path, text);
    return path;
  }

  async see(table: string, ...args: readonly string[]): Promise<void> {
    const { stdout, stderr } = await waterhole(...args, "--json");
    if (stdout === "") throw new Error(`${args.join(" ")}: ${stderr}`);
    this.found.set(table, [...(this.found.get(table) ?? []), JSON.parse(stdout)]);
  }
}

export async function examplesIn(dir: string): Promise<Examples> {
  const r = new Runner(dir);
  await runs(r);
  await recorded(r);
  await poolFiles(r);
  await predictions(r);
  await sizes(r);
  await logs(r);
  await nothing(r);
  await r.see("stress", "stress", "--threads", "1", "--hosts", "1", "--kills", "1", "--steps", "100");
  await r.see("demo NAME", "demo", "scratch-full");
  await r.see("demo", "demo");
  return r.found;
}

async function runs(r: Runner): Promise<void> {
  await r.see("simulate and run", "simulate", join(EXAMPLES, "stale-coordinators/scenario.yaml"), "--no-records");
  const limits = 'thresholds: ["pool.root.dashboards.waitAll.p95 < 20s", "rejected == 0"]\n';
  const many = r.file(
    "many.yaml",
    `${readFileSync(dashboards("dropped-statistics.yaml"), "utf8").replace(/pools: .*/, POOLS)}${limits}
faults: [{ at: 10h, fault: hostDies, host: exec-3 }]\n`,
  );
  await r.see("simulate and run", "simulate", many, "--records", r.file("many.jsonl"));
  const denied = r.file("denied.yaml", readFileSync(many, "utf8").replace("user: ana", "user: zoe"));
  await r.see("simulate and run", "simulate", denied, "--no-records");
  await r.see("simulate and run", "simulate", r.file("over.yaml", OVER), "--no-records");
  await r.see("simulate and run", "run", live(r), "--no-records", "--scratch", r.file(""));
}

/** Each of two coordinators gives the one host 6 GB of its 10. */
const OVER = `cluster:
  executors: [{ count: 1, memory: 10gb }]
  coordinators: [{ count: 2, on: dedicated, memory: 10gb }]
flags: { default_pool_mem_limit: 100gb }
queries: { q: { estimate: 6gb, uses: { peak: 1gb }, duration: 1s } }
arrivals: [{ at: 0s, query: q, count: 2 }]
`;

/** With a pool file that is newer than the run's start: every run finds it changed. */
function live(r: Runner): string {
  r.file(
    "followed.xml",
    '<allocations><queue name="root"><queue name="a"><maxResources>100000 mb, 0 vcores</maxResources></queue></queue></allocations>',
  );
  const site = r.file("followed-site.xml", siteText({ "queued.root.a": "5" }));
  const soon = Date.now() / 1000 + 3600;
  utimesSync(site, soon, soon);
  return r.file(
    "live.yaml",
    `cluster: { executors: [{ count: 2, memory: 100gb }] }
pools: { fairScheduler: followed.xml, llamaSite: followed-site.xml }
queries: { q: { pool: root.a, estimate: 1gb, uses: { peak: 1mb }, duration: 120s } }
arrivals: [{ at: 0s, query: q, count: 1 }]
scale: { time: 100, memory: 1024 }
threads: 1
`,
  );
}

/** Three places: some wait behind others, some give up, one fails, and their clients try again. */
const STORIES = `cluster: { executors: [{ count: 2, memory: 10gb }] }
flags: { default_pool_mem_limit: 12gb, default_pool_max_requests: 3, default_pool_max_queued: 4, queue_wait_timeout_ms: 3000 }
queries:
  q: { estimate: 2gb, uses: { peak: 1gb }, duration: 4s }
  leaves: { estimate: 2gb, uses: { peak: 1gb }, duration: 4s, cancelAfter: 1s }
  fails: { estimate: 1gb, uses: { peak: 4gb, spillable: false }, duration: 1s }
arrivals:
  - { at: 0s, query: fails, count: 1 }
  - { at: 0s, query: q, count: 4, retries: { on: [rejected, timedOut], attempts: 3, wait: 100ms } }
  - { at: 0s, query: leaves, count: 1 }
  - { at: 1s, query: q, count: 4, retries: { on: [rejected, timedOut], attempts: 3, wait: 100ms } }
`;

async function recorded(r: Runner): Promise<void> {
  const records = r.file("stories.jsonl");
  await r.see("simulate and run", "simulate", r.file("stories.yaml", STORIES), "--records", records);
  for (const file of [records, r.file("many.jsonl")]) {
    const ends = new Map<string, string>();
    for (const [, kind, query] of readFileSync(file, "utf8").matchAll(/"kind":"(\w+)","at":[\d.]+,"query":"([^"]+)"/g))
      ends.set(kind!, query!);
    for (const kind of ["admitted", "rejected", "timedOut", "cancelled", "released"]) {
      const query = ends.get(kind);
      if (query !== undefined) await r.see("explain", "explain", file, query);
    }
  }
  const denied = r.file("denied.jsonl");
  await waterhole("simulate", r.file("denied.yaml"), "--records", denied);
  const [, query = ""] = /"query":"([0-9a-f:]+)"/.exec(readFileSync(denied, "utf8")) ?? [];
  await r.see("explain", "explain", denied, query);
  await r.see("replay", "replay", records);
  const lie = readFileSync(r.file("many.jsonl"), "utf8").replaceAll('"maxQueued":50', '"maxQueued":49');
  await r.see("replay", "replay", r.file("lie.jsonl", lie));
  await r.see("compare", "compare", records);
}

async function poolFiles(r: Runner): Promise<void> {
  const fair = r.file(
    "pools.xml",
    `<allocations>
  <queue name="bi"><maxResources>1,024 mb, 0 vcores</maxResources><aclSubmitApps>bi_users</aclSubmitApps></queue>
  <queue name="etl">
    <userQueryLimit><user>ana</user><totalCount>4</totalCount></userQueryLimit>
  </queue>
  <queuePlacementPolicy>
    <rule name="specified" create="false"/>
    <rule name="nestedUserQueue"><rule name="primaryGroup" create="false"/></rule>
    <rule name="default"/>
  </queuePlacementPolicy>
</allocations>
`,
  );
  const site = r.file("site.xml", siteText({ "timeout.root.bi": "30", "placed.root.etl": "many" }));
  const groups = r.file("groups.yaml", "ana: [analysts]\n");
  const files = ["--fair-scheduler", fair, "--llama-site", site];
  await r.see("check", "check", ...files, "--groups", groups, "--user", "ana", "--pool", "bi");
  await r.see("check", "check", "--fair-scheduler", fair);
}

async function predictions(r: Runner): Promise<void> {
  const scenario = (arrivals: string, more = "") => `cluster:
  executors: [{ count: 10, memory: 100gb, slots: 16 }]
  coordinators: [{ count: 1, on: executor }]
${POOLS}
queries:
  tile: { pool: root.dashboards, user: ana, estimate: 1.5gb, duration: { exponential: { mean: 4s } }, uses: { peak: 1.1gb } }
  big: { pool: root.dashboards, user: ana, estimate: 8gb, duration: { exponential: { mean: 60s } }, uses: { peak: 6gb } }
arrivals: [${arrivals}]
${more}`;
  const burst = r.file("burst.yaml", scenario("{ at: 0s, query: tile, count: 60 }"));
  await r.see("eta", "eta", burst, "--at", "5s");
  // Nobody has ended yet.
  await r.see("eta", "eta", burst, "--at", "0s");
  const mixed = "{ rate: 1, query: { tile: 0.98, big: 0.02 }, from: 0s, to: 300s }";
  await r.see("lab", "lab", r.file("mixed.yaml", scenario(mixed)));
  await r.see("lab", "lab", r.file("crowd.yaml", scenario("{ at: 0s, query: tile, count: 200 }")));
}

async function sizes(r: Runner): Promise<void> {
  const sized = (name: string, estimate: string, peak: string, rate: number): string =>
    r.file(
      name,
      `cluster:
  executors: [{ count: 10, memory: 100gb, slots: 16 }]
  coordinators: [{ count: 1, on: executor }]
${POOLS}
queries:
  tile: { pool: root.dashboards, user: ana, estimate: ${estimate}, duration: { exponential: { mean: 4s } }, uses: { peak: ${peak} } }
arrivals: [{ rate: ${rate}, query: tile, from: 0s, to: 100s }]
`,
    );
  const few = ["--memory", "196gb,230gb", "--running", "20,-1", "--queued", "50", "--threads", "1"];
  const asked = [...few, "--p95", "2s", "--loss", "0.05"];
  const scenario = sized("sized.yaml", "1.5gb", "1.1gb", 3);
  await r.see("size", "size", scenario, "--days", "2", ...asked);
  await r.see("size --shard", "size", scenario, "--days", "1", ...asked, "--shard", "0/2", "--out", r.file("shard"));
  const spilling = sized("busy.yaml", "2gb", "2gb", 6);
  const log = r.file("busy.csv");
  await waterhole("simulate", spilling, "--no-records", "--query-log", log);
  await r.see("size", "size", spilling, "--log", log, "--days", "1", ...few);
}

async function logs(r: Runner): Promise<void> {
  const row = (i: number, more = {}) => ({
    ...TABLE_ROW,
    query_id: `${i}:0`,
    session_id: `${i}:0`,
    start_time_utc: `2026-08-22 10:${String(Math.floor(i / 60)).padStart(2, "0")}:${String(i % 60).padStart(2, "0")}`,
    ...more,
  });
  const rows = Array.from({ length: 400 }, (_, i) => row(i, i === 7 ? { cluster_memory_admitted: 77 * GiB } : {}));
  // Three hours later: what was between is not in the log.
  const later = rows.map((q, i) => ({
    ...q,
    ...row(i + 180 * 60),
    start_time_utc: q.start_time_utc.replace("10:", "13:"),
  }));
  const log = r.file("log.csv", `${csvOf([...rows, ...later])}nothing that can be read\n`);
  const fair = r.file(
    "today.xml",
    '<allocations><queue name="root"><queue name="etl"><maxResources>200000 mb, 0 vcores</maxResources></queue></queue></allocations>',
  );
  await r.see("import", "import", log, "--fair-scheduler", fair);
  await r.see("import", "import", r.file("busy.csv"), "--scenario", r.file("busy.yaml"));
}

/** Nobody is admitted, nobody waits: what is over nothing is null, in every document. */
async function nothing(r: Runner): Promise<void> {
  const cluster = "cluster: { executors: [{ count: 2, memory: 10gb }] }\narrivals: [{ at: 0s, count: 5 }]\n";
  const texts = {
    disabled: "flags: { default_pool_max_requests: 0 }\nqueries: { q: { estimate: 2gb, duration: 1s } }\n",
    trivial: "queries: { q: { estimate: 2gb, duration: 0s, trivial: true } }\n",
  };
  for (const [name, text] of Object.entries(texts)) {
    const scenario = r.file(`${name}.yaml`, cluster + text);
    const records = r.file(`${name}.jsonl`);
    const log = r.file(`${name}.csv`);
    await r.see("simulate and run", "simulate", scenario, "--records", records, "--query-log", log);
    await r.see("explain", "explain", records, /"query":"([^"]+)"/.exec(readFileSync(records, "utf8"))?.[1] ?? "");
    await r.see("replay", "replay", records);
    await r.see("compare", "compare", records);
    await r.see("lab", "lab", scenario);
    await r.see("size", "size", scenario, "--days", "1", "--candidates", "2", "--threads", "1");
    await r.see("import", "import", log, "--scenario", scenario);
    await r.see("check", "check", "--scenario", scenario);
  }
}

const bytes = 1 as Bytes;

export const QUEUE_REASONS: readonly QueueReason[] = [
  { rule: "ADM-1", queued: 1, stale: null },
  { rule: "ADM-2", running: 1, limit: 1, stale: 5 },
  { rule: "ADM-3", host: "a", needed: 1, inUse: 1, slots: 1 },
  { rule: "ADM-4", pool: "p", limit: bytes, needed: bytes, available: bytes, stale: -1 },
  { rule: "ADM-5", host: "a", limit: bytes, needed: bytes, available: bytes, stale: null },
  { rule: "ADM-6", needed: bytes, source: "HOST_MEM_TRACKER_LIMIT", pool: "p", limitNeeded: bytes },
  { rule: "NO-EXECUTORS" },
  { rule: "NO-COORDINATOR" },
];

export const REJECT_REASONS: readonly RejectReason[] = [
  { rule: "REJ-A1" },
  { rule: "REJ-A2" },
  { rule: "REJ-A3", minQueryMemLimit: 1, maxMemResources: 1 },
  { rule: "REJ-A4", minQueryMemLimit: 1, maxQueryMemLimit: 1 },
  { rule: "REJ-A5", limit: 1, queued: 1, stale: null },
  { rule: "REJ-B1", host: "a", needed: 1, slots: 1 },
  { rule: "REJ-B2a", host: "a", needed: bytes },
  { rule: "REJ-B2b", needed: bytes, source: "HOST_MEM_TRACKER_LIMIT", pool: "p", limitNeeded: bytes },
  { rule: "REJ-B3", host: "a", threads: 1, limit: 1 },
  { rule: "REJ-B4", backends: 1, threads: 1, limit: 1 },
  { rule: "REJ-B6", limit: bytes, needed: bytes },
  { rule: "REJ-B7", limit: bytes, needed: bytes },
  { rule: "REJ-B8", host: "a", limit: bytes, needed: bytes },
  { rule: "REJ-C1", error: "x" },
  { rule: "REJ-C2", coordinator: "a" },
  { rule: "REJ-C3", kind: "user", load: 1, user: "u", limit: 1, pool: "p" },
  { rule: "REJ-C3", kind: "group", load: 1, user: "u", group: "g", limit: 1, pool: "p", ignored: [["h", 2]] },
  { rule: "REJ-C3", kind: "lookupFailed" },
  { rule: "REJ-C3", kind: "badName", user: "u" },
  { rule: "REJ-C4", usage: 1, limit: 1 },
  { rule: "REJ-C5", error: "x" },
];

/** Large queries in a pool of their own; `size` tries it, and seldom keeps it. */
export const SPLIT: Setting = {
  maxMem: 2,
  maxRunning: -1,
  maxQueued: 1,
  timeout: 1,
  minQueryMem: 0,
  maxQueryMem: 0,
  split: { above: 1, share: 0.5 },
};

export const ADVICE: readonly Advice[] = [
  { id: "K1", table: "t", isNamed: true, classes: ["c"], gains: [{ queryClass: "c", estimate: 2, wouldBe: 1 }] },
  { id: "K2", table: "t", classes: ["c"] },
  { id: "K4", pool: "p", maxMem: 1, profits: ["c"] },
  { id: "K5", queryClass: "c", pool: "p", memLimit: 1, cutAt: null, asPoolMinimum: true },
  { id: "K5", queryClass: "c", pool: "p", memLimit: 1, cutAt: 1, asPoolMinimum: false },
  { id: "K6", pool: "p", clientShare: 0.5 },
  { id: "K8", pool: "p", share: 0.5 },
  { id: "K9", amplification: 2, retriedShare: 0.5, medianDelayMs: 1 },
  { id: "K10", pool: "p", coordinator: "a", share: 0.5 },
];
