/**
 * The record of one pool, with where each of its values comes from (pool-configuration 0.2, 1.5.2, 2.2 to 2.4, 3.1).
 *
 * The order in which keys are read is behaviour: the first bad number is the one the client reads about, and an
 * unsuffixed key is converted even where the pool has a good one of its own.
 */
import { DEFAULT_POOL_CONFIG, type PoolConfig, type Quotas } from "../core/pool-config.ts";
import type { Bytes, MaxBytes, Millis } from "../core/units.ts";
import type { AllocationFile, Located, LocatedQuotas } from "./allocation-file.ts";
import type { SourcePlace } from "./config-error.ts";
import { parseMemorySpec, specBytes } from "./memory-spec.ts";
import type { PoolSettings } from "./pool-settings.ts";
import { UNLIMITED_MB } from "./resource-value.ts";
import {
  type BadNumber,
  type SiteFile,
  type SiteProperty,
  type Surroundings,
  siteBoolean,
  siteInt64,
  siteText,
} from "./site-file.ts";

export type PoolField = keyof PoolConfig;

/** Where a value comes from. `text` is what is written, also where the record holds a nearer number. */
export type Origin =
  /** A site key with the pool's name, an element of the pool in the allocation file. */
  | { readonly from: "own"; readonly name: string; readonly text: string; readonly at: SourcePlace }
  /** A site key for all pools, `queueMaxResourcesDefault`, `minResources` in its place. */
  | { readonly from: "unsuffixed" | "fallback"; readonly name: string; readonly text: string; readonly at: SourcePlace }
  | { readonly from: "flag"; readonly name: string; readonly text: string }
  | { readonly from: "builtIn" };

export type Origins = { readonly [F in PoolField]: Origin };

export type PoolLookup =
  | {
      readonly kind: "found";
      readonly config: PoolConfig;
      readonly origins: Origins;
      /** Values that the file has and the record cannot hold: nearest in the record, text in the origin. */
      readonly saturated: readonly PoolField[];
    }
  /** Building the record fails, each time, with what the client reads (2.4). */
  | { readonly kind: "failed"; readonly error: string; readonly at: SourcePlace | null };

export const SITE_KEYS = {
  maxRequests: "llama.am.throttling.maximum.placed.reservations",
  maxQueued: "llama.am.throttling.maximum.queued.reservations",
  queueTimeout: "impala.admission-control.pool-queue-timeout-ms",
  defaultQueryOptions: "impala.admission-control.pool-default-query-options",
  maxQueryMemLimit: "impala.admission-control.max-query-mem-limit",
  minQueryMemLimit: "impala.admission-control.min-query-mem-limit",
  clampMemLimitQueryOption: "impala.admission-control.clamp-mem-limit-query-option",
  maxMtDop: "impala.admission-control.max-mt-dop",
  maxQueryCpuCorePerNodeLimit: "impala.admission-control.max-query-cpu-core-per-node-limit",
  maxQueryCpuCoreCoordinatorLimit: "impala.admission-control.max-query-cpu-core-coordinator-limit",
} as const;
export type SiteField = keyof typeof SITE_KEYS;

const BUILT_IN: Origin = { from: "builtIn" };

const BUILT_IN_ORIGINS: Origins = {
  maxRequests: BUILT_IN,
  maxQueued: BUILT_IN,
  maxMemResources: BUILT_IN,
  queueTimeout: BUILT_IN,
  defaultQueryOptions: BUILT_IN,
  maxQueryMemLimit: BUILT_IN,
  minQueryMemLimit: BUILT_IN,
  clampMemLimitQueryOption: BUILT_IN,
  maxMtDop: BUILT_IN,
  maxQueryCpuCorePerNodeLimit: BUILT_IN,
  maxQueryCpuCoreCoordinatorLimit: BUILT_IN,
  userQueryLimits: BUILT_IN,
  groupQueryLimits: BUILT_IN,
  onlyCoordinators: BUILT_IN,
};

interface Draft {
  readonly config: { -readonly [F in PoolField]: PoolConfig[F] };
  readonly origins: { -readonly [F in PoolField]: Origin };
  readonly saturated: PoolField[];
}

