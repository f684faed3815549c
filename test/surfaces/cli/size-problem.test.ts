/**
 * What `size` and `lab` compare settings on: the days, and that today's setting loses and waits there as in `simulate`.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseScenario } from "../../../src/config/scenario-file.ts";
import { canAddExecutor, type Job } from "../../../src/insight/size/problem.ts";
import { openProblem } from "../../../src/surfaces/cli/size-problem.ts";
import type { RecordedRequests } from "../../../src/workload/recorded-requests.ts";
import { evaluatorOver, NOW, POOL } from "../../insight/size/size-fixtures.ts";
import { csvOf, fileWith, TABLE_ROW, type TableRow } from "../../workload/query-log/log-fixtures.ts";
import { testFolder, waterhole } from "./command-line.ts";

const dir = testFolder();

function file(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
}

const fairScheduler = file(
  "fair-scheduler.xml",
  `<allocations>
  <queue name="root">
    <queue name="a"><maxResources>40960 mb, 0 vcores</maxResources></queue>
    <queue name="b"><maxResources>40960 mb, 0 vcores</maxResources></queue>
  </queue>
  <queuePlacementPolicy><rule name="specified" create="false"/><rule name="reject"/></queuePlacementPolicy>
</allocations>
`,
);
const CLUSTER = `cluster:
  executors: [{ count: 9, memory: 100gb }]
  coordinators: [{ count: 2, on: dedicated, memory: 50gb }]
pools: { fairScheduler: ${fairScheduler} }
`;

describe("insight 3.4 days to compare on", () => {
  /** Hours after midnight at which root.a and root.b have a query; neighbours keep the log from being cut there. */
  async function daysOf(hours: { readonly a: readonly number[]; readonly b: readonly number[] }, pool: string) {
    const row = (name: string) => (hour: number, i: number) => ({
      ...TABLE_ROW,
      query_id: `${name}${i}:0`,
      session_id: `${name}${i}`,
      resource_pool: `root.${name}`,
      query_opts_config: `REQUEST_POOL=root.${name}`,
      start_time_utc: new Date(Date.UTC(2026, 7, 22) + hour * 3_600_000).toISOString(),
    });
    const rows: TableRow[] = [...hours.a.map(row("a")), ...hours.b.map(row("b"))];
    const log = fileWith(csvOf([...rows, row("a")(96, 99)]));
    const path = file("recorded.yaml", `${CLUSTER}arrivals: [{ trace: ${log} }]\n`);
    const { problem } = await openProblem(path, { pool });
    const hoursOf = (r: RecordedRequests): number[] =>
      [...r.at].filter((_, i) => r.kinds[r.kind[i]!]!.pool === pool).map((at) => Math.round(at / 3_600_000));
    return { days: problem.days.map(hoursOf), remarks: problem.remarks };
  }
  /** Hours of queries; the last one is cut off. */
  async function recordedAt(hours: readonly number[]) {
    const row = (hour: number, i: number): TableRow => {
      const micros = Math.round(hour * 3_600_000_000);
      const start = new Date(Date.UTC(2026, 7, 22) + Math.floor(micros / 1000)).toISOString();
      return {
        ...TABLE_ROW,
        query_id: `${i}:0`,
        session_id: `${i}`,
        resource_pool: "root.a",
        query_opts_config: "REQUEST_POOL=root.a",
        start_time_utc: start.replace("Z", `${String(micros % 1000).padStart(3, "0")}Z`),
      };
    };
    const path = file("at.yaml", `${CLUSTER}arrivals: [{ trace: ${fileWith(csvOf(hours.map(row)))} }]\n`);
    return openProblem(path, {});
  }
  const daily = [0, 24, 48, 72, 95];

  test("one on which the pool has nothing is none", async () => {
    const { days, remarks } = await daysOf({ a: daily, b: [1, 2, 49] }, "root.b");
    expect(days).toEqual([[1, 2], [1]]);
    expect(remarks).toContain("2 of 4 days left out: no request of root.b comes on them");
  });

  test("of a log the busiest one comes first, whatever day the log begins on", async () => {
    const { days, remarks } = await daysOf({ a: daily, b: [25, 49, 50, 73] }, "root.b");
    expect(days).toEqual([[1, 2], [1], [1]]);
    expect(remarks).toContain("what is tried comes from day 3 of the log, its busiest");
  });

  test("times within a day are whole microseconds, as all that enters an event queue", async () => {
    const { problem } = await recordedAt([0, 24 + 1.234_567_8 / 3600, 47, 48]);
    expect(problem.days.map((d) => [...d.at])).toEqual([[1234.568, 23 * 3_600_000], [0]]);
  });

  test.each([
    { last: 46.9, days: 2 },
    { last: 46.7, days: 1 },
  ])("a day whose last query comes at hour $last of two is $days", async ({ last, days }) => {
    expect((await recordedAt([0, 1, last, last + 0.3])).problem.days).toHaveLength(days);
  });

  test("drawn days without a request of the pool are left out", async () => {
    const path = file(
      "seldom.yaml",
      `${CLUSTER}queries:
  often: { pool: root.a, estimate: 1gb, duration: 1s }
  seldom: { pool: root.b, estimate: 1gb, duration: 1s }
arrivals: [{ query: often, every: 10s, to: 60s }, { query: seldom, rate: 1/h, to: 1h }]
`,
    );
    const { problem } = await openProblem(path, { pool: "root.b", days: 20 });
    expect(problem.days.length).toBeGreaterThan(0);
    expect(problem.days.length).toBeLessThan(20);
    for (const day of problem.days) expect([...day.kind].some((k) => day.kinds[k]!.pool === "root.b")).toBe(true);
  });
});

