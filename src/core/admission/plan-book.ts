/**
 * The plans of one membership version: which groups a kind of query is tried on, made once and looked up
 * after that (admission 6.2, 1.4).
 *
 * Looking up is on the path of every admission, so the last entry is remembered and the rest are maps from
 * objects and names. Queries that avoid blacklisted executors are rare and get plans of their own.
 */
import { type CandidateGroup, type Candidates, candidateGroups } from "../cluster/candidate-groups.ts";
import type { Membership } from "../cluster/membership.ts";
import { scheduleFor } from "../cluster/schedule.ts";
import type { HostBook } from "./host-book.ts";
import { type GroupGauge, Plan, type PlanFlags } from "./plan.ts";
import type { AdmissionRequest, RequestShape } from "./request.ts";

/** Placements remembered for one kind of narrow query; beyond it they are made anew. */
const MAX_PLACEMENTS = 4096;
/** Kinds of queries remembered; a caller that makes a shape for each query must not fill the memory. */
const MAX_SHAPES = 4096;

interface Entry {
  readonly shape: RequestShape;
  readonly coordinator: string;
  readonly pool: string;
  readonly onlyCoordinators: boolean;
  readonly candidates: Candidates;
  /** Shapes that use every executor have one placement. */
  readonly isWide: boolean;
  wide: readonly Plan[] | null;
  readonly byOffset: Map<number, readonly Plan[]>;
}

export type NoPlan = Exclude<Candidates["kind"], "groups">;
export type Plans = readonly Plan[] | NoPlan;

export class PlanBook {
  readonly membership: Membership;
  readonly #book: HostBook;
  readonly #gauges: ReadonlyMap<string, GroupGauge>;
  readonly #flags: PlanFlags;
  readonly #entries = new Map<RequestShape, Map<string, Map<string, Entry>>>();
  #last: Entry | null = null;

  constructor(membership: Membership, book: HostBook, gauges: ReadonlyMap<string, GroupGauge>, flags: PlanFlags) {
    this.membership = membership;
    this.#book = book;
    this.#gauges = gauges;
    this.#flags = flags;
  }

  /** hot: bench/decision. In name order; the caller balances. */
  plansFor(request: AdmissionRequest, onlyCoordinators: boolean): Plans {
    if (request.blacklistedExecutors.length > 0) return this.#plansAround(request, onlyCoordinators);
    let entry = this.#last;
    if (entry === null || !fits(entry, request, onlyCoordinators)) {
      entry = this.#entryFor(request, onlyCoordinators);
      this.#last = entry;
    }
    if (entry.candidates.kind !== "groups") return entry.candidates.kind;
    if (entry.isWide) {
      entry.wide ??= this.#make(entry.candidates.groups, request);
      return entry.wide;
    }
    return this.#placed(entry, entry.candidates.groups, request);
  }

  #entryFor(request: AdmissionRequest, onlyCoordinators: boolean): Entry {
    const { shape, coordinator, pool } = request;
    if (this.#entries.size >= MAX_SHAPES && !this.#entries.has(shape)) this.#entries.clear();
    const byCoordinator = getOrMake(this.#entries, shape, () => new Map<string, Map<string, Entry>>());
    const byPool = getOrMake(byCoordinator, coordinator, () => new Map<string, Entry>());
    const known = byPool.get(pool);
    if (known?.onlyCoordinators === onlyCoordinators) return known;
    const entry: Entry = {
      shape,
      coordinator,
      pool,
      onlyCoordinators,
      candidates: this.#candidates(request, onlyCoordinators),
      isWide: shape.executors === "all" || shape.coordinatorOnly,
      wide: null,
      byOffset: new Map(),
    };
    byPool.set(pool, entry);
    return entry;
  }

  #placed(entry: Entry, groups: readonly CandidateGroup[], request: AdmissionRequest): readonly Plan[] {
    const only = groups.length === 1 ? groups[0]!.usable.executors.length : 0;
    const offset = only > 0 ? request.placementOffset % only : request.placementOffset;
    const known = entry.byOffset.get(offset);
    if (known !== undefined) return known;
    if (entry.byOffset.size >= MAX_PLACEMENTS) entry.byOffset.clear();
    const plans = this.#make(groups, request);
    entry.byOffset.set(offset, plans);
    return plans;
  }

  #plansAround(request: AdmissionRequest, onlyCoordinators: boolean): Plans {
    const candidates = this.#candidates(request, onlyCoordinators);
    return candidates.kind === "groups" ? this.#make(candidates.groups, request) : candidates.kind;
  }

  #candidates(request: AdmissionRequest, onlyCoordinators: boolean): Candidates {
    const { coordinator, pool, shape, blacklistedExecutors } = request;
    const { coordinatorOnly } = shape;
    return candidateGroups(
      { coordinator, pool, onlyCoordinators, coordinatorOnly, blacklistedExecutors },
      this.membership,
    );
  }

  #make(groups: readonly CandidateGroup[], request: AdmissionRequest): readonly Plan[] {
    const { shape, placementOffset, pool } = request;
    const coordinator = this.membership.backend(request.coordinator)!;
    const { allCoordinators } = this.membership;
    return groups.map(({ usable, whole }) => {
      const schedule = scheduleFor({ shape, coordinator, group: usable, allCoordinators, placementOffset });
      return new Plan(schedule, whole, pool, this.#book, this.#gauges.get(whole.name) ?? null, this.#flags);
    });
  }
}

const fits = (entry: Entry, request: AdmissionRequest, onlyCoordinators: boolean): boolean =>
  entry.shape === request.shape &&
  entry.coordinator === request.coordinator &&
  entry.pool === request.pool &&
  entry.onlyCoordinators === onlyCoordinators;

function getOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
