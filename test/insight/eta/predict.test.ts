import { describe, expect, test } from "vitest";
import { backendsOf, coordinatorsOf } from "../../../src/config/scenario-cluster.ts";
import { parseScenario } from "../../../src/config/scenario-file.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../../src/core/pool-config.ts";
import { type Bytes, GiB, type Instant, type Millis } from "../../../src/core/units.ts";
import { ArrivalBook } from "../../../src/insight/eta/arrival-book.ts";
import type { EtaSnapshot, QueuedQuery, RunningQuery } from "../../../src/insight/eta/eta-snapshot.ts";
import { ForwardRuns } from "../../../src/insight/eta/forward-run.ts";
import { believed, drawRemaining, HoldBook } from "../../../src/insight/eta/hold-book.ts";
import { etaText, predictWait, predictWaits, roughly } from "../../../src/insight/eta/predict.ts";

const POOL = "root.a";
const SCENARIO = parseScenario(
  `
cluster: { executors: [{ count: 2, memory: 100gb }], coordinators: [{ count: 1, on: executor }] }
pools: flags
queries:
  small: { estimate: 2gb, duration: 4s }
  large: { estimate: 8gb, duration: 4s }
arrivals: [{ at: 0s, query: small, count: 1 }]
`,
  "/eta.yaml",
);
const COORDINATOR = "exec-1:27000";
const CLASS = { small: 0, large: 1 };

/** 20 GiB for the pool: a small one needs 4, a large one 16. */
const CONFIG: PoolConfig = { ...DEFAULT_POOL_CONFIG, maxMemResources: (20 * GiB) as Bytes };

const common = (name: keyof typeof CLASS, i: number) => ({
  query: `${name}-${i}`,
  queryClass: name,
  pool: POOL,
  coordinator: COORDINATOR,
  user: "ana",
  shape: SCENARIO.queries[CLASS[name]]!.shape,
  placementOffset: 0,
});
const running = (name: keyof typeof CLASS, admittedAt: number, i = 0): RunningQuery => ({
  ...common(name, i),
  admittedAt: admittedAt as Instant,
  perHost: ((name === "small" ? 2 : 8) * GiB) as Bytes,
  onCoordinator: ((name === "small" ? 2 : 8) * GiB) as Bytes,
  released: [],
});
const queued = (name: keyof typeof CLASS, enqueuedAt: number, i = 0, timeout = 600_000): QueuedQuery => ({
  ...common(name, i),
  enqueuedAt: enqueuedAt as Instant,
  timeout: timeout as Millis,
  reason: { rule: "ADM-2", running: 1, limit: 1, stale: null },
});
const snapshot = (
  r: readonly RunningQuery[],
  w: readonly QueuedQuery[],
  config = CONFIG,
  now = 10_000,
): EtaSnapshot => ({
  now: now as Instant,
  admission: "distributed",
  statestore: SCENARIO.cluster.statestore,
  backends: backendsOf(SCENARIO.cluster),
  configs: { [POOL]: config },
  running: r,
  queued: w,
  ended: [],
  arrivals: [],
});

/** Everybody holds for exactly so long, of which `left` is left for who runs. */
const exactly = (left: readonly number[], whole: number) => ({
  remaining: (i: number) => left[i]!,
  whole: () => whole,
});

/** Memory that came free on other hosts is seen through the topic, every 100 ms here: one round later. */
const ROUND = 100;