export function buildPoolRecord(pool: string, settings: PoolSettings): PoolLookup {
  const draft: Draft = { config: { ...DEFAULT_POOL_CONFIG }, origins: { ...BUILT_IN_ORIGINS }, saturated: [] };
  const { allocation, site, around } = settings;
  if (allocation === null) flagsOnly(draft, settings);
  else {
    fromAllocation(draft, pool, allocation);
    const bad = site === null ? null : fromSite(draft, pool, site, around);
    if (bad !== null)
      return {
        kind: "failed",
        error: `NumberFormatException: ${bad.message}`,
        at: bad.property === null ? null : valuePlace(bad.property),
      };
    // Honoured only with a site file, an empty one will do (5).
    if (site === null) setField(draft, "onlyCoordinators", false, BUILT_IN);
  }
  switchesOff(draft, settings);
  return { kind: "found", ...draft };
}

function setField<F extends PoolField>(draft: Draft, field: F, value: PoolConfig[F], origin: Origin): void {
  draft.config[field] = value;
  draft.origins[field] = origin;
}

// --- without an allocation file -------------------------------------------------------------------------

function flagsOnly(draft: Draft, { flags, physicalMemory }: PoolSettings): void {
  const origin = (name: string, value: unknown): Origin => ({ from: "flag", name, text: String(value) });
  setField(
    draft,
    "maxRequests",
    flags.default_pool_max_requests,
    origin("default_pool_max_requests", flags.default_pool_max_requests),
  );
  setField(
    draft,
    "maxQueued",
    flags.default_pool_max_queued,
    origin("default_pool_max_queued", flags.default_pool_max_queued),
  );
  const spec = parseMemorySpec(flags.default_pool_mem_limit);
  const limit = spec === null ? 0 : specBytes(spec, physicalMemory);
  setField(
    draft,
    "maxMemResources",
    limit > 0 ? (limit as Bytes) : -1,
    origin("default_pool_mem_limit", flags.default_pool_mem_limit),
  );
}

/** `--disable_pool_*` win over everything; bounds per query and quotas stay (3.1). */
function switchesOff(draft: Draft, { flags }: PoolSettings): void {
  if (flags.disable_pool_max_requests)
    setField(draft, "maxRequests", -1, { from: "flag", name: "disable_pool_max_requests", text: "true" });
  if (flags.disable_pool_mem_limits)
    setField(draft, "maxMemResources", -1, { from: "flag", name: "disable_pool_mem_limits", text: "true" });
}

// --- the allocation file --------------------------------------------------------------------------------

function fromAllocation(draft: Draft, pool: string, { allocations, file }: AllocationFile): void {
  memoryLimit(draft, pool, { allocations, file });
  const quotas = (field: "userQueryLimits" | "groupQueryLimits", located: LocatedQuotas | undefined, tag: string) => {
    const first = located?.values().next().value;
    if (located === undefined || first === undefined) return;
    const text = [...located].map(([name, { value }]) => `${name}:${value}`).join(" ");
    setField(draft, field, plainQuotas(located), { from: "own", name: tag, text, at: { file, ...first.at } });
  };
  quotas("userQueryLimits", allocations.userQuotas.get(pool), "userQueryLimit");
  quotas("groupQueryLimits", allocations.groupQuotas.get(pool), "groupQueryLimit");
  const only = allocations.onlyCoordinators.get(pool);
  if (only !== undefined) setField(draft, "onlyCoordinators", only.value, ownElement("onlyCoordinators", only, file));
}

const plainQuotas = (located: LocatedQuotas): Quotas => new Map([...located].map(([name, { value }]) => [name, value]));

const ownElement = (name: string, located: Located<unknown>, file: string): Origin => ({
  from: "own",
  name,
  text: located.text,
  at: { file, ...located.at },
});

/** Own maximum; else the pool's minimum where it is above the default; else the default (1.5.2). */
function memoryLimit(
  draft: Draft,
  pool: string,
  { allocations, file }: Pick<AllocationFile, "allocations" | "file">,
): void {
  const { maxResources, minResources, defaultMaxResources } = allocations;
  const own = maxResources.get(pool);
  const minimum = minResources.get(pool);
  const fallback = defaultMaxResources?.value.memoryMb ?? UNLIMITED_MB;
  const set = (memoryMb: number, origin: Origin) =>
    setField(draft, "maxMemResources", memoryMb === UNLIMITED_MB ? -1 : ((memoryMb * 1048576) as MaxBytes), origin);
  if (own !== undefined) set(own.value.memoryMb, ownElement("maxResources", own, file));
  else if (minimum !== undefined && minimum.value.memoryMb > fallback)
    set(minimum.value.memoryMb, {
      from: "fallback",
      name: "minResources",
      text: minimum.text,
      at: { file, ...minimum.at },
    });
  else if (defaultMaxResources !== null)
    set(fallback, {
      from: "fallback",
      name: "queueMaxResourcesDefault",
      text: defaultMaxResources.text,
      at: { file, ...defaultMaxResources.at },
    });
}

