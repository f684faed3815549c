/**
 * What a decision costs (DESIGN 6): admit and release by the number of hosts, a full queue's refusal, a head
 * that can't go, and two rivals in the same run. Prints ours, the rival, the ratio; exits 99 below a bar.
 *
 *     npm run bench:decision [-- --quick]
 *
 * "Full rules": a named group with slots, running limit, pool memory, host memory, bounds per query; 10
 * queries run at any time. Numbers on a shared machine are noisy: compare ratios, not absolute times.
 */
import { parseArgs } from "node:util";
import { Bench } from "tinybench";
import { AdmissionController } from "../src/core/admission/controller.ts";
import { controllerOptions } from "../src/core/admission/controller-options.ts";
import { NO_USAGE } from "../src/core/admission/pool-stats.ts";
import type { AdmissionQuery } from "../src/core/admission/query.ts";
import type { AdmissionRequest, FragmentShape, RequestShape } from "../src/core/admission/request.ts";
import { DEFAULT_ADMISSION_OPTIONS } from "../src/core/admission/request.ts";
import type { BackendDescriptor } from "../src/core/cluster/backend.ts";
import { membershipOf } from "../src/core/cluster/membership.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../src/core/pool-config.ts";
import { NOTHING_NEW } from "../src/core/statestore/topic.ts";
import { bytes, GiB, instant, MiB } from "../src/core/units.ts";
import { redisRival } from "./rivals/redis-lua.ts";
import { semaphoreRival } from "./rivals/weighted-semaphore.ts";

const { values: flags } = parseArgs({ options: { quick: { type: "boolean", default: false } } });

/** Operations per measured call, so that reading the clock doesn't count. */
const BATCH = 1000;
const RUNNING = 10;
const TIME_MS = flags.quick ? 150 : 2400;
/** Everything in turns, several times, so that a busy moment doesn't hit one side only. */
const ROUNDS = 3;

const BELOW_A_BAR = 99;
const BARS = {
  perSecondAt10: 1e6,
  costAt1000: 2,
  refusalToAdmit: 1,
  timesRedis: 25,
  timesSemaphore: 6,
};

const POOL = "root.dashboards";
const NOW = instant(1000);

const fragment = (runsOn: FragmentShape["runsOn"]): FragmentShape => ({
  runsOn,
  instancesPerHost: 1,
  minReservationPerInstance: bytes(4 * MiB),
  minReservationPerBackend: bytes(MiB),
  threadReservationPerInstance: 1,
  isDominant: false,
});

const SHAPE: RequestShape = {
  stmtType: "QUERY",
  perHostMemEstimate: bytes(1.5 * GiB),
  dedicatedCoordMemEstimate: bytes(100 * MiB),
  isTrivial: false,
  coordinatorOnly: false,
  includeAllCoordinators: false,
  executors: "all",
  fragments: [fragment("coordinator"), fragment("executors")],
  options: DEFAULT_ADMISSION_OPTIONS,
  maxSlotsPerExecutor: null,
};

const executor = (i: number): BackendDescriptor => ({
  address: `host-${String(i).padStart(4, "0")}:27000`,
  isCoordinator: false,
  isExecutor: true,
  isQuiescing: false,
  admitMemLimit: bytes(100 * GiB),
  admissionSlots: 128,
  executorGroup: { name: `${POOL}-group`, minSize: 1 },
});

const COORDINATOR: BackendDescriptor = {
  ...executor(0),
  address: "coordinator:27000",
  isCoordinator: true,
  isExecutor: false,
};

function controllerOf(numHosts: number): AdmissionController {
  const controller = new AdmissionController(controllerOptions({ hostId: COORDINATOR.address }));
  const backends = [COORDINATOR, ...Array.from({ length: numHosts }, (_, i) => executor(i))];
  controller.setMembership(membershipOf({ version: 2, backends }));
  controller.applyUpdate(NOTHING_NEW, NOW);
  return controller;
}

const configFor = (numHosts: number, over: Partial<PoolConfig> = {}): PoolConfig => ({
  ...DEFAULT_POOL_CONFIG,
  maxRequests: 2 * RUNNING,
  maxQueued: 50,
  maxMemResources: bytes(2 * RUNNING * 1.5 * GiB * (numHosts + 1)),
  minQueryMemLimit: GiB,
  maxQueryMemLimit: 8 * GiB,
  ...over,
});

