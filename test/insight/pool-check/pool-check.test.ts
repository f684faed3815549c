import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { readScenario } from "../../../src/config/scenario-file.ts";
import { checkPools } from "../../../src/insight/pool-check/pool-check.ts";
import { ANY_OTHER_NAME } from "../../../src/insight/pool-check/pool-table.ts";
import { clusterFacts, peaksOf, trafficFacts } from "../../../src/insight/pool-check/scenario-facts.ts";
import { whereARequestLands } from "../../../src/insight/pool-check/where-a-request-lands.ts";
import { type CheckTexts, check, cluster, coordinators, executors, ids, inputOf } from "./fixtures.ts";

const a = (inner: string): string => `<queue name="a">${inner}</queue>`;
const acl = (text: string): string => `<aclSubmitApps>${text}</aclSubmitApps>`;
const mb = (n: number): string => `<maxResources>${n} mb, 0 vcores</maxResources>`;
const policy = (rules: string): string => `<queuePlacementPolicy>${rules}</queuePlacementPolicy>`;

/** Findings of one id as `severity pool`. */
const of = (id: string, texts: CheckTexts): string[] =>
  check(texts)
    .findings.filter((f) => f.id === id)
    .map((f) => `${f.severity} ${f.pool}`);

describe("insight 1.1: order, and files that do not load", () => {
  test("what stops queries comes first, then severity, file, line, id", () => {
    const { findings } = check({
      allocation: `\n${a("<weight>1</weight><weihgt/>")}\n<queue name="b"/>`,
      site: { "queued.root.b": "0", "max-mem.root.a": "8gb" },
    });
    const keys = findings.map((f) => [
      f.stops ? 0 : 1,
      ["error", "warning", "hint"].indexOf(f.severity),
      f.file,
      f.line ?? 0,
      f.id,
    ]);
    expect(keys).toEqual(keys.toSorted((x, y) => comparedBy(x, y)));
    expect(findings.slice(0, 2).map((f) => f.id)).toEqual(["S02", "L01"]);
  });

  test("a broken allocation file does not silence the site file, and the other way round", () => {
    expect(ids({ whole: "<allocations>", site: { "max-mem": "8gb", "placed.a": "1" } })).toEqual(["S02", "F01", "S04"]);
    const broken = ids({ allocation: a("<weight>1</weight>"), site: "<configuration>" });
    expect(broken).toContain("S01");
    expect(broken).toContain("F05");
    expect(broken.filter((id) => /^[L]|S0[2-9]/.test(id))).toEqual([]);
  });

  test("nothing to complain about", () => {
    const clean = check({
      allocation: `<queue name="root">${acl(" ")}${a(acl("ana ") + mb(9000))}</queue>${policy('<rule name="specified" create="false"/><rule name="reject"/>')}`,
      site: { "min-mem.root.a": "1073741824", "max-mem.root.a": "8589934592" },
    });
    expect(clean.findings).toEqual([]);
    expect(clean.counts).toEqual({ errors: 0, warnings: 0, hints: 0 });
  });
});

function comparedBy(x: readonly (string | number)[], y: readonly (string | number)[]): number {
  const i = x.findIndex((value, at) => value !== y[at]);
  const [p, q] = [x[i] ?? 0, y[i] ?? 0];
  return i < 0 ? 0 : p < q ? -1 : 1;
}