describe("insight 5.2 the core run forward", () => {
  test("the head starts when enough is free; who is behind it waits for it, whatever his size", () => {
    const s = snapshot([running("large", 0), running("small", 0)], [queued("large", 1, 1), queued("small", 2, 2)]);
    const { waits, outcomes } = new ForwardRuns(s).run(exactly([3000, 5000], 4000));
    // 16 + 4 of 20: the large one needs the large one's place; the small one fits only beside it, at 5 s.
    expect([...waits]).toEqual([3000 + ROUND, 5000 + ROUND]);
    expect(outcomes).toEqual(["admitted", "admitted"]);
  });

  test("rounds fall as they do around the snapshot's moment", () => {
    const s = snapshot([running("large", 0)], [queued("large", 1, 1)], CONFIG, 10_030);
    // Released at 13.030: exec-2 tells at 13.050, exec-1 hears at 13.100.
    expect([...new ForwardRuns(s).run(exactly([3000], 1)).waits]).toEqual([3070]);
  });

  test("what ends in one instant is free together", () => {
    const s = snapshot(
      [running("small", 0, 0), running("small", 0, 1), running("small", 0, 2), running("small", 0, 3)],
      [queued("large", 1, 1)],
    );
    expect([...new ForwardRuns(s).run(exactly([2000, 2000, 2000, 9000], 1)).waits]).toEqual([2000 + ROUND]);
  });

  test("the running limit is asked as ever", () => {
    const s = snapshot(
      [running("small", 0, 0), running("small", 0, 1)],
      [queued("small", 1, 2), queued("small", 2, 3)],
      {
        ...CONFIG,
        maxRequests: 2,
      },
    );
    expect([...new ForwardRuns(s).run(exactly([1000, 3000], 500)).waits]).toEqual([1000, 1500]);
  });

  test("time-outs come when they are due for each, and free the way", () => {
    const s = snapshot([running("large", 0)], [queued("large", 0, 1, 12_000), queued("small", 8000, 2, 30_000)]);
    const { waits, outcomes } = new ForwardRuns(s).run(exactly([60_000], 4000));
    // Enqueued at 0 with 12 s, now is 10 s: two are left. Then the small one is the head, and fits.
    expect(outcomes).toEqual(["timedOut", "admitted"]);
    expect([...waits]).toEqual([2000, 2000]);
  });

  test("what already runs is not asked again, even over the limits of now", () => {
    const s = snapshot([running("large", 0, 0), running("large", 0, 1)], [queued("small", 1, 2)], {
      ...CONFIG,
      maxRequests: 1,
    });
    expect([...new ForwardRuns(s).run(exactly([1000, 7000], 1)).waits]).toEqual([7000]);
  });

  test("hosts that a running query has left are free already", () => {
    const s = snapshot(
      [{ ...running("large", 0), released: [1] }],
      [queued("small", 1, 1), queued("small", 2, 2), queued("small", 3, 3), queued("small", 4, 4)],
    );
    // 8 of its 16 GiB are back: 12 of the pool's 20 are free, three small ones start with the next exchange, which
    // wakes the queue (5.4), the fourth with its end.
    expect([...new ForwardRuns(s).run(exactly([3000], 9000)).waits]).toEqual([ROUND, ROUND, ROUND, 3000]);
  });

  test("each run begins from the snapshot, whatever the one before did", () => {
    const s = snapshot([running("large", 0)], [queued("large", 1, 1), queued("large", 2, 2)]);
    const runs = new ForwardRuns(s);
    const first = runs.run(exactly([1000], 2000));
    runs.run(exactly([9000], 5000));
    expect([...runs.run(exactly([1000], 2000)).waits]).toEqual([...first.waits]);
    // The second one waits for the first one's 2 s, and for a round each time.
    expect([...first.waits]).toEqual([1000 + ROUND, 3000 + 2 * ROUND]);
  });

  test("a pool whose record now rejects a waiting query says so", () => {
    const s = snapshot([running("small", 0)], [queued("large", 1, 1)], {
      ...CONFIG,
      maxMemResources: (10 * GiB) as Bytes,
    });
    expect(new ForwardRuns(s).run(exactly([1000], 1)).outcomes).toEqual(["rejected"]);
  });
});

const THREE = parseScenario(
  `
cluster: { executors: [{ count: 3, memory: 100gb }], coordinators: [{ count: 3, on: executor }] }
pools: flags
queries:
  small: { estimate: 2gb, duration: 4s }
arrivals: [{ at: 0s, query: small, count: 1 }]
`,
  "/eta.yaml",
);
const [FIRST, SECOND, THIRD] = coordinatorsOf(backendsOf(THREE.cluster)) as [string, string, string];

