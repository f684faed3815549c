/**
 * `waterhole compare RECORDS`: how well the simulation foretells a recorded run from its arrivals and measured holds
 * alone (insight 7). `replay` asks whether the same calls get the same answers; this asks whether time passes in the
 * same way.
 *
 * Exit 0 when every bar holds, 99 when one is missed: the difference is printed, never hidden.
 */
import type { Command } from "commander";
import { ConfigError } from "../../config/config-error.ts";
import type { PoolConfig } from "../../core/pool-config.ts";
import { DEFAULT_POOL_CONFIG } from "../../core/pool-config.ts";
import type { Cause, Causes } from "../../insight/fidelity/causes.ts";
import type { Bar, PoolComparison } from "../../insight/fidelity/comparison.ts";
import { type Fidelity, FidelityFold } from "../../insight/fidelity/fidelity.ts";
import { RecordsReader } from "../../insight/records.ts";
import { SummaryFold } from "../../insight/summary-fold.ts";
import { compareDocument } from "./documents/compare.ts";
import { shareText, timeText } from "./figures.ts";
import { type Look, padEnd } from "./look.ts";
import { recordedRun } from "./recorded-run.ts";
import { cutOffNote, readRecords } from "./records-file.ts";
import { type ColourChoice, lookFor, type Surroundings, writeJson, writeLines } from "./surroundings.ts";
import { type Column, renderTable } from "./table.ts";

export interface CompareOptions extends ColourChoice {
  readonly json?: boolean;
}

const BAR_MISSED = 99;

export function registerCompare(program: Command, surroundings: Surroundings, exit: (code: number) => void): void {
  program
    .command("compare")
    .description("how well the simulation foretells a recorded run from its arrivals and measured holds")
    .argument("<records>", "records file of a run, live as a rule")
    .option("--json", "print one JSON document")
    .action(async (records: string, options: CompareOptions, command: Command) => {
      exit(await compareCommand(records, { ...options, ...command.optsWithGlobals<ColourChoice>() }, surroundings));
    });
}

export async function compareCommand(
  file: string,
  options: CompareOptions,
  surroundings: Surroundings,
): Promise<number> {
  const { fidelity, mode, note } = await fidelityOf(file);
  const { stdout, stderr } = surroundings;
  writeLines(stderr, note);
  if (options.json) writeJson(stdout, compareDocument(fidelity, mode));
  else writeLines(stdout, lines(fidelity, mode, lookFor(stdout, surroundings, options)));
  return fidelity.pools.every((p) => p.bars.every((b) => b.holds)) ? 0 : BAR_MISSED;
}

/** Of a records file; throws ConfigError when there is nothing in it to compare. */
export async function fidelityOf(
  file: string,
): Promise<{ fidelity: Fidelity; mode: "live" | "virtual"; note: readonly string[] }> {
  let fold: FidelityFold | null = null;
  const header = await headerOf(file);
  const setting = settingOf(header);
  const reader = await readRecords(file, (event) => {
    fold ??= new FidelityFold(setting);
    fold.add(event);
  });
  const { mode } = reader.header;
  const fidelity = fold === null ? null : (fold as FidelityFold).finish(mode === "live");
  if (fidelity === null || fidelity.pools.length === 0)
    throw new ConfigError(
      { file, line: null },
      "no query of this run reached a pool",
      "Record a run of a scenario with traffic:  waterhole run SCENARIO",
    );
  return { fidelity, mode, note: cutOffNote(file, reader) };
}

async function headerOf(file: string): Promise<RecordsReader["header"]> {
  const { createReadStream } = await import("node:fs");
  const { createInterface } = await import("node:readline");
  const reader = new RecordsReader(file);
  const stream = createReadStream(file, "utf8");
  try {
    for await (const line of createInterface({ input: stream })) {
      reader.read(line);
      break;
    }
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    // The reader of the whole file says what is wrong with it.
    return (await readRecords(file, () => undefined)).header;
  } finally {
    stream.destroy();
  }
  return reader.header;
}

function settingOf(header: RecordsReader["header"]): ConstructorParameters<typeof FidelityFold>[0] {
  const { scenario, flags, pools } = recordedRun(header);
  const configs = new Map<string, PoolConfig>();
  const configOf = (pool: string): PoolConfig | null => {
    const found = pools.lookUp(pool);
    return found.kind === "found" ? found.config : null;
  };
  const poolConfigs = {
    // Always the same object: controllers compare it by identity.
    configOf: (pool: string): PoolConfig => {
      const config = configs.get(pool) ?? configOf(pool) ?? DEFAULT_POOL_CONFIG;
      configs.set(pool, config);
      return config;
    },
  };
  return {
    scenario,
    flags,
    pools: poolConfigs,
    configOf,
    newFold: () =>
      new SummaryFold({ configOf, admission: scenario.cluster.admission, mayLeak: scenario.faults.length > 0 }),
  };
}