describe("cases of one id that weigh differently", () => {
  test.each([
    ["2 vcores, 5 mb 6 mb", 1],
    ["5 mb, 0 vcores", 0],
    ["1'024 mb, 0 vcores", 1],
    ["1_024 mb, 0 vcores", 1],
    ["1.024 mb, 0 vcores", 0],
    ["1.0.24 mb, 0 vcores", 1],
    ["1e3 mb, 0 vcores", 1],
    ["-1 mb, 0 vcores", 1],
    ["+5 mb, 0 vcores", 1],
    ["1 024 mb, 0 vcores", 1],
    ["0 vcores,5 mb", 0],
  ])("R03: %s gives %d", (text, times) => {
    expect(of("R03", { allocation: a(`<maxResources>${text}</maxResources>`) })).toHaveLength(times);
  });

  test("R05: a default of 0 is one finding for all pools, not one for each", () => {
    const allocation = `<queueMaxResourcesDefault>0 mb, 0 vcores</queueMaxResourcesDefault>${a("")}<queue name="b"/><queue name="c">${mb(1)}</queue>`;
    expect(of("R05", { allocation })).toEqual(["warning null"]);
  });

  test("R08: small query limits make a small pool possible", () => {
    const allocation = a(mb(31));
    expect(of("R08", { allocation })).toHaveLength(1);
    expect(of("R08", { allocation, site: { "max-mem.root.a": "33554431" } })).toEqual([]);
    expect(of("R08", { allocation, site: { "max-mem.root.a": "33554432" } })).toHaveLength(1);
    expect(of("R08", { allocation, site: { "options.root.a": "mem_limit=10m" } })).toEqual([]);
  });

  test("A06: with a table of groups it is known, without one guessed from names", () => {
    const allocation = a(acl("ops,admin"));
    expect(of("A06", { allocation })).toEqual([]);
    expect(of("A06", { allocation: a(acl("bi_users")) })).toEqual(["hint root.a"]);
    expect(of("A06", { allocation, groups: { ana: ["ops", "admin"] } })).toEqual(["warning root.a"]);
    expect(of("A06", { allocation, groups: { ana: ["ops", "admin"], ops: [] } })).toEqual([]);
    expect(of("A06", { allocation: a(acl("bi_users")), groups: { ana: ["x"] } })).toEqual([]);
  });

  test("S05: a name that a rule can create is a hint", () => {
    const site = { "placed.root.b": "1", "placed.root.c.d": "1" };
    const without = policy('<rule name="specified" create="false"/><rule name="reject"/>');
    const byUser = policy('<rule name="specified" create="false"/><rule name="user"/>');
    expect(of("S05", { allocation: a("") + without, site })).toEqual(["warning root.b", "warning root.c.d"]);
    expect(of("S05", { allocation: a("") + byUser, site })).toEqual(["warning root.c.d", "hint root.b"]);
    expect(of("S05", { allocation: a(""), site })).toEqual(["hint root.b", "hint root.c.d"]);
  });

  test("S02: an unsuffixed key and one of root stop every pool", () => {
    const effects = check({
      allocation: a(""),
      site: { placed: "x", "placed.root": "y", "placed.root.a": "z" },
    }).findings;
    expect(effects.filter((f) => f.id === "S02").map((f) => /of every pool/.test(f.effect))).toEqual([
      true,
      true,
      false,
    ]);
  });

  test("S03: also a number without a value; a property that lost is not told", () => {
    const site =
      "<configuration><property><name>llama.am.throttling.maximum.placed.reservations</name><value/></property></configuration>";
    expect(of("S03", { allocation: a(""), site })).toEqual(["warning null"]);
    const twice =
      '<configuration><property name="llama.am.throttling.maximum.placed.reservations" value="x"/><property name="llama.am.throttling.maximum.placed.reservations" value="1"/></configuration>';
    expect(of("S02", { allocation: a(""), site: twice })).toEqual([]);
  });

  test("S08: what is wrong with each piece", () => {
    const site = {
      "options.root.a": "x,mem_limit = 1g,mem_limt=1g,v_cpu_cores=2,mem_limit=5%,request_pool=b,mt_dop=4",
    };
    const found = check({ allocation: a(""), site }).findings.filter((f) => f.id === "S08");
    expect(found.map((f) => `${f.found}: ${f.severity}: ${f.remedy}`).sort()).toEqual([
      "mem_limit = 1g: warning: No blank before the sign: mem_limit=1g.",
      "mem_limit=5%: warning: Write a size: percentages are not allowed here.",
      "mem_limt=1g: warning: Do you mean mem_limit?",
      "request_pool=b: warning: Delete it; clients choose pools.",
      "v_cpu_cores=2: hint: Delete it.",
      "x: warning: Write pairs such as mem_limit=2g,mt_dop=4.",
    ]);
  });

  test.each([
    [
      "impala.admission-control.max-running-queries-multiple.root.a",
      "Set llama.am.throttling.maximum.placed.reservations instead.",
    ],
    ["impala.admission-control.max-memory-multiple.root.a", "Set maxResources in the allocation file."],
    [
      "impala.admission-control.pool-default-query-mem-limit.root.a",
      "Do you mean impala.admission-control.pool-default-query-options with mem_limit=...?",
    ],
    ["impala.admission-control.queue-timeout-ms.root.a", "Do you mean impala.admission-control.pool-queue-timeout-ms?"],
    ["llama.am.server.thrift.port", "Delete it: it belonged to the Llama server."],
  ])("S06: %s", (key, remedy) => {
    expect(check({ allocation: a(""), site: { [key]: "1" } }).findings.find((f) => f.id === "S06")?.remedy).toBe(
      remedy,
    );
  });

  test("L01: one key for all pools is one finding", () => {
    const allocation = `${a("")}<queue name="b"/>`;
    expect(of("L01", { allocation, site: { queued: "0" } })).toEqual(["warning null"]);
    expect(of("L01", { allocation, site: { queued: "0", "queued.root.a": "1" } })).toEqual(["warning null"]);
    expect(of("L01", { allocation, site: { "queued.root.a": "-1", "queued.root.b": "0" } })).toEqual([
      "warning root.a",
      "warning root.b",
    ]);
  });

  test("L09, L10, L12: a parent that only holds others is left alone", () => {
    const parent = (inner: string) => `<queue name="p">${inner}<queue name="a">${mb(9)}</queue></queue>`;
    expect(of("L09", { allocation: parent("") })).toEqual([]);
    expect(of("L10", { allocation: parent(mb(9)) })).toEqual(["warning root.p", "warning root.p.a"]);
  });

  test("C03: above 1.5 times the cluster a warning, above 1 a hint, equal nothing", () => {
    const two = (mega: number): CheckTexts => ({
      allocation: `${a(mb(mega))}<queue name="b">${mb(mega)}</queue>`,
      cluster: cluster(executors(10)),
    });
    expect(of("C03", two(512_000))).toEqual([]);
    expect(of("C03", two(512_001))).toEqual(["hint null"]);
    expect(of("C03", two(768_000))).toEqual(["hint null"]);
    expect(of("C03", two(768_001))).toEqual(["warning null"]);
  });

  test("C09: one more coordinator than a tenth of the running limit", () => {
    const k = (n: number) =>
      of("C09", {
        allocation: a(""),
        site: { "placed.root.a": "20" },
        cluster: cluster([...executors(1), ...coordinators(n)]),
      });
    expect(k(3)).toEqual([]);
    expect(k(4)).toEqual(["warning root.a"].map((s) => s.replace("warning", "hint")));
  });
});

