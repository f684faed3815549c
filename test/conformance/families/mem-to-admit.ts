/** Family mem-to-admit: what a query is charged and held to (admission 2). */
import { cappedEstimate, memoryToAdmit, usesDedicatedEstimate } from "../../../src/core/admission/memory-to-admit.ts";
import { prettyBytes } from "../../../src/core/pretty.ts";
import type { FamilyRunner } from "../family.ts";
import { clampFlag, compare, type Json, poolConfigFrom, shapeFrom } from "./inputs.ts";

/** Instances on the coordinator for `coordinator_runs`: the exact number above one doesn't matter. */
const INSTANCES: Readonly<Record<string, number>> = {
  nothing: 0,
  "coordinator-fragment": 1,
  "executor-fragments": 2,
};

export const run: FamilyRunner = ({ input, expected }) => {
  const shape = shapeFrom(input.request);
  const placement = {
    largestMinReservation: input.request.largest_min_reservation ?? 0,
    coordMinReservation: input.request.coord_min_reservation ?? 0,
    numBackends: input.num_backends,
    dedicated: usesDedicatedEstimate(
      input.flags?.use_dedicated_coordinator_estimates ?? true,
      { isExecutor: !input.dedicated_coordinator, numInstances: INSTANCES[input.coordinator_runs] ?? 0 },
      shape.stmtType,
    ),
    smallestExecutorLimit: input.smallest_executor_admit_mem_limit,
    coordinatorLimit: input.coordinator_admit_mem_limit,
  };
  const m = memoryToAdmit(shape, placement, poolConfigFrom(input.limits), clampFlag(input));
  const got: Json = {
    executor: { mem_to_admit: m.perHost, mem_limit: m.memLimit, source: m.perHostSource },
    coordinator: { mem_to_admit: m.onCoordinator, mem_limit: m.coordinatorMemLimit, source: m.onCoordinatorSource },
    cluster_mem_to_admit: m.cluster,
    cluster_mem_text: prettyBytes(m.cluster),
    estimate_for_admission: cappedEstimate(shape.perHostMemEstimate, shape.options),
  };
  return compare(expected, onlyAsked(expected, got));
};

/** A side of which only some fields are expected is compared in those. */
function onlyAsked(expected: Json, got: Json): Json {
  const narrowed = { ...got };
  for (const side of ["executor", "coordinator"])
    if (expected[side] !== undefined)
      narrowed[side] = Object.fromEntries(Object.keys(expected[side]).map((key) => [key, got[side][key]]));
  return narrowed;
}
