/**
 * R03 to R08: what a pool's memory limit says and what it does.
 */
import type { Located } from "../../config/allocation-file.ts";
import type { SourcePlace } from "../../config/config-error.ts";
import { memoryMatch, type ResourceValue } from "../../config/resource-value.ts";
import { prettyBytes } from "../../core/pretty.ts";
import { MiB } from "../../core/units.ts";
import { byOrigin, type CheckContext, originPlace, originText, type Rule } from "./check-context.ts";
import { type Finding, finding } from "./finding.ts";

export const memoryFindings: Rule = (context) => [
  ...resourceTexts(context).flatMap(({ tag, pool, located, at }) => readTwice(tag, pool, located, at)),
  ...zero(context),
  ...unlimited(context),
  ...minimumAsMaximum(context),
  ...belowFloor(context),
];

interface ResourceText {
  readonly tag: string;
  readonly pool: string | null;
  readonly located: Located<ResourceValue>;
  readonly at: SourcePlace;
}

function resourceTexts({ allocation }: CheckContext): readonly ResourceText[] {
  if (allocation === null) return [];
  const { maxResources, minResources, defaultMaxResources } = allocation.allocations;
  const text = (tag: string, pool: string | null, located: Located<ResourceValue>): ResourceText => ({
    tag,
    pool,
    located,
    at: { file: allocation.file, ...located.at },
  });
  return [
    ...[...maxResources].map(([pool, located]) => text("maxResources", pool, located)),
    ...[...minResources].map(([pool, located]) => text("minResources", pool, located)),
    ...(defaultMaxResources === null ? [] : [text("queueMaxResourcesDefault", null, defaultMaxResources)]),
  ];
}

/** R03, R04: the search took other digits than a person would. */
function readTwice(tag: string, pool: string | null, located: Located<ResourceValue>, at: SourcePlace): Finding[] {
  const match = memoryMatch(located.text);
  if (match === null) return [];
  const lower = located.text.toLowerCase();
  const before = lower.slice(0, match.index);
  const found = `<${tag}>${located.text}</${tag}>`;
  const findings: Finding[] = [];
  const glued = /[0-9][,.'_e\u00a0 ]$|[-+]$/.test(before);
  if (glued || memoryMatch(located.text.slice(match.end)) !== null)
    findings.push(
      finding("R03", {
        at,
        pool,
        found,
        effect: `Only "${located.text.slice(match.index, match.end)}" counts: ${located.value.memoryMb} MiB.`,
        remedy: /[-+]$/.test(before)
          ? `Write plain digits; for no limit leave <${tag}> out.`
          : "Write one number of plain digits, without separators.",
      }),
    );
  if (/[0-9]/.test(match.fraction))
    findings.push(
      finding("R04", {
        at,
        pool,
        found,
        effect: `The fraction is cut off: ${located.value.memoryMb} MiB.`,
        remedy: "Write whole MiB.",
      }),
    );
  return findings;
}

const zero = (context: CheckContext): readonly Finding[] =>
  byOrigin(context, "maxMemResources", (pool) => pool.config.maxMemResources === 0).map(({ at, pool, pools }) =>
    finding("R05", {
      at,
      pool,
      found: pools[0] === undefined ? "" : originText(pools[0], "maxMemResources"),
      effect: `Every query is rejected${pool === null ? ", in every pool that sets no limit, undeclared ones too" : ""}: disabled by pool max mem resources set to 0.`,
      remedy: "Give it memory; to close a pool use its access list.",
    }),
  );

function unlimited(context: CheckContext): readonly Finding[] {
  return context.pools
    .filter((pool) => pool.isLeaf && pool.config.maxMemResources < 0)
    .map((pool) =>
      finding("R06", {
        at: originPlace(pool, "maxMemResources", context),
        pool: pool.name,
        found: originText(pool, "maxMemResources"),
        effect:
          "No limit, and with it no check of the hosts' memory either: neither the pool nor any host holds a query back.",
        remedy: "Set maxResources, also a generous one: <maxResources>200000 mb, 0 vcores</maxResources>.",
      }),
    );
}

function minimumAsMaximum(context: CheckContext): readonly Finding[] {
  return context.pools
    .filter(({ origins: { maxMemResources: o } }) => o.from === "fallback" && o.name === "minResources")
    .map((pool) =>
      finding("R07", {
        at: originPlace(pool, "maxMemResources", context),
        pool: pool.name,
        found: originText(pool, "maxMemResources"),
        effect: `With no maxResources and a default below it, the minimum is the limit: ${prettyBytes(pool.config.maxMemResources)}.`,
        remedy: "Write maxResources.",
      }),
    );
}

/** The coordinator's share alone is at least this much (MEM-3). */
const FLOOR = 32 * MiB;

function belowFloor(context: CheckContext): readonly Finding[] {
  const small = (limit: number): boolean => limit > 0 && limit < FLOOR;
  return byOrigin(
    context,
    "maxMemResources",
    ({ config, defaultMemLimit }) =>
      small(config.maxMemResources) && !small(config.maxQueryMemLimit) && !small(defaultMemLimit),
  ).map(({ at, pool, pools }) =>
    finding("R08", {
      at,
      pool,
      found: pools[0] === undefined ? "" : originText(pools[0], "maxMemResources"),
      effect: `Every query asks for at least ${prettyBytes(FLOOR)}, so all but trivial ones are rejected.`,
      remedy: "Give it a real size; to close a pool use its access list.",
    }),
  );
}
