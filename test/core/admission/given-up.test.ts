/** A client that gives up before its submission is decided (admission 5.6). */
import { describe, expect, test } from "vitest";
import { admissionResult } from "../../../src/core/admission/profile-figures.ts";
import type { AdmissionQuery } from "../../../src/core/admission/query.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../../src/core/pool-config.ts";
import { Bench, hosts, membership, poolConfig, request } from "../fixtures.ts";

const giveUp = (bench: Bench, config: PoolConfig): AdmissionQuery =>
  bench.controller.submitCancelled(request(), config, DEFAULT_POOL_CONFIG, bench.now);

describe("5.6 cancelled before the decision", () => {
  test("nothing is charged, nothing counted, and no result is written", () => {
    const bench = new Bench(membership(hosts(2)));
    const q = giveUp(bench, poolConfig());
    expect(admissionResult(q)).toBeNull();
    expect(bench.stats()).toMatchObject({ totalAdmitted: 0, localRunning: 0, localMemAdmitted: 0 });
  });

  test("a rejection isn't counted either", () => {
    const bench = new Bench(membership(hosts(2)));
    expect(giveUp(bench, poolConfig({ maxRequests: 0 })).state).toBe("cancelled");
    expect(bench.stats().totalRejected).toBe(0);
  });

  test("one that has to queue is enqueued and leaves at once", () => {
    const bench = new Bench(membership(hosts(2)));
    bench.submit(poolConfig({ maxRequests: 1 }));
    expect(admissionResult(giveUp(bench, poolConfig({ maxRequests: 1 })))).toBe("Cancelled (queued)");
    expect(bench.stats()).toMatchObject({ totalQueued: 1, totalDequeued: 1, localQueued: 0 });
  });

  test("REJ-C4: a service short of memory refuses without looking whether anybody still waits", () => {
    const bench = new Bench(membership(hosts(2)), { mode: "global" });
    bench.controller.setProcessMemory(11, 10);
    expect(giveUp(bench, poolConfig()).rejectReason).toEqual({ rule: "REJ-C4", usage: 11, limit: 10 });
    expect(bench.stats().totalRejected).toBe(1);
  });
});
