/**
 * The files as loaded, and the questions that many rules ask of them.
 *
 * A file that does not load is absent here; its one error has been found before (`load-findings.ts`), and rules that
 * need the file have nothing to say.
 */
import type { Acl } from "../../config/acl.ts";
import type { AllocationFile, Allocations, QueueElement } from "../../config/allocation-file.ts";
import type { SourcePlace } from "../../config/config-error.ts";
import type { ImpalaFlags } from "../../config/impala-flags.ts";
import { type PoolDirectory, withAncestors } from "../../config/pool-directory.ts";
import type { Origin, Origins, PoolField } from "../../config/pool-record.ts";
import { parseOptionString } from "../../config/query-options.ts";
import type { SiteFile } from "../../config/site-file.ts";
import { type PoolConfig, ROOT_POOL } from "../../core/pool-config.ts";
import type { CheckInput } from "./check-input.ts";
import type { Finding } from "./finding.ts";

export interface CheckContext {
  readonly input: CheckInput;
  readonly flags: ImpalaFlags;
  /** null: not given, or it does not load. */
  readonly allocation: AllocationFile | null;
  readonly site: SiteFile | null;
  readonly directory: PoolDirectory | null;
  /** Declared pools other than root whose record can be built, in name order. */
  readonly pools: readonly CheckedPool[];
}

export interface CheckedPool {
  readonly name: string;
  readonly isLeaf: boolean;
  /** Its last element. */
  readonly queue: QueueElement;
  readonly config: PoolConfig;
  readonly origins: Origins;
  /** Default MEM_LIMIT of its queries, 0: none. */
  readonly defaultMemLimit: number;
  /** Default MT_DOP of its queries, 0: none. */
  readonly defaultMtDop: number;
}

export type Rule = (context: CheckContext) => readonly Finding[];

export function checkedPools(
  allocation: AllocationFile,
  directory: PoolDirectory,
  flags: ImpalaFlags,
): readonly CheckedPool[] {
  return directory
    .declaredPools()
    .filter((name) => name !== ROOT_POOL)
    .flatMap((name) => {
      const queue = allocation.queues.findLast((q) => q.pool === name);
      const found = directory.lookUp(name);
      if (queue === undefined || found.kind === "failed") return [];
      const { config, origins } = found;
      return [
        {
          name,
          isLeaf: allocation.allocations.leafPools.has(name),
          queue,
          config,
          origins,
          defaultMemLimit: defaultOption("MEM_LIMIT", config, flags),
          defaultMtDop: defaultOption("MT_DOP", config, flags),
        },
      ];
    });
}

function defaultOption(name: string, config: PoolConfig, flags: ImpalaFlags): number {
  const own = parseOptionString(config.defaultQueryOptions).options.get(name);
  return Number(own ?? parseOptionString(flags.default_query_options).options.get(name) ?? 0);
}

/** Leaves, and parents that somebody has written limits for: a parent that only holds others would be noise. */
export const isMeantForQueries = (pool: CheckedPool): boolean =>
  pool.isLeaf || Object.values(pool.origins).some((origin: Origin) => origin.from === "own");

export const queuePlace = (pool: CheckedPool, context: CheckContext): SourcePlace => ({
  file: context.allocation?.file ?? "",
  ...pool.queue.element.at,
});

/** Where a value comes from; the queue's element for what is built in, the flags for a flag. */
export function originPlace(pool: CheckedPool, field: PoolField, context: CheckContext): SourcePlace {
  const origin = pool.origins[field];
  if (origin.from === "flag") return { file: context.input.flagsFile, line: null };
  return origin.from === "builtIn" ? queuePlace(pool, context) : origin.at;
}

/** Text as written, with the key or element it stands in. */
export function originText(pool: CheckedPool, field: PoolField): string {
  const origin = pool.origins[field];
  return origin.from === "builtIn" ? "nothing is written" : `${origin.name} is "${origin.text}"`;
}

/**
 * Pools for which `holds`, once for each place the value comes from: a key for all pools is one mistake and not as
 * many as there are pools.
 */
export function byOrigin(
  context: CheckContext,
  field: PoolField,
  holds: (pool: CheckedPool) => boolean,
): readonly { readonly at: SourcePlace; readonly pool: string | null; readonly pools: readonly CheckedPool[] }[] {
  const groups = new Map<string, { at: SourcePlace; pools: CheckedPool[] }>();
  for (const pool of context.pools.filter(holds)) {
    const at = originPlace(pool, field, context);
    const origin = pool.origins[field].from;
    const key = origin === "own" || origin === "builtIn" ? pool.name : `${at.file}:${at.line}:${at.column ?? 0}`;
    const group = groups.get(key) ?? { at, pools: [] };
    group.pools.push(pool);
    groups.set(key, group);
  }
  return [...groups.values()].map(({ at, pools }) => {
    const first = pools[0];
    const own = first?.origins[field].from;
    return { at, pools, pool: own === "own" || own === "builtIn" ? (first?.name ?? null) : null };
  });
}

/** Own list or the default of the name. */
export const aclOf = (pool: string, allocations: Allocations): Acl =>
  allocations.submitAcls.get(pool)?.value ?? {
    everybody: pool === ROOT_POOL,
    users: new Set<string>(),
    groups: new Set<string>(),
  };

export const isOpenToEverybody = (pool: string, allocations: Allocations): boolean =>
  withAncestors(pool).some((name) => aclOf(name, allocations).everybody);
