import { describe, expect, test } from "vitest";
import { parseScenario } from "../../../src/config/scenario-file.ts";
import { flagsOf } from "../../../src/config/scenario-pools.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../../src/core/pool-config.ts";
import { type Bytes, GiB, MiB, type Millis } from "../../../src/core/units.ts";
import { type LabReport, type PolicyRow, policyLab, sentencesOf } from "../../../src/insight/lab/policy-lab.ts";
import { recordRequests } from "../../../src/workload/recorded-requests.ts";
import { createWorkload } from "../../../src/workload/scenario-workload.ts";
import { RESOLVER } from "../size/size-fixtures.ts";

const POOL = "root.mixed";

/** The pool of insight 2.5: 195.31 GiB, 20 running, 1 arrival a second, nobody is lost. */
const CONFIG: PoolConfig = {
  ...DEFAULT_POOL_CONFIG,
  maxMemResources: (200_000 * MiB) as Bytes,
  maxRequests: 20,
  maxQueued: 1_000_000,
  queueTimeout: 1e9 as Millis,
};

function lab(largeShare: number, patience = 10_000, hours = 2): LabReport {
  const scenario = parseScenario(
    `
cluster:
  executors: [{ count: 10, memory: 1000gb }]
  coordinators: [{ count: 1, on: executor }]
pools: flags
queries:
  small: { pool: ${POOL}, estimate: 1.5gb, duration: { exponential: { mean: 4s } }, uses: { peak: 1gb } }
  large: { pool: ${POOL}, estimate: 8gb, duration: { exponential: { mean: 60s } }, uses: { peak: 6gb } }
arrivals:
  - { rate: 1, query: ${largeShare === 0 ? "small" : `{ small: ${1 - largeShare}, large: ${largeShare} }`}, from: 0s, to: ${hours}h }
`,
    "/lab.yaml",
  );
  return policyLab({
    scenario,
    flags: flagsOf(scenario),
    requests: recordRequests(createWorkload(scenario, RESOLVER)),
    configs: { root: DEFAULT_POOL_CONFIG, [POOL]: CONFIG },
    pool: POOL,
    patience: patience as Millis,
  });
}

const rowOf = (r: LabReport, policy: string): PolicyRow => r.rows.find((row) => row.policy === policy)!;

describe("insight 2.5 what head-of-line blocking costs", () => {
  const report = lab(0.01);
  const fifo = rowOf(report, "strict FIFO");
  const split = rowOf(report, "split by size");
  const backfill = rowOf(report, "backfill");
  const forEver = rowOf(report, "backfill, no aging");

  test("every policy sees the same requests and loses none of them", () => {
    for (const row of report.rows) {
      expect([row.all.submitted, row.small.submitted, row.large.submitted]).toEqual([
        fifo.all.submitted,
        fifo.small.submitted,
        fifo.large.submitted,
      ]);
      expect(row.all.lost).toBe(0);
      expect(row.small.admitted + row.large.admitted).toBe(row.all.submitted);
    }
  });

  test("large is what lies above the widest gap", () => {
    expect(report.threshold).toBe(15 * GiB);
    expect(report.largeShare).toBeGreaterThan(0.35);
    expect(report.largeShare).toBeLessThan(0.55);
  });

  test("a split frees the small ones and makes the large ones wait: it moves waiting", () => {
    expect(split.small.meanWait).toBeLessThan(0.2 * fifo.small.meanWait);
    expect(split.large.meanWait).toBeGreaterThan(fifo.large.meanWait);
    expect(report.sentences[1]).toMatch(/large ones pay for it: they wait/);
  });

  test("backfill lets small ones pass, and aging bounds how long a head is passed", () => {
    expect(fifo.overtakings).toBe(0);
    expect(backfill.overtakings).toBeGreaterThan(0);
    expect(forEver.overtakings).toBeGreaterThan(backfill.overtakings);
    expect(forEver.small.meanWait).toBeLessThan(fifo.small.meanWait);
    expect(forEver.large.longestWait).toBeGreaterThan(backfill.large.longestWait);
  });

  test("no patience is Impala's order", () => {
    const none = rowOf(lab(0.01, 0, 0.5), "backfill");
    const strict = rowOf(lab(0.01, 0, 0.5), "strict FIFO");
    expect({ ...none, policy: "", what: "" }).toEqual({ ...strict, policy: "", what: "" });
  });

  test("equal queries have nobody to pass: every order is the same", () => {
    const equal = lab(0, 10_000, 0.5);
    expect(equal.threshold).toBeNull();
    expect(equal.rows.map((r) => r.all)).toEqual(equal.rows.map(() => equal.rows[0]!.all));
    expect(equal.sentences[0]).toMatch(/^No other order makes this traffic wait noticeably less/);
  });
});

