import { describe, expect, test } from "vitest";
import { parseAcl } from "../../src/config/acl.ts";
import type { AllocationFault } from "../../src/config/allocation-fault.ts";
import { parseAllocationFile, readAllocationFile } from "../../src/config/allocation-file.ts";
import { ConfigError } from "../../src/config/config-error.ts";
import { readResourceValue } from "../../src/config/resource-value.ts";
import { allocation, configError, directory, queue } from "./fixtures.ts";

const fault = (body: string): AllocationFault => configError(() => allocation(body)) as AllocationFault;
const memoryOf = (body: string, pool = "root.a"): number =>
  directory({ allocation: allocation(body) }).configOf(pool).maxMemResources;

describe("pool-configuration 1.5.1: resource texts", () => {
  test.each([
    ["1024 mb, 0 vcores", 1024],
    ["1024MB,2VCORES", 1024],
    [" 1mb, 0 vcores", 1],
    ["0 vcores, 99 mb", 99],
    ["20480mb,1vcores,3 gpus", 20480],
    ["1.5 mb, 0 vcores", 1],
    ["1. mb, 0 vcores", 1],
    ["1,024 mb, 0 vcores", 24],
    ["-5 mb, -3 vcores", 5],
    ["1e3 mb, 0 vcores", 3],
    ["5 mb 6 mb, 7 vcores", 5],
    ["1 mbytes 2 vcoresX", 1],
    ["1.2.7 mb, 0 vcores", 2],
    ["12\n mb, 0 vcores", 12],
    ["0 mb, 0 vcores", 0],
    ["2147483647 mb, 0 vcores", 2147483647],
  ])("%s is %d MiB", (text, memoryMb) => {
    expect(readResourceValue(text)).toMatchObject({ kind: "value", value: { memoryMb } });
  });

  test.each([
    ["2147483648 mb, 0 vcores", "Error reading resource config", "noMemory"],
    ["1 mb, 2147483648 vcores", "Error reading resource config", "noMemory"],
    ["2500 mb", "Missing resource: vcores", "noVcores"],
    ["1024", "Missing resource: mb", "noMemory"],
    ["100gb, 0 vcores", "Missing resource: mb", "noMemory"],
    ["10 mib, 0 vcores", "Missing resource: mb", "noMemory"],
    ["50.0% memory, 50.0% cpu", "Missing resource: mb", "noMemory"],
    ["memory-mb=1024, vcores=2", "Missing resource: mb", "noMemory"],
    ["٣ mb, 0 vcores", "Missing resource: mb", "noMemory"],
  ])("%s costs the whole file", (text, problem, kind) => {
    expect(fault(queue(`<maxResources>${text}</maxResources>`))).toMatchObject({
      problem,
      kind,
      pool: "root.a",
      line: 1,
    });
  });

  test("a text of ten million digits is still read in no time", () => {
    expect(readResourceValue("1".repeat(10_000_000))).toEqual({ kind: "missing", what: "mb" });
  });
});

describe("pool-configuration 1.5.2: the memory limit that counts", () => {
  const size = (tag: string, mb: number) => `<${tag}>${mb} mb, 0 vcores</${tag}>`;
  const MiB = 1024 * 1024;

  test.each([
    ["own maximum", queue(size("maxResources", 7)), 7 * MiB],
    ["nothing at all", queue(""), -1],
    ["the int32 maximum is unlimited", queue(size("maxResources", 2147483647)), -1],
    ["one below it is a limit", queue(size("maxResources", 2147483646)), 2147483646 * MiB],
    ["zero disables", queue(size("maxResources", 0)), 0],
    ["the default", size("queueMaxResourcesDefault", 5) + queue(""), 5 * MiB],
    ["the minimum above the default", size("queueMaxResourcesDefault", 5) + queue(size("minResources", 6)), 6 * MiB],
    ["the minimum equal to the default", size("queueMaxResourcesDefault", 5) + queue(size("minResources", 5)), 5 * MiB],
    ["a minimum never exceeds unlimited", queue(size("minResources", 6)), -1],
    [
      "own maximum before all",
      size("queueMaxResourcesDefault", 5) + queue(size("minResources", 9) + size("maxResources", 1)),
      MiB,
    ],
    ["the last of several", queue(size("maxResources", 1) + size("maxResources", 2)), 2 * MiB],
  ])("%s", (_, body, bytes) => {
    expect(memoryOf(body)).toBe(bytes);
  });

  test("the default holds for undeclared pools too, and is not inherited along the path", () => {
    const file = size("queueMaxResourcesDefault", 5) + queue(size("maxResources", 1) + queue("", "b"));
    expect(memoryOf(file, "root.a.b")).toBe(5 * MiB);
    expect(memoryOf(file, "root.nobody")).toBe(5 * MiB);
    expect(memoryOf(file, "root")).toBe(5 * MiB);
  });

  test("a minimum that does not fit in the maximum is only logged", () => {
    const body = queue("<maxResources>100 mb, 9 vcores</maxResources><minResources>100 mb, 10 vcores</minResources>");
    expect(allocation(body).warnings).toContain(
      "Queue root.a has max resources <memory:100, vCores:9> less than min resources <memory:100, vCores:10>",
    );
    const fits = queue("<maxResources>100 mb, 9 vcores</maxResources><minResources>100 mb, 9 vcores</minResources>");
    expect(allocation(fits).warnings).toEqual([]);
  });
});