describe("insight 4.1 a log that ran with other pool files", () => {
  test.each([
    { amount: 10, told: false },
    { amount: 5, told: true },
  ])("estimates of 1 GiB on 10 hosts, $amount GiB admitted: told $told", async ({ amount, told }) => {
    const rows = Array.from(
      { length: 4 },
      (_, i): TableRow => ({
        ...TABLE_ROW,
        query_id: `${i}:0`,
        session_id: `${i}`,
        resource_pool: "root.a",
        query_opts_config: "REQUEST_POOL=root.a",
        start_time_utc: `2026-08-22 1${i}:00:00`,
        cluster_memory_admitted: amount * 1024 ** 3,
      }),
    );
    const log = fileWith(csvOf(rows), "other.csv");
    const path = file("other.yaml", `${CLUSTER}arrivals: [{ trace: ${log} }]\n`);
    const { problem, trafficRemarks } = await openProblem(path, {});
    const remark = trafficRemarks.filter((r) =>
      /4 of 4 amounts in .*other\.csv are not what the pool files give/.test(r),
    );
    expect(remark).toHaveLength(told ? 1 : 0);
    expect(problem.remarks.filter((r) => remark.includes(r))).toEqual(remark);
  });
});

describe("insight 2.1 loss: who lost a coordinator or host", () => {
  const traffic = (faults: string, hosts = "all"): string => `${CLUSTER}queries:
  q: { pool: root.a, estimate: 1gb, uses: { peak: 100mb }, duration: 5s, hosts: ${hosts} }
arrivals: [{ every: 10s, to: 200s }]
faults:
${faults}`;

  async function lossesOf(name: string, text: string) {
    const path = file(name, text);
    const json = async (...args: string[]) => JSON.parse((await waterhole(...args, "--json")).stdout);
    const simulated = (await json("simulate", path, "--no-records")).pools["root.a"];
    const sized = (await json("size", path, "--days", "1", "--candidates", "1", "--threads", "1")).rows[0];
    const [fifo] = (await json("lab", path)).rows;
    return { simulated, sized, inLab: fifo.all };
  }

  test("clients of a dead coordinator go to the others, in simulate, size and lab alike", async () => {
    // The query of 80 s runs on coord-1 when it dies there at 82 s; nobody asks it until it is back.
    const faults = `  - { at: 82s, fault: coordinatorDies, host: coord-1 }
  - { at: 142s, fault: coordinatorReturns, host: coord-1 }
`;
    const { simulated, sized, inLab } = await lossesOf("dies.yaml", traffic(faults));
    expect(simulated).toMatchObject({ submitted: 20, finished: 19, failed: 1, unresolved: 0, lossShare: 1 / 20 });
    expect(sized).toMatchObject({ lossShare: 1 / 20, failedShare: 0 });
    expect(inLab).toMatchObject({ submitted: 20, lost: 1 });
  });

  test("without another one they are refused, and that is a loss", async () => {
    // The query of 80 s fails, those from 90 s to 190 s meet nobody.
    const faults = "  - { at: 82s, fault: coordinatorDies, host: coord-1 }\n";
    const alone = traffic(faults).replace("count: 2, on: dedicated", "count: 1, on: dedicated");
    const { simulated, sized, inLab } = await lossesOf("alone.yaml", alone);
    expect(simulated).toMatchObject({ submitted: 20, failed: 1, unresolved: 11, lossShare: 12 / 20 });
    expect(sized).toMatchObject({ lossShare: 12 / 20, failedShare: 0 });
    expect(inLab).toMatchObject({ submitted: 20, lost: 12 });
  });

  test("a query whose host dies is lost, and not for want of memory", async () => {
    const faults =
      "  - { at: 82s, fault: hostDies, host: exec-3 }\n  - { at: 84s, fault: hostReturns, host: exec-3 }\n";
    const { simulated, sized } = await lossesOf("host.yaml", traffic(faults));
    expect(simulated).toMatchObject({ submitted: 20, failed: 1, lossShare: 1 / 20 });
    expect(sized).toMatchObject({ lossShare: 1 / 20, failedShare: 0 });
  });
});

