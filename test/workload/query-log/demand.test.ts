import { describe, expect, test } from "vitest";
import { attemptsOf, predecessorsOf } from "../../../src/workload/query-log/attempts.ts";
import { coverageOf, DEFAULT_COVERAGE } from "../../../src/workload/query-log/coverage.ts";
import { DEFAULT_DEMAND, demandOf, executorAmountOf } from "../../../src/workload/query-log/demand.ts";
import { holdOf, ProductLimit } from "../../../src/workload/query-log/holds.ts";
import { type LoggedQuery, NO_OPTIONS, OWN_CLUSTER_ID } from "../../../src/workload/query-log/logged-query.ts";
import { classNamesOf } from "../../../src/workload/query-log/query-classes.ts";
import { GiB, logged, logOf, MiB } from "./log-fixtures.ts";

const SECOND = 1e6;
const at = (seconds: number, fields: Partial<LoggedQuery> = {}): LoggedQuery =>
  logged({ start: seconds * SECOND, line: seconds + 2, ...fields });
const rejected = (seconds: number, fields: Partial<LoggedQuery> = {}): LoggedQuery =>
  at(seconds, {
    outcome: "rejected",
    rejection: "queueFull",
    completedAdmission: 2000,
    lastRow: null,
    unregistered: 3000,
    backends: null,
    clusterAdmitted: null,
    peakMax: null,
    executorSlots: null,
    end: "failed",
    ...fields,
  });

describe("insight 4.2 one row, one request", () => {
  test("the wait is not in the hold, and the arrival is the moment of submission", () => {
    const q = at(10, { submitted: 1000, completedAdmission: 30 * SECOND, lastRow: 34 * SECOND, outcome: "fromQueue" });
    const { requests, start } = demandOf(logOf([q]), DEFAULT_DEMAND);
    expect(start).toBe(10 * SECOND + 1000);
    expect(requests[0]).toMatchObject({ at: 0, hold: 4 * SECOND, recorded: { wait: 30 * SECOND - 1000 } });
  });

  test("the hold ends with the last row, with unregistering on request, with the release where a profile tells it", () => {
    const q = logged({ completedAdmission: 1000, lastRow: 5000, unregistered: 9000 });
    expect(holdOf(q, "lastRow")).toBe(4000);
    expect(holdOf(q, "unregister")).toBe(8000);
    expect(holdOf({ ...q, released: 6000 }, "lastRow")).toBe(5000);
    expect(holdOf({ ...q, lastRow: null }, "lastRow")).toBe(8000);
  });

  test("a difference below -1 ms is left out and counted, at -1 ms it is noise", () => {
    const noise = at(0, { completedAdmission: 1000, lastRow: 0 });
    const damage = at(1, { completedAdmission: 1001, lastRow: 0 });
    const { requests, leftOut } = demandOf(logOf([noise, damage]), DEFAULT_DEMAND);
    expect(requests.map((r) => r.hold)).toEqual([0]);
    expect(leftOut.get("negative time")).toBe(1);
  });

  test("what is no demand is left out by reason", () => {
    const rows = [
      at(0),
      at(1, { outcome: "none" }),
      at(2, { isLogWriter: true }),
      at(3, { outcome: "waiting", completedAdmission: null }),
      at(4, { end: "running" }),
    ];
    const { requests, leftOut } = demandOf(logOf(rows), DEFAULT_DEMAND);
    expect(requests).toHaveLength(1);
    expect(Object.fromEntries(leftOut)).toEqual({
      "no admission": 1,
      "log writer": 1,
      "still waiting or running": 2,
    });
  });

  test("one query written twice is one: what is known of its end counts", () => {
    const live = at(0, { queryId: "a:0", end: "running", lastRow: null, unregistered: null });
    const ended = at(0, { queryId: "a:0" });
    const again = at(0, { queryId: "a:0", lastRow: 9_000_000 });
    for (const rows of [
      [live, ended, again],
      [ended, live],
      [live, ended],
    ]) {
      const { requests, leftOut } = demandOf(logOf(rows), DEFAULT_DEMAND);
      expect(requests.map((r) => r.hold)).toEqual([4_000_000]);
      expect(Object.fromEntries(leftOut)).toEqual({ "written twice": rows.length - 1 });
    }
    // The same id at another time, or none at all, is another query.
    const others = [
      at(0, { queryId: "b:0" }),
      at(1, { queryId: "b:0" }),
      at(2, { queryId: "" }),
      at(2, { queryId: "" }),
    ];
    expect(demandOf(logOf(others), DEFAULT_DEMAND).requests).toHaveLength(4);
  });

  test("rows out of order come out in order of arrival", () => {
    const { requests } = demandOf(logOf([at(5), at(1), at(3)]), DEFAULT_DEMAND);
    expect(requests.map((r) => r.at)).toEqual([0, 2 * SECOND, 4 * SECOND]);
  });
});

