/**
 * The pools as Impala sees them: every field of every record, with where it comes from (insight 1.1).
 */
import type { SourcePlace } from "../../config/config-error.ts";
import type { PlacementRule } from "../../config/placement-policy.ts";
import type { PoolDirectory } from "../../config/pool-directory.ts";
import type { Origin, PoolField } from "../../config/pool-record.ts";
import { ROOT_POOL } from "../../core/pool-config.ts";

export interface PoolRow {
  /** `any other name` for all that are not declared. */
  readonly pool: string;
  readonly kind: "leaf" | "parent" | "root" | "undeclared" | "default-pool";
  /** null when building the record fails: then `error` is what every query of the pool reads. */
  readonly fields: Readonly<Record<PoolField, FieldCell>> | null;
  readonly error: string | null;
  /** Own access list as written; null: none. */
  readonly acl: string | null;
}

export interface FieldCell {
  /** Quotas as `name:limit` texts; -1 is no limit, a null timeout is the flag's. */
  readonly value: number | boolean | string | null | Readonly<Record<string, number>>;
  readonly from: Origin["from"];
  /** Key, element or flag; null for what is built in. */
  readonly name: string | null;
  readonly file: string | null;
  readonly line: number | null;
}

export const ANY_OTHER_NAME = "any other name";

/** Rows in name order, root first. */
export function poolRows(directory: PoolDirectory): readonly PoolRow[] {
  const { allocation } = directory.settings;
  if (allocation === null) return directory.declaredPools().map((pool) => rowOf(pool, "default-pool", directory));
  const { leafPools, placement } = allocation.allocations;
  const declared = directory.declaredPools().filter((pool) => pool !== ROOT_POOL);
  const rows = declared.map((pool) => rowOf(pool, leafPools.has(pool) ? "leaf" : "parent", directory));
  const others = placement.rules.some(createsNames) ? [rowOf(ANY_OTHER_NAME, "undeclared", directory)] : [];
  return [rowOf(ROOT_POOL, "root", directory), ...rows, ...others];
}

const createsNames = (rule: PlacementRule): boolean => rule.create && rule.name !== "default" && rule.name !== "reject";

function rowOf(pool: string, kind: PoolRow["kind"], directory: PoolDirectory): PoolRow {
  const found = directory.lookUp(pool);
  const acl = directory.settings.allocation?.allocations.submitAcls.get(pool)?.text ?? null;
  if (found.kind === "failed") return { pool, kind, fields: null, error: found.error, acl };
  const cell = (field: PoolField): FieldCell => {
    const value = found.config[field];
    const origin = found.origins[field];
    const place: SourcePlace | null = "at" in origin ? origin.at : null;
    return {
      value: value instanceof Map ? Object.fromEntries(value) : (value as FieldCell["value"]),
      from: origin.from,
      name: "name" in origin ? origin.name : null,
      file: place?.file ?? null,
      line: place?.line ?? null,
    };
  };
  return {
    pool,
    kind,
    fields: {
      maxRequests: cell("maxRequests"),
      maxQueued: cell("maxQueued"),
      maxMemResources: cell("maxMemResources"),
      queueTimeout: cell("queueTimeout"),
      defaultQueryOptions: cell("defaultQueryOptions"),
      maxQueryMemLimit: cell("maxQueryMemLimit"),
      minQueryMemLimit: cell("minQueryMemLimit"),
      clampMemLimitQueryOption: cell("clampMemLimitQueryOption"),
      maxMtDop: cell("maxMtDop"),
      maxQueryCpuCorePerNodeLimit: cell("maxQueryCpuCorePerNodeLimit"),
      maxQueryCpuCoreCoordinatorLimit: cell("maxQueryCpuCoreCoordinatorLimit"),
      userQueryLimits: cell("userQueryLimits"),
      groupQueryLimits: cell("groupQueryLimits"),
      onlyCoordinators: cell("onlyCoordinators"),
    },
    error: null,
    acl,
  };
}

export interface RuleRow {
  readonly name: string;
  readonly create: boolean;
  /** Only of `default`. */
  readonly pool: string | null;
  readonly inner: RuleRow | null;
  /** null for a built-in rule. */
  readonly line: number | null;
}

export const ruleRow = (rule: PlacementRule): RuleRow => ({
  name: rule.name,
  create: rule.create,
  pool: rule.pool,
  inner: rule.inner === null ? null : ruleRow(rule.inner),
  line: rule.element?.at.line ?? null,
});
