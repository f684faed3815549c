/** Family dequeue: how many a pass may take, and what one pass does with a queue (admission 5.5). */
import { AdmissionController } from "../../../src/core/admission/controller.ts";
import { controllerOptions } from "../../../src/core/admission/controller-options.ts";
import { maxToDequeue } from "../../../src/core/admission/dequeue-pass.ts";
import type { AdmissionQuery } from "../../../src/core/admission/query.ts";
import { queueReasonText, rejectReasonText } from "../../../src/core/admission/reasons.ts";
import { DEFAULT_ADMISSION_OPTIONS, type RequestShape } from "../../../src/core/admission/request.ts";
import type { BackendDescriptor } from "../../../src/core/cluster/backend.ts";
import { membershipOf } from "../../../src/core/cluster/membership.ts";
import { DEFAULT_POOL_CONFIG } from "../../../src/core/pool-config.ts";
import type { TopicEntry } from "../../../src/core/statestore/topic.ts";
import { type Bytes, GiB, instant } from "../../../src/core/units.ts";
import type { FamilyRunner, Verdict } from "../family.ts";
import { compare, type Json, poolConfigFrom, textMatches } from "./inputs.ts";

const COORDINATOR = "host0:25000";

export const run: FamilyRunner = ({ input, expected }) =>
  input.kind === "max-to-dequeue" ? compare(expected, { max_to_dequeue: budget(input) }) : onePass(input, expected);

const budget = (input: Json): number =>
  maxToDequeue(
    poolConfigFrom(input.limits).maxRequests,
    input.agg_num_running,
    input.local_num_queued,
    input.agg_num_queued,
  );

function onePass(input: Json, expected: Json): Verdict {
  const controller = queuedUp(input);
  const removed: Json[] = [];
  const gone = (q: AdmissionQuery, outcome: string, reason = "") => removed.push({ id: q.id, outcome, reason });
  controller.dequeuePass(instant(1), {
    admitted: (q) => gone(q, "admitted"),
    rejected: (q) => gone(q, "rejected", rejectReasonText(q.rejectReason!)),
    cancelled: (q) => gone(q, "cancelled"),
    stillQueued: () => undefined,
  });
  const queue = [...controller.pool(input.pool)!.queue];
  const got = { removed, remaining: queue.map((q) => q.id) };
  const holds =
    JSON.stringify(got.remaining) === JSON.stringify(expected.remaining) &&
    removed.length === expected.removed.length &&
    removed.every((r, i) => sameRemoval(expected.removed[i], r)) &&
    textMatches(expected, queue[0] === undefined ? "" : queueReasonText(queue[0].latestReason!), "head_reason");
  return holds ? { kind: "pass" } : { kind: "fail", expected, got };
}

const sameRemoval = (expected: Json, got: Json): boolean =>
  expected.id === got.id && expected.outcome === got.outcome && textMatches(expected, got.reason);

/** Everybody arrives before any executor is there and so has to queue; then hosts, limits and figures come. */
function queuedUp(input: Json): AdmissionController {
  const controller = new AdmissionController(controllerOptions({ hostId: COORDINATOR, mode: "global" }));
  for (const q of input.queue) {
    const query = submit(controller, input.pool, q);
    if (q.cancelled) controller.markCancelled(query);
  }
  const pool = controller.pool(input.pool)!;
  pool.config = poolConfigFrom(input.limits);
  pool.stats.localMemAdmitted = input.state?.local_mem_admitted ?? 0;
  const most = Math.max(1, ...input.queue.map((q: Json) => q.hosts));
  controller.setMembership(membershipOf({ version: 2, backends: Array.from({ length: most }, (_, i) => host(i)) }));
  controller.applyUpdate({ isDelta: true, entries: [runningElsewhere(input)] }, instant(1));
  return controller;
}

function submit(controller: AdmissionController, pool: string, q: Json): AdmissionQuery {
  const shape: RequestShape = {
    stmtType: "DML",
    perHostMemEstimate: 0 as Bytes,
    dedicatedCoordMemEstimate: 0 as Bytes,
    isTrivial: false,
    coordinatorOnly: false,
    includeAllCoordinators: false,
    executors: q.hosts,
    fragments: [
      {
        runsOn: "executors",
        instancesPerHost: 1,
        minReservationPerInstance: 0 as Bytes,
        minReservationPerBackend: 0 as Bytes,
        threadReservationPerInstance: 1,
        isDominant: false,
      },
    ],
    options: { ...DEFAULT_ADMISSION_OPTIONS, memLimit: q.mem_to_admit_per_host },
    maxSlotsPerExecutor: null,
  };
  return controller.submit(
    {
      queryId: q.id,
      coordinator: COORDINATOR,
      pool,
      user: "user1",
      userGroups: [],
      shape,
      blacklistedExecutors: [],
      placementOffset: 0,
    },
    DEFAULT_POOL_CONFIG,
    DEFAULT_POOL_CONFIG,
    instant(0),
  );
}

const host = (i: number): BackendDescriptor => ({
  address: `host${i}:25000`,
  isCoordinator: i === 0,
  isExecutor: true,
  isQuiescing: false,
  admitMemLimit: (1024 * GiB) as Bytes,
  admissionSlots: 64,
  executorGroup: { name: "default", minSize: 1 },
});

/** The state's running queries that this controller didn't let in. */
const runningElsewhere = (input: Json): TopicEntry => ({
  kind: "pool",
  pool: input.pool,
  host: "host9:25000",
  stats: {
    numAdmittedRunning: input.state?.agg_num_running ?? 0,
    numQueued: 0,
    backendMemReserved: (input.state?.agg_mem_reserved ?? 0) as Bytes,
    userLoads: new Map(),
    heavyQueries: [],
    minMemConsumed: 0 as Bytes,
    maxMemConsumed: 0 as Bytes,
    totalMemConsumed: 0 as Bytes,
    numRunning: 0,
  },
});