describe("insight 4.2 hosts that no column counts", () => {
  test.each([
    { backends: 7, leastBackends: 3, taken: 7, guessed: false },
    { backends: null, leastBackends: 3, taken: 3, guessed: true },
    { backends: null, leastBackends: null, taken: 1, guessed: true },
  ])("$backends, at least $leastBackends: $taken", ({ backends, leastBackends, taken, guessed }) => {
    const { requests } = demandOf(logOf([at(0, { backends, leastBackends })]), DEFAULT_DEMAND);
    expect(requests).toMatchObject([{ backends: taken }]);
    expect(requests[0]?.guessed.includes("backends")).toBe(guessed);
  });
});

describe("insight 4.2 what several hosts spilled together", () => {
  // Ten backends with 1 GiB each: the coordinator is one of the executors. With 100 MiB for it: it has a host of its own.
  const [shared, apart] = [10 * GiB, 9 * GiB + 100 * MiB];
  test.each([
    { backends: 10, clusterAdmitted: shared, spilled: GiB, isGuessed: true },
    { backends: 10, clusterAdmitted: shared, spilled: 0, isGuessed: false },
    { backends: 10, clusterAdmitted: apart, spilled: GiB, isGuessed: true },
    { backends: 2, clusterAdmitted: GiB + 100 * MiB, spilled: GiB, isGuessed: false },
    { backends: 1, clusterAdmitted: GiB, spilled: GiB, isGuessed: false },
  ])("$backends backends with $clusterAdmitted bytes spilled $spilled: $isGuessed", ({ isGuessed, ...row }) => {
    const { requests } = demandOf(logOf([at(0, row)]), DEFAULT_DEMAND);
    expect(requests[0]!.guessed.includes("spread")).toBe(isGuessed);
  });
});

describe("insight 4.3 item 7, R8: what a recorded peak reserved", () => {
  // 10 GiB on eleven hosts: 100 MiB for the coordinator, so 1014 MiB for each executor.
  const ran = (fields: Partial<LoggedQuery>): LoggedQuery =>
    at(0, { estimate: 1014 * MiB, coordinatorEstimate: 100 * MiB, clusterAdmitted: 10 * GiB, backends: 11, ...fields });
  const reservedBy = (q: LoggedQuery): number | undefined => demandOf(logOf([q]), DEFAULT_DEMAND).requests[0]?.reserved;

  test.each([
    { peak: 500 * MiB, reserved: 400 * MiB }, // 0.8 of it
    { peak: 100 * MiB, reserved: 68 * MiB }, // 32 MiB less
    { peak: 1014 * MiB, reserved: Math.floor(1014 * MiB * 0.8) }, // all that its limit lets it reserve
    { peak: 1500 * MiB, reserved: Math.floor(1014 * MiB * 0.8) }, // nobody gave it more
    { peak: 0, reserved: 0 },
  ])("of $peak bytes in a cluster's log: $reserved", ({ peak, reserved }) => {
    expect(reservedBy(ran({ peakMax: peak }))).toBe(reserved);
  });

  test.each([
    { options: {}, of: 1014 * MiB },
    { options: { memLimit: 900 * MiB }, of: (10 * GiB) / 11 }, // the coordinator has as much
    { options: { memLimitExecutors: 700 * MiB }, of: 700 * MiB },
  ])("an unknown peak is no more than $options let it have, and never a guess that spills", ({ options, of }) => {
    const q = ran({ peakMax: null, estimate: 2 * GiB });
    expect(reservedBy({ ...q, options: { ...q.options, ...options } })).toBe(Math.floor(Math.floor(of) * 0.8));
    expect(reservedBy(ran({ peakMax: null, estimate: 500 * MiB }))).toBe(400 * MiB);
  });

  test("our own exports have reservations, up to what the limit leaves", () => {
    const own = (peakMax: number): number | undefined => reservedBy(ran({ clusterId: OWN_CLUSTER_ID, peakMax }));
    expect(own(700 * MiB)).toBe(700 * MiB);
    expect(own(1000 * MiB)).toBe(Math.floor(1014 * MiB * 0.8));
  });

  test("one that stands in for a smaller query brings a peak in proportion", () => {
    const finished = ran({ estimate: 1000 * MiB, peakMax: 1000 * MiB });
    const lost = rejected(1, { estimate: 600 * MiB });
    const { requests } = demandOf(logOf([finished, lost]), DEFAULT_DEMAND);
    expect(requests.map((r) => r.reserved)).toEqual([800 * MiB, 480 * MiB]);
  });
});