// --- the site file --------------------------------------------------------------------------------------

type NumberField = Exclude<SiteField, "queueTimeout" | "defaultQueryOptions" | "clampMemLimitQueryOption">;

/** The first number that is none, in the product's order; null when all are well. */
function fromSite(draft: Draft, pool: string, site: SiteFile, around: Surroundings): BadNumber | null {
  const number = (field: NumberField): BadNumber | null =>
    siteNumber(site, SITE_KEYS[field], pool, around, (value, origin) => {
      setField(draft, field, saturate(draft, field, value), origin);
    });
  return (
    number("maxRequests") ??
    number("maxQueued") ??
    siteNumber(site, SITE_KEYS.queueTimeout, pool, around, (value, origin) => {
      // Zero and below mean the flag (T-5); the origin still says who said so.
      const timeout = value > 0n ? (saturate(draft, "queueTimeout", value) as Millis) : null;
      setField(draft, "queueTimeout", timeout, origin);
    }) ??
    optionText(draft, pool, site, around) ??
    number("maxQueryMemLimit") ??
    number("minQueryMemLimit") ??
    clampSwitch(draft, pool, site, around) ??
    number("maxMtDop") ??
    number("maxQueryCpuCorePerNodeLimit") ??
    number("maxQueryCpuCoreCoordinatorLimit")
  );
}

/** Unsuffixed first, then the pool's own: both are converted, so a bad unsuffixed value breaks every pool. */
function siteNumber(
  site: SiteFile,
  key: string,
  pool: string,
  around: Surroundings,
  take: (value: bigint, origin: Origin) => void,
): BadNumber | null {
  const forAll = siteInt64(site, key, around);
  if (forAll !== null && typeof forAll === "object") return forAll;
  const own = siteInt64(site, `${key}.${pool}`, around);
  if (own !== null && typeof own === "object") return own;
  if (own !== null) take(own, siteOrigin(site, `${key}.${pool}`, "own"));
  else if (forAll !== null) take(forAll, siteOrigin(site, key, "unsuffixed"));
  return null;
}

function optionText(draft: Draft, pool: string, site: SiteFile, around: Surroundings): null {
  const key = SITE_KEYS.defaultQueryOptions;
  const own = siteText(site, `${key}.${pool}`, around);
  const forAll = own === null ? siteText(site, key, around) : null;
  if (own !== null) setField(draft, "defaultQueryOptions", own, siteOrigin(site, `${key}.${pool}`, "own"));
  else if (forAll !== null) setField(draft, "defaultQueryOptions", forAll, siteOrigin(site, key, "unsuffixed"));
  return null;
}

function clampSwitch(draft: Draft, pool: string, site: SiteFile, around: Surroundings): null {
  const key = SITE_KEYS.clampMemLimitQueryOption;
  const own = siteBoolean(site, `${key}.${pool}`, around);
  const forAll = own === null ? siteBoolean(site, key, around) : null;
  if (own !== null) setField(draft, "clampMemLimitQueryOption", own, siteOrigin(site, `${key}.${pool}`, "own"));
  else if (forAll !== null) setField(draft, "clampMemLimitQueryOption", forAll, siteOrigin(site, key, "unsuffixed"));
  return null;
}

function siteOrigin(site: SiteFile, key: string, from: "own" | "unsuffixed"): Origin {
  const property = site.effective.get(key);
  return property === undefined ? BUILT_IN : { from, name: key, text: property.value ?? "", at: valuePlace(property) };
}

const valuePlace = (property: SiteProperty): SourcePlace => ({ file: property.file, ...property.valueAt });

/** int64 reaches beyond what a number holds exactly; a limit that large never binds, so the nearest will do. */
function saturate(draft: Draft, field: PoolField, value: bigint): number {
  const most = BigInt(Number.MAX_SAFE_INTEGER);
  if (value <= most && value >= -most) return Number(value);
  draft.saturated.push(field);
  return value > 0n ? Number.MAX_SAFE_INTEGER : Number.MIN_SAFE_INTEGER;
}
