/**
 * S02 to S09: keys and values of the site file, and the two files side by side.
 */
import type { Allocations } from "../../config/allocation-file.ts";
import type { SourcePlace } from "../../config/config-error.ts";
import { nearestName } from "../../config/nearest-name.ts";
import type { PlacementRule } from "../../config/placement-policy.ts";
import { withAncestors } from "../../config/pool-directory.ts";
import { SITE_KEYS, type SiteField } from "../../config/pool-record.ts";
import { isQueryOption, type OptionChange, parseOptionString, queryOptionNames } from "../../config/query-options.ts";
import { type SiteFile, type SiteProperty, siteBoolean, siteInt64, siteText } from "../../config/site-file.ts";
import { ROOT_POOL } from "../../core/pool-config.ts";
import type { CheckContext, Rule } from "./check-context.ts";
import { type Finding, finding } from "./finding.ts";

export const siteFindings: Rule = (context) => {
  const { site } = context;
  const keys = site === null ? [] : knownKeys(site);
  return [
    ...keys.flatMap((key) => [
      ...badNumber(key, context),
      ...dropped(key, context),
      ...suffix(key, context),
      ...notInherited(key, context),
      ...options(key, context),
    ]),
    ...(site === null ? [] : unknownKeys(site)),
    ...alone(context),
  ];
};

/** One of the ten keys as it stands in the file. */
interface KnownKey {
  readonly field: SiteField;
  readonly property: SiteProperty;
  /** What follows the key; null for all pools. */
  readonly pool: string | null;
}

const FIELDS = Object.keys(SITE_KEYS) as SiteField[];

/** Those that count, and those that are absent because their value is empty. */
function knownKeys(site: SiteFile): readonly KnownKey[] {
  return site.properties
    .filter((property) => property.lostTo === null)
    .flatMap((property) => {
      const field = FIELDS.find((f) => property.key === SITE_KEYS[f] || property.key.startsWith(`${SITE_KEYS[f]}.`));
      if (field === undefined) return [];
      const pool = property.key === SITE_KEYS[field] ? null : property.key.slice(SITE_KEYS[field].length + 1);
      return [{ field, property, pool }];
    });
}

const keyPlace = ({ file, keyAt }: SiteProperty): SourcePlace => ({ file, ...keyAt });
const valuePlace = ({ file, valueAt }: SiteProperty): SourcePlace => ({ file, ...valueAt });
const keyText = (property: SiteProperty): string =>
  property.value === null ? property.key : `${property.key} = ${property.value}`;

function badNumber({ field, property, pool }: KnownKey, { site, input }: CheckContext): readonly Finding[] {
  if (site === null || field === "defaultQueryOptions" || field === "clampMemLimitQueryOption") return [];
  const value = siteInt64(site, property.key, input.around);
  if (value === null || typeof value === "bigint") return [];
  const everywhere = pool === null || pool === ROOT_POOL;
  return [
    finding("S02", {
      at: valuePlace(property),
      pool,
      found: keyText(property),
      effect: `Every query ${everywhere ? "of every pool" : "of the pool"} fails: NumberFormatException: ${value.message}.`,
      remedy: `Write a plain whole number ${unitOf(field)}, without unit, separator or point.`,
    }),
  ];
}

const unitOf = (field: SiteField): string =>
  field === "queueTimeout" ? "of milliseconds" : field.endsWith("MemLimit") ? "of bytes" : "";

/** S03: as if the property were not there. */
function dropped({ field, property, pool }: KnownKey, { site, input }: CheckContext): readonly Finding[] {
  if (site === null) return [];
  const isSwitch = field === "clampMemLimitQueryOption";
  const empty = property.value === null;
  if (!empty && !(isSwitch && siteBoolean(site, property.key, input.around) === null)) return [];
  return [
    finding("S03", {
      at: valuePlace(property),
      pool,
      found: empty ? `${property.key} without a value` : keyText(property),
      effect: `As if it were not there: ${pool === null ? "the built-in default applies" : "the key without pool name applies, else the built-in default"}.`,
      remedy: isSwitch ? "Write true or false." : "Write the value, or delete the property.",
    }),
  ];
}

