/**
 * What a prediction of waits starts from: who runs with what, who waits behind whom, and how often others come
 * (insight 5.1).
 *
 * Plain data of one moment. Nothing in it is later than `now`, and nothing of the future can get in: there is
 * no field for it.
 */
import type { StatestoreSpec } from "../../config/scenario.ts";
import { isReleased } from "../../core/admission/charge.ts";
import type { AdmissionController } from "../../core/admission/controller.ts";
import type { AdmissionQuery } from "../../core/admission/query.ts";
import type { QueueReason } from "../../core/admission/reasons.ts";
import type { RequestShape } from "../../core/admission/request.ts";
import type { BackendDescriptor } from "../../core/cluster/backend.ts";
import type { PoolConfig } from "../../core/pool-config.ts";
import type { Bytes, Instant, Millis } from "../../core/units.ts";
import { toInstant, toMicros } from "../../sim/event-queue.ts";

/** Who decides, and how the deciders hear of each other. */
export interface EtaCluster {
  readonly admission: "distributed" | "admissiond";
  readonly statestore: StatestoreSpec;
}

export interface EtaSnapshot extends EtaCluster, RecentTraffic {
  readonly now: Instant;
  readonly backends: readonly BackendDescriptor[];
  /** By pool name, of every pool that a controller knows. */
  readonly configs: Readonly<Record<string, PoolConfig>>;
  /** In order of admission. */
  readonly running: readonly RunningQuery[];
  /** In order of their enqueueing; each pool has a queue at each controller. */
  readonly queued: readonly QueuedQuery[];
}

/** What controllers do not hold themselves. */
export interface RecentTraffic {
  /** Who ended within the last `viewSpanOf`: somebody may not have heard of it yet. */
  readonly ended: readonly EndedQuery[];
  /** Who keeps coming, as often as of late. */
  readonly arrivals: readonly ArrivalRate[];
}

const NO_TRAFFIC: RecentTraffic = { ended: [], arrivals: [] };

interface AnyRequest {
  readonly queryClass: string;
  readonly pool: string;
  readonly coordinator: string;
  readonly user: string;
  readonly shape: RequestShape;
}

interface AnyQuery extends AnyRequest {
  readonly query: string;
  readonly placementOffset: number;
}

/** What somebody was let in with. */
export interface Held {
  readonly admittedAt: Instant;
  readonly perHost: Bytes;
  readonly onCoordinator: Bytes;
}

export interface RunningQuery extends AnyQuery, Held {
  /** Positions of its schedule that are free again. */
  readonly released: readonly number[];
}

export interface EndedQuery extends AnyQuery, Held {
  readonly endedAt: Instant;
}

export interface QueuedQuery extends AnyQuery {
  readonly enqueuedAt: Instant;
  /** In force for it whatever the configuration is by now. */
  readonly timeout: Millis;
  readonly reason: QueueReason | null;
}

export interface ArrivalRate extends AnyRequest {
  readonly perMs: number;
}

/** Which queue a query waits in: every controller has its own for each pool. */
export const queueOf = (s: EtaCluster, q: { readonly pool: string; readonly coordinator: string }): string =>
  s.admission === "admissiond" ? q.pool : `${q.pool}\n${q.coordinator}`;

/** Of those who run or wait, how many coordinators decide for themselves. */
export const decidingCoordinators = (s: EtaSnapshot): number =>
  s.admission === "admissiond" ? 1 : s.backends.filter((b) => b.isCoordinator).length;

/** A difference of two moments without what subtracting left behind: moments are whole microseconds. */
export const wholeMicros = (ms: number): number => toInstant(toMicros(ms));

/** Exchanges of one subscriber after which it has heard of whatever came before them, and everybody of it. */
const VIEW_PERIODS = 3;

/** From one exchange of a subscriber to its next, milliseconds. */
export const exchangePeriodOf = ({ every, publishLag, receiveLag }: StatestoreSpec): number =>
  every + publishLag + receiveLag;

/** What is older than that, all controllers know alike; milliseconds. */
export const viewSpanOf = (statestore: StatestoreSpec): number => VIEW_PERIODS * exchangePeriodOf(statestore);

export const queryOf = (a: AdmissionQuery, queryClass: string): AnyQuery => ({
  query: a.id,
  queryClass,
  pool: a.pool.name,
  coordinator: a.request.coordinator,
  user: a.request.user,
  shape: a.request.shape,
  placementOffset: a.request.placementOffset,
});

export const heldBy = (a: AdmissionQuery): Held => ({
  admittedAt: a.decidedAt,
  perHost: a.memory!.perHost,
  onCoordinator: a.memory!.onCoordinator,
});

/**
 * From live controllers: all of a cluster's, or the one of `admissiond`. Whoever belongs to a coordinator that is
 * gone is left out: nobody waits for an answer, and its controller is about to find out (admission 9.5, T-59).
 */
export function snapshotOf(
  controllers: readonly AdmissionController[],
  now: Instant,
  classOf: (a: AdmissionQuery) => string,
  cluster: EtaCluster,
  traffic: RecentTraffic = NO_TRAFFIC,
): EtaSnapshot {
  const backends = controllers[0]?.membership.backends ?? [];
  const isThere = (q: AnyRequest): boolean => backends.some((b) => b.address === q.coordinator);
  const running = controllers
    .flatMap((c) => [...c.runningQueries()])
    .map(
      (a): RunningQuery => ({
        ...queryOf(a, classOf(a)),
        ...heldBy(a),
        released: a.plan!.schedule.backends.map((_, i) => i).filter((i) => isReleased(a, i)),
      }),
    );
  const pools = controllers.flatMap((c) => c.pools);
  const queued = pools
    .flatMap((p) => [...p.queue])
    .map(
      (a): QueuedQuery => ({
        ...queryOf(a, classOf(a)),
        enqueuedAt: a.queuedAt,
        timeout: a.timeout,
        reason: a.latestReason,
      }),
    );
  const { admission, statestore } = cluster;
  return {
    now,
    admission,
    statestore,
    backends,
    configs: Object.fromEntries(pools.filter((p) => p.config !== null).map((p) => [p.name, p.config!] as const)),
    running: running.filter(isThere).sort((a, b) => a.admittedAt - b.admittedAt),
    queued: queued.filter(isThere).sort((a, b) => a.enqueuedAt - b.enqueuedAt),
    ended: traffic.ended.filter(isThere),
    arrivals: traffic.arrivals.filter(isThere),
  };
}
