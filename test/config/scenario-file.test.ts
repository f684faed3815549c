import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { ConfigError } from "../../src/config/config-error.ts";
import { DEFAULT_FLAGS, isFlagName } from "../../src/config/impala-flags.ts";
import { FLAGS, QUERY_OPTIONS } from "../../src/config/known-options.ts";
import { isQueryOption } from "../../src/config/query-options.ts";
import type { Scenario } from "../../src/config/scenario.ts";
import { parseScenario, readScenario } from "../../src/config/scenario-file.ts";
import { scenarioJsonSchema } from "../../src/config/scenario-schema.ts";

const MB = 1024 * 1024;
const GB = 1024 * MB;

/** The smallest scenario, with parts replaced. */
function scenarioText(over: Readonly<Record<string, string>> = {}): string {
  const parts: Record<string, string> = {
    cluster: "{ executors: [{ count: 2, memory: 10gb }] }",
    queries: "{ q: { estimate: 1gb, duration: 1s } }",
    arrivals: "[{ at: 0s, query: q, count: 3 }]",
    ...over,
  };
  return Object.entries(parts)
    .map(([key, value]) => `${key}: ${value}`)
    .join("\n");
}

const parse = (over: Readonly<Record<string, string>> = {}): Scenario =>
  parseScenario(scenarioText(over), "/dir/test.yaml", "test.yaml");

