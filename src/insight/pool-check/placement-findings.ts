/**
 * P01, P02, P05 to P08: where requests land.
 */
import type { AllocationFile } from "../../config/allocation-file.ts";
import type { XmlElement } from "../../config/located-xml.ts";
import { nearestName } from "../../config/nearest-name.ts";
import type { PlacementRule } from "../../config/placement-policy.ts";
import { elementsOf } from "../../config/value-element.ts";
import { type CheckContext, isOpenToEverybody, type Rule } from "./check-context.ts";
import { type Finding, finding } from "./finding.ts";

const POLICY = "queuePlacementPolicy";

export const placementFindings: Rule = (context) => {
  const { allocation } = context;
  if (allocation === null) return [];
  const { rules, written } = allocation.allocations.placement;
  return [
    ...(written ? [] : [noPolicy(allocation)]),
    ...misplaced(allocation),
    ...(written ? rules.flatMap((rule) => creates(rule, allocation)) : []),
    ...rules.flatMap(withInner).flatMap((rule) => createText(rule, allocation)),
    ...rules.flatMap((rule) => defaultPool(rule, allocation)),
    ...noFallback(rules, context),
  ];
};

const withInner = (rule: PlacementRule): readonly PlacementRule[] =>
  rule.inner === null ? [rule] : [rule, ...withInner(rule.inner)];

const noPolicy = ({ file, root }: AllocationFile): Finding =>
  finding("P01", {
    at: { file, ...root.at },
    found: `no <${POLICY}>`,
    effect:
      "The rules are specified, then user, and both create: any name makes a pool without limits on memory and running queries, and a query that asks for none runs in root.<user>.",
    remedy: `Write a <${POLICY}> that ends in <rule name="reject"/> or in a declared default.`,
  });

function misplaced({ file, root, queues }: AllocationFile): readonly Finding[] {
  const atTop = elementsOf(root).filter((element) => element.name === POLICY);
  const inQueues = queues.flatMap((queue) =>
    elementsOf(queue.element)
      .filter((element) => element.name === POLICY)
      .map((element) => ({ element, pool: queue.pool })),
  );
  return [
    ...atTop.slice(0, -1).map((element) =>
      finding("P02", {
        at: { file, ...element.at },
        found: `a <${POLICY}>, and another in line ${atTop.at(-1)?.at.line ?? 0}`,
        effect: "Only the last one counts.",
        remedy: "Keep one.",
      }),
    ),
    ...inQueues.map(({ element, pool }) =>
      finding("P02", {
        at: { file, ...element.at },
        pool,
        found: `<${POLICY}> inside a queue`,
        effect: `It is never read.${atTop.length === 0 ? " The built-in rules hold, see P01." : ""}`,
        remedy: "Move it to the top level, after the queues.",
      }),
    ),
  ];
}

function creates(rule: PlacementRule, { file }: AllocationFile): readonly Finding[] {
  if (!rule.create || rule.name === "default" || rule.name === "reject" || rule.element === null) return [];
  return [
    finding("P05", {
      at: { file, ...rule.element.at },
      found: ruleText(rule.element),
      effect: "It creates: a name that nobody declared becomes a pool with built-in defaults, without limits.",
      remedy: 'Add create="false".',
    }),
  ];
}

function createText({ element }: PlacementRule, { file }: AllocationFile): readonly Finding[] {
  const create = element?.attributes.get("create");
  if (create === undefined || /^(true|false)$/i.test(create.value)) return [];
  return [
    finding("P06", {
      at: { file, ...create.at },
      found: `create="${create.value}"`,
      effect: "Everything but true counts as false.",
      remedy: 'Write create="true" or create="false".',
    }),
  ];
}

function defaultPool(rule: PlacementRule, allocation: AllocationFile): readonly Finding[] {
  if (rule.name !== "default" || rule.element === null || rule.pool === null) return [];
  const queue = rule.element.attributes.get("queue")?.value ?? "";
  const pools = [...allocation.allocations.leafPools, ...allocation.allocations.parentPools];
  const trimmed = queue.trim() !== queue;
  if (pools.includes(rule.pool) && !trimmed && queue !== "root") return [];
  const near = nearestName(rule.pool.trim(), pools);
  return [
    finding("P07", {
      at: { file: allocation.file, ...rule.element.at },
      pool: rule.pool,
      found: ruleText(rule.element),
      effect: `Queries land in ${JSON.stringify(rule.pool)}, which is ${pools.includes(rule.pool) ? "declared with that odd name" : "not declared"}: ${rule.create ? "built-in defaults, no limits" : 'with create="false" an internal error for the client'}.`,
      remedy:
        near === null ? `Declare ${rule.pool}, or name a declared pool.` : `Declare it, or write queue="${near}".`,
    }),
  ];
}

/** P08: a user without rights is refused and never moved on to the default. */
function noFallback(rules: readonly PlacementRule[], { allocation, pools }: CheckContext): readonly Finding[] {
  const specified = rules.findIndex((rule) => rule.name === "specified");
  const fallback = rules.find((rule, i) => rule.name === "default" && i > specified);
  if (allocation === null || specified < 0 || fallback?.element == null) return [];
  const closed = pools.filter((pool) => !isOpenToEverybody(pool.name, allocation.allocations));
  if (closed.length === 0) return [];
  return [
    finding("P08", {
      at: { file: allocation.file, ...fallback.element.at },
      found: `${ruleText(fallback.element)} after specified`,
      effect: `Who asks for ${closed.map((pool) => pool.name).join(", ")} without having the right is refused and does not move on to the default; only an unknown name does, silently, misspelt ones too.`,
      remedy: "Tell users, or end in reject.",
    }),
  ];
}

const ruleText = (element: XmlElement): string =>
  `<${element.name} ${[...element.attributes].map(([name, { value }]) => `${name}="${value}"`).join(" ")}/>`;
