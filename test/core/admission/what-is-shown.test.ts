/** Profile lines, metrics, and the details of a timeout (admission 10, 4). */
import { describe, expect, test } from "vitest";
import { admissionMetrics, membershipMetrics } from "../../../src/core/admission/metrics.ts";
import { NO_USAGE } from "../../../src/core/admission/pool-stats.ts";
import { profileLines, timeSinceUpdateNanos } from "../../../src/core/admission/profile-figures.ts";
import type { AdmissionQuery } from "../../../src/core/admission/query.ts";
import { type Bytes, millis } from "../../../src/core/units.ts";
import {
  at,
  Bench,
  backend,
  fragment,
  gib,
  group,
  hosts,
  membership,
  mib,
  poolConfig,
  request,
  shape,
  trivialShape,
} from "../fixtures.ts";

const profile = (q: AdmissionQuery): Record<string, string> => Object.fromEntries(profileLines(q));

describe("10.2 profile lines", () => {
  const one = poolConfig({ maxRequests: 1, queueTimeout: millis(5000) });

  test("admitted at once", () => {
    const bench = new Bench(membership(hosts(2, { executorGroup: group("root.p-g") })));
    const fragments = [fragment({ runsOn: "coordinator" }), fragment({ minReservationPerInstance: mib(4) })];
    expect(profile(bench.submit(one, { shape: shape({ fragments }) }))).toEqual({
      "Estimated Per-Host Mem": "1073741824",
      "Request Pool": "root.p",
      "Per Host Min Memory Reservation": "h0:1(4.00 MB) h1:1(4.00 MB) ",
      "Per Host Number of Fragment Instances": "h0:1(2) h1:1(1) ",
      "Admission result": "Admitted immediately",
      "Cluster Memory Admitted": "2.00 GB",
      "Executor Group": "root.p-g",
      "Number of running queries in designated executor group when admitted": "1",
    });
  });

  test("trivially, on a stale view, with a local blacklist", () => {
    const bench = new Bench(membership(hosts(3), { blacklisted: new Set(["h2:1"]) }));
    bench.now = at(7250);
    const q = bench.submit(one, { shape: trivialShape() });
    expect(profile(q)).toMatchObject({
      "Blacklisted Executors": "h2:1 ",
      "Admission result": "Admitted as a trivial query",
      "Executor Group": "empty group (using coordinator only)",
      "Number of running queries in designated executor group when admitted": "0",
      "Admission control state staleness":
        "Warning: admission control information from statestore is stale: 7s250ms since last update was received.",
    });
    expect(timeSinceUpdateNanos(q)).toBe(7_250_000_000);
  });

  test("while waiting, and after it", () => {
    const bench = new Bench(membership(hosts(2)));
    const running = bench.submit(one);
    const q = bench.submit(one);
    expect(profile(q)).toMatchObject({
      "Admission result": "Queued",
      "Initial admission queue reason": "number of running queries 1 is at or over limit 1.",
      "Latest admission queue reason": "number of running queries 1 is at or over limit 1.",
    });
    bench.now = at(1234);
    bench.release(running);
    bench.pass();
    expect(profile(q)).toMatchObject({
      "Admission result": "Admitted (queued)",
      "Initial admission queue reason": "waited 1234 ms, reason: number of running queries 1 is at or over limit 1.",
    });
  });

  test("the other results", () => {
    const bench = new Bench(membership(hosts(2)));
    bench.submit(one);
    const [late, gone, early] = [bench.submit(one), bench.submit(one), request()];
    bench.controller.timeOut(late!, at(5000));
    bench.controller.cancel(gone!, at(10));
    const cancelled = bench.controller.submitCancelled(early, poolConfig(), bench.root, at(0));
    const refused = bench.submit(poolConfig({ maxRequests: 0 }));
    expect([late!, gone!, cancelled, refused].map((q) => profile(q)["Admission result"])).toEqual([
      "Timed out (queued)",
      "Cancelled (queued)",
      undefined,
      "Rejected",
    ]);
    expect(timeSinceUpdateNanos(refused)).toBeNull();
  });
});

