/**
 * Every id of the catalogue has an example that raises it and the same example mended by its remedy, which does
 * not (insight 1.3 to 1.6).
 */
import { describe, expect, test } from "vitest";
import type { TrafficClass } from "../../../src/insight/pool-check/check-input.ts";
import { CATALOGUE, type FindingId } from "../../../src/insight/pool-check/finding.ts";
import { type CheckTexts, check, cluster, coordinators, executors, GiB, host, ids } from "./fixtures.ts";

interface Example {
  readonly id: FindingId;
  readonly wrong: CheckTexts;
  readonly mended: CheckTexts;
  /** Where the finding stands, `file:line`; the first line by default. */
  readonly at?: string;
}

const a = (inner: string): string => `<queue name="a">${inner}</queue>`;
const root = (inner: string): string => `<queue name="root">${inner}</queue>`;
const mb = (n: number): string => `<maxResources>${n} mb, 0 vcores</maxResources>`;
const acl = (text: string): string => `<aclSubmitApps>${text}</aclSubmitApps>`;
const user = (name: string, count: string): string =>
  `<userQueryLimit><user>${name}</user><totalCount>${count}</totalCount></userQueryLimit>`;
const policy = (rules: string): string => `<queuePlacementPolicy>${rules}</queuePlacementPolicy>`;
const SPECIFIED = '<rule name="specified" create="false"/>';
const REJECT = '<rule name="reject"/>';
const site = (key: string, value: string): Record<string, string> => ({ [key]: value });
/** An example whose mistake is one site key. */
const key = (id: FindingId, name: string, wrong: string, right: string, allocation = a("")): Example => ({
  id,
  wrong: { allocation, site: site(name, wrong) },
  mended: { allocation, site: site(name, right) },
  at: "llama-site.xml:2",
});
/** An example whose mistake is in the allocation file. */
const text = (id: FindingId, wrong: string, right: string): Example => ({
  id,
  wrong: { allocation: wrong },
  mended: { allocation: right },
});

const tenHosts = cluster(executors(10, { isCoordinator: true }));
const dedicated = cluster([...executors(10), ...coordinators(1)]);
const oneHost = cluster([host({ admitMemLimit: 64 * GiB, isCoordinator: true })]);
const named = cluster(executors(3, { group: { name: "root.a-1", minSize: 1 } }));

