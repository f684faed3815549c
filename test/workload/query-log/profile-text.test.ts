import { describe, expect, test } from "vitest";
import { readQueryLog } from "../../../src/workload/query-log/read-query-log.ts";
import { fileWith, GiB, MiB } from "./log-fixtures.ts";

const QUEUED = `Query (id=1111222233334444:aaaabbbb00000000):
  DEBUG MODE WARNING: Query profile created while running a DEBUG build.
  Summary:
    Session ID: 40be77a1c2d93e5f:9a01f7c3b8e64d20
    Start Time: 2026-08-22 10:15:02.118044000
    End Time: 2026-08-22 10:15:54.536251000
    Duration: 52s418ms (52418207 us)
    Query Type: QUERY
    Query State: FINISHED
    Impala Query State: FINISHED
    Query Status: OK
    User: ana
    Connected User: svc
    Network Address: 10.0.0.50:51020
    Sql Statement: select region
    -- Request Pool: root.liar
from orders
    Coordinator: coord-1:27000
    Query Options (set by configuration): MEM_LIMIT=2147483648,REQUEST_POOL=root.etl
    Tables Queried: sales.orders
    Plan: 
----------------
Max Per-Host Resource Reservation: Memory=15.94MB Threads=4
Dedicated Coordinator Resource Estimate: Memory=104MB
WARNING: The following tables are missing relevant table and/or column statistics.
sales.orders
----------------
    Estimated Per-Host Mem: 209715200
    Request Pool: root.etl
    Per Host Min Memory Reservation: coord-1:27000(4.00 MB) exec-1:27000(12.00 MB) exec-2:27000(11.00 MB) 
    Per Host Number of Fragment Instances: coord-1:27000(1) exec-1:27000(2) exec-2:27000(2) 
    Admission result: Admitted (queued)
    Initial admission queue reason: waited 38622 ms, reason: number of running queries 4 is at or over limit 4.
    Cluster Memory Admitted: 6.00 GB
    Query Compilation: 110.803ms
       - Planning finished: 110.803ms (17.796ms)
    Query Timeline: 52s418ms
       - Query submitted: 41.207us (41.207us)
       - Planning finished: 118.402ms (118.361ms)
       - Submit for admission: 119.006ms (603.915us)
       - Queued: 120.311ms (1.305ms)
       - Completed admission: 38s742ms (38s622ms)
       - Ready to start on 3 backends: 38s743ms (812.004us)
       - First row fetched: 51s950ms (13s207ms)
       - Last row fetched: 51s951ms (1.310ms)
       - Released admission control resources: 51s960ms (8.902ms)
       - Unregister query: 52s418ms (457.660ms)
     - AdmissionControlTimeSinceLastUpdate: 85.000ms
  ImpalaServer:
     - ClientFetchWaitTimer: 47.800ms
  Execution Profile 1111222233334444:aaaabbbb00000000:(Total: 13s198ms, non-child: 0.000ns, % non-child: 0.00%)
    Per Node Peak Memory Usage: coord-1:27000(4.00 MB) exec-1:27000(98.00 MB) exec-2:27000(96.00 MB) 
    Per Node Profiles:
      exec-1:27000:(Total: 13s120ms, non-child: 13s120ms, % non-child: 100.00%)
         - AdmissionSlots: 2 (2)
         - ScratchBytesWritten: 1.00 MB (1048576)
      exec-2:27000:(Total: 13s120ms, non-child: 13s120ms, % non-child: 100.00%)
         - AdmissionSlots: 2 (2)
         - ScratchBytesWritten: 2.00 MB (2097152)
    Averaged Fragment F00:
         - ScratchBytesWritten: 9.00 MB (9437184)
`;

const LEGACY = `Some header of a collecting tool
Query (id=5555666677778888:ccccdddd00000000):
  Summary:
    Start Time: 2019-04-01 08:00:00.000000000
    Query Type: QUERY
    Query State: FINISHED
    Query Status: OK
    User: carol
    Sql Statement: select 1
    Coordinator: old-1:22000
    Plan: 
----------------
Per-Host Resource Estimates: Memory=52.00MB
----------------
    Estimated Per-Host Mem: 54525952
    Tables Missing Stats: default.sample_07
    Per Host Min Reservation: old-1:22000(0) old-2:22000(0) 
    Request Pool: root.carol
    Admission result: Admitted (queued)
    Admission queue details: waited 2500 ms, reason: queue is not empty (size 4); queued queries are executed first.
    Planner Timeline: 30.000ms
       - Planning finished: 30.000ms (1.000ms)
    Query Timeline: 2m4s
       - Query submitted: 100.000us (100.000us)
       - Planning finished: 30.000ms (29.900ms)
       - Submit for admission: 31.000ms (1.000ms)
       - Completed admission: 2s531ms (2s500ms)
       - Rows available: 1m2s (59s469ms)
       - Last row fetched: 2m3s (1m1s)
       - Unregister query: 2m4s (900.000ms)
`;

