/**
 * Queueing as real users meet it: lines found in public places, each out of `explain` for a run that brings the
 * situation about (surfaces 9). The numbers are the found ones; the names of hosts and people are ours.
 *
 * What older releases printed otherwise stands beside the present wording, which is the one asserted. Left out
 * is what does not concern admission: tables without statistics, the planner's own figures, a shell's progress.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { testFolder, waterhole } from "./command-line.ts";

const folder = testFolder();
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
const records = join(folder, "records.jsonl");

interface Run {
  /** The emulator's own clock, or the fleet's where somebody has to look into hosts. */
  readonly command?: "simulate" | "run";
  /** Elements inside `root`. */
  readonly pools?: string;
  /** Pairs of the site file. */
  readonly site?: Readonly<Record<string, string>>;
}

/** Runs the scenario and explains its nth submission; below 0 counts from the end. */
async function explained(scenario: string, nth: number, { command = "simulate", pools, site = {} }: Run = {}) {
  let text = scenario;
  if (pools !== undefined) {
    file("fair-scheduler.xml", `<allocations><queue name="root">${pools}</queue></allocations>`);
    const pairs = Object.entries(site).map(([k, v]) => `<property><name>${k}</name><value>${v}</value></property>`);
    file("llama-site.xml", `<configuration>${pairs.join("")}</configuration>`);
    text += "pools: { fairScheduler: fair-scheduler.xml, llamaSite: llama-site.xml }\n";
  }
  const ran = await waterhole(command, file("scenario.yaml", text), "--records", records);
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  return explain(nth);
}

/** Lines without what they are indented by. */
async function explain(nth: number): Promise<readonly string[]> {
  const { code, stdout } = await waterhole("explain", records, submissions().at(nth) ?? "", "--profile");
  expect(code).toBe(0);
  return stdout.split("\n").map((line) => line.trim());
}

const submissions = (): string[] =>
  [...readFileSync(records, "utf8").matchAll(/"kind":"submitted".*?"query":"([0-9a-f:]+)"/g)].map((m) => m[1] ?? "");

describe("surfaces 9, profiles", () => {
  test("1, 2: a query of a user's own pool, admitted at once", async () => {
    const lines = await explained(
      `
cluster: { executors: [{ memory: 10gb }] }
queries: { q: { user: hue, estimate: 33554432b, duration: 1s } }
arrivals: [{ at: 0s }]
`,
      0,
      { pools: "" },
    );
    // Then `Per-Host Memory Reservation: 0`, and `Per Host Min Reservation: host:22000(0)` before that.
    expect(lines).toEqual(
      expect.arrayContaining([
        "Estimated Per-Host Mem: 33554432",
        "Request Pool: root.hue",
        "Per Host Min Memory Reservation: exec-1:27000(0)",
        "Admission result: Admitted immediately",
      ]),
    );
  });

  test("3: COMPUTE STATS on three hosts; 159354496 bytes a host are 455.92 MB", async () => {
    const lines = await explained(
      `
cluster: { executors: [{ count: 3, memory: 10gb }] }
queries:
  stats:
    estimate: 159354496b
    fragments:
      - { on: coordinator, minReservation: 4mb }
      - { on: executors, instances: 8, minReservation: 2mb, perBackend: 256kb }
    duration: 2672ms
arrivals: [{ at: 0s }]
`,
      0,
    );
    expect(lines).toEqual(
      expect.arrayContaining([
        "Estimated Per-Host Mem: 159354496",
        "Request Pool: default-pool",
        "Per Host Min Memory Reservation: exec-1:27000(20.25 MB) exec-2:27000(16.25 MB) exec-3:27000(16.25 MB)",
        "Per Host Number of Fragment Instances: exec-1:27000(9) exec-2:27000(8) exec-3:27000(8)",
        "Admission result: Admitted immediately",
        "Cluster Memory Admitted: 455.92 MB",
        "Executor Group: default",
        "Number of running queries in designated executor group when admitted: 1",
        "Query Timeline: 2s672ms",
        "- All 3 execution backends (25 fragment instances) started: 0.000ns (0.000ns)",
        "- AdmissionSlots: 8 (8)",
      ]),
    );
    expect(lines).toContainEqual(expect.stringMatching(/^- Submit for admission: /));
    expect(lines).toContainEqual(expect.stringMatching(/^- Completed admission: /));
  });

  test("10: the bracket behind `Completed admission` is the wait", async () => {
    const lines = await explained(
      `
cluster: { executors: [{ count: 2, memory: 200gb, slots: 1, executorGroup: root.default-group-000 }] }
queries: { q: { pool: root.default, estimate: 128gb, minReservation: 8mb, duration: 150ms } }
arrivals: [{ at: 0s, count: 2 }]
`,
      1,
      { pools: '<queue name="default"/>' },
    );
    expect(lines).toEqual(
      expect.arrayContaining([
        "Request Pool: root.default",
        "Per Host Min Memory Reservation: exec-1:27000(8.00 MB) exec-2:27000(8.00 MB)",
        "Admission result: Admitted (queued)",
        "Cluster Memory Admitted: 256.00 GB",
        "Executor Group: root.default-group-000",
        "- Completed admission: 150.000ms (150.000ms)",
      ]),
    );
  });
});

