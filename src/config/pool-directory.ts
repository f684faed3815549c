/**
 * What the two files and the flags say about pools at one moment: the record of every pool name, and where a
 * request of a user lands (pool-configuration 2.3, 3; admission 1.5, 11.3).
 *
 * Unchanging: a reload makes a new directory (`pool-service.ts`). Any text is a pool name with a record, declared
 * or not; without an allocation file there is the single pool `default-pool`. A record can fail to build, because
 * numbers are converted when they are asked for: that is an answer, not an exception, and every query of the pool
 * ends with it.
 */
import { DEFAULT_POOL, type PoolConfig, ROOT_POOL } from "../core/pool-config.ts";
import { type Acl, EVERYBODY, grants, NOBODY } from "./acl.ts";
import { type AllocationFile, readAllocationFile } from "./allocation-file.ts";
import { ConfigError } from "./config-error.ts";
import { place } from "./placement-policy.ts";
import { buildPoolRecord, type PoolLookup } from "./pool-record.ts";
import { DEFAULT_SETTINGS, type PoolSettings } from "./pool-settings.ts";
import { shortName } from "./short-name.ts";
import { readSiteFile } from "./site-file.ts";

export type Resolution =
  | {
      readonly kind: "resolved";
      readonly pool: string;
      /** Full name of the user the query runs as (3.2); admission shortens it for quotas. */
      readonly effectiveUser: string;
    }
  | {
      readonly kind: "refused";
      /** What the client reads; an error and not a rejection, so no counter of a pool moves. */
      readonly error: string;
      /** The pool the rules led to, when it was the access check that refused. */
      readonly pool: string | null;
      readonly effectiveUser: string;
      /** The product's status beside it: its own error, or a plain no. */
      readonly status: "ok" | "internalError";
    };

/** What drivers ask: a directory that stays, or a service that reloads. */
export interface PoolSource {
  lookUp(pool: string): PoolLookup;
  resolve(requestedPool: string, user: string): Resolution;
  /** Ordered groups of a full or short name, empty when nothing is known (admission 8.2). */
  groupsOf(user: string): readonly string[];
}

export interface PoolFilePaths {
  readonly fairScheduler: string | null;
  readonly llamaSite: string | null;
}

/** Throws ConfigError when a file is missing or does not load, a malformed site file included. */
export function openPoolDirectory(
  paths: PoolFilePaths,
  settings: Partial<Omit<PoolSettings, "allocation" | "site">> = {},
): PoolDirectory {
  const allocation = paths.fairScheduler === null ? null : readAllocationFile(paths.fairScheduler);
  const site = allocation === null || paths.llamaSite === null ? null : readSiteFile(paths.llamaSite);
  return new PoolDirectory({ ...DEFAULT_SETTINGS, ...settings, allocation, site });
}

/** Pool and user names come from outside, so what is remembered about them is bounded. */
const REMEMBERED = 10_000;

export class PoolDirectory implements PoolSource {
  readonly settings: PoolSettings;
  readonly #records = new Map<string, PoolLookup>();
  readonly #resolutions = new Map<string, Resolution>();

  constructor(settings: PoolSettings) {
    this.settings = settings;
  }