describe("insight 4.3 item 1: rejected and timed-out queries are demand", () => {
  test("a whole row of a finished one of the class and size stands in", () => {
    const small = at(0, { estimate: GiB, lastRow: 2 * SECOND, peakMax: 100 * MiB, backends: 3 });
    const large = at(1, { estimate: 8 * GiB, lastRow: 60 * SECOND, peakMax: 500 * MiB, backends: 10 });
    const lost = rejected(2, { estimate: 9 * GiB });
    const { requests, guesses, imputedShare } = demandOf(logOf([small, large, lost]), DEFAULT_DEMAND);
    expect(requests[2]).toMatchObject({
      hold: 60 * SECOND - 1000,
      reserved: 400 * MiB,
      backends: 10,
      estimate: 9 * GiB,
    });
    expect(requests[2]?.guessed).toContain("hold");
    expect(guesses.get("hold")).toBe(1);
    expect(imputedShare).toBeGreaterThan(0.4);
  });

  test("of another class in the pool when the own one never finished, and of no other pool", () => {
    const other = at(0, { fingerprint: "f2", lastRow: 7 * SECOND });
    const lost = rejected(1);
    expect(demandOf(logOf([other, lost]), DEFAULT_DEMAND).requests[1]?.hold).toBe(7 * SECOND - 1000);
    const elsewhere = { ...other, pool: "root.bi" };
    const demand = demandOf(logOf([elsewhere, lost]), DEFAULT_DEMAND);
    expect(demand.requests).toHaveLength(1);
    expect(demand.leftOut.get("nothing known to replace it with")).toBe(1);
  });

  test("the quartile and the top of memory-time can be asked for", () => {
    const rows = Array.from({ length: 20 }, (_, i) => at(i, { lastRow: (i + 1) * SECOND }));
    const hold = (donor: "low" | "high"): number =>
      demandOf(logOf([...rows, rejected(30)]), { ...DEFAULT_DEMAND, donor }).requests[20]!.hold;
    expect(hold("low")).toBe(5 * SECOND - 1000);
    expect(hold("high")).toBe(18 * SECOND - 1000);
  });
});

describe("insight 4.3 item 2: retries are not demand", () => {
  const again = (seconds: number): LoggedQuery => rejected(seconds);

  test("the same statement of the same user and pool within 60 s of its rejection is one request", () => {
    const { requests, attempts } = demandOf(logOf([again(0), again(5), at(20)]), DEFAULT_DEMAND);
    expect(requests.map((r) => r.at)).toEqual([0]);
    expect(attempts).toMatchObject({ requests: 1, attempts: 3, retriedShare: 1 });
    expect(attempts.delays).toEqual([5 * SECOND - 2000, 15 * SECOND - 2000]);
  });

  test.each([
    { name: "60 s after the rejection", seconds: 60.002, requests: 1 },
    { name: "a microsecond later", seconds: 60.002001, requests: 2 },
  ])("$name: $requests requests", ({ seconds, requests }) => {
    expect(attemptsOf([again(0), at(seconds)], false).requests).toBe(requests);
  });

  test("another user's, another pool's and a served one's successor are new requests", () => {
    expect(attemptsOf([again(0), at(5, { user: "bob" })], false).requests).toBe(2);
    expect(attemptsOf([again(0), at(5, { pool: "root.bi" })], false).requests).toBe(2);
    expect(attemptsOf([at(0), at(5)], false).requests).toBe(2);
  });

  test("members of a burst that are refused together are not retries of each other", () => {
    const burst = Array.from({ length: 8 }, (_, i) => again(0.0001 * i));
    expect(attemptsOf(burst, false).requests).toBe(8);
  });

  test("in an export of our own the session names the request", () => {
    const own = (seconds: number, sessionId: string): LoggedQuery =>
      rejected(seconds, { sessionId, clusterId: OWN_CLUSTER_ID });
    expect(attemptsOf([own(0, "r1"), own(0, "r2"), own(90, "r1")], true).requests).toBe(2);
  });
});

