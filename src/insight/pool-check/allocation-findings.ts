/**
 * F04 to F11: elements that are not what they look like.
 */
import {
  isChildQueue,
  QUEUE_ELEMENTS,
  type QueueElement,
  TOP_LEVEL_ELEMENTS,
  UNUSED_ELEMENTS,
} from "../../config/allocation-file.ts";
import type { XmlElement } from "../../config/located-xml.ts";
import { nearestName } from "../../config/nearest-name.ts";
import { SITE_KEYS } from "../../config/pool-record.ts";
import { elementsOf } from "../../config/value-element.ts";
import { ROOT_POOL } from "../../core/pool-config.ts";
import type { CheckContext, Rule } from "./check-context.ts";
import { type Finding, finding } from "./finding.ts";

export const allocationFindings: Rule = (context) => {
  const { allocation } = context;
  if (allocation === null) return [];
  const { file, root, queues } = allocation;
  return [
    ...elementsOf(root).flatMap((element) => topLevel(element, file)),
    ...queues.flatMap((queue) => inQueue(queue, context)),
    ...queues.flatMap((queue) => rootVariant(queue, file)),
    ...queuesTwice(queues, file),
    ...limitsNotInherited(context),
  ];
};

/** They have findings of their own: Q03, P02. */
const ELSEWHERE = new Set(["userQueryLimit", "groupQueryLimit", "queuePlacementPolicy"]);

function topLevel(element: XmlElement, file: string): readonly Finding[] {
  if (ELSEWHERE.has(element.name)) return [];
  if (UNUSED_ELEMENTS.has(element.name)) return [noEffect(element, file, null)];
  if (TOP_LEVEL_ELEMENTS.includes(element.name)) return [];
  const effect = "Ignored, with one line in the log while loading.";
  return [unknown(element, file, null, TOP_LEVEL_ELEMENTS, QUEUE_ELEMENTS, "inside a queue", effect)];
}

function inQueue(queue: QueueElement, { allocation, site }: CheckContext): readonly Finding[] {
  const file = allocation?.file ?? "";
  return elementsOf(queue.element).flatMap((element) => {
    const { name } = element;
    if (ELSEWHERE.has(name)) return [];
    if (name === "maxRunningApps") {
      const key = `${SITE_KEYS.maxRequests}.${queue.pool}`;
      return site?.effective.has(key) ? [] : [maxRunningApps(element, file, queue.pool, key)];
    }
    if (isChildQueue(name)) return name === "queue" || name === "pool" ? [] : [queueSuffix(element, file, queue.pool)];
    if (UNUSED_ELEMENTS.has(name)) return [noEffect(element, file, queue.pool)];
    if (QUEUE_ELEMENTS.includes(name)) return [];
    const effect = "Ignored in silence: inside a queue not even the log says so.";
    return [unknown(element, file, queue.pool, QUEUE_ELEMENTS, TOP_LEVEL_ELEMENTS, "at the top level", effect)];
  });
}

function unknown(
  element: XmlElement,
  file: string,
  pool: string | null,
  here: readonly string[],
  there: readonly string[],
  where: string,
  effect: string,
): Finding {
  const bare = element.name.slice(element.name.indexOf(":") + 1);
  const near = nearestName(bare, here);
  const remedy =
    bare !== element.name && here.includes(bare)
      ? `Write <${bare}> without a prefix: names are compared with it.`
      : there.includes(element.name)
        ? `It belongs ${where}.`
        : near === null
          ? "Delete it, or look up its name."
          : `Do you mean <${near}>? Case counts.`;
  return finding("F04", { at: { file, ...element.at }, pool, found: `<${element.name}>`, effect, remedy });
}

const noEffect = (element: XmlElement, file: string, pool: string | null): Finding =>
  finding("F05", {
    at: { file, ...element.at },
    pool,
    found: `<${element.name}>`,
    effect: "Impala checks its type and never uses it.",
    remedy: "Keep it if YARN reads the file too, else delete it.",
  });

const maxRunningApps = (element: XmlElement, file: string, pool: string, key: string): Finding =>
  finding("F06", {
    at: { file, ...element.at },
    pool,
    found: "<maxRunningApps>",
    effect: "It does not limit the running queries of Impala.",
    remedy: `Set ${key} in the site file.`,
  });

const queueSuffix = (element: XmlElement, file: string, pool: string): Finding =>
  finding("F10", {
    at: { file, ...element.at },
    pool,
    found: `<${element.name}>`,
    effect: "Every ending of the word queue counts as a queue inside a queue, so this declares a pool.",
    remedy: "Write <queue>.",
  });

function rootVariant(queue: QueueElement, file: string): readonly Finding[] {
  const name = queue.element.attributes.get("name")?.value ?? "";
  if (queue.parent !== null || name === ROOT_POOL || name.trim().toLowerCase() !== ROOT_POOL) return [];
  const exact = name.toLowerCase() === ROOT_POOL;
  return [
    finding("F08", {
      at: { file, ...queue.element.at },
      pool: queue.pool,
      found: `name="${name}"`,
      effect: exact
        ? `It is taken for the root, but its pools are called ${name}.x, which no request reaches; the real root stays undeclared and open to everybody.`
        : "It is an ordinary pool below the root, called root.root.",
      remedy: 'Write name="root".',
    }),
  ];
}

function queuesTwice(queues: readonly QueueElement[], file: string): readonly Finding[] {
  const first = new Map<string, QueueElement>();
  return queues.flatMap((queue) => {
    const before = first.get(queue.pool);
    if (before === undefined) {
      first.set(queue.pool, queue);
      return [];
    }
    return [
      finding("F09", {
        at: { file, ...queue.element.at },
        pool: queue.pool,
        found: `${queue.pool} also stands in line ${before.element.at.line}`,
        effect:
          "Later settings win one by one, quotas are merged, but the later access list replaces the earlier one whole, even when it is not written.",
        remedy: "Put both into one element.",
      }),
    ];
  });
}

function limitsNotInherited({ allocation }: CheckContext): readonly Finding[] {
  if (allocation === null) return [];
  const { maxResources } = allocation.allocations;
  return [...maxResources].flatMap(([pool, limit]) => {
    if (pool === ROOT_POOL) return [];
    const without = [...new Set(allocation.queues.map((q) => q.pool))].filter(
      (below) => below.startsWith(`${pool}.`) && !maxResources.has(below),
    );
    if (without.length === 0) return [];
    return [
      finding("F11", {
        at: { file: allocation.file, ...limit.at },
        pool,
        found: `maxResources here, none for ${without.join(", ")}`,
        effect:
          "Pools below do not inherit it and often have no limit at all; here it binds only queries run in this pool itself, not the sum of the pools below.",
        remedy: "Repeat maxResources in each pool below.",
      }),
    ];
  });
}