describe("pool-configuration 1.2: how a value is taken", () => {
  const text = (inner: string) =>
    allocation(queue(`<maxRunningApps>${inner}</maxRunningApps><onlyCoordinators>true</onlyCoordinators>`));

  test.each(["<maxRunningApps/>", "<maxRunningApps></maxRunningApps>", "<maxRunningApps><!-- 1 --></maxRunningApps>"])(
    "%s has no first child and costs the file",
    (element) => {
      expect(fault(queue(element))).toMatchObject({ kind: "valueMissing", pool: "root.a" });
    },
  );

  test.each(["<b>1</b>", "<b/>1", "<?pi?>1"])("a value that begins with %s costs the file", (inner) => {
    expect(fault(queue(`<maxRunningApps>${inner}</maxRunningApps>`)).kind).toBe("valueMissing");
  });

  test("blanks before an element are the value", () => {
    expect(fault(queue("<maxRunningApps> <b>1</b></maxRunningApps>"))).toMatchObject({
      kind: "badType",
      problem: 'For input string: ""',
    });
    expect(fault(queue("<maxResources> <b>1 mb, 0 vcores</b></maxResources>")).problem).toBe("Missing resource: mb");
  });

  test("of text and CDATA only the first counts", () => {
    expect(() => text("1<![CDATA[x]]>")).not.toThrow();
    expect(() => text("<![CDATA[1]]>x")).not.toThrow();
    expect(fault(queue("<maxRunningApps>\n<![CDATA[1]]></maxRunningApps>")).problem).toBe('For input string: ""');
  });

  test("everything up to U+0020 is trimmed, nothing else", () => {
    expect(() => text(" \t\n 1 \n")).not.toThrow();
    expect(fault(queue("<maxRunningApps>\u00a01</maxRunningApps>")).problem).toBe('For input string: "\u00a01"');
  });
});