describe("insight 4.3 item 3: what was cut off shows too little", () => {
  test("the product-limit estimate, by hand: 3, 5+, 6, 8+, 10", () => {
    const limit = new ProductLimit(
      [
        [3, false],
        [5, true],
        [6, false],
        [8, true],
        [10, false],
      ].map(([value, cut]) => ({ value: value as number, cut: cut as boolean })),
    );
    expect(limit.beyond(2)).toBe(1);
    expect(limit.beyond(3)).toBeCloseTo(4 / 5);
    expect(limit.beyond(6)).toBeCloseTo((4 / 5) * (2 / 3));
    expect(limit.beyond(10)).toBe(0);
  });

  test("a cut hold is drawn from what lies beyond it, and never falls below it", () => {
    const limit = new ProductLimit([2, 4, 6, 8].map((value) => ({ value, cut: false })));
    expect(limit.drawBeyond(4, 0.25)).toBe(6);
    expect(limit.drawBeyond(4, 0.75)).toBe(8);
    expect(limit.drawBeyond(9, 0.5)).toBe(9);
  });

  test("where the largest are all cut, the largest uncut one stands for the rest", () => {
    const limit = new ProductLimit([
      { value: 2, cut: false },
      { value: 4, cut: false },
      { value: 5, cut: true },
    ]);
    expect(limit.drawBeyond(0, 0.999)).toBe(4);
    expect(limit.drawBeyond(5, 0.5)).toBe(5);
  });

  test("a failed query gets a longer hold than it showed", () => {
    const rows = [2, 4, 6, 8].map((s, i) => at(i, { lastRow: s * SECOND }));
    const failed = at(9, { end: "failed", lastRow: null, unregistered: 5 * SECOND });
    const hold = demandOf(logOf([...rows, failed]), DEFAULT_DEMAND).requests[4]!.hold;
    expect([6 * SECOND - 1000, 8 * SECOND - 1000]).toContain(hold);
  });
});

describe("insight 4.1, 4.3 item 4: completeness", () => {
  test("the Manager's cut list is used only from where it is whole", () => {
    const rows = [at(0), at(100), at(200)];
    const warnings = ["Impala query scan limit reached. Last end time considered is 1970-01-01T00:01:40.000Z"];
    const log = logOf(rows, { form: "profiles", warnings });
    const { requests, leftOut, coverage } = demandOf(log, DEFAULT_DEMAND);
    expect(requests).toHaveLength(2);
    expect(leftOut.get("outside the covered range")).toBe(1);
    expect(coverage.cuts[0]).toMatch(/scan limit reached/);
  });

  test("the last write interval of a log table is cut, an export of our own and one with live rows are not", () => {
    const rows = [at(0), at(200), at(500.5), at(501)];
    const cut = (queries: readonly LoggedQuery[]): number =>
      demandOf(logOf(queries, { form: "query log table" }), DEFAULT_DEMAND).requests.length;
    expect(cut(rows)).toBe(2);
    expect(cut(rows.map((q) => ({ ...q, clusterId: OWN_CLUSTER_ID, tables: ["t"] })))).toBe(4);
    expect(cut([...rows, at(502, { end: "running" })])).toBe(4);
  });

  test("long holds make the cut longer than the write interval", () => {
    const rows = [at(0), at(100, { lastRow: 900 * SECOND }), at(1000)];
    const coverage = coverageOf(logOf(rows, { form: "query log table" }), [899 * SECOND], DEFAULT_COVERAGE);
    expect(coverage.to).toBe(1000 * SECOND - 899 * SECOND);
  });

  test("a gap of more than 50 mean gaps in a busy hour is a suspected hole", () => {
    const busy = Array.from({ length: 200 }, (_, i) => at(i));
    const hole = coverageOf(logOf([...busy, at(199 + 901), at(1200)]), [], DEFAULT_COVERAGE).holes;
    expect(hole).toEqual([{ from: 199 * SECOND, to: 1100 * SECOND }]);
    const none = coverageOf(logOf([...busy, at(199 + 880), at(1200)]), [], DEFAULT_COVERAGE).holes;
    expect(none).toEqual([]);
  });
});

describe("insight 4.3 item 6: connections that wait for their answer", () => {
  const prompt = (n: number, gap: number): LoggedQuery[] =>
    Array.from({ length: n }, (_, i) => at(i * (4 + gap), { sessionId: "s1", unregistered: 4 * SECOND }));

  test("a prompt connection is replayed closed, with its think times", () => {
    const { requests, closedLoop } = demandOf(logOf(prompt(6, 0.5)), DEFAULT_DEMAND);
    expect(closedLoop).toBe(5);
    expect(requests[3]?.after).toEqual({ index: 2, think: 0.5 * SECOND + 1000 });
  });

  test("one that thinks for minutes stays open", () => {
    expect(predecessorsOf(prompt(6, 120)).every((p) => p === null)).toBe(true);
  });

  test("overlapping statements of one connection did not wait for each other", () => {
    const rows = [...prompt(6, 0.5), at(40, { sessionId: "s1" }), at(41, { sessionId: "s1" })];
    expect(predecessorsOf(rows)[7]).toBeNull();
  });
});

