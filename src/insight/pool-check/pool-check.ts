/**
 * `waterhole check`: both files read as Impala reads them, every finding, the pools as they come out, and who may use
 * which (insight 1.1).
 *
 * A file that does not load has one error and silences what needs it, but never the other file.
 */
import { AllocationFault } from "../../config/allocation-fault.ts";
import { type AllocationFile, parseAllocationFile } from "../../config/allocation-file.ts";
import { ConfigError } from "../../config/config-error.ts";
import { parseFlags } from "../../config/impala-flags.ts";
import { PoolDirectory } from "../../config/pool-directory.ts";
import { DEFAULT_SETTINGS } from "../../config/pool-settings.ts";
import { parseSiteFile, type SiteFile } from "../../config/site-file.ts";
import { groupTable, NO_GROUPS } from "../../config/user-groups.ts";
import { accessFindings } from "./access-findings.ts";
import { allocationFindings } from "./allocation-findings.ts";
import { type CheckContext, checkedPools, type Rule } from "./check-context.ts";
import type { CheckInput } from "./check-input.ts";
import { clusterFindings } from "./cluster-findings.ts";
import { type Finding, inOrder } from "./finding.ts";
import { flagFindings } from "./flag-findings.ts";
import { limitFindings } from "./limit-findings.ts";
import { allocationFinding, siteFinding } from "./load-findings.ts";
import { memoryFindings } from "./memory-findings.ts";
import { placementFindings } from "./placement-findings.ts";
import { type PoolRow, poolRows, type RuleRow, ruleRow } from "./pool-table.ts";
import { quotaFindings } from "./quota-findings.ts";
import { siteFindings } from "./site-findings.ts";
import { trafficFindings } from "./traffic-findings.ts";

export interface PoolCheck {
  readonly findings: readonly Finding[];
  readonly counts: { readonly errors: number; readonly warnings: number; readonly hints: number };
  /** Empty when the allocation file does not load. */
  readonly pools: readonly PoolRow[];
  /** null without an allocation file that loads. */
  readonly placement: { readonly builtIn: boolean; readonly rules: readonly RuleRow[] } | null;
  /** Users of the table of groups, in name order. */
  readonly users: readonly UserRow[];
  /** What the product itself logs while loading, word for word. */
  readonly logWarnings: readonly string[];
  /** For further questions; null when the allocation file does not load. */
  readonly directory: PoolDirectory | null;
}

export interface UserRow {
  readonly user: string;
  readonly groups: readonly string[];
  /** Where a query without REQUEST_POOL lands; null: it is refused. */
  readonly lands: string | null;
  readonly error: string | null;
  /** Declared pools that the user may submit to. */
  readonly mayUse: readonly string[];
}

const RULES: readonly Rule[] = [
  allocationFindings,
  memoryFindings,
  accessFindings,
  placementFindings,
  quotaFindings,
  siteFindings,
  limitFindings,
  flagFindings,
  clusterFindings,
  trafficFindings,
];

export function checkPools(input: CheckInput): PoolCheck {
  const allocation = loaded(input.allocation, (file) => parseAllocationFile(file.bytes, file.file));
  const site = loaded(input.site, (file) => parseSiteFile(file.bytes, file.file));
  const context = contextOf(input, allocation.value, site.value, allocation.error !== null);
  const findings = inOrder([
    ...(allocation.error instanceof AllocationFault ? [allocationFinding(allocation.error)] : []),
    ...(site.error === null ? [] : [siteFinding(site.error)]),
    ...rulesFor(site.error).flatMap((rule) => rule(context)),
  ]);
  return { findings, counts: countsOf(findings), ...overview(context) };
}

/** After S01 neither S nor L rules are asked: what they would say is about built-in defaults. */
const rulesFor = (siteError: ConfigError | null): readonly Rule[] =>
  siteError === null ? RULES : RULES.filter((rule) => rule !== siteFindings && rule !== limitFindings);

function loaded<In, Out>(file: In | null, load: (file: In) => Out): { value: Out | null; error: ConfigError | null } {
  if (file === null) return { value: null, error: null };
  try {
    return { value: load(file), error: null };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { value: null, error };
  }
}

function contextOf(
  input: CheckInput,
  allocation: AllocationFile | null,
  site: SiteFile | null,
  allocationBroken: boolean,
): CheckContext {
  const flags = parseFlags(input.flags, (name) => ({ file: `${input.flagsFile}, flag ${name}`, line: null }));
  const directory = allocationBroken
    ? null
    : new PoolDirectory({
        ...DEFAULT_SETTINGS,
        allocation,
        site: allocation === null ? null : site,
        flags,
        groups: input.groups === null ? NO_GROUPS : groupTable(input.groups),
        around: input.around,
      });
  const pools = allocation === null || directory === null ? [] : checkedPools(allocation, directory, flags);
  return { input, flags, allocation, site, directory, pools };
}

const countsOf = (findings: readonly Finding[]): PoolCheck["counts"] => ({
  errors: findings.filter((f) => f.severity === "error").length,
  warnings: findings.filter((f) => f.severity === "warning").length,
  hints: findings.filter((f) => f.severity === "hint").length,
});

function overview({ allocation, directory, input }: CheckContext): Omit<PoolCheck, "findings" | "counts"> {
  const placement = allocation?.allocations.placement;
  return {
    pools: directory === null ? [] : poolRows(directory),
    placement: placement === undefined ? null : { builtIn: !placement.written, rules: placement.rules.map(ruleRow) },
    users:
      directory === null
        ? []
        : Object.keys(input.groups ?? {})
            .sort()
            .map((user) => userRow(user, directory)),
    logWarnings: allocation?.warnings ?? [],
    directory,
  };
}

function userRow(user: string, directory: PoolDirectory): UserRow {
  const found = directory.resolve("", user);
  return {
    user,
    groups: directory.groupsOf(user),
    lands: found.kind === "resolved" ? found.pool : null,
    error: found.kind === "resolved" ? null : found.error,
    mayUse: directory.declaredPools().filter((pool) => directory.hasAccess(pool, user)),
  };
}
