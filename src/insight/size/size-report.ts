/**
 * What `waterhole size` has found, as one plain record, and its two sentences (insight 3.6, 3.7).
 *
 * Sentences are filled-in templates: change, effect with its interval, price; then the limit that bound, and
 * what would not have helped. Nothing is said that is not in the record.
 */
import { prettyMillis } from "../../core/pretty.ts";
import { GiB, MiB } from "../../core/units.ts";
import { CONSTRAINT_TEXT } from "../binding.ts";
import type { Drop, DropReason, Effort, Elimination, Finalist, Goal } from "./elimination.ts";
import { type Interval, intervalOf, pairedInterval } from "./intervals.ts";
import { type BindingShare, failedShareOf, lossOf, memoryUsedShare, spillShareOf } from "./outcome.ts";
import type { PoolRoom } from "./pool-room.ts";
import { keyOf, type Setting } from "./setting.ts";

export interface SizeRow {
  readonly label: string;
  readonly setting: Setting;
  readonly days: number;
  /** Mean over days; null when a day lost more than the quantile leaves. */
  readonly p95Ms: number | null;
  readonly p95Interval: Interval | null;
  readonly p95ByClassMs: Readonly<Record<string, number | null>>;
  readonly loss: number;
  readonly lossInterval: Interval | null;
  /** Nothing was lost in so many: the loss is below 3/N. */
  readonly lossBelow: number | null;
  readonly spillShare: number;
  /** Of the submitted, in `loss`: admitted, and failed for want of memory. */
  readonly failedShare: number;
  /** Mean over days, of all pools: let in although a host then had more than it can give. */
  readonly onFullHosts: number;
  readonly memoryUsed: number;
  readonly peakRunning: number;
  readonly binding: readonly BindingShare[];
  /** Paired difference of the p95 to today's setting. */
  readonly against: Interval | null;
  readonly meetsGoal: boolean;
  /** Where queries spill: the p95 of the first day if spilling costs half as much, as assumed, and twice. */
  readonly p95ForSigma: ForSigma | null;
  /** More ran at once than 1.25 times what was ever seen: holds may not be what they were. */
  readonly isExtrapolated: boolean;
}

export interface ForSigma {
  readonly half: number | null;
  readonly assumed: number | null;
  readonly double: number | null;
}

/** One limit eased by a step, the same arrivals. */
export interface Relief {
  readonly of: "now" | "chosen";
  readonly limit: "memory" | "running" | "slots" | "executors" | "queue";
  readonly step: string;
  readonly p95Ms: number | null;
  readonly p95Before: number | null;
  readonly loss: number;
  readonly lossBefore: number;
  readonly effect: ReliefEffect;
}

/** In p95 and loss, of which a twentieth counts: one better and none worse, one of each, one worse and none better, neither. */
export type ReliefEffect = "helps" | "trades" | "worsens" | "none";

export interface SizeReport {
  readonly pool: string;
  readonly room: PoolRoom;
  /** Amounts of memory that were asked for and that the room does not hold. */
  readonly notTried: readonly number[];
  readonly goal: Goal;
  readonly days: number;
  readonly requestsADay: number;
  readonly rows: readonly SizeRow[];
  /** Label of the cheapest that meets the goal, `now` where no change is needed; null: none was found. */
  readonly cheapest: string | null;
  readonly relief: readonly Relief[];
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>;
  readonly examples: readonly Drop[];
  readonly effort: Effort;
  /** Pairs whose p95 cannot be told apart over these days. */
  readonly alike: readonly (readonly [string, string])[];
  readonly sentences: readonly string[];
  readonly assumptions: readonly string[];
}

export interface ReportParts {
  readonly pool: string;
  readonly room: PoolRoom;
  readonly notTried: readonly number[];
  readonly elimination: Elimination;
  readonly bindings: ReadonlyMap<string, readonly BindingShare[]>;
  readonly relief: readonly Relief[];
  readonly sigmas: ReadonlyMap<string, ForSigma>;
  readonly observedConcurrency: number | null;
  readonly assumptions: readonly string[];
}

const EXTRAPOLATED = 1.25;

export function sizeReport(parts: ReportParts): SizeReport {
  const { pool, elimination } = parts;
  const { now, finalists, goal } = elimination;
  const rows = [now, ...finalists].map((f, i) => rowOf(f, i === 0 ? "now" : labelOf(i - 1), now, parts));
  const chosen = elimination.cheapest === null ? null : keyOf(elimination.cheapest.setting);
  const cheapest = rows.find((r) => keyOf(r.setting) === chosen) ?? null;
  const dropped: Partial<Record<DropReason, number>> = {};
  for (const d of elimination.drops) dropped[d.why] = (dropped[d.why] ?? 0) + 1;
  return {
    pool,
    room: parts.room,
    notTried: parts.notTried,
    goal,
    days: now.outcomes.length,
    requestsADay: now.outcomes[0]?.submitted ?? 0,
    rows,
    cheapest: cheapest?.label ?? null,
    relief: parts.relief,
    dropped,
    examples: elimination.drops.slice(0, 3),
    effort: elimination.effort,
    alike: alikePairs(rows, [now, ...finalists]),
    sentences: sentencesOf(pool, rows[0]!, cheapest, parts.relief),
    assumptions: parts.assumptions,
  };
}

