/**
 * `waterhole import FILE`: what a recorded log says, and the trace or the scenario made from it (insight 4).
 *
 * Reads, reports, writes; every number comes from insight/log. The report begins with what decides whether to
 * believe it: what was cut, what contradicts the pool files, what had to be guessed.
 */
import { randomBytes, randomInt } from "node:crypto";
import { basename, resolve } from "node:path";
import { openPoolDirectory } from "../../config/pool-directory.ts";
import { readScenario } from "../../config/scenario-file.ts";
import { flagsOf, openPools } from "../../config/scenario-pools.ts";
import type { PoolConfig } from "../../core/pool-config.ts";
import { prettyBytes, prettyMillis } from "../../core/pretty.ts";
import { type Acceptance, acceptanceOf, acceptanceWarning } from "../../insight/log/acceptance.ts";
import { adviceText } from "../../insight/log/advice.ts";
import type { ClassRow } from "../../insight/log/class-table.ts";
import { classWorkloadOf } from "../../insight/log/class-workload.ts";
import { GUESS_TEXT, type LogReport, logReport } from "../../insight/log/log-report.ts";
import type { PoolRow } from "../../insight/log/pool-table.ts";
import { poolResolver } from "../../workload/pool-resolver.ts";
import { anonymised } from "../../workload/query-log/anonymise.ts";
import { type Consistency, consistencyOf } from "../../workload/query-log/consistency.ts";
import { DEFAULT_DEMAND, type Demand, demandOf, drawsOf } from "../../workload/query-log/demand.ts";
import type { HoldRule } from "../../workload/query-log/holds.ts";
import { readQueryLog } from "../../workload/query-log/read-query-log.ts";
import { type Guess, type TracedRequest, traceLines } from "../../workload/query-log/traced-request.ts";
import { createWorkload } from "../../workload/scenario-workload.ts";
import { type Trace, withTraces } from "../../workload/traces.ts";
import { plural } from "./figures.ts";
import { fitting, type Look } from "./look.ts";
import { keepApart, type Output, writeOutput } from "./output-file.ts";
import { filesOf } from "./scenario-files.ts";
import { playingTrace } from "./size-problem.ts";
import { type Column, renderTable } from "./table.ts";

export interface ImportOptions {
  readonly hold?: HoldRule;
  readonly seed?: number;
  /** Today's pool files, for the consistency check and for pools that no file declares. */
  readonly fairScheduler?: string;
  readonly llamaSite?: string;
  /** A scenario with the cluster and pools that the log was made on: does it explain its own waits (4.6)? */
  readonly scenario?: string;
  /** Where to write a scenario with classes and rates made from the log. */
  readonly classes?: string;
  /** Where to write the trace. */
  readonly trace?: string;
  readonly anonymise?: boolean;
  readonly renamePools?: boolean;
}

export interface Imported {
  readonly report: LogReport;
  readonly demand: Demand;
  /** null: no scenario was given to replay it on. */
  readonly acceptance: Acceptance | null;
  /** What a scenario made of classes does not keep; empty when none was asked for. */
  readonly remarks: readonly string[];
}

/** Throws ConfigError. */
export async function importLog(file: string, options: ImportOptions): Promise<Imported> {
  const rule = options.hold ?? "lastRow";
  keepApart(outputsOf(options), inputsOf(file, options));
  const log = await readQueryLog(file);
  const configOf = options.fairScheduler === undefined ? null : configsOf(options.fairScheduler, options.llamaSite);
  const consistency = configOf === null ? null : consistencyOf(log.queries, configOf.configOf);
  const demand = demandOf(log, {
    ...DEFAULT_DEMAND,
    hold: rule,
    draw: drawsOf(options.seed ?? 1),
    useRecordedAmounts: consistency?.isBroken ?? false,
  });
  if (options.trace !== undefined) writeTrace(options.trace, demand, options);
  const remarks = options.classes === undefined ? [] : writeClasses(options.classes, demand, options);
  const report = logReport(log, demand, rule, consistency, { declaredPools: configOf?.declared ?? null });
  const acceptance = options.scenario === undefined ? null : await accepted(options.scenario, demand);
  return { report, demand, acceptance, remarks };
}

