/**
 * The report of a run as text (page-and-demos 3.3 to 3.5): a line that says it all, a table per pool, what
 * got no answer and why, what bound, the thresholds, and where to look next.
 */
import { prettyBytes } from "../../core/pretty.ts";
import { MiB } from "../../core/units.ts";
import { CONSTRAINT_TEXT, type ConstraintShare, STALE_VIEW_MEANS, WORTH_EXPLAINING } from "../../insight/binding.ts";
import type { HostOverAdmission } from "../../insight/host-over-admission.ts";
import type { EarlyRefusal, Refusal } from "../../insight/refusals.ts";
import type { ClassSummary, PoolSummary } from "../../insight/summary.ts";
import type { ThresholdResult } from "../../insight/thresholds.ts";
import { countText, plural, shareText, timeText } from "./figures.ts";
import { type Look, padEnd, padStart, paint, widthOf, wrap } from "./look.ts";
import { exitCodeOf, type RunReport } from "./run-report.ts";
import { type Column, renderTable } from "./table.ts";

/** Below this each pool is a block of names and values. */
const NARROW = 64;
const FAILING_FIRST_ABOVE = 5;

/** Lines without line ends. */
export function renderReport(report: RunReport, look: Look): string[] {
  const { pools } = report.summary;
  const sections = [
    wrap(headline(report, look), look.columns),
    poolSection(pools, look),
    notAdmitted(report, look),
    failures(report.summary.pools, look),
    binding(report, look),
    overAdmission(report, look),
    fleetSection(report),
    poolFileSection(report, look),
    brokenSection(report),
    thresholdSection(report.thresholds, look),
  ].filter((lines) => lines.length > 0);
  return [...sections.flatMap((lines, i) => (i === 0 ? lines : ["", ...lines])), "", ...footer(report)];
}

// The first line

function headline({ name, summary, interrupted }: RunReport, look: Look): string {
  const { submitted, unresolved } = summary;
  const sum = (n: (p: PoolSummary) => number): number => summary.pools.reduce((total, p) => total + n(p), 0);
  const finished = sum((p) => p.finished);
  const parts = [
    finished === submitted ? "all finished" : `${countText(finished, look.unicode)} finished`,
    counted(
      sum((p) => p.failed),
      "failed",
    ),
    counted(
      sum((p) => p.cancelledRunning),
      "cancelled while running",
    ),
    counted(
      sum((p) => p.rejected + p.timedOut + p.cancelled),
      "not admitted",
    ),
    counted(unresolved, "refused before admission"),
    counted(
      sum((p) => p.stillRunning + p.stillWaiting),
      "still there",
    ),
  ].filter((part) => part !== null);
  const queries = `${countText(submitted, look.unicode)} ${plural(submitted, "query", "queries")}`;
  const stopped = interrupted ? ", stopped early" : "";
  return `${paint(look, "bold", name)}: ${queries} in ${timeText(summary.untilMs)}, ${parts.join(", ")}${stopped}`;
}

const counted = (n: number, what: string): string | null => (n === 0 ? null : `${n} ${what}`);

// One row per pool

const ofLimit = (n: number, limit: number | undefined): string =>
  limit === undefined || limit < 0 ? String(n) : `${n}/${limit}`;

function columns(pools: readonly PoolSummary[], look: Look): Column<PoolSummary>[] {
  const count = (n: number): string => countText(n, look.unicode);
  const some = (n: (p: PoolSummary) => number): boolean => pools.some((p) => n(p) > 0);
  const wait = (ms: number | null): string => (ms === null ? "-" : timeText(ms));
  const right = (head: string, cell: (p: PoolSummary) => string): Column<PoolSummary> => ({
    head,
    align: "right",
    cell,
  });
  const refused = (n: (p: PoolSummary) => number) => (p: PoolSummary) => (n(p) > 0 ? ("refused" as const) : null);
  const optional = (n: (p: PoolSummary) => number, head: string): Column<PoolSummary>[] =>
    some(n) ? [{ ...right(head, (p) => count(n(p))), paint: refused(n) }] : [];
  return [
    { head: "POOL", align: "left", cell: (p) => p.pool, shrinksTo: 10 },
    right("SUBMITTED", (p) => count(p.submitted)),
    right("AT ONCE", (p) => count(p.admittedImmediately)),
    ...(some((p) => p.admittedTrivially) ? [right("TRIVIAL", (p) => count(p.admittedTrivially))] : []),
    { ...right("FROM QUEUE", (p) => count(p.admittedFromQueue)), leaves: 5 },
    { ...right("REJECTED", (p) => count(p.rejected)), paint: refused((p) => p.rejected) },
    { ...right("TIMED OUT", (p) => count(p.timedOut)), paint: refused((p) => p.timedOut) },
    ...optional((p) => p.cancelled + p.cancelledRunning, "CANCELLED"),
    ...optional((p) => p.failed, "FAILED"),
    { ...right("P50", (p) => wait(p.waitMs.p50)), group: "WAIT", leaves: 3 },
    { ...right("P95", (p) => wait(p.waitMs.p95)), group: "WAIT" },
    { ...right("MAX", (p) => wait(p.waitMs.max)), group: "WAIT" },
    { ...right("PEAK RUN", (p) => ofLimit(p.peakRunning, p.limits?.maxRequests)), leaves: 4 },
    { ...right("PEAK QUEUE", (p) => ofLimit(p.peakQueued, p.limits?.maxQueued)), leaves: 2 },
    right("PEAK MEMORY", (p) => prettyBytes(p.peakMemoryBytes)),
    spilledColumn(pools),
  ];
}

