/**
 * What one query of a class is charged in a pool of a scenario's cluster, from the scenario alone: for
 * explanations before, beside and after a run. The numbers are the core's.
 */
import type { ImpalaFlags } from "../config/impala-flags.ts";
import type { QueryClass, Scenario } from "../config/scenario.ts";
import { backendsOf } from "../config/scenario-cluster.ts";
import { type MemoryToAdmit, memoryToAdmit, usesDedicatedEstimate } from "../core/admission/memory-to-admit.ts";
import type { FragmentShape } from "../core/admission/request.ts";
import type { PoolConfig } from "../core/pool-config.ts";

/** For a coordinator that is like the first one, and the class's full width in the first group it would use. */
export function chargeOfClass(
  scenario: Scenario,
  queryClass: QueryClass,
  config: PoolConfig,
  flags: ImpalaFlags,
): MemoryToAdmit | null {
  const backends = backendsOf(scenario.cluster);
  const coordinator = backends.find((b) => b.isCoordinator);
  const first = backends.find((b) => b.isExecutor);
  if (coordinator === undefined || first === undefined) return null;
  const { shape } = queryClass;
  const group = backends.filter((b) => b.isExecutor && b.executorGroup.name === first.executorGroup.name);
  const width = shape.coordinatorOnly
    ? 0
    : shape.executors === "all"
      ? group.length
      : Math.min(shape.executors, group.length);
  const isAmong = coordinator.isExecutor && (width === group.length || shape.coordinatorOnly);
  const onExecutor = reservationOf(shape.fragments.filter((f) => f.runsOn === "executors"));
  const onCoordinator = reservationOf(shape.fragments.filter((f) => f.runsOn === "coordinator"));
  const instancesThere = shape.fragments.filter((f) => f.runsOn === "coordinator" || isAmong).length;
  const numBackends = isAmong ? Math.max(1, width) : width + 1;
  return memoryToAdmit(
    shape,
    {
      largestMinReservation: numBackends > 1 ? onExecutor : 0,
      coordMinReservation: onCoordinator + (isAmong ? onExecutor : 0),
      numBackends,
      dedicated: usesDedicatedEstimate(
        flags.use_dedicated_coordinator_estimates,
        { isExecutor: coordinator.isExecutor, numInstances: instancesThere },
        shape.stmtType,
      ),
      smallestExecutorLimit: Math.min(...group.map((b) => b.admitMemLimit)),
      coordinatorLimit: coordinator.admitMemLimit,
    },
    config,
    flags.clamp_query_mem_limit_backend_mem_limit,
  );
}

const reservationOf = (fragments: readonly FragmentShape[]): number =>
  fragments.reduce((sum, f) => sum + f.instancesPerHost * f.minReservationPerInstance + f.minReservationPerBackend, 0);