/** S04, S05: a suffix that is the name of no pool. */
function suffix({ property, pool }: KnownKey, { allocation }: CheckContext): readonly Finding[] {
  if (pool === null || pool === ROOT_POOL) return [];
  if (!pool.startsWith(`${ROOT_POOL}.`))
    return [
      finding("S04", {
        at: keyPlace(property),
        found: property.key,
        effect: `It is for a pool called ${JSON.stringify(pool)}, and pool names begin with root.; nothing uses it.`,
        remedy: `Write ${property.key.slice(0, -pool.length)}${ROOT_POOL}.${pool}.`,
      }),
    ];
  if (allocation === null) return [];
  const { leafPools, parentPools, placement } = allocation.allocations;
  const declared = [...leafPools, ...parentPools];
  if (declared.includes(pool)) return [];
  const near = nearestName(pool, declared);
  const canExist = placement.rules.some((rule) => mayCreate(rule, pool));
  return [
    finding("S05", {
      at: keyPlace(property),
      pool,
      found: property.key,
      effect: `${pool} is not declared: the key is used only for exactly that name${canExist ? ", which a placement rule can create" : ", and no placement rule leads there"}.`,
      remedy: near === null ? `Declare ${pool}, or delete the key.` : `Do you mean ${near}?`,
      severity: canExist ? "hint" : "warning",
    }),
  ];
}

/** Whether a rule can make a pool of that name out of a request, a user or a group. */
function mayCreate(rule: PlacementRule, pool: string): boolean {
  const below = pool.slice(ROOT_POOL.length + 1);
  switch (rule.name) {
    case "specified":
      return rule.create;
    case "user":
    case "primaryGroup":
    case "secondaryGroupExistingQueue":
      return rule.create && !below.includes(".");
    case "default":
      return rule.create && rule.pool === pool;
    case "nestedUserQueue": {
      const parent = pool.slice(0, pool.lastIndexOf("."));
      return (
        rule.create &&
        rule.inner !== null &&
        parent !== ROOT_POOL &&
        (mayCreate(rule.inner, parent) || rule.inner.name !== "default")
      );
    }
    default:
      return false;
  }
}

function notInherited({ property, pool }: KnownKey, { allocation, site }: CheckContext): readonly Finding[] {
  if (allocation === null || site === null || pool === null) return [];
  const without = childrenOf(pool, allocation.allocations).filter((child) => {
    const key = `${property.key.slice(0, -pool.length)}${child}`;
    return site.effective.get(key) === undefined;
  });
  if (without.length === 0) return [];
  return [
    finding("S07", {
      at: keyPlace(property),
      pool,
      found: property.key,
      effect: `The pools below do not inherit it: ${without.join(", ")} ${without.length === 1 ? "has" : "have"} no such key and take the one without pool name, or the built-in default.`,
      remedy: "Repeat the key for each of them, or leave the pool name out to set it for all.",
    }),
  ];
}

const childrenOf = (pool: string, { leafPools, parentPools }: Allocations): readonly string[] =>
  [...new Set([...leafPools, ...parentPools])].filter((name) => withAncestors(name).slice(1).includes(pool)).sort();

/** S08: pieces of the default options that do something else than they say. */
function options({ field, property, pool }: KnownKey, { site, input }: CheckContext): readonly Finding[] {
  if (site === null || field !== "defaultQueryOptions") return [];
  const text = siteText(site, property.key, input.around) ?? "";
  return parseOptionString(text).pieces.flatMap(({ text: piece, change }) => {
    const complaint = optionComplaint(piece, change);
    if (complaint === null) return [];
    const severity = change.kind === "removed" ? "hint" : "warning";
    return [finding("S08", { at: valuePlace(property), pool, found: piece, severity, ...complaint })];
  });
}

