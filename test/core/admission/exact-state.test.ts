/** All checks of a waiting query, against one controller's view and against the truth (insight 2.3). */
import { describe, expect, test } from "vitest";
import { AdmissionController, type Checks } from "../../../src/core/admission/controller.ts";
import { controllerOptions } from "../../../src/core/admission/controller-options.ts";
import { ExactState } from "../../../src/core/admission/exact-state.ts";
import { DEFAULT_POOL_CONFIG } from "../../../src/core/pool-config.ts";
import { at, Bench, fragment, gib, group, hosts, membership, poolConfig, request, shape } from "../fixtures.ts";

const rules = (checks: Checks) =>
  checks.kind === "groups" ? checks.groups.map((g) => g.failing.map((r) => r.rule)) : checks.reason.rule;

describe("every check that fails", () => {
  test("not only the first, in the product's order, and nothing changes by asking", () => {
    const m = membership(hosts(2, { executorGroup: group("root.p-g"), admissionSlots: 2, admitMemLimit: gib(1) }));
    const bench = new Bench(m);
    const config = poolConfig({ maxRequests: 1, maxMemResources: gib(3) });
    const twoSlots = shape({ fragments: [fragment({ instancesPerHost: 2 })] });
    bench.submit(config, { shape: twoSlots });
    const q = bench.submit(config, { shape: twoSlots });
    const before = JSON.stringify([q.failures, q.attemptReason, bench.stats()]);
    expect(rules(bench.controller.checksFor(q, bench.now))).toEqual([["ADM-2", "ADM-3", "ADM-4", "ADM-5"]]);
    expect(JSON.stringify([q.failures, q.attemptReason, bench.stats()])).toBe(before);
  });

  test("of a query that would go now: none; of one with nowhere to go: why", () => {
    const bench = new Bench(membership(hosts(2)));
    const one = poolConfig({ maxRequests: 1 });
    const running = bench.submit(one);
    const q = bench.submit(one);
    bench.release(running);
    expect(rules(bench.controller.checksFor(q, bench.now)), "wake-up").toEqual([[]]);
    bench.controller.setMembership(membership([{ ...hosts(1)[0]!, isExecutor: false }]));
    expect(rules(bench.controller.checksFor(q, bench.now))).toBe("NO-EXECUTORS");
  });

  test("a rejection to come is told apart", () => {
    const bench = new Bench(membership(hosts(2)));
    bench.submit(poolConfig({ maxRequests: 1 }));
    const q = bench.submit(poolConfig({ maxRequests: 1 }));
    bench.submit(poolConfig({ maxRequests: 1, maxMemResources: gib(1) }));
    expect(bench.controller.checksFor(q, bench.now)).toMatchObject({ groups: [{ rejection: { rule: "REJ-B7" } }] });
  });
});

describe("the exact state", () => {
  test("a view that lags waits for news, not for room", () => {
    const m = membership(hosts(2));
    const [a, b] = ["h0:1", "h1:1"].map((hostId) => {
      const c = new AdmissionController(controllerOptions({ hostId }));
      c.setMembership(m);
      return c;
    });
    const one = poolConfig({ maxRequests: 1, maxMemResources: gib(3) });
    const first = a!.submit(request(), one, DEFAULT_POOL_CONFIG, at(0));
    b!.applyUpdate({ isDelta: false, entries: a!.collectUpdate() }, at(0));
    const q = b!.submit(request({ coordinator: "h1:1" }), one, DEFAULT_POOL_CONFIG, at(1));
    const nothingReserved = { ofPool: () => 0, onHost: () => 0 };
    const exact = new ExactState([a!, b!], nothingReserved);
    expect(rules(b!.checksFor(q, at(1), exact.viewOf("root.p")))).toEqual([["ADM-2", "ADM-4"]]);
    a!.releaseQuery(first, -1);
    expect(rules(b!.checksFor(q, at(2))), "as b sees it").toEqual([["ADM-2"]]);
    expect(rules(b!.checksFor(q, at(2), exact.viewOf("root.p"))), "as it is").toEqual([[]]);
  });

  test("what hosts really hold counts like what was admitted", () => {
    const bench = new Bench(membership(hosts(2, { admitMemLimit: gib(2) })));
    const config = poolConfig({ maxRequests: 1, maxMemResources: gib(100) });
    bench.submit(config);
    const q = bench.submit(config);
    const exact = new ExactState([bench.controller], {
      ofPool: () => gib(99),
      onHost: (host) => (host === "h1:1" ? gib(2) : 0),
    });
    const checks = bench.controller.checksFor(q, bench.now, exact.viewOf("root.p"));
    expect(checks).toMatchObject({
      groups: [{ failing: [{ rule: "ADM-2" }, { rule: "ADM-4" }, { rule: "ADM-5", host: "h1:1" }] }],
    });
  });
});