const labelOf = (i: number): string => String.fromCharCode("A".charCodeAt(0) + i);

function rowOf(f: Finalist, label: string, now: Finalist, parts: ReportParts): SizeRow {
  const p95s = f.outcomes.map((o) => o.p95);
  const losses = f.outcomes.map(lossOf);
  const submitted = f.outcomes.reduce((n, o) => n + o.submitted, 0);
  const meanLoss = mean(losses);
  const p95Ms = finite(mean(p95s));
  const sameDays = now.outcomes.slice(0, f.outcomes.length).map((o) => o.p95);
  return {
    label,
    setting: f.setting,
    days: f.outcomes.length,
    p95Ms,
    p95Interval: intervalOf(p95s),
    p95ByClassMs: classMeans(f),
    loss: meanLoss,
    lossInterval: intervalOf(losses),
    lossBelow: meanLoss === 0 && submitted > 0 ? 3 / submitted : null,
    spillShare: mean(f.outcomes.map(spillShareOf)),
    failedShare: mean(f.outcomes.map(failedShareOf)),
    onFullHosts: mean(f.outcomes.map((o) => o.onFullHosts)),
    memoryUsed: mean(f.outcomes.map((o) => memoryUsedShare(o, f.setting.maxMem))),
    peakRunning: Math.max(0, ...f.outcomes.map((o) => o.peakRunning)),
    binding: parts.bindings.get(keyOf(f.setting)) ?? [],
    against: label === "now" ? null : pairedInterval(p95s, sameDays),
    p95ForSigma: parts.sigmas.get(keyOf(f.setting)) ?? null,
    isExtrapolated:
      parts.observedConcurrency !== null &&
      Math.max(0, ...f.outcomes.map((o) => o.peakRunning)) > EXTRAPOLATED * parts.observedConcurrency,
    meetsGoal: f.meetsGoal,
  };
}

function classMeans(f: Finalist): Record<string, number | null> {
  const names = new Set(f.outcomes.flatMap((o) => Object.keys(o.p95ByClass)));
  return Object.fromEntries(
    [...names].sort().map((c) => [c, finite(mean(f.outcomes.map((o) => o.p95ByClass[c] ?? 0)))]),
  );
}

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((a, b) => a + b, 0) / values.length;
const finite = (n: number): number | null => (Number.isFinite(n) ? n : null);

function alikePairs(rows: readonly SizeRow[], finalists: readonly Finalist[]): (readonly [string, string])[] {
  const pairs: (readonly [string, string])[] = [];
  for (let i = 1; i < rows.length; i++)
    for (let j = i + 1; j < rows.length; j++) {
      const days = Math.min(finalists[i]!.outcomes.length, finalists[j]!.outcomes.length);
      const difference = pairedInterval(
        finalists[i]!.outcomes.slice(0, days).map((o) => o.p95),
        finalists[j]!.outcomes.slice(0, days).map((o) => o.p95),
      );
      if (difference !== null && difference.low <= 0 && difference.high >= 0)
        pairs.push([rows[i]!.label, rows[j]!.label]);
    }
  return pairs;
}

// The two sentences

export function sentencesOf(pool: string, now: SizeRow, chosen: SizeRow | null, relief: readonly Relief[]): string[] {
  const idle = notHelpful(relief.filter((r) => r.of === "now"));
  if (chosen === null)
    return [
      `No setting that was tried meets the goal for ${pool}.`,
      `${[sentenceCase(boundBy(now)), idle].filter((s) => s !== "").join("; ")}.`,
    ];
  const isSame = keyOf(now.setting) === keyOf(chosen.setting);
  const first = isSame
    ? `Leave ${pool} as it is: it meets the goal, and nothing cheaper that was tried does.`
    : `${changeText(pool, now, chosen)}: ${effectText(now, chosen)}${priceText(now, chosen)}.`;
  return [first, `${[sentenceCase(boundBy(now)), idle].filter((s) => s !== "").join("; ")}.`];
}

function changeText(pool: string, now: SizeRow, chosen: SizeRow): string {
  const a = now.setting;
  const b = chosen.setting;
  const parts: string[] = [];
  if (a.maxMem !== b.maxMem) parts.push(`${memoryText(b.maxMem)} instead of ${memoryText(a.maxMem)}`);
  if (a.maxRunning !== b.maxRunning)
    parts.push(`${countText(b.maxRunning)} running instead of ${countText(a.maxRunning)}`);
  if (a.maxQueued !== b.maxQueued) parts.push(`a queue of ${b.maxQueued} instead of ${a.maxQueued}`);
  if (a.timeout !== b.timeout)
    parts.push(`a timeout of ${prettyMillis(b.timeout)} instead of ${prettyMillis(a.timeout)}`);
  if (a.maxQueryMem !== b.maxQueryMem)
    parts.push(
      `at most ${memoryText(b.maxQueryMem)} a query and host instead of ${a.maxQueryMem > 0 ? memoryText(a.maxQueryMem) : "no limit"}`,
    );
  if (a.minQueryMem !== b.minQueryMem)
    parts.push(
      `${b.minQueryMem > 0 ? `at least ${memoryText(b.minQueryMem)}` : "no minimum"} a query and host instead of ${a.minQueryMem > 0 ? memoryText(a.minQueryMem) : "none"}`,
    );
  if (b.split !== null)
    parts.push(
      `a pool of their own with ${percent(b.split.share)} of it for queries above ${memoryText(b.split.above)}`,
    );
  return `Give ${pool} ${parts.join(", ")}`;
}

