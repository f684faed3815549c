/** Family can-admit: whether a query may run now (admission 4), check by check and as a whole submission. */
import {
  type AdmitCheck,
  hostMemoryTaken,
  isCoordinatorShort,
  poolMemoryTaken,
  reservationTooLarge,
  slotsTaken,
  whyNotNow,
} from "../../../src/core/admission/can-admit.ts";
import { MAX_TRIVIAL_RUNNING } from "../../../src/core/admission/pool-stats.ts";
import { quotaReason } from "../../../src/core/admission/quotas.ts";
import {
  type QueueReason,
  queueReasonText,
  type RejectReason,
  rejectReasonText,
} from "../../../src/core/admission/reasons.ts";
import type { FamilyRunner } from "../family.ts";
import {
  compareDecision,
  hostsFrom,
  type Json,
  memoryFrom,
  poolConfigFrom,
  scheduleFrom,
  staleFrom,
} from "./inputs.ts";
import { forCluster, forSchedule } from "./reject.ts";

export const run: FamilyRunner = ({ input, expected }) => compareDecision(expected, decide(input));

interface Decided {
  readonly decision: string;
  readonly reason: string;
  readonly coordinator_resource_limited: boolean;
}

const plain = (decision: string, reason = ""): Decided => ({ decision, reason, coordinator_resource_limited: false });

function decide(input: Json): Decided {
  return input.stage === "submit"
    ? decideSubmission(input)
    : decideCheck(input, checkOf(input, input.admit_from_queue));
}

function decideCheck(input: Json, check: AdmitCheck): Decided {
  const reason = failing(input.stage, check);
  if (reason === null) return plain("admit");
  return {
    decision: "queue",
    reason: queueReasonText(reason),
    coordinator_resource_limited: isCoordinatorShort(reason, check.schedule),
  };
}

function failing(stage: string, check: AdmitCheck): QueueReason | null {
  switch (stage) {
    case "available-slots":
      return slotsTaken(check);
    case "available-memory":
      return poolMemoryTaken(check) ?? hostMemoryTaken(check) ?? reservationTooLarge(check);
    case "can-admit-request":
    case "submit":
      return whyNotNow(check);
    default:
      throw new Error(`unknown stage ${stage}`);
  }
}

/** All checks in order for a newly arrived query. */
function decideSubmission(input: Json): Decided {
  const refused = forCluster(input);
  if (refused !== null) return plain("reject", rejectReasonText(refused));
  const running = input.state?.pools?.[input.request.pool]?.local_trivial_running ?? 0;
  if (input.trivial && running + 1 <= MAX_TRIVIAL_RUNNING) return plain("admit-trivial");
  const never = forSchedule(input);
  if (never !== null) return plain("reject", rejectReasonText(never));
  const overQuota = quotaOf(input);
  if (overQuota !== null) return plain("reject", rejectReasonText(overQuota));
  return decideCheck(input, checkOf(input, false));
}

/** Loads of the user over the cluster; groups come from the flag that injects them. */
function quotaOf(input: Json): RejectReason | null {
  const { pool, user = "" } = input.request;
  const members: Json[] = input.flags?.injected_group_members ?? [];
  return quotaReason({
    pool,
    user,
    groups: members.filter((g) => g.members.includes(user)).map((g) => g.group),
    config: poolConfigFrom(input.limits),
    rootConfig: poolConfigFrom(input.root_limits),
    poolLoad: input.state?.pools?.[pool]?.agg_user_loads?.[user] ?? 0,
    rootLoad: input.state?.root_user_loads?.[user] ?? 0,
  });
}

function checkOf(input: Json, fromQueue: boolean | undefined): AdmitCheck {
  const pool = input.state?.pools?.[input.request.pool] ?? {};
  return {
    pool: {
      name: input.request.pool,
      localQueued: pool.local_num_queued ?? 0,
      aggRunning: pool.agg_num_running ?? 0,
      aggQueued: pool.agg_num_queued ?? 0,
      effectiveMemReserved: Math.max(pool.agg_mem_reserved ?? 0, pool.local_mem_admitted ?? 0),
    },
    hosts: hostsFrom(input.state),
    schedule: scheduleFrom(input.schedule, input.request),
    memory: memoryFrom(input.schedule.mem),
    config: poolConfigFrom(input.limits),
    fromQueue: fromQueue ?? false,
    stale: staleFrom(input.state, input.flags),
  };
}
