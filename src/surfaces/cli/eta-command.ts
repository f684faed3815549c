/**
 * `waterhole eta SCENARIO --at TIME`: what every queued query would have been told at that moment, and what
 * then became of it (insight 5).
 */
import { type Command, InvalidArgumentError, Option } from "commander";
import { ConfigError } from "../../config/config-error.ts";
import type { StatestoreSpec } from "../../config/scenario.ts";
import { hostNameOf } from "../../config/scenario-cluster.ts";
import { parseTime } from "../../config/scenario-units.ts";
import type { AdmissionQuery } from "../../core/admission/query.ts";
import { DEFAULT_POOL_CONFIG } from "../../core/pool-config.ts";
import type { QueryFacts } from "../../core/run-observer.ts";
import type { Instant } from "../../core/units.ts";
import type { Decision } from "../../insight/eta/decision-observer.ts";
import {
  decidingCoordinators,
  type EtaCluster,
  type EtaSnapshot,
  queueOf,
  snapshotOf,
} from "../../insight/eta/eta-snapshot.ts";
import { type EtaInterval, etaText, type Prediction, predictWaits, RUNS, roughly } from "../../insight/eta/predict.ts";
import { TrafficWatch } from "../../insight/eta/traffic-watch.ts";
import { toInstant } from "../../sim/event-queue.ts";
import type { SimQuery } from "../../sim/sim-query.ts";
import { simulate } from "../../sim/simulate.ts";
import type { Simulation } from "../../sim/simulation.ts";
import { seedOption } from "./options.ts";
import { ProgressBlock } from "./progress.ts";
import { ScenarioRun } from "./scenario-run.ts";
import { type ColourChoice, type Surroundings, writeJson, writeLines } from "./surroundings.ts";

interface EtaFlags extends ColourChoice {
  readonly json?: boolean;
  readonly seed?: number;
  readonly at: number;
}

export function registerEta(program: Command, surroundings: Surroundings, exit: (code: number) => void): void {
  program
    .command("eta")
    .description("when queued queries will start: the run forward from one moment, 199 times")
    .argument("<scenario>", "scenario file")
    .addOption(
      new Option("--at <time>", "the moment, in emulated time").makeOptionMandatory().argParser((text) => {
        const time = parseTime(text);
        if (!time.ok) throw new InvalidArgumentError(`"${text}" is no time such as 30s.`);
        return time.value;
      }),
    )
    .addOption(seedOption())
    .option("--json", "print one JSON document")
    .action(async (scenario: string, flags: EtaFlags) => {
      exit(await etaCommand(scenario, flags, surroundings));
    });
}

/** A prediction and, since this run goes on, what really happened. */
interface Told {
  readonly prediction: Prediction;
  readonly queryClass: string;
  readonly became: Decision | "undecided";
  /** Milliseconds after the moment; null: undecided when the run ended. */
  readonly after: number | null;
}

async function etaCommand(path: string, flags: EtaFlags, { stdout, stderr }: Surroundings): Promise<number> {
  const run = await ScenarioRun.open(path, { seed: flags.seed ?? null });
  const { snapshot, told } = withProgress(stderr, flags.at, (onRun) => predictAt(run, flags.at as Instant, onRun));
  if (flags.json)
    writeJson(stdout, {
      atMs: flags.at,
      running: snapshot.running.length,
      controllers: decidingCoordinators(snapshot),
      queries: told.map(toldDocument),
    });
  else writeLines(stdout, etaLines(snapshot, told));
  return 0;
}

/** On a terminal; several coordinators take seconds. */
function withProgress<T>(stderr: Surroundings["stderr"], at: number, act: (onRun: (done: number) => void) => T): T {
  const block = stderr.isTTY === true ? new ProgressBlock(stderr) : null;
  try {
    block?.draw([`eta: the run up to ${roughly(at)}, and to its end`]);
    return act((done) => block?.draw([`eta: ${done} of ${RUNS} runs forward`]));
  } finally {
    block?.end();
  }
}

function predictAt(
  run: ScenarioRun,
  at: Instant,
  onRun: (done: number) => void,
): { snapshot: EtaSnapshot; told: Told[] } {
  const { scenario, workload, flags } = run;
  const past = new PastAndFuture(scenario.cluster.statestore, at);
  const look = new Look(at, past, scenario.cluster);
  const pools = { configOf: (pool: string) => run.configOf(pool) ?? DEFAULT_POOL_CONFIG };
  simulate({
    scenario,
    workload,
    flags,
    pools,
    changedPools: (fault) => {
      if (fault.kind === "configChanges") run.changePools(fault);
      return pools;
    },
    observer: past,
    inspect: (simulation) => look.at(simulation, workload.nextAt()),
  });
  const { snapshot } = look;
  if (snapshot === null)
    throw new ConfigError(
      { file: run.path, line: null },
      `the run is over before ${roughly(at)}`,
      "Give an earlier  --at",
    );
  const told = predictWaits(snapshot, past.holds, { seed: scenario.seed, flags, onRun }).map(
    (prediction): Told => ({
      prediction,
      queryClass: snapshot.queued.find((q) => q.query === prediction.query)!.queryClass,
      ...past.becameOf(prediction.query),
    }),
  );
  return { snapshot, told };
}

