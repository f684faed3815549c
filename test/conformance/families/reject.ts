/** Family reject: what refuses a query for good (admission 3). */

import type { RejectReason } from "../../../src/core/admission/reasons.ts";
import { rejectReasonText } from "../../../src/core/admission/reasons.ts";
import {
  isDisabled,
  isQueueFull,
  queueFull,
  rejectForPool,
  rejectForSchedule,
  reservationAboveLimit,
} from "../../../src/core/admission/reject.ts";
import type { FamilyRunner } from "../family.ts";
import {
  clampFlag,
  compare,
  compareDecision,
  type Json,
  memoryFrom,
  poolConfigFrom,
  scheduleFrom,
  staleFrom,
} from "./inputs.ts";

export const run: FamilyRunner = ({ input, expected }) => {
  if (input.stage === "pool-disabled") return compare(expected, { disabled: isDisabled(poolConfigFrom(input.limits)) });
  const reason = reasonFor(input);
  return compareDecision(expected, {
    decision: reason === null ? "pass" : "reject",
    reason: reason === null ? "" : rejectReasonText(reason),
  });
};

function reasonFor(input: Json): RejectReason | null {
  switch (input.stage) {
    case "reject-for-cluster":
      return forCluster(input);
    case "reject-for-schedule":
      return forSchedule(input);
    case "initial-reservation":
      return forReservation(input);
    default:
      throw new Error(`unknown stage ${input.stage}`);
  }
}

export function forCluster(input: Json): RejectReason | null {
  const config = poolConfigFrom(input.limits);
  const queued = input.state?.pools?.[input.pool ?? input.request?.pool]?.agg_num_queued ?? 0;
  const invalid = rejectForPool(config);
  if (invalid !== null || input.admit_from_queue || !isQueueFull(config, queued)) return invalid;
  return queueFull(config, queued, staleFrom(input.state, input.flags));
}

export function forSchedule(input: Json): RejectReason | null {
  const schedule = scheduleFrom(input.schedule, input.request);
  return rejectForSchedule({
    pool: input.request.pool,
    schedule,
    memory: memoryFrom(input.schedule.mem),
    config: poolConfigFrom(input.limits),
    options: schedule.shape.options,
    clampToHosts: clampFlag(input),
  });
}

function forReservation(input: Json): RejectReason | null {
  const above = reservationAboveLimit(
    {
      memLimit: input.executor.mem_limit,
      perHostSource: input.executor.source,
      coordinatorMemLimit: input.coordinator.mem_limit,
      onCoordinatorSource: input.coordinator.source,
    },
    { largestMinReservation: input.largest_min_reservation, coordMinReservation: input.coord_min_reservation },
    input.pool,
  );
  return above === null ? null : { rule: "REJ-B2b", ...above };
}
