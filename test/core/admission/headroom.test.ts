/**
 * The incremental figures against the plain checks: whatever happened before, a controller lets a query in
 * exactly when looking at every host finds nothing wrong.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HeadroomTree } from "../../../src/core/admission/headroom-tree.ts";
import type { AdmissionQuery } from "../../../src/core/admission/query.ts";
import type { BackendDescriptor } from "../../../src/core/cluster/backend.ts";
import { bytes, MiB } from "../../../src/core/units.ts";
import {
  Bench,
  backend,
  dedicatedCoordinator,
  fragment,
  gib,
  group,
  membership,
  mib,
  poolConfig,
  shape,
} from "../fixtures.ts";

describe("the tournament tree", () => {
  test("least, least but one, after any writes", () => {
    const write = fc.tuple(fc.nat(12), fc.integer({ min: -5, max: 5 }), fc.boolean());
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 13 }), fc.array(write, { maxLength: 60 }), (size, writes) => {
        const tree = new HeadroomTree(size);
        const plain = new Array<number>(size).fill(Number.POSITIVE_INFINITY);
        for (const [i, value, inBulk] of writes) {
          if (i >= size) continue;
          plain[i] = value;
          if (inBulk) {
            tree.put(i, value);
            tree.rebuild();
          } else tree.set(i, value);
          expect(tree.least).toBe(Math.min(...plain));
          for (let need = -5; need <= 6; need++) {
            expect(tree.firstBelow(need)).toBe(plain.findIndex((v) => v < need));
            const first = plain.findIndex((v, j) => v < need && j !== i);
            expect(tree.firstBelowExcept(need, i)).toBe(first);
          }
          for (let k = 0; k < size; k++) expect(tree.leastExcept(k)).toBe(Math.min(...plain.filter((_, j) => j !== k)));
        }
      }),
      { numRuns: 60 },
    );
  });
});

/** One thing that happens to a controller of a few hosts in two groups. */
type Step =
  | {
      readonly kind: "submit";
      readonly mem: number;
      readonly slots: number;
      readonly width: number;
      readonly offset: number;
      readonly own: number;
    }
  | { readonly kind: "releaseSome"; readonly which: number; readonly mask: number }
  | { readonly kind: "release"; readonly which: number }
  | { readonly kind: "remote"; readonly host: number; readonly mem: number; readonly slots: number }
  | { readonly kind: "reserved"; readonly host: number; readonly mem: number }
  | { readonly kind: "membership"; readonly mask: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("submit" as const),
      mem: fc.integer({ min: 1, max: 700 }),
      slots: fc.integer({ min: 1, max: 5 }),
      width: fc.integer({ min: 1, max: 7 }),
      offset: fc.nat(6),
      own: fc.integer({ min: 0, max: 700 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("releaseSome" as const), which: fc.nat(20), mask: fc.nat(127) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("release" as const), which: fc.nat(20) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("remote" as const),
      host: fc.nat(6),
      mem: fc.nat(1500),
      slots: fc.nat(8),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("reserved" as const), host: fc.nat(6), mem: fc.nat(1500) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("membership" as const), mask: fc.nat(127) }) },
);

const HOSTS = 7;
const address = (i: number) => `h${i}:1`;

/** `h0` coordinates: an executor of the group, or dedicated. */
function cluster(mask: number, dedicated: boolean): BackendDescriptor[] {
  const limits = { admitMemLimit: gib(2), admissionSlots: 12, executorGroup: group("root.p-g") };
  const coordinator = dedicated
    ? dedicatedCoordinator(address(0), { ...limits, admitMemLimit: gib(1) })
    : backend(address(0), { ...limits, isCoordinator: true });
  const others = Array.from({ length: HOSTS - 1 }, (_, i) => backend(address(i + 1), limits));
  return [coordinator, ...others.filter((_, i) => i === 0 || (mask & (1 << i)) !== 0)];
}

const config = poolConfig({ maxMemResources: gib(10_000), maxQueued: 1_000_000 });

class Story {
  readonly #bench: Bench;
  readonly #dedicated: boolean;
  readonly #running: AdmissionQuery[] = [];
  readonly #remote = new Map<number, readonly [mem: number, slots: number]>();
  admitted = 0;
  waited = 0;

  constructor(dedicated: boolean) {
    this.#dedicated = dedicated;
    this.#bench = new Bench(membership(cluster(127, dedicated)));
  }

