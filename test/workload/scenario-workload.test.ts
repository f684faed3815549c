import { describe, expect, test } from "vitest";
import type { Scenario, TraceRow } from "../../src/config/scenario.ts";
import { parseScenario } from "../../src/config/scenario-file.ts";
import { bytes, instant, millis } from "../../src/core/units.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";
import { plainRequest } from "../../src/workload/submission.ts";
import type { Ending, Resolver, Submission, Workload } from "../../src/workload/workload.ts";

const OPEN: Resolver = {
  resolve: (pool, user) => ({
    kind: "resolved",
    pool: pool || "root.default",
    user,
    groups: [],
    defaultOptions: {},
    maxMtDop: -1,
  }),
};

function scenario(over: Readonly<Record<string, string>>): Scenario {
  const parts: Record<string, string> = {
    cluster: "{ executors: [{ count: 4, memory: 10gb }], coordinators: [{ count: 3, on: dedicated }] }",
    queries: "{ q: { estimate: 1gb, duration: 1s } }",
    ...over,
  };
  return parseScenario(
    Object.entries(parts)
      .map(([k, v]) => `${k}: ${v}`)
      .join("\n"),
    "/dir/test.yaml",
  );
}

const workload = (over: Readonly<Record<string, string>>, resolver = OPEN): Workload =>
  createWorkload(scenario(over), resolver);

/** Takes up to `most`, each ending at once or after `hold`. */
function run(
  w: Workload,
  how: Ending | ((s: Submission) => Ending) = "finished",
  most = 10_000,
  hold = 0,
): Submission[] {
  const taken: Submission[] = [];
  while (taken.length < most && Number.isFinite(w.nextAt())) {
    const at = w.nextAt();
    const s = w.take();
    taken.push(s);
    w.ended(s, typeof how === "string" ? how : how(s), instant(at + hold));
  }
  return taken;
}

const times = (taken: readonly Submission[]): number[] => taken.map((s) => s.intended);

describe("arrivals", () => {
  test("a burst is one instant, in order of its numbers", () => {
    const taken = run(workload({ arrivals: "[{ at: 2s, count: 3 }]" }));
    expect(times(taken)).toEqual([2000, 2000, 2000]);
    expect(taken.map((s) => s.sequence)).toEqual([0, 1, 2]);
  });

  test("spread over a time it is even", () => {
    expect(times(run(workload({ arrivals: "[{ at: 1s, count: 4, within: 2s }]" })))).toEqual([1000, 1500, 2000, 2500]);
  });

  test("every: up to the end, which is not included", () => {
    expect(times(run(workload({ arrivals: "[{ every: 100ms, from: 50ms, to: 350ms }]" })))).toEqual([50, 150, 250]);
  });

  test("Poisson: mean and variance of counts agree, all moments are whole microseconds", () => {
    const taken = run(workload({ arrivals: "[{ rate: 50/s, to: 200s }]" }), "finished", 20_000);
    const counts = new Array<number>(200).fill(0);
    for (const s of taken) counts[Math.floor(s.intended / 1000)]!++;
    const mean = taken.length / 200;
    const variance = counts.reduce((sum, c) => sum + (c - mean) ** 2, 0) / 199;
    expect(mean).toBeGreaterThan(47.7);
    expect(mean).toBeLessThan(52.3);
    expect(variance / mean).toBeGreaterThan(0.6);
    expect(variance / mean).toBeLessThan(1.5);
    for (const s of taken) expect(Math.round(s.intended * 1000) / 1000).toBe(s.intended);
  });

  test("a day's factors move arrivals and draw nothing more", () => {
    const flat = run(workload({ arrivals: "[{ rate: 60/h, to: 10h }]" }));
    const day = `[${Array.from({ length: 24 }, (_, h) => (h === 0 ? 0 : 2)).join(",")}]`;
    const shaped = run(workload({ arrivals: `[{ rate: 60/h, to: 24h, day: ${day} }]` }));
    expect(shaped[0]?.intended).toBeCloseTo(3_600_000 + flat[0]!.intended / 2, 2);
    expect(shaped[99]?.intended).toBeCloseTo(3_600_000 + flat[99]!.intended / 2, 2);
  });

  test("several lines are merged by time, equal moments in the order of the lines", () => {
    const w = workload({
      queries: "{ a: { estimate: 1gb, duration: 1s }, b: { estimate: 1gb, duration: 1s } }",
      arrivals: "[{ every: 2s, count: 3, query: b }, { every: 1s, count: 4, query: a }]",
    });
    expect(run(w).map((s) => [s.intended, s.queryClass])).toEqual([
      [0, 1],
      [0, 0],
      [1000, 0],
      [2000, 1],
      [2000, 0],
      [3000, 0],
      [4000, 1],
    ]);
  });

  test("limits of the run end everything", () => {
    expect(times(run(workload({ arrivals: "[{ every: 1s }]", limits: "{ time: 3s }" })))).toEqual([0, 1000, 2000]);
    expect(run(workload({ arrivals: "[{ every: 1s }]", limits: "{ queries: 5 }" }))).toHaveLength(5);
  });

  test("a mix gives each class its share", () => {
    const w = workload({
      queries: "{ a: { estimate: 1gb, duration: 1s }, b: { estimate: 1gb, duration: 1s } }",
      arrivals: "[{ at: 0s, count: 10000, query: { a: 1, b: 3 } }]",
    });
    const share = run(w).filter((s) => s.queryClass === 1).length / 10_000;
    expect(share).toBeGreaterThan(0.73);
    expect(share).toBeLessThan(0.77);
  });
});