describe("a pool that holds one query at a time", () => {
  const scenario = parseScenario(
    `
cluster: { executors: [{ count: 1, memory: 100gb }], coordinators: [{ count: 1, on: executor }] }
pools: flags
queries:
  a: { pool: ${POOL}, estimate: 6gb, duration: 10s, uses: { peak: 1gb } }
  b: { pool: ${POOL}, estimate: 8gb, duration: 10s, uses: { peak: 1gb } }
  c: { pool: ${POOL}, estimate: 2gb, duration: 1s, uses: { peak: 1gb } }
arrivals:
  - { at: 0s, query: a, count: 1 }
  - { at: 1s, query: b, count: 1 }
  - { at: 2s, query: c, count: 1 }
  - { at: 12s, query: c, count: 1 }
`,
    "/tight.yaml",
  );
  const report = policyLab({
    scenario,
    flags: flagsOf(scenario),
    requests: recordRequests(createWorkload(scenario, RESOLVER)),
    configs: { root: DEFAULT_POOL_CONFIG, [POOL]: { ...CONFIG, maxMemResources: (10 * GiB) as Bytes } },
    pool: POOL,
    patience: 10_000 as Millis,
  });

  test("8 GiB and 6 GiB do not both fit into 10: a split is left out, and said to be", () => {
    expect(report.threshold).toBe(6 * GiB);
    expect(report.rows.map((r) => r.policy)).not.toContain("split by size");
    expect(report.sentences.at(-1)).toMatch(/^It is not split/);
  });

  test("the large one waits for the first one's 10 s either way, and nobody says that it gains", () => {
    expect(rowOf(report, "strict FIFO").large.meanWait).toBe(rowOf(report, "backfill").large.meanWait);
    expect(report.sentences[1]).toMatch(/large ones wait as long as before, 9\.00 s/);
  });
});

describe("a split has the places of the whole", () => {
  /** Two small and two large ones at once, 4 s each; memory for all of them. */
  const rowsWith = (places: number): LabReport => {
    const scenario = parseScenario(
      `
cluster: { executors: [{ count: 1, memory: 100gb }], coordinators: [{ count: 1, on: executor }] }
pools: flags
queries:
  small: { pool: ${POOL}, estimate: 1gb, duration: 4s, uses: { peak: 100mb } }
  large: { pool: ${POOL}, estimate: 8gb, duration: 4s, uses: { peak: 100mb } }
arrivals:
  - { at: 0s, query: large, count: 2 }
  - { at: 0s, query: small, count: 2 }
`,
      "/places.yaml",
    );
    return policyLab({
      scenario,
      flags: flagsOf(scenario),
      requests: recordRequests(createWorkload(scenario, RESOLVER)),
      configs: { root: DEFAULT_POOL_CONFIG, [POOL]: { ...CONFIG, maxRequests: places } },
      pool: POOL,
      patience: 10_000 as Millis,
    });
  };
  const meansOf = (report: LabReport): (number | undefined)[] =>
    ["strict FIFO", "split by size"].map((policy) => report.rows.find((r) => r.policy === policy)?.all.meanWait);

  test.each([
    // Two run, two wait 4 s for them, whoever is in which pool.
    { places: 2, means: [2000, 2000] },
    // Half of three rounds to two for the large ones, and a small one waits.
    { places: 3, means: [1000, 1000] },
    { places: 4, means: [0, 0] },
    { places: -1, means: [0, 0] },
  ])("$places places: mean waits $means", ({ places, means }) => {
    const report = rowsWith(places);
    expect(meansOf(report)).toEqual(means);
    expect(report.sentences[0]).toMatch(/^No other order/);
  });

  test("one place is not split, and that is said", () => {
    const report = rowsWith(1);
    expect(meansOf(report)).toEqual([6000, undefined]);
    expect(report.sentences.at(-1)).toBe("It is not split: it has one place only.");
  });
});