// Text

function lines({ queries, pools, poolsWithDelays, causes }: Fidelity, mode: string, look: Look): string[] {
  return [
    `${queries} queries of a ${mode} run, foretold from their arrivals and measured holds`,
    ...pools.flatMap((pool, i) => poolLines(pool, poolsWithDelays[i]!, look)),
    "",
    ...causeLines(causes, look),
  ];
}

interface FigureRow {
  readonly what: string;
  readonly measured: string;
  readonly predicted: string;
  readonly withDelays: string;
}

function poolLines(pool: PoolComparison, withDelays: PoolComparison, look: Look): string[] {
  const { measured: m, predicted: p, perQuery } = pool;
  const d = withDelays.predicted;
  const row = (what: string, of: (f: typeof m) => string): FigureRow => ({
    what,
    measured: of(m),
    predicted: of(p),
    withDelays: of(d),
  });
  const rows = [
    row("mean wait", (f) => exactTime(f.meanWait)),
    row("p95 wait", (f) => exactTime(f.p95Wait)),
    row("waited", (f) => shareText(f.waited)),
    row("rejected", (f) => shareText(f.rejected)),
    row("timed out", (f) => shareText(f.timedOut)),
    row("lost", (f) => shareText(f.lost)),
  ];
  const load = pool.load === null ? "no load can be told" : `load ${pool.load.toFixed(2)}`;
  const apart = `${perQuery.compared} compared one by one: half within ${timeText(perQuery.median)}, 99 % within ${timeText(perQuery.p99)}`;
  return [
    "",
    `${pool.pool}: ${pool.submitted} queries, mean hold ${exactTime(pool.meanHold)}, ${load}; ${apart}`,
    "",
    ...(renderTable(FIGURE_COLUMNS, rows, look) ?? []),
    "",
    ...pool.bars.map((b) => barLine(b)),
  ];
}

const FIGURE_COLUMNS: readonly Column<FigureRow>[] = [
  { head: "", align: "left", cell: (r) => r.what },
  { head: "MEASURED", align: "right", cell: (r) => r.measured },
  { head: "FORETOLD", align: "right", cell: (r) => r.predicted },
  { head: "WITH DELAYS", align: "right", cell: (r) => r.withDelays, leaves: 1 },
];

/** A difference of a few milliseconds must be seen. */
const exactTime = (ms: number): string => (ms < 10_000 ? `${ms.toFixed(1)} ms` : `${(ms / 1000).toFixed(3)} s`);

function barLine({ name, found, allowed, unit, holds }: Bar): string {
  const figures =
    unit === "same"
      ? holds
        ? "the same"
        : "another"
      : `${found.toFixed(2)} ${unit}, bar ${allowed.toFixed(1)} ${unit}`;
  return `${holds ? "ok    " : "missed"}  ${padEnd(name, 24)}${figures}`;
}

function causeLines(causes: Causes, look: Look): string[] {
  const difference = causes.measuredMeanWait - causes.predictedMeanWait;
  const head = `Mean wait over all pools: measured ${exactTime(causes.measuredMeanWait)}, foretold ${exactTime(causes.predictedMeanWait)}, ${signed(difference)} apart`;
  return [head, "", ...(renderTable(CAUSE_COLUMNS, [...causes.causes, causes.together], look) ?? [])];
}

const CAUSE_COLUMNS: readonly Column<Cause>[] = [
  { head: "DELAY PUT IN", align: "left", cell: (c) => c.name },
  { head: "MEAN", group: "RECORDED", align: "right", cell: (c) => recorded(c, "mean") },
  { head: "P50", group: "RECORDED", align: "right", cell: (c) => recorded(c, "median") },
  { head: "P99", group: "RECORDED", align: "right", cell: (c) => recorded(c, "p99") },
  { head: "MEAN WAIT", align: "right", cell: (c) => (c.meanWait === null ? "in the holds" : exactTime(c.meanWait)) },
  { head: "EXPLAINS", align: "right", cell: (c) => (c.explains === null ? "-" : `${Math.round(c.explains * 100)} %`) },
];

const recorded = (c: Cause, which: "mean" | "median" | "p99"): string =>
  c.recorded === null ? "-" : exactTime(c.recorded[which]);

const signed = (ms: number): string => `${ms < 0 ? "-" : "+"}${exactTime(Math.abs(ms))}`;