describe("draws by purpose (insight 6.1)", () => {
  const random =
    "{ estimate: 1gb, duration: { exponential: { mean: 4s } }, uses: { peak: { uniform: { low: 1gb, high: 2gb } } } }";
  const drawn = (taken: readonly Submission[], queryClass: number): (readonly number[])[] =>
    taken.filter((s) => s.queryClass === queryClass).map((s) => [s.intended, s.duration, s.peak]);

  test("another class, before or after, changes nothing of the first", () => {
    const alone = workload({ queries: `{ a: ${random} }`, arrivals: "[{ rate: 5/s, to: 20s, query: a }]" });
    const beside = workload({
      queries: `{ b: ${random}, a: ${random} }`,
      arrivals: "[{ rate: 7/s, to: 20s, query: b }, { rate: 5/s, to: 20s, query: a }]",
    });
    expect(drawn(run(beside), 1)).toEqual(drawn(run(alone), 0));
  });

  test("another seed is another stream, the same seed the same", () => {
    const take = (seed: number) =>
      drawn(run(workload({ seed: String(seed), queries: `{ a: ${random} }`, arrivals: "[{ rate: 5/s, to: 9s }]" })), 0);
    expect(take(1)).toEqual(take(1));
    expect(take(2)).not.toEqual(take(1));
  });

  test("replications differ", () => {
    const s = scenario({ queries: `{ a: ${random} }`, arrivals: "[{ rate: 5/s, to: 9s }]" });
    expect(drawn(run(createWorkload(s, OPEN, 1)), 0)).not.toEqual(drawn(run(createWorkload(s, OPEN, 0)), 0));
  });

  test("attempts of one request have the same duration and peak", () => {
    const w = workload({ queries: `{ a: ${random} }`, arrivals: "[{ at: 0s }]", retries: "{ attempts: 3, wait: 1s }" });
    const taken = run(w, "rejected");
    expect(taken).toHaveLength(3);
    expect(new Set(taken.map((s) => s.duration)).size).toBe(1);
  });

  test("query ids have two halves, belong to the request, and differ between attempts", () => {
    const w = workload({ arrivals: "[{ at: 0s, count: 500 }]", retries: "{ attempts: 2, wait: 1s }" });
    const taken = run(w, "rejected");
    for (const s of taken) expect(s.queryId).toMatch(/^[0-9a-f]{16}:[0-9a-f]{8}00000000$/);
    expect(new Set(taken.map((s) => s.queryId)).size).toBe(1000);
    const second = taken.find((s) => s.attempt === 2)!;
    expect(taken.some((s) => s.attempt === 1 && s.queryId === second.request)).toBe(true);
  });
});

