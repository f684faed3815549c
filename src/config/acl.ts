/**
 * The text of `aclSubmitApps` (pool-configuration 1.6): users, one blank, groups.
 *
 * Nothing is trimmed before the first blank is looked for, so a blank in front makes everything groups, and a
 * line break does not separate. The check below is for one pool; who climbs the ancestors is the directory.
 */
import { javaTrim } from "./java-text.ts";

export interface Acl {
  readonly everybody: boolean;
  readonly users: ReadonlySet<string>;
  readonly groups: ReadonlySet<string>;
}

const NO_NAMES: ReadonlySet<string> = new Set();
export const NOBODY: Acl = { everybody: false, users: NO_NAMES, groups: NO_NAMES };
export const EVERYBODY: Acl = { everybody: true, users: NO_NAMES, groups: NO_NAMES };

export function parseAcl(text: string): Acl {
  const blank = text.indexOf(" ");
  const parts = blank < 0 ? [text] : [text.slice(0, blank), text.slice(blank + 1)];
  if (parts.some((part) => javaTrim(part) === "*")) return EVERYBODY;
  return { everybody: false, users: namesIn(parts[0] ?? ""), groups: namesIn(parts[1] ?? "") };
}

const namesIn = (list: string): ReadonlySet<string> =>
  new Set(
    list
      .split(",")
      .map(javaTrim)
      .filter((name) => name !== ""),
  );

export const grants = (acl: Acl, user: string, groups: readonly string[]): boolean =>
  acl.everybody || acl.users.has(user) || groups.some((group) => acl.groups.has(group));

export const isNobody = (acl: Acl): boolean => !acl.everybody && acl.users.size === 0 && acl.groups.size === 0;