  lookUp(pool: string): PoolLookup {
    return remembered(this.#records, pool, () => buildPoolRecord(pool, this.settings));
  }

  /** For those who have checked the files: throws ConfigError where `lookUp` has an error. */
  configOf(pool: string): PoolConfig {
    const found = this.lookUp(pool);
    if (found.kind === "found") return found.config;
    const { file, line } = found.at ?? { file: "pool configuration", line: null };
    throw new ConfigError({ file, line }, `pool ${pool}: ${found.error}`, "Write a whole number without unit.");
  }

  resolve(requestedPool: string, user: string): Resolution {
    return remembered(this.#resolutions, `${requestedPool}\u0000${user}`, () => this.#resolve(requestedPool, user));
  }

  groupsOf(user: string): readonly string[] {
    return this.settings.groups.groupsOf(shortName(user) ?? user) ?? [];
  }

  /** Own access list of a pool, before ancestors have their say; null when none is written. */
  ownAcl(pool: string): Acl | null {
    return this.settings.allocation?.allocations.submitAcls.get(pool)?.value ?? null;
  }

  /** The pool itself or one of its ancestors lets the user in (1.6); without an allocation file everybody may. */
  hasAccess(pool: string, user: string): boolean {
    if (this.settings.allocation === null) return true;
    const name = shortName(user) ?? user;
    const groups = this.settings.groups.groupsOf(name) ?? [];
    return withAncestors(pool).some((p) => grants(this.ownAcl(p) ?? defaultAcl(p), name, groups));
  }

  isDeclared(pool: string): boolean {
    const a = this.settings.allocation?.allocations;
    return a !== undefined && (a.leafPools.has(pool) || a.parentPools.has(pool));
  }

  /** In name order; the one pool of flags-only mode. */
  declaredPools(): readonly string[] {
    const a = this.settings.allocation?.allocations;
    return a === undefined ? [DEFAULT_POOL] : [...new Set([...a.leafPools, ...a.parentPools])].sort();
  }

  #resolve(requestedPool: string, user: string): Resolution {
    const { allocation, flags } = this.settings;
    if (allocation === null) return { kind: "resolved", pool: DEFAULT_POOL, effectiveUser: user };
    if (user === "" && flags.require_username)
      return refused("User must be specified because -require_username=true.", null, user, "internalError");
    const effectiveUser = user === "" ? "default" : user;
    const short = shortName(effectiveUser);
    if (short === null) return denied(effectiveUser, requestedPool, null, "internalError");
    return this.#place(requestedPool, effectiveUser, short, allocation);
  }

  #place(requested: string, user: string, short: string, allocation: AllocationFile): Resolution {
    const { leafPools, placement } = allocation.allocations;
    const found = place(placement, {
      requested,
      user: short,
      groups: this.settings.groups.groupsOf(short),
      isLeaf: (pool) => leafPools.has(pool),
      isDeclared: (pool) => this.isDeclared(pool),
    });
    if (found.kind === "noGroups")
      return refused(
        found.known ? `No groups returned for user ${short}` : noGroups(user),
        null,
        user,
        "internalError",
      );
    if (found.kind !== "pool") return denied(user, requested, null, found.kind === "reject" ? "ok" : "internalError");
    return this.hasAccess(found.pool, user)
      ? { kind: "resolved", pool: found.pool, effectiveUser: user }
      : denied(user, requested, found.pool, "ok");
  }
}

function remembered<T>(map: Map<string, T>, key: string, make: () => T): T {
  const known = map.get(key);
  if (known !== undefined) return known;
  if (map.size >= REMEMBERED) map.clear();
  const made = make();
  map.set(key, made);
  return made;
}

const defaultAcl = (pool: string): Acl => (pool === ROOT_POOL ? EVERYBODY : NOBODY);

/** The pool, then what is left after cutting at the last `.`, again and again. */
export function withAncestors(pool: string): readonly string[] {
  const names = [pool];
  for (let dot = pool.lastIndexOf("."); dot >= 0; dot = dot === 0 ? -1 : pool.lastIndexOf(".", dot - 1))
    names.push(pool.slice(0, dot));
  return names;
}

const refused = (
  error: string,
  pool: string | null,
  effectiveUser: string,
  status: "ok" | "internalError",
): Resolution => ({ kind: "refused", error, pool, effectiveUser, status });

const denied = (user: string, requested: string, pool: string | null, status: "ok" | "internalError"): Resolution =>
  refused(
    `Request from user '${user}' with requested pool '${requested}' denied access to assigned pool '${pool ?? ""}'`,
    pool,
    user,
    status,
  );

const noGroups = (user: string): string =>
  `Failed to resolve user '${user}' to a pool while evaluating the 'primaryGroup' or 'secondaryGroup' queue placement rules because no groups were found for the user. This is likely because the user does not exist on the local operating system.`;