describe("clients that wait for their answer", () => {
  const arrivals = "[{ clients: 2, think: 1s, requests: 3 }]";

  test("think, ask, wait, think: three rounds each", () => {
    const taken = run(workload({ arrivals }), "finished", 100, 500);
    expect(times(taken)).toEqual([1000, 1000, 2500, 2500, 4000, 4000]);
  });

  test("it is not exhausted while an answer could bring a question", () => {
    const w = workload({ arrivals: "[{ clients: 1, think: 1s, requests: 2 }]" });
    const first = w.take();
    expect(w.nextAt()).toBe(Number.POSITIVE_INFINITY);
    expect(w.isExhausted()).toBe(false);
    w.ended(first, "finished", instant(5000));
    expect(w.nextAt()).toBe(6000);
    w.ended(w.take(), "finished", instant(9000));
    expect(w.isExhausted()).toBe(true);
  });

  test("nobody asks from `to` on", () => {
    expect(times(run(workload({ arrivals: "[{ clients: 1, think: 1s, to: 3s }]" })))).toEqual([1000, 2000]);
  });

  test("who does not think and is refused at once asks a round trip later, so that time goes on", () => {
    expect(times(run(workload({ arrivals: "[{ clients: 1, think: 0s, to: 3ms }]" }), "rejected"))).toEqual([0, 1, 2]);
  });

  test("who does not think and had to wait asks at once", () => {
    expect(times(run(workload({ arrivals: "[{ clients: 1, think: 0s, to: 3s }]" }), "finished", 100, 1000))).toEqual([
      0, 1000, 2000,
    ]);
  });

  test("thinking is drawn by client and round, not by the order of answers", () => {
    const random = "[{ clients: 3, think: { exponential: { mean: 1s } }, requests: 2 }]";
    const ends = (order: readonly number[]): number[] => {
      const w = workload({ arrivals: random });
      const firsts = [w.take(), w.take(), w.take()];
      for (const i of order) w.ended(firsts[i]!, "finished", instant(100_000));
      return [w.take(), w.take(), w.take()].map((s) => s.intended);
    };
    expect(ends([2, 0, 1])).toEqual(ends([0, 1, 2]));
  });
});

