import { describe, expect, test } from "vitest";
import type { PoolConfig } from "../../../src/core/pool-config.ts";
import { instant, millis } from "../../../src/core/units.ts";
import { evaluateThresholds } from "../../../src/insight/thresholds.ts";
import { jsonText } from "../../../src/surfaces/cli/documents/json-text.ts";
import type { Look } from "../../../src/surfaces/cli/look.ts";
import { renderReport } from "../../../src/surfaces/cli/report.ts";
import { exitCodeOf, type RunReport, reportJson } from "../../../src/surfaces/cli/run-report.ts";
import { ADM1, ADM2, ADM4, pool, Stream, summarise } from "../../insight/stream.ts";

const GB = 2 ** 30;
const MB = 2 ** 20;
const CONFIG: PoolConfig = {
  ...pool({ maxMem: 200_000 * MB, maxRequests: 20, maxQueued: 50 }),
  queueTimeout: millis(30_000),
};

/** Waves of 13 of 60 queries, 4 s each: the worked example by hand. */
function waves(): Stream {
  const s = new Stream();
  const id = (i: number) => `${i.toString(16).padStart(8, "0")}0000:0`;
  for (let i = 0; i < 60; i++) {
    s.submit(0, id(i));
    if (i < 13) s.admit(0, id(i), 15 * GB);
    else s.queue(0, id(i), i === 13 ? ADM4(15 * GB, 200_000 * MB) : ADM1(i - 13));
  }
  for (let wave = 1; wave <= 5; wave++) {
    const at = wave * 4000;
    for (let i = (wave - 1) * 13; i < Math.min(60, wave * 13); i++) s.end(at, id(i));
    for (let i = wave * 13; i < Math.min(60, (wave + 1) * 13); i++) s.admit(at, id(i), 15 * GB, "fromQueue", at);
  }
  return s;
}

function reportOf(stream: Stream, thresholds: readonly string[] = [], over: Partial<RunReport> = {}): RunReport {
  const summary = summarise(stream, CONFIG);
  return {
    name: "dashboards",
    mode: "virtual",
    seed: 7,
    scenario: "examples/dashboards/scenario.yaml",
    summary,
    thresholds: evaluateThresholds(thresholds, summary),
    overAdmittedHosts: null,
    records: "runs/dashboards-7.jsonl",
    fleet: null,
    poolFiles: [],
    warnings: [],
    interrupted: false,
    requestedPoolOf: () => "",
    chargeOf: () => null,
    ...over,
  };
}

const look = (columns: number, over: Partial<Look> = {}): Look => ({
  colour: false,
  unicode: true,
  columns,
  tableColumns: columns,
  ...over,
});
const text = (report: RunReport, l: Look): string => `${renderReport(report, l).join("\n")}\n`;
const golden = (name: string): string => `../../golden/${name}.txt`;

const THRESHOLDS = ["pool.root.p.wait.p95 < 20s", "rejected == 0"];

/** 2 at once, 2 from the queue, 4 time out, 2 rejected; one more without a pool and one that fails. */
function losses(): Stream {
  const s = new Stream();
  s.submit(0, "a0000000:0")
    .admit(0, "a0000000:0", 80 * GB)
    .submit(0, "b0000000:0")
    .admit(0, "b0000000:0", 80 * GB);
  s.submit(0, "c0000000:0").queue(0, "c0000000:0", ADM4(80 * GB, 200_000 * MB));
  for (let i = 1; i < 6; i++) s.submit(0, `c${i}000000:0`).queue(0, `c${i}000000:0`, ADM1(i));
  for (let i = 0; i < 2; i++)
    s.submit(0, `e${i}000000:0`).reject(0, `e${i}000000:0`, { rule: "REJ-A5", limit: 6, queued: 6, stale: null });
  s.submit(10, "f0000000:0", { pool: "", user: "zoe" }).other({
    kind: "unresolved",
    at: instant(10),
    query: "f0000000:0",
    error: "denied",
  });
  s.end(4000, "a0000000:0")
    .admit(4000, "c0000000:0", 80 * GB, "fromQueue", 4000)
    .head(4000, "c1000000:0", ADM4(80 * GB, 200_000 * MB));
  s.end(4100, "b0000000:0")
    .admit(4100, "c1000000:0", 80 * GB, "fromQueue", 4100)
    .head(4100, "c2000000:0", ADM4(80 * GB, 200_000 * MB));
  s.timeOut(30_000, "c2000000:0", 30_000, ADM4(80 * GB, 200_000 * MB));
  for (let i = 3; i < 6; i++) s.timeOut(30_000, `c${i}000000:0`, 30_000, ADM1(i));
  s.other({
    kind: "spilled",
    at: instant(30_500),
    query: "c0000000:0",
    host: "exec-1:27000",
    instance: 1,
    bytes: (3 * GB) as never,
  });
  s.end(31_000, "c0000000:0").end(31_000, "c1000000:0");
  return s;
}

