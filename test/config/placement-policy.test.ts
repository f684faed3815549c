import { describe, expect, test } from "vitest";
import type { AllocationFault } from "../../src/config/allocation-fault.ts";
import { builtInPolicy, type PlacementQuestion, place } from "../../src/config/placement-policy.ts";
import { allocation, configError } from "./fixtures.ts";

const policy = (rules: string) =>
  allocation(`<queuePlacementPolicy>${rules}</queuePlacementPolicy>`).allocations.placement;
const END = '<rule name="reject"/>';

function placed(
  rules: string,
  question: Partial<PlacementQuestion> & { leaves?: string[]; parents?: string[] } = {},
): string {
  const { leaves = [], parents = [], ...rest } = question;
  const result = place(policy(rules), {
    requested: "",
    user: "ana",
    groups: ["staff", "dev", "ops"],
    isLeaf: (pool) => leaves.includes(pool),
    isDeclared: (pool) => leaves.includes(pool) || parents.includes(pool),
    ...rest,
  });
  return result.kind === "pool" ? result.pool : result.kind;
}

describe("pool-configuration 1.8: what each rule says", () => {
  test.each([
    ["specified, prefixed", `<rule name="specified"/>${END}`, { requested: "x" }, "root.x"],
    ["specified, already prefixed", `<rule name="specified"/>${END}`, { requested: "root.x" }, "root.x"],
    ["specified, root itself", `<rule name="specified"/>${END}`, { requested: "root" }, "root.root"],
    ["specified, nothing asked", `<rule name="specified"/>${END}`, { requested: "" }, "reject"],
    ["specified, default is nothing", `<rule name="specified"/>${END}`, { requested: "default" }, "reject"],
    [
      "specified, root.default is a name",
      `<rule name="specified"/>${END}`,
      { requested: "root.default" },
      "root.default",
    ],
    [
      "specified without create, undeclared",
      `<rule name="specified" create="false"/>${END}`,
      { requested: "x" },
      "reject",
    ],
    [
      "specified without create, a parent",
      `<rule name="specified" create="false"/>${END}`,
      { requested: "x", parents: ["root.x"] },
      "root.x",
    ],
    ["user", '<rule name="user"/>', {}, "root.ana"],
    ["user with dots and blanks", '<rule name="user"/>', { user: " a.b " }, "root.a_dot_b"],
    ["primaryGroup", '<rule name="primaryGroup"/>', {}, "root.staff"],
    ["primaryGroup without groups", '<rule name="primaryGroup"/>', { groups: null }, "noGroups"],
    [
      "secondaryGroup skips the first",
      `<rule name="secondaryGroupExistingQueue"/>${END}`,
      { leaves: ["root.staff", "root.ops"] },
      "root.ops",
    ],
    [
      "secondaryGroup finds parents",
      `<rule name="secondaryGroupExistingQueue"/>${END}`,
      { parents: ["root.dev"] },
      "root.dev",
    ],
    ["secondaryGroup, none declared", `<rule name="secondaryGroupExistingQueue"/>${END}`, {}, "reject"],
    ["default", '<rule name="default"/>', {}, "root.default"],
    ["default with a queue", '<rule name="default" queue="dev.eng"/>', {}, "root.dev.eng"],
    ["default with a prefixed queue", '<rule name="default" queue="root.dev"/>', {}, "root.dev"],
    ["default, root gives root.root", '<rule name="default" queue="root"/>', {}, "root.root"],
    ["default is not trimmed", '<rule name="default" queue=" dev"/>', {}, "root. dev"],
    ["default without create, undeclared", '<rule name="default" create="false"/>', {}, "exhausted"],
    ["reject", END, {}, "reject"],
    ["the tag does not matter", '<foo name="specified"/><bar name="reject"/>', { requested: "x" }, "root.x"],
  ])("%s", (_, rules, question, expected) => {
    expect(placed(rules, question)).toBe(expected);
  });

  test.each([
    ["of a group", '<rule name="primaryGroup"/>', {}, "root.staff.ana"],
    ["of a default", '<rule name="default" queue="users"/>', {}, "root.users.ana"],
    ["of a leaf: passes", '<rule name="default" queue="users"/>', { leaves: ["root.users"] }, "reject"],
    ["of a parent", '<rule name="default" queue="users"/>', { parents: ["root.users"] }, "root.users.ana"],
    ["of a rule that passes", '<rule name="specified"/>', {}, "reject"],
    ["the inner create counts", '<rule name="primaryGroup" create="false"/>', {}, "reject"],
    ["of a reject", '<rule name="reject"/>', {}, "reject"],
  ])("nestedUserQueue %s", (_, inner, question, expected) => {
    expect(placed(`<rule name="nestedUserQueue">${inner}</rule>${END}`, question)).toBe(expected);
  });

  test("nestedUserQueue: the first child called rule is the inner one", () => {
    const rules = `<rule name="nestedUserQueue"><x name="user"/><rule name="default" queue="u"/><rule name="reject"/></rule>${END}`;
    expect(placed(rules)).toBe("root.u.ana");
  });

  test("an inner reject is a reject, but passes when the outer rule may not create", () => {
    const rule = (create: string) =>
      `<rule name="nestedUserQueue" create="${create}"><rule name="reject"/></rule><rule name="default"/>`;
    expect(placed(rule("true"))).toBe("reject");
    expect(placed(rule("false"))).toBe("root.default");
  });

  test.each([
    ["true", true],
    ["TRUE", true],
    ["false", false],
    ["yes", false],
    ["", false],
    [" true", false],
  ])("create=%j is %s", (text, create) => {
    expect(policy(`<rule name="specified" create="${text}"/>${END}`).rules[0]?.create).toBe(create);
  });

  test("of several policies the last counts, one inside a queue never", () => {
    const file = allocation(
      `<queuePlacementPolicy><rule name="default"/></queuePlacementPolicy><queue name="a"><queuePlacementPolicy><rule name="x"/></queuePlacementPolicy></queue><queuePlacementPolicy>${END}</queuePlacementPolicy>`,
    );
    expect(file.allocations.placement.rules.map((r) => r.name)).toEqual(["reject"]);
  });
});