describe("surfaces 9, reasons to wait", () => {
  test("4: pool memory, with what was left of it", async () => {
    // 10382756 bytes are 9.90 MB, and 103004 of 10 MB remain.
    const lines = await explained(
      `
cluster: { executors: [{ memory: 10gb }] }
flags: { default_pool_mem_limit: 10mb }
queries: { q: { estimate: 1gb, options: { MEM_LIMIT: 10382756 }, duration: 1s } }
arrivals: [{ at: 0s, count: 2 }]
`,
      1,
    );
    expect(lines).toContain(
      "Latest admission queue reason: Not enough aggregate memory available in pool default-pool with max mem resources 10.00 MB. Needed 9.90 MB but only 100.59 KB was available.",
    );
  });

  test("4: 745 ms without news from the statestore", async () => {
    // The last exchange ends at 1 s; the query comes 745 ms later, while another one runs.
    const lines = await explained(
      `
cluster:
  executors: [{ memory: 10gb }]
  coordinators: [{ count: 2, on: dedicated }]
  route: coord-1
flags: { default_pool_max_requests: 1, admission_control_stale_topic_threshold_ms: 500 }
queries: { q: { estimate: 1gb, duration: 3s } }
arrivals: [{ at: 0s }, { at: 1745ms }]
faults: [{ at: 1050ms, fault: coordinatorCutOff, host: coord-1 }]
`,
      1,
    );
    expect(lines).toContain(
      "Latest admission queue reason: number of running queries 1 is at or over limit 1. Warning: admission control information from statestore is stale: 745ms since last update was received.",
    );
  });

  test("4: admitted at once while there is no news, which the profile says too", async () => {
    const lines = await explained(
      `
cluster:
  executors: [{ memory: 10gb }]
  coordinators: [{ count: 2, on: dedicated }]
  route: coord-1
flags: { admission_control_stale_topic_threshold_ms: 745 }
queries: { q: { estimate: 1gb, duration: 1s } }
arrivals: [{ at: 1744ms }, { at: 1745ms }]
faults: [{ at: 1050ms, fault: coordinatorCutOff, host: coord-1 }]
`,
      1,
    );
    expect(lines).toContain("Admission result: Admitted immediately");
    const warning =
      "Admission control state staleness: Warning: admission control information from statestore is stale: 745ms since last update was received.";
    expect(lines).toContain(warning);
    expect(await explain(0)).not.toContainEqual(expect.stringContaining("stale"));
  });

  test("5: all executors stopped", async () => {
    // A shell puts `Query queued. Latest queuing reason: ` before it.
    const lines = await explained(
      `
cluster:
  executors: [{ memory: 10gb }]
  coordinators: [{ on: dedicated }]
queries: { q: { estimate: 1gb, duration: 1s } }
arrivals: [{ at: 15s }]
faults: [{ at: 1s, fault: hostDies, host: exec-1 }, { at: 20s, fault: hostReturns, host: exec-1 }]
`,
      0,
    );
    expect(lines).toContain(
      "Latest admission queue reason: Waiting for executors to start. Only DDL queries and queries scheduled only on the coordinator (either NUM_NODES set to 1 or when small query optimization is triggered) can currently run.",
    );
  });

  test("6: slots", async () => {
    const lines = await explained(
      `
cluster: { executors: [{ count: 2, memory: 10gb, slots: 1, executorGroup: default-pool-group-000 }] }
queries: { q: { estimate: 1gb, duration: 1s } }
arrivals: [{ at: 0s, count: 2 }]
`,
      1,
    );
    expect(lines).toContain(
      "Latest admission queue reason: Not enough admission control slots available on host exec-1:27000. Needed 1 slots but 1/1 are already in use.",
    );
  });

  const TWELVE_FOR_ONE_PLACE = `
cluster: { executors: [{ memory: 10gb }] }
flags: { default_pool_max_requests: 1, default_pool_max_queued: 10 }
queries: { q: { estimate: 1gb, duration: 1s } }
arrivals: [{ at: 0s, count: 12 }]
`;

  test("6, 11: one runs, one is at the head of the queue, three are before the next", async () => {
    const head = await explained(TWELVE_FOR_ONE_PLACE, 1);
    expect(head).toContain("Latest admission queue reason: number of running queries 1 is at or over limit 1.");
    expect(head).toContain(
      "Initial admission queue reason: waited 1000 ms, reason: number of running queries 1 is at or over limit 1.",
    );
    const fifth = await explain(4);
    expect(fifth).toContain(
      "Initial admission queue reason: waited 4000 ms, reason: queue is not empty (size 3); queued queries are executed first.",
    );
  });

  test("11: one whose run was over before its turn is queued", async () => {
    await explained(TWELVE_FOR_ONE_PLACE, 1);
    const query = submissions()[1];
    const lines = readFileSync(records, "utf8").split("\n");
    const queued = lines.findIndex((line) => line.includes('"kind":"queued"') && line.includes(`"query":"${query}"`));
    writeFileSync(records, `${lines.slice(0, queued + 1).join("\n")}\n`);
    expect(await explain(1)).toEqual(
      expect.arrayContaining([
        "Latest admission queue reason: number of running queries 1 is at or over limit 1.",
        "Admission result: Queued",
        "Initial admission queue reason: number of running queries 1 is at or over limit 1.",
      ]),
    );
  });

  test("6, 9: the queue is full; a tool retries by the wording without the numbers", async () => {
    const lines = await explained(TWELVE_FOR_ONE_PLACE, 11);
    const status = lines.find((line) => line.startsWith("Query Status: ")) ?? "";
    expect(status).toBe("Query Status: Rejected query from pool default-pool: queue full, limit=10, num_queued=10.");
    expect(status.replaceAll(/\d+/g, "")).toContain("queue full, limit=, num_queued=.");
  });
});

