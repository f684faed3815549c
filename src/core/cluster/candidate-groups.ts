/**
 * Which groups a query may run on, in the order they are tried (admission 6.2).
 *
 * The order of the steps is the point: unhealthy groups are dropped after the decision about the fallback
 * (T-40), and a blacklist empties a copy of a group, never the group itself (T-17).
 */
import { DEFAULT_GROUP, EMPTY_GROUP } from "./backend.ts";
import { ExecutorGroup } from "./executor-group.ts";
import type { Membership } from "./membership.ts";

/** One group to try: what may be used of it, and the whole of it for the host clamp (MEM-7, T-17). */
export interface CandidateGroup {
  readonly usable: ExecutorGroup;
  readonly whole: ExecutorGroup;
}

export type Candidates =
  | { readonly kind: "groups"; readonly groups: readonly CandidateGroup[] }
  | { readonly kind: "noCoordinator" }
  /** Global mode only (REJ-C2). */
  | { readonly kind: "coordinatorRemoved" }
  | { readonly kind: "noExecutors" }
  /** A coordinators-only pool while all coordinators are quiescing: the product's scheduler fails (REJ-C1). */
  | { readonly kind: "noBackends" };

export interface CandidateQuery {
  readonly coordinator: string;
  readonly pool: string;
  readonly onlyCoordinators: boolean;
  readonly coordinatorOnly: boolean;
  readonly blacklistedExecutors: readonly string[];
}

/** The reserved group without executors, always available. */
const THE_EMPTY_GROUP = new ExecutorGroup(EMPTY_GROUP, 1, []);

export function candidateGroups(query: CandidateQuery, membership: Membership): Candidates {
  if (membership.backend(query.coordinator) === undefined)
    return { kind: membership.removedCoordinators.has(query.coordinator) ? "coordinatorRemoved" : "noCoordinator" };
  const toTry = groupsToTry(query, membership);
  if (isBare(query, toTry)) return { kind: "noBackends" };
  const groups = toTry
    .map((whole) => ({ whole, usable: usablePart(whole, query.blacklistedExecutors) }))
    .filter(({ whole, usable }) => usable.executors.length > 0 || whole === THE_EMPTY_GROUP || usable === whole);
  return groups.length > 0 ? { kind: "groups", groups } : { kind: "noExecutors" };
}

/** Health isn't checked for that one group, so it can be without any member (6.2 item 2). */
const isBare = (query: CandidateQuery, toTry: readonly ExecutorGroup[]): boolean =>
  query.onlyCoordinators &&
  !query.coordinatorOnly &&
  query.blacklistedExecutors.length === 0 &&
  toTry.every((g) => g.executors.length === 0);

function groupsToTry(query: CandidateQuery, membership: Membership): readonly ExecutorGroup[] {
  if (query.onlyCoordinators) return [membership.allCoordinators];
  if (query.coordinatorOnly) return [THE_EMPTY_GROUP];
  return groupsOfPool(query.pool, membership.groups);
}

/** Name order; `default` only when no group of the pool exists at all, healthy or not (T-40, T-41). */
export function groupsOfPool(pool: string, groups: readonly ExecutorGroup[]): readonly ExecutorGroup[] {
  const own = groups.filter((g) => g.name.startsWith(`${pool}-`));
  const matching = own.length > 0 ? own : groups.filter((g) => g.name === DEFAULT_GROUP);
  return matching.filter((g) => g.isHealthy);
}

const usablePart = (group: ExecutorGroup, blacklisted: readonly string[]): ExecutorGroup =>
  blacklisted.length === 0 || group === THE_EMPTY_GROUP ? group : group.without(blacklisted);

/** What `--balance_queries_across_executor_groups` compares: sums over a group's executors. */
export interface FreeRoom {
  readonly mem: number;
  readonly slots: number;
}

/** More free memory first, then more free slots; ties keep the name order (admission 6.2 item 5). */
export function balanced<T>(groups: readonly T[], freeRoomOf: (group: T) => FreeRoom): T[] {
  const room = new Map(groups.map((g) => [g, freeRoomOf(g)]));
  return [...groups].sort((a, b) => {
    const [x, y] = [room.get(a)!, room.get(b)!];
    return y.mem - x.mem || y.slots - x.slots;
  });
}