describe("insight 4.2: what the coordinator was charged", () => {
  const own = (n: number, clusterAdmitted: number, coordinatorEstimate: number | null = 100 * MiB): LoggedQuery =>
    at(0, { backends: n, clusterAdmitted, coordinatorEstimate, estimate: 4 * GiB });

  test.each([
    { what: "a host of its own", q: own(11, 10 * GiB + 100 * MiB), executor: GiB, coordinator: 100 * MiB },
    // 5,120 MiB over 10; with 100 MiB of its own the others had 557.8 MiB each.
    { what: "an executor too", q: own(10, 10 * 512 * MiB), executor: 512 * MiB, coordinator: 512 * MiB },
    {
      what: "an executor too, estimate unknown",
      q: own(10, 5 * GiB, null),
      executor: 512 * MiB,
      coordinator: 512 * MiB,
    },
    { what: "alone", q: own(1, 300 * MiB), executor: 300 * MiB, coordinator: 300 * MiB },
    // 10,340 MiB are 11 x 940 and 10 x 1,024 + 100: its own estimate explains it.
    { what: "both would do", q: own(11, 10_340 * MiB), executor: 1024 * MiB, coordinator: 100 * MiB },
  ])("$what: $executor and $coordinator bytes", ({ q, executor, coordinator }) => {
    expect(executorAmountOf(q)).toBe(executor);
    const [request] = demandOf(logOf([q]), { ...DEFAULT_DEMAND, useRecordedAmounts: true }).requests;
    expect(request?.options).toMatchObject({ memLimitExecutors: executor, memLimitCoordinators: coordinator });
  });

  test.each([
    { rows: [own(10, 5 * GiB)], execute: true },
    { rows: [own(11, 10 * GiB + 100 * MiB)], execute: false },
    { rows: [own(10, 5 * GiB), own(11, 15 * GiB + 100 * MiB), own(6, 5 * GiB + 100 * MiB)], execute: false },
    { rows: [own(10, 5 * GiB), own(7, 7 * GiB), own(6, 5 * GiB + 100 * MiB)], execute: true },
    // MEM_LIMIT is the coordinator's too, wherever it runs.
    {
      rows: [at(0, { backends: 10, clusterAdmitted: 5 * GiB, options: { ...NO_OPTIONS, memLimit: GiB / 2 } })],
      execute: false,
    },
  ])("whether coordinators execute, by most of the amounts: $execute", ({ rows, execute }) => {
    expect(demandOf(logOf(rows.map((q, i) => ({ ...q, queryId: `${i}:0` }))), DEFAULT_DEMAND).coordinatorsExecute).toBe(
      execute,
    );
  });
});

describe("insight 4.5 classes", () => {
  test("five executions make a class, named by what it reads", () => {
    const rows = Array.from({ length: 5 }, (_, i) => at(i));
    expect(new Set(classNamesOf(rows, false))).toEqual(new Set(["orders"]));
  });

  test("rare statements share a class by tables and size; two classes of one table are told apart", () => {
    const often = Array.from({ length: 5 }, (_, i) => at(i));
    const rare = [
      at(10, { fingerprint: "r1" }),
      at(11, { fingerprint: "r2" }),
      at(12, { fingerprint: "r3", estimate: 64 * GiB }),
    ];
    const names = classNamesOf([...often, ...rare], false);
    expect(names[5]).toBe(names[6]);
    expect(new Set(names).size).toBe(3);
    expect(names.every((n) => n.startsWith("orders-"))).toBe(true);
  });

  test("names do not depend on the order of rows", () => {
    const often = Array.from({ length: 5 }, (_, i) => at(i));
    const other = Array.from({ length: 5 }, (_, i) => at(i, { fingerprint: "g" }));
    const forward = classNamesOf([...often, ...other], false);
    expect(classNamesOf([...other, ...often], false)).toEqual([...forward.slice(5), ...forward.slice(0, 5)]);
  });

  test("trivial admissions are their own class", () => {
    expect(classNamesOf([at(0, { outcome: "trivially" }), at(1)], false)[0]).toBe("trivial");
  });
});
