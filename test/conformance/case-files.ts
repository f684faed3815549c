/**
 * An allocation file written from what a field case says of pools, rights, quotas and placement, so that the real
 * reader answers where a request lands and whether a start succeeds.
 */
import { AllocationFault } from "../../src/config/allocation-fault.ts";
import { parseAllocationFile } from "../../src/config/allocation-file.ts";
import { PoolDirectory } from "../../src/config/pool-directory.ts";
import { DEFAULT_SETTINGS } from "../../src/config/pool-settings.ts";
import { groupTable } from "../../src/config/user-groups.ts";

// biome-ignore lint/suspicious/noExplicitAny: the cases' own schema.
type Any = any;

export interface CaseFiles {
  readonly pools: readonly Any[];
  /** null: no list written, so root is open. */
  readonly rootAclSubmit: string | null;
  readonly rootLimits: { readonly userLimits?: Any; readonly groupLimits?: Any };
  readonly placement: readonly Any[];
  /** Entries beside those of the pools, such as a second value for the same user. */
  readonly extraQuotas: readonly {
    readonly pool: string;
    readonly tag: "user" | "group";
    readonly name: string;
    readonly limit: number;
  }[];
}

export function directoryFor(files: CaseFiles, userGroups: Readonly<Record<string, readonly string[]>>): PoolDirectory {
  const allocation = parseAllocationFile(allocationXml(files), "fair-scheduler.xml");
  return new PoolDirectory({ ...DEFAULT_SETTINGS, allocation, groups: groupTable(userGroups) });
}

/** How a start with these files goes: the product's message when it is refused, else its warnings. */
export function startWith(files: CaseFiles): { readonly refused: string } | { readonly warnings: readonly string[] } {
  try {
    return { warnings: parseAllocationFile(allocationXml(files), "fair-scheduler.xml").warnings };
  } catch (error) {
    if (error instanceof AllocationFault) return { refused: error.problem };
    throw error;
  }
}

interface Queue {
  own: string[];
  readonly children: Map<string, Queue>;
}

function allocationXml(files: CaseFiles): string {
  const root: Queue = { own: [], children: new Map() };
  const queueOf = (pool: string): Queue => {
    const [first, ...names] = pool.split(".");
    if (first !== "root") throw new Error(`pool ${pool} of the case isn't below root`);
    return names.reduce((parent, name) => {
      const child = parent.children.get(name) ?? { own: [], children: new Map() };
      parent.children.set(name, child);
      return child;
    }, root);
  };
  const declare = (queue: Queue, acl: string | null | undefined, limits: Any): void => {
    if (acl !== null && acl !== undefined) queue.own.push(`<aclSubmitApps>${escaped(acl)}</aclSubmitApps>`);
    for (const [name, limit] of Object.entries(limits.userLimits ?? {}))
      queue.own.push(quota("user", name, Number(limit)));
    for (const [name, limit] of Object.entries(limits.groupLimits ?? {}))
      queue.own.push(quota("group", name, Number(limit)));
    if (limits.onlyCoordinators) queue.own.push("<onlyCoordinators>true</onlyCoordinators>");
  };
  declare(root, files.rootAclSubmit, files.rootLimits);
  for (const pool of files.pools) declare(queueOf(pool.name), pool.aclSubmit, pool);
  for (const { pool, tag, name, limit } of files.extraQuotas) queueOf(pool).own.push(quota(tag, name, limit));
  const rules = files.placement.map(
    (r) =>
      `<rule name="${r.rule}"${r.create === undefined ? "" : ` create="${r.create}"`}${r.queue === undefined ? "" : ` queue="${r.queue}"`}/>`,
  );
  const policy = rules.length === 0 ? "" : `<queuePlacementPolicy>${rules.join("")}</queuePlacementPolicy>`;
  return `<allocations>${queueXml("root", root)}${policy}</allocations>`;
}

const queueXml = (name: string, queue: Queue): string =>
  `<queue name="${name}">${queue.own.join("")}${[...queue.children].map(([n, q]) => queueXml(n, q)).join("")}</queue>`;

const quota = (tag: "user" | "group", name: string, limit: number): string =>
  `<${tag}QueryLimit><${tag}>${escaped(name)}</${tag}><totalCount>${limit}</totalCount></${tag}QueryLimit>`;

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
