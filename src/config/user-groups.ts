/**
 * Who is in which groups, in the order in which they are consulted: the first is the primary group.
 *
 * The product asks the operating system; an emulator has a table, or the text of the product's test flag
 * `--injected_group_members_debug_only` (`group1:userA,userB;group2:userC`).
 */

export interface UserGroups {
  /** By short name; null when nothing is known about the user, which the group rules tell apart from no groups. */
  groupsOf(user: string): readonly string[] | null;
}

export const NO_GROUPS: UserGroups = { groupsOf: () => null };

export const groupTable = (table: Readonly<Record<string, readonly string[]>>): UserGroups => ({
  groupsOf: (user) => (Object.hasOwn(table, user) ? (table[user] ?? null) : null),
});

export function injectedGroups(flag: string): UserGroups {
  const table = new Map<string, string[]>();
  for (const entry of flag.split(";")) {
    const colon = entry.indexOf(":");
    if (colon < 0) continue;
    const group = entry.slice(0, colon).trim();
    for (const user of entry
      .slice(colon + 1)
      .split(",")
      .map((name) => name.trim())) {
      if (user !== "") table.set(user, [...(table.get(user) ?? []), group]);
    }
  }
  return { groupsOf: (user) => table.get(user) ?? null };
}
