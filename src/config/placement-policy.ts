/**
 * From a requested pool, a user and the user's groups to a pool name (pool-configuration 1.8).
 *
 * Rules are tried in order and the first that does not pass decides. Most rules never say no: what refuses a
 * request is `reject`, or the access check that comes after placement.
 */
import { unreachable } from "../core/assert.ts";
import { ROOT_POOL } from "../core/pool-config.ts";
import { AllocationFault } from "./allocation-fault.ts";
import { javaTrim } from "./java-text.ts";
import type { Place, XmlElement } from "./located-xml.ts";
import { elementsOf } from "./value-element.ts";

export type RuleName =
  | "specified"
  | "user"
  | "primaryGroup"
  | "secondaryGroupExistingQueue"
  | "nestedUserQueue"
  | "default"
  | "reject";

const RULE_NAMES: readonly RuleName[] = [
  "specified",
  "user",
  "primaryGroup",
  "secondaryGroupExistingQueue",
  "nestedUserQueue",
  "default",
  "reject",
];

export interface PlacementRule {
  readonly name: RuleName;
  readonly create: boolean;
  /** Only of `default`: the pool with its prefix. */
  readonly pool: string | null;
  /** Only of `nestedUserQueue`. */
  readonly inner: PlacementRule | null;
  /** null for a built-in rule. */
  readonly element: XmlElement | null;
}

export interface PlacementPolicy {
  readonly rules: readonly PlacementRule[];
  /** false: the file has no `queuePlacementPolicy` at top level and the rules are built in. */
  readonly written: boolean;
}

/** The two Hadoop properties that choose the built-in rules. */
export interface BuiltInPlacement {
  readonly allowUndeclaredPools: boolean;
  readonly userAsDefaultQueue: boolean;
}

export const DEFAULT_PLACEMENT: BuiltInPlacement = { allowUndeclaredPools: true, userAsDefaultQueue: true };

export function builtInPolicy(settings: BuiltInPlacement): PlacementPolicy {
  const rule = (name: RuleName, create: boolean): PlacementRule => ({
    name,
    create,
    pool: name === "default" ? "root.default" : null,
    inner: null,
    element: null,
  });
  const create = settings.allowUndeclaredPools;
  const rules = [rule("specified", create)];
  if (settings.userAsDefaultQueue) rules.push(rule("user", create));
  if (!settings.userAsDefaultQueue || !create) rules.push(rule("default", true));
  return { rules, written: false };
}

// --- reading --------------------------------------------------------------------------------------------

export function readPlacementPolicy(policy: XmlElement, file: string): PlacementPolicy {
  const rules = elementsOf(policy).map((element) => readRule(element, file));
  const fault = (kind: "ruleOrder" | "ruleInvalid", place: Place, problem: string, remedy: string) =>
    new AllocationFault(kind, { file, place }, problem, remedy);
  const last = rules.at(-1);
  if (last === undefined)
    throw fault(
      "ruleInvalid",
      policy.at,
      "<queuePlacementPolicy> has no rule, which ends in an IndexOutOfBoundsException",
      'Write at least <rule name="default"/>, or delete the element.',
    );
  const early = rules.findIndex((rule, i) => i < rules.length - 1 && isTerminal(rule));
  if (early >= 0)
    throw fault(
      "ruleOrder",
      rules[early]?.element?.at ?? policy.at,
      `Rules after rule ${early} in queue placement policy can never be reached`,
      'Move the rule to the end, or give it create="false" if it has that.',
    );
  if (!isTerminal(last))
    throw fault(
      "ruleOrder",
      last.element?.at ?? policy.at,
      "Could get past last queue placement rule without assigning",
      'End with <rule name="default"/> or <rule name="reject"/>.',
    );
  return { rules, written: true };
}

function readRule(element: XmlElement, file: string): PlacementRule {
  const name = element.attributes.get("name")?.value ?? "";
  const at = { file, place: element.at };
  if (name === "")
    throw new AllocationFault(
      "ruleInvalid",
      at,
      "No name provided for a rule element",
      `Names are ${RULE_NAMES.join(", ")}.`,
    );
  const known = RULE_NAMES.find((n) => n === name);
  if (known === undefined)
    throw new AllocationFault(
      "ruleInvalid",
      at,
      `No rule class found for ${name}`,
      `Names are ${RULE_NAMES.join(", ")}; case counts.`,
    );
  return {
    name: known,
    create: createAttribute(element),
    pool: known === "default" ? defaultPool(element.attributes.get("queue")?.value ?? "") : null,
    inner: known === "nestedUserQueue" ? readInnerRule(element, file) : null,
    element,
  };
}