describe("pool-configuration 1.3, 1.5: elements that are checked and not used", () => {
  test.each([
    ["userMaxAppsDefault", "2147483647", "2147483648"],
    ["queueMaxAppsDefault", "-1", "1.0"],
    ["defaultFairSharePreemptionTimeout", "9223372036854775807", "9223372036854775808"],
    ["defaultMinSharePreemptionTimeout", "+5", "5 s"],
    ["fairSharePreemptionTimeout", "0", "x"],
    ["defaultFairSharePreemptionThreshold", "0.5f", "0,5"],
    ["queueMaxAMShareDefault", "NaN", "nan"],
  ])("top level <%s>: %s loads, %s does not", (tag, good, bad) => {
    expect(() => allocation(`<${tag}>${good}</${tag}>`)).not.toThrow();
    expect(fault(`<${tag}>${bad}</${tag}>`)).toMatchObject({ kind: "badType", problem: `For input string: "${bad}"` });
  });

  test.each([
    ["maxRunningApps", "10", "ten"],
    ["maxAMShare", "0.5", "half"],
    ["weight", "2.0", "heavy"],
    ["weight", "1e3d", "1e3x"],
    ["minSharePreemptionTimeout", "60", "60s"],
    ["fairSharePreemptionTimeout", "60", ""],
    ["fairSharePreemptionThreshold", "-Infinity", "-infinity"],
  ])("in a queue <%s>: %s loads, %s does not", (tag, good, bad) => {
    expect(() => allocation(queue(`<${tag}>${good}</${tag}>`))).not.toThrow();
    expect(fault(queue(`<${tag}>${bad} </${tag}>`)).kind).toBe("badType");
  });

  test("a later fairSharePreemptionTimeout is not even looked at", () => {
    expect(() =>
      allocation(
        "<defaultFairSharePreemptionTimeout>1</defaultFairSharePreemptionTimeout><fairSharePreemptionTimeout>x</fairSharePreemptionTimeout>",
      ),
    ).not.toThrow();
  });

  test.each(["fifo", "FIFO", " FiFo "])("%s as default policy costs the file, in a queue it is fine", (text) => {
    const tag = "defaultQueueSchedulingPolicy";
    expect(fault(`<${tag}>${text}</${tag}>`).problem).toContain("can't be FIFO");
    expect(() => allocation(queue(`<schedulingPolicy>${text}</schedulingPolicy>`))).not.toThrow();
  });

  test("of a top-level <user> only maxRunningApps is looked at", () => {
    expect(() => allocation('<user name="x"><y>z</y><maxRunningApps>1</maxRunningApps></user>')).not.toThrow();
    expect(fault('<user name="x"><maxRunningApps>z</maxRunningApps></user>').kind).toBe("badType");
  });

  test("unknown elements: a warning at top level, silence inside a queue", () => {
    const file = allocation(`<Queue/><userMaxJobsDefault/>${queue("<label/><queuePlacementPolicy/>")}`);
    expect(file.warnings).toEqual([
      "Bad element in allocations file: Queue",
      "Bad element in allocations file: userMaxJobsDefault",
    ]);
  });

  test("top-level elements are checked before any queue, whatever their order", () => {
    expect(fault(`${queue("<weight>x</weight>")}<userMaxAppsDefault>y</userMaxAppsDefault>`).problem).toContain("y");
  });
});

describe("pool-configuration 1.4: names and nesting", () => {
  const pools = (body: string) => {
    const { leafPools, parentPools } = allocation(body).allocations;
    return { leaf: [...leafPools], parent: [...parentPools] };
  };

  test.each([
    ["top level goes below root", queue(""), { leaf: ["root.a"], parent: [] }],
    ["an explicit root is the root", queue(queue(""), "root"), { leaf: ["root.a"], parent: ["root"] }],
    ["nesting", queue(queue("", "b")), { leaf: ["root.a.b"], parent: ["root.a"] }],
    ["<pool> is a queue", '<pool name="a"><pool name="b"/></pool>', { leaf: ["root.a.b"], parent: ["root.a"] }],
    ["type parent", '<queue name="a" type="parent"/>', { leaf: [], parent: ["root.a"] }],
    ["another type is a leaf", '<queue name="a" type="Parent"/>', { leaf: ["root.a"], parent: [] }],
    ["trimmed, inner blanks stay", queue("", "\u00a0 a b \u2003"), { leaf: ["root.a b"], parent: [] }],
    ["Root keeps its spelling", queue(queue(""), "Root"), { leaf: ["Root.a"], parent: ["Root"] }],
    ["a root with blanks is none", queue("", " root "), { leaf: ["root.root"], parent: [] }],
    [
      "twice, once with a child",
      queue("") + queue(queue("", "b")),
      { leaf: ["root.a", "root.a.b"], parent: ["root.a"] },
    ],
  ])("%s", (_, body, expected) => {
    expect(pools(body)).toEqual(expected);
  });

  test.each(["queue", "ueue", "eue", "ue", "e", "pool"])("inside a queue <%s> is a child queue", (tag) => {
    expect(pools(queue(`<${tag} name="b"/>`)).leaf).toEqual(["root.a.b"]);
  });

  test.each(["ueue", "eue", "ue", "e", "Queue", "x:queue"])("at top level <%s> is not", (tag) => {
    expect(pools(`<${tag} name="b"/>`).leaf).toEqual([]);
  });

  test.each([
    ["root.a", "Bad fair scheduler config file: queue name (root.a) shouldn't contain period."],
    ["", "Bad fair scheduler config file: queue name shouldn't be empty or consist only of whitespace."],
    [" \u00a0", "Bad fair scheduler config file: queue name shouldn't be empty or consist only of whitespace."],
  ])("the name %j costs the file", (name, problem) => {
    expect(fault(queue("", name))).toMatchObject({ kind: "queueName", problem });
  });

  test("a missing name costs the file", () => {
    expect(fault("<queue/>").kind).toBe("queueName");
  });

  test.each(["root", "ROOT"])("%s stands alone", (root) => {
    const problem = "If configuring root queue, no other queues can be placed alongside it.";
    expect(fault(queue("", root) + queue("")).problem).toBe(problem);
    expect(fault(queue("") + queue("", root)).problem).toBe(problem);
    expect(fault(queue("", root) + queue("", root)).problem).toBe(problem);
  });

  test("one name twice: settings by the last that has them, the ACL as a whole, quotas together", () => {
    const first = queue(
      "<maxResources>5 mb, 0 vcores</maxResources><aclSubmitApps>u </aclSubmitApps><userQueryLimit><user>x</user><totalCount>1</totalCount></userQueryLimit>",
    );
    const second = queue("<userQueryLimit><user>y</user><totalCount>2</totalCount></userQueryLimit>");
    const d = directory({ allocation: allocation(first + second) });
    expect(d.configOf("root.a").maxMemResources).toBe(5 * 1024 * 1024);
    expect(d.ownAcl("root.a")).toBe(null);
    expect(d.configOf("root.a").userQueryLimits).toEqual(
      new Map([
        ["x", 1],
        ["y", 2],
      ]),
    );
  });
});