describe("insight 5.1 several coordinators", () => {
  /** Places for two, whoever's they are. */
  const two: PoolConfig = { ...DEFAULT_POOL_CONFIG, maxRequests: 2 };
  const at = <T extends object>(coordinator: string, q: T): T => ({ ...q, coordinator });
  const spread = (
    r: readonly RunningQuery[],
    w: readonly QueuedQuery[],
    admission: EtaSnapshot["admission"] = "distributed",
  ): EtaSnapshot => ({ ...snapshot(r, w, two), backends: backendsOf(THREE.cluster), admission });
  const full = [at(FIRST, running("small", 0, 0)), at(SECOND, running("small", 0, 1))];

  test("a place that another one's query leaves is seen when the topic brings it", () => {
    const s = spread(full, [at(THIRD, queued("small", 1, 2))]);
    // exec-1 tells at its own round (every 100 ms from 0), exec-3 hears at its: 67 ms into each.
    expect([...new ForwardRuns(s).run(exactly([1010, 9000], 4000)).waits]).toEqual([1166.666]);
  });

  test("each has a queue of its own: the head of one does not wait for who came earlier to another", () => {
    const waiting = [
      at(FIRST, queued("small", 1, 2)),
      at(FIRST, queued("small", 2, 3)),
      at(SECOND, queued("small", 3, 4)),
    ];
    const own = new ForwardRuns(spread(full, waiting)).run(exactly([1010, 5010], 60_000));
    // exec-1's own release wakes it at once; its second one and exec-2's head go for the other place at 5.01 s, and
    // exec-2, whose release it is, sees it first.
    expect(own.waits[0]).toBe(1010);
    expect(own.waits[2]).toBe(5010);
    expect(own.waits[1]).toBeGreaterThan(60_000);
    // With admissiond there is one queue: exec-1's second one is before exec-2's.
    const one = new ForwardRuns(spread(full, waiting, "admissiond")).run(exactly([1010, 5010], 60_000));
    expect(one.waits[0]).toBe(1010);
    expect(one.waits[1]).toBe(5010);
    expect(one.waits[2]).toBe(61_010);
  });

  test("two that hear of one place in the same round both take it (T-12)", () => {
    const s = spread(
      [at(FIRST, running("small", 0, 0)), at(FIRST, running("small", 0, 1))],
      [at(SECOND, queued("small", 1, 2)), at(THIRD, queued("small", 2, 3))],
    );
    const { waits } = new ForwardRuns(s).run(exactly([1010, 9000], 4000));
    // Published at 1.100, taken by exec-2 at 1.133 and, not knowing of that, by exec-3 at 1.167.
    expect([...waits]).toEqual([1133.333, 1166.666]);
  });

  test("who has not heard yet of what another took lets one too many in (T-12)", () => {
    const now = 10_010;
    const ended = { ...at(FIRST, running("small", 0, 9)), endedAt: 9996 as Instant };
    const s = {
      ...spread(
        [at(FIRST, running("small", 0, 0)), at(FIRST, running("small", 10_005, 1))],
        [at(SECOND, queued("small", 1, 2)), at(SECOND, queued("small", 2, 3))],
      ),
      now: now as Instant,
    };
    const waits = (e: typeof s & Pick<EtaSnapshot, "ended">) => [
      ...new ForwardRuns(e).run(exactly([5000, 9000], 400)).waits,
    ];
    // exec-1 told at 10.000 that one place is free, and will tell at 10.100 that it is taken again: exec-2 takes it at
    // 10.033. Its second one waits for the first one's end, told at 15.100 and heard at 15.133.
    expect(waits({ ...s, ended: [ended] })).toEqual([23.333, 5123.333]);
    // Had both run for long, the head would wait for it.
    const old = [at(FIRST, running("small", 0, 0)), at(FIRST, running("small", 0, 1))];
    expect(waits({ ...s, running: old })[0]).toBe(5123.333);
  });

  test("with admissiond, who keeps coming to another pool comes again and again", () => {
    const book = new HoldBook();
    for (let i = 1; i <= 200; i++) for (const pool of [POOL, "root.b"]) book.add(pool, "small", i * 100);
    const { shape, user, queryClass } = running("small", 0);
    const other = { pool: "root.b", queryClass, user, shape, coordinator: SECOND, perMs: 0.01 };
    const s = { ...spread(full, [at(FIRST, queued("small", 1, 2))], "admissiond"), arrivals: [other] };
    expect(predictWaits(s, book)[0]!.interval!.median).toBeGreaterThan(0);
  });

  test("positions and reasons are those of the own queue", () => {
    const book = new HoldBook();
    for (let i = 1; i <= 200; i++) book.add(POOL, "small", i * 100);
    const waiting = [
      at(FIRST, queued("small", 1, 2)),
      at(SECOND, queued("small", 2, 3)),
      at(FIRST, queued("small", 3, 4)),
    ];
    const positions = (s: EtaSnapshot) => predictWaits(s, book).map((p) => [p.coordinator, p.position]);
    expect(positions(spread(full, waiting))).toEqual([
      [FIRST, 1],
      [SECOND, 1],
      [FIRST, 2],
    ]);
    expect(positions(spread(full, waiting, "admissiond"))).toEqual([
      [FIRST, 1],
      [SECOND, 2],
      [FIRST, 3],
    ]);
  });

  test("who keeps coming elsewhere takes places away; in a single queue nobody who comes later can", () => {
    const book = new HoldBook();
    for (let i = 1; i <= 200; i++) book.add(POOL, "small", i * 100);
    const waiting = Array.from({ length: 4 }, (_, i) => at(FIRST, queued("small", i, 10 + i)));
    const { shape, user, pool, queryClass } = running("small", 0);
    const busy = { pool, queryClass, user, shape, coordinator: SECOND, perMs: 0.002 };
    const last = (s: EtaSnapshot) => predictWaits(s, book).at(-1)!.interval!.median;
    const alone = spread(full, waiting);
    expect(last({ ...alone, arrivals: [busy] })).toBeGreaterThan(1.3 * last(alone));
    const one = spread(full, waiting, "admissiond");
    expect(predictWaits({ ...one, arrivals: [busy] }, book)).toEqual(predictWaits(one, book));
  });
});

