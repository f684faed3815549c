/**
 * fair-scheduler.xml as Impala loads it (pool-configuration 1): all of it or nothing.
 *
 * Two layers in one result: what was seen (`root`, `queues`: every element with its place, also those the product
 * skips) and what Impala makes of it (`allocations`, `warnings`). The order of the checks is behaviour, because
 * only the first fault is reported: XML, root, top-level elements, queues depth first, placement policy.
 */
import { readFileSync } from "node:fs";
import { ROOT_POOL } from "../core/pool-config.ts";
import { type Acl, isNobody, parseAcl } from "./acl.ts";
import { AllocationFault } from "./allocation-fault.ts";
import { ConfigError, fileMissing } from "./config-error.ts";
import { isJavaFloat, javaTrim, numberFormatMessage, parseInt32, parseInt64, trimWhiteSpace } from "./java-text.ts";
import { type Place, parseLocatedXml, type XmlElement } from "./located-xml.ts";
import {
  type BuiltInPlacement,
  builtInPolicy,
  DEFAULT_PLACEMENT,
  type PlacementPolicy,
  readPlacementPolicy,
} from "./placement-policy.ts";
import { type QuotaTag, readQuotaBlock } from "./quota-element.ts";
import { type ResourceValue, readResourceValue, resourceError, resourceText, UNLIMITED_MB } from "./resource-value.ts";
import { elementsOf, rawValueOf, trimmedValueOf } from "./value-element.ts";

export interface AllocationFile {
  readonly file: string;
  readonly root: XmlElement;
  /** Every queue element in document order, parents before children. */
  readonly queues: readonly QueueElement[];
  readonly allocations: Allocations;
  /** Log lines of a successful load, word for word (1.5.2, 1.7, 1.3). */
  readonly warnings: readonly string[];
}

export interface QueueElement {
  /** Full pool name. */
  readonly pool: string;
  readonly element: XmlElement;
  readonly parent: QueueElement | null;
  readonly hasChildren: boolean;
}

export interface Located<T> {
  readonly value: T;
  /** As written. */
  readonly text: string;
  readonly at: Place;
}

export type LocatedQuotas = ReadonlyMap<string, Located<number>>;

/** What the placement rules, the access checks and the pool records are made of. */
export interface Allocations {
  readonly leafPools: ReadonlySet<string>;
  readonly parentPools: ReadonlySet<string>;
  readonly maxResources: ReadonlyMap<string, Located<ResourceValue>>;
  readonly minResources: ReadonlyMap<string, Located<ResourceValue>>;
  readonly defaultMaxResources: Located<ResourceValue> | null;
  /** One entry for each declared pool; null when its last element has no `aclSubmitApps`. */
  readonly submitAcls: ReadonlyMap<string, Located<Acl> | null>;
  readonly userQuotas: ReadonlyMap<string, LocatedQuotas>;
  readonly groupQuotas: ReadonlyMap<string, LocatedQuotas>;
  readonly onlyCoordinators: ReadonlyMap<string, Located<boolean>>;
  readonly placement: PlacementPolicy;
}

/** Throws ConfigError when the file cannot be read, AllocationFault when Impala would not load it. */
export function readAllocationFile(path: string, placement: BuiltInPlacement = DEFAULT_PLACEMENT): AllocationFile {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    throw fileMissing(path, "allocation file", cause);
  }
  return parseAllocationFile(bytes, path, placement);
}

export function parseAllocationFile(
  source: Uint8Array | string,
  file: string,
  placement: BuiltInPlacement = DEFAULT_PLACEMENT,
): AllocationFile {
  const root = parsedRoot(typeof source === "string" ? new TextEncoder().encode(source) : source, file);
  if (root.name !== "allocations")
    throw new AllocationFault(
      "notLoadable",
      { file, place: root.at },
      "Bad fair scheduler config file: top-level element not <allocations>",
      `Name the root element allocations instead of ${root.name}; case counts, and so does a prefix.`,
    );
  const loader = new Loader(file);
  const policy = loader.topLevel(root);
  loader.queues(root);
  const rules = policy === null ? builtInPolicy(placement) : readPlacementPolicy(policy, file);
  return loader.result(root, rules);
}

function parsedRoot(bytes: Uint8Array, file: string): XmlElement {
  try {
    return parseLocatedXml(bytes, file, "xerces").root;
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause;
    const place = { line: cause.line ?? 1, column: cause.column ?? 1 };
    throw new AllocationFault("notLoadable", { file, place }, cause.problem, cause.remedy, { cause });
  }
}