describe("pool-configuration 1.6: access lists", () => {
  test.each([
    ["*", true, [], []],
    ["* ", true, [], []],
    [" *", true, [], []],
    ["u1 *", true, [], []],
    [" ", false, [], []],
    ["alice,bob dev,ops", false, ["alice", "bob"], ["dev", "ops"]],
    ["alice,bob ", false, ["alice", "bob"], []],
    [" ops,admin", false, [], ["ops", "admin"]],
    ["ops,admin", false, ["ops", "admin"], []],
    ["alice, bob", false, ["alice"], ["bob"]],
    ["u1  g1,g2", false, ["u1"], ["g1", "g2"]],
    ["\n   alice,bob grp\n", false, [], ["alice", "bob grp"]],
    ["\tu1\tg1", false, ["u1\tg1"], []],
    ["u1,* g", false, ["u1", "*"], ["g"]],
    ["a,,b, ", false, ["a", "b"], []],
  ])("%j", (text, everybody, users, groups) => {
    expect(parseAcl(text)).toEqual({ everybody, users: new Set(users), groups: new Set(groups) });
  });

  test("an empty element costs the file and says what to write for nobody", () => {
    const error = fault(queue("<aclSubmitApps></aclSubmitApps>"));
    expect(error.kind).toBe("valueMissing");
    expect(error.remedy).toContain("<aclSubmitApps> </aclSubmitApps>");
  });
});