  take(s: Step): void {
    switch (s.kind) {
      case "submit":
        this.#submit(s);
        break;
      case "releaseSome":
        this.#releaseSome(s.which, s.mask);
        break;
      case "release":
        this.#release(s.which);
        break;
      case "membership":
        this.#bench.controller.setMembership(membership(cluster(s.mask, this.#dedicated)));
        break;
      case "remote":
        this.#hear(s.host, s.mem * MiB, s.slots);
        break;
      case "reserved":
        this.#reserve(s.host, s.mem);
        break;
    }
    this.#bench.check();
  }

  #submit(s: Extract<Step, { kind: "submit" }>): void {
    const fragments = [
      fragment({ runsOn: "coordinator", minReservationPerInstance: mib(s.own) }),
      fragment({ instancesPerHost: s.slots }),
    ];
    const executors = s.width === HOSTS ? "all" : s.width;
    const q = this.#bench.submit(config, {
      shape: shape({ perHostMemEstimate: mib(s.mem), fragments, executors }),
      placementOffset: s.offset,
    });
    if (q.state === "running") this.#mayRun(q);
    else if (q.state === "queued") this.#mustWait(q);
  }

  /** On every one of its hosts there was room for it. */
  #mayRun(q: AdmissionQuery): void {
    const { hosts: book } = this.#bench.controller;
    q.plan!.schedule.backends.forEach(({ desc }, i) => {
      const h = book.host(desc.address);
      const admitted = book.admittedBySelf(h) + book.remoteMem[h]!;
      expect(Math.max(admitted, book.memReserved[h]! + q.memOn(i))).toBeLessThanOrEqual(desc.admitMemLimit);
      expect(book.effectiveSlots(h)).toBeLessThanOrEqual(desc.admissionSlots);
    });
    this.#running.push(q);
    this.admitted++;
  }

  /** Looking at every host finds the reason that was given, first of all. */
  #mustWait(q: AdmissionQuery): void {
    const { controller, now } = this.#bench;
    const checks = controller.checksFor(q, now);
    expect(checks.kind === "groups" ? checks.groups[0]!.failing[0] : null).toEqual(q.initialReason);
    controller.cancel(q, now);
    this.waited++;
  }

  #releaseSome(which: number, mask: number): void {
    const q = this.#running[which % Math.max(1, this.#running.length)];
    if (q === undefined) return;
    const positions = q.plan!.schedule.hosts.map((_, i) => i).filter((i) => (mask & (1 << i)) !== 0);
    this.#bench.controller.releaseBackends(q, positions);
  }

  #release(which: number): void {
    const [q] = this.#running.splice(which % Math.max(1, this.#running.length), 1);
    if (q !== undefined) this.#bench.release(q);
  }

  /** Another controller publishes what it has admitted on all hosts so far. */
  #hear(host: number, mem: number, slots: number): void {
    this.#remote.set(host, [mem, slots]);
    const on = [...this.#remote.keys()];
    const stats = {
      hosts: on.map(address),
      memReserved: on.map(() => 0),
      memAdmitted: on.map((h) => this.#remote.get(h)![0]),
      numAdmitted: on.map(() => 0),
      slotsInUse: on.map((h) => this.#remote.get(h)![1]),
    };
    const { controller, now } = this.#bench;
    controller.applyUpdate({ isDelta: true, entries: [{ kind: "hosts", host: "x:1", stats }] }, now);
  }

  /** A host publishes a reservation of another pool. */
  #reserve(host: number, mem: number): void {
    const none = bytes(0);
    const stats = {
      numAdmittedRunning: 0,
      numQueued: 0,
      backendMemReserved: mib(mem),
      userLoads: new Map<string, number>(),
      heavyQueries: [],
      minMemConsumed: none,
      maxMemConsumed: none,
      totalMemConsumed: none,
      numRunning: 0,
    };
    const { controller, now } = this.#bench;
    const entry = { kind: "pool", pool: "root.q", host: address(host), stats } as const;
    controller.applyUpdate({ isDelta: true, entries: [entry] }, now);
  }
}

describe("ADM-3 and ADM-5 decided without looking at every host", () => {
  test.each([{ dedicated: false }, { dedicated: true }])("dedicated coordinator $dedicated", ({ dedicated }) => {
    let admitted = 0;
    let waited = 0;
    fc.assert(
      fc.property(fc.array(step, { minLength: 20, maxLength: 60 }), (steps) => {
        const story = new Story(dedicated);
        for (const s of steps) story.take(s);
        admitted += story.admitted;
        waited += story.waited;
      }),
      { numRuns: 150, seed: 20_261_130 },
    );
    // Otherwise the property would say little.
    expect(admitted).toBeGreaterThan(500);
    expect(waited).toBeGreaterThan(500);
  });
});
