/**
 * One version of the cluster as a controller sees it (admission 6.1): immutable, so that a decision, a
 * queued query and a release can each hold on to the version they were made with.
 *
 * Executors and coordinators stand in address order, whatever order the caller had them in; everything
 * downstream (which host a message names, where a narrow query lands) relies on it.
 */
import { ALL_COORDINATORS_GROUP, type BackendDescriptor } from "./backend.ts";
import { ExecutorGroup } from "./executor-group.ts";

export interface Membership {
  /** Grows by at least 1 with every change; schedules are rebuilt when it does (admission 6.2). */
  readonly version: number;
  /** In address order, quiescing ones included: their queries still run. */
  readonly backends: readonly BackendDescriptor[];
  /** Neither quiescing nor blacklisted executors, by group name ascending; never an empty group. */
  readonly groups: readonly ExecutorGroup[];
  /** All coordinators that are not quiescing (admission 6.2). */
  readonly allCoordinators: ExecutorGroup;
  /** Global mode: coordinators known to have left (REJ-C2), oldest first. */
  readonly removedCoordinators: ReadonlySet<string>;
  /** This coordinator's own blacklist, in address order: the profile key `Blacklisted Executors`. */
  readonly blacklisted: readonly string[];
  backend(address: string): BackendDescriptor | undefined;
}

export interface MembershipInput {
  readonly version: number;
  readonly backends: readonly BackendDescriptor[];
  /** Executors this coordinator has blacklisted for itself (admission 6.1); they belong to no group. */
  readonly blacklisted?: ReadonlySet<string>;
  readonly removedCoordinators?: ReadonlySet<string>;
}

const NOBODY: ReadonlySet<string> = new Set();

export const byAddress = (a: BackendDescriptor, b: BackendDescriptor): number =>
  a.address < b.address ? -1 : a.address > b.address ? 1 : 0;

export function membershipOf(input: MembershipInput): Membership {
  const backends = [...input.backends].sort(byAddress);
  const byName = new Map(backends.map((b) => [b.address, b]));
  const blacklisted = input.blacklisted ?? NOBODY;
  return {
    version: input.version,
    backends,
    groups: groupsOf(backends, blacklisted),
    allCoordinators: new ExecutorGroup(
      ALL_COORDINATORS_GROUP,
      1,
      backends.filter((b) => b.isCoordinator && !b.isQuiescing),
    ),
    removedCoordinators: input.removedCoordinators ?? NOBODY,
    blacklisted: [...blacklisted].sort(),
    backend: (address) => byName.get(address),
  };
}

/**
 * The first executor in address order decides a group's minimum size; one that states another size is
 * left out with a warning in the product, and silently here (admission 6.1).
 */
function groupsOf(backends: readonly BackendDescriptor[], blacklisted: ReadonlySet<string>): ExecutorGroup[] {
  const members = new Map<string, { minSize: number; executors: BackendDescriptor[] }>();
  for (const b of backends) {
    if (!b.isExecutor || b.isQuiescing || blacklisted.has(b.address)) continue;
    const { name, minSize } = b.executorGroup;
    const group = members.get(name);
    if (group === undefined) members.set(name, { minSize, executors: [b] });
    else if (group.minSize === minSize) group.executors.push(b);
  }
  return [...members.keys()]
    .sort()
    .map((name) => new ExecutorGroup(name, members.get(name)!.minSize, members.get(name)!.executors));
}

/** The view before anything is known: nobody can be scheduled and nothing is dequeued (T-10). */
export const EMPTY_MEMBERSHIP: Membership = membershipOf({ version: 1, backends: [] });

/** Default and most of `--cluster_membership_retained_removed_coords`, which is 1 at least (admission 9.5). */
export const MAX_REMOVED_COORDINATORS = 1000;

/**
 * Remembers who left, for global mode: the last `limit` coordinators (admission 9.5). Beyond it the reason
 * degrades to "not registered" and the entry blocks the head.
 */
export function withRemovedCoordinators(
  before: Membership,
  now: readonly BackendDescriptor[],
  limit: number = MAX_REMOVED_COORDINATORS,
): ReadonlySet<string> {
  const present = new Set(now.map((b) => b.address));
  const removed = new Set([...before.removedCoordinators].filter((address) => !present.has(address)));
  for (const b of before.backends) if (b.isCoordinator && !present.has(b.address)) removed.add(b.address);
  return new Set([...removed].slice(-limit));
}
