/** What of the hosts stops those who wait, in the state of the cluster as it is, and when that is looked at. */
import { describe, expect, test } from "vitest";
import { AdmissionController } from "../../../src/core/admission/controller.ts";
import { controllerOptions } from "../../../src/core/admission/controller-options.ts";
import { HostLooks, isOverOnAHost } from "../../../src/core/admission/host-looks.ts";
import type { AdmissionQuery } from "../../../src/core/admission/query.ts";
import { DEFAULT_POOL_CONFIG } from "../../../src/core/pool-config.ts";
import { at, gib, group, hosts, membership, mib, poolConfig, request, shape } from "../fixtures.ts";

/** Two coordinators that have not heard of each other, on hosts with two slots and 4 GiB; a query takes 1 and 1.25. */
function twoControllers() {
  const m = membership(hosts(2, { executorGroup: group("root.p-g"), admissionSlots: 2, admitMemLimit: gib(4) }));
  return ["h0:1", "h1:1"].map((hostId) => {
    const c = new AdmissionController(controllerOptions({ hostId, keepsIds: false }));
    c.setMembership(m);
    c.applyUpdate({ isDelta: false, entries: [] }, at(0));
    return c;
  }) as [AdmissionController, AdmissionController];
}

const one = poolConfig({ maxRequests: 1, maxMemResources: gib(100) });
const many = poolConfig({ maxMemResources: gib(100) });
const submit = (c: AdmissionController, config = one, over = {}): AdmissionQuery =>
  c.submit(request({ coordinator: c.options.hostId, ...over }), config, DEFAULT_POOL_CONFIG, at(0));

interface Told {
  readonly q: AdmissionQuery;
  readonly stops: readonly [slots: boolean, hostMemory: boolean];
  readonly at: number;
}

function looking(controllers: readonly AdmissionController[]) {
  const told: Told[] = [];
  const looks = new HostLooks(
    () => controllers,
    (q, slots, hostMemory, when) => told.push({ q, stops: [slots, hostMemory], at: when }),
  );
  return { looks, told };
}

