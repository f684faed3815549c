/**
 * Family `field-xml`: a pair of files as found in the wild, and everything Impala makes of it.
 *
 * One folder is one case. The files are read by the service that a daemon would run, because a broken site file
 * shows only in the sequence of lookups.
 */
import { join } from "node:path";
import { EVERYBODY, NOBODY } from "../../../src/config/acl.ts";
import { type AllocationFile, readAllocationFile } from "../../../src/config/allocation-file.ts";
import { ConfigError } from "../../../src/config/config-error.ts";
import type { PlacementRule } from "../../../src/config/placement-policy.ts";
import { PoolDirectory } from "../../../src/config/pool-directory.ts";
import type { PoolLookup } from "../../../src/config/pool-record.ts";
import { PoolService, REAL_FILES } from "../../../src/config/pool-service.ts";
import { DEFAULT_SETTINGS } from "../../../src/config/pool-settings.ts";
import { parseOptionString } from "../../../src/config/query-options.ts";
import { groupTable } from "../../../src/config/user-groups.ts";
import { rejectReasonText } from "../../../src/core/admission/reasons.ts";
import { queueFull, rejectForPool } from "../../../src/core/admission/reject.ts";
import type { PoolConfig } from "../../../src/core/pool-config.ts";
import type { FamilyRunner, Vector } from "../family.ts";
import { same } from "./pool-config.ts";

export const run: FamilyRunner = (vector, dir) => {
  const { expected, got } = compare(vector.expected, dir);
  return same(expected, got) ? { kind: "pass" } : { kind: "fail", ...difference(expected, got) };
};

/** What the case promises, reduced to what is compared, beside what was found under the same names. */
type Findings = Record<string, unknown>;

function compare(expected: Vector["expected"], dir: string): { expected: Findings; got: Findings } {
  const wanted: Findings = {};
  const got: Findings = {};
  const note = (what: string, want: unknown, found: unknown) => {
    wanted[what] = want;
    got[what] = found;
  };
  const paths = {
    fairScheduler: expected.files.fairScheduler ? join(dir, expected.files.fairScheduler) : null,
    llamaSite: expected.files.llamaSite ? join(dir, expected.files.llamaSite) : null,
  };
  let allocation: AllocationFile | null = null;
  try {
    allocation = paths.fairScheduler === null ? null : readAllocationFile(paths.fairScheduler);
    if (expected.load.fairScheduler !== null) note("load", expected.load.fairScheduler, { ok: true });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    note("load", loadText(expected.load.fairScheduler), loadGot(expected.load.fairScheduler, error.problem));
    return { expected: wanted, got };
  }
  const service = serviceOf(paths, {});
  noteSite(expected, service, note);
  if (allocation !== null) noteAllocation(expected, allocation, note);
  for (const [pool, record] of Object.entries(expected.pools ?? {}))
    notePool(pool, record as Findings, service, allocation, note);
  for (const [pool, applied] of Object.entries(expected.defaultOptionsApplied ?? {}))
    noteOptions(pool, applied, service, note);
  for (const [pool, reason] of Object.entries(expected.poolRejections ?? {}))
    noteRejection(pool, reason, service, note);
  for (const [i, example] of (expected.resolve ?? []).entries()) {
    const { user, groups, requestedPool, ...outcome } = example;
    const r = serviceOf(paths, { [shortOf(user)]: groups }).resolve(requestedPool, user);
    note(`resolve ${i}`, outcome, {
      resolvedPool: r.pool,
      hasAccess: r.kind === "resolved",
      error: r.kind === "resolved" ? null : r.error,
    });
  }
  return { expected: wanted, got };
}

type Note = (what: string, want: unknown, found: unknown) => void;

function serviceOf(
  paths: { fairScheduler: string | null; llamaSite: string | null },
  table: Record<string, string[]>,
): PoolService {
  const { flags, around, physicalMemory } = DEFAULT_SETTINGS;
  // A user whose list is empty is one the operating system does not know.
  const known = Object.fromEntries(Object.entries(table).filter(([, groups]) => groups.length > 0));
  const settings = { flags, around, physicalMemory, groups: groupTable(known) };
  return new PoolService({ paths, files: REAL_FILES, log: () => undefined, settings }, Date.now());
}

const shortOf = (user: string): string => (user === "" ? "default" : (user.split(/[/@]/)[0] ?? user));

/** A broken site file shows at the first lookup; what follows is compared pool by pool. */
function noteSite(expected: Vector["expected"], service: PoolService, note: Note): void {
  const wanted = expected.load.llamaSite;
  if (wanted === null || expected.load.fairScheduler === null) return;
  if (wanted.ok) return;
  const first = service.lookUp("root");
  note("load of the site file", loadText(wanted), loadGot(wanted, first.kind === "failed" ? first.error : null));
}