describe("pool-configuration 1.7: quotas", () => {
  const user = (inner: string) => `<userQueryLimit>${inner}</userQueryLimit>`;
  const group = (inner: string) => `<groupQueryLimit>${inner}</groupQueryLimit>`;
  const count = (n: string) => `<totalCount>${n}</totalCount>`;
  const quotas = (body: string) =>
    Object.fromEntries(directory({ allocation: allocation(queue(body)) }).configOf("root.a").userQueryLimits);

  test.each([
    ["one name", user(`<user>x</user>${count("3")}`), { x: 3 }],
    ["several names", user(`<user>x</user><user>y</user>${count("+3")}`), { x: 3, y: 3 }],
    ["names after the count", user(`<user>x</user>${count("3")}<user>y</user>`), { x: 3, y: 3 }],
    ["trimmed", user(`<user> x </user>${count(" 101 ")}`), { x: 101 }],
    ["an unknown tag after the name", user(`<user>x</user><note/>${count("3")}`), { x: 3 }],
    ["a blank name", user(`<user> </user>${count("3")}`), { "": 3 }],
    ["negative but -1", user(`<user>x</user>${count("-2")}`), { x: -2 }],
    ["two blocks", user(`<user>x</user>${count("0")}`) + user(`<user>*</user>${count("1")}`), { x: 0, "*": 1 }],
    ["-1 then a count", user(`<user>x</user>${count("-1")}${count("2")}`), { x: 2 }],
  ])("%s", (_, body, expected) => {
    expect(quotas(body)).toEqual(expected);
  });

  test.each([
    ["no count", user("<user>x</user>"), "No totalCount for userQueryLimit", "quotaMalformed"],
    ["empty block", user(""), "No totalCount for userQueryLimit", "quotaMalformed"],
    ["-1 counts as none", user(`<user>x</user>${count("-1")}`), "No totalCount for userQueryLimit", "quotaMalformed"],
    [
      "two counts",
      user(`<user>x</user>${count("1")}${count("1")}`),
      "Duplicate totalCount tags for userQueryLimit/totalCount",
      "quotaMalformed",
    ],
    [
      "no int32",
      user(`<user>x</user>${count("1.5")}`),
      "Could not parse query totalCount for userQueryLimit/totalCount",
      "quotaMalformed",
    ],
    ["the count first", user(`${count("1")}<user>x</user>`), "Empty user names for userQueryLimit", "quotaOrder"],
    [
      "another tag first",
      group(`<note/><group>x</group>${count("1")}`),
      "Empty user names for groupQueryLimit",
      "quotaOrder",
    ],
    [
      "a user in a group block",
      group(`<user>x</user>${count("1")}`),
      "Empty user names for groupQueryLimit",
      "quotaOrder",
    ],
    [
      "a name twice",
      user(`<user>x</user><user> x</user>${count("1")}`),
      "Duplicate value given for name x",
      "quotaMalformed",
    ],
    [
      "a name in two blocks, equal counts too",
      group(`<group>x</group>${count("1")}`).repeat(2),
      "Duplicate entry for group 'x' in pool 'root.a' has multiple values 1 and 1",
      "quotaMalformed",
    ],
  ])("%s costs the file", (_, body, problem, kind) => {
    expect(fault(queue(body))).toMatchObject({ problem, kind });
  });

  test("warnings when a leaf's limit is above root's, and for leaves without an ACL; only below a lone root", () => {
    const leaf = queue(user(`<user>x</user>${count("5")}`) + group(`<group>g</group>${count("5")}`));
    const root = queue(user(`<user>x</user>${count("4")}`) + group(`<group>g</group>${count("5")}`) + leaf, "root");
    expect(allocation(root).warnings).toEqual([
      "Potential misconfiguration in queue 'root.a': the user limit for 'x' of 5 is greater than the root limit 4 and so will have no effect",
      "Potential misconfiguration in queue 'root.a': no aclSubmitApps permissions were found, this will prevent query submission on this queue",
    ]);
    expect(allocation(leaf).warnings).toEqual([]);
    expect(allocation(queue(queue(queue(""), "p"), "root")).warnings).toEqual([]);
  });
});

describe("errors of the file as a whole", () => {
  test("a file that is not there", () => {
    const error = configError(() => readAllocationFile("/nowhere/fair-scheduler.xml"));
    expect(error).toMatchObject({ file: "/nowhere/fair-scheduler.xml", line: null });
    expect(error.message).toContain("there is no such file");
  });

  test("a folder instead of a file", () => {
    expect(configError(() => readAllocationFile(import.meta.dirname)).message).toContain("it is a folder");
  });

  test.each(["<Allocations/>", "<x:allocations xmlns:x='u'/>", "<configuration/>"])("%s is not the root", (text) => {
    const error = configError(() => parseAllocationFile(text, "f.xml"));
    expect(error.problem).toBe("Bad fair scheduler config file: top-level element not <allocations>");
    expect(error.line).toBe(1);
  });

  test("a default namespace does not matter, an empty root is a file", () => {
    expect(parseAllocationFile('<allocations xmlns="urn:x"/>', "f.xml").queues).toEqual([]);
  });

  test("the line of a fault deep in the file", () => {
    const text =
      '<allocations>\n <queue name="a">\n  <maxResources>\n   5 mb\n  </maxResources>\n </queue>\n</allocations>';
    const error = configError(() => parseAllocationFile(text, "f.xml"));
    expect(error).toBeInstanceOf(ConfigError);
    expect(error.message).toMatch(/^f\.xml:3:3: Missing resource: vcores\. Append/);
  });

  test("a file with twenty thousand queues is read whole", () => {
    const many = Array.from({ length: 20_000 }, (_, i) =>
      queue("<maxResources>1 mb, 0 vcores</maxResources>", `q${i}`),
    );
    expect(allocation(many.join("\n")).allocations.leafPools.size).toBe(20_000);
  });
});