/** Type of a text that is checked and then not used (1.3, 1.5); null for any text. */
type UnusedType = "int32" | "int64" | "float" | "text";

const UNUSED_AT_TOP: ReadonlyMap<string, UnusedType> = new Map([
  ["userMaxAppsDefault", "int32"],
  ["queueMaxAppsDefault", "int32"],
  ["defaultFairSharePreemptionTimeout", "int64"],
  ["fairSharePreemptionTimeout", "int64"],
  ["defaultMinSharePreemptionTimeout", "int64"],
  ["defaultFairSharePreemptionThreshold", "float"],
  ["queueMaxAMShareDefault", "float"],
]);

const UNUSED_IN_QUEUE: ReadonlyMap<string, UnusedType> = new Map([
  ["maxRunningApps", "int32"],
  ["maxAMShare", "float"],
  ["weight", "float"],
  ["minSharePreemptionTimeout", "int64"],
  ["fairSharePreemptionTimeout", "int64"],
  ["fairSharePreemptionThreshold", "float"],
  ["schedulingPolicy", "text"],
  ["schedulingMode", "text"],
  ["aclAdministerApps", "text"],
  ["allowPreemptionFrom", "text"],
]);

/** Elements that Impala reads, and what it does with them: for those who explain a file. */
export const TOP_LEVEL_ELEMENTS: readonly string[] = [
  "queue",
  "pool",
  "queuePlacementPolicy",
  "queueMaxResourcesDefault",
  "user",
  "defaultQueueSchedulingPolicy",
  "defaultQueueSchedulingMode",
  ...UNUSED_AT_TOP.keys(),
];
export const QUEUE_ELEMENTS: readonly string[] = [
  "queue",
  "pool",
  "maxResources",
  "minResources",
  "maxChildResources",
  "aclSubmitApps",
  "userQueryLimit",
  "groupQueryLimit",
  "onlyCoordinators",
  ...UNUSED_IN_QUEUE.keys(),
];
/** Elements that are checked and then ignored. */
export const UNUSED_ELEMENTS: ReadonlySet<string> = new Set([
  ...UNUSED_AT_TOP.keys(),
  ...UNUSED_IN_QUEUE.keys(),
  "maxChildResources",
  "defaultQueueSchedulingPolicy",
  "defaultQueueSchedulingMode",
]);

/** Inside a queue every suffix of the word counts, an accident of the product (1.4). */
export const isChildQueue = (name: string): boolean => "queue".endsWith(name) || name === "pool";
const isTopQueue = (name: string): boolean => name === "queue" || name === "pool";