describe("retries", () => {
  const retried = (retries: string, how: Ending = "rejected"): Submission[] =>
    run(workload({ arrivals: "[{ at: 1s }]", retries }), how);

  test("at once, up to the number of attempts", () => {
    const taken = retried("{ attempts: 3, wait: 0s }");
    expect(taken.map((s) => [s.attempt, s.intended, s.firstIntended])).toEqual([
      [1, 1000, 1000],
      [2, 1000, 1000],
      [3, 1000, 1000],
    ]);
  });

  test("without end, and at once: a round trip of a millisecond apart, so that time goes on", () => {
    const w = workload({
      arrivals: "[{ at: 1s }]",
      retries: "{ attempts: unlimited, wait: 0s }",
      limits: "{ queries: 1000 }",
    });
    expect(times(run(w, "rejected", 4))).toEqual([1000, 1001, 1002, 1003]);
  });

  /** A live answer is late by what the machine took: it must not make clients faster than those of virtual time. */
  test.each([
    { late: 0.02, asks: [0, 1, 2, 3] },
    { late: 0.999, asks: [0, 1, 2, 3] },
    { late: 1, asks: [0, 1, 2, 3] },
    { late: 1.5, asks: [0, 1.5, 3, 4.5] },
  ])("without end, answered $late ms late: a round trip apart, or when it is answered", ({ late, asks }) => {
    const limits = "{ queries: 1000 }";
    const again = workload({ arrivals: "[{ at: 0s }]", retries: "{ attempts: unlimited, wait: 0s }", limits });
    expect(times(run(again, "rejected", 4, late))).toEqual(asks);
    const restless = workload({ arrivals: "[{ clients: 1, think: 0s }]", limits });
    expect(times(run(restless, "rejected", 4, late))).toEqual(asks);
  });

  test("backoff doubles up to its most", () => {
    expect(times(retried("{ attempts: 6, backoff: { from: 1s, to: 5s, jitter: none } }"))).toEqual([
      1000, 2000, 4000, 8000, 13_000, 18_000,
    ]);
  });

  test("full jitter is below the wait, equal jitter above half of it", () => {
    const waits = (jitter: string) =>
      run(
        workload({
          arrivals: "[{ at: 0s, count: 200 }]",
          retries: `{ attempts: 2, backoff: { from: 1s, to: 1s, jitter: ${jitter} } }`,
        }),
        "rejected",
      )
        .filter((s) => s.attempt === 2)
        .map((s) => s.intended);
    const full = waits("full");
    expect(Math.min(...full)).toBeLessThan(100);
    expect(Math.max(...full)).toBeLessThanOrEqual(1000);
    const equal = waits("equal");
    expect(Math.min(...equal)).toBeGreaterThanOrEqual(500);
    expect(Math.max(...equal)).toBeLessThanOrEqual(1000);
  });

  test("only after the ends that are listed", () => {
    expect(retried("{ wait: 1s }", "timedOut")).toHaveLength(1);
    expect(retried("{ wait: 1s, on: [timedOut] }", "timedOut")).toHaveLength(5);
  });

  test("a client retries before it thinks about something else", () => {
    const w = workload({ arrivals: "[{ clients: 1, think: 10s, requests: 2 }]", retries: "{ attempts: 2, wait: 1s }" });
    const taken = run(w, (s) => (s.attempt === 1 ? "rejected" : "finished"));
    expect(taken.map((s) => [s.intended, s.attempt])).toEqual([
      [10_000, 1],
      [11_000, 2],
      [21_000, 1],
      [22_000, 2],
    ]);
  });
});

describe("coordinators", () => {
  const hosts = (taken: readonly Submission[]): string[] => taken.map((s) => s.coordinator);

  test("round-robin goes by the request's number", () => {
    expect(hosts(run(workload({ arrivals: "[{ at: 0s, count: 4 }]" })))).toEqual([
      "coord-1:27000",
      "coord-2:27000",
      "coord-3:27000",
      "coord-1:27000",
    ]);
  });

  test("a named one", () => {
    expect(new Set(hosts(run(workload({ arrivals: "[{ at: 0s, count: 4, coordinator: coord-2 }]" }))))).toEqual(
      new Set(["coord-2:27000"]),
    );
  });

  test("random reaches all and depends on the seed only", () => {
    const take = () => hosts(run(workload({ arrivals: "[{ at: 0s, count: 60, coordinator: random }]" })));
    expect(new Set(take()).size).toBe(3);
    expect(take()).toEqual(take());
  });

  test("those that are gone are left out until they are back", () => {
    const w = workload({ arrivals: "[{ at: 0s, count: 12 }]" });
    w.coordinatorGone("coord-2:27000");
    expect(new Set(hosts(run(w, "finished", 6)))).toEqual(new Set(["coord-1:27000", "coord-3:27000"]));
    w.coordinatorBack("coord-2:27000");
    expect(new Set(hosts(run(w, "finished", 6))).size).toBe(3);
  });
});