describe("surfaces 9, refusals", () => {
  const FOUR_GB_HOSTS = `
cluster: { executors: [{ count: 3, memory: 4gb }] }
queries: { q: { pool: root.default, estimate: 4670775255b, duration: 1s } }
arrivals: [{ at: 0s }]
`;
  const statusOf = (lines: readonly string[]): string => {
    const start = lines.findIndex((line) => line.startsWith("Query Status: "));
    return lines.slice(start, start + 3).join("\n");
  };

  test("7: the classic first encounter, a host smaller than the estimate (REJ-B8)", async () => {
    // Then `request memory needed 4.35 GB per node is greater than ...`, and the advice on the same line.
    const lines = await explained(`${FOUR_GB_HOSTS}flags: { clamp_query_mem_limit_backend_mem_limit: false }\n`, 0, {
      pools: '<queue name="default"><maxResources>20000 mb, 0 vcores</maxResources></queue>',
    });
    expect(statusOf(lines)).toBe(
      "Query Status: Rejected query from pool root.default: request memory needed 4.35 GB is greater than memory available for admission 4.00 GB of exec-2:27000.\n\nUse the MEM_LIMIT query option to indicate how much memory is required per node.",
    );
  });

  test("7: the same in a pool that is smaller than the query (REJ-B7)", async () => {
    const lines = await explained(FOUR_GB_HOSTS, 0, {
      pools: '<queue name="default"><maxResources>12287 mb, 0 vcores</maxResources></queue>',
    });
    expect(statusOf(lines)).toBe(
      "Query Status: Rejected query from pool root.default: request memory needed 12.00 GB is greater than pool max mem resources 12.00 GB.\n\nUse the MEM_LIMIT query option to indicate how much memory is required per node. The total memory needed is the per-node MEM_LIMIT times the number of nodes executing the query. See the Admission Control documentation for more information.",
    );
  });

  test("8: twelve minutes behind four others", async () => {
    const lines = await explained(
      `
cluster: { executors: [{ count: 3, memory: 4gb }] }
queries: { q: { pool: root.default, estimate: 4gb, duration: 30m } }
arrivals: [{ at: 0s, count: 6 }]
`,
      5,
      {
        pools: '<queue name="default"><maxResources>20000 mb, 0 vcores</maxResources></queue>',
        site: { "impala.admission-control.pool-queue-timeout-ms.root.default": "720000" },
      },
    );
    // The details are of today; exported logs of then end before them.
    expect(lines).toContain(
      "Query Status: Admission for query exceeded timeout 720000ms in pool root.default. Queued reason: queue is not empty (size 4); queued queries are executed first. Additional Details: Not Applicable",
    );
  });

  test("11: a time-out for want of a host's memory names who has it", async () => {
    // Live, because only there somebody looks into the hosts for the heaviest queries. Five real seconds until the
    // second asks, and as many until the first ends: a busy machine must not change who has the memory.
    const lines = await explained(
      `
cluster: { executors: [{ memory: 4gb }] }
flags: { queue_wait_timeout_ms: 1000, default_pool_mem_limit: 10gb }
queries: { q: { estimate: 3gb, uses: { peak: 2gb, shape: flat }, duration: 200s } }
arrivals: [{ at: 0s }, { at: 100s }]
scale: { time: 20, memory: 1024 }
threads: 1
`,
      1,
      { command: "run" },
    );
    const start = lines.findIndex((line) => line.startsWith("Query Status: "));
    expect(lines.slice(start, start + 14)).toEqual([
      "Query Status: Admission for query exceeded timeout 1000ms in pool default-pool. Queued reason: Not enough memory available on host exec-1:27000. Needed 3.00 GB but only 1.00 GB out of 4.00 GB was available. Additional Details:",
      "Stats for host exec-1:27000",
      "pool_name=default-pool:",
      "topN_query_stats:",
      "queries=[",
      `id=${submissions()[0]}, consumed=2.00 GB`,
      "],",
      "total_consumed=2.00 GB",
      "fraction_of_pool_total_mem=1",
      "all_query_stats:",
      "num_running=1,",
      "min=2.00 GB,",
      "max=2.00 GB,",
      "pool_total_mem=2.00 GB,",
    ]);
  });

  const QUOTAS = `
cluster: { executors: [{ memory: 10gb }] }
users: { ana: [analysts] }
queries: { q: { pool: root.q, user: ana, estimate: 1gb, duration: 1s } }
arrivals: [{ at: 0s, count: 2 }]
`;
  test.each([
    [
      "<userQueryLimit><user>ana</user><totalCount>1</totalCount></userQueryLimit>",
      "current per-user load 1 for user 'ana' is at or above the user limit 1 in pool 'root.q'",
    ],
    [
      "<userQueryLimit><user>*</user><totalCount>1</totalCount></userQueryLimit>",
      "current per-user load 1 for user 'ana' is at or above the wildcard limit 1 in pool 'root.q'",
    ],
    [
      "<groupQueryLimit><group>analysts</group><totalCount>1</totalCount></groupQueryLimit>",
      "current per-group load 1 for user 'ana' in group 'analysts' is at or above the group limit 1 in pool 'root.q'",
    ],
  ])("5: a quota that is used up: %s", async (quota, reason) => {
    const lines = await explained(QUOTAS, 1, { pools: `<queue name="q">${quota}</queue>` });
    expect(lines).toContain(`Query Status: Rejected query from pool root.q: ${reason}`);
  });
});