describe("another pool beside it", () => {
  const OTHER = "root.other";
  /** In `POOL` a small one waits behind a large one; in `OTHER`, of 20 GiB, just so. */
  const reportWith = (others: string): LabReport => {
    const scenario = parseScenario(
      `
cluster: { executors: [{ count: 1, memory: 100gb }], coordinators: [{ count: 1, on: executor }] }
pools: flags
queries:
  small: { pool: ${POOL}, estimate: 2gb, duration: 10s, uses: { peak: 1gb } }
  large: { pool: ${POOL}, estimate: 6gb, duration: 10s, uses: { peak: 1gb } }
  little: { pool: ${OTHER}, estimate: 2gb, duration: 10s, uses: { peak: 1gb } }
  huge: { pool: ${OTHER}, estimate: 19gb, duration: 10s, uses: { peak: 1gb } }
arrivals:
  - { at: 0s, query: large, count: 2 }
  - { at: 1s, query: small, count: 1 }
${others}`,
      "/beside.yaml",
    );
    return policyLab({
      scenario,
      flags: flagsOf(scenario),
      requests: recordRequests(createWorkload(scenario, RESOLVER)),
      configs: {
        root: DEFAULT_POOL_CONFIG,
        [POOL]: { ...CONFIG, maxMemResources: (10 * GiB) as Bytes },
        [OTHER]: { ...CONFIG, maxMemResources: (20 * GiB) as Bytes },
      },
      pool: POOL,
      patience: 60_000 as Millis,
    });
  };
  const alone = reportWith("");
  const beside = reportWith("  - { at: 0s, query: huge, count: 2 }\n  - { at: 1s, query: little, count: 1 }\n");

  test("its queries are not counted, and nobody passes anybody there", () => {
    expect(alone.requests).toBe(3);
    expect(rowOf(alone, "backfill").overtakings).toBe(1);
    expect(beside.requests).toBe(3);
    expect(beside.rows.map((r) => r.overtakings)).toEqual(alone.rows.map((r) => r.overtakings));
    expect(beside.rows.map((r) => r.all)).toEqual(alone.rows.map((r) => r.all));
  });

  test("its larger queries do not keep this one from being split: 6 and 2 GiB fit into 10", () => {
    expect(beside.threshold).toBe(2 * GiB);
    expect(beside.rows.map((r) => r.policy)).toContain("split by size");
    expect(beside.sentences.join(" ")).not.toMatch(/It is not split/);
  });
});

describe("insight 2.2: waits of the admitted alone look better the more are lost", () => {
  const row = (policy: string, meanWait: number, lost: number): PolicyRow => {
    const all = { submitted: 1000, admitted: 1000 - lost, lost, meanWait, longestWait: meanWait, p95: meanWait };
    const none = { ...all, submitted: 0, admitted: 0, lost: 0, meanWait: 0, longestWait: 0, p95: 0 };
    return { policy, what: "", all, small: all, large: none, memoryUsed: 0, overtakings: 0 };
  };
  const strict = row("strict FIFO", 4000, 10);

  test.each([
    { lost: 15, told: /^Under split by size the mean wait of all is 1\.00 s instead of 4\.00 s/ },
    { lost: 16, told: /^Under backfill the mean wait of all is 3\.00 s instead of 4\.00 s/ },
  ])("a policy that loses $lost of 1,000 instead of 10", ({ lost, told }) => {
    const rows = [strict, row("backfill", 3000, 10), row("split by size", 1000, lost)];
    expect(sentencesOf(rows)[0]).toMatch(told);
  });

  test("nothing but losses makes it wait less: no other order does", () => {
    expect(sentencesOf([strict, row("split by size", 1000, 200)])[0]).toMatch(/^No other order/);
  });
});