const traceOutput = (path: string): Output => ({ what: "the trace", flag: "--trace", path });
const classesOutput = (path: string): Output => ({ what: "the scenario", flag: "--classes", path });

const outputsOf = ({ trace, classes }: ImportOptions): Output[] => [
  ...(trace === undefined ? [] : [traceOutput(trace)]),
  ...(classes === undefined ? [] : [classesOutput(classes)]),
];

/** Of the scenario without its traces: the log takes their place. */
const inputsOf = (file: string, { fairScheduler, llamaSite, scenario }: ImportOptions): string[] => [
  file,
  ...[fairScheduler, llamaSite].filter((f) => f !== undefined),
  ...(scenario === undefined ? [] : filesOf(readScenario(scenario))),
];

/** The requests as they were read, on the scenario's cluster and pools. */
async function accepted(path: string, demand: Demand): Promise<Acceptance> {
  const read = async (): Promise<Trace> => ({ start: demand.start, requests: demand.requests });
  const scenario = await withTraces(playingTrace(readScenario(path), "the log"), read);
  const flags = flagsOf(scenario);
  const pools = openPools(scenario, flags);
  const workload = createWorkload(
    scenario,
    poolResolver(() => pools, flags, scenario.users),
  );
  return acceptanceOf(demand.requests, { scenario, workload, flags, configOf: (pool) => pools.configOf(pool) });
}

function configsOf(fairScheduler: string, llamaSite: string | undefined) {
  const directory = openPoolDirectory({ fairScheduler, llamaSite: llamaSite ?? null });
  return {
    declared: new Set(directory.declaredPools()),
    configOf: (pool: string): PoolConfig | null => {
      const found = directory.lookUp(pool);
      return found.kind === "found" ? found.config : null;
    },
  };
}

function writeTrace(file: string, demand: Demand, options: ImportOptions): void {
  const { start, requests } = options.anonymise
    ? anonymised(demand.start, demand.requests, {
        key: randomBytes(32),
        weeks: randomInt(-520, -52),
        renamePools: options.renamePools ?? false,
      })
    : { start: demand.start, requests: demand.requests as readonly TracedRequest[] };
  writeOutput(traceOutput(file), `${[...traceLines(start, requests)].join("\n")}\n`);
}

/** A whole scenario; what a log cannot know of a cluster is a placeholder, and said to be one. */
function writeClasses(file: string, demand: Demand, options: ImportOptions): string[] {
  const { queries, arrivals, remarks, executors, coordinatorsExecute } = classWorkloadOf(demand);
  const scenario = {
    name: basename(file).replace(/\.\w+$/, ""),
    cluster: {
      executors: [{ count: executors, memory: PLACEHOLDER_MEMORY }],
      coordinators: [{ count: 1, on: coordinatorsExecute ? "executor" : "dedicated" }],
    },
    pools:
      options.fairScheduler === undefined
        ? "flags"
        : {
            fairScheduler: resolve(options.fairScheduler),
            ...(options.llamaSite === undefined ? {} : { llamaSite: resolve(options.llamaSite) }),
          },
    queries,
    arrivals,
  };
  writeOutput(classesOutput(file), `${JSON.stringify(scenario, null, 2)}\n`);
  return [
    `${file}: ${Object.keys(queries).length} classes; memory of the hosts (${PLACEHOLDER_MEMORY}) is a placeholder, put in what yours can admit`,
    ...remarks,
  ];
}

const PLACEHOLDER_MEMORY = "128gb";

// The text form

const WIDE: Look = {
  colour: false,
  unicode: true,
  columns: Number.POSITIVE_INFINITY,
  tableColumns: Number.POSITIVE_INFINITY,
};