const STILL_QUEUED = `Query (id=9999aaaabbbbcccc:eeeeffff00000000):
  Summary:
    Start Time: 2026-08-22 10:16:00.000000000
    End Time: 
    Query Type: QUERY
    Query State: COMPILED
    Impala Query State: PENDING
    Query Status: OK
    User: ana
    Sql Statement: select 1
    Coordinator: coord-1:27000
    Estimated Per-Host Mem: 209715200
    Request Pool: root.etl
    Latest admission queue reason: number of running queries 4 is at or over limit 4.
    Admission result: Queued
    Initial admission queue reason: number of running queries 4 is at or over limit 4.
    Query Timeline: 5s000ms
       - Query submitted: 41.207us (41.207us)
       - Submit for admission: 119.006ms (118.964ms)
       - Queued: 120.311ms (1.305ms)
`;

describe("insight 4.1, surfaces 3 profiles as text", () => {
  test("a queued and admitted one: keys by name, times to the microsecond where the steps show them", async () => {
    const log = await readQueryLog(fileWith(QUEUED));
    expect(log.form).toBe("profiles");
    expect(log.queries[0]).toMatchObject({
      queryId: "1111222233334444:aaaabbbb00000000",
      user: "ana",
      pool: "root.etl",
      outcome: "fromQueue",
      end: "finished",
      start: Date.UTC(2026, 7, 22, 10, 15, 2, 118) * 1000 + 44,
      submitted: 119_006,
      unregistered: 52_417_995,
      estimate: 200 * MiB,
      coordinatorEstimate: 104 * MiB,
      reservation: 12 * MiB,
      clusterAdmitted: 6 * GiB,
      backends: 3,
      peakMax: 98 * MiB,
      peakMin: 4 * MiB,
      spilled: 3 * MiB,
      executorSlots: 2,
      clientWait: 47_800,
      missingStats: ["sales.orders"],
      options: { memLimit: 2 * GiB },
    });
  });

  test("before 2.12 only the peaks name the hosts", async () => {
    const old = QUEUED.replace(/^ +Per Host .*\n/gm, "");
    const { queries } = await readQueryLog(fileWith(old));
    expect(queries[0]).toMatchObject({ backends: 3, hosts: ["coord-1:27000", "exec-1:27000", "exec-2:27000"] });
  });

  test("the statement's own lines are no keys", async () => {
    const { queries } = await readQueryLog(fileWith(QUEUED));
    expect(queries[0]?.pool).toBe("root.etl");
  });

  test("old spellings: reservation line, queue details, planner timeline, no peaks", async () => {
    const { queries } = await readQueryLog(fileWith(LEGACY));
    expect(queries[0]).toMatchObject({
      line: 2,
      pool: "root.carol",
      outcome: "fromQueue",
      backends: 2,
      missingStats: ["default.sample_07"],
      peakMax: null,
      spilled: null,
    });
  });

  test("minutes hide milliseconds: the steps' sum is used while it fits the printed total", async () => {
    const { queries } = await readQueryLog(fileWith(LEGACY));
    // 2.531 s + 59.469 s + 1m1s: within the second that `2m3s` shows.
    expect(queries[0]?.lastRow).toBe(123_000_000);
    expect(queries[0]?.unregistered).toBe(123_900_000);
  });

  test("without a completed event the waited text gives the end of the wait", async () => {
    const text = LEGACY.replace(/ {7}- Completed admission[^\n]*\n/, "");
    const { queries } = await readQueryLog(fileWith(text));
    expect(queries[0]?.completedAdmission).toBe(31_000 + 2_500_000);
  });

  test("several profiles in one file, one of them still waiting", async () => {
    const { queries } = await readQueryLog(fileWith(`${QUEUED}\n${LEGACY}\n${STILL_QUEUED}`));
    expect(queries.map((q) => q.outcome)).toEqual(["fromQueue", "fromQueue", "waiting"]);
    expect(queries[2]).toMatchObject({ end: "running", completedAdmission: null });
  });

  test("a profile without its start is counted as unreadable", async () => {
    await expect(readQueryLog(fileWith(QUEUED.replace(/ {4}Start Time[^\n]*\n/, "")))).rejects.toThrow(/Start Time/);
  });
});