function errorOf(action: () => unknown): ConfigError {
  try {
    action();
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error("no error was raised");
}

const messageOf = (over: Readonly<Record<string, string>>): string => errorOf(() => parse(over)).message;

describe("what a scenario becomes", () => {
  test("the worked example", () => {
    const s = readScenario(resolve(import.meta.dirname, "../../examples/dashboards/scenario.yaml"));
    expect(s.name).toBe("dashboards");
    expect(s.cluster.executors[0]).toMatchObject({ count: 10, memory: 100 * GB, slots: 16 });
    expect(s.queries[0]).toMatchObject({ name: "tile", requestedPool: "root.dashboards", users: ["ana"] });
    expect(s.queries[0]?.shape).toMatchObject({ perHostMemEstimate: 1.5 * GB, executors: "all" });
    expect(s.arrivals[0]).toMatchObject({ kind: "burst", from: 0, count: 60 });
    expect(s.scale).toEqual({ time: 2, memory: 1024 });
    expect(s.pools).toMatchObject({ kind: "files" });
  });

  test.each(["dedicated-coordinator.yaml", "dropped-statistics.yaml"])("its variant %s is a scenario", (file) => {
    expect(readScenario(resolve(import.meta.dirname, "../../examples/dashboards", file)).queries).toHaveLength(1);
  });

  test("a query may ask for all the executors of a group, though another group has fewer", () => {
    const groups = "{ count: 3, memory: 1gb, executorGroup: a }, { count: 2, memory: 1gb, executorGroup: b }";
    const of = (cluster: string): unknown =>
      parse({ cluster, queries: "{ q: { estimate: 1gb, duration: 1s, hosts: 3 } }" }).queries[0]?.shape.executors;
    expect(of(`{ executors: [${groups}] }`)).toBe(3);
    // Written in two parts, they are of one group still.
    expect(of("{ executors: [{ count: 2, memory: 1gb }, { count: 1, memory: 2gb }] }")).toBe(3);
  });

  test("JSON is a scenario too", () => {
    const text = JSON.stringify({
      cluster: { executors: [{ memory: "1gb" }] },
      queries: { q: { estimate: "32mb", duration: "1s" } },
      arrivals: [{ at: 0, count: 1 }],
    });
    expect(parseScenario(text, "/dir/x.json").arrivals).toHaveLength(1);
  });

  test("what is left out has its default", () => {
    const s = parse();
    expect(s).toMatchObject({ name: "test", seed: 1, pools: { kind: "flags" }, thresholds: [], faults: [] });
    expect(s.cluster).toMatchObject({ admission: "distributed", statestore: { every: 100, failureAfter: 10_000 } });
    expect(s.cluster.coordinators).toMatchObject([{ count: 1, on: "executor" }]);
    expect(s.queries[0]).toMatchObject({ users: ["client"], requestedPool: "", cancelAfter: null });
    expect(s.queries[0]?.uses).toMatchObject({
      kind: "footprint",
      peak: { kind: "fixed", value: GB / 2 },
      profile: "ramp",
    });
    expect(s.arrivals[0]?.retry.attempts).toBe(1);
    expect(s.scale).toEqual({ time: 1, memory: 1024 });
  });

  test("without an estimate there is enough for the peak (admission 2.1)", () => {
    const [q] = parse({ queries: "{ q: { uses: { peak: 1gb }, duration: 1s } }" }).queries;
    expect(q?.shape.perHostMemEstimate).toBe(1.25 * GB);
  });

  test("a file called scenario has its folder's name", () => {
    expect(parseScenario(scenarioText(), "/runs/monday/scenario.yaml").name).toBe("monday");
  });

  test("executor groups with a least size, as a text or as a block", () => {
    const s = parse({
      cluster:
        "{ executors: [{ memory: 1gb, executorGroup: root.a-1:3 }, { memory: 1gb, executorGroup: { name: b } }] }",
    });
    expect(s.cluster.executors.map((e) => e.group)).toEqual([
      { name: "root.a-1", minSize: 3 },
      { name: "b", minSize: 1 },
    ]);
  });

  test("MT_DOP sets the instances of the executors' fragment, hence the slots", () => {
    const [q] = parse({ queries: "{ q: { estimate: 1gb, duration: 1s, mtDop: 4, minReservation: 8mb } }" }).queries;
    expect(q?.shape.fragments.map((f) => [f.runsOn, f.instancesPerHost, f.minReservationPerInstance])).toEqual([
      ["coordinator", 1, 0],
      ["executors", 4, 8 * MB],
    ]);
  });

  test("DML has no coordinator fragment, a trivial query has no other", () => {
    const s = parse({
      queries: "{ d: { estimate: 1gb, duration: 1s, stmtType: DML }, t: { trivial: true } }",
      arrivals: "[{ at: 0s, query: d }]",
    });
    expect(s.queries.map((q) => q.shape.fragments.map((f) => f.runsOn))).toEqual([["executors"], ["coordinator"]]);
    expect(s.queries[1]?.shape).toMatchObject({ isTrivial: true, coordinatorOnly: true });
  });

  test("every option and flag that a scenario may set is one of Impala's, and its default is taken", () => {
    expect(QUERY_OPTIONS.filter((name) => !isQueryOption(name))).toEqual([]);
    const flags = FLAGS.filter(isFlagName).map((name) => `${name}: ${JSON.stringify(DEFAULT_FLAGS[name])}`);
    expect(Object.keys(parse({ flags: `{ ${flags.join(", ")} }` }).flags)).toHaveLength(flags.length);
  });

  test("an option without a value is not set, -1 is no limit", () => {
    const s = parse({
      queries: '{ q: { estimate: 1gb, duration: 1s, options: { MEM_LIMIT: "", MEM_LIMIT_EXECUTORS: "-1" } } }',
    });
    expect(s.queries[0]?.options).toEqual({ MEM_LIMIT_EXECUTORS: "0" });
    expect(s.queries[0]?.shape.options).toMatchObject({ memLimit: 0, memLimitExecutors: 0 });
  });

  test("query options by Impala's names, sizes with unit or in bytes", () => {
    const s = parse({
      queries: "{ q: { estimate: 1gb, duration: 1s, options: { mem_limit: 2gb, MEM_LIMIT_EXECUTORS: 5 } } }",
    });
    expect(s.queries[0]?.shape.options).toMatchObject({ memLimit: 2 * GB, memLimitExecutors: 5 });
    expect(s.queries[0]?.options).toEqual({ MEM_LIMIT: "2147483648", MEM_LIMIT_EXECUTORS: "5" });
  });

  test("operators bring estimate, minimum reservation and a memory scale of 1 (P9, P11, P12)", () => {
    const s = parse({
      queries:
        "{ s: { sort: { rows: 1000000, width: 16 } }, j: { uses: { join: { build: { rows: 1677722, width: 92 }, probe: { rows: 10 } } } } }",
      arrivals: "[{ at: 0s, query: s }]",
    });
    expect(s.queries[0]?.shape.perHostMemEstimate).toBe(24_000_000);
    expect(s.queries[0]?.shape.fragments[1]?.minReservationPerInstance).toBe(6 * MB);
    expect(s.queries[1]?.shape.fragments[1]?.minReservationPerInstance).toBe(34 * MB);
    expect(s.queries[1]?.uses).toMatchObject({ kind: "operators", operators: [{ kind: "join", probe: { rows: 10 } }] });
    expect(s.scale.memory).toBe(1);
  });

  test("small builds get small buffers (P8): 25 rows of 109 bytes need 1.94 MB", () => {
    const s = parse({
      queries: "{ j: { join: { build: { rows: 25, width: 101 }, probe: { rows: 10 } } } }",
      arrivals: "[{ at: 0s }]",
    });
    expect(s.queries[0]?.shape.fragments[1]?.minReservationPerInstance).toBe(15 * 64 * 1024 + 2 * 512 * 1024);
  });

  test("distributions", () => {
    const kinds = [
      "{ exponential: { mean: 4s } }",
      "{ lognormal: { mean: 4s, cv: 2 } }",
      "{ lognormal: { p50: 1s, p95: 9s } }",
      "{ pareto: { alpha: 1.5, low: 1s, high: 100s } }",
      "{ empirical: [3s, 1s] }",
    ].map((duration) => parse({ queries: `{ q: { estimate: 1gb, duration: ${duration} } }` }).queries[0]?.duration);
    expect(kinds).toMatchObject([
      { kind: "exponential", mean: 4000 },
      {
        kind: "lognormal",
        mu: expect.closeTo(Math.log(4000) - Math.log(5) / 2, 10),
        sigma: expect.closeTo(Math.sqrt(Math.log(5)), 10),
      },
      { kind: "lognormal", mu: expect.closeTo(Math.log(1000), 10), sigma: expect.closeTo(Math.log(9) / 1.6448536, 6) },
      { kind: "pareto", alpha: 1.5, low: 1000, high: 100_000 },
      { kind: "empirical", values: [1000, 3000] },
    ]);
  });

  test("arrivals of every kind", () => {
    const s = parse({
      arrivals:
        "[{ at: 1s, count: 2, within: 10s }, { rate: 600/min, to: 1h, day: { swing: 0.5 } }, { every: 100ms, count: 5 }, { clients: 4, think: 1s, requests: 3 }, { trace: log.csv }]",
    });
    expect(s.arrivals).toMatchObject([
      { kind: "burst", from: 1000, count: 2, within: 10_000 },
      { kind: "rate", perSecond: 10, to: 3_600_000 },
      { kind: "every", every: 100, count: 5 },
      { kind: "clients", clients: 4, requests: 3, think: { kind: "fixed", value: 1000 } },
      { kind: "trace", file: "/dir/log.csv", mix: [] },
    ]);
    const rate = s.arrivals[1];
    const day = rate?.kind === "rate" ? (rate.day ?? []) : [];
    expect(day.reduce((sum, f) => sum + f, 0) / 24).toBeCloseTo(1, 12);
    expect(Math.max(...day)).toBeCloseTo(1.4957, 4);
  });

  test("a class mix is shares of one", () => {
    const s = parse({
      queries: "{ a: { estimate: 1gb, duration: 1s }, b: { estimate: 1gb, duration: 1s } }",
      arrivals: "[{ at: 0s, query: { b: 3, a: 1 } }]",
    });
    expect(s.arrivals[0]?.mix).toEqual([
      { queryClass: 1, share: 0.75 },
      { queryClass: 0, share: 0.25 },
    ]);
  });

  test("retries of the arrival go before those of its class, and those before the scenario's", () => {
    const s = parse({
      limits: "{ time: 1h }",
      retries: "{ wait: 5s }",
      queries: "{ a: { estimate: 1gb, duration: 1s, retries: { wait: 2s } }, b: { estimate: 1gb, duration: 1s } }",
      arrivals:
        "[{ at: 0s, query: a, retries: { attempts: unlimited, backoff: { from: 1s, to: 8s } } }, { at: 0s, query: a }, { at: 0s, query: b }]",
    });
    expect(s.arrivals.map((a) => a.retry)).toMatchObject([
      { attempts: Number.POSITIVE_INFINITY, first: 1000, factor: 2, most: 8000, jitter: "full", on: ["rejected"] },
      { first: 2000, attempts: 5, jitter: "none" },
      { first: 5000 },
    ]);
  });

  test("faults are in order of time, hosts are addresses", () => {
    const s = parse({
      faults:
        "[{ at: 2s, fault: hostDies, host: exec-2 }, { at: 1s, fault: statestoreStops }, { at: 2s, fault: coordinatorDies, host: exec-1 }]",
    });
    expect(s.faults).toEqual([
      { kind: "statestoreStops", at: 1000 },
      { kind: "hostDies", at: 2000, host: "exec-2:27000" },
      { kind: "coordinatorDies", at: 2000, host: "exec-1:27000" },
    ]);
  });
});

describe("insight 4.6 traces bring their own classes", () => {
  test.each(["queries: {}\n", ""])("with %j in the file", (queries) => {
    const s = parseScenario(
      `cluster: { executors: [{ count: 2, memory: 10gb }] }\n${queries}arrivals: [{ trace: log.csv }]`,
      "/dir/test.yaml",
    );
    expect(s.queries).toEqual([]);
    expect(s.arrivals).toMatchObject([{ kind: "trace", file: "/dir/log.csv" }]);
  });
});

describe("what is wrong is told with file, line, found, expected, remedy", () => {
  const cases: readonly (readonly [what: string, over: Readonly<Record<string, string>>, message: string])[] = [
    [
      "no unit",
      { queries: "\n  q:\n    estimate: 1.5" },
      "test.yaml:4: estimate 1.5 has no unit. Expected a size such as 1.5gb or 200000mb. Write  estimate: 1.5gb",
    ],
    [
      "no class for arrivals that name none",
      { queries: "{}", arrivals: "[{ trace: log.csv }, { at: 0s }]" },
      "test.yaml:2: queries names no query class, and not all arrivals are traces. Expected at least one. Write for instance  queries:",
    ],
    [
      "a negative size",
      { queries: "\n  q: { estimate: -3gb }" },
      'test.yaml:3: estimate "-3gb" is negative. Expected a size',
    ],
    [
      "a negative time",
      { queries: "\n  q: { estimate: 3gb, duration: -1s }" },
      'test.yaml:3: duration "-1s" is negative. Expected a time',
    ],
    [
      "an unknown key",
      { queries: "\n  q: { estimat: 3gb }" },
      'test.yaml:3: unknown key "estimat" in queries.q. Did you mean "estimate"?',
    ],
    [
      "an unknown key at the top",
      { clutser: "3" },
      'test.yaml:4: unknown key "clutser" in the scenario. Did you mean "cluster"?',
    ],
    [
      "no hosts",
      { cluster: "{ executors: [{ count: 0, memory: 1gb }] }" },
      "test.yaml:1: count is 0. Expected a whole number from 1",
    ],
    [
      "an empty list of hosts",
      { cluster: "{ executors: [] }" },
      "test.yaml:1: executors is an empty list. Expected a list of at least 1",
    ],
    [
      "hosts without memory",
      { cluster: "{ executors: [{ count: 1 }] }" },
      "memory is missing in cluster.executors[0]. Expected a size",
    ],
    [
      "hosts with no memory",
      { cluster: "{ executors: [{ count: 1, memory: 0 }] }" },
      "memory is 0. Expected a size above 0",
    ],
    [
      "a word out of a list",
      { cluster: "{ executors: [{ memory: 1gb }], admission: admisiond }" },
      'Did you mean "admissiond"?',
    ],
    [
      "an unknown class",
      { arrivals: "[{ at: 0s, query: p }]" },
      'test.yaml:3: unknown query class "p". Did you mean "q"?',
    ],
    ["an unknown fault", { faults: "[{ at: 0s, fault: hostDyes, host: exec-1 }]" }, 'Did you mean "hostDies"?'],
    [
      "an unknown host",
      { faults: "[{ at: 0s, fault: hostDies, host: exec-3 }]" },
      '"exec-3" is no host of this cluster. Expected exec-1, exec-2',
    ],
    [
      "a host that is no coordinator",
      { faults: "[{ at: 0s, fault: coordinatorDies, host: exec-2 }]" },
      '"exec-2" is no coordinator of this cluster',
    ],
    [
      "6.4 group sets where there are no groups",
      { flags: '{ expected_executor_group_sets: "root.a:2" }' },
      "changes nothing where no executors are in a group. Write  executorGroup: root.a-000",
    ],
    [
      "6.4 group sets that the product does not start with",
      { flags: '{ expected_executor_group_sets: "root.a" }' },
      "Invalid executor group set format: root.a",
    ],
    [
      "9.2 lost releases where nobody sends any",
      { faults: "[{ at: 0s, fault: releasesLost, chance: 0.5 }]" },
      "it releases by a call. Write  cluster: { admission: admissiond }",
    ],
    [
      "lost releases of a host that sends none",
      {
        cluster: "{ executors: [{ count: 2, memory: 1gb }], admission: admissiond }",
        faults: "[{ at: 0s, fault: releasesLost, chance: 1, host: exec-2 }]",
      },
      '"exec-2" is no coordinator of this cluster',
    ],
    [
      "too many coordinators on executors",
      { cluster: "{ executors: [{ memory: 1gb }], coordinators: [{ count: 2 }] }" },
      "2 coordinators on executors, but there are only 1",
    ],
    [
      "more hosts than there are",
      { queries: "{ q: { estimate: 1gb, duration: 1s, hosts: 3 } }" },
      "test.yaml:2: hosts is 3. Expected at most 2, as many executors as there are. Lower it, write  hosts: all  or",
    ],
    [
      "more hosts than any group has",
      {
        cluster:
          "{ executors: [{ count: 2, memory: 1gb, executorGroup: a }, { count: 1, memory: 2gb, executorGroup: a }, { count: 2, memory: 1gb, executorGroup: b }] }",
        queries: "{ q: { estimate: 1gb, duration: 1s, hosts: 4 } }",
      },
      "hosts is 4. Expected at most 3, the size of the largest executor group.",
    ],
    ["no estimate", { queries: "{ q: { duration: 1s } }" }, "estimate is missing in queries.q"],
    ["no duration", { queries: "{ q: { estimate: 1gb } }" }, "duration is missing in queries.q"],
    [
      "endless retries",
      { arrivals: "[{ at: 0s }]", retries: "{ attempts: unlimited }" },
      "its retries may never end: attempts are unlimited. Expected an end. Write a number of attempts, or  limits: { time: 10m }",
    ],
    ["endless traffic", { arrivals: "[{ rate: 10/s }]" }, "this traffic never ends. Expected an end. Add  to: 10m"],
    [
      "two kinds of arrival",
      { arrivals: "[{ at: 0s, rate: 10/s }]" },
      "this arrival has at and rate of at, rate, every, clients, trace",
    ],
    ["a key of another kind", { arrivals: "[{ at: 0s, think: 1s }]" }, "think means nothing beside at"],
    [
      "an unknown option",
      { queries: "{ q: { estimate: 1gb, duration: 1s, options: { MEM_LIMT: 2gb } } }" },
      'unknown query option "MEM_LIMT". Did you mean "MEM_LIMIT"?',
    ],
    [
      "an option that is no size",
      { queries: "{ q: { estimate: 1gb, duration: 1s, options: { MEM_LIMIT: much } } }" },
      "Failed to parse query option 'MEM_LIMIT': much. Write a size such as 512mb.",
    ],
    [
      "an unknown flag",
      { flags: "{ queue_wait_timeout: 5 }" },
      'unknown flag "queue_wait_timeout". Did you mean "queue_wait_timeout_ms"?',
    ],
    [
      "an option outside its range",
      { queries: "{ q: { estimate: 1gb, duration: 1s, options: { MT_DOP: 65 } } }" },
      "Invalid value for query option MT_DOP: 65 is not in range [0, 64]. Write a value that Impala takes for MT_DOP.",
    ],
    [
      "a buffer size that is no power of two",
      { queries: "{ q: { estimate: 1gb, duration: 1s, options: { DEFAULT_SPILLABLE_BUFFER_SIZE: 3mb } } }" },
      "Value must be a power of two: 3145728. Write a size such as 512mb.",
    ],
    ["a flag of another type", { flags: "{ queue_wait_timeout_ms: soon }" }, 'is "soon", which is not a whole number'],
    [
      "a flag outside its range",
      { flags: "{ cluster_membership_retained_removed_coords: 1001 }" },
      "outside 1 to 1000",
    ],
    ["a flag that changes nothing", { flags: "{ admission_service_port: 1 }" }, "changes nothing in a run. Delete it."],
    ["a flag with a key of its own", { flags: "{ llama_site_path: x }" }, "Use  pools.llamaSite"],
    [
      "a scale that operators cannot have",
      { queries: "{ q: { sort: { rows: 5 } } }", scale: "{ memory: 64 }" },
      'query class "q" runs real operators',
    ],
    [
      "a wrong threshold",
      { thresholds: '["wait.p96 < 20s"]' },
      'names the unknown number "wait.p96". Did you mean "wait.p9',
    ],
    [
      "a threshold without unit",
      { thresholds: '["wait.p95 < 20"]' },
      'compares with "20". Expected a time such as 20s',
    ],
    ["a threshold that is none", { thresholds: '["no rejections"]' }, "is no comparison"],
    [
      "two distributions",
      { queries: "{ q: { estimate: 1gb, duration: { fixed: 1s, exponential: { mean: 1s } } } }" },
      "2 kinds are given (fixed, exponential)",
    ],
    [
      "half a lognormal",
      { queries: "{ q: { estimate: 1gb, duration: { lognormal: { mean: 1s } } } }" },
      "Expected mean and cv, or p50 and p95",
    ],
  ];
  test.each(cases)("%s", (_, over, message) => {
    expect(messageOf(over)).toContain(message);
  });

  test("several mistakes at once, in the order of the file, at most five", () => {
    const message = messageOf({
      queries: "\n  q:\n    a1: 1\n    estimate: x\n    duration: y\n    hosts: none\n    threads: -1\n    mtDop: 99",
    });
    expect(message.split("\n").map((line) => /^test\.yaml:(\d+)/.exec(line)?.[1])).toEqual([
      "4",
      "5",
      "6",
      "7",
      "8",
      undefined,
    ]);
    expect(message).toMatch(/And 1 more\.$/);
  });

  test.each([
    ["broken YAML", "cluster: [1, 2", "this is no YAML"],
    ["a key twice", "name: a\nname: b", "test.yaml:2:1: this is no YAML: Map keys must be unique"],
    ["a list", "- 1\n- 2", "this is no scenario. Expected keys such as cluster"],
    ["an empty file", "", "this is no scenario"],
    ["thousands of brackets", "[".repeat(300_000), "test.yaml:1: the file is nested too deeply"],
    ["thousands of indents", Array.from({ length: 900 }, (_, i) => `${" ".repeat(i)}a:`).join("\n"), "test.yaml:1"],
    [
      "an alias bomb",
      `a: &a [1,1,1,1,1,1,1,1,1,1]\n${"bcdefgh"
        .split("")
        .map((k, i) => `${k}: &${k} [${`*${"abcdefg"[i]},`.repeat(10)}]`)
        .join("\n")}`,
      "test.yaml:1",
    ],
  ])("%s", (_, text, message) => {
    expect(errorOf(() => parseScenario(text, "/dir/test.yaml", "test.yaml")).message).toContain(message);
  });
});

describe("files that are no scenario", () => {
  const dir = mkdtempSync(join(tmpdir(), "waterhole-test-"));
  afterAll(() => rmSync(dir, { recursive: true }));
  const written = (name: string, content: string | Uint8Array): string => {
    const file = join(dir, name);
    writeFileSync(file, content);
    return file;
  };

  test("a missing file", () => {
    expect(errorOf(() => readScenario(join(dir, "none.yaml"))).message).toContain(
      "there is no such file. Check the path.",
    );
  });

  test("a folder", () => {
    expect(errorOf(() => readScenario(dir)).message).toContain("it is a folder");
  });

  test("two YAML documents in one file", () => {
    const file = written("two.yaml", "name: a\n---\nname: b\n");
    expect(errorOf(() => readScenario(file)).message).toContain(
      "two.yaml:2:1: a second YAML document begins here. Expected one scenario in a file. Take out the line",
    );
  });

  test("10 MB of anything are refused before they are parsed", () => {
    const file = written("large.yaml", new Uint8Array(10 * MB).fill(91));
    expect(errorOf(() => readScenario(file)).message).toContain(
      "the file has 10.0 MB. Expected a scenario, at most 1 MB",
    );
  });

  test.each([
    ["bytes that are no UTF-8", new Uint8Array([0xff, 0xfe, 0x00])],
    ["zero bytes", new Uint8Array([97, 58, 32, 0])],
  ])("%s", (name, content) => {
    expect(errorOf(() => readScenario(written(`${name}.yaml`, content))).message).toContain("the file is not text");
  });
});

describe("the published schema", () => {
  test("schema/scenario.schema.json is the schema in force (vitest -u writes it)", async () => {
    const text = `${JSON.stringify(scenarioJsonSchema(), null, 2)}\n`;
    await expect(text).toMatchFileSnapshot(resolve(import.meta.dirname, "../../schema/scenario.schema.json"));
  });
});
