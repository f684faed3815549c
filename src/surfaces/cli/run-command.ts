/**
 * `waterhole run SCENARIO`: the scenario on the live fleet.
 *
 * Everything that happens goes over one bus; listening are the fold that makes the report, the records file and,
 * on a terminal, the progress block. Ctrl-C once drains and reports, twice stops now; either way nothing is left
 * behind.
 */
import { availableParallelism, freemem, totalmem } from "node:os";
import { dirname } from "node:path";
import type { Command } from "commander";
import { backendsOf, hostNameOf } from "../../config/scenario-cluster.ts";
import type { EventOf } from "../../core/events.ts";
import { prettyBytes } from "../../core/pretty.ts";
import { EventObserver } from "../../insight/event-observer.ts";
import type { HostOverAdmissionFold } from "../../insight/host-over-admission.ts";
import type { SummaryFold } from "../../insight/summary-fold.ts";
import { type LiveReport, type LiveRun, runLive } from "../../runtime/live-run.ts";
import { newRunBus } from "../../runtime/run-bus.ts";
import { plural } from "./figures.ts";
import { lateFaults } from "./late-faults.ts";
import { fitting } from "./look.ts";
import { memoryWarning } from "./memory-warning.ts";
import { seedOption } from "./options.ts";
import { ProgressBlock, progressOf, renderProgress, WaitingHistory } from "./progress.ts";
import { QueryLogFile } from "./query-log-file.ts";
import { RecordsWriter } from "./records-file.ts";
import { renderReport } from "./report.ts";
import { exitCodeOf, type FleetReport, type RunReport, reportJson } from "./run-report.ts";
import { ScenarioRun } from "./scenario-run.ts";
import { outputsOf, usualRecordsPath } from "./simulate-command.ts";
import { type ColourChoice, lookFor, type Surroundings, writeJson, writeLines } from "./surroundings.ts";

export interface RunOptions extends ColourChoice {
  readonly json?: boolean;
  readonly seed?: number;
  /** A path, true or absent: the usual place; false: none. */
  readonly records?: string | boolean;
  /** Where to write the run as a query log with Impala's columns. */
  readonly queryLog?: string;
  /** Where the run's scratch directory is made. */
  readonly scratch?: string;
  /** Look at the hosts' books all the while. */
  readonly check?: boolean;
}

/** Real milliseconds between two frames of the progress block. */
const FRAME = 100;

export function registerRun(program: Command, surroundings: Surroundings, exit: (code: number) => void): void {
  program
    .command("run")
    .description("run a scenario on the live fleet: threads, real memory, real scratch files")
    .argument("<scenario>", "scenario file (YAML or JSON)")
    .addOption(seedOption())
    .option("--records <file>", "where to write what happened (default: runs/NAME-SEED.jsonl)")
    .option("--no-records", "write no records")
    .option("--query-log <file>", "write the run as Impala's query log: CSV, or JSON lines by any other name")
    .option("--scratch <folder>", "where spilled pages go (default: the system's temporary folder)")
    .option("--check", "look at every host's books all the while; the first thing that does not hold ends the run")
    .option("--json", "print one JSON document")
    .action(async (scenario: string, options: RunOptions, command: Command) => {
      const all = { ...options, ...command.optsWithGlobals<ColourChoice>() };
      exit(await runCommand(scenario, all, surroundings));
    });
}

export async function runCommand(path: string, options: RunOptions, surroundings: Surroundings): Promise<number> {
  const opened = await ScenarioRun.open(path, { seed: options.seed ?? null });
  const report = await new LiveSession(opened, options, surroundings).run();
  if (options.json) writeJson(surroundings.stdout, reportJson(report));
  else writeLines(surroundings.stdout, renderReport(report, lookFor(surroundings.stdout, surroundings, options)));
  return exitCodeOf(report);
}

class LiveSession {
  readonly #opened: ScenarioRun;
  readonly #options: RunOptions;
  readonly #surroundings: Surroundings;
  readonly #fold: SummaryFold;
  readonly #observer: EventObserver;
  readonly #hostFold: HostOverAdmissionFold | null;
  readonly #records: RecordsWriter | null;
  readonly #queryLog: QueryLogFile | null;
  readonly #poolFiles: EventOf<"poolFiles">[] = [];
  readonly #warnings: readonly string[];