describe("the worked example, C08", () => {
  const pools = a(mb(200000));
  test("13 fit without, 12 with a dedicated coordinator", () => {
    const found = check({ allocation: pools, cluster: cluster([...executors(10), ...coordinators(1)]), traffic: [{}] });
    expect(found.findings.find((f) => f.id === "C08")?.effect).toBe(
      "13 would fit, with the coordinator's share of 100.00 MB only 12.",
    );
    expect(
      ids({ allocation: pools, cluster: cluster(executors(10, { isCoordinator: true })), traffic: [{}] }),
    ).not.toContain("C08");
  });
});

describe("the table of pools", () => {
  const rows = (texts: CheckTexts) => check(texts).pools;

  test("root first, then in name order, each value with where it comes from", () => {
    const table = rows({
      allocation: `<queue name="b">${mb(1)}</queue>${a("")}`,
      site: { placed: "5", "queued.root.b": "7" },
    });
    expect(table.map((row) => `${row.pool} ${row.kind}`)).toEqual([
      "root root",
      "root.a leaf",
      "root.b leaf",
      `${ANY_OTHER_NAME} undeclared`,
    ]);
    expect(table[2]?.fields).toMatchObject({
      maxMemResources: { value: 1048576, from: "own", name: "maxResources", file: "fair-scheduler.xml", line: 1 },
      maxRequests: { value: 5, from: "unsuffixed", file: "llama-site.xml", line: 2 },
      maxQueued: { value: 7, from: "own", line: 3 },
      minQueryMemLimit: { value: 0, from: "builtIn", name: null, file: null },
    });
  });

  test("without a rule that creates there is no row for other names", () => {
    const strict = policy('<rule name="specified" create="false"/><rule name="default" queue="a"/>');
    expect(rows({ allocation: a("") + strict }).map((row) => row.pool)).toEqual(["root", "root.a"]);
  });

  test("a record that cannot be built has its error in place of values", () => {
    expect(rows({ allocation: a(""), site: { "placed.root.a": "x" } })[1]).toMatchObject({
      fields: null,
      error: 'NumberFormatException: For input string: "x"',
    });
  });

  test("one pool without an allocation file", () => {
    const table = rows({ site: { placed: "1" }, flags: { default_pool_max_queued: 3 } });
    expect(table).toHaveLength(1);
    expect(table[0]).toMatchObject({ pool: "default-pool", fields: { maxQueued: { value: 3, from: "flag" } } });
  });

  test("users of the table of groups, and what Impala logs", () => {
    const result = check({
      allocation: `<odd/><queue name="root">${acl(" ")}${a(acl("ana g"))}<queue name="b">${acl("ben")}</queue></queue>${policy('<rule name="primaryGroup" create="false"/><rule name="default" queue="a"/>')}`,
      groups: { ana: ["x"], cem: ["x", "g"], dora: [] },
    });
    expect(result.users.map((u) => [u.user, u.lands, u.mayUse])).toEqual([
      ["ana", "root.a", ["root.a"]],
      ["cem", "root.a", ["root.a"]],
      ["dora", null, []],
    ]);
    expect(result.logWarnings).toEqual(["Bad element in allocations file: odd"]);
  });
});