const createAttribute = (element: XmlElement): boolean => {
  const text = element.attributes.get("create")?.value;
  return text === undefined || text.toLowerCase() === "true";
};

const defaultPool = (queue: string): string => (queue === "" ? "root.default" : withRoot(queue));

function readInnerRule(element: XmlElement, file: string): PlacementRule {
  const inner = elementsOf(element).find((child) => child.name === "rule");
  if (inner !== undefined) return readRule(inner, file);
  throw new AllocationFault(
    "ruleInvalid",
    { file, place: element.at },
    "No nested rule specified in <nestedUserQueue> rule",
    'Put a rule inside, for instance <rule name="primaryGroup"/>.',
  );
}

function isTerminal(rule: PlacementRule): boolean {
  switch (rule.name) {
    case "default":
    case "reject":
      return true;
    case "user":
    case "primaryGroup":
      return rule.create;
    case "specified":
    case "secondaryGroupExistingQueue":
    case "nestedUserQueue":
      return false;
    default:
      return unreachable(rule.name);
  }
}

// --- applying -------------------------------------------------------------------------------------------

export type Placement =
  | { readonly kind: "pool"; readonly pool: string }
  | { readonly kind: "reject" }
  /** A rule needed groups and there were none. */
  | { readonly kind: "noGroups"; readonly known: boolean }
  /** Every rule passed. */
  | { readonly kind: "exhausted" };

export interface PlacementQuestion {
  /** As given; empty counts as `default`. */
  readonly requested: string;
  /** Short name. */
  readonly user: string;
  /** Ordered; null when nothing is known about the user. */
  readonly groups: readonly string[] | null;
  readonly isLeaf: (pool: string) => boolean;
  readonly isDeclared: (pool: string) => boolean;
}

export type RuleResult = Placement | { readonly kind: "pass" };

export function place(policy: PlacementPolicy, question: PlacementQuestion): Placement {
  for (const rule of policy.rules) {
    const result = apply(rule, question);
    if (result.kind !== "pass") return result;
  }
  return { kind: "exhausted" };
}

/** What each rule says, up to the one that decides: for those who explain a placement. */
export function placementSteps(
  policy: PlacementPolicy,
  question: PlacementQuestion,
): readonly { readonly rule: PlacementRule; readonly result: RuleResult }[] {
  const steps = policy.rules.map((rule) => ({ rule, result: apply(rule, question) }));
  const last = steps.findIndex(({ result }) => result.kind !== "pass");
  return last < 0 ? steps : steps.slice(0, last + 1);
}

function apply(rule: PlacementRule, question: PlacementQuestion): RuleResult {
  const result = beforeFilter(rule, question);
  if (result.kind === "reject") return rule.name === "reject" || rule.create ? result : { kind: "pass" };
  if (result.kind !== "pool") return result;
  return rule.create || question.isDeclared(result.pool) ? result : { kind: "pass" };
}

/** What the rule says before `create` has its word. */
function beforeFilter(rule: PlacementRule, question: PlacementQuestion): RuleResult {
  const { requested, user, groups } = question;
  switch (rule.name) {
    case "specified":
      return requested === "" || requested === "default" ? { kind: "pass" } : pool(withRoot(requested));
    case "user":
      return pool(`${ROOT_POOL}.${cleanName(user)}`);
    case "primaryGroup": {
      const first = groups?.[0];
      return first === undefined
        ? { kind: "noGroups", known: groups !== null }
        : pool(`${ROOT_POOL}.${cleanName(first)}`);
    }
    case "secondaryGroupExistingQueue": {
      if (groups === null) return { kind: "noGroups", known: false };
      const found = groups
        .slice(1)
        .map((g) => `${ROOT_POOL}.${cleanName(g)}`)
        .find(question.isDeclared);
      return found === undefined ? { kind: "pass" } : pool(found);
    }
    case "nestedUserQueue": {
      const parent = rule.inner === null ? { kind: "pass" as const } : apply(rule.inner, question);
      if (parent.kind !== "pool") return parent;
      const name = withRoot(parent.pool);
      return question.isLeaf(name) ? { kind: "pass" } : pool(`${name}.${cleanName(user)}`);
    }
    case "default":
      return pool(rule.pool ?? "root.default");
    case "reject":
      return { kind: "reject" };
    default:
      return unreachable(rule.name);
  }
}

const pool = (name: string): RuleResult => ({ kind: "pool", pool: name });

export const withRoot = (name: string): string => (name.startsWith(`${ROOT_POOL}.`) ? name : `${ROOT_POOL}.${name}`);

export const cleanName = (name: string): string => javaTrim(name).replaceAll(".", "_dot_");
