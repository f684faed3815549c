/**
 * A controller's figures under the product's names (admission 10.4), in pool order. Values only; how they are
 * written is the surface's.
 */
import type { Membership } from "../cluster/membership.ts";
import type { AdmissionService } from "./admission-service.ts";
import type { AdmissionController } from "./controller.ts";
import type { Pool } from "./pool.ts";

export type MetricKind = "counter" | "gauge" | "property" | "set";

export interface Metric {
  /** With the pool's or group's name in place of `$0`. */
  readonly name: string;
  readonly kind: MetricKind;
  readonly value: number | boolean | readonly string[];
}

export function admissionMetrics(controller: AdmissionController): Metric[] {
  return [
    ...controller.pools.flatMap((pool) => poolMetrics(pool, controller)),
    ...[...controller.groupLoads].map(
      ([group, gauge]): Metric => ({
        name: `admission-controller.executor-group.num-queries-executing.${group}`,
        kind: "gauge",
        value: gauge.value,
      }),
    ),
    {
      name: "admission-controller.total-dequeue-failed-coordinator-limited",
      kind: "counter",
      value: controller.totalDequeueFailedCoordinatorLimited,
    },
  ];
}

/** The cluster as one process sees it (admission 10.4); group-set figures need the sets and come from there. */
export function membershipMetrics({ backends, groups }: Membership): Metric[] {
  const gauge = (name: string, value: number): Metric => ({ name: `cluster-membership.${name}`, kind: "gauge", value });
  return [
    gauge("backends.total", backends.length),
    gauge("executor-groups.total", groups.length),
    gauge("executor-groups.total-healthy", groups.filter((g) => g.isHealthy).length),
  ];
}

/** Global mode: queries that the service remembers. */
export const serviceMetrics = (service: AdmissionService): Metric[] => [
  { name: "admission-control-service.num-queries", kind: "gauge", value: service.numQueries },
  { name: "admission-control-service.num-queries-high-water-mark", kind: "gauge", value: service.highWaterMark },
];

function poolMetrics(pool: Pool, controller: AdmissionController): Metric[] {
  const { stats: s, config } = pool;
  const metric = (key: string, kind: MetricKind, value: Metric["value"]): Metric => ({
    name: `admission-controller.${key}.${pool.name}`,
    kind,
    value,
  });
  return [
    metric("total-admitted", "counter", s.totalAdmitted),
    metric("total-queued", "counter", s.totalQueued),
    metric("total-dequeued", "counter", s.totalDequeued),
    metric("total-rejected", "counter", s.totalRejected),
    metric("total-timed-out", "counter", s.totalTimedOut),
    metric("total-released", "counter", s.totalReleased),
    metric("time-in-queue-ms", "counter", s.timeInQueueMs),
    metric("agg-num-running", "gauge", s.aggRunning),
    metric("agg-num-queued", "gauge", s.aggQueued),
    metric("agg-mem-reserved", "gauge", s.aggMemReserved),
    metric("agg-current-users", "set", s.aggLoads.users()),
    metric("local-mem-admitted", "gauge", s.localMemAdmitted),
    metric("local-num-admitted-running", "gauge", s.localRunning),
    metric("local-num-queued", "gauge", s.localQueued),
    metric("local-backend-mem-usage", "gauge", s.published.memUsage),
    metric("local-backend-mem-reserved", "gauge", s.localMemReserved),
    metric("local-current-users", "set", s.localLoads.users()),
    // As of the last submission to the pool; 0 and false before the first (5.7).
    metric("pool-max-mem-resources", "gauge", config?.maxMemResources ?? 0),
    metric("pool-max-requests", "gauge", config?.maxRequests ?? 0),
    metric("pool-max-queued", "gauge", config?.maxQueued ?? 0),
    metric("pool-queue-timeout", "gauge", config === null ? 0 : controller.timeoutFor(config)),
    metric("pool-max-query-mem-limit", "gauge", config?.maxQueryMemLimit ?? 0),
    metric("pool-min-query-mem-limit", "gauge", config?.minQueryMemLimit ?? 0),
    metric("pool-clamp-mem-limit-query-option", "property", config?.clampMemLimitQueryOption ?? false),
    metric("pool-max-query-cpu-core-per-node-limit", "gauge", config?.maxQueryCpuCorePerNodeLimit ?? 0),
    metric("pool-max-query-cpu-core-coordinator-limit", "gauge", config?.maxQueryCpuCoreCoordinatorLimit ?? 0),
  ];
}