class Loader {
  readonly #file: string;
  readonly #queues: QueueElement[] = [];
  readonly #warnings: string[] = [];
  readonly #leafPools = new Set<string>();
  readonly #parentPools = new Set<string>();
  readonly #maxResources = new Map<string, Located<ResourceValue>>();
  readonly #minResources = new Map<string, Located<ResourceValue>>();
  #defaultMaxResources: Located<ResourceValue> | null = null;
  readonly #submitAcls = new Map<string, Located<Acl> | null>();
  readonly #quotas = {
    user: new Map<string, Map<string, Located<number>>>(),
    group: new Map<string, Map<string, Located<number>>>(),
  };
  readonly #onlyCoordinators = new Map<string, Located<boolean>>();

  constructor(file: string) {
    this.#file = file;
  }

  /** Everything directly in the root but the bodies of the queues; returns the placement policy that counts. */
  topLevel(root: XmlElement): XmlElement | null {
    let policy: XmlElement | null = null;
    let fairShareTimeoutSeen = false;
    for (const element of elementsOf(root)) {
      const { name } = element;
      if (isTopQueue(name)) continue;
      const unused = UNUSED_AT_TOP.get(name);
      if (name === "queuePlacementPolicy") policy = element;
      else if (name === "queueMaxResourcesDefault") this.#defaultMaxResources = this.#resource(element, null);
      else if (name === "user") this.#userElement(element);
      else if (name === "defaultQueueSchedulingPolicy" || name === "defaultQueueSchedulingMode")
        this.#defaultScheduling(element);
      else if (name === "fairSharePreemptionTimeout" && fairShareTimeoutSeen) continue;
      else if (unused !== undefined) this.#checkUnused(element, unused, null);
      else this.#warnings.push(`Bad element in allocations file: ${name}`);
      if (name === "fairSharePreemptionTimeout" || name === "defaultFairSharePreemptionTimeout")
        fairShareTimeoutSeen = true;
    }
    return policy;
  }

  queues(root: XmlElement): void {
    const queues = elementsOf(root).filter((element) => isTopQueue(element.name));
    for (const queue of queues) {
      const isRoot = nameAttribute(queue).toLowerCase() === ROOT_POOL;
      if (isRoot && queues.length > 1)
        throw this.#fault(
          "queueName",
          queue.at,
          "If configuring root queue, no other queues can be placed alongside it.",
          "Move the other queues into the root queue.",
        );
      this.#queue(queue, null, isRoot ? "" : `${ROOT_POOL}.`);
    }
  }

  result(root: XmlElement, placement: PlacementPolicy): AllocationFile {
    const allocations: Allocations = {
      leafPools: this.#leafPools,
      parentPools: this.#parentPools,
      maxResources: this.#maxResources,
      minResources: this.#minResources,
      defaultMaxResources: this.#defaultMaxResources,
      submitAcls: this.#submitAcls,
      userQuotas: this.#quotas.user,
      groupQuotas: this.#quotas.group,
      onlyCoordinators: this.#onlyCoordinators,
      placement,
    };
    const warnings = [...this.#warnings, ...misconfigurations(allocations)];
    return { file: this.#file, root, queues: this.#queues, allocations, warnings };
  }

  #queue(element: XmlElement, parent: QueueElement | null, prefix: string): void {
    const pool = prefix + this.#queueName(element);
    const children = elementsOf(element);
    const hasChildren = children.some((child) => isChildQueue(child.name));
    const queue: QueueElement = { pool, element, parent, hasChildren };
    this.#queues.push(queue);
    let acl: Located<Acl> | null = null;
    for (const child of children) {
      if (isChildQueue(child.name)) this.#queue(child, queue, `${pool}.`);
      else acl = this.#setting(child, pool) ?? acl;
    }
    const isParent = hasChildren || element.attributes.get("type")?.value === "parent";
    (isParent ? this.#parentPools : this.#leafPools).add(pool);
    // As a whole: an element without an access list wipes the list of an earlier element of this name (1.4).
    this.#submitAcls.set(pool, acl);
    this.#warnAboutMinimum(pool);
  }

  #queueName(element: XmlElement): string {
    const name = trimWhiteSpace(nameAttribute(element));
    if (name.includes("."))
      throw this.#fault(
        "queueName",
        element.at,
        `Bad fair scheduler config file: queue name (${name}) shouldn't contain period.`,
        "Put the queue inside its parent's element and write only its own name.",
      );
    if (name === "")
      throw this.#fault(
        "queueName",
        element.at,
        "Bad fair scheduler config file: queue name shouldn't be empty or consist only of whitespace.",
        'Give the queue a name: <queue name="...">.',
      );
    return name;
  }

  /** One child of a queue; returns its access list if it is one. What is not known is skipped in silence. */
  #setting(child: XmlElement, pool: string): Located<Acl> | null {
    const unused = UNUSED_IN_QUEUE.get(child.name);
    if (child.name === "maxResources") this.#maxResources.set(pool, this.#resource(child, pool));
    else if (child.name === "minResources") this.#minResources.set(pool, this.#resource(child, pool));
    else if (child.name === "maxChildResources") this.#resource(child, pool);
    else if (child.name === "userQueryLimit") this.#addQuotas(child, "user", pool);
    else if (child.name === "groupQueryLimit") this.#addQuotas(child, "group", pool);
    else if (child.name === "onlyCoordinators") {
      const text = trimmedValueOf(child, this.#file, pool);
      this.#onlyCoordinators.set(pool, { value: text.toLowerCase() === "true", text, at: child.at });
    } else if (child.name === "aclSubmitApps") {
      const text = rawValueOf(child, this.#file, pool);
      return { value: parseAcl(text), text, at: child.at };
    } else if (unused !== undefined) this.#checkUnused(child, unused, pool);
    return null;
  }

  #resource(element: XmlElement, pool: string | null): Located<ResourceValue> {
    const text = trimmedValueOf(element, this.#file, pool);
    const reading = readResourceValue(text);
    if (reading.kind === "value") return { value: reading.value, text, at: element.at };
    const kind = reading.kind === "missing" && reading.what === "vcores" ? "noVcores" : "noMemory";
    const remedy =
      reading.kind === "tooLarge"
        ? `At most ${UNLIMITED_MB}, which means unlimited.`
        : reading.what === "mb"
          ? `Write whole MiB and vcores, for instance <${element.name}>20480 mb, 0 vcores</${element.name}>; "${text}" has no number followed by mb.`
          : `Append ", 0 vcores": <${element.name}>${text}, 0 vcores</${element.name}>.`;
    throw this.#fault(kind, element.at, resourceError(reading), remedy, pool);
  }

  #addQuotas(element: XmlElement, tag: QuotaTag, pool: string): void {
    const quotas = this.#quotas[tag].get(pool) ?? new Map<string, Located<number>>();
    this.#quotas[tag].set(pool, quotas);
    const block = readQuotaBlock(element, tag, this.#file, pool);
    for (const { name, at } of block.names) {
      const old = quotas.get(name);
      if (old !== undefined)
        throw this.#fault(
          "quotaMalformed",
          at,
          `Duplicate entry for ${tag} '${name}' in pool '${pool}' has multiple values ${old.value} and ${block.limit}`,
          `Keep one of the two limits; the other is in line ${old.at.line}.`,
          pool,
        );
      quotas.set(name, { value: block.limit, text: String(block.limit), at });
    }
  }

  #userElement(element: XmlElement): void {
    for (const child of elementsOf(element))
      if (child.name === "maxRunningApps") this.#checkUnused(child, "int32", null);
  }

  #defaultScheduling(element: XmlElement): void {
    const text = trimmedValueOf(element, this.#file, null);
    if (text.toLowerCase() === "fifo")
      throw this.#fault(
        "badType",
        element.at,
        "Bad fair scheduler config file: defaultQueueSchedulingPolicy or defaultQueueSchedulingMode can't be FIFO.",
        "Write fair, or delete the element: Impala does not use it.",
      );
  }

  #checkUnused(element: XmlElement, type: UnusedType, pool: string | null): void {
    const text =
      type === "text" ? javaTrim(rawValueOf(element, this.#file, pool)) : trimmedValueOf(element, this.#file, pool);
    const fits =
      type === "text" ||
      (type === "int32" && parseInt32(text) !== null) ||
      (type === "int64" && parseInt64(text) !== null) ||
      (type === "float" && isJavaFloat(text));
    if (fits) return;
    const what = type === "float" ? "a decimal number" : "a whole number without unit";
    throw this.#fault(
      "badType",
      element.at,
      type === "float" && text === "" ? "empty String" : numberFormatMessage(text),
      `<${element.name}> must be ${what}; Impala does not use it otherwise, so it can also be deleted.`,
      pool,
    );
  }

  #warnAboutMinimum(pool: string): void {
    const max = this.#maxResources.get(pool)?.value;
    const min = this.#minResources.get(pool)?.value;
    if (max === undefined || min === undefined) return;
    if (min.memoryMb <= max.memoryMb && min.vcores <= max.vcores) return;
    this.#warnings.push(
      `Queue ${pool} has max resources ${resourceText(max)} less than min resources ${resourceText(min)}`,
    );
  }

  #fault(
    kind: AllocationFault["kind"],
    place: Place,
    problem: string,
    remedy: string,
    pool: string | null = null,
  ): AllocationFault {
    return new AllocationFault(kind, { file: this.#file, place, pool }, problem, remedy);
  }
}

const nameAttribute = (element: XmlElement): string => element.attributes.get("name")?.value ?? "";

/** Warned about only when the parents are exactly `root` (1.7); the product's order over pools is a hash's. */
function misconfigurations(a: Allocations): readonly string[] {
  if (a.parentPools.size !== 1 || !a.parentPools.has(ROOT_POOL)) return [];
  // By prefix, not by ancestry: what the product compares is the beginning of the name.
  const leaves = [...a.leafPools].filter((leaf) => leaf.startsWith(ROOT_POOL));
  return leaves.flatMap((leaf) => [
    ...quotaWarnings("user", leaf, a.userQuotas),
    ...quotaWarnings("group", leaf, a.groupQuotas),
    ...aclWarnings(leaf, a.submitAcls.get(leaf)?.value),
  ]);
}

function quotaWarnings(tag: QuotaTag, leaf: string, quotas: ReadonlyMap<string, LocatedQuotas>): readonly string[] {
  const atRoot = quotas.get(ROOT_POOL);
  if (atRoot === undefined) return [];
  return [...(quotas.get(leaf) ?? [])].flatMap(([name, { value }]) => {
    const above = atRoot.get(name)?.value;
    return above === undefined || value <= above
      ? []
      : [
          `Potential misconfiguration in queue '${leaf}': the ${tag} limit for '${name}' of ${value} is greater than the root limit ${above} and so will have no effect`,
        ];
  });
}

const aclWarnings = (leaf: string, acl: Acl | undefined): readonly string[] =>
  acl !== undefined && !isNobody(acl)
    ? []
    : [
        `Potential misconfiguration in queue '${leaf}': no aclSubmitApps permissions were found, this will prevent query submission on this queue`,
      ];