const loadText = (wanted: Findings): unknown => (wanted.ok ? { ok: true } : { ok: false, error: wanted.error });

function loadGot(wanted: Findings, error: string | null): unknown {
  if (error === null) return { ok: true };
  const text = String(wanted.error ?? "");
  const fits =
    wanted.match === "prefix"
      ? error.startsWith(text)
      : wanted.match === "contains"
        ? error.includes(text)
        : error === text;
  return { ok: false, error: fits ? text : error };
}

function noteAllocation(expected: Vector["expected"], file: AllocationFile, note: Note): void {
  const { leafPools, parentPools, placement } = file.allocations;
  if (expected.warnings !== undefined) note("warnings", sorted(expected.warnings), sorted(file.warnings));
  if (expected.queues !== undefined)
    note("queues", expected.queues, { leaf: sorted(leafPools), parent: sorted(parentPools) });
  if (expected.placement !== undefined)
    note(
      "placement",
      expected.placement,
      placement.rules.map((rule, i) => ruleRecord(rule, expected.placement[i])),
    );
}

const sorted = (names: Iterable<string>): string[] => [...names].sort();

/** `queue` as written; `create` only where it has a say; other keys of the case hold the inner rule. */
function ruleRecord(rule: PlacementRule, wanted: unknown): Findings {
  const queue = rule.element?.attributes.get("queue")?.value;
  const record: Findings = { name: rule.name };
  if (rule.name !== "reject") record.create = rule.create;
  if (rule.name === "default" && queue !== undefined) record.queue = queue;
  if (rule.inner === null || typeof wanted !== "object" || wanted === null) return record;
  const key = Object.keys(wanted).find((k) => !["name", "create", "queue"].includes(k)) ?? "inner";
  const inner: unknown = Object.entries(wanted).find(([k]) => k === key)?.[1];
  record[key] = Array.isArray(inner) ? [ruleRecord(rule.inner, inner[0])] : ruleRecord(rule.inner, inner);
  return record;
}

function notePool(
  pool: string,
  wanted: Findings,
  service: PoolService,
  allocation: AllocationFile | null,
  note: Note,
): void {
  const found = { ...recordOf(service.lookUp(pool)), acl: aclOf(pool, allocation) };
  // The memory limit is known also where the numbers of the site file break the record.
  const memory = new PoolDirectory({ ...DEFAULT_SETTINGS, allocation }).configOf(pool).maxMemResources;
  const all: Findings = { maxMemResources: memory, ...found };
  note(`pool ${pool}`, wanted, Object.fromEntries(Object.keys(wanted).map((key) => [key, all[key]])));
}

const recordOf = (found: PoolLookup): Findings =>
  found.kind === "failed" ? { lookupError: found.error } : fieldsOf(found.config);

function fieldsOf(config: PoolConfig): Findings {
  const { queueTimeout, userQueryLimits, groupQueryLimits, ...rest } = config;
  return {
    ...rest,
    queueTimeoutMs: queueTimeout,
    userQueryLimits: Object.fromEntries(userQueryLimits),
    groupQueryLimits: Object.fromEntries(groupQueryLimits),
  };
}

function aclOf(pool: string, allocation: AllocationFile | null): Findings {
  const own = allocation?.allocations.submitAcls.get(pool)?.value;
  const acl = own ?? (pool === "root" || allocation === null ? EVERYBODY : NOBODY);
  return { all: acl.everybody, users: [...acl.users], groups: [...acl.groups] };
}

function noteOptions(pool: string, wanted: unknown, service: PoolService, note: Note): void {
  const found = service.lookUp(pool);
  const text = found.kind === "found" ? found.config.defaultQueryOptions : "";
  const { options, removed, errors } = parseOptionString(text);
  const set = Object.fromEntries([...options].map(([name, value]) => [name, numberOrText(value)]));
  note(`options of ${pool}`, wanted, { set, ignoredRemoved: removed, errors });
}

const numberOrText = (value: string): number | string => (/^-?[0-9.]+$/.test(value) ? Number(value) : value);

/** What every query of the pool is told, on an idle cluster. */
function noteRejection(pool: string, wanted: unknown, service: PoolService, note: Note): void {
  const found = service.lookUp(pool);
  const config = found.kind === "found" ? found.config : null;
  const reason =
    config === null ? null : (rejectForPool(config) ?? (config.maxQueued <= 0 ? queueFull(config, 0, null) : null));
  note(`rejections of ${pool}`, wanted, reason === null ? null : rejectReasonText(reason));
}

function difference(expected: Findings, got: Findings): { expected: unknown; got: unknown } {
  const different = Object.keys(expected).filter((key) => !same(expected[key], got[key]));
  const only = (all: Findings) => Object.fromEntries(different.map((key) => [key, all[key]]));
  return { expected: only(expected), got: only(got) };
}