function effectText(now: SizeRow, chosen: SizeRow): string {
  const from = waitText(now.p95Ms);
  const to = waitText(chosen.p95Ms);
  const verb =
    (chosen.p95Ms ?? Number.POSITIVE_INFINITY) <= (now.p95Ms ?? Number.POSITIVE_INFINITY) ? "falls" : "rises";
  const paired =
    chosen.against === null
      ? chosen.days < 2
        ? " (one day, no confidence)"
        : ""
      : ` (paired difference ${rangeText(chosen.against)} over ${chosen.days} days)`;
  const wait = from === to ? `the p95 wait stays ${to}` : `the p95 wait ${verb} from ${from} to ${to}${paired}`;
  const loss =
    now.loss === chosen.loss
      ? ` and losses stay ${chosen.lossBelow === null ? "at " : ""}${lossText(chosen)}`
      : ` and losses go from ${percent(now.loss)} to ${lossText(chosen)}`;
  return wait + loss;
}

function priceText(now: SizeRow, chosen: SizeRow): string {
  const by = chosen.setting.maxMem - now.setting.maxMem;
  if (now.setting.maxMem < 0 || chosen.setting.maxMem < 0 || by === 0) return "";
  return by > 0
    ? `, for ${memoryText(by)} that other pools no longer have`
    : `, which frees ${memoryText(-by)} for other pools`;
}

function boundBy(row: SizeRow): string {
  const [first, second] = row.binding;
  if (first === undefined) return "nothing waited, so no limit bound";
  const runnerUp =
    second === undefined || second.share < 0.01
      ? ""
      : `, ${CONSTRAINT_TEXT[second.constraint]} ${percent(second.share)}`;
  return first.share > 0.995
    ? `${CONSTRAINT_TEXT[first.constraint]} bound all of the waiting`
    : `${CONSTRAINT_TEXT[first.constraint]} bound ${percent(first.share)} of the waiting${runnerUp}`;
}

/** What easing one limit does, those first that nobody needs to try. */
function notHelpful(relief: readonly Relief[]): string {
  const of = (effect: ReliefEffect): readonly Relief[] => relief.filter((r) => r.effect === effect);
  const parts: string[] = [];
  const idle = of("none").map((r) => r.step);
  if (idle.length > 0) parts.push(`${listed(idle, "or")} alone changes nothing`);
  for (const r of of("trades"))
    parts.push(
      `${r.step} would trade ${r.loss < r.lossBefore ? "losses for longer waits" : "waits for more losses"} (p95 ${waitText(r.p95Ms)}, lost ${percent(r.loss)})`,
    );
  const worse = of("worsens").map((r) => r.step);
  if (worse.length > 0) parts.push(`${listed(worse, "and")} ${worse.length === 1 ? "makes" : "make"} it worse`);
  if (parts.length === 0) return "";
  const helping = of("helps").map((r) => r.step);
  const would = helping.length === 1 ? `${helping[0]} helps` : `${helping.join(" and ")} each help`;
  return `${parts.join(", ")}${helping.length === 0 ? "" : `, while ${would}`}`;
}

const listed = (items: readonly string[], last: string): string =>
  items.length === 1 ? items[0]! : `${items.slice(0, -1).join(", ")} ${last} ${items.at(-1)}`;

export const memoryText = (bytes: number): string =>
  bytes < 0
    ? "no limit"
    : bytes > 0 && bytes < GiB
      ? `${(bytes / MiB).toFixed(0)} MiB`
      : `${(bytes / GiB).toFixed(1)} GiB`;
export const countText = (n: number): string => (n < 0 ? "any number" : String(n));
export const waitText = (ms: number | null): string => (ms === null ? "endless (over 5 % lost)" : seconds(ms));
export const seconds = (ms: number): string => `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
export const percent = (share: number): string =>
  `${(share * 100).toFixed(share !== 0 && share < 0.001 ? 3 : share < 0.1 ? 2 : 0)} %`;
export const lossText = (row: SizeRow): string =>
  row.lossBelow !== null ? `below ${percent(row.lossBelow)}` : percent(row.loss);
const rangeText = ({ low, high }: Interval): string =>
  low < 0 && high > 0
    ? `-${seconds(-low)} to +${seconds(high)}`
    : `${seconds(Math.min(Math.abs(low), Math.abs(high)))} to ${seconds(Math.max(Math.abs(low), Math.abs(high)))}`;
const sentenceCase = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