function spilledColumn(pools: readonly PoolSummary[]): Column<PoolSummary> {
  const column = { head: "SPILLED", align: "right" as const, cell: (p: PoolSummary) => prettyBytes(p.spilledBytes) };
  return pools.every((p) => p.spilledBytes === 0) ? { ...column, leaves: 1 } : column;
}

function poolSection(pools: readonly PoolSummary[], look: Look): string[] {
  if (pools.length === 0) return ["No query has reached a pool."];
  const table = look.tableColumns < NARROW ? null : renderTable(columns(pools, look), pools, look);
  return table ?? pools.flatMap((pool, i) => (i === 0 ? poolBlock(pool, look) : ["", ...poolBlock(pool, look)]));
}

function poolBlock(p: PoolSummary, look: Look): string[] {
  const wait = (ms: number | null): string => (ms === null ? "-" : timeText(ms));
  const rows: readonly (readonly [string, string])[] = [
    ["submitted", countText(p.submitted, look.unicode)],
    ["at once, from queue", `${p.admittedImmediately + p.admittedTrivially}, ${p.admittedFromQueue}`],
    ["rejected, timed out", `${p.rejected}, ${p.timedOut}`],
    ...(p.cancelled + p.failed > 0 ? [["cancelled, failed", `${p.cancelled}, ${p.failed}`] as const] : []),
    ["wait p50, p95, max", `${wait(p.waitMs.p50)}, ${wait(p.waitMs.p95)}, ${wait(p.waitMs.max)}`],
    [
      "peak running, queued",
      `${ofLimit(p.peakRunning, p.limits?.maxRequests)}, ${ofLimit(p.peakQueued, p.limits?.maxQueued)}`,
    ],
    ["peak memory", prettyBytes(p.peakMemoryBytes)],
    ["spilled", prettyBytes(p.spilledBytes)],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return [paint(look, "bold", p.pool), ...rows.map(([name, value]) => `  ${padEnd(name, width)}  ${value}`)];
}

// What got no answer

function notAdmitted(report: RunReport, look: Look): string[] {
  const { summary, interrupted } = report;
  const cancelledText = interrupted ? "cancelled, most of them because the run was stopped" : "cancelled by the client";
  const several = summary.pools.filter((p) => p.refusals.some((r) => r.kind !== "failed")).length > 1;
  const lines = summary.pools.flatMap((pool) => {
    const timedOut = pool.refusals.filter((r) => r.kind === "timedOut");
    const rejected = pool.refusals.filter((r) => r.kind === "rejected");
    const own = [
      ...timedOutLines(pool, timedOut, look),
      ...rejected.flatMap((r) => entry(r.count, `rejected: ${r.text}`, look)),
      ...(pool.cancelled > 0 ? entry(pool.cancelled, cancelledText, look) : []),
    ];
    return several && own.length > 0 ? [pool.pool, ...own] : own;
  });
  lines.push(...refusedEarly(report, look));
  return lines.length === 0 ? [] : [paint(look, "bold", "NOT ADMITTED"), ...lines];
}

/** Admitted and yet without an answer. */
function failures(pools: readonly PoolSummary[], look: Look): string[] {
  const groups = pools.flatMap((p) => p.refusals).filter((r) => r.kind === "failed");
  const lines = groups.flatMap((g) => entry(g.count, `${g.text || "failed"} (first: ${shortId(g.firstQuery)})`, look));
  return lines.length === 0 ? [] : [paint(look, "bold", "FAILED"), ...lines];
}

/** Each class with what its clients read; a class with many texts, as of many users, shows the first ones. */
function refusedEarly(report: RunReport, look: Look): string[] {
  const { earlyRefusals, unresolved } = report.summary;
  const shown = earlyRefusals.slice(0, MOST_EARLY_SHOWN);
  const rest = unresolved - shown.reduce((sum, r) => sum + r.count, 0);
  return [
    ...shown.flatMap((r) => [
      ...entry(r.count, `${r.queryClass}, before admission: ${r.error}`, look),
      ...(r.pool === "" ? [`${" ".repeat(ENTRY_INDENT)}next: ${whyCommand(report, r)}`] : []),
    ]),
    ...(rest > 0 ? entry(rest, "more before admission, with other errors", look) : []),
  ];
}

const MOST_EARLY_SHOWN = 5;

/** Says which rule placed it, whose right is missing. */
function whyCommand({ scenario, requestedPoolOf }: RunReport, { user, queryClass }: EarlyRefusal): string {
  const asked = requestedPoolOf(queryClass);
  return `waterhole check --scenario ${scenario} --user ${user}${asked === "" ? "" : ` --pool ${asked}`}`;
}

function timedOutLines(pool: PoolSummary, groups: readonly Refusal[], look: Look): string[] {
  if (groups.length === 0) return [];
  const behind = groups.filter((g) => g.rule === "ADM-1");
  const tried = groups.filter((g) => g.rule !== "ADM-1");
  const parts = [
    ...tried.map((g) => `${g.count} at the head, ${g.text}`),
    ...behind.map((g) => `${g.count} behind ${tried.length > 0 ? "it" : "others"}, ${queueSizes(g)}`),
  ];
  const timeout = pool.limits?.queueTimeoutMs;
  const after = timeout === null || timeout === undefined ? "" : ` at ${timeText(timeout)}`;
  const [first = "", ...rest] = parts;
  return [
    ...entry(pool.timedOut, `timed out${after}: ${first}`, look),
    ...rest.flatMap((part) => entry(null, part, look)),
  ];
}

function queueSizes({ text, sizes }: Refusal): string {
  if (sizes === null || sizes.least === sizes.most) return text;
  return text.replace(/\(size \d+\)/, `(size ${sizes.least} to ${sizes.most})`);
}

const ENTRY_INDENT = 6;

function entry(count: number | null, text: string, look: Look): string[] {
  const head = count === null ? "" : padStart(countText(count, look.unicode), ENTRY_INDENT - 2);
  const indent = Math.max(ENTRY_INDENT, widthOf(head) + 2);
  const lines = wrap(text, Math.max(20, look.columns - indent));
  return lines.map((line, i) => `${padEnd(i === 0 ? head : "", indent)}${line}`);
}

// What bound

function binding({ summary, chargeOf }: RunReport, look: Look): string[] {
  const waited = summary.pools.filter((p) => p.binding !== null);
  if (waited.length === 0) return [];
  const indent = Math.max(...waited.map((p) => widthOf(p.pool))) + 2;
  const lines = waited.flatMap((pool) => {
    const reasons = [...bindingReasons(pool, chargeOf), ...headOfLineReason(pool), ...staleViewReason(pool)];
    const told = [bindingLine(pool, look), ...reasons].flatMap((text) =>
      wrap(text, Math.max(20, look.columns - indent)),
    );
    return told.map((line, i) => `${padEnd(i === 0 ? pool.pool : "", indent)}${line}`);
  });
  return [paint(look, "bold", "BINDING"), ...lines];
}

function bindingLine(pool: PoolSummary, look: Look): string {
  const b = pool.binding!;
  const share = (ms: number): string => shareText(ms / totalWaited(pool));
  const what = paint(look, "bold", CONSTRAINT_TEXT[b.constraint]);
  const others = b.shares.slice(1, 3);
  // Followers have no head time of their own: what counts is what their heads wait for.
  if (b.constraint === "queueOrder") {
    const [head] = others;
    const heads = head === undefined ? "" : `: behind heads that wait for ${CONSTRAINT_TEXT[head.constraint]}`;
    return `${what}, ${share(b.shares[0]?.waitedMs ?? 0)} of all waiting${heads}`;
  }
  const alone = `${timeText(b.headMs)} of the ${timeText(pool.queuedMs)} in which anything waited`;
  const then = others.map((s) => `${CONSTRAINT_TEXT[s.constraint]} ${share(s.waitedMs)}`).join(", ");
  const jointly = jointText(b.shares);
  return `${what}, ${alone}${then === "" ? "" : `; then ${then}`}${jointly}`;
}

/** Where easing one limit alone changes nothing, that is worth knowing. */
function jointText(shares: readonly ConstraintShare[]): string {
  const [main] = shares;
  if (main === undefined || main.jointMs < 0.1 * main.waitedMs) return "";
  const partners = shares.filter((s) => s !== main && s.jointMs > 0).map((s) => CONSTRAINT_TEXT[s.constraint]);
  return `; ${shareText(main.jointMs / main.waitedMs)} of it together with ${partners.join(", ")}, so that easing one alone would not help`;
}

function staleViewReason(pool: PoolSummary): string[] {
  const stale = pool.binding?.shares.find((s) => s.constraint === "staleView")?.waitedMs ?? 0;
  return stale >= WORTH_EXPLAINING * totalWaited(pool) ? [STALE_VIEW_MEANS] : [];
}

/** A wait of less is nobody's trouble. */
const LONG_BEHIND_MS = 1000;

function headOfLineReason({ binding }: PoolSummary): string[] {
  const ms = binding?.headOfLine.longestMs ?? 0;
  if (ms < LONG_BEHIND_MS) return [];
  return [`a query that would have fitted stood behind one that did not for up to ${timeText(ms)}`];
}

const totalWaited = (pool: PoolSummary): number => pool.binding!.shares.reduce((sum, s) => sum + s.waitedMs, 0);

/** Why it binds where it binds, and from where on it would not: only what follows from the numbers. */
function bindingReasons(pool: PoolSummary, chargeOf: RunReport["chargeOf"]): string[] {
  const { limits } = pool;
  const main = principalClass(pool);
  if (limits === null || main === null || main.needBytes <= 0) return [];
  switch (pool.binding?.constraint) {
    case "queueOrder":
      return memoryReasons(pool, main, limits, chargeOf).filter((reason) => reason.startsWith("needs go"));
    case "poolMemory":
      return memoryReasons(pool, main, limits, chargeOf);
    case "runningLimit":
      return limits.maxMemoryBytes <= 0
        ? [`all ${limits.maxRequests} places were taken; the pool has no memory limit`]
        : [
            `all ${limits.maxRequests} places were taken; there is memory for ${Math.floor(limits.maxMemoryBytes / main.needBytes)} queries of ${prettyBytes(main.needBytes)}`,
          ];
    default:
      return [];
  }
}

/** The class that was admitted most often: pools with one class have no other. */
function principalClass(pool: PoolSummary): ClassSummary | null {
  const [first] = pool.classes.filter((c) => c !== undefined).sort((a, b) => b.admitted - a.admitted);
  return first ?? null;
}

function memoryReasons(
  pool: PoolSummary,
  main: ClassSummary,
  { maxMemoryBytes, maxRequests }: NonNullable<PoolSummary["limits"]>,
  chargeOf: RunReport["chargeOf"],
): string[] {
  const needs = pool.classes.filter((c) => c.needBytes > 0).sort((a, b) => a.needBytes - b.needBytes);
  const least = needs[0];
  const most = needs.at(-1);
  if (least !== undefined && most !== undefined && least.needBytes !== most.needBytes)
    return [
      `needs go from ${prettyBytes(least.needBytes)} (${least.queryClass}) to ${prettyBytes(most.needBytes)} (${most.queryClass}), and ${prettyBytes(maxMemoryBytes)} are there`,
    ];
  const need = main.needBytes;
  const fit = Math.floor(maxMemoryBytes / need);
  const fitting = `${fit} ${plural(fit, "query", "queries")} of ${prettyBytes(need)} fit in ${prettyBytes(maxMemoryBytes)}`;
  const charge = chargeOf(pool.pool, main.queryClass);
  if (charge !== null && main.peakBytes > 0 && charge.perHost >= 2 * main.peakBytes)
    return [
      `${fitting}; each is charged ${prettyBytes(charge.perHost)} a host (${charge.perHostSource}) and used at most ${prettyBytes(main.peakBytes)}`,
    ];
  if (maxRequests < 0) return [fitting, `${fit + 1} at a time from ${megabytes((fit + 1) * need)} on`];
  if (fit >= maxRequests) return [fitting];
  const full = fit + 1 < maxRequests ? `, ${maxRequests} from ${megabytes(maxRequests * need)} on` : "";
  const reached = pool.peakRunning < maxRequests ? `; the limit of ${maxRequests} running was never reached` : "";
  return [`${fitting}${reached}`, `${fit + 1} at a time from ${megabytes((fit + 1) * need)} on${full}`];
}

const megabytes = (bytes: number): string => `${Math.ceil(bytes / MiB)} mb`;

// Over-admission, the fleet, broken promises

/** What was let in above a limit because several controllers looked at it, each with its own view (T-12). */
function overAdmission({ summary, overAdmittedHosts }: RunReport, look: Look): string[] {
  const told: (readonly [name: string, texts: readonly string[]])[] = [
    ...summary.pools.map((p) => [p.pool, poolExcess(p)] as const),
    ...hostExcess(overAdmittedHosts ?? []),
  ].filter(([, texts]) => texts.length > 0);
  if (told.length === 0) return [];
  const indent = Math.max(...told.map(([name]) => widthOf(name))) + 2;
  const lines = told.flatMap(([name, texts]) =>
    texts
      .flatMap((text) => wrap(text, Math.max(20, look.columns - indent)))
      .map((line, i) => `${padEnd(i === 0 ? name : "", indent)}${line}`),
  );
  return [paint(look, "bold", "OVER-ADMISSION"), ...lines];
}

function poolExcess({ overAdmission: o, limits, peakRunning, peakMemoryBytes, peakQueued }: PoolSummary): string[] {
  if (limits === null) return [];
  const { maxRequests, maxMemoryBytes, maxQueued } = limits;
  const texts: string[] = [];
  if (o.running.most > 0)
    texts.push(`${peakRunning} running at the most, limit ${maxRequests}; over it for ${timeText(o.running.timeMs)}`);
  if (o.memoryBytes.most > 0)
    texts.push(
      `${prettyBytes(peakMemoryBytes)} admitted at the most, limit ${prettyBytes(maxMemoryBytes)}; over it for ${timeText(o.memoryBytes.timeMs)}`,
    );
  if (o.queued.most > 0)
    texts.push(`${peakQueued} queued at the most, limit ${maxQueued}; over it for ${timeText(o.queued.timeMs)}`);
  const { staleAdmissions: n } = o;
  if (texts.length > 0 && n > 0)
    texts.push(`${n} ${plural(n, "admission")} that a view of everything would have refused`);
  return [...texts, ...staleText(o)];
}

/** The other side of it, where several decide: who waited for news, not for room. */
function staleText({ phantomWaits: n, phantomMs, viewAgeMs }: PoolSummary["overAdmission"]): string[] {
  if (viewAgeMs === null || viewAgeMs.p50 === null || viewAgeMs.p99 === null || n === 0) return [];
  return [
    `${n} ${plural(n, "time")} a head waited although there was room, ${timeText(phantomMs)} in all; what a coordinator knew of the others was ${timeText(viewAgeMs.p50)} old in the middle, ${timeText(viewAgeMs.p99)} at p99`,
  ];
}

const HOSTS_TOLD = 3;

/** Those with most above their limit, and how many more there are. */
function hostExcess(hosts: readonly HostOverAdmission[]): (readonly [name: string, texts: readonly string[]])[] {
  const told = hosts
    .slice(0, HOSTS_TOLD)
    .map(
      ({ host, limitBytes, mostBytes, timeMs }) =>
        [
          host,
          [
            `${prettyBytes(limitBytes + mostBytes)} admitted at the most, host limit ${prettyBytes(limitBytes)}; over it for ${timeText(timeMs)}`,
          ],
        ] as const,
    );
  const more = hosts.length - told.length;
  return more > 0 ? [...told, ["", [`and ${more} more ${plural(more, "host")}`]]] : told;
}

function fleetSection({ fleet }: RunReport): string[] {
  if (fleet === null) return [];
  const arena = `largest arena ${prettyBytes(fleet.peakArenaBytes)} of ${prettyBytes(fleet.arenaBytes)} real bytes`;
  const scratch = fleet.peakScratchBytes > 0 ? `, scratch up to ${prettyBytes(fleet.peakScratchBytes)} emulated` : "";
  return [
    `fleet    ${fleet.hosts} hosts on ${fleet.threads} threads, ${timeText(fleet.realMs)} of real time; ${arena}${scratch}`,
    ...(fleet.left.length === 0 ? [] : ["LEFT BEHIND", ...fleet.left.map((what) => `  ${what}`)]),
  ];
}

/** Only where a file changed while the run went on. */
function poolFileSection({ poolFiles }: RunReport, look: Look): string[] {
  if (poolFiles.length === 0) return [];
  const lines = poolFiles.map(
    ({ at, level, text }) => `${timeText(at)}  ${level === "info" ? "" : `${level}: `}${text}`,
  );
  return [paint(look, "bold", "POOL FILES"), ...lines];
}

const brokenSection = ({ summary }: RunReport): string[] =>
  summary.broken.length === 0 ? [] : ["BROKEN PROMISES (a fault of ours)", ...summary.broken.map((b) => `  ${b}`)];

// Thresholds

function thresholdSection(results: readonly ThresholdResult[], look: Look): string[] {
  if (results.length === 0) return [];
  const failing = results.filter((r) => !r.holds);
  const shown = failing.length > FAILING_FIRST_ABOVE ? [...failing, ...results.filter((r) => r.holds)] : results;
  const width = Math.max(...results.map((r) => widthOf(r.expr)));
  const values = shown.map(valueText);
  const valueWidth = Math.max(...values.map(widthOf));
  return [
    paint(look, "bold", "THRESHOLDS"),
    ...shown.flatMap((r, i) => {
      const mark = r.holds ? paint(look, "good", "ok  ") : paint(look, "refused", "FAIL");
      const line = `${mark}  ${padEnd(r.expr, width)}     ${padEnd(values[i] ?? "", valueWidth)}`;
      const miss = missText(r);
      if (miss === "") return [line.trimEnd()];
      const oneLine = widthOf(line) + 2 + widthOf(miss) <= look.tableColumns;
      return oneLine ? [`${line}  ${miss}`] : [line.trimEnd(), ...entry(null, miss, look)];
    }),
  ];
}

function valueText(r: ThresholdResult): string {
  if (r.value === null) return "no value";
  return inUnit(r, r.value);
}

function inUnit(r: ThresholdResult, value: number): string {
  switch (r.unit) {
    case "time":
      return timeText(value);
    case "bytes":
      return prettyBytes(value);
    case "share":
      return shareText(value);
    case "count":
      return String(value);
  }
}

function missText(r: ThresholdResult): string {
  if (r.holds || r.value === null) return "";
  if (r.first !== null) return `first at ${timeText(r.first.at)}, query ${shortId(r.first.query)}`;
  if (r.value === Number.POSITIVE_INFINITY) return "among those who got no answer";
  const off = Math.abs(r.value - r.limit);
  return off === 0 ? "" : `${inUnit(r, off)} ${r.value > r.limit ? "over" : "under"}`;
}

/** Enough of an id to find the query again. */
export function shortId(query: string): string {
  return query.slice(0, 8);
}

// Where to look next

function footer(report: RunReport): string[] {
  const { thresholds, records, summary } = report;
  const failing = thresholds.filter((t) => !t.holds).length;
  const lines: string[] = [];
  if (failing > 0)
    lines.push(
      `${failing} of ${thresholds.length} ${plural(thresholds.length, "threshold does", "thresholds do")} not hold (exit ${exitCodeOf(report)})`,
    );
  if (records === null) return [...lines, "records  not written; --records FILE writes them"];
  const query = interestingQuery(report);
  const explain = query === null ? `waterhole replay ${records}` : `waterhole explain ${records} ${shortId(query)}`;
  if (failing > 0) return [...lines, `records  ${records}`, `next: ${explain}`];
  return [...lines, summary.submitted === 0 ? `records  ${records}` : `records  ${records}   next: ${explain}`];
}

/** The first that was refused where a threshold fails for it, else who waited longest. */
function interestingQuery({ thresholds, summary }: RunReport): string | null {
  const refused = thresholds.find((t) => !t.holds && t.first !== null)?.first?.query;
  if (refused !== undefined) return refused;
  const [longest] = summary.pools
    .filter((p) => p.longestWaiter !== "")
    .sort((a, b) => (b.waitMs.max ?? 0) - (a.waitMs.max ?? 0));
  return longest?.longestWaiter ?? summary.pools.flatMap((p) => p.refusals)[0]?.firstQuery ?? null;
}