const REQUESTS: readonly AdmissionRequest[] = Array.from({ length: 64 * BATCH }, (_, i) => ({
  queryId: `${((i * 2_654_435_761) >>> 0).toString(16).padStart(16, "0")}:${i.toString(16).padStart(16, "0")}`,
  coordinator: COORDINATOR.address,
  pool: POOL,
  user: "ana",
  userGroups: [],
  shape: SHAPE,
  blacklistedExecutors: [],
  placementOffset: 0,
}));

let turn = 0;
const nextRequest = (): AdmissionRequest => REQUESTS[turn++ % REQUESTS.length]!;

function end(controller: AdmissionController, q: AdmissionQuery): void {
  controller.releaseRest(q);
  controller.releaseQuery(q, GiB);
}

/** One query in, the oldest of ten out, `BATCH` times. */
function admitAndRelease(numHosts: number, config = configFor(numHosts)): () => void {
  const controller = controllerOf(numHosts);
  const admit = () => controller.submit(nextRequest(), config, DEFAULT_POOL_CONFIG, NOW);
  const running = Array.from({ length: RUNNING }, admit);
  let oldest = 0;
  return () => {
    for (let i = 0; i < BATCH; i++) {
      end(controller, running[oldest]!);
      running[oldest] = admit();
      oldest = (oldest + 1) % RUNNING;
    }
    if (running[oldest]!.state !== "running") throw new Error("the bench's pool is too small");
  };
}

/** Only the admissions are timed; `reset` releases them. */
function admitOnly(numHosts: number): { readonly run: () => void; readonly reset: () => void } {
  const controller = controllerOf(numHosts);
  const config = configFor(numHosts);
  const running: AdmissionQuery[] = [];
  return {
    run: () => {
      for (let i = 0; i < RUNNING; i++)
        running.push(controller.submit(nextRequest(), config, DEFAULT_POOL_CONFIG, NOW));
    },
    reset: () => {
      for (const q of running) end(controller, q);
      running.length = 0;
    },
  };
}

function refuse(numHosts: number): () => void {
  const controller = controllerOf(numHosts);
  const config = configFor(numHosts, { maxRequests: 1, maxQueued: 1 });
  // Ids of their own: the others come round again.
  for (const queryId of ["runs", "waits"])
    controller.submit({ ...nextRequest(), queryId }, config, DEFAULT_POOL_CONFIG, NOW);
  return () => {
    for (let i = 0; i < BATCH; i++) controller.submit(nextRequest(), config, DEFAULT_POOL_CONFIG, NOW);
  };
}

const NOBODY = {
  admitted: () => undefined,
  rejected: () => undefined,
  cancelled: () => undefined,
  stillQueued: () => undefined,
};

const ELSEWHERE: AdmissionRequest = {
  ...REQUESTS[0]!,
  queryId: "elsewhere",
  pool: "root.other",
  shape: { ...SHAPE, coordinatorOnly: true, fragments: [fragment("coordinator")] },
};

/**
 * Passes over a head whose hosts have no memory left. In between: an update that brings nothing; a query of
 * another pool that comes and goes, so that the head is tried anew; or an exchange in which this host's
 * reservations have moved, so that the host map is copied too.
 */
function blockedHead(numHosts: number, between: "nothing" | "a release" | "an exchange"): () => void {
  const controller = controllerOf(numHosts);
  const config = configFor(numHosts, { maxRequests: -1, maxMemResources: bytes(200 * GiB * (numHosts + 1)) });
  let q = controller.submit(nextRequest(), config, DEFAULT_POOL_CONFIG, NOW);
  while (q.state === "running") q = controller.submit(nextRequest(), config, DEFAULT_POOL_CONFIG, NOW);
  let reserved = 0;
  return () => {
    for (let i = 0; i < BATCH; i++) {
      if (between === "a release")
        end(controller, controller.submit(ELSEWHERE, DEFAULT_POOL_CONFIG, DEFAULT_POOL_CONFIG, NOW));
      else {
        if (between === "an exchange")
          controller.setBackendUsage("root.other", { ...NO_USAGE, memReserved: bytes(reserved++ % 2) });
        controller.collectUpdate();
        controller.applyUpdate(NOTHING_NEW, NOW);
      }
      controller.dequeuePass(NOW, NOBODY);
    }
  };
}