describe("insight 2.3 slots and host memory in the exact state", () => {
  test("the running limit is what is told first; that the slots are gone too shows in the sum over controllers", () => {
    const [a, b] = twoControllers();
    submit(a);
    const q = submit(a);
    expect(q.latestReason).toMatchObject({ rule: "ADM-2" });
    const { looks, told } = looking([a, b]);
    looks.queueBegan();
    looks.instantOver(0, 10_000);
    expect(told).toEqual([{ q, stops: [false, false], at: 0 }]);
    // The other one, which has heard of nobody, takes the second slot.
    const other = submit(b);
    looks.instantOver(600, 10_000);
    expect(told.at(-1)).toEqual({ q, stops: [true, false], at: 1000 });
    b.releaseQuery(other, -1);
    looks.instantOver(1400, 10_000);
    expect(told.at(-1)).toEqual({ q, stops: [false, false], at: 1500 });
    expect(told).toHaveLength(3);
  });

  test("host memory too; each kind of query in the queue is asked for once", () => {
    const [a, b] = twoControllers();
    submit(a);
    const large = shape({ perHostMemEstimate: gib(3.5) });
    const first = submit(a, one, { shape: large });
    submit(a, one, { shape: large });
    const small = submit(a, one);
    const { looks, told } = looking([a, b]);
    looks.queueBegan();
    looks.instantOver(0, 10_000);
    expect(told.map((t) => [t.q, t.stops])).toEqual([
      [first, [false, true]],
      [small, [false, false]],
    ]);
  });

  test("sixteen kinds at most, and none beyond the sixty-fourth query", () => {
    const [a] = twoControllers();
    submit(a);
    for (let i = 0; i < 20; i++) submit(a, one, { shape: shape({ perHostMemEstimate: mib(1024 + i) }) });
    const { looks, told } = looking([a]);
    looks.queueBegan();
    looks.instantOver(0, 10_000);
    expect(told).toHaveLength(16);
    const [b] = twoControllers();
    submit(b);
    for (let i = 0; i < 64; i++) submit(b);
    submit(b, one, { shape: shape({ perHostMemEstimate: gib(3) }) });
    const far = looking([b]);
    far.looks.queueBegan();
    far.looks.instantOver(0, 10_000);
    expect(far.told).toHaveLength(1);
  });

  test("looks lie on multiples of half a second, whatever happens in between, and further apart in a long run", () => {
    const [a] = twoControllers();
    submit(a);
    submit(a);
    const times = (instants: readonly (readonly [now: number, next: number])[]): number[] => {
      const seen: number[] = [];
      const looks = new HostLooks(
        () => {
          seen.push(0);
          return [a];
        },
        (_q, _s, _m, when) => {
          seen[seen.length - 1] = when;
        },
      );
      looks.queueBegan();
      for (const [now, next] of instants) looks.instantOver(now, next);
      return seen;
    };
    // One long gap, or the same with instants in it at which nothing changes: told once, at the same moment.
    expect(times([[100, 5000]])[0]).toBe(500);
    expect(
      times([
        [100, 300],
        [300, 700],
        [700, 5000],
      ])[0],
    ).toBe(500);
    // Nothing falls between two instants that are closer together.
    expect(times([[100, 400]])).toEqual([]);
    expect(times([[499_600, 500_300]])[0]).toBe(500_000);
    expect(times([[500_001, 500_900]])).toEqual([]);
    expect(times([[500_001, 501_100]])[0]).toBe(501_000);
  });

  test("a head that is told of a host which was not known to stop it: this very instant is looked at, once", () => {
    const [a, b] = twoControllers();
    submit(a, many);
    submit(a, many);
    const q = submit(a, many);
    expect(q.latestReason).toMatchObject({ rule: "ADM-3" });
    const { looks, told } = looking([a, b]);
    looks.headWaits(q);
    looks.instantOver(123, 124);
    expect(told).toEqual([{ q, stops: [true, false], at: 123 }]);
    looks.headWaits(q);
    looks.instantOver(200, 201);
    expect(looks.idleUntil).toBe(500);
  });

  test("nobody waits, nobody looks", () => {
    const [a] = twoControllers();
    submit(a);
    const q = submit(a);
    const { looks } = looking([a]);
    expect(looks.idleUntil).toBe(Number.POSITIVE_INFINITY);
    looks.queueBegan();
    expect(looks.idleUntil).toBe(0);
    a.cancel(q, at(1));
    looks.instantOver(1, 10_000);
    expect(looks.idleUntil).toBe(Number.POSITIVE_INFINITY);
  });
});

describe("insight 2.4 admissions that the exact state of the hosts would have refused", () => {
  test("slots: the second one of two that don't know of each other still fits, the third doesn't", () => {
    const [a, b] = twoControllers();
    expect(isOverOnAHost(submit(a, many), [a, b])).toBe(false);
    expect(isOverOnAHost(submit(b, many), [a, b])).toBe(false);
    expect(isOverOnAHost(submit(b, many), [a, b])).toBe(true);
  });

  test("memory: equality fits", () => {
    const [a, b] = twoControllers();
    const half = shape({ perHostMemEstimate: gib(2) });
    const more = shape({ perHostMemEstimate: gib(2.5) });
    expect(isOverOnAHost(submit(a, many, { shape: half }), [a, b])).toBe(false);
    expect(isOverOnAHost(submit(b, many, { shape: half }), [a, b])).toBe(false);
    const [c, d] = twoControllers();
    submit(c, many, { shape: half });
    expect(isOverOnAHost(submit(d, many, { shape: more }), [c, d])).toBe(true);
    // A pool without a memory limit asks no host (T-15).
    const unlimited = poolConfig({});
    expect(isOverOnAHost(submit(d, unlimited, { shape: shape() }), [c])).toBe(false);
  });
});