describe("pools and options", () => {
  test("several users take turns; each is resolved once", () => {
    const asked: string[] = [];
    const counting: Resolver = {
      resolve: (pool, user) => {
        asked.push(user);
        return OPEN.resolve(pool, user, () => 0);
      },
    };
    const w = workload(
      { queries: "{ q: { estimate: 1gb, duration: 1s, user: [ana, ben] } }", arrivals: "[{ at: 0s, count: 5 }]" },
      counting,
    );
    expect(run(w).map((s) => s.user)).toEqual(["ana", "ben", "ana", "ben", "ana"]);
    expect(asked).toEqual(["ana", "ben"]);
    w.configurationChanged();
  });

  test("a refused resolution is carried along, not thrown", () => {
    const refusing: Resolver = { resolve: () => ({ kind: "unresolved", error: "denied" }) };
    const [s] = run(workload({ arrivals: "[{ at: 0s }]" }, refusing));
    expect(s).toMatchObject({ unresolved: "denied", pool: "" });
  });

  test("defaults of the pool are weaker than the client's options, and cap MT_DOP (admission 1.2)", () => {
    const defaults: Resolver = {
      resolve: (pool, user) => ({
        kind: "resolved",
        pool,
        user,
        groups: [],
        defaultOptions: { MEM_LIMIT: "2g", BUFFER_POOL_LIMIT: "1g", MT_DOP: "8" },
        maxMtDop: 4,
      }),
    };
    const w = workload(
      { queries: "{ q: { estimate: 1gb, duration: 1s, options: { MEM_LIMIT: 3gb } } }", arrivals: "[{ at: 0s }]" },
      defaults,
    );
    const [s] = run(w);
    expect(s?.shape.options).toMatchObject({ memLimit: 3 * 2 ** 30, bufferPoolLimit: 2 ** 30 });
    expect(s?.shape.fragments.find((f) => f.runsOn === "executors")?.instancesPerHost).toBe(4);
  });

  /** By what is written in the class itself, in its options, and in the pool's defaults. */
  test.each([
    { written: "", own: "", pool: {}, buffer: 2048, minimum: 3 * 2048, row: 512 },
    {
      written: "",
      own: "",
      pool: { DEFAULT_SPILLABLE_BUFFER_SIZE: "1048576" },
      buffer: 1024,
      minimum: 3 * 1024,
      row: 512,
    },
    {
      written: "",
      own: "DEFAULT_SPILLABLE_BUFFER_SIZE: 4mb",
      pool: { DEFAULT_SPILLABLE_BUFFER_SIZE: "1048576" },
      buffer: 4096,
      minimum: 3 * 4096,
      row: 512,
    },
    {
      written: ", bufferSize: 256kb",
      own: "DEFAULT_SPILLABLE_BUFFER_SIZE: 4mb",
      pool: {},
      buffer: 256,
      minimum: 3 * 512,
      row: 512,
    },
    { written: "", own: "", pool: { MAX_ROW_SIZE: "4194304" }, buffer: 2048, minimum: 3 * 4096, row: 4096 },
    {
      written: ", maxRowSize: 1mb",
      own: "",
      pool: { MAX_ROW_SIZE: "4194304" },
      buffer: 2048,
      minimum: 3 * 2048,
      row: 1024,
    },
  ])("P12 a sort's buffers and minimum: written '$written', own '$own', pool $pool", (s) => {
    const defaults: Resolver = {
      resolve: (pool, user) => ({ kind: "resolved", pool, user, groups: [], defaultOptions: s.pool, maxMtDop: -1 }),
    };
    const queries = `{ q: { sort: { rows: 1000, width: 16${s.written} }, options: { ${s.own} } } }`;
    const [found] = run(workload({ queries, arrivals: "[{ at: 0s }]" }, defaults));
    expect(found?.execution.operators).toMatchObject([
      { limits: { bufferSize: s.buffer * 1024, maxRowSize: s.row * 1024 } },
    ]);
    const work = found?.shape.fragments.find((f) => f.runsOn === "executors");
    expect(work?.minReservationPerInstance).toBe(s.minimum * 1024);
  });

  test.each([
    { options: {}, buffer: 64 },
    { options: { MIN_SPILLABLE_BUFFER_SIZE: "262144" }, buffer: 256 },
    { options: { MIN_SPILLABLE_BUFFER_SIZE: "4194304" }, buffer: 2048 },
  ])("P8 buffers of small inputs go down to MIN_SPILLABLE_BUFFER_SIZE: $options", ({ options, buffer }) => {
    const defaults: Resolver = {
      resolve: (pool, user) => ({ kind: "resolved", pool, user, groups: [], defaultOptions: options, maxMtDop: -1 }),
    };
    const queries = "{ q: { aggregate: { rows: 1000, width: 16, keys: { uniform: { distinct: 10 } } } } }";
    const [found] = run(workload({ queries, arrivals: "[{ at: 0s }]" }, defaults));
    expect(found?.execution.operators).toMatchObject([{ limits: { bufferSize: buffer * 1024 } }]);
  });

  test("equal requests share one frozen shape", () => {
    const [a, b] = run(workload({ arrivals: "[{ at: 0s, count: 2 }]" }));
    expect(a?.shape).toBe(b?.shape);
    expect(Object.isFrozen(a?.shape)).toBe(true);
  });

  test("dropped statistics multiply the estimate from then on", () => {
    const w = workload({ arrivals: "[{ at: 0s, count: 2 }]" });
    const before = w.take();
    w.scaleEstimate(0, 40);
    expect([before, w.take()].map((s) => s.shape.perHostMemEstimate)).toEqual([2 ** 30, 40 * 2 ** 30]);
  });

  test("a client's patience runs from its intention", () => {
    const w = workload({
      queries: "{ q: { estimate: 1gb, duration: 1s, cancelAfter: 5s } }",
      arrivals: "[{ at: 1s }]",
    });
    expect(w.take().cancelAt).toBe(6000);
  });

  test("plainRequest is a plain record", () => {
    const [s] = run(workload({ arrivals: "[{ at: 0s }]" }));
    expect(structuredClone(plainRequest(s!))).toMatchObject({
      queryId: s!.queryId,
      pool: "root.default",
      coordinator: "coord-1:27000",
    });
  });
});