describe("10.4 metrics", () => {
  test("named after the pool and the group, with the limits of the last submission", () => {
    const bench = new Bench(membership(hosts(2, { executorGroup: group("root.p-g") })));
    const quota = new Map([["*", 9]]);
    bench.submit(poolConfig({ maxRequests: 1, userQueryLimits: quota }));
    bench.submit(poolConfig({ maxRequests: 1, maxMemResources: gib(7), userQueryLimits: quota }), { user: "bob" });
    const found = new Map(admissionMetrics(bench.controller).map((m) => [m.name, m.value]));
    const of = (key: string) => found.get(`admission-controller.${key}.root.p`);
    expect([of("total-admitted"), of("total-queued"), of("agg-num-running"), of("local-num-queued")]).toEqual([
      1, 1, 1, 1,
    ]);
    expect([of("local-mem-admitted"), of("pool-max-mem-resources"), of("pool-queue-timeout")]).toEqual([
      gib(2),
      gib(7),
      60_000,
    ]);
    expect(of("agg-current-users")).toEqual(["ana", "bob"]);
    expect(found.get("admission-controller.executor-group.num-queries-executing.root.p-g")).toBe(1);
    expect(found.get("admission-controller.total-dequeue-failed-coordinator-limited")).toBe(0);
    expect(admissionMetrics(bench.controller)).toHaveLength(26 + 2);
  });

  test("of the membership", () => {
    const m = membership([...hosts(2), backend("x:1", { executorGroup: group("g", 2) })]);
    expect(Object.fromEntries(membershipMetrics(m).map((f) => [f.name, f.value]))).toEqual({
      "cluster-membership.backends.total": 3,
      "cluster-membership.executor-groups.total": 2,
      "cluster-membership.executor-groups.total-healthy": 1,
    });
  });

  test("the resettable figures, and the others that stay", () => {
    const bench = new Bench(membership(hosts(2)));
    const q = bench.submit(poolConfig());
    bench.stats().countWait(500);
    bench.stats().resetInformational();
    expect(bench.stats()).toMatchObject({ totalAdmitted: 0, timeInQueueMs: 0, waitTimeMsEma: 0, localRunning: 1 });
    bench.release(q, gib(3));
    bench.stats().resetInformational();
    expect(bench.stats().peakMemHistogram.every((n) => n === 0)).toBe(true);
  });
});

describe("Additional Details of a memory failure", () => {
  const usage = (...consumed: number[]) => ({
    ...NO_USAGE,
    heavyQueries: consumed.map((n, i) => ({ queryId: `q${i}`, consumed: mib(n) })),
    minMemConsumed: mib(Math.min(...consumed)),
    maxMemConsumed: mib(Math.max(...consumed)),
    totalMemConsumed: mib(consumed.reduce((a, b) => a + b, 0)),
    numRunning: consumed.length,
  });

  /** `h0` has told of what its queries consume. */
  const told = (memLimit: Bytes): Bench => {
    const bench = new Bench(membership(hosts(1, { admitMemLimit: memLimit })));
    bench.controller.setBackendUsage("root.p", usage(20, 10));
    bench.controller.setBackendUsage("root.o", usage(15));
    bench.tick();
    return bench;
  };

  test("of a host, by pool", () => {
    const bench = told(gib(1));
    const config = poolConfig({ maxMemResources: gib(100) });
    bench.submit(config);
    expect(bench.submit(config).details).toBe(
      [
        "",
        "Stats for host h0:1",
        "   pool_name=root.p: ",
        "      topN_query_stats: ",
        "         queries=[",
        "            id=q0, consumed=20.00 MB, ",
        "            id=q1, consumed=10.00 MB",
        "         ],",
        "         total_consumed=30.00 MB",
        "         fraction_of_pool_total_mem=1",
        "      all_query_stats: ",
        "         num_running=2, ",
        "         min=10.00 MB, ",
        "         max=20.00 MB, ",
        "         pool_total_mem=30.00 MB, ",
        "         average=15.00 MB",
        "   pool_name=root.o: ",
        "      topN_query_stats: ",
        "         queries=[",
        "            id=q0, consumed=15.00 MB",
        "         ],",
        "         total_consumed=15.00 MB",
        "         fraction_of_pool_total_mem=1",
        "      all_query_stats: ",
        "         num_running=1, ",
        "         min=15.00 MB, ",
        "         max=15.00 MB, ",
        "         pool_total_mem=15.00 MB, ",
        "         average=15.00 MB",
        "",
      ].join("\n"),
    );
  });

  test("the share is divided in 32 bits: 39 of 40 MB are 0.98 there, and 0.97 in 64", () => {
    const bench = new Bench(membership(hosts(1, { admitMemLimit: gib(1) })));
    bench.controller.setBackendUsage("root.p", usage(15, 10, 8, 4, 2, 1));
    bench.tick();
    const config = poolConfig({ maxMemResources: gib(100) });
    bench.submit(config);
    expect(bench.submit(config).details).toContain(
      "total_consumed=39.00 MB\n         fraction_of_pool_total_mem=0.98\n",
    );
  });

  test("of a pool, summed over hosts; T-7: it stays when a later attempt fails for another reason", () => {
    const bench = told(gib(100));
    const config = poolConfig({ maxMemResources: gib(1) });
    bench.submit(config);
    const q = bench.submit(config);
    const details = [
      "",
      "Aggregated stats for pool root.p:",
      "   topN_query_stats: ",
      "      queries=[",
      "         id=q0, consumed=20.00 MB, ",
      "         id=q1, consumed=10.00 MB",
      "      ],",
      "      total_consumed=30.00 MB",
      "      fraction_of_pool_total_mem=1",
      "",
    ].join("\n");
    expect(q.details).toBe(details);
    bench.submit(poolConfig({ maxMemResources: gib(1), maxRequests: 1 }));
    bench.tick();
    bench.pass();
    expect(q).toMatchObject({ details, latestReason: { rule: "ADM-2" } });
  });

  test("nobody has told anything: empty", () => {
    const bench = new Bench(membership(hosts(1)));
    const config = poolConfig({ maxMemResources: gib(1) });
    bench.submit(config);
    expect(bench.submit(config).details).toBe("");
  });
});