describe("pool-configuration 1.8: policies that cost the file", () => {
  test.each([
    ['<rule create="true"/>', "No name provided for a rule element", "ruleInvalid"],
    ['<rule name=""/>', "No name provided for a rule element", "ruleInvalid"],
    ['<rule name="Specified"/>', "No rule class found for Specified", "ruleInvalid"],
    [`<rule name="nestedUserQueue"/>${END}`, "No nested rule specified in <nestedUserQueue> rule", "ruleInvalid"],
    [`<rule name="default"/>${END}`, "Rules after rule 0 in queue placement policy can never be reached", "ruleOrder"],
    [
      `<rule name="specified"/><rule name="user"/>${END}`,
      "Rules after rule 1 in queue placement policy can never be reached",
      "ruleOrder",
    ],
    ['<rule name="specified"/>', "Could get past last queue placement rule without assigning", "ruleOrder"],
    ['<rule name="user" create="false"/>', "Could get past last queue placement rule without assigning", "ruleOrder"],
    ["", "<queuePlacementPolicy> has no rule, which ends in an IndexOutOfBoundsException", "ruleInvalid"],
  ])("%s", (rules, problem, kind) => {
    expect(configError(() => policy(rules)) as AllocationFault).toMatchObject({ problem, kind });
  });

  test("queues are read before the policy", () => {
    const error = configError(() => allocation('<queuePlacementPolicy/><queue name="x.y"/>'));
    expect(error.problem).toContain("shouldn't contain period");
  });
});

describe("pool-configuration 1.8: the built-in rules", () => {
  test.each([
    [true, true, "specified user"],
    [true, false, "specified default"],
    [false, true, "specified! user! default"],
    [false, false, "specified! default"],
  ])("undeclared pools %s, user as default %s: %s", (allowUndeclaredPools, userAsDefaultQueue, expected) => {
    const { rules } = builtInPolicy({ allowUndeclaredPools, userAsDefaultQueue });
    expect(rules.map((r) => r.name + (r.create ? "" : "!")).join(" ")).toBe(expected);
  });

  test("a file without a policy has them", () => {
    expect(allocation("").allocations.placement.written).toBe(false);
  });
});