describe("insight 5.1 how often others come", () => {
  const request = {
    pool: POOL,
    queryClass: "small",
    coordinator: COORDINATOR,
    user: "ana",
    shape: running("small", 0).shape,
  };

  test("of the last ten minutes, or of all the time there was", () => {
    const book = new ArrivalBook();
    for (let second = 0; second < 60; second++) book.add(second * 1000, request);
    expect(book.rates(60_000 as Instant)).toMatchObject([{ ...request, perMs: 0.001 }]);
    expect(book.rates(630_000 as Instant)).toMatchObject([{ perMs: 30 / 600_000 }]);
    expect(book.rates(700_000 as Instant)).toEqual([]);
  });

  test("each kind at each coordinator apart; nothing has come yet", () => {
    const book = new ArrivalBook();
    expect(book.rates(1000 as Instant)).toEqual([]);
    book.add(0, request);
    book.add(500, { ...request, coordinator: "exec-2:27000" });
    book.add(700, { ...request, queryClass: "large" });
    book.add(900, request);
    expect(book.rates(1000 as Instant).map((r) => [r.coordinator, r.queryClass, r.perMs])).toEqual([
      [COORDINATOR, "small", 0.002],
      ["exec-2:27000", "small", 0.001],
      [COORDINATOR, "large", 0.001],
    ]);
  });
});

describe("insight 5.2 remaining holds", () => {
  const holds = Float64Array.from([1000, 2000, 4000, 8000]);
  test.each([
    { age: 0, u: 0.1, left: 1000 },
    { age: 0, u: 0.9, left: 8000 },
    { age: 2000, u: 0.1, left: 2000 },
    { age: 2000, u: 0.9, left: 6000 },
    { age: 7999, u: 0.5, left: 1 },
  ])("age $age, u $u: $left ms left", ({ age, u, left }) => {
    expect(drawRemaining(holds, age, u)).toBe(left);
  });

  test("older than all: as long again in the median, and never soon", () => {
    expect(drawRemaining(holds, 8000, 0.5)).toBe(8000);
    expect(drawRemaining(holds, 8000, 0.9)).toBeCloseTo(72_000);
    expect(drawRemaining(holds, 8000, 0.1)).toBeCloseTo(888.9, 1);
  });

  test("few holds are resampled before every run, 200 are taken as they are", () => {
    const book = new HoldBook();
    for (let i = 0; i < 199; i++) book.add(POOL, "small", i);
    const few = book.sourceFor(POOL, "small")!;
    expect(few.isFew).toBe(true);
    const drawn = believed(few.holds, (i) => ((i * 7) % 10) / 10);
    expect(drawn).toHaveLength(199);
    expect(new Set(drawn).size).toBe(10);
    book.add(POOL, "small", 199);
    expect(book.sourceFor(POOL, "small")!.isFew).toBe(false);
  });

  test("a class with fewer than 20 holds borrows the pool's; a pool without any says nothing", () => {
    const book = new HoldBook();
    for (let i = 0; i < 19; i++) book.add(POOL, "small", 1000);
    for (let i = 0; i < 30; i++) book.add(POOL, "large", 9000);
    expect(book.sourceFor(POOL, "small")).toMatchObject({ basis: "pool" });
    expect(book.sourceFor(POOL, "large")).toMatchObject({ basis: "class" });
    book.add(POOL, "small", 1000);
    expect(book.sourceFor(POOL, "small")).toMatchObject({ basis: "class" });
    expect(book.sourceFor("root.b", "small")).toBeNull();
  });

  test("the newest are kept", () => {
    const book = new HoldBook();
    for (let i = 0; i < 5001; i++) book.add(POOL, "small", i);
    expect(book.sourceFor(POOL, "small")!.holds[0]).toBe(1);
  });
});

