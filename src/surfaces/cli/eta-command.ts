/**
 * `waterhole eta SCENARIO --at TIME`: what every queued query would have been told at that moment, and what
 * then became of it (insight 5).
 */
import { type Command, InvalidArgumentError, Option } from "commander";
import { ConfigError } from "../../config/config-error.ts";
import { parseTime } from "../../config/scenario-units.ts";
import type { AdmissionQuery } from "../../core/admission/query.ts";
import type { RunEvent } from "../../core/events.ts";
import { DEFAULT_POOL_CONFIG } from "../../core/pool-config.ts";
import type { Instant } from "../../core/units.ts";
import { type EtaSnapshot, snapshotOf } from "../../insight/eta/eta-snapshot.ts";
import { HoldBook } from "../../insight/eta/hold-book.ts";
import { etaText, type Prediction, predictWaits, roughly } from "../../insight/eta/predict.ts";
import { toInstant } from "../../sim/event-queue.ts";
import type { SimQuery } from "../../sim/sim-query.ts";
import { simulate } from "../../sim/simulate.ts";
import type { Simulation } from "../../sim/simulation.ts";
import { seedOption } from "./options.ts";
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
  readonly became: "admitted" | "timedOut" | "rejected" | "cancelled" | "undecided";
  /** Milliseconds after the moment; null: undecided when the run ended. */
  readonly after: number | null;
}

async function etaCommand(path: string, flags: EtaFlags, { stdout }: Surroundings): Promise<number> {
  const run = await ScenarioRun.open(path, { seed: flags.seed ?? null });
  const { snapshot, told } = predictAt(run, flags.at as Instant);
  if (flags.json)
    writeJson(stdout, {
      at: flags.at,
      running: snapshot.running.length,
      controllers: snapshot.controllers,
      queries: told.map(({ prediction, ...rest }) => ({ ...withoutRuns(prediction), ...rest })),
    });
  else writeLines(stdout, etaLines(snapshot, told));
  return 0;
}

function predictAt(run: ScenarioRun, at: Instant): { snapshot: EtaSnapshot; told: Told[] } {
  const { scenario, workload, flags } = run;
  const past = new PastAndFuture(at);
  const look = new Look(at, (a) => scenario.queries[(a.owner as SimQuery).queryClass]?.name ?? "");
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
    emit: (e) => past.add(e),
    inspect: (simulation) => look.at(simulation, workload.nextAt()),
  });
  const { snapshot } = look;
  if (snapshot === null)
    throw new ConfigError(
      { file: run.path, line: null },
      `the run is over before ${roughly(at)}`,
      "Give an earlier  --at",
    );
  const told = predictWaits(snapshot, past.holds, { seed: scenario.seed }).map(
    (prediction): Told => ({
      prediction,
      queryClass: past.classOf(prediction.query),
      ...past.becameOf(prediction.query),
    }),
  );
  return { snapshot, told };
}

/** The state after the last thing that happened up to the moment. */
class Look {
  snapshot: EtaSnapshot | null = null;
  readonly #at: Instant;
  readonly #classOf: (a: AdmissionQuery) => string;

  constructor(at: Instant, classOf: (a: AdmissionQuery) => string) {
    this.#at = at;
    this.#classOf = classOf;
  }

  at(simulation: Simulation, nextArrival: number): void {
    const next = Math.min(toInstant(simulation.events.nextTime), nextArrival);
    if (toInstant(simulation.now) > this.#at || next <= this.#at) return;
    const controllers = simulation.seats.filter((s) => s.isAlive).map((s) => s.controller);
    this.snapshot = { ...snapshotOf(controllers, this.#at, this.#classOf) };
  }
}

/** Holds that had ended by the moment, and what became of those who waited then. */
class PastAndFuture {
  readonly holds = new HoldBook();
  readonly #at: number;
  readonly #classes = new Map<string, { readonly queryClass: string; readonly pool: string }>();
  readonly #begun = new Map<string, number>();
  readonly #became = new Map<string, Pick<Told, "became" | "after">>();

  constructor(at: number) {
    this.#at = at;
  }

  classOf(query: string): string {
    return this.#classes.get(query)?.queryClass ?? "";
  }

  becameOf(query: string): Pick<Told, "became" | "after"> {
    return this.#became.get(query) ?? { became: "undecided", after: null };
  }

  add(e: RunEvent): void {
    switch (e.kind) {
      case "submitted":
        this.#classes.set(e.query, { queryClass: e.queryClass, pool: e.pool });
        return;
      case "admitted":
        this.#begun.set(e.query, e.at);
        this.#decide(e.query, "admitted", e.at);
        return;
      case "timedOut":
      case "rejected":
      case "cancelled":
        this.#decide(e.query, e.kind, e.at);
        return;
      case "released":
        this.#over(e.query, e.at);
        return;
      default:
        return;
    }
  }

  #decide(query: string, became: Told["became"], at: number): void {
    if (at >= this.#at) this.#became.set(query, { became, after: at - this.#at });
    else if (became !== "admitted") this.#classes.delete(query);
  }

  #over(query: string, at: number): void {
    const begun = this.#begun.get(query);
    const c = this.#classes.get(query);
    this.#begun.delete(query);
    if (begun === undefined || c === undefined || at > this.#at) return;
    this.holds.add(c.pool, c.queryClass, at - begun);
    this.#classes.delete(query);
  }
}

function etaLines(snapshot: EtaSnapshot, told: readonly Told[]): string[] {
  const head = `at ${roughly(snapshot.now)}: ${snapshot.running.length} running, ${told.length} queued`;
  if (told.length === 0) return [head, "nobody waits at this moment"];
  const pools = [...new Set(told.map((t) => t.prediction.pool))];
  return [
    head,
    ...(snapshot.controllers > 1
      ? [`${snapshot.controllers} controllers, each with a queue of its own: predicted as if they were one`]
      : []),
    ...pools.flatMap((pool) => {
      const own = told.filter((t) => t.prediction.pool === pool);
      return [
        "",
        `${pool}: the head waits because ${own[0]?.prediction.waitsFor ?? "nobody has looked yet"}`,
        ...own.map(
          (t) =>
            `${String(t.prediction.position).padStart(4)}  ${t.queryClass}  ${etaText(t.prediction)}; ${becameText(t)}`,
        ),
      ];
    }),
  ];
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

function withoutRuns(p: Prediction): object {
  if (p.interval === null) return p;
  const { runs: _runs, ...interval } = p.interval;
  return { ...p, interval };
}