describe("insight 2.3 relief by one more executor", () => {
  const scenario = (executors: string, more = "", coordinators = "on: dedicated") =>
    parseScenario(
      `cluster: { executors: [${executors}], coordinators: [{ count: 1, ${coordinators} }] }
pools: flags
queries: { q: { estimate: 1gb, duration: 1s${more.startsWith(",") ? more : ""} } }
arrivals: [{ at: 0s }]
${more.startsWith(",") ? "" : more}`,
      "/added.yaml",
    );
  const NINE = "{ count: 9, memory: 100gb }";
  const TEN = "{ count: 10, memory: 100gb }";
  const FAULT = "faults: [{ at: 1s, fault: hostDies, host: exec-3 }]";
  const SKEW = ", uses: { peak: 1gb, perHost: { exec-3: 2 } }";

  test.each([
    { what: "nobody names a host", s: scenario(NINE), can: true },
    { what: "nine with a coordinator become exec-01 to exec-10", s: scenario(NINE, "", "on: executor"), can: false },
    { what: "ten with a coordinator stay two digits wide", s: scenario(TEN, "", "on: executor"), can: true },
    { what: "a fault names exec-3 of nine", s: scenario(NINE, FAULT), can: false },
    { what: "a fault names exec-03 of ten", s: scenario(TEN, FAULT), can: true },
    { what: "skew names exec-3 of nine", s: scenario(NINE, SKEW), can: false },
    { what: "skew names exec-03 of ten", s: scenario(TEN, SKEW), can: true },
    { what: "a second line counts on", s: scenario(`${TEN}, ${TEN}`, FAULT), can: false },
    { what: "a second line, and nobody names a host", s: scenario(`${TEN}, ${TEN}`), can: true },
  ])("$what: $can", ({ s, can }) => {
    expect(canAddExecutor(s)).toBe(can);
  });

  test("it is one of the group that the pool's queries run on", () => {
    const grouped = parseScenario(
      `cluster:
  executors:
    - { count: 10, memory: 100gb, executorGroup: root.other-1 }
    - { count: 1, memory: 100gb, slots: 1, executorGroup: ${POOL}-1 }
  coordinators: [{ count: 1, on: dedicated }]
pools: flags
queries: { q: { pool: ${POOL}, estimate: 1gb, duration: 10s, hosts: 1 } }
arrivals: [{ at: 0s, count: 2 }]
`,
      "/grouped.yaml",
    );
    const evaluator = evaluatorOver(grouped);
    const job: Job = { engine: "rules", day: 0, from: 0, to: 2, setting: NOW };
    // One after the other on the one slot; at once with a second host.
    expect(evaluator.run(job).longestWait).toBeGreaterThanOrEqual(10_000);
    expect(evaluator.run({ ...job, ease: "executors" }).longestWait).toBe(0);
  });
});