  constructor(opened: ScenarioRun, options: RunOptions, surroundings: Surroundings) {
    this.#opened = opened;
    this.#options = options;
    this.#surroundings = surroundings;
    this.#fold = opened.newFold();
    this.#observer = new EventObserver(this.#fold);
    this.#hostFold = opened.newHostFold();
    const path = recordsPath(opened, options.records);
    opened.keepApart(outputsOf(path, options.queryLog));
    this.#records = path === null ? null : openRecords(path, opened);
    this.#queryLog = options.queryLog === undefined ? null : new QueryLogFile(options.queryLog, opened.scenario);
    const warning = memoryWarning(opened, freemem());
    this.#warnings = warning === null ? [] : [warning];
    if (!options.json) writeLines(surroundings.stderr, this.#warnings);
  }

  async run(): Promise<RunReport> {
    const bus = newRunBus();
    bus.on("event", (event) => {
      if (event.kind === "poolFiles") this.#poolFiles.push(event);
      this.#observer.add(event);
      this.#hostFold?.add(event);
      this.#records?.add(event);
      this.#queryLog?.add(event);
    });
    const { scenario, workload, flags } = this.#opened;
    const followed = this.#opened.followPoolFiles();
    const pools = {
      current: () => this.#opened.pools,
      change: (fault: Parameters<ScenarioRun["changePools"]>[0]) => this.#opened.changePools(fault),
      ...(followed === null ? {} : { followed }),
    };
    const { scratch, check } = this.#options;
    const watched = this.#queryLog?.watching(workload) ?? workload;
    const { run, done } = runLive(scenario, watched, pools, bus, {
      flags,
      check: check === true,
      ...(scratch === undefined ? {} : { scratchBase: scratch }),
    });
    if (followed !== null) followed.onLine = (line) => run.emit({ kind: "poolFiles", at: run.now(), ...line });
    const stopWatching = this.#watch(run);
    const stopListening = listenForInterrupts(run);
    try {
      return this.#report(await done);
    } finally {
      stopListening();
      stopWatching();
      this.#records?.close();
      this.#queryLog?.close();
    }
  }

  #report(live: LiveReport): RunReport {
    const until = Math.max(live.took.emulated, this.#fold.until);
    this.#observer.end(until);
    this.#records?.close(until);
    const late = lateFaults(this.#opened.scenario, until);
    if (!this.#options.json) writeLines(this.#surroundings.stderr, late);
    return this.#opened.report(this.#fold.finish(), {
      mode: "live",
      overAdmittedHosts: this.#hostFold?.finish(until) ?? null,
      records: this.#records?.path ?? null,
      fleet: fleetReport(live),
      poolFiles: this.#poolFiles,
      warnings: [...this.#warnings, ...late],
      interrupted: live.ended !== "complete",
    });
  }

  /** On a terminal only; returns how to end it. */
  #watch(run: LiveRun): () => void {
    const { stderr } = this.#surroundings;
    if (stderr.isTTY !== true || this.#options.json) return () => undefined;
    const look = lookFor(stderr, this.#surroundings, this.#options);
    writeLines(stderr, [...startLines(this.#opened).flatMap((line) => fitting(line, look)), ""]);
    const block = new ProgressBlock(stderr);
    const history = new WaitingHistory();
    const timer = setInterval(() => {
      if (run.state === "new" || run.state === "over") return;
      const facts = progressOf(this.#fold, run.now());
      history.note(facts);
      block.draw(renderProgress(facts, history, { ...look, columns: stderr.columns ?? look.columns }, stderr.rows));
    }, FRAME);
    timer.unref();
    return () => {
      clearInterval(timer);
      block.end();
    };
  }
}

function recordsPath(opened: ScenarioRun, wished: RunOptions["records"]): string | null {
  if (wished === false) return null;
  return typeof wished === "string" ? wished : usualRecordsPath(opened);
}

function openRecords(path: string, opened: ScenarioRun): RecordsWriter {
  const machine = { node: process.version, cores: availableParallelism(), memoryBytes: totalmem() };
  return new RecordsWriter(path, opened.recordsHeader("live", machine));
}

/** Once: drain and report. Twice: stop now, and still leave nothing behind. */
function listenForInterrupts(run: LiveRun): () => void {
  let asked = 0;
  const onInterrupt = (): void => {
    asked++;
    if (asked === 1) run.drain();
    else run.stop();
  };
  const onTerminate = (): void => run.stop();
  process.on("SIGINT", onInterrupt);
  process.on("SIGTERM", onTerminate);
  return () => {
    process.off("SIGINT", onInterrupt);
    process.off("SIGTERM", onTerminate);
  };
}

function fleetReport(live: LiveReport): FleetReport {
  const fullest = live.hosts.reduce((most, h) => (h.arenaPeak > most.arenaPeak ? h : most), live.hosts[0] ?? NO_HOST);
  return {
    hosts: live.hosts.length,
    threads: live.threads,
    realMs: live.took.realMs,
    peakArenaBytes: fullest.arenaPeak,
    arenaBytes: fullest.arenaSize,
    peakScratchBytes: Math.max(0, ...live.hosts.map((h) => h.peakScratch)),
    left: live.leftBehind,
  };
}

const NO_HOST = { arenaPeak: 0, arenaSize: 0 };

function startLines({ path, scenario }: ScenarioRun): string[] {
  const executors = scenario.cluster.executors.map(
    (e) => `${e.count} ${plural(e.count, "executor")} of ${prettyBytes(e.memory)}`,
  );
  const coordinators = backendsOf(scenario.cluster).filter((b) => b.isCoordinator);
  const first = hostNameOf(coordinators[0]?.address ?? "");
  const where = coordinators.length === 1 ? `coordinator on ${first}` : `${coordinators.length} coordinators`;
  const { time, memory } = scenario.scale;
  const called = path.endsWith("/scenario.yaml") ? dirname(path) : path;
  return [
    `waterhole run ${called}   seed ${scenario.seed}   ${executors.join(", ")}, ${where}   clock ${time}x, memory 1/${memory}`,
    "Ctrl-C stops and reports, twice stops now",
  ];
}