describe("where a request lands, and why", () => {
  const lands = (texts: CheckTexts, pool: string, user: string) => {
    const { directory } = check(texts);
    if (directory === null) throw new Error("the files load");
    return whereARequestLands(directory, pool, user);
  };
  const strict = `<queue name="root">${acl(" ")}${a(acl("ana g"))}</queue>${policy('<rule name="specified" create="false"/><rule name="reject"/>')}`;

  test("granted by a group", () => {
    expect(lands({ allocation: strict, groups: { ben: ["x", "g"] } }, "a", "ben@R")).toMatchObject({
      pool: "root.a",
      hasAccess: true,
      because: [
        'Rule specified with create="false" (line 1) says root.a.',
        "The access list of root.a lets group g in (line 1).",
      ],
    });
  });

  test("refused by the list", () => {
    const answer = lands({ allocation: strict }, "a", "eve");
    expect(answer.hasAccess).toBe(false);
    expect(answer.because.at(-1)).toBe("No access list from root.a up to root lets the user in.");
    expect(answer.error).toContain("denied access to assigned pool 'root.a'");
  });

  test("refused by the rules", () => {
    expect(lands({ allocation: strict }, "b", "ana")).toMatchObject({
      pool: null,
      because: ['Rule specified with create="false" (line 1) passes.', "Rule reject (line 1) rejects."],
    });
  });

  test("an undeclared pool by a built-in rule", () => {
    expect(lands({ allocation: "" }, "", "ana").because).toEqual([
      "Rule specified (built-in) passes.",
      "Rule user (built-in) says root.ana.",
      "root.ana is not declared: it has built-in defaults and what the keys without pool name say.",
      "The access list of root lets everybody in (none is written).",
    ]);
  });

  test("without groups, without files", () => {
    const byGroup = policy('<rule name="primaryGroup"/>');
    expect(lands({ allocation: byGroup }, "", "ana").because[0]).toContain("needs groups");
    expect(lands({}, "x", "ana")).toMatchObject({ pool: "default-pool", hasAccess: true });
  });
});

describe("facts from a scenario", () => {
  const scenario = readScenario(resolve(import.meta.dirname, "../../../examples/dashboards/scenario.yaml"));

  test("the worked example's cluster and burst", () => {
    expect(clusterFacts(scenario).hosts).toHaveLength(10);
    expect(trafficFacts(scenario).classes).toMatchObject([
      { requestedPool: "root.dashboards", count: 60, largestBurst: 60, meanHold: 4000, executors: "all", peakRate: 0 },
    ]);
  });

  test("peaks: most at one moment, busiest hour a second", () => {
    const hour = 3_600_000;
    expect(peaksOf([0, 0, 5, hour, hour + 1, hour + 2, hour + 3])).toEqual({ largestBurst: 2, peakRate: 4 / 3600 });
    expect(peaksOf([])).toEqual({ largestBurst: 0, peakRate: 0 });
  });
});

const SHARED = resolve(import.meta.dirname, "../../../../shared/conformance");

describe.skipIf(!existsSync(SHARED))("insight 1.6: the files of conformance, where they are", () => {
  const files = (dir: string): string[] =>
    readdirSync(dir).flatMap((name) => {
      const path = join(dir, name);
      if (statSync(path).isDirectory()) return files(path);
      return /fair-scheduler.*\.xml$|bad_configurations/.test(path) && path.endsWith(".xml") ? [path] : [];
    });
  // What stands here is gone through where the files are missing, too.
  const all = [join(SHARED, "xml"), join(SHARED, "field-xml")].filter((dir) => existsSync(dir)).flatMap(files);

  test.each(all.map((path) => [path.slice(SHARED.length + 1), path] as const))("%s", (name, path) => {
    const input = { ...inputOf({}), allocation: { file: path, bytes: readFileSync(path) }, site: null };
    const errors = checkPools(input).findings.filter((f) => f.severity === "error");
    const broken = /duplicate_/.test(name);
    expect(errors.map((f) => f.id)).toEqual(broken ? ["Q01"] : []);
    if (broken) expect(lineOf(path, errors[0]?.line ?? 0)).toMatch(/<(user|group)>/);
  });

  const lineOf = (path: string, line: number): string => readFileSync(path, "utf8").split("\n")[line - 1] ?? "";
});