function optionComplaint(piece: string, change: OptionChange): { effect: string; remedy: string } | null {
  if (change.kind === "removed")
    return { effect: "An option of old: accepted and without effect.", remedy: "Delete it." };
  if (change.kind === "set" && change.name === "REQUEST_POOL")
    return {
      effect: "It asks for another pool: the query is resolved again and may run elsewhere.",
      remedy: "Delete it; clients choose pools.",
    };
  if (change.kind !== "error") return null;
  const effect = `Dropped with a line in the log, the other options apply: ${change.message}`;
  const [name = "", value = ""] = piece.split("=");
  if (name !== name.trim() && isQueryOption(name.trim()))
    return { effect, remedy: `No blank before the sign: ${name.trim()}=${value.trim()}.` };
  if (/%\s*$/.test(value)) return { effect, remedy: "Write a size: percentages are not allowed here." };
  if (change.message.startsWith("Invalid query option")) {
    const near = nearestName(name.trim(), queryOptionNames());
    return { effect, remedy: near === null ? "Delete it." : `Do you mean ${near.toLowerCase()}?` };
  }
  return { effect, remedy: "Write pairs such as mem_limit=2g,mt_dop=4." };
}

// --- S06 ------------------------------------------------------------------------------------------------

const PREFIXES = ["impala.admission-control.", "llama.am."];
const REMOVED_KEYS = ["max-running-queries-multiple", "max-queued-queries-multiple", "max-memory-multiple"];

/** Names that people have made up for what has another. */
const INVENTED: readonly (readonly [RegExp, string])[] = [
  [/max-(running-)?(requests|queries)\b/, SITE_KEYS.maxRequests],
  [/max-queued/, SITE_KEYS.maxQueued],
  [/timeout/, SITE_KEYS.queueTimeout],
  [/default-query-mem-limit|default-mem-limit/, `${SITE_KEYS.defaultQueryOptions} with mem_limit=...`],
  [/query-options/, SITE_KEYS.defaultQueryOptions],
  [/max-mem-resources|max-memory/, "maxResources in the allocation file"],
];

const unknownKeys = (site: SiteFile): readonly Finding[] =>
  site.properties
    .filter(
      ({ key, lostTo }) => lostTo === null && PREFIXES.some((prefix) => key.startsWith(prefix)) && !isKnownKey(key),
    )
    .map((property) => {
      const { key } = property;
      const removed = REMOVED_KEYS.find((name) => key.startsWith(`impala.admission-control.${name}`));
      return finding("S06", {
        at: keyPlace(property),
        found: key,
        effect:
          removed === undefined
            ? "Ignored in silence."
            : "A key of scalable pools, which are gone: ignored in silence, and the limit is the static one, often none.",
        remedy: remedyForKey(key, removed),
      });
    });

const isKnownKey = (key: string): boolean =>
  Object.values(SITE_KEYS).some((known) => key === known || key.startsWith(`${known}.`));

function remedyForKey(key: string, removed: string | undefined): string {
  if (removed === "max-memory-multiple") return "Set maxResources in the allocation file.";
  if (removed !== undefined)
    return `Set ${removed.includes("queued") ? SITE_KEYS.maxQueued : SITE_KEYS.maxRequests} instead.`;
  const root = key.search(/\.root(\.|$)/);
  const bare = root < 0 ? key : key.slice(0, root);
  const near = INVENTED.find(([pattern]) => pattern.test(bare))?.[1] ?? nearestName(bare, Object.values(SITE_KEYS));
  return near === null ? "Delete it: it belonged to the Llama server." : `Do you mean ${near}?`;
}

// --- S09 ------------------------------------------------------------------------------------------------

function alone({ allocation, input }: CheckContext): readonly Finding[] {
  if (input.allocation === null && input.site !== null)
    return [
      finding("S09", {
        at: { file: input.site.file, line: 1 },
        found: "a site file without an allocation file",
        effect: "It is ignored; every query runs in default-pool, with the limits of the default_pool flags.",
        remedy: "Give the allocation file too (--fair_scheduler_allocation_path).",
      }),
    ];
  if (allocation === null || input.site !== null) return [];
  return [...allocation.allocations.onlyCoordinators]
    .filter(([, located]) => located.value)
    .map(([pool, located]) =>
      finding("S09", {
        at: { file: allocation.file, ...located.at },
        pool,
        found: "<onlyCoordinators> without a site file",
        effect: "It counts as false; running queries are unlimited and the queue holds 200.",
        remedy: "Give a site file (--llama_site_path); an empty one, <configuration/>, is enough.",
      }),
    );
}