const QUOTAS: Partial<PoolConfig> = { userQueryLimits: new Map([["*", 1000]]) };

const bench = new Bench({ time: TIME_MS / ROUNDS, warmupTime: flags.quick ? 30 : 200 });
for (const n of [1, 10, 100, 1000]) bench.add(`admit + release, ${n} hosts`, admitAndRelease(n));
bench.add("admit + release, 10 hosts, with quotas", admitAndRelease(10, configFor(10, QUOTAS)));
const alone = admitOnly(10);
bench.add("admit alone, 10 hosts", alone.run, { afterEach: alone.reset });
bench.add("refuse, queue full, 10 hosts", refuse(10));
for (const n of [10, 1000]) {
  bench.add(`pass over a blocked head, nothing moved, ${n} hosts`, blockedHead(n, "nothing"));
  bench.add(`admit + release elsewhere + pass, ${n} hosts`, blockedHead(n, "a release"));
  bench.add(`exchange that publishes + pass, ${n} hosts`, blockedHead(n, "an exchange"));
}
bench.add("async-mutex weighted semaphore, acquire + release", semaphoreRival(BATCH, RUNNING));

/** Milliseconds of the median call, in the best of the rounds. */
const medians = new Map<string, number>();
for (let round = 0; round < ROUNDS; round++) {
  await bench.run();
  for (const { name, result } of bench.tasks) {
    if (!("latency" in result)) throw new Error(`${name} did not run: ${JSON.stringify(result)}`);
    medians.set(name, Math.min(medians.get(name) ?? Number.POSITIVE_INFINITY, result.latency.p50));
  }
  bench.reset();
}

/** Nanoseconds of one operation. */
const costOf = (name: string, perCall = BATCH): number => (medians.get(name)! * 1e6) / perCall;

const perSecond = (ns: number): string => `${Math.round(1e9 / ns).toLocaleString("en")}/s`.padStart(14);
const line = (name: string, ns: number): string => `${name.padEnd(56)}${ns.toFixed(0).padStart(8)} ns${perSecond(ns)}`;

for (const { name } of bench.tasks)
  console.log(line(name, costOf(name, name.startsWith("admit alone") ? RUNNING : BATCH)));

const redis = await redisRival({ seconds: TIME_MS / 1000, rounds: ROUNDS });
if (typeof redis === "string") console.log(redis);
else {
  console.log(line("Redis + Lua, admit + release, one at a time", redis.oneByOneNs));
  console.log(line("Redis + Lua, admit + release, pipelined", redis.pipelinedNs));
}

interface Bar {
  readonly what: string;
  readonly got: number;
  readonly bar: number;
  readonly holds: boolean;
}

const at10 = costOf("admit + release, 10 hosts");
const semaphore = costOf("async-mutex weighted semaphore, acquire + release");
const atLeast = (what: string, got: number, bar: number): Bar => ({ what, got, bar, holds: got >= bar });
const atMost = (what: string, got: number, bar: number): Bar => ({ what, got, bar, holds: got <= bar });

const bars: Bar[] = [
  atLeast("admit + release per second, 10 hosts", 1e9 / at10, BARS.perSecondAt10),
  atMost("cost at 1,000 hosts / cost at 10", costOf("admit + release, 1000 hosts") / at10, BARS.costAt1000),
  atMost(
    "refusal / admit alone",
    costOf("refuse, queue full, 10 hosts") / costOf("admit alone, 10 hosts", RUNNING),
    BARS.refusalToAdmit,
  ),
  atMost("ours / weighted semaphore (which checks one number)", at10 / semaphore, BARS.timesSemaphore),
];
if (typeof redis !== "string")
  bars.push(atLeast("Redis + Lua, one at a time / ours", redis.oneByOneNs / at10, BARS.timesRedis));
if (typeof redis !== "string")
  bars.push(atLeast("Redis + Lua, pipelined / ours", redis.pipelinedNs / at10, BARS.timesRedis));

console.log();
for (const b of bars)
  console.log(
    `${b.holds ? "holds" : "BELOW"}  ${b.what.padEnd(54)}${format(b.got).padStart(12)}  bar ${format(b.bar)}`,
  );
if (bars.some((b) => !b.holds)) process.exitCode = BELOW_A_BAR;

function format(n: number): string {
  return n >= 1000 ? Math.round(n).toLocaleString("en") : n.toFixed(2);
}
