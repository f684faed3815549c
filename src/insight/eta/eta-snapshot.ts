/**
 * What a prediction of waits starts from: who runs with what, who waits behind whom (insight 5.1).
 *
 * Plain data of one moment. Nothing in it is later than `now`, and nothing of the future can get in: there is
 * no field for it.
 */

import { isReleased } from "../../core/admission/charge.ts";
import type { AdmissionController } from "../../core/admission/controller.ts";
import type { AdmissionQuery } from "../../core/admission/query.ts";
import type { QueueReason } from "../../core/admission/reasons.ts";
import type { RequestShape } from "../../core/admission/request.ts";
import type { BackendDescriptor } from "../../core/cluster/backend.ts";
import type { PoolConfig } from "../../core/pool-config.ts";
import type { Bytes, Instant, Millis } from "../../core/units.ts";

export interface EtaSnapshot {
  readonly now: Instant;
  readonly backends: readonly BackendDescriptor[];
  /** By pool name, of every pool that has a queue. */
  readonly configs: Readonly<Record<string, PoolConfig>>;
  /** In order of admission. */
  readonly running: readonly RunningQuery[];
  /** In order of their enqueueing; queues of one pool are one queue. */
  readonly queued: readonly QueuedQuery[];
  /** More than one controller decides for these pools: each has a queue of its own, and its view lags. */
  readonly controllers: number;
}

interface AnyQuery {
  readonly query: string;
  readonly queryClass: string;
  readonly pool: string;
  readonly coordinator: string;
  readonly user: string;
  readonly shape: RequestShape;
  readonly placementOffset: number;
}

export interface RunningQuery extends AnyQuery {
  readonly admittedAt: Instant;
  readonly perHost: Bytes;
  readonly onCoordinator: Bytes;
  /** Positions of its schedule that are free again. */
  readonly released: readonly number[];
}

export interface QueuedQuery extends AnyQuery {
  readonly enqueuedAt: Instant;
  /** In force for it whatever the configuration is by now. */
  readonly timeout: Millis;
  readonly reason: QueueReason | null;
}

/** From live controllers: one of a coordinator, the one of `admissiond`, or all of a cluster's. */
export function snapshotOf(
  controllers: readonly AdmissionController[],
  now: Instant,
  classOf: (a: AdmissionQuery) => string,
): EtaSnapshot {
  const common = (a: AdmissionQuery): AnyQuery => ({
    query: a.id,
    queryClass: classOf(a),
    pool: a.pool.name,
    coordinator: a.request.coordinator,
    user: a.request.user,
    shape: a.request.shape,
    placementOffset: a.request.placementOffset,
  });
  const running = controllers
    .flatMap((c) => [...c.runningQueries()])
    .map(
      (a): RunningQuery => ({
        ...common(a),
        admittedAt: a.decidedAt,
        perHost: a.memory!.perHost,
        onCoordinator: a.memory!.onCoordinator,
        released: a.plan!.schedule.backends.map((_, i) => i).filter((i) => isReleased(a, i)),
      }),
    );
  const pools = controllers.flatMap((c) => c.pools);
  const queued = pools
    .flatMap((p) => [...p.queue])
    .map(
      (a): QueuedQuery => ({
        ...common(a),
        enqueuedAt: a.queuedAt,
        timeout: a.timeout,
        reason: a.latestReason,
      }),
    );
  const configs = pools.filter((p) => p.config !== null && p.queue.length > 0).map((p) => [p.name, p.config!] as const);
  return {
    now,
    backends: controllers[0]?.membership.backends ?? [],
    configs: Object.fromEntries(configs),
    running: running.sort((a, b) => a.admittedAt - b.admittedAt),
    queued: queued.sort((a, b) => a.enqueuedAt - b.enqueuedAt),
    controllers: controllers.length,
  };
}
