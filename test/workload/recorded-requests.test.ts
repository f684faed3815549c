import { describe, expect, test } from "vitest";
import type { Scenario } from "../../src/config/scenario.ts";
import { parseScenario } from "../../src/config/scenario-file.ts";
import type { AdmissionPath } from "../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG } from "../../src/core/pool-config.ts";
import type { QueryFacts } from "../../src/core/run-observer.ts";
import type { Instant } from "../../src/core/units.ts";
import { SilentObserver } from "../../src/insight/silent-observer.ts";
import { simulate } from "../../src/sim/simulate.ts";
import {
  firstAtOrAfter,
  isOpenTraffic,
  RecordedWorkload,
  recordRequests,
} from "../../src/workload/recorded-requests.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";
import type { Submission, Workload } from "../../src/workload/workload.ts";
import { RESOLVER, scenarioOf } from "../insight/size/size-fixtures.ts";

function taken(w: Workload): Submission[] {
  const all: Submission[] = [];
  while (w.nextAt() !== Number.POSITIVE_INFINITY) {
    expect(w.isExhausted()).toBe(false);
    const s = w.take();
    all.push(s);
    w.ended(s, "finished", s.intended);
  }
  expect(w.isExhausted()).toBe(true);
  return all;
}

const figures = (s: Submission): unknown[] => [
  s.intended,
  s.firstIntended,
  s.attempt,
  s.queryClass,
  s.pool,
  s.user,
  s.requestedPool,
  s.coordinator,
  s.duration,
  s.peak,
  s.placementOffset,
  s.cancelAt,
  s.unresolved,
  s.userGroups,
];

/** What each query is charged in a simulation, in order. */
function chargedIn(scenario: Scenario, workload: Workload): [at: number, bytes: number][] {
  const charged: [number, number][] = [];
  class Charges extends SilentObserver {
    override admitted(at: number, _q: QueryFacts, _path: AdmissionPath, _waited: number, cluster: number): void {
      charged.push([at, cluster]);
    }
  }
  simulate({ scenario, workload, pools: { configOf: () => DEFAULT_POOL_CONFIG }, observer: new Charges() });
  return charged;
}