/** Thirty in one instant where twenty may run and 200,000 mb may be given out. */
function overAdmitted(): RunReport {
  const s = new Stream();
  const ids = Array.from({ length: 30 }, (_, i) => `${i.toString(16).padStart(8, "0")}0000:0`);
  for (const id of ids) s.submit(0, id).admit(0, id, 15 * GB);
  for (const [i, id] of ids.entries()) s.end(4000 + 100 * i, id);
  const over = (host: string, mostBytes: number, timeMs: number) => ({ host, limitBytes: 100 * GB, mostBytes, timeMs });
  const overAdmittedHosts = [
    over("exec-4:27000", 12.5 * GB, 4800),
    over("exec-1:27000", 10 * GB, 4500),
    over("exec-2:27000", 10 * GB, 4500),
    over("exec-3:27000", GB, 100),
  ];
  return reportOf(s, [], { overAdmittedHosts });
}

describe("the report as text (page-and-demos 3.3 to 3.5)", () => {
  test.each([140, 100, 80, 60])("the worked example at %d columns", async (columns) => {
    await expect(text(reportOf(waves(), THRESHOLDS), look(columns))).toMatchFileSnapshot(
      golden(`report-worked-${columns}`),
    );
  });

  test.each([140, 60])("losses and failing thresholds at %d columns", async (columns) => {
    await expect(
      text(reportOf(losses(), [...THRESHOLDS, "waitAll.p95 < 1m", "pool.root.x.rejected == 0"]), look(columns)),
    ).toMatchFileSnapshot(golden(`report-losses-${columns}`));
  });

  test.each([100, 60])("over-admission, by pool and by host, at %d columns", async (columns) => {
    await expect(text(overAdmitted(), look(columns))).toMatchFileSnapshot(golden(`report-over-admission-${columns}`));
  });

  test("at the limit nothing is said about over-admission", () => {
    expect(text(reportOf(waves(), [], { overAdmittedHosts: [] }), look(100))).not.toContain("OVER-ADMISSION");
  });

  test("no line is wider than the terminal, but for names of files and commands", () => {
    for (const columns of [140, 100, 80, 64, 63, 40]) {
      const lines = [reportOf(losses(), THRESHOLDS), overAdmitted()].flatMap((r) => renderReport(r, look(columns)));
      for (const line of lines.filter((l) => !/^ *(records|next:)|of \d+ thresholds/.test(l)))
        expect(line.length).toBeLessThanOrEqual(Math.max(columns, 52));
    }
  });

  test("a pipe has all columns and wraps texts", () => {
    const lines = renderReport(reportOf(waves()), look(100, { tableColumns: Number.POSITIVE_INFINITY }));
    expect(lines.find((l) => l.startsWith("POOL"))).toMatch(
      /WAIT P50\s+P95\s+MAX\s+PEAK RUN\s+PEAK QUEUE\s+PEAK MEMORY\s+SPILLED/,
    );
  });

  test("columns leave in their order; the first wait that stays carries the group's name", () => {
    const head = (columns: number) => renderReport(reportOf(waves()), look(columns)).find((l) => l.startsWith("POOL"));
    expect(head(125)).not.toContain("SPILLED");
    expect(head(125)).toContain("PEAK QUEUE");
    expect(head(110)).not.toContain("PEAK QUEUE");
    expect(head(100)).toContain("WAIT P95");
    expect(head(100)).not.toContain("P50");
  });

  test("taking the colours away leaves the same text", () => {
    const report = reportOf(losses(), THRESHOLDS);
    const coloured = text(report, look(140, { colour: true }));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the codes.
    expect(coloured.replace(/\x1b\[\d+m/g, "")).toBe(text(report, look(140)));
    expect(coloured).not.toBe(text(report, look(140)));
  });

  test("without unicode every character is plain", () => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII.
    expect(text(reportOf(losses(), THRESHOLDS), look(140, { unicode: false }))).toMatch(/^[\x00-\x7f]*$/);
  });

  test("a running limit that binds says what memory would allow", () => {
    const s = new Stream()
      .submit(0, "a")
      .admit(0, "a", GB)
      .submit(0, "b")
      .queue(0, "b", ADM2(1, 1))
      .end(1000, "a")
      .admit(1000, "b", GB, "fromQueue", 1000)
      .end(2000, "b");
    const summary = summarise(s, { ...CONFIG, maxRequests: 1 });
    expect(text(reportOf(s, [], { summary }), look(140))).toContain(
      "all 1 places were taken; there is memory for 195 queries of 1.00 GB",
    );
  });

  test("queue order names what the heads wait for, and how far needs lie apart", () => {
    const s = new Stream()
      .submit(0, "t", { queryClass: "small" })
      .admit(0, "t", GB)
      .submit(0, "a", { queryClass: "large" })
      .admit(0, "a", 120 * GB)
      .submit(0, "b", { queryClass: "large" })
      .queue(0, "b", ADM4(120 * GB, 200_000 * MB));
    for (let i = 0; i < 5; i++) s.submit(0, `c${i}`, { queryClass: "small" }).queue(0, `c${i}`, ADM1(i + 1));
    s.end(1000, "a").admit(1000, "b", 120 * GB, "fromQueue", 1000);
    for (let i = 0; i < 5; i++) s.admit(1000, `c${i}`, GB, "fromQueue", 1000);
    for (let i = 0; i < 5; i++) s.end(2000, `c${i}`);
    s.end(2000, "b").end(2000, "t");
    const told = text(reportOf(s), look(140));
    expect(told).toContain("queue order (ADM-1), 83 % of all waiting: behind heads that wait for pool memory (ADM-4)");
    expect(told).toContain("needs go from 1.00 GB (small) to 120.00 GB (large), and 195.31 GB are there");
  });

  test("a large inflation is named with its source", () => {
    const s = waves();
    const report = reportOf(s, [], {
      chargeOf: () => ({
        perHost: (8 * GB) as never,
        onCoordinator: 0 as never,
        perHostSource: "POOL_CONFIG_MAX_QUERY_MEM_LIMIT",
        onCoordinatorSource: "POOL_CONFIG_MAX_QUERY_MEM_LIMIT",
        memLimit: 0,
        coordinatorMemLimit: 0,
        cluster: 0 as never,
      }),
    });
    // No peak is known here, so nothing is said about it.
    expect(text(report, look(140))).not.toContain("used at most");
  });

  test("a count of any width keeps its distance from the text", () => {
    const s = new Stream();
    for (let i = 0; i < 12_345; i++)
      s.submit(0, `${i}:0`).reject(0, `${i}:0`, { rule: "REJ-A5", limit: 6, queued: 6, stale: null });
    expect(text(reportOf(s), look(100))).toMatch(/^12\u202f345 {2}rejected: queue full/m);
  });

  test("nothing at all happened", () => {
    expect(text(reportOf(new Stream()), look(100))).toContain("No query has reached a pool.");
  });
});

