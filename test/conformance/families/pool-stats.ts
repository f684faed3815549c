/** Family pool-stats: the figures of one coordinator, moved by single operations (admission 7). */
import { AdmissionController } from "../../../src/core/admission/controller.ts";
import { controllerOptions } from "../../../src/core/admission/controller-options.ts";
import { NO_USAGE, type PoolStats } from "../../../src/core/admission/pool-stats.ts";
import { type PoolFigures, parseTopicKey, type TopicEntry } from "../../../src/core/statestore/topic.ts";
import { type Bytes, instant } from "../../../src/core/units.ts";
import type { FamilyRunner, Verdict } from "../family.ts";
import { compare, type Json } from "./inputs.ts";

export const run: FamilyRunner = ({ input }) => {
  const controller = new AdmissionController(controllerOptions({ hostId: input.local_host }));
  for (const [i, op] of input.ops.entries()) {
    const verdict = op.op === "check" ? check(controller, op) : apply(controller, op);
    if (verdict?.kind === "fail") return { ...verdict, expected: { op: i, ...(verdict.expected as object) } };
  }
  return { kind: "pass" };
};

function statsOf(controller: AdmissionController, pool: string): PoolStats {
  if (controller.pool(pool) === undefined) controller.setBackendUsage(pool, NO_USAGE);
  return controller.pool(pool)!.stats;
}

function apply(controller: AdmissionController, op: Json): undefined {
  if (op.op === "topic-update") {
    controller.applyUpdate({ isDelta: op.is_delta, entries: op.entries.flatMap(entryFrom) }, instant(1));
    return;
  }
  const stats = statsOf(controller, op.pool);
  switch (op.op) {
    case "queue":
      stats.queue();
      break;
    case "dequeue":
      stats.dequeue(op.timed_out);
      break;
    case "increment-user":
      stats.countUser(op.user);
      break;
    case "decrement-user":
      stats.uncountUser(op.user);
      break;
    case "admit":
      stats.admit(op.cluster_mem, op.trivial);
      if (op.track_per_user && !op.was_queued) stats.countUser(op.user);
      break;
    case "release-mem":
      stats.releaseMem(op.bytes);
      break;
    case "release-query":
      stats.releaseQuery(op.peak_mem, op.trivial);
      if (op.user !== "") stats.uncountUser(op.user);
      break;
    case "wait-time":
      stats.countWait(op.ms);
      break;
    case "reset-informational":
      stats.resetInformational();
      break;
    case "set-local-user-load":
      stats.setLocalLoad(op.user, op.load ?? op.value ?? op.count);
      break;
    case "update-aggregates":
      controller.applyUpdate({ isDelta: true, entries: [] }, instant(1));
      break;
    default:
      throw new Error(`unknown op ${op.op}`);
  }
}

/** Keys that can't be parsed are ignored, as a reader does. */
function entryFrom(e: Json): TopicEntry[] {
  const key = parseTopicKey(e.key);
  if (key === null) return [];
  if (key.kind === "hosts") return [{ ...key, stats: e.deleted ? null : hostFigures(e.stats) }];
  return [{ ...key, stats: e.deleted ? null : poolFigures(e.stats) }];
}

function hostFigures(stats: Json) {
  const hosts = Object.keys(stats);
  const column = (figure: string) => hosts.map((h) => stats[h][figure] ?? 0);
  return {
    hosts,
    memReserved: column("mem_reserved"),
    memAdmitted: column("mem_admitted"),
    numAdmitted: column("num_admitted"),
    slotsInUse: column("slots_in_use"),
  };
}

const poolFigures = (stats: Json): PoolFigures => ({
  numAdmittedRunning: stats.num_admitted_running ?? 0,
  numQueued: stats.num_queued ?? 0,
  backendMemReserved: (stats.backend_mem_reserved ?? 0) as Bytes,
  userLoads: new Map(Object.entries<number>(stats.user_loads ?? {})),
  heavyQueries: [],
  minMemConsumed: 0 as Bytes,
  maxMemConsumed: 0 as Bytes,
  totalMemConsumed: 0 as Bytes,
  numRunning: 0,
});

function check(controller: AdmissionController, expected: Json): Verdict {
  for (const [name, figures] of Object.entries<Json>(expected.pools ?? {})) {
    const verdict = compare(figures, poolFiguresOf(statsOf(controller, name)));
    if (verdict.kind !== "pass") return verdict;
  }
  const { hosts } = controller;
  for (const [host, figures] of Object.entries<Json>(expected.hosts ?? {})) {
    const verdict = compare(figures, hostFiguresOf(controller, host));
    if (verdict.kind !== "pass") return verdict;
  }
  const { pools: _pools, hosts: _hosts, op: _op, ...rest } = expected;
  return compare(rest, { host_count: hosts.size, root_user_loads: Object.fromEntries(controller.rootUserLoads) });
}

/** Asking doesn't make a host known. */
function hostFiguresOf({ hosts }: AdmissionController, host: string): Json {
  if (!hosts.knows(host)) return { mem_reserved: 0, mem_admitted: 0, num_admitted: 0, slots_in_use: 0 };
  const h = hosts.host(host);
  return {
    mem_reserved: hosts.memReserved[h],
    mem_admitted: hosts.admittedBySelf(h),
    num_admitted: hosts.numAdmittedBySelf(h),
    slots_in_use: hosts.slotsBySelf(h),
  };
}

const poolFiguresOf = (s: PoolStats): Json => ({
  agg_mem_reserved: s.aggMemReserved,
  agg_num_queued: s.aggQueued,
  agg_num_running: s.aggRunning,
  local_mem_admitted: s.localMemAdmitted,
  local_num_queued: s.localQueued,
  local_num_admitted_running: s.localRunning,
  local_trivial_running: s.localTrivialRunning,
  local_backend_mem_reserved: s.localMemReserved,
  agg_current_users: s.aggLoads.users(),
  local_current_users: s.localLoads.users(),
  agg_user_loads: Object.fromEntries(s.aggLoads.entries()),
  local_user_loads: Object.fromEntries(s.localLoads.entries()),
  total_admitted: s.totalAdmitted,
  total_queued: s.totalQueued,
  total_dequeued: s.totalDequeued,
  total_timed_out: s.totalTimedOut,
  total_rejected: s.totalRejected,
  total_released: s.totalReleased,
  time_in_queue_ms: s.timeInQueueMs,
  wait_time_ms_ema: s.waitTimeMsEma,
  peak_mem_histogram: Object.fromEntries([...[...s.peakMemHistogram].entries()].filter(([, n]) => n > 0)),
});