const EXAMPLES: readonly Example[] = [
  { id: "F01", wrong: { whole: "<Allocations/>" }, mended: { whole: "<allocations/>" } },
  text("F02", a("<aclSubmitApps/>"), a(acl(" "))),
  text("F03", a("<maxRunningApps>ten</maxRunningApps>"), a("<maxRunningApps>10</maxRunningApps>")),
  text("F04", a("<maxResource>9 mb, 0 vcores</maxResource>"), a(mb(9))),
  text("F05", a("<weight>2.0</weight>"), a("")),
  {
    id: "F06",
    wrong: { allocation: a("<maxRunningApps>10</maxRunningApps>") },
    mended: { allocation: a("<maxRunningApps>10</maxRunningApps>"), site: site("placed.root.a", "10") },
  },
  text("F07", '<queue name="root.a"/>', root(a(""))),
  text("F08", '<queue name="Root"><queue name="a"/></queue>', root(a(""))),
  text("F09", a(acl("u ")) + a(""), a(acl("u "))),
  text("F10", a('<ue name="b"/>'), a('<queue name="b"/>')),
  text("F11", a(`${mb(9000)}<queue name="b"/>`), a(`${mb(9000)}<queue name="b">${mb(9)}</queue>`)),
  text("R01", a("<maxResources>2500 mb</maxResources>"), a(mb(2500))),
  text("R02", a("<maxResources>20gb, 0 vcores</maxResources>"), a(mb(20480))),
  text("R03", a("<maxResources>1,024 mb, 0 vcores</maxResources>"), a(mb(1024))),
  text("R04", a("<maxResources>1.5 mb, 0 vcores</maxResources>"), a(mb(2))),
  text("R05", a(mb(0)), a(mb(9000))),
  text("R06", a(""), a(mb(9000))),
  text(
    "R07",
    `<queueMaxResourcesDefault>1 mb, 0 vcores</queueMaxResourcesDefault>${a("<minResources>99 mb, 0 vcores</minResources>")}`,
    `<queueMaxResourcesDefault>1 mb, 0 vcores</queueMaxResourcesDefault>${a(`<minResources>99 mb, 0 vcores</minResources>${mb(99)}`)}`,
  ),
  text("R08", a(mb(1)), a(mb(32))),
  text("A01", a(acl("ana ")), root(acl(" ") + a(acl("ana ")))),
  text("A02", root(acl("*") + a(acl("ana "))), root(acl(" ") + a(acl("ana ")))),
  text("A03", a(acl("ana, bob")), a(acl("ana,bob"))),
  text("A04", a(acl("\n  ana,bob grp\n")), a(acl("ana,bob grp"))),
  text("A05", a(acl("ana,* g")), a(acl("*"))),
  text("A06", a(acl("ops,admins")), a(acl(" ops,admins"))),
  text("A07", root(acl(" ") + a("")), root(acl(" ") + a(acl("ana")))),
  text("P01", a(""), a("") + policy(SPECIFIED + REJECT)),
  text("P02", a(policy(REJECT)), a("") + policy(REJECT)),
  text("P03", policy('<rule name="Specified"/>'), policy(SPECIFIED + REJECT)),
  text("P04", policy('<rule name="default"/><rule name="specified"/>'), policy(`${SPECIFIED}<rule name="default"/>`)),
  text("P05", policy(`<rule name="specified"/>${REJECT}`), policy(SPECIFIED + REJECT)),
  text("P06", policy(`<rule name="specified" create="yes"/>${REJECT}`), policy(SPECIFIED + REJECT)),
  text("P07", a("") + policy('<rule name="default"/>'), a("") + policy('<rule name="default" queue="a"/>')),
  text(
    "P08",
    root(`${acl(" ")}${a(acl("ana "))}<queue name="default"/>`) + policy(`${SPECIFIED}<rule name="default"/>`),
    root(`${acl(" ")}${a(acl("ana "))}<queue name="default"/>`) + policy(SPECIFIED + REJECT),
  ),
  text("Q01", a("<userQueryLimit><user>ana</user></userQueryLimit>"), a(user("ana", "3"))),
  text("Q02", a("<userQueryLimit><totalCount>3</totalCount><user>ana</user></userQueryLimit>"), a(user("ana", "3"))),
  text("Q03", user("ana", "3"), a(user("ana", "3"))),
  text("Q04", root(user("*", "2") + a(user("*", "5"))), root(user("*", "2") + a(user("*", "2")))),
  text("Q05", a(user("ana", "0")), a(acl("ben"))),
  text("Q06", a("<groupQueryLimit><group>*</group><totalCount>2</totalCount></groupQueryLimit>"), a(user("*", "2"))),
  text("Q07", a(user("*", "3")), a("")),
  {
    id: "S01",
    wrong: {
      allocation: a(""),
      site: "<configuration><property><name>x</name><value>1</objectValue></property></configuration>",
    },
    mended: { allocation: a("") },
    at: "llama-site.xml:1",
  },
  key("S02", "max-mem.root.a", "8gb", "8589934592"),
  key("S03", "clamp.root.a", "yes", "true"),
  { ...key("S04", "placed.a", "5", "5"), mended: { allocation: a(""), site: site("placed.root.a", "5") } },
  {
    id: "S05",
    wrong: { allocation: '<queue name="dashboards"/>', site: site("placed.root.dashbords", "5") },
    mended: { allocation: '<queue name="dashboards"/>', site: site("placed.root.dashboards", "5") },
    at: "llama-site.xml:2",
  },
  {
    id: "S06",
    wrong: { allocation: a(""), site: site("impala.admission-control.max-requests.root.a", "5") },
    mended: { allocation: a(""), site: site("placed.root.a", "5") },
    at: "llama-site.xml:2",
  },
  {
    id: "S07",
    wrong: { allocation: a('<queue name="b"/>'), site: site("placed.root.a", "5") },
    mended: { allocation: a('<queue name="b"/>'), site: { "placed.root.a": "5", "placed.root.a.b": "5" } },
    at: "llama-site.xml:2",
  },
  key("S08", "options.root.a", "mem_limit = 2g", "mem_limit=2g"),
  {
    id: "S09",
    wrong: { allocation: a("<onlyCoordinators>true</onlyCoordinators>"), site: null },
    mended: { allocation: a("<onlyCoordinators>true</onlyCoordinators>"), site: "<configuration/>" },
  },
  key("L01", "queued.root.a", "0", "1"),
  key("L02", "placed.root.a", "0", "-1"),
  key("L03", "timeout.root.a", "0", "30000"),
  key("L04", "timeout.root.a", "30", "30000"),
  {
    id: "L05",
    wrong: { allocation: a(""), site: { "min-mem.root.a": "8589934592", "max-mem.root.a": "1073741824" } },
    mended: { allocation: a(""), site: { "min-mem.root.a": "1073741824", "max-mem.root.a": "8589934592" } },
    at: "llama-site.xml:2",
  },
  key("L06", "min-mem.root.a", "2147483648", "1073741824", a(mb(1024))),
  key("L07", "max-mem.root.a", "2147483648", "1073741824", a(mb(1024))),
  key("L08", "max-mem.root.a", "8192", "8589934592"),
  { ...key("L09", "placed.root.a", "10", "10"), mended: { allocation: a(mb(9000)) }, at: "fair-scheduler.xml:1" },
  {
    id: "L10",
    wrong: { allocation: a(mb(200000)), site: site("placed.root.a", "10") },
    mended: { allocation: a(mb(200000)), site: site("max-mem.root.a", "8589934592") },
  },
  {
    id: "L11",
    wrong: { allocation: a(""), site: { "clamp.root.a": "false", "max-mem.root.a": "8589934592" } },
    mended: { allocation: a(""), site: { "clamp.root.a": "true", "max-mem.root.a": "8589934592" } },
    at: "llama-site.xml:2",
  },
  {
    id: "L12",
    wrong: { allocation: a(""), site: site("queued.root.a", "50") },
    mended: { allocation: a(""), site: site("placed.root.a", "50") },
  },
  {
    id: "G01",
    wrong: { allocation: a(""), flags: { default_pool_max_requests: 20 } },
    mended: { allocation: a("") },
    at: "scenario.yaml:null",
  },
  {
    id: "G02",
    wrong: { allocation: a(""), flags: { queue_wait_timeout_ms: 0 } },
    mended: { allocation: a(""), flags: { queue_wait_timeout_ms: 1 } },
    at: "scenario.yaml:null",
  },
  {
    id: "G03",
    wrong: {
      allocation: '<queue name="a"/><queue name="a-b"/>',
      cluster: cluster(executors(1, { group: { name: "root.a-b-1", minSize: 1 } })),
    },
    mended: {
      allocation: '<queue name="a"/><queue name="b-a"/>',
      cluster: cluster(executors(1, { group: { name: "root.b-a-1", minSize: 1 } })),
    },
  },
  onOneHost(key("C01", "max-mem.root.a", "107374182400", "68719476736")),
  onOneHost(key("C02", "min-mem.root.a", "42949672960", "34359738368")),
  {
    id: "C03",
    wrong: { allocation: `${a(mb(700000))}<queue name="b">${mb(600000)}</queue>`, cluster: tenHosts },
    mended: { allocation: `${a(mb(624000))}<queue name="b">${mb(400000)}</queue>`, cluster: tenHosts },
  },
  {
    id: "C04",
    wrong: {
      allocation: a(mb(1024000)),
      cluster: cluster(executors(10, { processMemLimit: 100 * GiB, admitMemLimit: 90 * GiB })),
    },
    mended: {
      allocation: a(mb(921600)),
      cluster: cluster(executors(10, { processMemLimit: 100 * GiB, admitMemLimit: 90 * GiB })),
    },
  },
  {
    id: "C05",
    wrong: { allocation: `${a("")}<queue name="b">${mb(9000)}</queue>`, cluster: tenHosts },
    mended: { allocation: `${a(mb(9000))}<queue name="b">${mb(9000)}</queue>`, cluster: tenHosts },
  },
  {
    id: "C06",
    wrong: { allocation: a(mb(9000)), site: site("min-mem.root.a", "1073741824"), cluster: tenHosts },
    mended: { allocation: a(mb(10240)), site: site("min-mem.root.a", "1073741824"), cluster: tenHosts },
  },
  {
    id: "C07",
    wrong: {
      allocation: a(mb(20480)),
      site: { "placed.root.a": "50", "min-mem.root.a": "1073741824" },
      cluster: tenHosts,
    },
    mended: {
      allocation: a(mb(20480)),
      site: { "placed.root.a": "2", "min-mem.root.a": "1073741824" },
      cluster: tenHosts,
    },
    at: "llama-site.xml:2",
  },
  {
    id: "C08",
    wrong: { allocation: a(mb(200000)), cluster: dedicated, traffic: [{}] },
    mended: { allocation: a(mb(200000 + 1300)), cluster: dedicated, traffic: [{}] },
  },
  {
    id: "C09",
    wrong: {
      allocation: a(""),
      site: site("placed.root.a", "10"),
      cluster: cluster(coordinators(8).concat(executors(1))),
    },
    mended: {
      allocation: a(""),
      site: site("placed.root.a", "10"),
      cluster: cluster(coordinators(8).concat(executors(1)), { admissiond: true }),
    },
    at: "llama-site.xml:2",
  },
  {
    id: "C10",
    wrong: { allocation: a(""), site: { "placed.root.a": "20", "options.root.a": "mt_dop=4" }, cluster: named },
    mended: { allocation: a(""), site: { "placed.root.a": "4", "options.root.a": "mt_dop=4" }, cluster: named },
    at: "llama-site.xml:2",
  },
  {
    id: "W01",
    wrong: pressed({ "queued.root.a": "50", "timeout.root.a": "30000" }, {}, 31000),
    mended: pressed({ "queued.root.a": "15", "timeout.root.a": "30000" }, {}, 31000),
    at: "llama-site.xml:2",
  },
  {
    id: "W02",
    wrong: pressed({ "queued.root.a": "50" }, { largestBurst: 80 }),
    mended: pressed({ "queued.root.a": "67" }, { largestBurst: 80 }),
    at: "llama-site.xml:2",
  },
  { id: "W03", wrong: pressed({}, { peakRate: 4 }), mended: pressed({}, { peakRate: 3 }) },
  {
    id: "W04",
    wrong: mixed(80),
    mended: mixed(15),
  },
  {
    id: "W05",
    wrong: pressed({}, { perHostEstimate: 20 * GiB, peak: { mean: GiB / 2, p95: GiB } }),
    mended: pressed({}, { perHostEstimate: GiB, peak: { mean: GiB / 2, p95: GiB } }),
  },
  {
    id: "W06",
    wrong: pressed({ "max-mem.root.a": "2147483648" }, { peak: { mean: 2 * GiB, p95: 3 * GiB } }),
    mended: pressed({ "max-mem.root.a": "3221225472" }, { peak: { mean: 2 * GiB, p95: 3 * GiB } }),
    at: "llama-site.xml:2",
  },
  {
    id: "W07",
    wrong: pressed({ "max-mem.root.a": "209715200" }, { minReservation: 200 * 1024 ** 2 }),
    mended: pressed({ "max-mem.root.a": "262144000" }, { minReservation: 200 * 1024 ** 2 }),
    at: "llama-site.xml:2",
  },
  {
    id: "W08",
    wrong: {
      allocation: `${a("")}<queue name="default"/>${policy(`${SPECIFIED}<rule name="default"/>`)}`,
      traffic: [{ count: 60 }, { count: 40, requestedPool: "" }],
    },
    mended: {
      allocation: `${a("")}<queue name="default"/>${policy(`${SPECIFIED}<rule name="default"/>`)}`,
      traffic: [{ count: 96 }, { count: 4, requestedPool: "" }],
    },
  },
];

