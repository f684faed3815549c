/**
 * What a query costs beside its decision: being drawn, and being counted (DESIGN 6).
 *
 *     npm run bench:workload [-- --quick]
 *
 * A simulation must reach a million queries a second on one core with full rules, so the workload and the fold
 * that makes the report may take half a microsecond of a query together; exits 99 above that.
 */
import { parseArgs } from "node:util";
import { Bench } from "tinybench";
import { parseScenario } from "../src/config/scenario-file.ts";
import { DEFAULT_POOL_CONFIG } from "../src/core/pool-config.ts";
import type { QueryFacts } from "../src/core/run-observer.ts";
import type { Instant } from "../src/core/units.ts";
import { SummaryFold } from "../src/insight/summary-fold.ts";
import { createWorkload } from "../src/workload/scenario-workload.ts";
import type { Resolver, Workload } from "../src/workload/workload.ts";

const { values: flags } = parseArgs({ options: { quick: { type: "boolean", default: false } } });

const BATCH = 1000;
const TIME_MS = flags.quick ? 150 : 1500;
const BELOW_A_BAR = 99;
const MOST_NANOS = 500;

const OPEN: Resolver = {
  resolve: (pool, user) => ({
    kind: "resolved",
    pool: pool || "root.default",
    user,
    groups: [],
    defaultOptions: {},
    maxMtDop: -1,
  }),
};

const workloadWith = (duration: string, arrival: string): Workload =>
  createWorkload(
    parseScenario(
      `cluster: { executors: [{ count: 10, memory: 100gb }] }
queries: { q: { estimate: 1gb, duration: ${duration} } }
arrivals: [${arrival}]`,
      "/bench.yaml",
    ),
    OPEN,
  );

const EXPONENTIAL = "{ exponential: { mean: 4s } }";
const OPEN_TRAFFIC = "{ rate: 10/s, to: 36500d }";
const open = workloadWith(EXPONENTIAL, OPEN_TRAFFIC);
const fixed = workloadWith("4s", OPEN_TRAFFIC);
const closed = workloadWith(EXPONENTIAL, "{ clients: 100, think: { exponential: { mean: 10s } }, to: 36500d }");

function takeBatch(workload: Workload): void {
  for (let i = 0; i < BATCH; i++) {
    const at = workload.nextAt();
    const submission = workload.take();
    workload.ended(submission, "finished", (at + submission.duration) as Instant);
  }
}

const FACTS: QueryFacts & { intended: number; firstIntended: number } = {
  pool: 0,
  queryClass: 0,
  user: 0,
  coordinator: 0,
  intended: 0,
  firstIntended: 0,
  attempt: 1,
  queryId: "",
};
const REASON = { rule: "ADM-2", running: 20, limit: 20, stale: null } as const;
const fold = new SummaryFold({
  configOf: () => ({ ...DEFAULT_POOL_CONFIG, maxRequests: 20 }),
  admission: "distributed",
});
fold.named("pool", 0, "root.default");
let now = 0;

/** Half of the queries wait a little. */
function foldBatch(): void {
  for (let i = 0; i < BATCH; i++) {
    now += 100;
    FACTS.intended = now;
    FACTS.firstIntended = now;
    fold.submitted(now, FACTS);
    const waits = (i & 1) === 1;
    if (waits) fold.queued(now, FACTS, REASON);
    const wait = waits ? 10 + (i % 7) : 0;
    fold.admitted(now + wait, FACTS, waits ? "fromQueue" : "immediately", wait, 1e9);
    fold.memoryReleased(now + 50, FACTS, 1e9);
    fold.released(now + 50, FACTS, "finished", 50 - wait, 1e9, null);
  }
}

const bench = new Bench({ time: TIME_MS, warmupTime: TIME_MS / 4 });
const CASES = [
  ["drawn: Poisson arrivals, exponential durations", () => takeBatch(open)],
  ["drawn: Poisson arrivals, fixed durations", () => takeBatch(fixed)],
  ["drawn: 100 clients in a closed loop", () => takeBatch(closed)],
  ["counted: submitted to released, half of them queued", foldBatch],
] as const;
for (const [name, run] of CASES) bench.add(name, run);
await bench.run();

const nanos = bench.tasks.map(
  (task) => ((task.result as { latency?: { p50: number } }).latency?.p50 ?? Number.NaN) * (1e6 / BATCH),
);
for (const [i, [name]] of CASES.entries())
  console.log(`${name.padEnd(52)} ${nanos[i]!.toFixed(0).padStart(5)} ns a query`);
const together = nanos[0]! + nanos[3]!;
const holds = together <= MOST_NANOS;
console.log(`${holds ? "ok  " : "FAIL"} drawn and counted together ${together.toFixed(0)} ns, at most ${MOST_NANOS}`);
process.exitCode = holds ? 0 : BELOW_A_BAR;