describe("the report as JSON", () => {
  test("the same numbers per pool, waits in milliseconds, memory in bytes", () => {
    const json = JSON.parse(jsonText(reportJson(reportOf(waves(), THRESHOLDS))));
    expect(json.pools["root.p"]).toMatchObject({
      admittedImmediately: 13,
      admittedFromQueue: 47,
      rejected: 0,
      timedOut: 0,
      cancelled: 0,
      waitMs: { p50: 8000, p95: 16_000, max: 16_000 },
      peakRunning: 13,
      peakQueued: 47,
      peakMemoryBytes: 195 * GB,
    });
    expect(json.thresholds).toEqual([
      { expr: "pool.root.p.wait.p95 < 20s", holds: true, value: 16_000, unit: "ms" },
      { expr: "rejected == 0", holds: true, value: 0, unit: "count" },
    ]);
  });
});

describe("a quantile among the lost", () => {
  test("is endless over all submitted, and what nobody waited for is no value", () => {
    const stream = new Stream().submit(0, "a").admit(0, "a", 1).end(1, "a");
    for (const id of ["b", "c"])
      stream.submit(0, id).other({ kind: "unresolved", at: instant(0), query: id, error: "x" });
    const report = reportOf(stream, ["pool.root.p.waitAll.p95 < 1s"]);
    const json = JSON.parse(jsonText(reportJson(report)));
    const { p50, endless } = json.pools["root.p"].waitAllMs;
    expect([p50, endless]).toEqual([null, ["p50", "p90", "p95", "p99", "max"]]);
    expect(json.pools["root.p"].waitMs).not.toHaveProperty("endless");
    expect(json.thresholds).toEqual([
      { expr: "pool.root.p.waitAll.p95 < 1s", holds: false, value: null, unit: "ms", endless: ["value"] },
    ]);
  });
});

describe("exit codes (DESIGN 2)", () => {
  test.each([
    ["all is well", reportOf(waves(), THRESHOLDS), 0],
    ["a threshold does not hold", reportOf(losses(), THRESHOLDS), 99],
    ["a promise of ours is broken", reportOf(new Stream().submit(0, "a").admit(0, "a", 5).freePlace(1, "a")), 1],
    [
      "something was left behind",
      reportOf(waves(), [], {
        fleet: {
          hosts: 1,
          threads: 1,
          realMs: 1,
          peakArenaBytes: 0,
          arenaBytes: 0,
          peakScratchBytes: 0,
          left: ["a file"],
        },
      }),
      1,
    ],
  ])("%s", (_, report, code) => {
    expect(exitCodeOf(report)).toBe(code);
  });
});