describe("insight 5 predictions", () => {
  const book = new HoldBook();
  for (let i = 1; i <= 400; i++) {
    book.add(POOL, "small", i * 10);
    book.add(POOL, "large", i * 100);
  }
  const s = snapshot(
    [running("large", 5000)],
    [queued("large", 6000, 1), queued("small", 7000, 2), queued("large", 8000, 3, 20_000)],
  );

  test("positions, one interval for each, wider the further back, and what the head waits for", () => {
    const [first, second, third] = predictWaits(s, book);
    expect([first?.position, second?.position, third?.position]).toEqual([1, 2, 3]);
    expect(first?.waitsFor).toBe("number of running queries 1 is at or over limit 1.");
    expect(third?.waitsFor).toBe(first?.waitsFor);
    for (const p of [first, second, third]) {
      const { low, median, high } = p!.interval!;
      expect(low).toBeLessThan(median);
      expect(median).toBeLessThanOrEqual(high);
    }
    expect(second!.interval!.median).toBeGreaterThanOrEqual(first!.interval!.median);
    expect(third!.timeoutChance).toBeGreaterThan(0.1);
    expect(first!.timeoutChance).toBe(0);
    // A time-out is the end of a wait: nobody's is beyond his deadline.
    expect(third!.interval!.high).toBeLessThanOrEqual(18_000);
  });

  test("the large one that has run for 5 s: remaining hold uniform between 0 and 35 s, so is the head's wait", () => {
    const { interval } = predictWaits(s, book)[0]!;
    // 10th, 100th, 190th of 199 uniform draws, within 4.5 standard errors.
    expect(Math.abs(interval!.median - 17_500)).toBeLessThan(4.5 * 35_000 * Math.sqrt(0.25 / 199));
    expect(interval!.low).toBeLessThan(5000);
    expect(interval!.high).toBeGreaterThan(30_000);
  });

  test("exponential holds on c places: the j-th waits j S / c in the mean (insight 3.3 item 2)", () => {
    const S = 4000;
    const holds = Float64Array.from({ length: 2000 }, (_, i) => -S * Math.log((i + 0.5) / 2000)).sort();
    const exponential = { sourceFor: () => ({ basis: "class", holds, isFew: false }) as const };
    const places = 5;
    const waiting = snapshot(
      Array.from({ length: places }, (_, i) => running("small", 9000, i)),
      Array.from({ length: 20 }, (_, i) => queued("small", 9000 + i, 10 + i)),
      { ...DEFAULT_POOL_CONFIG, maxRequests: places },
    );
    predictWaits(waiting, exponential).forEach((p, i) => {
      const { runs } = p.interval!;
      const mean = runs.reduce((a, b) => a + b, 0) / runs.length;
      const j = i + 1;
      const standardError = (Math.sqrt(j) * S) / places / Math.sqrt(runs.length);
      expect(Math.abs(mean - (j * S) / places), `the ${j}-th`).toBeLessThan(4.5 * standardError);
    });
  });

  test("the same snapshot gives the same bytes, another seed others", () => {
    expect(predictWaits(s, book)).toEqual(predictWaits(s, book));
    expect(predictWaits(s, book, { seed: 2 })[0]!.interval!.runs).not.toEqual(predictWaits(s, book)[0]!.interval!.runs);
  });

  test("one alone is told the same as among all", () => {
    predictWaits(s, book).forEach((p, i) => {
      expect(predictWait(s, book, i)).toEqual(p);
    });
  });

  test("nothing known, nothing claimed", () => {
    const [p] = predictWaits(s, new HoldBook());
    expect(p).toMatchObject({ interval: null, timeoutChance: null, basis: null });
    expect(etaText(p!)).toBe("no query of this pool has ended yet, so nothing can be said");
  });

  test("never a single number", () => {
    expect(etaText(predictWaits(s, book)[0]!)).toMatch(/^about \d+ s \(\d(\.\d)? s to \d+ s\)$/);
    expect(etaText(predictWaits(s, book)[2]!)).toMatch(/^about .* \(.* to .*\), \d+ % chance to time out$/);
  });

  test.each([
    [400, "0.4 s"],
    [4444, "4.4 s"],
    [44_444, "44 s"],
    [99_999, "100 s"],
    [130_000, "2.2 min"],
    [7_200_000, "2 h"],
  ])("%d ms is %s", (ms, text) => {
    expect(roughly(ms)).toBe(text);
  });
});