/** What a person reads; `--json` prints the report itself. */
export function importText(report: LogReport, acceptance: Acceptance | null = null, look: Look = WIDE): string {
  const warning = acceptance === null ? null : acceptanceWarning(acceptance);
  const texts = (lines: readonly string[]): string[] => lines.flatMap((line) => fitting(line, look));
  return [
    ...(warning === null ? [] : texts([warning, ""])),
    ...texts(headLines(report)),
    ...(acceptance !== null && warning === null ? ["replayed on the scenario it waits as it did"] : []),
    "",
    ...poolLines(report.pools, look),
    "",
    ...classLines(report.classes, report.minorClasses, look),
    "",
    ...texts(adviceLines(report)),
    "",
    ...texts(guessLines(report)),
  ].join("\n");
}

function headLines(r: LogReport): string[] {
  const leftOut = Object.entries(r.leftOut).map(([reason, n]) => `${n} ${reason}`);
  const range = r.from === null ? "" : ` from ${r.from} to ${r.to}`;
  return [
    `${r.file}: ${r.form}, ${r.statements} ${plural(r.statements, "statement")}; ${r.requests} ${plural(r.requests, "request")}${range}`,
    ...(leftOut.length === 0 ? [] : [`left out: ${leftOut.join(", ")}`]),
    ...(r.unreadable.count === 0
      ? []
      : [
          `unreadable: ${r.unreadable.count} ${plural(r.unreadable.count, "row")}, the first in line ${r.unreadable.first[0]?.line}: ${r.unreadable.first[0]?.problem}`,
        ]),
    ...r.cuts.map((c) => `cut: ${c}`),
    ...r.holes.slice(0, 5).map((h) => `suspected hole: nothing between ${h.from} and ${h.to}`),
    ...(r.missingColumns.length === 0 ? [] : [`columns the log does not have: ${r.missingColumns.join(", ")}`]),
    ...consistencyLines(r.consistency),
  ];
}

function consistencyLines(c: Consistency | null): string[] {
  if (c === null || c.checked === 0) return [];
  if (c.mismatches === 0)
    return [`the amounts admitted agree with the pool files in all ${c.checked} rows that can be checked`];
  const first = c.examples[0]!;
  const example = `line ${first.line}: ${prettyBytes(first.recorded)} were admitted, the files give ${prettyBytes(first.expected)}`;
  const meaning = c.isBroken
    ? "the files changed since, or the release computes it another way; recorded amounts are used"
    : "few enough to go by the files";
  return [
    `${c.mismatches} of ${c.checked} amounts contradict the pool files (${percent(c.share)}; ${example}): ${meaning}`,
  ];
}

function poolLines(pools: readonly PoolRow[], look: Look): string[] {
  return tableOrSay<PoolRow>(
    [
      { head: "pool", align: "left", shrinksTo: 12, cell: (p) => poolText(p.pool) },
      { head: "statements", align: "right", cell: (p) => String(p.statements) },
      { head: "at once", align: "right", leaves: 6, cell: (p) => String(p.atOnce) },
      { head: "trivial", align: "right", leaves: 1, cell: (p) => String(p.trivial) },
      { head: "queued", align: "right", cell: (p) => String(p.fromQueue) },
      { head: "rejected", align: "right", leaves: 10, cell: rejectedText },
      { head: "timed out", align: "right", leaves: 9, cell: (p) => String(p.timedOut) },
      { head: "cancelled", align: "right", leaves: 3, cell: (p) => String(p.cancelledInQueue + p.cancelledRunning) },
      { head: "failed", align: "right", leaves: 4, cell: (p) => String(p.failed) },
      { head: "p50", group: "wait", align: "right", leaves: 5, cell: (p) => time(p.waitMs.p50) },
      { head: "p95", group: "wait", align: "right", leaves: 8, cell: (p) => time(p.waitMs.p95) },
      { head: "max", group: "wait", align: "right", leaves: 2, cell: (p) => time(p.waitMs.max) },
      { head: "lost", align: "right", cell: (p) => percent(p.lostShare) },
      {
        head: "mem-time",
        align: "right",
        leaves: 7,
        cell: (p) => (p.memoryTimeShare === null ? "?" : percent(p.memoryTimeShare)),
      },
    ],
    pools,
    look,
  );
}

const poolText = (pool: string): string => (pool === "" ? "(none)" : pool);