function onOneHost(example: Example): Example {
  const { wrong, mended } = example;
  return { ...example, wrong: { ...wrong, cluster: oneHost }, mended: { ...mended, cluster: oneHost } };
}

/** The worked pool with a class of its traffic, on ten hosts. */
function pressed(keys: Record<string, string>, some: Partial<TrafficClass>, megabytes = 200000): CheckTexts {
  return { allocation: a(mb(megabytes)), site: keys, cluster: tenHosts, traffic: [some] };
}

/** One query in a hundred is large and long, the rest are as usual. */
function mixed(largeGiB: number): CheckTexts {
  const small = { perHostEstimate: 1.5 * GiB, count: 99 };
  const large = { perHostEstimate: (largeGiB / 10) * GiB, count: 1, meanHold: 60_000, name: "report" };
  return { allocation: a(mb(200000)), cluster: tenHosts, traffic: [small, large] };
}

describe("insight 1.6: each example raises its id, at its place, and mended it does not", () => {
  test.each(EXAMPLES)("$id", ({ id, wrong, mended, at = "fair-scheduler.xml:1" }) => {
    const found = check(wrong).findings.filter((f) => f.id === id);
    expect(found.map((f) => `${f.file}:${f.line}`)).toContain(at);
    for (const { found: what, effect, remedy, rule } of found)
      for (const sentence of [what, effect, remedy, rule]) expect(sentence).toMatch(/\S/);
    expect(ids(mended)).not.toContain(id);
  });

  // Two at once for 4 s each: so many leave before the timeout of the last in the queue.
  test.each([
    [1999, "No place in it has hope: queries there can only time out,", "A longer timeout, or more throughput."],
    [2000, "Only the first place has hope; beyond it queries can only", "A queue of 1, or more throughput."],
    [4000, "Only the first 2 places have hope; beyond them queries", "A queue of 2, or more throughput."],
  ])("W01 with a timeout of %d ms", (timeout, effect, remedy) => {
    const texts = pressed({ "queued.root.a": "50", "timeout.root.a": String(timeout) }, {}, 31000);
    const found = check(texts).findings.find((f) => f.id === "W01");
    expect(found?.effect).toContain(effect);
    expect(found?.remedy).toBe(remedy);
  });

  test("every id of the catalogue has an example", () => {
    const covered = new Set(EXAMPLES.map((example) => example.id));
    expect(Object.keys(CATALOGUE).filter((id) => !covered.has(id as FindingId))).toEqual([]);
    expect(Object.keys(CATALOGUE)).toHaveLength(83);
  });

  test("what cannot be loaded is one error for the file, and nothing else about it", () => {
    for (const { id, wrong } of EXAMPLES.filter(({ id }) => CATALOGUE[id].severity === "error" && id !== "S02"))
      expect(
        ids({ ...wrong, site: id === "S01" ? (wrong.site ?? null) : null }).filter(
          (other) => CATALOGUE[other as FindingId].severity === "error",
        ),
      ).toEqual([id]);
  });
});