describe("recorded requests", () => {
  const row = (over: Partial<TraceRow>): TraceRow => ({
    at: instant(0),
    queryClass: 0,
    user: null,
    pool: null,
    coordinator: null,
    duration: null,
    peak: null,
    spilled: bytes(0),
    shape: null,
    after: null,
    ...over,
  });

  function traced(rows: readonly TraceRow[]): Workload {
    const s = scenario({ arrivals: "[{ trace: log.csv, from: 10s }]" });
    return createWorkload({ ...s, arrivals: s.arrivals.map((a) => (a.kind === "trace" ? { ...a, rows } : a)) }, OPEN);
  }

  test("what the row says goes before what the class says", () => {
    const w = traced([
      row({ user: "eve", pool: "root.x", coordinator: "coord-3:27000", duration: millis(77) }),
      row({ at: instant(5) }),
    ]);
    expect(run(w)).toMatchObject([
      { intended: 10_000, user: "eve", pool: "root.x", coordinator: "coord-3:27000", duration: 77 },
      { intended: 10_005, user: "client", duration: 1000 },
    ]);
  });

  test("a row that waited for an answer waits for it again", () => {
    const w = traced([
      row({}),
      row({ at: instant(100), after: { row: 0, think: millis(50) } }),
      row({ at: instant(200) }),
    ]);
    expect(times(run(w, "finished", 10, 4000))).toEqual([10_000, 10_200, 14_050]);
    expect(w.isExhausted()).toBe(true);
  });
});