function rejectedText(p: PoolRow): string {
  if (p.rejectedInAll === 0) return "0";
  const parts = Object.entries(p.rejected).map(([why, n]) => `${n} ${REJECTION_WORDS[why] ?? why}`);
  return parts.join(" + ");
}

const REJECTION_WORDS: Readonly<Record<string, string>> = { queueFull: "queue full" };

function classLines(classes: readonly ClassRow[], minor: number, look: Look): string[] {
  const hidden = minor + Math.max(0, classes.length - MOST_CLASSES);
  return [
    ...tableOrSay<ClassRow>(
      [
        { head: "class", align: "left", shrinksTo: 12, cell: (c) => c.queryClass },
        { head: "pool", align: "right", leaves: 9, cell: (c) => poolText(c.pool) },
        { head: "n", align: "right", cell: (c) => String(c.n) },
        { head: "estimate", align: "right", cell: (c) => size(c.estimateP50) },
        { head: "admitted", align: "right", leaves: 5, cell: (c) => size(c.admittedP50) },
        { head: "p50", group: "peak", align: "right", leaves: 4, cell: (c) => size(c.peak.p50) },
        { head: "p95", group: "peak", align: "right", cell: (c) => size(c.peak.p95) },
        {
          head: "inflation",
          align: "right",
          leaves: 8,
          cell: (c) => (c.inflationP50 === null ? "?" : `${c.inflationP50.toFixed(1)}x`),
        },
        { head: "hosts", align: "right", leaves: 6, cell: (c) => (c.hostsP50 === null ? "?" : String(c.hostsP50)) },
        { head: "p50", group: "hold", align: "right", leaves: 7, cell: (c) => time(c.holdMs.p50) },
        { head: "p95", group: "hold", align: "right", leaves: 1, cell: (c) => time(c.holdMs.p95) },
        { head: "waited p95", align: "right", leaves: 3, cell: (c) => time(c.waitedMsP95) },
        {
          head: "spilled",
          align: "right",
          leaves: 2,
          cell: (c) => (c.spilledShare === null ? "?" : percent(c.spilledShare)),
        },
        {
          head: "never used",
          align: "right",
          cell: (c) =>
            c.neverUsedGiBHours === null
              ? "?"
              : `${c.neverUsedGiBHours.toFixed(1)} GiB${look.unicode ? "\u00b7" : "*"}h`,
        },
      ],
      classes.slice(0, MOST_CLASSES),
      look,
    ),
    ...(hidden === 0 ? [] : [`and ${hidden} smaller ${plural(hidden, "class", "classes")}`]),
  ];
}

function tableOrSay<Row>(columns: readonly Column<Row>[], rows: readonly Row[], look: Look): string[] {
  return renderTable(columns, rows, look) ?? ["(the terminal is too narrow for the table; use --json)"];
}

const MOST_CLASSES = 20;

const adviceLines = (r: LogReport): string[] =>
  r.advice.length === 0 ? ["no advice follows from this log"] : r.advice.map((a) => `${a.id}  ${adviceText(a)}`);

function guessLines(r: LogReport): string[] {
  const guesses = Object.entries(r.guesses) as [Guess, number][];
  const lines = guesses.map(([guess, n]) => `guessed for ${n}: ${GUESS_TEXT[guess]}`);
  if (r.imputedShare > 0.1)
    lines.push(`${percent(r.imputedShare)} of the memory-time is guessed: waterhole size shows what hangs on it`);
  if (r.retries.amplification >= 1.005)
    lines.push(`${r.retries.amplification.toFixed(2)} attempts a request: only first attempts are demand`);
  if (r.closedLoopShare > 0)
    lines.push(
      `${percent(r.closedLoopShare)} of the requests waited for their client's previous answer and are replayed so`,
    );
  return lines.length === 0 ? ["nothing had to be guessed"] : lines;
}

const time = (ms: number | null): string => (ms === null ? "-" : prettyMillis(ms));
const size = (bytes: number | null): string => (bytes === null ? "?" : prettyBytes(bytes));
const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