/** The state after the last thing that happened up to the moment. */
class Look {
  snapshot: EtaSnapshot | null = null;
  readonly #at: Instant;
  readonly #past: PastAndFuture;
  readonly #cluster: EtaCluster;

  constructor(at: Instant, past: PastAndFuture, cluster: EtaCluster) {
    this.#at = at;
    this.#past = past;
    this.#cluster = cluster;
  }

  at(simulation: Simulation, nextArrival: number): void {
    if (this.snapshot !== null) return;
    const next = Math.min(toInstant(simulation.events.nextTime), nextArrival);
    if (toInstant(simulation.now) > this.#at || next <= this.#at || !simulation.isInstantOver) return;
    // Nothing is to come at all: the run was over before.
    if (next === Number.POSITIVE_INFINITY) return;
    const controllers = simulation.seats.filter((s) => s.isAlive).map((s) => s.controller);
    const classOf = (a: AdmissionQuery): string => this.#past.classOf(a.owner as SimQuery);
    this.snapshot = snapshotOf(controllers, this.#at, classOf, this.#cluster, this.#past.recentAt(this.#at));
    this.#past.waitFor(this.snapshot.queued.map((q) => q.query));
  }
}

/** What was known by the moment, and what became of those who waited then. */
class PastAndFuture extends TrafficWatch {
  readonly #moment: number;
  readonly #became = new Map<string, Pick<Told, "became" | "after">>();

  constructor(statestore: StatestoreSpec, at: number) {
    super(statestore, at);
    this.#moment = at;
  }

  waitFor(queries: readonly string[]): void {
    for (const query of queries) this.#became.set(query, { became: "undecided", after: null });
  }

  becameOf(query: string): Pick<Told, "became" | "after"> {
    return this.#became.get(query)!;
  }

  override decided(at: number, q: QueryFacts, became: Decision): void {
    if (at < this.#moment) return;
    const { queryId } = q;
    if (this.#became.get(queryId)?.became === "undecided")
      this.#became.set(queryId, { became, after: at - this.#moment });
  }
}

function etaLines(snapshot: EtaSnapshot, told: readonly Told[]): string[] {
  const head = `at ${roughly(snapshot.now)}: ${snapshot.running.length} running, ${told.length} queued`;
  if (told.length === 0) return [head, "nobody waits at this moment"];
  const several = decidingCoordinators(snapshot) > 1;
  return [
    head,
    ...byQueue(snapshot, told).flatMap((own) => {
      const { pool, coordinator, waitsFor } = own[0]!.prediction;
      const queue = several ? `${pool} at ${hostNameOf(coordinator)}` : pool;
      return [
        "",
        `${queue}: the head waits because ${waitsFor ?? "nobody has looked yet"}`,
        ...own.map(
          (t) =>
            `${String(t.prediction.position).padStart(4)}  ${t.queryClass}  ${etaText(t.prediction)}; ${becameText(t)}`,
        ),
      ];
    }),
  ];
}

/** In order of pool, then of coordinator. */
function byQueue(snapshot: EtaSnapshot, told: readonly Told[]): Told[][] {
  const queues = new Map<string, Told[]>();
  for (const t of told) {
    const key = queueOf(snapshot, t.prediction);
    const queue = queues.get(key);
    if (queue === undefined) queues.set(key, [t]);
    else queue.push(t);
  }
  return [...queues].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, queue]) => queue);
}

function becameText({ became, after }: Told): string {
  if (after === null) return "still undecided when the run ended";
  const words = {
    admitted: "started",
    timedOut: "timed out",
    rejected: "was rejected",
    cancelled: "was cancelled",
    undecided: "",
  };
  return `then ${words[became]} after ${roughly(after)}`;
}

function toldDocument({ prediction: p, queryClass, became, after }: Told): object {
  return {
    query: p.query,
    queryClass,
    pool: p.pool,
    coordinator: p.coordinator,
    position: p.position,
    waitsFor: p.waitsFor,
    basis: p.basis,
    waitMs: p.interval === null ? null : intervalDocument(p.interval),
    timedOutShare: p.timeoutChance,
    became,
    becameAfterMs: after,
  };
}

const intervalDocument = ({ median, low, high, quarters }: EtaInterval): object => ({
  median,
  low,
  high,
  lowerQuarter: quarters[0],
  upperQuarter: quarters[1],
});