describe("insight 3.4 item 7: drawn once, played many times", () => {
  const scenario = scenarioOf({ small: 3, large: 0.5, coordinators: 3, seconds: 100 });

  test("a record plays the very requests that were drawn, with their shapes", () => {
    const drawn = taken(createWorkload(scenario, RESOLVER, 2));
    const played = taken(new RecordedWorkload(recordRequests(createWorkload(scenario, RESOLVER, 2))));
    expect(played.length).toBeGreaterThan(200);
    expect(played.map(figures)).toEqual(drawn.map(figures));
    expect(played.map((s) => s.shape)).toEqual(drawn.map((s) => s.shape));
    expect(new Set(played.map((s) => s.queryId)).size).toBe(played.length);
  });

  test("its columns lie in shared memory", () => {
    const record = recordRequests(createWorkload(scenario, RESOLVER));
    expect(record.at.buffer).toBeInstanceOf(SharedArrayBuffer);
    expect(record.kind.buffer).toBeInstanceOf(SharedArrayBuffer);
    expect(record.at).toHaveLength(record.count);
  });

  test("a stretch of it, with other pools and clients that give up", () => {
    const record = recordRequests(createWorkload(scenario, RESOLVER));
    const from = firstAtOrAfter(record, 10_000);
    const to = firstAtOrAfter(record, 20_000);
    const played = taken(
      new RecordedWorkload(record, from, to, { poolOf: (kind) => `pool-${kind}`, cancelAtOf: (i) => i }),
    );
    expect(played.every((s) => s.intended >= 10_000 && s.intended < 20_000)).toBe(true);
    expect(played.map((s) => [s.pool, s.cancelAt])).toEqual(
      Array.from({ length: to - from }, (_, k) => [`pool-${record.kind[from + k]}`, from + k]),
    );
  });

  test.each([
    { at: -1, index: 0 },
    { at: 1_000_000, index: -1 },
  ])("the first request at or after $at", ({ at, index }) => {
    const record = recordRequests(createWorkload(scenario, RESOLVER));
    expect(firstAtOrAfter(record, at)).toBe(index < 0 ? record.count : index);
    const middle = record.at[17]!;
    expect(firstAtOrAfter(record, middle)).toBe(17);
    expect(firstAtOrAfter(record, middle + 0.0005)).toBe(18);
  });

  const withArrival = (line: string, more = ""): ReturnType<typeof parseScenario> =>
    parseScenario(
      `cluster: { executors: [{ count: 1, memory: 1gb }], coordinators: [{ count: 1, on: executor }] }\npools: flags\nqueries: { a: { estimate: 1gb, duration: 1s${more} } }\narrivals: [${line}]\n`,
      "/s.yaml",
    );

  test.each([
    ["{ rate: 1, query: a, from: 0s, to: 10s }", "", true],
    ["{ at: 0s, query: a, count: 3 }", "", true],
    ["{ clients: 2, think: 1s, query: a, to: 10s }", "", false],
    ["{ rate: 1, query: a, from: 0s, to: 10s, retries: { on: [rejected], attempts: 3 } }", "", false],
    ["{ rate: 1, query: a, from: 0s, to: 10s }", ", cancelAfter: 5s", false],
  ])("%s%s: open traffic = %s", (line, more, open) => {
    expect(isOpenTraffic(withArrival(line, more))).toBe(open);
  });

  test("statistics dropped on the way are in the record, after the fault's own instant", () => {
    const dropping = parseScenario(
      `
cluster: { executors: [{ count: 4, memory: 100gb }], coordinators: [{ count: 1, on: dedicated }] }
pools: flags
queries:
  a: { estimate: 1gb, duration: 1s }
  b: { estimate: 1gb, duration: 1s }
arrivals: [{ every: 1s, query: a, to: 6s }, { every: 1s, query: b, to: 6s }]
faults:
  - { at: 4s, fault: statisticsDropped, query: a, factor: 2 }
  - { at: 2s, fault: statisticsDropped, query: a, factor: 3 }
`,
      "/dropping.yaml",
    );
    const record = recordRequests(createWorkload(dropping, RESOLVER), dropping.faults);
    const estimates = (queryClass: number): number[] =>
      taken(new RecordedWorkload(record))
        .filter((s) => s.queryClass === queryClass)
        .map((s) => s.shape.perHostMemEstimate / 2 ** 30);
    expect([estimates(0), estimates(1)]).toEqual([
      [1, 1, 1, 3, 3, 6],
      [1, 1, 1, 1, 1, 1],
    ]);
    const drawn = chargedIn(dropping, createWorkload(dropping, RESOLVER));
    expect(drawn).toHaveLength(12);
    expect(chargedIn({ ...dropping, faults: [] }, new RecordedWorkload(record))).toEqual(drawn);
  });

  test("who asked a coordinator that is gone asks another, after the fault's own instant", () => {
    const dying = parseScenario(
      `
cluster: { executors: [{ count: 4, memory: 100gb }], coordinators: [{ count: 2, on: dedicated }] }
pools: flags
queries: { a: { estimate: 1gb, duration: 1s } }
arrivals: [{ every: 1s, to: 7s }]
faults:
  - { at: 4s, fault: coordinatorReturns, host: coord-1 }
  - { at: 2s, fault: coordinatorDies, host: coord-1 }
`,
      "/dying.yaml",
    );
    const record = recordRequests(createWorkload(dying, RESOLVER), dying.faults);
    const asked = taken(new RecordedWorkload(record)).map((s) => Number(/coord-(\d)/.exec(s.coordinator)?.[1]));
    expect(asked).toEqual([1, 2, 1, 2, 2, 2, 1]);
  });

  test("the end of a request changes nothing", () => {
    const w = new RecordedWorkload(recordRequests(createWorkload(scenario, RESOLVER)));
    const first = w.take();
    const next = w.nextAt();
    w.ended(first);
    expect(w.nextAt()).toBe(next as Instant);
  });

  test("who answers another of the same instant comes after its end, and a microsecond later at the latest", () => {
    const twice = parseScenario(
      `
cluster: { executors: [{ count: 4, memory: 100gb }] }
pools: flags
queries: { a: { estimate: 1gb, duration: 1s } }
arrivals: [{ at: 1s, count: 3 }]
`,
      "/twice.yaml",
    );
    const record = recordRequests(createWorkload(twice, RESOLVER));
    const w = new RecordedWorkload(record, 0, record.count, { answersOf: (i) => (i === 2 ? 0 : -1) });
    expect(w.nextAt()).toBe(1000);
    const [first, second] = [w.take(), w.take()];
    expect(w.nextAt()).toBe(1000.001);
    w.ended(second);
    expect(w.nextAt()).toBe(1000.001);
    w.ended(first);
    expect(w.nextAt()).toBe(1000);
    expect(w.take().intended).toBe(1000);
  });
});
