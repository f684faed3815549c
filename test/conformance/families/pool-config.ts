/**
 * Family `pool-config`: the two files, asked about pools, access, loads and single quota elements.
 */
import { join } from "node:path";
import { AllocationFault } from "../../../src/config/allocation-fault.ts";
import { ConfigError } from "../../../src/config/config-error.ts";
import { type ImpalaFlags, parseFlags } from "../../../src/config/impala-flags.ts";
import { parseLocatedXml } from "../../../src/config/located-xml.ts";
import { openPoolDirectory, type PoolDirectory } from "../../../src/config/pool-directory.ts";
import { type LogLine, PoolService, REAL_FILES } from "../../../src/config/pool-service.ts";
import { DEFAULT_SETTINGS } from "../../../src/config/pool-settings.ts";
import { readQuotaBlock } from "../../../src/config/quota-element.ts";
import { groupTable } from "../../../src/config/user-groups.ts";
import type { PoolConfig } from "../../../src/core/pool-config.ts";
import type { FamilyRunner, Vector, Verdict } from "../family.ts";

export const run: FamilyRunner = (vector, dir) => {
  const kind: string = vector.input.query.kind;
  if (kind === "resolve") return resolveVector(vector, dir);
  if (kind === "access") return accessVector(vector, dir);
  if (kind === "limits") return limitsVector(vector, dir);
  if (kind === "load") return loadVector(vector, dir);
  if (kind === "parse-limits") return parseLimitsVector(vector);
  return { kind: "fail", expected: vector.expected, got: `this family has no query of the kind "${kind}"` };
};

function directoryOf(vector: Vector, dir: string): PoolDirectory {
  return openPoolDirectory(paths(vector, dir), {
    flags: flagsOf(vector),
    groups: groupTable(vector.input.query.user_groups ?? {}),
  });
}

function paths(vector: Vector, dir: string): { fairScheduler: string | null; llamaSite: string | null } {
  const { allocation_file, llama_site_file } = vector.input.config_files;
  return {
    fairScheduler: allocation_file ? join(dir, allocation_file) : null,
    llamaSite: llama_site_file ? join(dir, llama_site_file) : null,
  };
}

const flagsOf = (vector: Vector): ImpalaFlags => parseFlags(vector.input.flags ?? {});

function resolveVector(vector: Vector, dir: string): Verdict {
  const { requested_pool, user } = vector.input.query;
  const directory = directoryOf(vector, dir);
  const r = directory.resolve(requested_pool, user);
  const got = {
    pool: r.pool,
    has_access: r.kind === "resolved" ? true : r.pool === null ? null : false,
    status: r.kind === "resolved" || r.status === "ok" ? "ok" : "internal-error",
    effective_user: r.effectiveUser,
    error: r.kind === "refused" ? r.error : "",
  };
  const { pool, has_access, status, effective_user } = vector.expected;
  return verdict(
    same(pool, got.pool) &&
      (has_access === undefined || same(has_access, got.has_access)) &&
      (status === undefined || same(status, got.status)) &&
      (effective_user === undefined || same(effective_user, got.effective_user)) &&
      errorFits(vector.expected, got.error),
    vector,
    got,
  );
}

function accessVector(vector: Vector, dir: string): Verdict {
  const { pool, users } = vector.input.query;
  const directory = directoryOf(vector, dir);
  const access = Object.fromEntries(users.map((u: string) => [u, directory.hasAccess(pool, u)]));
  return verdict(same(vector.expected.access, access), vector, { access });
}

function limitsVector(vector: Vector, dir: string): Verdict {
  const found = directoryOf(vector, dir).lookUp(vector.input.query.pool);
  if (found.kind === "failed") return verdict(errorFits(vector.expected, found.error), vector, found);
  const all = limitsOf(found.config);
  const limits = Object.fromEntries(Object.keys(vector.expected.limits).map((k) => [k, all[k]]));
  return verdict(same(vector.expected.limits, limits), vector, { limits });
}

/** A pool's record in the names of the vectors. */
export function limitsOf(p: PoolConfig): Record<string, unknown> {
  return {
    max_requests: p.maxRequests,
    max_queued: p.maxQueued,
    max_mem_resources: p.maxMemResources,
    queue_timeout_ms: p.queueTimeout,
    min_query_mem_limit: p.minQueryMemLimit,
    max_query_mem_limit: p.maxQueryMemLimit,
    clamp_mem_limit_query_option: p.clampMemLimitQueryOption,
    max_mt_dop: p.maxMtDop,
    max_query_cpu_core_per_node_limit: p.maxQueryCpuCorePerNodeLimit,
    max_query_cpu_core_coordinator_limit: p.maxQueryCpuCoreCoordinatorLimit,
    default_query_options: p.defaultQueryOptions,
    user_query_limits: Object.fromEntries(p.userQueryLimits),
    group_query_limits: Object.fromEntries(p.groupQueryLimits),
    only_coordinators: p.onlyCoordinators,
  };
}

function loadVector(vector: Vector, dir: string): Verdict {
  const log: LogLine[] = [];
  let error = "";
  try {
    const { flags, groups, around, physicalMemory } = { ...DEFAULT_SETTINGS, flags: flagsOf(vector) };
    new PoolService(
      {
        paths: paths(vector, dir),
        files: REAL_FILES,
        log: (line) => log.push(line),
        settings: { flags, groups, around, physicalMemory },
      },
      Date.now(),
    );
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause;
    error = cause.problem;
  }
  const warnings = log.filter((l) => l.level === "warn").map((l) => l.text);
  const { load, warnings_contain, warnings_count, log_contains } = vector.expected;
  const lines = log.map((l) => l.text);
  return verdict(
    load === (error === "" ? "ok" : "error") &&
      errorFits(vector.expected, error) &&
      (warnings_contain ?? []).every((w: string) => warnings.some((got) => got.includes(w))) &&
      (warnings_count === undefined || warnings_count === warnings.length) &&
      (log_contains ?? []).every((w: string) => lines.some((got) => got.includes(w))),
    vector,
    { error, lines },
  );
}

function parseLimitsVector(vector: Vector): Verdict {
  const { element_xml, name_tag } = vector.input.query;
  try {
    const { root } = parseLocatedXml(new TextEncoder().encode(element_xml), "element", "xerces");
    const block = readQuotaBlock(root, name_tag, "element", null);
    const limits = Object.fromEntries(block.names.map(({ name }) => [name, block.limit]));
    return verdict(same(vector.expected.limits, limits), vector, { limits });
  } catch (cause) {
    if (!(cause instanceof AllocationFault)) throw cause;
    const expectsError = Object.keys(vector.expected).some((key) => key.startsWith("error_"));
    return verdict(expectsError && errorFits(vector.expected, cause.problem), vector, { error: cause.problem });
  }
}

// biome-ignore lint/suspicious/noExplicitAny: a vector's own `expected`.
function errorFits(expected: any, error: string): boolean {
  const contains: string[] = [expected.error_contains ?? []].flat();
  return (
    contains.every((part) => error.includes(part)) &&
    (expected.error_equals === undefined || expected.error_equals === error) &&
    (expected.error_regex === undefined || new RegExp(expected.error_regex, "s").test(error))
  );
}

/** Key order does not count. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  const left = Object.entries(a);
  const right = new Map(Object.entries(b));
  return left.length === right.size && left.every(([key, value]) => right.has(key) && same(value, right.get(key)));
}

const verdict = (ok: boolean, vector: Vector, got: unknown): Verdict =>
  ok ? { kind: "pass" } : { kind: "fail", expected: vector.expected, got };
